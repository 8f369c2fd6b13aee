//! The threads that read pages: a fixed few, each with a page at a time. An
//! allocator keeps freed memory for each thread that has used it, so the largest
//! pages must not pass through ever new threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// They end when this is dropped.
#[derive(Debug)]
pub(super) struct ExtractionThreads(mpsc::Sender<Work>);

impl ExtractionThreads {
    pub(super) fn start(count: usize) -> Self {
        let (sender, receiver) = mpsc::channel::<Work>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..count.max(1) {
            let receiver = Arc::clone(&receiver);
            let run = move || {
                loop {
                    let next = receiver
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    match next {
                        Ok(work) => work(),
                        Err(mpsc::RecvError) => return,
                    }
                }
            };
            std::thread::Builder::new()
                .name(format!("extract-{number}"))
                .spawn(run)
                .expect("a thread can be started");
        }
        Self(sender)
    }

    /// Runs work on one of the threads; an error when it panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits any more when the URL was cancelled.
            let _ = done.send(result.map_err(|panic| message(&*panic)));
        });
        if self.0.send(work).is_err() {
            return Err("no extraction thread".to_owned());
        }
        result
            .await
            .unwrap_or_else(|_| Err("the extraction thread ended".to_owned()))
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.as_deref().unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn a_few_threads_do_all_work_and_survive_panics() {
        let threads = ExtractionThreads::start(2);
        let mut used = HashSet::new();
        for n in 0..50 {
            let result = threads
                .run(move || {
                    assert!(n % 10 != 3, "page {n}");
                    std::thread::current().id()
                })
                .await;
            match result {
                Ok(thread) => {
                    used.insert(thread);
                }
                Err(error) => assert_eq!(error, format!("panic: page {n}")),
            }
        }
        assert!(used.len() <= 2, "{used:?}");
    }
}
