//! Lines across the ends of chunks: each line goes whole to one execution.
//!
//! The execution over a chunk sees the lines that begin in it, and the line that begins with the
//! next chunk's first byte; it does not see the rest of a line that began earlier. So a chunk's own
//! bytes begin after its first newline, unless it is the object's first chunk, and the first bytes
//! of the next chunks, up to a newline, are handed to it. The host reads those first bytes, from
//! any drive. They have no digest of their own, and their drive may turn out to have other bytes
//! than the object's, or be lost, before the execution over their chunk has compared it with its
//! digest. So the two executions that use a head must have used the same one ([`UsedHeads`]); if
//! they have not, the run begins again and reads heads from whole chunks
//! ([`Heads::of_whole_chunks`]). Invariant: the bytes that executions see are the object's, each
//! byte once and in order, and the bytes of each but the last end with a newline.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use csd_reactor::Semaphore;
use csd_store::object::{read_chunk, read_front};

use super::{LINE_BYTES_MAX, Task};
use crate::InvalidJob;
use crate::error::Error;
use crate::work::{Common, MemberError};

/// Bytes read first in search of the end of a line.
const FIRST_BYTES: u32 = 512;
/// Factor by which the search grows each time that the end is not found.
const GROWTH: u32 = 8;

/// Bytes that the execution over a chunk sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// Number of the chunk's first bytes that belong to an earlier line.
    pub(super) skip: u32,
    /// First bytes of later chunks.
    pub(super) handed: Vec<u8>,
    /// The chunk's own head, in short; `None` for an object's first chunk, and without lines.
    own: Option<u64>,
}

impl Cut {
    /// Returns true if the execution over a chunk of `bytes` bytes sees nothing.
    pub(super) fn is_empty(&self, bytes: u32) -> bool {
        self.skip >= bytes && self.handed.is_empty()
    }

    /// Returns the cut of a chunk of `bytes` bytes. Its first `head` bytes belong to an earlier
    /// line, and the following chunks begin with `next` up to a newline.
    fn new(bytes: u32, head: u32, next: &[u8]) -> Self {
        // If the earlier line ends after this chunk, the execution in whose chunk it began gets it.
        let handed = if head > bytes { Vec::new() } else { next.to_vec() };
        Self { skip: head.min(bytes), handed, own: None }
    }
}

/// Returns length and CRC-32C of a head.
fn in_short(head: &[u8]) -> u64 {
    (head.len() as u64) << 32 | u64::from(crc32c::crc32c(head))
}

/// Heads, in short, that one of the two executions which use them has used: the one over the chunk,
/// and the one before, which was handed it.
#[derive(Default)]
pub(super) struct UsedHeads(Mutex<BTreeMap<u32, u64>>);

impl UsedHeads {
    /// Adds what the execution over `chunk` has used, which has ended well; returns false if
    /// another one has used other heads.
    pub(super) fn agree(&self, chunk: u32, cut: &Cut) -> bool {
        let handed = Some(&cut.handed[..]).filter(|handed| !handed.is_empty()).map(in_short);
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut agrees = |chunk, head: Option<u64>| match (used.remove(&chunk), head) {
            (Some(other), Some(head)) => other == head,
            (other, head) => {
                used.extend(other.or(head).map(|head| (chunk, head)));
                true
            }
        };
        agrees(chunk, cut.own) & agrees(chunk + 1, handed)
    }
}

/// First bytes of chunks, up to a newline. Each is kept until both users have read it: the
/// execution over the chunk and the previous one.
#[derive(Default)]
pub(super) struct Heads {
    all: RefCell<BTreeMap<u32, Rc<Head>>>,
    /// True if chunks are read as a whole, and compared with their digests.
    whole: bool,
}

struct Head {
    asked: Cell<bool>,
    lock: Semaphore,
    bytes: RefCell<Option<Rc<Vec<u8>>>>,
}

