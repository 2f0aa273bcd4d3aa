//! The checker of a volatile cache: the changes of all hosts in the order of their answers. It
//! knows nothing of the drive.
//!
//! After a power cut each key has one of its states. A change *survives* if its key has its state,
//! or that of a later change. Of two changes the later survives only with the earlier, if both were
//! answered on one connection, or if the earlier was answered before the later was sent, on any.

use std::collections::BTreeMap;

use crate::model::State;

#[derive(Debug)]
struct Change {
    key: u64,
    /// Number among the changes of its key, from 1 on.
    number: usize,
    state: State,
    connection: Option<usize>,
    sent: u64,
    answered: Option<u64>,
}

/// The changes since the last check. Each key has one writer, which waits for its answers.
#[derive(Debug, Default)]
pub struct Order {
    time: u64,
    changes: Vec<Change>,
    /// States that the last check has found.
    base: BTreeMap<u64, State>,
    /// Number of changes of each key, and of those that are durable.
    counts: BTreeMap<u64, (usize, usize)>,
    /// Changes that were answered, and lost with an allowed end of the order.
    pub lost: u64,
    /// Changes that were answered, and found.
    pub kept: u64,
}

impl Order {
    /// Returns the time, which rises with each call.
    pub fn now(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    /// Notes that a change is sent. Answers have no order without a connection.
    pub fn sent(&mut self, key: u64, state: State, connection: Option<usize>) -> usize {
        let sent = self.now();
        let count = &mut self.counts.entry(key).or_default().0;
        *count += 1;
        let number = *count;
        self.changes.push(Change { key, number, state, connection, sent, answered: None });
        self.changes.len() - 1
    }

    /// Notes that a change was answered with success.
    pub fn answered(&mut self, change: usize) {
        self.changes[change].answered = Some(self.now());
    }

    /// Notes that a change is durable.
    pub fn durable(&mut self, change: usize) {
        let change = &self.changes[change];
        let durable = &mut self.counts.get_mut(&change.key).expect("counted").1;
        *durable = change.number.max(*durable);
    }

    /// Notes that changes which were answered before this time are durable.
    pub fn flushed(&mut self, before: u64) {
        for change in 0..self.changes.len() {
            if self.changes[change].answered.is_some_and(|at| at < before) {
                self.durable(change);
            }
        }
    }

    /// Returns every key with a state.
    pub fn keys(&self) -> Vec<u64> {
        self.base.keys().chain(self.counts.keys()).copied().collect()
    }

    /// Returns the state of a key after its first `number` changes.
    fn state(&self, key: u64, number: usize) -> State {
        if number == 0 {
            return self.base.get(&key).cloned().flatten();
        }
        let of_key = |change: &&Change| (change.key, change.number) == (key, number);
        self.changes.iter().find(of_key).expect("counted").state.clone()
    }

    /// Returns the least number of changes of a key, at least `least`, after which it has this
    /// state.
    fn least(&self, key: u64, least: usize, found: &State) -> Option<usize> {
        let count = self.counts.get(&key).map_or(0, |counts| counts.0);
        (least..=count).find(|number| self.state(key, *number) == *found)
    }

    /// Checks the states that a host finds after a cut, and begins again with them.
    pub fn check(&mut self, found: &BTreeMap<u64, State>) -> Result<(), String> {
        let mut kept = BTreeMap::new();
        for key in self.keys() {
            let (count, durable) = self.counts.get(&key).copied().unwrap_or_default();
            let state = found.get(&key).cloned().flatten();
            let Some(least) = self.least(key, 0, &state) else {
                return Err(format!("key {key}: found a state that was never written"));
            };
            if self.least(key, durable, &state).is_none() {
                return Err(format!(
                    "key {key}: found change {least} of {count}, and {durable} were durable"
                ));
            }
            // Changes behind it with the same state, such as Deletes of an absent key, prove
            // nothing.
            kept.insert(key, (least, state));
        }
        // More changes must have survived if later ones have.
        loop {
            let survives = |change: &&Change| change.number <= kept[&change.key].0;
            let last = self.changes.iter().filter(survives).map(|change| change.sent).max();
            let mut answers: BTreeMap<usize, u64> = BTreeMap::new();
            for change in self.changes.iter().filter(survives) {
                if let (Some(connection), Some(at)) = (change.connection, change.answered) {
                    let last = answers.entry(connection).or_default();
                    *last = at.max(*last);
                }
            }
            let must = |change: &&Change| {
                let of_connection = change.connection.and_then(|number| answers.get(&number));
                let before = [last.as_ref(), of_connection].into_iter().flatten();
                change.answered.is_some_and(|at| before.clone().any(|later| at < *later))
            };
            let missing = self.changes.iter().find(|it| must(it) && !survives(it));
            let Some(change) = missing else { break };
            let state = kept[&change.key].1.clone();
            let Some(more) = self.least(change.key, change.number, &state) else {
                let (key, number) = (change.key, change.number);
                return Err(format!(
                    "key {key}: change {number} is lost, and a later one is there"
                ));
            };
            kept.insert(change.key, (more, state));
        }
        for change in self.changes.iter().filter(|change| change.answered.is_some()) {
            let survives = change.number <= kept[&change.key].0;
            *(if survives { &mut self.kept } else { &mut self.lost }) += 1;
        }
        self.base = kept.into_iter().map(|(key, (_, state))| (key, state)).collect();
        self.changes.clear();
        self.counts.clear();
        Ok(())
    }
}

#[test]
fn the_checker_of_orders_can_fail() {
    let some = |byte| Some(vec![byte]);
    let found = |one, other| BTreeMap::from([(1, one), (2, other)]);
    let order = |flush| {
        let mut order = Order::default();
        let first = order.sent(1, some(1), Some(0));
        order.answered(first);
        if flush {
            let now = order.now();
            order.flushed(now);
        }
        let second = order.sent(2, some(2), Some(1));
        order.answered(second);
        order
    };
    assert!(order(false).check(&found(None, None)).is_ok());
    assert!(order(false).check(&found(some(1), None)).is_ok());
    assert!(order(false).check(&found(some(1), some(2))).is_ok());
    assert!(order(false).check(&found(None, some(2))).is_err(), "sent after the answer");
    assert!(order(false).check(&found(some(3), None)).is_err(), "never written");
    assert!(order(true).check(&found(None, None)).is_err(), "flushed");
    // Both are sent before either is answered.
    let both = |connections: [Option<usize>; 2]| {
        let mut order = Order::default();
        let one = order.sent(1, some(1), connections[0]);
        let other = order.sent(2, some(2), connections[1]);
        order.answered(other);
        order.answered(one);
        order
    };
    assert!(both([Some(0), Some(0)]).check(&found(some(1), None)).is_err(), "one connection");
    assert!(both([Some(0), Some(1)]).check(&found(some(1), None)).is_ok());
    assert!(both([None, None]).check(&found(some(1), None)).is_ok());
    let mut again = order(false);
    again.check(&found(some(1), None)).unwrap();
    assert!(again.check(&found(None, None)).is_err(), "it is not lost later");
}
