//! The checker of linearisability: the history of one key, whose operations of several hosts run at
//! the same time. It knows nothing of the drive.
//!
//! A history is linearisable if each operation can be given one moment between its beginning and
//! its end so that the operations, one after the other at these moments, answer as the hosts were
//! answered. An operation without an answer took place at one moment before its end, or never. The
//! search is that of Wing and Gong with the states met so far kept once (Lowe): it walks along the
//! history and keeps every pair of a state and a set of running operations that have taken place.

use std::collections::BTreeSet;

/// Identifier of a value's bytes; [`EMPTY`] is the value of no bytes.
pub type Content = u64;

pub const EMPTY: Content = 0;

/// Content under the key; `None`: it does not exist.
pub type State = Option<Content>;

/// Condition of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    Absent,
    Exists,
    /// Store Newer: its version is higher than that of the value there.
    Newer,
}

/// A question of a host about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Store(When, Content),
    Delete,
    Retrieve,
    /// Exist, or List: if the key exists.
    Exist,
}

/// Its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Done,
    Exists,
    Missing,
    NotNewer,
    Value(Content),
    /// None: the connection or the drive was gone.
    Nothing,
}

/// An operation. Its beginning and end are numbers of the events of the run in their order.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub host: usize,
    pub ask: Ask,
    pub from: u64,
    pub end: u64,
    pub told: Told,
}

impl Ask {
    pub fn is_change(self) -> bool {
        matches!(self, Self::Store(..) | Self::Delete)
    }

    /// Returns the answer to the question in a state, and the state after it.
    fn take_place(self, state: State) -> (Told, State) {
        let may_store = |when, content| match (when, state) {
            (When::Always, _) | (When::Absent | When::Newer, None) | (When::Exists, Some(_)) => {
                Told::Done
            }
            (When::Absent, Some(_)) => Told::Exists,
            (When::Exists, None) => Told::Missing,
            (When::Newer, Some(old)) if old == content => Told::Done,
            (When::Newer, Some(old)) if has_version(old) && old < content => Told::Done,
            (When::Newer, Some(_)) => Told::NotNewer,
        };
        match self {
            Self::Store(when, content) => match may_store(when, content) {
                Told::Done => (Told::Done, Some(content)),
                refused => (refused, state),
            },
            Self::Delete => (Told::Done, None),
            Self::Retrieve => (state.map_or(Told::Missing, Told::Value), state),
            Self::Exist if state.is_some() => (Told::Exists, state),
            Self::Exist => (Told::Missing, state),
        }
    }
}

/// Returns true if a value has a version for Store Newer: a higher content has a higher one.
pub fn has_version(content: Content) -> bool {
    !content.is_multiple_of(8)
}

/// A state, and the running operations that have taken place: a bit for each, by its slot.
type Met = BTreeSet<(State, u64)>;

/// Operations that run, by slot.
type Running<'a> = [Option<&'a Operation>; 64];

/// Adds to `met` all that running operations can make of it.
fn take_places(met: &mut Met, running: &Running<'_>) {
    let mut left: Vec<_> = met.iter().copied().collect();
    while let Some((state, done)) = left.pop() {
        for (slot, operation) in running.iter().enumerate() {
            let Some(operation) = operation.filter(|_| done >> slot & 1 == 0) else { continue };
            let (told, after) = operation.ask.take_place(state);
            let is_right = operation.told == told || operation.told == Told::Nothing;
            let next = (after, done | 1 << slot);
            if is_right && met.insert(next) {
                left.push(next);
            }
        }
    }
}

/// Checks the history of a key that does not exist at first. Returns the number of pairs met.
///
/// # Errors
/// The first operation that no order of all can answer, in words.
pub fn check(operations: &[Operation]) -> Result<usize, String> {
    // A question without an answer that changes nothing says nothing.
    let says =
        |operation: &&Operation| operation.told != Told::Nothing || operation.ask.is_change();
    let of_note: Vec<&Operation> = operations.iter().filter(says).collect();
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (number, operation) in of_note.iter().enumerate() {
        // At one time a beginning comes before an end.
        events.push((operation.from, false, number));
        events.push((operation.end, true, number));
    }
    events.sort_unstable();
    let mut running: Running<'_> = [None; 64];
    let mut slots = vec![0; of_note.len()];
    let (mut met, mut pairs) = (Met::from([(None, 0)]), 0);
    for (_, is_end, number) in events {
        let operation = of_note[number];
        if !is_end {
            let free = running.iter().position(Option::is_none).expect("fewer than 64 at a time");
            (slots[number], running[free]) = (free, Some(operation));
            continue;
        }
        let before: BTreeSet<State> = met.iter().map(|(state, _)| *state).collect();
        take_places(&mut met, &running);
        pairs += met.len();
        let bit = 1 << slots[number];
        running[slots[number]] = None;
        let stays = |done: u64| done & bit != 0 || operation.told == Told::Nothing;
        met =
            met.into_iter().filter(|(_, done)| stays(*done)).map(|(s, d)| (s, d & !bit)).collect();
        if met.is_empty() {
            let others: Vec<_> = running.iter().flatten().collect();
            return Err(format!(
                "no order of the operations has {operation:?}: the state was one of {before:?}, \
                 next to it ran {others:?}"
            ));
        }
    }
    Ok(pairs)
}

/// Returns an operation of a host from one event to another.
#[cfg(test)]
fn ran(host: usize, from: u64, end: u64, ask: Ask, told: Told) -> Operation {
    Operation { host, ask, from, end, told }
}

