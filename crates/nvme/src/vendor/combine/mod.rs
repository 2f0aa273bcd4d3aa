//! The program `combine`: its task and its answers, version 1.
//!
//! A task names pieces to gather, factors, and locations for the sums: each target is a sum of
//! products of sources over GF(2^8). Pieces lie on the drive that executes the task or on its
//! peers, which are named and never addressed. A target on the executing drive may have guards: it
//! is stored only while certain values are there. The task is the only source of the execution, an
//! inline one. `docs/internals/contracts.md` lists the layout and golden files fix its bytes. This
//! is its only parser. Invariants: a task has 1 to [`SOURCES_MAX`] sources, 1 to [`TARGETS_MAX`]
//! targets, of which at most [`SUMS_MAX`] are no copies, pieces of 1 to [`PIECE_BYTES_MAX`] bytes,
//! and guards of targets on the executing drive only.

mod answers;
mod guard;
mod piece;

pub use answers::{Answers, Stored};
pub use guard::{GUARD_BYTES_MAX, Guard, GuardRecord};
pub use piece::{Piece, PieceRecord};

use crate::controller::connect::is_nqn;
use crate::vendor::execute::{Execution, Output, SourceData};
use crate::wire::layout;

/// Program identifier (PID).
pub const PROGRAM_ID: u64 = 9;
/// Name of the program.
pub const NAME: &str = "combine";
/// First four bytes of a task: "CSDT".
pub const MAGIC: u32 = u32::from_le_bytes(*b"CSDT");
/// Version of this layout.
pub const VERSION: u16 = 1;
/// Maximum sources of a task.
pub const SOURCES_MAX: usize = 32;
/// Maximum targets of a task.
pub const TARGETS_MAX: usize = 48;
/// Maximum targets of a task that are no copies of a source.
pub const SUMS_MAX: usize = 16;
/// Maximum peers that a task names.
pub const PEERS_MAX: usize = SOURCES_MAX + TARGETS_MAX;
/// Maximum guards of a task.
pub const GUARDS_MAX: usize = 8;
/// Maximum length of a piece, bytes.
pub const PIECE_BYTES_MAX: u32 = 16 << 20;

layout! {
    /// Header of a task.
    pub struct Header[16] {
        /// [`MAGIC`].
        magic / set_magic: u32 @ 0,
        /// [`VERSION`].
        version / set_version: u16 @ 4,
        /// Number of sources.
        sources / set_sources: u8 @ 6,
        /// Number of targets.
        targets / set_targets: u8 @ 7,
        /// Number of peers.
        peers / set_peers: u8 @ 8,
        /// Number of guards.
        guards / set_guards: u8 @ 9,
        /// Reserved, 0.
        reserved / set_reserved: [6] @ 10,
    }
}

/// Error in a task. The caller is at fault; the words go to the drive's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed task: {0}")]
pub struct Malformed(pub &'static str);

/// A target: a location, and the factor of every source in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Location of the sum. If it has a CRC-32C, another sum is not stored.
    pub piece: Piece,
    /// Factors by source, at least one of them not 0.
    pub factors: Vec<u8>,
}

impl Target {
    /// Returns the source of which this target is a copy.
    #[must_use]
    pub fn copied(&self, sources: &[Piece]) -> Option<usize> {
        let mut used = self.factors.iter().enumerate().filter(|(_, factor)| **factor != 0);
        let (source, factor) = used.next()?;
        let is_copy = *factor == 1 && sources.get(source)?.bytes == self.piece.bytes;
        (is_copy && used.next().is_none()).then_some(source)
    }
}

/// A checked task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Pieces to gather. A shorter one counts as padded with zeros to the longest.
    pub sources: Vec<Piece>,
    /// Sums to store.
    pub targets: Vec<Target>,
    /// Conditions under which targets on the executing drive are stored.
    pub guards: Vec<Guard>,
    /// NQNs of the peers; piece number i of [`Piece::peer`] is entry i - 1.
    pub peers: Vec<String>,
}

