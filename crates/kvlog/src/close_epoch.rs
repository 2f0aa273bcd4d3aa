//! Closing an epoch: makes its changes durable over all shards, and writes the mark that says so.
//!
//! One task closes epochs for all requests that wait. Invariants: the mark is written after a sync
//! that began when every group of the epoch was written, and an epoch is closed when the mark is
//! durable; the task runs to its end even if its callers are gone; a failure fails the requests
//! that wait, and a later request tries again.

use std::sync::Arc;
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Class, CoreId, call, core_count, sleep, spawn};

use crate::epochs::{Epochs, Outstanding, Turn};
use crate::error::{Access, MediaError};
use crate::group::Group;
use crate::mark::{Mark, Position};
use crate::segments::is_cached;
use crate::shard::{Append, Shard};
use crate::shards::Shards;

/// An epoch is closed when so many bytes of groups were written.
const BYTES_MAX: u64 = 64 << 20;
/// An epoch is closed so long after its first change.
const TIME_MAX: Duration = Duration::from_secs(1);

impl Epochs {
    /// Waits until an epoch is closed.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close(self: &Arc<Self>, epoch: u64) -> Result<(), MediaError> {
        let (is_first, failures) = self.want(epoch);
        if is_first {
            self.start();
        }
        self.closed(epoch, failures).await
    }

    fn start(self: &Arc<Self>) {
        drop(spawn(Class::Foreground, run(Running::new(Arc::clone(self)))));
    }

    /// Closes epochs when they are long, or their first change was long ago.
    fn pace(self: &Arc<Self>, bytes: u64) {
        if self.count_written(bytes) >= BYTES_MAX && self.want(self.current()).0 {
            self.start();
        }
        if self.begin_timer() {
            let this = Arc::clone(self);
            drop(spawn(Class::Foreground, async move {
                sleep(TIME_MAX).await;
                this.end_timer();
                // A failure here fails the next Flush with its own status.
                let _ = this.close(this.current()).await;
            }));
        }
    }
}

async fn run(mut running: Running) {
    while let Some(epoch) = running.next() {
        let result = close(&running.epochs, epoch).await;
        running.epochs.ended(epoch, result);
    }
}

/// Closes the current epoch, and returns its mark.
async fn close(epochs: &Epochs, epoch: u64) -> Result<Mark, MediaError> {
    epochs.is_first(epoch).await;
    epochs.end(epoch);
    let last = epochs.mark();
    let mut mark = last.unwrap_or_default();
    for core in 0..core_count() {
        let ends = move || async move { ends_here(epoch).await };
        let found = call(CoreId(core), Class::Foreground, ends).await.ok().flatten();
        let found = found.ok_or_else(|| MediaError::Io(format!("core {core} is gone")))?;
        for (shard, position) in found {
            mark.positions[shard] = position;
        }
    }
    if last.is_some_and(|last| last.positions == mark.positions) {
        return Ok(mark);
    }
    mark.epoch = epoch;
    epochs.syncer.sync().await?;
    mark.write(epochs.syncer.media(), &epochs.uuid).await?;
    epochs.syncer.sync().await?;
    Ok(mark)
}

/// Returns the ends of this core's shards in an epoch; `None` when the core has none yet.
async fn ends_here(epoch: u64) -> Option<Vec<(usize, Position)>> {
    let here = Shards::here()?;
    let mut found = Vec::new();
    for shard in here.own() {
        found.push((shard.number as usize, shard.ends.in_epoch(epoch).await));
    }
    Some(found)
}

/// A guard of the task that closes epochs. If it is dropped with its core, waiting requests fail.
struct Running {
    epochs: Arc<Epochs>,
    has_ended: bool,
}

impl Running {
    fn new(epochs: Arc<Epochs>) -> Self {
        Self { epochs, has_ended: false }
    }

    /// Returns the epoch to close next; `None` when the task ends. Another core may start the next
    /// task at once, before this guard is dropped.
    fn next(&mut self) -> Option<u64> {
        let next = self.epochs.next();
        self.has_ended = next.is_none();
        next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            self.epochs.given_up();
        }
    }
}

