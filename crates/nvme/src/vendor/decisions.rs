//! The log of decisions, page C4h: the cores on which a drive's latest background tasks were done,
//! and why. Policies and reasons are numbers here; the drive knows their meaning.
//!
//! Invariant: entries are in the order of their numbers, oldest first.

use super::log_entries;
use crate::wire::layout;

/// Version of the layout.
pub const VERSION: u16 = 1;
/// Most entries of a page: a drive keeps its latest ones.
pub const ENTRIES_MAX: usize = 256;

layout! {
    /// Header of the log page.
    pub struct Header[64] {
        /// [`VERSION`].
        version / set_version: u16 @ 0,
        /// Size of an entry in bytes: later versions may append fields.
        entry_bytes / set_entry_bytes: u16 @ 2,
        /// Number of entries that follow.
        entries / set_entries: u32 @ 4,
        /// Decisions since the drive started.
        decisions / set_decisions: u64 @ 8,
        /// Clock of the drive at the time of the answer, ns.
        now_ns / set_now_ns: u64 @ 16,
        /// Number of cores.
        cores / set_cores: u16 @ 24,
        /// Number of the policy in force, from 1.
        policy / set_policy: u8 @ 26,
    }
}

layout! {
    /// A decision.
    pub struct Entry[64] {
        /// Number of the decision, from 0.
        number / set_number: u64 @ 0,
        /// Clock of the drive at that time, ns.
        at_ns / set_at_ns: u64 @ 8,
        /// Time that the task was expected to take, ns.
        work_ns / set_work_ns: u64 @ 16,
        /// Core on which the task arose.
        origin / set_origin: u16 @ 24,
        /// Core that was chosen.
        core / set_core: u16 @ 26,
        /// Number of the policy, from 1.
        policy / set_policy: u8 @ 28,
        /// Number of the reason, from 1.
        reason / set_reason: u8 @ 29,
        /// Part of the time of the core of origin that foreground work took in the window before,
        /// in 1/10,000.
        origin_load / set_origin_load: u16 @ 30,
        /// The same of the chosen core.
        core_load / set_core_load: u16 @ 32,
    }
}

/// The latest decisions of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decisions {
    /// Decisions since the drive started.
    pub decisions: u64,
    /// Clock of the drive at the time of the answer, ns.
    pub now_ns: u64,
    /// Number of cores.
    pub cores: u16,
    /// Number of the policy in force, from 1.
    pub policy: u8,
    /// The latest ones, oldest first.
    pub entries: Vec<Entry>,
}

/// Size of the longest log page in bytes.
pub const LOG_BYTES_MAX: usize = Header::SIZE + ENTRIES_MAX * Entry::SIZE;

impl Decisions {
    /// Returns the data of the log page.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = Header::zeroed();
        header.set_version(VERSION).set_decisions(self.decisions).set_now_ns(self.now_ns);
        header.set_entry_bytes(u16::try_from(Entry::SIZE).expect("64"));
        header.set_entries(u32::try_from(self.entries.len()).expect("a drive keeps few of them"));
        header.set_cores(self.cores).set_policy(self.policy);
        let mut data = header.as_bytes().to_vec();
        self.entries.iter().for_each(|entry| data.extend_from_slice(entry.as_bytes()));
        data
    }

    /// Parses the data of the log page; `None` if it has another version, is cut short, or its
    /// entries are not in order.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let header = Header::parse(data)?;
        if header.version() != VERSION {
            return None;
        }
        let sizes = (header.entries(), header.entry_bytes());
        let bounds = (ENTRIES_MAX, Entry::SIZE);
        let entries = log_entries::parse(data.get(Header::SIZE..), sizes, bounds, Entry::parse)?;
        entries.is_sorted_by(|one, next| one.number() < next.number()).then_some(Self {
            decisions: header.decisions(),
            now_ns: header.now_ns(),
            cores: header.cores(),
            policy: header.policy(),
            entries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_round_trips_and_short_ones_are_refused() {
        let mut entry = Entry::zeroed();
        entry.set_origin(1).set_core(2).set_policy(3).set_reason(4).set_origin_load(10_000);
        let entries = vec![entry, *entry.clone().set_number(1)];
        let log = Decisions { decisions: 2, now_ns: 7, cores: 3, policy: 4, entries };
        let data = log.encode();
        assert_eq!(Decisions::parse(&data).as_ref(), Some(&log));
        for length in 0..data.len() {
            assert_eq!(Decisions::parse(&data[..length]), None, "cut to {length}");
        }
        // Version, size, number of entries, and a number that goes back.
        for (at, value) in [(0, 2), (2, 1), (4, 3), (5, 2), (64, 1)] {
            let mut wrong = data.clone();
            wrong[at] = value;
            assert_eq!(Decisions::parse(&wrong), None, "byte {at}");
        }
    }
}