impl Task {
    /// Parses a task.
    ///
    /// # Errors
    /// [`Malformed`] with the reason; no bytes cause a panic.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let header = Header::parse(data).ok_or(Malformed("shorter than its header"))?;
        if header.magic() != MAGIC {
            return Err(Malformed("wrong magic number"));
        }
        if header.version() != VERSION {
            return Err(Malformed("version is not 1"));
        }
        if header.reserved() != [0; 6] {
            return Err(Malformed("reserved bytes of the header are not zero"));
        }
        let (sources, targets) = (usize::from(header.sources()), usize::from(header.targets()));
        if !(1..=SOURCES_MAX).contains(&sources) || !(1..=TARGETS_MAX).contains(&targets) {
            return Err(Malformed("not 1 to 32 sources and 1 to 48 targets"));
        }
        let peers = usize::from(header.peers());
        if peers > PEERS_MAX {
            return Err(Malformed("more than 80 peers"));
        }
        let guards = usize::from(header.guards());
        if guards > GUARDS_MAX {
            return Err(Malformed("more than 8 guards"));
        }
        let mut rest = Cut(&data[Header::SIZE..]);
        let mut pieces = Vec::with_capacity(sources + targets);
        for record in rest.take((sources + targets) * PieceRecord::SIZE)?.chunks(PieceRecord::SIZE)
        {
            let record = PieceRecord::parse(record).ok_or(Malformed("a piece is cut off"))?;
            pieces.push(Piece::of(&record, peers)?);
        }
        let factors = rest.take(sources * targets)?;
        let sums = pieces.split_off(sources);
        let target = |(piece, factors): (Piece, &[u8])| Target { piece, factors: factors.to_vec() };
        let targets = sums.into_iter().zip(factors.chunks(sources)).map(target).collect();
        let guards = (0..guards).map(|_| rest.guard()).collect::<Result<_, _>>()?;
        let peers = (0..peers).map(|_| rest.name()).collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(Malformed("bytes follow the last name"));
        }
        let task = Self { sources: pieces, targets, guards, peers };
        task.check()?;
        Ok(task)
    }

    fn check(&self) -> Result<(), Malformed> {
        if self.targets.iter().any(|target| target.factors.iter().all(|factor| *factor == 0)) {
            return Err(Malformed("a target is a sum of nothing"));
        }
        if self.sums().count() > SUMS_MAX {
            return Err(Malformed("more than 16 targets are no copies"));
        }
        let is_here = |guard: &Guard| {
            let target = self.targets.get(usize::from(guard.target));
            target.is_some_and(|target| target.piece.peer == 0)
        };
        match self.guards.iter().all(is_here) {
            true => Ok(()),
            false => Err(Malformed("a guard is not of a target on the executing drive")),
        }
    }

    /// Returns the guards of a target.
    pub fn guards_of(&self, target: usize) -> impl Iterator<Item = &Guard> {
        self.guards.iter().filter(move |guard| usize::from(guard.target) == target)
    }

    /// Returns the targets that are no copies of a source, with their numbers.
    pub fn sums(&self) -> impl Iterator<Item = (usize, &Target)> {
        let all = self.targets.iter().enumerate();
        all.filter(|(_, target)| target.copied(&self.sources).is_none())
    }

    /// Returns the task's bytes.
    ///
    /// # Panics
    /// If a number, a factor list or a name is out of its range: the caller's bug.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let small = |count: usize| u8::try_from(count).expect("a task's numbers fit in a byte");
        let mut header = Header::zeroed();
        header.set_magic(MAGIC).set_version(VERSION).set_sources(small(self.sources.len()));
        header.set_targets(small(self.targets.len())).set_peers(small(self.peers.len()));
        header.set_guards(small(self.guards.len()));
        let mut data = header.as_bytes().to_vec();
        let sums = self.targets.iter().map(|target| &target.piece);
        for piece in self.sources.iter().chain(sums) {
            data.extend_from_slice(piece.record().as_bytes());
        }
        for target in &self.targets {
            assert_eq!(target.factors.len(), self.sources.len(), "a factor for every source");
            data.extend_from_slice(&target.factors);
        }
        for guard in &self.guards {
            data.extend_from_slice(guard.record().as_bytes());
        }
        for name in &self.peers {
            data.push(small(name.len()));
            data.extend_from_slice(name.as_bytes());
        }
        data
    }

    /// Returns an execution of this task, whose answers go to `output`.
    #[must_use]
    pub fn execution(&self, output: Output) -> Execution {
        let inline = self.encode();
        let bytes = u32::try_from(inline.len()).expect("a task is short");
        let sources = vec![SourceData::Inline { bytes }.into()];
        let (digests, parameters, serial, cores) = (None, Vec::new(), false, 0);
        Execution {
            program: PROGRAM_ID,
            output,
            sources,
            inline,
            digests,
            parameters,
            serial,
            cores,
        }
    }

    /// Parses the task of an execution.
    ///
    /// # Errors
    /// [`Malformed`] also if it is not the execution's only source, and inline.
    pub fn of(execution: &Execution) -> Result<Self, Malformed> {
        let is_inline = |data| matches!(data, SourceData::Inline { .. });
        match &execution.sources[..] {
            [source] if is_inline(source.data) && execution.parameters.is_empty() => {
                Self::parse(&execution.inline)
            }
            _ => Err(Malformed("the task is not the only source, inline and without parameters")),
        }
    }
}