#[test]
fn histories_one_after_the_other_are_those_of_a_map() {
    let store = |when, content| Ask::Store(when, content);
    let steps = [
        (Ask::Exist, Told::Missing),
        (store(When::Exists, 1), Told::Missing),
        (store(When::Absent, 2), Told::Done),
        (store(When::Absent, 3), Told::Exists),
        (Ask::Retrieve, Told::Value(2)),
        (store(When::Newer, 1), Told::NotNewer),
        (store(When::Newer, 2), Told::Done),
        (store(When::Newer, 5), Told::Done),
        (store(When::Exists, EMPTY), Told::Done),
        (store(When::Newer, 6), Told::NotNewer),
        (Ask::Retrieve, Told::Value(EMPTY)),
        (Ask::Exist, Told::Exists),
        (Ask::Delete, Told::Done),
        (Ask::Delete, Told::Done),
        (Ask::Retrieve, Told::Missing),
        (store(When::Newer, 4), Told::Done),
        (Ask::Retrieve, Told::Value(4)),
    ];
    let told = |steps: &[(Ask, Told)]| -> Vec<Operation> {
        let at = |number| 10 * number as u64;
        let steps = steps.iter().enumerate();
        steps.map(|(number, (ask, told))| ran(0, at(number), at(number) + 5, *ask, *told)).collect()
    };
    assert!(check(&told(&steps)).is_ok());
    // Any other answer to any of them contradicts those before it or behind it.
    for number in 0..steps.len() {
        for other in [Told::Done, Told::Exists, Told::Missing, Told::NotNewer, Told::Value(9)] {
            let mut wrong = steps;
            wrong[number].1 = other;
            assert_eq!(
                check(&told(&wrong)).is_ok(),
                steps[number].1 == other,
                "{:?}",
                wrong[number]
            );
        }
    }
}

#[test]
fn races_have_every_order_and_no_other_outcome() {
    let put = |content| Ask::Store(When::Always, content);
    // Two stores at the same time: either may be the last one, and it stays the last one.
    let race = |found: [Content; 2]| {
        check(&[
            ran(0, 0, 10, put(1), Told::Done),
            ran(1, 5, 15, put(2), Told::Done),
            ran(2, 20, 25, Ask::Retrieve, Told::Value(found[0])),
            ran(0, 30, 35, Ask::Retrieve, Told::Value(found[1])),
        ])
    };
    assert!(race([1, 1]).is_ok() && race([2, 2]).is_ok());
    assert!(race([1, 2]).is_err() && race([2, 1]).is_err(), "it goes back");
    assert!(race([3, 3]).is_err(), "nobody stored it");
    // A read during a store may find the value before it, but not after another has found it.
    let during = |first, second| {
        check(&[
            ran(0, 0, 1, put(1), Told::Done),
            ran(0, 2, 50, put(2), Told::Done),
            ran(1, 10, 20, Ask::Retrieve, Told::Value(first)),
            ran(2, 30, 40, Ask::Retrieve, Told::Value(second)),
        ])
    };
    assert!(during(1, 1).is_ok() && during(1, 2).is_ok() && during(2, 2).is_ok());
    assert!(during(2, 1).is_err(), "a stale read");
    // Of two conditional stores at the same time one succeeds.
    let conditional = |told: [Told; 2]| {
        let absent = |content| Ask::Store(When::Absent, content);
        check(&[ran(0, 0, 10, absent(1), told[0]), ran(1, 5, 15, absent(2), told[1])])
    };
    assert!(conditional([Told::Done, Told::Exists]).is_ok());
    assert!(conditional([Told::Exists, Told::Done]).is_ok());
    assert!(conditional([Told::Done, Told::Done]).is_err(), "both succeed");
    assert!(conditional([Told::Exists, Told::Exists]).is_err(), "neither does");
}

#[test]
fn lost_updates_and_resurrections_are_refused() {
    let put = |content| Ask::Store(When::Always, content);
    let lost = [
        ran(0, 0, 1, put(1), Told::Done),
        ran(1, 2, 3, put(2), Told::Done),
        ran(2, 4, 5, Ask::Retrieve, Told::Value(1)),
    ];
    assert!(check(&lost).unwrap_err().contains("Value(1)"), "a lost update");
    let returned = |end| {
        check(&[
            ran(0, 0, 1, put(1), Told::Done),
            ran(1, 2, end, Ask::Delete, Told::Done),
            ran(2, 4, 5, Ask::Exist, Told::Exists),
        ])
    };
    assert!(returned(3).is_err(), "a resurrection");
    assert!(returned(6).is_ok(), "it was not deleted yet");
}

#[test]
fn an_operation_without_an_answer_takes_place_once_before_its_end_or_never() {
    let put = |content| Ask::Store(When::Always, content);
    let history = |end, found: [Told; 2]| {
        check(&[
            ran(0, 0, 1, put(1), Told::Done),
            ran(0, 2, end, put(2), Told::Nothing),
            ran(1, 10, 11, Ask::Retrieve, found[0]),
            ran(1, 20, 21, Ask::Retrieve, found[1]),
        ])
    };
    let (old, new) = (Told::Value(1), Told::Value(2));
    assert!(history(5, [old, old]).is_ok() && history(5, [new, new]).is_ok());
    assert!(history(5, [old, new]).is_err(), "after its end");
    assert!(history(15, [old, new]).is_ok(), "before its end");
    assert!(history(u64::MAX, [old, new]).is_ok());
    assert!(history(u64::MAX, [new, old]).is_err(), "it is undone");
    let twice = [
        ran(0, 0, 90, put(1), Told::Nothing),
        ran(1, 10, 11, Ask::Retrieve, Told::Value(1)),
        ran(1, 20, 21, Ask::Delete, Told::Done),
        ran(1, 30, 31, Ask::Retrieve, Told::Value(1)),
    ];
    assert!(check(&twice).is_err(), "it takes place twice");
    // What a read has found before a power cut is there after it.
    assert!(history(12, [new, old]).is_err());
}