impl Heads {
    /// Returns heads that are sound even if chunks of a protected object are damaged.
    pub(super) fn of_whole_chunks() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Returns the cut for the execution over `chunk`.
    pub(super) async fn cut(
        &self,
        (task, common): (&Task, &Common),
        chunk: u32,
    ) -> Result<Cut, MemberError> {
        let head = match chunk {
            0 => None,
            _ => Some(self.head((task, common), chunk).await?),
        };
        self.cut_behind((task, common), chunk, head.as_ref().map(|head| &head[..])).await
    }

    /// Returns the cut of a chunk that is in memory, and is the one that was put.
    pub(super) async fn cut_of(
        &self,
        (task, common): (&Task, &Common),
        chunk: u32,
        bytes: &[u8],
    ) -> Result<Cut, MemberError> {
        match newline(bytes) {
            Some(at) if chunk > 0 && at < LINE_BYTES_MAX as usize => {
                self.cut_behind((task, common), chunk, Some(&bytes[..=at])).await
            }
            _ if chunk == 0 => self.cut((task, common), chunk).await,
            _ => {
                // The right head begins with the whole chunk, or is too long.
                let mut head = self.head((task, common), chunk).await?;
                if !head.starts_with(bytes) {
                    head = Rc::new(read(task, common, chunk, true).await?);
                }
                self.cut_behind((task, common), chunk, Some(&head[..])).await
            }
        }
    }

    async fn cut_behind(
        &self,
        (task, common): (&Task, &Common),
        chunk: u32,
        own: Option<&[u8]>,
    ) -> Result<Cut, MemberError> {
        let bytes = task.layout.chunk_len(chunk);
        let head = u32::try_from(own.map_or(0, <[u8]>::len)).expect("at most a line");
        let own = own.map(in_short);
        if head > bytes || chunk + 1 == task.layout.chunks() {
            return Ok(Cut { own, ..Cut::new(bytes, head, &[]) });
        }
        let next = self.head((task, common), chunk + 1).await?;
        Ok(Cut { own, ..Cut::new(bytes, head, &next) })
    }

