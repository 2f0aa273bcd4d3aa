//! [`StepContext`]: state shared by the workers of one core during a step of a run, and [`Losses`]:
//! the drives that the run lost.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::link::Link;
use super::queue::Queue;
use super::target::Target;
use super::{Error, Job, Mode};
use crate::layout::Run;
use crate::object::Progress;

/// State shared by the workers of one core during a step.
pub(super) struct StepContext {
    pub(super) job: Arc<Job>,
    pub(super) mode: Mode,
    pub(super) drive_cores: u16,
    pub(super) queue: Arc<Queue>,
    /// Links to the drives, by member.
    pub(super) links: Rc<Vec<Link>>,
    pub(super) target: Target,
    /// Vector that every unit reads, little-endian; empty if there is none.
    pub(super) vector: Arc<Vec<u8>>,
    /// Holder of the lease of the drives' memory: a number unique to the run; 0 if the run needs no
    /// memory.
    pub(super) holder: u64,
    pub(super) progress: Progress,
    pub(super) losses: Arc<Losses>,
}

impl StepContext {
    /// Records that a member's drive is lost while it worked on `at`, and removes its other units
    /// from the queue.
    pub(super) fn lose(&self, member: usize, error: &Error, at: Option<Run>) {
        self.losses.add(&self.queue, member, error, at);
    }
}

/// Drives that a run has lost.
#[derive(Default)]
pub(super) struct Losses(Mutex<Vec<Loss>>);

struct Loss {
    member: usize,
    why: String,
    runs: Vec<Run>,
}

impl Losses {
    /// Returns true if a drive was lost.
    pub(super) fn any(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Records that a member's drive is lost while it worked on `at`, and removes its other units
    /// from the queue.
    pub(super) fn add(&self, queue: &Queue, member: usize, error: &Error, at: Option<Run>) {
        let mut runs = queue.abandon(member);
        runs.extend(at);
        let why = error.to_string();
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match losses.iter_mut().find(|loss| loss.member == member) {
            Some(loss) => loss.runs.extend(runs),
            None => losses.push(Loss { member, why, runs }),
        }
    }

    /// Returns a description of the missing work, if any; `unit` names its units.
    pub(super) fn partial(
        &self,
        unit: &'static str,
        done_bytes: u64,
        all_bytes: u64,
    ) -> Option<Partial> {
        let losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = losses.iter().map(|loss| {
            let mut runs = loss.runs.clone();
            runs.sort_by_key(|run| run.first);
            let count = runs.iter().map(|run| u64::from(run.locals.end - run.locals.start)).sum();
            let each = runs.iter().flat_map(|run| {
                (0..run.locals.end - run.locals.start).map(|step| run.first + step * run.stride)
            });
            let shown: Vec<String> = each.take(SHOWN).map(|unit| unit.to_string()).collect();
            let more = if count > SHOWN as u64 { ", ..." } else { "" };
            Missing { why: loss.why.clone(), count, units: shown.join(", ") + more }
        });
        let missing: Vec<_> = missing.collect();
        (!missing.is_empty()).then_some(Partial { unit, missing, done_bytes, all_bytes })
    }
}

/// Most numbers of missing units in a message.
const SHOWN: usize = 8;

/// Missing work of a run that lost drives and therefore has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Partial {
    unit: &'static str,
    missing: Vec<Missing>,
    /// Bytes of inputs that were processed.
    pub done_bytes: u64,
    /// Bytes of inputs in total.
    pub all_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Missing {
    why: String,
    count: u64,
    units: String,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100 * u128::from(self.done_bytes) / u128::from(self.all_bytes.max(1));
        write!(f, "only {percent} % of the run was done, there is no answer: ")?;
        for Missing { why, count, units } in &self.missing {
            let (unit, s) = (self.unit, if *count == 1 { "" } else { "s" });
            if *count == 0 {
                write!(f, "{why}; ")?;
            } else {
                write!(f, "{why}, {count} {unit}{s} missing ({units}); ")?;
            }
        }
        f.write_str("objects have no copies: bring the drive back and run again")
    }
}