/// The rest of a task's bytes.
struct Cut<'a>(&'a [u8]);

impl<'a> Cut<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(bytes).ok_or(Malformed("it is cut off"))?;
        self.0 = rest;
        Ok(head)
    }

    fn guard(&mut self) -> Result<Guard, Malformed> {
        let record = GuardRecord::parse(self.take(GuardRecord::SIZE)?);
        Guard::of(&record.ok_or(Malformed("a guard is cut off"))?)
    }

    fn name(&mut self) -> Result<String, Malformed> {
        let length = usize::from(self.take(1)?[0]);
        let name = std::str::from_utf8(self.take(length)?).ok().filter(|name| is_nqn(name));
        Ok(name.ok_or(Malformed("a peer's name is no NQN"))?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Key;
    use crate::vendor::location::Location;

    fn value(peer: u8, number: u8, crc32c: Option<u32>) -> Piece {
        let location = Location::Value { nsid: 3, key: [number; 16] };
        Piece { peer, location, bytes: 1000, crc32c }
    }

    fn sample() -> Task {
        let blocks = Location::Blocks { nsid: 1, slba: 1 << 40 };
        Task {
            sources: vec![
                value(0, 1, Some(7)),
                Piece { peer: 2, location: blocks, bytes: 77, crc32c: None },
            ],
            targets: vec![
                Target { piece: value(1, 3, None), factors: vec![1, 0] },
                Target { piece: value(0, 4, Some(0)), factors: vec![0x47, 0xA7] },
                Target { piece: value(2, 5, None), factors: vec![0, 1] },
            ],
            guards: Vec::new(),
            peers: vec!["nqn.2026-11.io.csdstore:d1".into(), "nqn.2026-11.io.csdstore:d2".into()],
        }
    }

    fn guarded() -> Task {
        let claim = |unit: u8| Guard {
            target: 1,
            nsid: 3,
            key: Key::new(&[2, 0, 0, 0, 0, 0, 0, 0, unit]).unwrap(),
            value: vec![9; 28],
        };
        Task { guards: vec![claim(7), claim(8)], ..sample() }
    }

    #[test]
    fn tasks_round_trip_also_as_executions() {
        let task = sample();
        let data = task.encode();
        assert_eq!(data.len(), 16 + 5 * 32 + 6 + 2 * 27);
        assert_eq!(Task::parse(&data), Ok(task.clone()));
        let execution = Execution::parse(&task.execution(Output::Completion).encode()).unwrap();
        assert_eq!(Task::of(&execution), Ok(task));
        let with = Execution { parameters: vec![0], ..execution.clone() };
        assert!(Task::of(&with).is_err());
        let mut twice = execution;
        twice.sources.push(twice.sources[0]);
        assert!(Task::of(&twice).is_err());
    }

    #[test]
    fn a_copy_is_one_source_times_one_of_the_same_length() {
        let task = sample();
        let copied: Vec<_> = task.targets.iter().map(|t| t.copied(&task.sources)).collect();
        assert_eq!(copied, [Some(0), None, None], "the last one has another length");
        assert_eq!(task.sums().map(|(number, _)| number).collect::<Vec<_>>(), [1, 2]);
        let mut doubled = task.targets[0].clone();
        doubled.factors = vec![2, 0];
        assert_eq!(doubled.copied(&task.sources), None);
    }

    #[test]
    fn guards_round_trip_and_are_of_targets_on_the_executing_drive() {
        let task = guarded();
        let data = task.encode();
        assert_eq!(data.len(), sample().encode().len() + 2 * GuardRecord::SIZE);
        assert_eq!(Task::parse(&data), Ok(task.clone()));
        assert_eq!(task.guards_of(1).count(), 2);
        assert_eq!(task.guards_of(0).count(), 0);
        for length in 0..data.len() {
            assert!(Task::parse(&data[..length]).is_err(), "cut to {length}");
        }
        // Targets 0 and 2 lie on peers, and there are no others.
        for target in [0, 2, 3, 255] {
            let mut wrong = task.clone();
            wrong.guards[1].target = target;
            let refused = Task::parse(&wrong.encode()).unwrap_err();
            assert_eq!(refused.0, "a guard is not of a target on the executing drive");
        }
        let guards = |count| Task { guards: vec![task.guards[0].clone(); count], ..sample() };
        assert!(Task::parse(&guards(GUARDS_MAX).encode()).is_ok());
        let refused = Task::parse(&guards(GUARDS_MAX + 1).encode()).unwrap_err();
        assert_eq!(refused.0, "more than 8 guards");
    }

    #[test]
    fn every_prefix_is_refused_and_each_limit_has_words() {
        let data = sample().encode();
        for length in 0..data.len() {
            assert!(Task::parse(&data[..length]).is_err(), "cut to {length}");
        }
        let wrong = |at: usize, byte: u8| {
            let mut data = data.clone();
            data[at] = byte;
            Task::parse(&data).map_err(|malformed| malformed.0)
        };
        let numbers = Err("not 1 to 32 sources and 1 to 48 targets");
        assert_eq!((wrong(6, 0), wrong(6, 33)), (numbers.clone(), numbers.clone()));
        assert_eq!((wrong(7, 0), wrong(7, 49)), (numbers.clone(), numbers));
        assert_eq!(wrong(0, 0), Err("wrong magic number"));
        assert_eq!(wrong(4, 2), Err("version is not 1"));
        assert_eq!(wrong(10, 1), Err("reserved bytes of the header are not zero"));
        assert_eq!(wrong(8, 81), Err("more than 80 peers"));
        assert_eq!(wrong(8, 3), Err("it is cut off"));
        assert_eq!(wrong(8, 1), Err("a piece is on a peer that is not named"));
        let factors = 16 + 5 * 32;
        assert_eq!(wrong(factors, 0), Err("a target is a sum of nothing"));
        assert_eq!(wrong(factors + 7, b'x'), Err("a peer's name is no NQN"));
        assert_eq!(wrong(factors + 6, 25), Err("it is cut off"));
        let mut long = data.clone();
        long.push(0);
        assert_eq!(Task::parse(&long).unwrap_err().0, "bytes follow the last name");
    }

    #[test]
    fn at_most_sixteen_targets_are_computed_and_all_may_be_copies() {
        let mut task = sample();
        task.targets = vec![task.targets[0].clone(); TARGETS_MAX];
        assert!(Task::parse(&task.encode()).is_ok());
        task.targets[..=SUMS_MAX].iter_mut().for_each(|target| target.factors = vec![3, 1]);
        let refused = Task::parse(&task.encode()).unwrap_err();
        assert_eq!(refused.0, "more than 16 targets are no copies");
        task.targets[0].factors = vec![1, 0];
        assert!(Task::parse(&task.encode()).is_ok());
    }
}
