//! Live streams (SSE). A client pulls: rows that it does not read are not read from
//! the store, so a slow client costs nothing and misses nothing; the latest events are
//! read once for all clients. Each event carries the cursor that resumes after it. A
//! stream ends when its token does.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use tidings_store::ChangeCursor;

use super::documents::document_json;
use crate::app::App;
use crate::event_tail;
use crate::open_streams::StreamPermit;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

/// Rows of one read for one client.
const BATCH_ROWS: u32 = 100;
/// So that proxies and browsers hold the connection open.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The position of a client.
#[derive(Debug, Clone, Copy)]
enum Cursor {
    Events(i64),
    Documents(Option<ChangeCursor>),
}

pub(crate) async fn events(request: CheckedRequest) -> HandlerResult {
    let after = match last_event_id(&request)? {
        Some(text) => text
            .parse()
            .map_err(|_| Problem::field("last-event-id", "last-event-id is not a number"))?,
        // Without a cursor: events from now on.
        None => request.app.store.last_event_id().await?,
    };
    open_stream(request, Cursor::Events(after))
}

pub(crate) async fn documents(request: CheckedRequest) -> HandlerResult {
    let after =
        match last_event_id(&request)? {
            Some(text) => Some(text.parse().map_err(
                |error: tidings_store::ParseCursorError| Problem::field("after", error.to_string()),
            )?),
            None => None,
        };
    open_stream(request, Cursor::Documents(after))
}

/// The cursor: sent by a browser that reconnects, or given as a parameter.
fn last_event_id(request: &CheckedRequest) -> Result<Option<String>, Problem> {
    match request.headers.get("last-event-id") {
        Some(value) => {
            let text = value.to_str().unwrap_or("?").to_owned();
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        None => Ok(request.params.text("after").map(str::to_owned)),
    }
}

struct Client {
    app: Arc<App>,
    _permit: StreamPermit,
    cursor: Cursor,
    token_id: i64,
    ready: VecDeque<Bytes>,
    last_sent: Instant,
    stopping: tokio::sync::watch::Receiver<bool>,
}

fn open_stream(request: CheckedRequest, cursor: Cursor) -> HandlerResult {
    let app = request.app;
    let Some(permit) = app.streams.open() else {
        return Err(Problem {
            retry_after: Some(30),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many live streams")
        });
    };
    let client = Client {
        stopping: app.streams.stopping(),
        app,
        _permit: permit,
        cursor,
        token_id: request.principal.map_or(0, |principal| principal.token_id),
        // The first bytes show the browser that the stream is open.
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
    /// Waits for the next bytes. `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                self.last_sent = Instant::now();
                return Some(part);
            }
            if *self.stopping.borrow() || !self.is_authorized().await {
                return None;
            }
            if self.read().await.is_err() {
                // The client reconnects with its cursor.
                return None;
            }
            if !self.ready.is_empty() {
                continue;
            }
            if self.last_sent.elapsed() >= KEEPALIVE_INTERVAL {
                self.ready.push_back(Bytes::from_static(b": keepalive\n\n"));
                continue;
            }
            let pause = self.app.options.stream_poll_interval;
            // Either way the next iteration reads again.
            let _ = tokio::time::timeout(pause, self.stopping.changed()).await;
        }
    }

    async fn is_authorized(&self) -> bool {
        let valid = self.app.access.is_valid(self.token_id).await;
        valid.unwrap_or(false)
    }

    async fn read(&mut self) -> Result<(), Problem> {
        let store = &self.app.store;
        match &mut self.cursor {
            Cursor::Events(after) => {
                if let Some(recent) = self.app.event_tail.after(*after) {
                    *after = recent.last().map_or(*after, |(id, _)| *id);
                    self.ready.extend(recent.into_iter().map(|(_, part)| part));
                    return Ok(());
                }
                for event in store.events_after(*after, BATCH_ROWS).await? {
                    *after = event.event_id;
                    self.ready.push_back(event_tail::event_frame(&event)?);
                }
            }
            Cursor::Documents(after) => {
                for (cursor, stored) in store.document_changes(*after, BATCH_ROWS).await? {
                    *after = Some(cursor);
                    let data = document_json(&stored)?;
                    let part = event_tail::frame("document", &cursor.to_string(), &data);
                    self.ready.push_back(part);
                }
            }
        }
        Ok(())
    }
}
