//! [`Work`]: a step of a run on one core: the host and the drives take units until none is left.
//!
//! Kernels and programs share these loops, and each implements the processing of a unit.
//! Invariants: the units of a lost drive are recorded as missing, and the others are still
//! processed; any other error stops the queue.

use std::rc::Rc;
use std::sync::Arc;

use csd_reactor::{Buffer, Instant, busy};
use csd_store::array::Array;
use csd_store::catalogue::{self, Entry};
use csd_store::object::{Pieces, Progress};

use crate::cores::seconds;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::queue::{Queue, Taken};
use crate::team::Team;
use crate::{Error, Mode, Share};

/// Error of a unit, and the member whose drive failed.
pub(crate) type MemberError = (usize, Error);
/// Begin and end of an execution.
pub(crate) type Span = (Instant, Instant);

/// Work of a drive, or of one of its workers.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) elements: u64,
    pub(crate) spans: Vec<Span>,
}

/// Parts of a step that kernels and programs have in common, as one core sees them.
pub(crate) struct Common {
    pub(crate) mode: Mode,
    pub(crate) queue: Arc<Queue>,
    /// Links to the drives, by member.
    pub(crate) links: Rc<Vec<Link>>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) progress: Progress,
    /// Pieces of the inputs, if the host can compute chunks that cannot be read.
    pub(crate) pieces: AllPieces,
    /// True if the host takes over the units of lost drives. An output object needs its drives,
    /// because its chunks belong there.
    pub(crate) takes_over: bool,
}

/// Pieces of each input; empty unless all inputs are protected.
pub(crate) type AllPieces = Rc<Vec<Rc<Pieces>>>;

/// Returns the pieces of each input.
pub(crate) fn pieces(array: &Array, inputs: &[Entry]) -> AllPieces {
    let inputs = inputs.iter().filter(|_| catalogue::are_protected(inputs));
    Rc::new(inputs.filter_map(|entry| Pieces::new(array, &Rc::new(entry.clone()))).collect())
}

impl Common {
    /// Records that a member's drive is lost while it worked on `taken`. Its units are missing,
    /// unless the host takes them over.
    pub(crate) fn lose(&self, member: usize, error: &Error, taken: Option<&Taken>) {
        if self.takes_over {
            return self.give_to_host(member, error, taken);
        }
        let mut missing = self.queue.abandon(member);
        missing.extend(taken.map(|taken| taken.run.clone()));
        self.ledger.lose(member, error, missing);
    }

    /// Gives units to the host that a member's drive cannot process.
    fn give_to_host(&self, member: usize, error: &Error, taken: Option<&Taken>) {
        self.queue.give_to_host(taken);
        self.ledger.note(member, error);
    }

    /// Returns a chunk of an input that was read from a member; computes it from other pieces if it
    /// could not be read and all inputs are protected.
    ///
    /// # Errors
    /// The error of the reading, or
    /// [`ProtectionError::Lost`](csd_store::error::ProtectionError::Lost).
    pub(crate) async fn or_computed(
        &self,
        (input, member): (usize, usize),
        chunk: u32,
        read: Result<Buffer, Error>,
    ) -> Result<Buffer, Error> {
        match (read, self.pieces.get(input)) {
            (Err(error), Some(pieces)) if error.is_of_piece() => {
                self.ledger.note(member, &error);
                Ok(pieces.chunk(chunk).await?)
            }
            (read, _) => read,
        }
    }
}

/// Work of one core in a step.
pub(crate) trait Work: Sized + 'static {
    fn common(&self) -> &Common;

    /// Returns the number of units that a core of the host works on at once.
    fn ahead(&self) -> usize;

    /// Processes a unit on this core; returns the number of its elements.
    async fn on_host(self: &Rc<Self>, taken: &Taken) -> Result<u64, MemberError>;

    /// Lets a member's drive take units until none is left.
    async fn on_drive(self: &Rc<Self>, member: usize) -> Result<Done, Error>;
}

/// Does the work of one core: the host's, and if it `leads`, the supervision of the drives.
pub(crate) async fn all<W: Work>(work: &Rc<W>, leads: bool) -> Result<(), Error> {
    let mut drives = Team::default();
    if leads && work.common().mode != Mode::Host {
        for member in 0..work.common().links.len() {
            let work = Rc::clone(work);
            drives.add(async move { drive(&work, member).await });
        }
    }
    let mut failed = match work.common().mode {
        Mode::Drives => None,
        Mode::Host | Mode::Split => host(work).await.err(),
    };
    while let Some(ended) = drives.next().await {
        failed = failed.or(ended.err());
    }
    let has_rest = !work.common().pieces.is_empty() && work.common().queue.has_units();
    if leads && failed.is_none() && has_rest {
        failed = host(work).await.err();
    }
    failed.map_or(Ok(()), Err)
}

