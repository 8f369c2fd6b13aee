//! Live streams (SSE). A client pulls: what it does not read is not read from
//! the store, so a slow one costs nothing and misses nothing; what just happened is
//! read once for all. Each event carries the cursor that resumes after it. A stream
//! ends with the token that opened it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use tidings_store::ChangeCursor;

use super::documents::shown;
use crate::app::App;
use crate::call::{Answer, Call};
use crate::problem::Problem;
use crate::tail;

/// Rows that are read at once for one client.
const ROWS: u32 = 100;
/// A sign of life, so that proxies and browsers keep the connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const MOST_STREAMS: usize = 2000;

/// Where a client is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Events(i64),
    Documents(Option<ChangeCursor>),
}

pub(crate) async fn events(call: Call) -> Answer {
    let after = match last_event_id(&call)? {
        Some(text) => text
            .parse()
            .map_err(|_| Problem::field("last-event-id", "last-event-id is not a number"))?,
        // Without a place: what happens from now on.
        None => call.app.store.last_event_id().await?,
    };
    begin(call, Place::Events(after))
}

pub(crate) async fn documents(call: Call) -> Answer {
    let after =
        match last_event_id(&call)? {
            Some(text) => Some(text.parse().map_err(
                |error: tidings_store::ParseCursorError| Problem::field("after", error.to_string()),
            )?),
            None => None,
        };
    begin(call, Place::Documents(after))
}

/// What a browser sends when it comes back, or what was asked for.
fn last_event_id(call: &Call) -> Result<Option<String>, Problem> {
    match call.headers.get("last-event-id") {
        Some(value) => {
            let text = value.to_str().unwrap_or("?").to_owned();
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        None => Ok(call.text("after").map(str::to_owned)),
    }
}

/// Counts a stream for as long as it lives.
struct Open(Arc<App>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Client {
    open: Open,
    place: Place,
    token_id: i64,
    ready: VecDeque<Bytes>,
    last_sent: Instant,
    stopping: tokio::sync::watch::Receiver<bool>,
}

fn begin(call: Call, place: Place) -> Answer {
    let app = call.app;
    if app.streams.fetch_add(1, Ordering::Relaxed) >= MOST_STREAMS {
        app.streams.fetch_sub(1, Ordering::Relaxed);
        return Err(Problem {
            retry_after: Some(30),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many live streams")
        });
    }
    let client = Client {
        stopping: app.stopping(),
        open: Open(app),
        place,
        token_id: call.who.map_or(0, |who| who.token_id),
        // The first bytes tell the browser that the stream is open.
        ready: VecDeque::from([Bytes::from_static(b"retry: 2000\n\n")]),
        last_sent: Instant::now(),
    };
    let parts = stream::unfold(client, |mut client| async move {
        let part = client.next().await?;
        Some((Ok::<Bytes, Infallible>(part), client))
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Client {
    /// The next bytes, when there are some. `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                self.last_sent = Instant::now();
                return Some(part);
            }
            if *self.stopping.borrow() || !self.may_go_on().await {
                return None;
            }
            if self.read().await.is_err() {
                // The client comes back with its place.
                return None;
            }
            if !self.ready.is_empty() {
                continue;
            }
            if self.last_sent.elapsed() >= SIGN_OF_LIFE {
                self.ready.push_back(Bytes::from_static(b": here\n\n"));
                continue;
            }
            let pause = self.open.0.options.look_every;
            // Either way the next round looks again.
            let _ = tokio::time::timeout(pause, self.stopping.changed()).await;
        }
    }

    async fn may_go_on(&self) -> bool {
        let valid = self.open.0.access.is_valid(self.token_id).await;
        valid.unwrap_or(false)
    }

    async fn read(&mut self) -> Result<(), Problem> {
        let store = &self.open.0.store;
        match &mut self.place {
            Place::Events(after) => {
                if let Some(recent) = self.open.0.tail.after(*after) {
                    *after = recent.last().map_or(*after, |(id, _)| *id);
                    self.ready.extend(recent.into_iter().map(|(_, part)| part));
                    return Ok(());
                }
                for event in store.events_after(*after, ROWS).await? {
                    *after = event.event_id;
                    self.ready.push_back(tail::sent(&event)?);
                }
            }
            Place::Documents(after) => {
                for (cursor, stored) in store.document_changes(*after, ROWS).await? {
                    *after = Some(cursor);
                    let data = shown(&stored)?;
                    let part = tail::frame("document", &cursor.to_string(), &data);
                    self.ready.push_back(part);
                }
            }
        }
        Ok(())
    }
}
