//! What happened last, read once for all who watch: a client that is up to date
//! looks here and asks the store nothing. Never the only copy of anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value as Json;
use tidings_store::{Event, Store};

use crate::app::App;
use crate::problem::Problem;

/// Events that are kept, and that are read at once.
const KEPT: usize = 1000;

#[derive(Debug)]
pub(crate) struct Tail(Mutex<Recent>);

#[derive(Debug)]
struct Recent {
    /// All events after this one are here.
    floor: i64,
    events: VecDeque<(i64, Bytes)>,
}

impl Default for Tail {
    fn default() -> Self {
        let nothing = Recent {
            floor: i64::MAX,
            events: VecDeque::new(),
        };
        Self(Mutex::new(nothing))
    }
}

impl Tail {
    /// The events after one, as they are sent; none when that is longer ago than
    /// what is here.
    pub(crate) fn after(&self, event: i64) -> Option<Vec<(i64, Bytes)>> {
        let recent = self.lock();
        let later = |(id, _): &&(i64, Bytes)| *id > event;
        (event >= recent.floor).then(|| recent.events.iter().filter(later).cloned().collect())
    }

    /// Begins at what is the last event now.
    async fn begin(&self, store: &Store) -> Result<(), Problem> {
        let last = store.last_event_id().await?;
        *self.lock() = Recent {
            floor: last,
            events: VecDeque::new(),
        };
        Ok(())
    }

    /// Reads on; true when there may be more.
    async fn advance(&self, store: &Store) -> Result<bool, Problem> {
        let last = {
            let recent = self.lock();
            recent.events.back().map_or(recent.floor, |(id, _)| *id)
        };
        let found = store.events_after(last, KEPT as u32).await?;
        let mut recent = self.lock();
        for event in &found {
            if recent.events.len() == KEPT
                && let Some((id, _)) = recent.events.pop_front()
            {
                recent.floor = id;
            }
            recent.events.push_back((event.event_id, sent(event)?));
        }
        Ok(found.len() == KEPT)
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        // Changed whole: a panic elsewhere leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event as it goes over a stream.
pub(crate) fn sent(event: &Event) -> Result<Bytes, Problem> {
    let data = serde_json::to_value(event).map_err(Problem::internal)?;
    Ok(frame("event", &event.event_id.to_string(), &data))
}

/// JSON has no line ends of its own, so one `data` line is enough.
pub(crate) fn frame(kind: &str, id: &str, data: &Json) -> Bytes {
    Bytes::from(format!("event: {kind}\nid: {id}\ndata: {data}\n\n"))
}

/// Reads for as long as the server runs, while anybody watches.
pub(crate) async fn follow(app: Arc<App>) {
    let mut is_behind = true;
    loop {
        if app.open_streams() == 0 {
            is_behind = true;
        } else {
            let read = match is_behind {
                true => app.tail.begin(&app.store).await.map(|()| true),
                false => app.tail.advance(&app.store).await,
            };
            // A store that is away is asked again; clients ask it themselves meanwhile.
            is_behind = is_behind && read.is_err();
            if read.is_ok_and(|has_more| has_more) {
                continue;
            }
        }
        tokio::time::sleep(app.options.look_every).await;
    }
}