impl Shard {
    /// Makes all groups that the shard has written durable, in the order of all shards. Without a
    /// volatile cache they are.
    ///
    /// # Errors
    /// When the medium fails.
    pub(crate) async fn close_written(&self) -> Result<(), MediaError> {
        match &self.segments.epochs {
            Some(epochs) if !epochs.has_closed(self.number, &self.ends.written()) => {
                epochs.close(epochs.current()).await
            }
            _ => Ok(()),
        }
    }

    /// Enters the current epoch with a group, and returns it; `None` without a volatile cache.
    ///
    /// # Errors
    /// [`MediaError::ReadOnly`] when a sync has failed: nothing more can become durable.
    pub(crate) fn enter_epoch(&self, group: &mut Group) -> Result<Option<u64>, MediaError> {
        let Some(epochs) = &self.segments.epochs else { return Ok(None) };
        epochs.syncer.check()?;
        // Also those that are answered when they are durable: an answer of the next epoch that came
        // before theirs would be undone without them.
        let counted = |(append, _): &&mut (Append, _)| append.is_new();
        let changes = group.placed.iter_mut().filter(counted).count();
        let (epoch, outstanding) = epochs.enter(changes);
        let changes = group.placed.iter_mut().filter(counted);
        for ((append, _), outstanding) in changes.zip(outstanding) {
            append.turn = Turn(Some(outstanding));
        }
        self.ends.begin(epoch);
        Ok(Some(epoch))
    }

    /// Notes that a group was written.
    pub(crate) fn group_written(&self, group: &Group) {
        let Some(epochs) = &self.segments.epochs else { return };
        let end = group.filled();
        let checkpoint = self.tail.borrow().checkpoint;
        self.ends.end(Some(Position { sequence: group.sequence, end, checkpoint }));
        epochs.pace(end - group.start);
    }

    /// Closes the epoch of a group that changes a namespace whose changes are durable when they are
    /// answered.
    ///
    /// # Errors
    /// When the medium fails: it is unknown whether the group is durable.
    pub(crate) async fn close_if_durable(
        &self,
        group: &Group,
        epoch: Option<u64>,
    ) -> Result<(), Status> {
        let is_durable = |append: &Append| append.is_new() && !is_cached(append.key().0);
        let waits = group.placed.iter().any(|(append, _)| is_durable(append));
        match (&self.segments.epochs, epoch) {
            // Not a later epoch: that could end only after the other changes of this group.
            (Some(epochs), Some(epoch)) if waits => {
                epochs.close(epoch).await.map_err(|error| error.status(Access::Write))
            }
            _ => Ok(()),
        }
    }

    /// Returns the turn of a change that needs no record, such as a Delete of an absent key.
    pub(crate) fn turn(&self, nsid: u16) -> Turn {
        let epochs = self.segments.epochs.as_ref().filter(|_| is_cached(nsid));
        let entered: Option<Outstanding> = epochs.and_then(|epochs| epochs.enter(1).1.pop());
        Turn(entered)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::media::{Media, Memory, Syncer};

    /// The simulation runs all cores on one thread, so it never comes between two steps of a task.
    #[test]
    fn a_task_that_has_ended_fails_no_request_of_the_next_one() {
        let syncer = Syncer::new(Media::Memory(Arc::new(Memory::new(4096))));
        let epochs = Arc::new(Epochs::new(syncer, [1; 16], 4, None));
        assert!(epochs.want(5).0);
        let mut running = Running::new(Arc::clone(&epochs));
        assert_eq!(running.next(), Some(5));
        epochs.ended(5, Ok(Mark::default()));
        assert_eq!(running.next(), None);
        let (is_first, failures) = epochs.want(6);
        assert!(is_first, "another core starts the next task");
        drop(running);
        let mut cx = Context::from_waker(Waker::noop());
        let mut closed = pin!(epochs.closed(6, failures));
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        drop(Running::new(Arc::clone(&epochs)));
        assert!(closed.as_mut().poll(&mut cx).is_ready(), "it was dropped with its core");
    }
}
