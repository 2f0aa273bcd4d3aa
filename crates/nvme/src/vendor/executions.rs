//! The execution log: bytes read and written by programs, their times, and the reasons of failures.
//!
//! Vendor specific log page C0h of a compute namespace. A header, then one entry of 512 bytes for
//! each of the last executions, newest first. The drive counts; this is the layout. Invariant:
//! texts are cut between characters, so a reader always gets UTF-8 back.

use super::log_entries;
use crate::status::Status;
use crate::wire::{layout, text_of};

/// Maximum entries that a drive stores.
pub const EXECUTIONS_MAX: usize = 64;
/// Version of the layout.
pub const VERSION: u16 = 1;

layout! {
    /// Header of the log.
    pub struct Header[64] {
        /// [`VERSION`].
        version / set_version: u16 @ 0,
        /// Size of an entry in bytes: later versions may append fields.
        entry_bytes / set_entry_bytes: u16 @ 2,
        /// Number of entries that follow.
        entries / set_entries: u32 @ 4,
        /// Number of executions that ended since the drive started, including those that left the
        /// log.
        ended / set_ended: u64 @ 8,
    }
}

layout! {
    /// One execution that has ended.
    pub struct Entry[512] {
        /// Number of the execution since the drive started, from 1, in the order of their ends.
        number / set_number: u64 @ 0,
        /// Program identifier (PID); 0 when the index named no program.
        program / set_program: u64 @ 8,
        /// Program index.
        index / set_index: u16 @ 16,
        /// Status Code Type and Status Code of the answer, in the form of [`Status`].
        status_code / set_status_code: u16 @ 18,
        /// Number of cores whose compute threads worked.
        cores / set_cores: u16 @ 20,
        /// Controller that gave the command.
        cntlid / set_cntlid: u16 @ 22,
        /// Command id.
        cid / set_cid: u16 @ 24,
        /// Bytes read from sources.
        bytes_read / set_bytes_read: u64 @ 32,
        /// Bytes written to values or memory.
        bytes_written / set_bytes_written: u64 @ 40,
        /// Units of work that the program counted: elements, edges or bytes.
        work / set_work: u64 @ 48,
        /// Time in which the execution waited for reads, ns.
        reading_ns / set_reading_ns: u64 @ 56,
        /// Time in the compute thread, ns.
        computing_ns / set_computing_ns: u64 @ 64,
        /// Time in which the execution waited for writes, ns.
        writing_ns / set_writing_ns: u64 @ 72,
        /// Time from the command's arrival to its answer, ns.
        total_ns / set_total_ns: u64 @ 80,
        /// Time of its end on the drive's clock, ns.
        ended_ns / set_ended_ns: u64 @ 88,
        /// NVMe Qualified Name of the host that gave the command, cut to fit, zero-terminated.
        host / set_host: [128] @ 128,
        /// Reason of the failure, in UTF-8, cut to fit, zero-terminated.
        reason / set_reason: [256] @ 256,
    }
}

impl Entry {
    /// Returns the status of the answer.
    pub fn status(&self) -> Status {
        Status(self.status_code())
    }

    /// Returns the name of the host; empty if it is not UTF-8.
    pub fn host_text(&self) -> String {
        text_of(&self.host()).unwrap_or_default().to_owned()
    }

    /// Returns the reason of the failure; empty if it succeeded.
    pub fn reason_text(&self) -> String {
        text_of(&self.reason()).unwrap_or_default().to_owned()
    }

    /// Sets the name of the host.
    pub fn name_host(&mut self, nqn: &str) -> &mut Self {
        self.set_host(&cut(nqn))
    }

    /// Sets the reason of the failure.
    pub fn explain(&mut self, reason: &str) -> &mut Self {
        self.set_reason(&cut(reason))
    }
}

/// Returns `text` in a field of `N` bytes, the last of them zero, cut between characters.
pub(super) fn cut<const N: usize>(text: &str) -> [u8; N] {
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut field = [0; N];
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field
}

/// Returns the data of the log: a header, then the entries, newest first.
pub fn encode(ended: u64, entries: &[Entry]) -> Vec<u8> {
    let mut header = Header::zeroed();
    header.set_version(VERSION).set_ended(ended);
    header.set_entry_bytes(u16::try_from(Entry::SIZE).expect("512"));
    header.set_entries(u32::try_from(entries.len()).expect("a drive keeps few entries"));
    let mut data = header.as_bytes().to_vec();
    entries.iter().for_each(|entry| data.extend_from_slice(entry.as_bytes()));
    data
}

/// Parses the log: number of executions ended since the drive started, and the entries, newest
/// first. `None` if it has another version or is cut short.
pub fn parse(data: &[u8]) -> Option<(u64, Vec<Entry>)> {
    let header = Header::parse(data)?;
    if header.version() != VERSION {
        return None;
    }
    let sizes = (header.entries(), header.entry_bytes());
    let bounds = (EXECUTIONS_MAX, Entry::SIZE);
    let entries = log_entries::parse(data.get(Header::SIZE..), sizes, bounds, Entry::parse)?;
    Some((header.ended(), entries))
}

/// Size of a full log in bytes.
pub const LOG_BYTES_MAX: usize = Header::SIZE + EXECUTIONS_MAX * Entry::SIZE;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        let mut entry = Entry::zeroed();
        entry.set_number(number).set_program(1).set_status_code(Status::PROGRAM_FAILED.0);
        entry.set_bytes_read(1 << 20).set_work(1 << 18).set_total_ns(5);
        entry.name_host("nqn.2026-11.io.csdstore:host").explain("it looped");
        entry
    }

    #[test]
    fn a_log_round_trips_and_short_ones_are_refused() {
        let entries = [entry(9), entry(8)];
        let data = encode(9, &entries);
        assert_eq!(data.len(), Header::SIZE + 2 * Entry::SIZE);
        assert_eq!(parse(&data), Some((9, entries.to_vec())));
        assert_eq!(entries[0].status(), Status::PROGRAM_FAILED);
        assert_eq!(entries[0].host_text(), "nqn.2026-11.io.csdstore:host");
        assert_eq!(entries[0].reason_text(), "it looped");
        for length in 0..data.len() {
            assert_eq!(parse(&data[..length]), None, "cut to {length}");
        }
        assert_eq!(parse(&encode(0, &[])), Some((0, Vec::new())));
    }

    #[test]
    fn other_versions_and_impossible_sizes_are_refused() {
        let data = encode(1, &[entry(1)]);
        for (at, value) in [(0, 2), (2, 1), (4, 65), (7, 1)] {
            let mut wrong = data.clone();
            wrong[at] = value;
            assert_eq!(parse(&wrong), None, "byte {at}");
        }
    }

    #[test]
    fn a_later_version_may_append_to_entries() {
        let mut header = Header::zeroed();
        header.set_version(1).set_entry_bytes(520).set_entries(2).set_ended(2);
        let mut data = header.as_bytes().to_vec();
        for number in [2, 1] {
            data.extend_from_slice(entry(number).as_bytes());
            data.extend_from_slice(&[0xAA; 8]);
        }
        assert_eq!(parse(&data), Some((2, vec![entry(2), entry(1)])));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut long = Entry::zeroed();
        long.explain(&format!("{}é", "x".repeat(254)));
        assert_eq!(long.reason_text(), "x".repeat(254));
        long.explain(&"é".repeat(200)).name_host(&"n".repeat(300));
        assert_eq!((long.reason_text().len(), long.host_text().len()), (254, 127));
    }
}
