//! History of the hosts' questions and answers, and the rules that it must keep.
//!
//! Every put has bytes of its own, so an answer names the put that it comes from. A change is
//! *definite* if its host got the answer that it succeeded. A change whose host got an error, or
//! crashed, may have happened, at any time until a definite change that began after its end.

use std::collections::BTreeSet;

use crate::words::words;

/// Identifier of a put, and of its bytes.
pub type Content = u64;

/// Bytes of a chunk of the lane's objects: two pages, so that chunks have page lists.
pub const CHUNK_BYTES: u64 = 8192;

/// A question of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Put(Content),
    Remove,
    /// Parity for the object, which changes its entry and no byte.
    Protect,
    /// Lost pieces made again, which changes no byte either.
    Repair,
    /// All pieces copied to other drives; no byte changes.
    Rebalance,
    Get,
}

/// Its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The put or remove succeeded.
    Done,
    /// The object exists: a put was refused, or a protect of what is protected.
    Exists,
    /// There is no such object.
    Missing,
    /// The object's bytes.
    Bytes(Content),
    /// An error; or nothing, because the host crashed.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub host: usize,
    pub name: usize,
    pub ask: Ask,
    pub from_ns: u64,
    /// End, and the answer; none while it runs.
    pub end: Option<(u64, Told)>,
}

#[derive(Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    /// Violations that were seen at once, such as wrong bytes.
    pub violations: Vec<String>,
    contents: u64,
}

/// Returns the bytes of a put.
pub fn bytes_of(content: Content) -> Vec<u8> {
    let chunks = 1 + content % 9;
    let length = usize::try_from(chunks * CHUNK_BYTES - content % 100 * 8).unwrap();
    words(content << 20, length)
}

impl History {
    pub fn begin(&mut self, host: usize, name: usize, ask: Ask, now_ns: u64) -> usize {
        self.operations.push(Operation { host, name, ask, from_ns: now_ns, end: None });
        self.operations.len() - 1
    }

    pub fn end(&mut self, operation: usize, now_ns: u64, told: Told) {
        self.operations[operation].end = Some((now_ns, told));
    }

    /// Ends the operations of a host that crashed.
    pub fn crashed(&mut self, host: usize, now_ns: u64) {
        let open = |operation: &&mut Operation| operation.host == host && operation.end.is_none();
        for operation in self.operations.iter_mut().filter(open) {
            operation.end = Some((now_ns, Told::Unknown));
        }
    }

    /// Returns true while a host changes a name.
    pub fn is_changing(&self, host: usize) -> bool {
        let is_open = |operation: &Operation| operation.end.is_none() && operation.ask != Ask::Get;
        let last = self.operations.iter().rev().find(|operation| operation.host == host);
        last.is_some_and(is_open)
    }

    pub fn new_content(&mut self) -> Content {
        self.contents += 1;
        self.contents
    }

    /// Checks bytes that reached a reader: all of a put, or its beginning before an error. Returns
    /// the put.
    pub fn recognise(&mut self, found: &[u8], is_whole: bool) -> Content {
        let Some(word) = found.first_chunk() else { return 0 };
        let content = u64::from_le_bytes(*word) >> 20;
        let expected = bytes_of(content);
        if !expected.starts_with(found) || (is_whole && expected.len() != found.len()) {
            self.violations.push(format!("{} wrong bytes of put {content}", found.len()));
        }
        content
    }

    /// Returns everything that contradicts the rules.
    pub fn check(&self, names: usize) -> Vec<String> {
        let mut found = self.violations.clone();
        for name in 0..names {
            let of_name = |operation: &&Operation| operation.name == name;
            let operations: Vec<&Operation> = self.operations.iter().filter(of_name).collect();
            for operation in &operations {
                found.extend(contradiction(operation, &operations));
            }
        }
        found
    }

    /// Returns true if the last change of a name is definite, and no other one ran at that time.
    pub fn is_settled(&self, name: usize) -> bool {
        let is_change = |operation: &&Operation| {
            let refused = matches!(operation.end, Some((_, Told::Exists | Told::Missing)));
            operation.name == name && operation.ask != Ask::Get && !refused
        };
        let changes = || self.operations.iter().filter(is_change);
        let Some(last) = changes().max_by_key(|change| change.from_ns) else { return false };
        let is_before = |change: &Operation| {
            change.from_ns == last.from_ns
                || change.end.is_some_and(|(end_ns, _)| end_ns <= last.from_ns)
        };
        last.end.is_some_and(|(_, told)| told == Told::Done) && changes().all(is_before)
    }