    /// Returns the bytes from the beginning of `chunk` to the first newline, or to the object's
    /// end.
    async fn head(
        &self,
        (task, common): (&Task, &Common),
        chunk: u32,
    ) -> Result<Rc<Vec<u8>>, MemberError> {
        let head = {
            let mut all = self.all.borrow_mut();
            let new = || Head {
                asked: Cell::new(false),
                lock: Semaphore::new(1),
                bytes: RefCell::default(),
            };
            let head = Rc::clone(all.entry(chunk).or_insert_with(|| Rc::new(new())));
            if head.asked.replace(true) {
                all.remove(&chunk);
            }
            head
        };
        let _alone = head.lock.acquire(1).await;
        let known = head.bytes.borrow().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let read = match read(task, common, chunk, self.whole).await {
            // Other bytes than the object's may have no newline.
            Err((_, Error::InvalidJob(_))) if !self.whole => {
                read(task, common, chunk, true).await?
            }
            read => read?,
        };
        let read = Rc::new(read);
        head.bytes.replace(Some(Rc::clone(&read)));
        Ok(read)
    }
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// Reads the head of a chunk, from as many chunks as it needs. A chunk that is read to its end, and
/// one that follows it, are compared with their digests: no execution may do that.
async fn read(
    task: &Task,
    common: &Common,
    chunk: u32,
    whole: bool,
) -> Result<Vec<u8>, MemberError> {
    let (entry, layout) = (&task.inputs[0], &task.layout);
    let mut head = Vec::new();
    for next in chunk..layout.chunks() {
        let (member, length) = (layout.member(next), layout.chunk_len(next));
        let whole = whole || next > chunk;
        let mut wanted = if whole { length } else { FIRST_BYTES.min(length) };
        loop {
            let front = async |drive: &Rc<_>| match wanted == length {
                true => read_chunk(drive, entry, next).await,
                false => read_front(drive, entry, next, wanted).await,
            };
            let read = common.links[member].run(front).await;
            // A chunk may have come as a whole.
            let read = common.or_computed((0, member), next, read).await;
            let mut bytes = read.map_err(|error| (member, error))?;
            bytes.truncate(wanted as usize);
            let end = newline(&bytes).map(|at| at + 1);
            let known = end.unwrap_or(bytes.len());
            if head.len() + known > LINE_BYTES_MAX as usize {
                return Err((member, too_long(&entry.name, chunk)));
            }
            if end.is_some() || wanted == length {
                head.extend_from_slice(&bytes[..known]);
                if end.is_some() {
                    return Ok(head);
                }
                break;
            }
            wanted = wanted.saturating_mul(GROWTH).min(LINE_BYTES_MAX + 1).min(length);
        }
    }
    Ok(head)
}

fn too_long(name: &str, chunk: u32) -> Error {
    Error::InvalidJob(InvalidJob(format!(
        "a line of {name:?} goes on for more than {} KiB after chunk {chunk} begins: that is too \
         long for a program that reads lines",
        LINE_BYTES_MAX >> 10
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first bytes of `text` from `at` on, up to a newline.
    fn head(text: &[u8], at: usize) -> &[u8] {
        let rest = &text[at..];
        &rest[..newline(rest).map_or(rest.len(), |at| at + 1)]
    }

    #[test]
    fn both_executions_that_use_a_head_must_have_used_the_same() {
        let cut = |own: &[u8], next: &[u8]| {
            let own = Some(own).filter(|own| !own.is_empty()).map(in_short);
            Cut { own, ..Cut::new(100, 0, next) }
        };
        let used = UsedHeads::default();
        assert!(used.agree(0, &cut(b"", b"one\n")));
        assert!(used.agree(2, &cut(b"two\n", b"")));
        assert!(used.agree(1, &cut(b"one\n", b"two\n")));
        assert!(used.0.lock().unwrap().is_empty(), "both have come");
        for wrong in [&b"tw\n"[..], b"owt\n", b"\n"] {
            let (first, last) = (UsedHeads::default(), UsedHeads::default());
            assert!(first.agree(1, &cut(b"one\n", b"two\n")));
            assert!(!first.agree(2, &cut(wrong, b"")));
            assert!(last.agree(2, &cut(wrong, b"")));
            assert!(!last.agree(1, &cut(b"one\n", b"two\n")));
        }
    }

    #[test]
    fn every_byte_is_seen_once_and_lines_are_whole() {
        let texts: [&[u8]; 9] = [
            b"a",
            b"\n",
            b"ab\ncd\nef",
            b"\n\n\n\n\n\n",
            b"abcdefghijklmnop",
            b"abc\ndef\nghi\n",
            b"abcd\nefgh\nij\n",
            b"abcdefghij\nk\n",
            b"abc\n\n\ndefghijklm\n\nn",
        ];
        for text in texts {
            for size in 1..=text.len() + 1 {
                let chunks: Vec<&[u8]> = text.chunks(size).collect();
                let mut seen = Vec::new();
                for (chunk, bytes) in chunks.iter().enumerate() {
                    let before = if chunk == 0 { 0 } else { head(text, chunk * size).len() };
                    let next =
                        text.get((chunk + 1) * size..).map(|_| head(text, (chunk + 1) * size));
                    let length = u32::try_from(bytes.len()).unwrap();
                    let before = u32::try_from(before).unwrap();
                    let cut = Cut::new(length, before, next.unwrap_or_default());
                    let own = &bytes[cut.skip as usize..];
                    let whole = [own, &cut.handed].concat();
                    assert_eq!(cut.is_empty(length), whole.is_empty());
                    seen.extend_from_slice(&whole);
                    let is_whole = whole.is_empty() || whole.ends_with(b"\n") || seen == text;
                    assert!(is_whole, "{text:?} in {size}: {whole:?}");
                }
                assert_eq!(seen, text, "in chunks of {size}");
            }
        }
    }
}
