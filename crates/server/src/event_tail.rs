//! The latest events, read once for all live streams: a client that is up to date
//! reads them here and never queries the store. Never the only copy of anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value as Json;
use tidings_store::{Event, Store};

use crate::open_streams::OpenStreams;
use crate::problem::Problem;

/// Events that are held, and the size of one read.
const MAX_EVENTS: usize = 1000;

#[derive(Debug)]
pub(crate) struct EventTail(Mutex<Recent>);

#[derive(Debug)]
struct Recent {
    /// All events after this one are here.
    floor: i64,
    events: VecDeque<(i64, Bytes)>,
}

impl Default for EventTail {
    fn default() -> Self {
        let empty = Recent {
            floor: i64::MAX,
            events: VecDeque::new(),
        };
        Self(Mutex::new(empty))
    }
}

impl EventTail {
    /// The events after one, as SSE frames; `None` when that one is older than
    /// everything here.
    pub(crate) fn after(&self, event: i64) -> Option<Vec<(i64, Bytes)>> {
        let recent = self.lock();
        let later = |(id, _): &&(i64, Bytes)| *id > event;
        (event >= recent.floor).then(|| recent.events.iter().filter(later).cloned().collect())
    }

    /// Starts empty after the event that is the last one now.
    async fn reset(&self, store: &Store) -> Result<(), Problem> {
        let last = store.last_event_id().await?;
        *self.lock() = Recent {
            floor: last,
            events: VecDeque::new(),
        };
        Ok(())
    }

    /// Reads the next events; true when there may be more.
    async fn advance(&self, store: &Store) -> Result<bool, Problem> {
        let last = {
            let recent = self.lock();
            recent.events.back().map_or(recent.floor, |(id, _)| *id)
        };
        let found = store.events_after(last, MAX_EVENTS as u32).await?;
        let mut recent = self.lock();
        for event in &found {
            if recent.events.len() == MAX_EVENTS
                && let Some((id, _)) = recent.events.pop_front()
            {
                recent.floor = id;
            }
            recent
                .events
                .push_back((event.event_id, event_frame(event)?));
        }
        Ok(found.len() == MAX_EVENTS)
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        // Changed whole: a panic elsewhere leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event as an SSE frame.
pub(crate) fn event_frame(event: &Event) -> Result<Bytes, Problem> {
    let data = serde_json::to_value(event).map_err(Problem::internal)?;
    Ok(frame("event", &event.event_id.to_string(), &data))
}

/// JSON has no line ends of its own, so one `data` line is enough.
pub(crate) fn frame(kind: &str, id: &str, data: &Json) -> Bytes {
    Bytes::from(format!("event: {kind}\nid: {id}\ndata: {data}\n\n"))
}

/// Reads events for as long as the server runs, while any stream is open.
pub(crate) async fn follow(
    tail: Arc<EventTail>,
    streams: Arc<OpenStreams>,
    store: Store,
    interval: Duration,
) {
    let mut is_stale = true;
    loop {
        if streams.count() == 0 {
            is_stale = true;
        } else {
            let read = match is_stale {
                true => tail.reset(&store).await.map(|()| true),
                false => tail.advance(&store).await,
            };
            // While the store is unavailable clients query it themselves; retried below.
            is_stale = is_stale && read.is_err();
            if read.is_ok_and(|has_more| has_more) {
                continue;
            }
        }
        tokio::time::sleep(interval).await;
    }
}