    /// Returns the number of operations that ended without an error.
    pub fn answered(&self) -> usize {
        let told =
            |operation: &&Operation| operation.end.is_some_and(|(_, told)| told != Told::Unknown);
        self.operations.iter().filter(told).count()
    }
}

/// States that an operation may have found: of the name, `None` for no object.
fn possible(operation: &Operation, all: &[&Operation]) -> BTreeSet<Option<Content>> {
    let end_ns = operation.end.map_or(u64::MAX, |(end_ns, _)| end_ns);
    let ended = |change: &Operation| change.end.map_or(u64::MAX, |(end_ns, _)| end_ns);
    let is_change = |other: &&&Operation| {
        let (end, ask) = (other.end.map(|(_, told)| told), other.ask);
        let is_other = !std::ptr::eq(**other, operation);
        is_other
            && matches!(ask, Ask::Put(_) | Ask::Remove)
            && !matches!(end, Some(Told::Exists | Told::Missing))
    };
    let changes: Vec<&Operation> =
        all.iter().filter(is_change).filter(|other| other.from_ns < end_ns).copied().collect();
    let definite: Vec<&Operation> = changes
        .iter()
        .filter(|change| change.end.is_some_and(|(_, told)| told == Told::Done))
        .filter(|change| ended(change) <= operation.from_ns)
        .copied()
        .collect();
    let superseded = |at_ns: u64| definite.iter().any(|later| at_ns <= later.from_ns);
    let mut states = BTreeSet::new();
    if definite.is_empty() {
        states.insert(None);
    }
    for change in changes.iter().filter(|change| !superseded(ended(change))) {
        states.insert(match change.ask {
            Ask::Put(content) => Some(content),
            _ => None,
        });
        // A put begins where there is no object, and an unknown one may have got no further.
        if matches!(change.ask, Ask::Put(_)) && !definite.iter().any(|d| std::ptr::eq(*d, *change))
        {
            states.insert(None);
        }
    }
    states
}

fn contradiction(operation: &Operation, all: &[&Operation]) -> Option<String> {
    let (_, told) = operation.end?;
    let states = possible(operation, all);
    let is_right = match (operation.ask, told) {
        (_, Told::Unknown) => true,
        (Ask::Put(_), Told::Done) | (_, Told::Missing) => states.contains(&None),
        // A remove may have found what an unfinished put or remove left.
        (Ask::Remove, Told::Done) => true,
        (Ask::Protect | Ask::Repair | Ask::Rebalance, Told::Done) => {
            states.iter().any(Option::is_some)
        }
        (_, Told::Exists) => states.iter().any(Option::is_some),
        (_, Told::Bytes(content)) => states.contains(&Some(content)),
        (Ask::Get, Told::Done) => unreachable!("a get returns bytes"),
    };
    (!is_right).then(|| format!("{operation:?}: the name can only have been {states:?}"))
}

#[test]
fn the_checker_sees_lost_returned_and_foreign_objects() {
    let mut history = History::default();
    let mut at_ns = 0;
    let mut told = |history: &mut History, ask, told| {
        at_ns += 10;
        let operation = history.begin(0, 0, ask, at_ns);
        history.end(operation, at_ns + 5, told);
        history.check(1).len()
    };
    assert_eq!(told(&mut history, Ask::Get, Told::Missing), 0);
    assert_eq!(told(&mut history, Ask::Put(1), Told::Done), 0);
    assert_eq!(told(&mut history, Ask::Get, Told::Bytes(1)), 0);
    assert_eq!(told(&mut history, Ask::Get, Told::Missing), 1, "it is lost");
    assert_eq!(told(&mut history, Ask::Put(2), Told::Done), 2, "over an object");
    let mut history = History::default();
    assert_eq!(told(&mut history, Ask::Put(1), Told::Unknown), 0);
    assert_eq!(told(&mut history, Ask::Get, Told::Missing), 0);
    assert_eq!(told(&mut history, Ask::Get, Told::Bytes(1)), 0);
    assert_eq!(told(&mut history, Ask::Get, Told::Bytes(7)), 1, "of no put");
    assert_eq!(told(&mut history, Ask::Remove, Told::Done), 1);
    assert_eq!(told(&mut history, Ask::Get, Told::Bytes(1)), 2, "it has returned");
    assert_eq!(told(&mut history, Ask::Put(2), Told::Exists), 3, "it has returned");
}
