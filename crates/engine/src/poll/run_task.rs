//! A collection run that a user starts is a task: recorded before it begins, and
//! finished with its counts, whether or not anybody waits for it.

use std::sync::Arc;
use std::time::Duration;

use tidings_store::{StartedTask, Task, TaskCounts, TaskResult};

use super::collect::{last_lease, selected};
use super::{CollectError, CollectOptions, Collected, Poller};

/// Characters of names in the subject of a task.
const MAX_SUBJECT: usize = 200;

/// A run that was recorded, and has not begun.
#[derive(Debug)]
pub struct RunTask {
    pub task: Task,
    options: CollectOptions,
}

impl Poller {
    /// Records a run as a task, which [`Poller::finish_run`] does. An error when a source
    /// is unknown or another run is in progress.
    pub async fn start_run(&self, options: CollectOptions) -> Result<RunTask, CollectError> {
        let store = &self.context.store;
        selected(store, &options.sources).await?;
        last_lease(store).await?;
        let subject = match options.sources.is_empty() {
            true => "all sources".to_owned(),
            false => options.sources.join(", "),
        };
        let subject: String = subject.chars().take(MAX_SUBJECT).collect();
        let started = store.start_task("collect", &subject, Duration::ZERO);
        match started.await? {
            StartedTask::Started(task) => Ok(RunTask { task, options }),
            StartedTask::TooSoon { last } => Err(CollectError::Running(last)),
        }
    }

    /// Runs, and finishes the task with what was found.
    pub async fn finish_run(self: &Arc<Self>, started: RunTask) -> Result<Collected, CollectError> {
        let collected = self.collect(&started.options, |_| {}).await;
        let result = match &collected {
            Ok(collected) => result_of(collected),
            Err(error) => TaskResult {
                has_failed: true,
                detail: error.to_string(),
                counts: None,
            },
        };
        let store = &self.context.store;
        let finished = store.finish_task(started.task.task_id, &result).await;
        // The error of the run is the cause, if there are two.
        let collected = collected?;
        finished?;
        Ok(collected)
    }
}

/// A run in which every source failed has failed.
fn result_of(collected: &Collected) -> TaskResult {
    let Collected {
        attempted,
        succeeded,
        items_seen,
        items_new,
        ..
    } = collected;
    TaskResult {
        has_failed: *attempted > 0 && *succeeded == 0,
        detail: format!("{succeeded} of {attempted} sources, {items_seen} items, {items_new} new"),
        counts: Some(TaskCounts {
            sources_attempted: *attempted as u64,
            sources_succeeded: *succeeded as u64,
            items_seen: *items_seen as u64,
            items_new: *items_new as u64,
        }),
    }
}