async fn drive<W: Work>(work: &Rc<W>, member: usize) -> Result<(), Error> {
    let done = work.on_drive(member).await.inspect_err(|_| work.common().queue.stop())?;
    let (who, elements) = (work.common().links[member].name().to_owned(), done.elements);
    let share = Share { who, elements, busy_s: covered_s(done.spans) };
    work.common().ledger.add(share, false);
    Ok(())
}

/// Processes units on this core until none is left.
async fn host<W: Work>(work: &Rc<W>) -> Result<(), Error> {
    let (before, mut elements, mut failed) = (busy(), 0, None);
    let mut pending = Team::default();
    loop {
        while failed.is_none() && pending.len() < work.ahead() {
            let Some(taken) = work.common().queue.take_for_host() else { break };
            let work = Rc::clone(work);
            pending.add(async move { (work.on_host(&taken).await, taken) });
        }
        let Some((ended, taken)) = pending.next().await else { break };
        match ended {
            Ok(done) => elements += done,
            Err((member, error)) if error.is_lost() => {
                work.common().lose(member, &error, Some(&taken))
            }
            Err((_, error)) => {
                work.common().queue.stop();
                failed = failed.or(Some(error));
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let spent = busy().since(&before);
    let busy_s = seconds(spent.busy_ns() + spent.all_compute_ns());
    let who = format!("host core {}", csd_reactor::core_id());
    work.common().ledger.add(Share { who, elements, busy_s }, true);
    Ok(())
}

/// Lets one worker of a member's drive take units, up to `most` and a `part`-th of the rest at a
/// time, while it `may_go_on`. `execute` returns the unit's elements, and its time if it took any.
pub(crate) async fn worker<W: Work>(
    work: &W,
    member: usize,
    (part, most): (u32, u32),
    may_go_on: impl Fn() -> bool,
    mut execute: impl AsyncFnMut(&Taken) -> Result<(u64, Option<Span>), MemberError>,
) -> Result<Done, Error> {
    let mut done = Done::default();
    while may_go_on()
        && let Some(taken) = work.common().queue.take_for_drive(member, part, most)
    {
        match execute(&taken).await {
            Ok((elements, span)) => {
                done.elements += elements;
                done.spans.extend(span);
            }
            Err((of, error)) if error.is_lost() => {
                work.common().lose(of, &error, Some(&taken));
                // The rest is the host's, if it takes over.
                if work.common().takes_over {
                    break;
                }
            }
            // Damaged chunks are computed, and the drive goes on with others.
            Err((
                of,
                error @ Error::Store(csd_store::Error::Drive(
                    csd_store::error::DriveError::Corrupt { .. },
                )),
            )) if !work.common().pieces.is_empty() => {
                work.common().give_to_host(of, &error, Some(&taken));
            }
            Err((_, error)) => {
                work.common().queue.stop();
                return Err(error);
            }
        }
    }
    Ok(done)
}

/// Waits for the workers of a drive.
pub(crate) async fn together(mut workers: Team<Result<Done, Error>>) -> Result<Done, Error> {
    let (mut all, mut failed) = (Done::default(), None);
    while let Some(ended) = workers.next().await {
        match ended {
            Ok(done) => {
                all.elements += done.elements;
                all.spans.extend(done.spans);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(all), Err)
}

/// Returns the seconds covered by at least one of the spans.
fn covered_s(mut spans: Vec<Span>) -> f64 {
    spans.sort();
    let (mut covered_ns, mut until) = (0, Instant::ZERO);
    for (begin, end) in spans {
        let begin = begin.max(until);
        covered_ns += end.ns().saturating_sub(begin.ns());
        until = until.max(end);
    }
    seconds(covered_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_work_counts_once() {
        let at = Instant::from_ns;
        let second = 1_000_000_000;
        let spans = vec![
            (at(4 * second), at(5 * second)),
            (at(second), at(3 * second)),
            (at(2 * second), at(3 * second)),
        ];
        assert!((covered_s(spans) - 3.0).abs() < 1e-9);
        assert!(covered_s(Vec::new()).abs() < 1e-9);
    }
}
