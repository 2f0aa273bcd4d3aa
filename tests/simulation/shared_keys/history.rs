//! The history of all keys of a run, and counts of what the run met.

use std::cell::RefCell;
use std::rc::Rc;

use csd_kvlog::media::Losses;

use super::failing::Failing;
use super::linear::{self, Ask, Content, EMPTY, Operation, Told};
use super::{CONNECTIONS, KEYS};
use crate::Lived;
use crate::injected::Injections;

/// Numbers of kinds that a run met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) operations: u64,
    /// Changes that began while another host changed the same key.
    pub(super) racing_changes: u64,
    /// Reads that began while another host changed the same key, and the other way round.
    pub(super) racing_reads: u64,
    /// Conditional stores that were refused: the key exists, is missing, has a newer value.
    pub(super) refused: [u64; 3],
    /// Changes without an answer, and those of them whose value was read.
    pub(super) lost_answers: u64,
    pub(super) lost_and_read: u64,
    /// Commands that ended in an error of the disk: changes, reads, and lists for each key.
    pub(super) failed_changes: u64,
    pub(super) failed_reads: u64,
    pub(super) lost_connections: u64,
    pub(super) cuts: u64,
    pub(super) cuts_in_recovery: u64,
    /// Sectors and writes in all of them.
    pub(super) losses: Losses,
    /// Faults of the disk while the drive ran.
    pub(super) injections: Injections,
    pub(super) lived: Lived,
}

impl Met {
    pub(super) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.racing_changes += other.racing_changes;
        self.racing_reads += other.racing_reads;
        for (count, more) in self.refused.iter_mut().zip(other.refused) {
            *count += more;
        }
        self.lost_answers += other.lost_answers;
        self.lost_and_read += other.lost_and_read;
        self.failed_changes += other.failed_changes;
        self.failed_reads += other.failed_reads;
        self.lost_connections += other.lost_connections;
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.losses.add(other.losses);
        self.injections.add(other.injections);
        self.lived.add(other.lived);
    }
}

/// An operation on a key. Its end is `u64::MAX` while it may still take place.
struct Noted {
    key: usize,
    connection: usize,
    operation: Operation,
}

/// The history of all keys, which the hosts and the lane share.
#[derive(Default)]
pub(super) struct History {
    noted: Vec<Noted>,
    /// Number of events so far. The world runs one task at a time, so their order is the order of
    /// the virtual time, and also orders what happens at one time.
    events: u64,
    contents: Content,
    /// True to store values so long that the log must be cleaned.
    pub(super) is_heavy: bool,
    /// Faults of the disk, in a run in which it has some.
    pub(super) failing: Option<Failing>,
    pub(super) met: Met,
    pub(super) failure: Option<String>,
    pub(super) is_over: bool,
}

pub(super) type Shared = Rc<RefCell<History>>;

impl History {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(super) fn begin(&mut self, connection: usize, key: usize, ask: Ask) -> usize {
        let (host, from) = (connection / CONNECTIONS, self.event());
        let runs = |it: &&Noted| it.key == key && it.operation.end == u64::MAX;
        let others = self.noted.iter().filter(runs).filter(|it| it.operation.host != host);
        let (mut changes, mut reads) = (false, false);
        for other in others {
            *(if other.operation.ask.is_change() { &mut changes } else { &mut reads }) = true;
        }
        self.met.racing_changes += u64::from(changes && ask.is_change());
        self.met.racing_reads += u64::from(if ask.is_change() { reads } else { changes });
        let operation = Operation { host, ask, from, end: u64::MAX, told: Told::Nothing };
        self.noted.push(Noted { key, connection, operation });
        self.noted.len() - 1
    }

    pub(super) fn answered(&mut self, number: usize, told: Told) {
        let event = self.event();
        let operation = &mut self.noted[number].operation;
        operation.told = told;
        // An answer that arrives after a power cut is about something before it.
        operation.end = operation.end.min(event);
        self.met.operations += 1;
        if matches!(operation.ask, Ask::Store(..)) {
            let kinds = [Told::Exists, Told::Missing, Told::NotNewer];
            for (count, kind) in self.met.refused.iter_mut().zip(kinds) {
                *count += u64::from(told == kind);
            }
        }
    }

    /// Notes that the disk failed. A change has taken place by now, or it never does: until the
    /// drive knows which, it refuses to say what is there.
    pub(super) fn failed(&mut self, number: usize) {
        let event = self.event();
        let operation = &mut self.noted[number].operation;
        operation.end = operation.end.min(event);
        let is_change = operation.ask.is_change();
        let Met { failed_changes, failed_reads, .. } = &mut self.met;
        *(if is_change { failed_changes } else { failed_reads }) += 1;
    }

    /// Notes that nothing that was asked so far takes place any more: on one connection, or on all.
    pub(super) fn dropped(&mut self, connection: Option<usize>) {
        let event = self.event();
        let is_of = |it: &&mut Noted| connection.is_none_or(|number| it.connection == number);
        for it in self.noted.iter_mut().filter(is_of) {
            it.operation.end = it.operation.end.min(event);
        }
    }

    pub(super) fn new_content(&mut self) -> Content {
        self.contents += 1;
        self.contents
    }

    /// Checks each key, and counts changes whose answer was lost.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        for key in 0..KEYS {
            let of_key = self.noted.iter().filter(|it| it.key == key);
            let operations: Vec<Operation> = of_key.map(|it| it.operation).collect();
            linear::check(&operations).map_err(|why| format!("key {key}: {why}"))?;
            let told = |told| operations.iter().any(|operation| operation.told == told);
            let is_lost = |it: &&Operation| it.told == Told::Nothing && it.ask.is_change();
            for operation in operations.iter().filter(is_lost) {
                self.met.lost_answers += 1;
                let Ask::Store(_, content) = operation.ask else { continue };
                self.met.lost_and_read += u64::from(content != EMPTY && told(Told::Value(content)));
            }
        }
        Ok(())
    }
}
