//! One budget for all bodies that a process holds: those that are being read, and
//! what is made of them.
//!
//! A body grows in steps: 64 KiB, 256 KiB, 1 MiB, its limit. Each step has a share of the
//! budget of its own, and a body gets the room of a whole step at once, first come
//! first served. So there is no deadlock: shares are acquired in one order, and who
//! has room of the last one has all that it needs. Small bodies never wait behind
//! huge ones, and a hundred huge ones hold a mebibyte each while they wait, not all
//! that they could read. Room for what is made of a body (its text, its tree, its
//! items) is a share of its own, acquired last.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::failure::Failure;

const MIB: u64 = 1024 * 1024;
/// Permits count kibibytes, so that a permit count fits any body.
const UNIT: u64 = 1024;
/// The sizes at which a body needs more room; the last step ends at its limit.
const STEPS: [u64; 4] = [64 * 1024, 256 * 1024, MIB, u64::MAX];
/// Parts of the budget, by step: most pages end within the first two, and the largest
/// sitemap needs the last almost alone.
const STEP_SHARES: [u64; 4] = [4, 6, 4, 13];
/// Parts for what is made of bodies.
const READING_SHARE: u64 = 5;
const PARTS: u64 = 32;
/// Budget of a client that has none: more than any machine has.
const UNLIMITED: u64 = 1 << 40;

/// The memory of bodies. Cheap to clone; all clones are one budget.
#[derive(Debug, Clone)]
pub struct BodyMemory(Arc<Shares>);

#[derive(Debug)]
struct Shares {
    limit: u64,
    steps: [Share; 4],
    reading: Share,
    waiting: AtomicUsize,
    max_wait: Duration,
}

#[derive(Debug)]
struct Share {
    room: Arc<Semaphore>,
    units: u64,
}

/// How much of the budget is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    pub limit: u64,
    pub used: u64,
    /// Bodies that wait for room.
    pub waiting: usize,
}

impl BodyMemory {
    /// A body that gets no room for `max_wait` fails.
    pub fn new(limit: u64, max_wait: Duration) -> Self {
        let share = |parts: u64| {
            let units = limit / UNIT * parts / PARTS;
            Share {
                room: Arc::new(Semaphore::new(units as usize)),
                units,
            }
        };
        Self(Arc::new(Shares {
            limit,
            steps: STEP_SHARES.map(share),
            reading: share(READING_SHARE),
            waiting: AtomicUsize::new(0),
            max_wait,
        }))
    }

    /// The smallest budget in which a body of this size fits.
    pub fn min_bytes(largest_body: u64) -> u64 {
        let last_step = largest_body.saturating_sub(STEPS[2]).max(STEPS[2]);
        let bytes = (last_step * PARTS).div_ceil(STEP_SHARES[3]);
        bytes.next_multiple_of(MIB)
    }

    pub fn usage(&self) -> MemoryUse {
        let shares = self.0.steps.iter().chain([&self.0.reading]);
        let used = |share: &Share| share.units - share.room.available_permits() as u64;
        MemoryUse {
            limit: self.0.limit,
            used: shares.map(used).sum::<u64>() * UNIT,
            waiting: self.0.waiting.load(Ordering::Relaxed),
        }
    }

    /// Room for what is made of a body; `bytes` beyond the whole share are the share,
    /// so that the largest is read alone. Waits as long as it takes: its holders
    /// need nothing more.
    pub async fn room_to_read(&self, bytes: u64) -> ReadingRoom {
        let _waiting = Waiting::new(&self.0.waiting);
        ReadingRoom {
            _permit: self.0.reading.acquire(bytes).await,
        }
    }

    /// The room of a new body, none yet.
    pub(crate) fn body(&self) -> BodyRoom {
        BodyRoom {
            shares: Arc::clone(&self.0),
            permits: Vec::with_capacity(STEPS.len()),
            bytes: 0,
        }
    }
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self::new(UNLIMITED, Duration::MAX)
    }
}

impl Share {
    async fn acquire(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let units = bytes.div_ceil(UNIT).min(self.units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // An error would mean that the semaphore is closed, which it never is.
        Arc::clone(&self.room).acquire_many_owned(units).await.ok()
    }
}

/// Room for what is made of one body, until it is dropped.
#[derive(Debug)]
pub struct ReadingRoom {
    _permit: Option<OwnedSemaphorePermit>,
}

/// The room of one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    shares: Arc<Shares>,
    /// One for each step.
    permits: Vec<OwnedSemaphorePermit>,
    bytes: u64,
}

