//! [`Opened`]: files and folders that programs have open.
//!
//! Drives read whole chunks, and the kernel asks for parts of them: a file keeps the chunks that it
//! read last. A program that reads on gets more of them at once each time.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use csd_reactor::Semaphore;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::layout::Layout;
use csd_store::object::{self, Error, Form};
use csd_store::source::npy_header;

use super::nodes::Node;
use crate::get::form_of;

/// Most bytes that are read ahead.
const AHEAD_BYTES_MAX: u64 = 8 << 20;

/// Name in a folder, and what has it.
pub(super) type Listed = (String, Node);

/// An open file or folder.
pub(super) enum Opened {
    File(File),
    /// The list of what was in it when it was opened.
    Folder(Rc<Vec<Listed>>),
}

impl Opened {
    pub(super) fn file(entry: Rc<Entry>) -> Self {
        Self::File(File::new(entry))
    }
}

/// An open file: the object as `csd get` writes it.
pub(super) struct File {
    entry: Rc<Entry>,
    layout: Layout,
    header: Vec<u8>,
    /// The chunks that were read last.
    kept: RefCell<Rc<Part>>,
    /// Reads of one file come one after another.
    turn: Semaphore,
}

/// Bytes of an object from a place on.
#[derive(Default)]
struct Part {
    begin: u64,
    bytes: Vec<u8>,
}

impl Part {
    fn range(&self) -> Range<u64> {
        self.begin..self.begin + self.bytes.len() as u64
    }
}

/// Returns the bytes before an object's own in its file.
fn header(entry: &Entry) -> Vec<u8> {
    match form_of(entry, &entry.name, false) {
        Form::Npy => npy_header(entry.element, &entry.shape).unwrap_or_default(),
        Form::Raw => Vec::new(),
    }
}

/// Returns the length of an object's file, bytes.
pub(super) fn length(entry: &Entry) -> u64 {
    header(entry).len() as u64 + entry.bytes
}

impl File {
    fn new(entry: Rc<Entry>) -> Self {
        Self {
            layout: entry.layout(),
            header: header(&entry),
            entry,
            kept: RefCell::default(),
            turn: Semaphore::new(1),
        }
    }

    /// Returns bytes of the file; fewer at its end.
    pub(super) async fn read(
        &self,
        array: &Array,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, Error> {
        let _turn = self.turn.acquire(1).await;
        let head = self.header.len() as u64;
        let end = offset.saturating_add(length as u64);
        let of_header = within(&(offset..end), &(0..head));
        let mut bytes = self.header[of_header].to_vec();
        let (mut at, end) =
            (offset.saturating_sub(head), end.saturating_sub(head).min(self.entry.bytes));
        while at < end {
            let part = self.part_at(array, at).await?;
            let inside = within(&(at..end), &part.range());
            at += inside.len() as u64;
            bytes.extend_from_slice(&part.bytes[inside]);
        }
        Ok(bytes)
    }

    /// Returns bytes around this one: those that are kept, or whole chunks that are read.
    async fn part_at(&self, array: &Array, at: u64) -> Result<Rc<Part>, Error> {
        let kept = Rc::clone(&self.kept.borrow());
        let range = kept.range();
        if range.contains(&at) {
            return Ok(kept);
        }
        let goes_on = at == range.end;
        let ahead = if goes_on { (2 * (at - range.start)).min(AHEAD_BYTES_MAX) } else { 0 };
        let (_, begin) = self.layout.chunk_at(at);
        let (last, _) = self.layout.chunk_at((at + ahead).min(self.entry.bytes - 1));
        let end = self.layout.bytes_of(last).end;
        let bytes = object::read(array, &self.entry, begin..end).await?;
        let part = Rc::new(Part { begin, bytes });
        self.kept.replace(Rc::clone(&part));
        Ok(part)
    }
}

/// Returns where `wanted` lies in what begins at the start of `there`, as far as it does.
fn within(wanted: &Range<u64>, there: &Range<u64>) -> Range<usize> {
    let place = |byte: u64| {
        let inside = byte.clamp(there.start, there.end) - there.start;
        usize::try_from(inside).expect("in memory")
    };
    place(wanted.start)..place(wanted.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_there_is_found() {
        assert_eq!(within(&(10..20), &(8..30)), 2..12);
        assert_eq!(within(&(0..20), &(8..10)), 0..2);
        assert_eq!(within(&(40..50), &(8..10)), 2..2);
    }
}
