//! [`Ledger`]: the work that the drives and cores of a run did, and the work that is missing
//! because drives were lost. Losses that cost no work are notes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_store::layout::Run;

use crate::{Error, Share};

/// Work of each drive and core of a run, and the drives that it has lost.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Shares by name, after true for a core of the host.
    shares: Mutex<BTreeMap<(bool, String), Share>>,
    losses: Mutex<Vec<Loss>>,
    /// Losses of which the host computes the chunks.
    notes: Mutex<Vec<Loss>>,
}

struct Loss {
    member: usize,
    drive: Option<String>,
    why: String,
    runs: Vec<Run>,
}

impl Loss {
    fn new(member: usize, error: &Error, runs: Vec<Run>) -> Self {
        let drive = error.drive().map(ToOwned::to_owned);
        Self { member, drive, why: error.to_string(), runs }
    }
}

impl Ledger {
    fn notes(&self) -> MutexGuard<'_, Vec<Loss>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn losses(&self) -> MutexGuard<'_, Vec<Loss>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the share of a drive, or of a core of the host.
    pub(crate) fn add(&self, share: Share, host: bool) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let Share { who, elements, busy_s } = share;
        let key = (host, who.clone());
        let share = shares.entry(key).or_insert(Share { who, elements: 0, busy_s: 0.0 });
        share.elements += elements;
        share.busy_s += busy_s;
    }

    /// Returns the shares, drives first.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.values().cloned().collect()
    }

    /// Returns true if work is missing because drives were lost.
    pub(crate) fn has_losses(&self) -> bool {
        !self.losses().is_empty()
    }

    /// Returns the reasons why the host computed chunks.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.notes().iter().map(|note| note.why.clone()).collect()
    }

    /// Records a loss of a member's drive that costs no work, unless there is one already.
    pub(crate) fn note(&self, member: usize, error: &Error) {
        let mut notes = self.notes();
        if !notes.iter().any(|note| note.member == member) {
            notes.push(Loss::new(member, error, Vec::new()));
        }
    }

    /// Records that a member's drive is lost, and the units that are missing therefore.
    pub(crate) fn lose(&self, member: usize, error: &Error, missing: Vec<Run>) {
        let mut losses = self.losses();
        match losses.iter_mut().find(|loss| loss.member == member) {
            Some(loss) => loss.runs.extend(missing),
            None => losses.push(Loss::new(member, error, missing)),
        }
    }

    /// Returns a description of the missing work, if any; `unit` names its units.
    pub(crate) fn partial(
        &self,
        unit: &'static str,
        done_bytes: u64,
        all_bytes: u64,
    ) -> Option<Partial> {
        let losses = self.losses();
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
        let lost = losses.iter().filter_map(|loss| Some((loss.drive.clone()?, loss.why.clone())));
        let partial = Partial { unit, lost: lost.collect(), missing, done_bytes, all_bytes };
        (!partial.missing.is_empty()).then_some(partial)
    }
}

/// Most numbers of missing units in a message.
const SHOWN: usize = 8;

/// Missing work of a run that lost drives and therefore has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Partial {
    unit: &'static str,
    /// Names of the lost drives, each with the reason.
    pub(crate) lost: Vec<(String, String)>,
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