impl BodyRoom {
    /// How many bytes the body may have.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next step of a body that has at most `limit` bytes.
    pub(crate) async fn grow(&mut self, limit: u64) -> Result<(), Failure> {
        let step = self.permits.len();
        let Some(share) = self.shares.steps.get(step) else {
            return Ok(());
        };
        let bytes = STEPS[step].min(limit).max(self.bytes);
        let _waiting = Waiting::new(&self.shares.waiting);
        let max_wait = self.shares.max_wait;
        match timeout(max_wait, share.acquire(bytes - self.bytes)).await {
            Ok(permit) => self.permits.extend(permit),
            Err(_) => return Err(Failure::NoMemory { waited: max_wait }),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The body ends here: what it did not need is free again.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let mut unused = self.bytes.saturating_sub(bytes) / UNIT;
        for permit in self.permits.iter_mut().rev() {
            let part = (permit.num_permits() as u64).min(unused);
            drop(permit.split(part as usize));
            unused -= part;
        }
        self.bytes = self.bytes.min(bytes);
    }
}

/// Counts as waiting, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 10 * MIB;

    fn memory() -> BodyMemory {
        BodyMemory::new(128 * MIB, Duration::from_millis(20))
    }

    async fn body(memory: &BodyMemory, bytes: u64) -> Result<BodyRoom, Failure> {
        let mut room = memory.body();
        while room.bytes() < bytes {
            room.grow(PAGE).await?;
        }
        Ok(room)
    }

    #[tokio::test]
    async fn a_body_grows_in_steps_and_gives_back_what_it_does_not_need() {
        let memory = memory();
        let mut room = body(&memory, 1).await.unwrap();
        assert_eq!(memory.usage().used, 64 * 1024);
        room.grow(PAGE).await.unwrap();
        assert_eq!(memory.usage().used, 256 * 1024);
        room.grow(PAGE).await.unwrap();
        assert_eq!(memory.usage().used, MIB);
        room.grow(PAGE).await.unwrap();
        assert_eq!(memory.usage().used, PAGE);
        room.shrink(70_000);
        assert_eq!(memory.usage().used, 69 * 1024);
        drop(room);
        assert_eq!(memory.usage().used, 0);
    }

    #[tokio::test]
    async fn huge_bodies_wait_and_small_ones_do_not() {
        let memory = memory();
        let mut huge = Vec::new();
        while let Ok(room) = body(&memory, PAGE).await {
            huge.push(room);
        }
        assert_eq!(huge.len(), 5, "13 of 32 parts of 128 MiB for 9 MiB each");
        assert!(memory.usage().used <= 128 * MIB);
        let small = body(&memory, MIB).await.unwrap();
        // Whoever waits gets the room of the first that ends.
        let patient = BodyMemory(Arc::clone(&memory.0));
        let waiting = tokio::spawn(async move { body(&patient, PAGE).await });
        huge.pop();
        assert!(waiting.await.unwrap().is_ok());
        drop((small, huge));
        assert_eq!(
            memory.usage(),
            MemoryUse {
                limit: 128 * MIB,
                used: 0,
                waiting: 0
            }
        );
    }

    #[tokio::test]
    async fn the_largest_body_of_the_smallest_budget_fits_and_in_less_it_does_not() {
        let largest = 50 * MIB;
        let least = BodyMemory::min_bytes(largest);
        assert_eq!(least, 121 * MIB);
        for (budget, fits) in [(least, true), (least / 2, false)] {
            let memory = BodyMemory::new(budget, Duration::from_millis(20));
            let mut room = memory.body();
            while room.bytes() < largest {
                room.grow(largest).await.unwrap();
            }
            assert_eq!(memory.usage().used >= largest, fits);
        }
    }

    #[tokio::test]
    async fn what_is_larger_than_the_share_is_read_alone() {
        let memory = memory();
        let all = memory.room_to_read(500 * MIB).await;
        assert_eq!(memory.usage().used, 20 * MIB);
        let other = memory.clone();
        let second = tokio::spawn(async move { other.room_to_read(1).await });
        tokio::task::yield_now().await;
        assert_eq!(memory.usage().waiting, 1);
        drop(all);
        second.await.unwrap();
        assert_eq!(memory.usage().used, 0);
    }
}
