//! [`Output`]: what a program writes, and where that goes.
//!
//! In the lane bytes are gathered into chunks; between the lane's rounds full chunks are stored.
//! No byte is written where the execution did not say. Invariants: at most [`FULL_BYTES`] and a
//! chunk are gathered at once, [`SOURCE_BYTES_MAX`] and a chunk in a serial execution, and at most
//! [`FULL_BYTES`] or a chunk are being stored ([`held_bytes`]); an execution that succeeded has its
//! output stored, durable as any Store is. One that failed may have left some of it: whoever asked
//! deletes that.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::execute::{Output as Destination, SOURCE_BYTES_MAX, chunk_key};
use csd_nvme::memory::Range;
use csd_nvme::opcode::{self, Slm};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::{Compute, Failure, Shared};
use crate::namespace::kv::Kv;
use csd_nvme::vendor::{NSID_KV, NSID_OBJECTS};

/// Gathered bytes at which a program is asked to wait.
const FULL_BYTES: usize = 8 << 20;
/// Stores of one execution under way at once.
const STORES: usize = 4;

/// Bytes of a chunk that goes to memory.
const MEMORY_CHUNK_BYTES: u32 = 1 << 20;

/// Most memory that the output of an execution that is not serial takes: what is gathered, the
/// chunk that is being filled, and what is being stored.
pub(super) fn held_bytes(destination: &Destination) -> u64 {
    let chunk_bytes = match destination {
        Destination::Completion => return 0,
        Destination::Memory { .. } => MEMORY_CHUNK_BYTES,
        Destination::KvChunks { chunk_bytes, .. } => *chunk_bytes,
    };
    let (full, chunk) = (FULL_BYTES as u64, u64::from(chunk_bytes));
    full + 2 * chunk + full.max(chunk)
}

/// Where a program writes, in the lane. Nobody wants what is written to the default.
#[derive(Default)]
pub struct Output {
    /// Size of a chunk; `None` when nothing but the result is wanted.
    chunk_bytes: Option<usize>,
    full: VecDeque<Buffer>,
    /// The chunk that is being filled, and how much of it is.
    open: Option<(Buffer, usize)>,
    gathered: usize,
    /// Bytes at which a program is asked to wait.
    full_bytes: usize,
    written: u64,
    work: u64,
}

impl Output {
    pub(super) fn new(destination: &Destination) -> Self {
        let chunk_bytes = match destination {
            Destination::Completion => None,
            Destination::Memory { .. } => Some(MEMORY_CHUNK_BYTES as usize),
            Destination::KvChunks { chunk_bytes, .. } => Some(*chunk_bytes as usize),
        };
        Self {
            chunk_bytes,
            full: VecDeque::new(),
            open: None,
            gathered: 0,
            full_bytes: FULL_BYTES,
            written: 0,
            work: 0,
        }
    }

    /// The output of an execution that may be serial: then it is gathered as a whole, as far as
    /// that is not longer than all that an execution may read.
    pub(super) fn serial(self, serial: bool) -> Self {
        let whole = usize::try_from(SOURCE_BYTES_MAX).expect("256 MiB");
        Self { full_bytes: if serial { whole } else { FULL_BYTES }, ..self }
    }

    /// Whether the bytes are wanted; if not, they may be written and are dropped.
    pub fn is_wanted(&self) -> bool {
        self.chunk_bytes.is_some()
    }

    /// Whether a program should end its step with [`super::Step::Full`].
    pub fn is_full(&self) -> bool {
        self.gathered >= self.full_bytes
    }

    /// Room for at most `most` bytes, at least 1, in one piece; [`Self::commit`] says how many were
    /// written there.
    ///
    /// # Panics
    /// When the output is not wanted, or `most` is 0.
    pub fn room(&mut self, most: usize) -> &mut [u8] {
        let chunk_bytes = self.chunk_bytes.expect("room in an output that nobody wants");
        assert!(most > 0, "no room asked for");
        let open = || (Buffer::with_room(0, chunk_bytes, 0), 0);
        let (buffer, filled) = self.open.get_or_insert_with(open);
        let end = chunk_bytes.min(*filled + most);
        &mut buffer[*filled..end]
    }

    /// Says that the first `bytes` of the last [`Self::room`] are written.
    pub fn commit(&mut self, bytes: usize) {
        let Some((buffer, filled)) = &mut self.open else { return };
        *filled += bytes;
        self.gathered += bytes;
        self.written += bytes as u64;
        if *filled == buffer.len() {
            self.full.extend(self.open.take().map(|(buffer, _)| buffer));
        }
    }

    /// Appends bytes, if they are wanted.
    pub fn append(&mut self, mut bytes: &[u8]) {
        while self.is_wanted() && !bytes.is_empty() {
            let room = self.room(bytes.len());
            let count = room.len();
            let (head, rest) = bytes.split_at(count);
            room.copy_from_slice(head);
            self.commit(count);
            bytes = rest;
        }
    }

    /// Counts work done: elements, edges or bytes, as the program has it.
    pub fn count_work(&mut self, work: u64) {
        self.work += work;
    }

    /// Bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Work counted.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The chunks that are full, and at the `last` time what is left.
    pub(super) fn take(&mut self, last: bool) -> VecDeque<Buffer> {
        let mut chunks = std::mem::take(&mut self.full);
        if last && let Some((mut buffer, filled)) = self.open.take() {
            buffer.truncate(filled);
            chunks.push_back(buffer);
        }
        self.gathered = self.open.as_ref().map_or(0, |(_, filled)| *filled);
        chunks
    }
}

/// Stores what was gathered.
pub(super) struct Drain {
    kv: Rc<Kv>,
    shared: Arc<Shared>,
    destination: Destination,
    chunks: u32,
    /// Bytes that went to memory.
    remembered: u64,
    under_way: VecDeque<(usize, JoinHandle<Result<(), Status>>)>,
    under_way_bytes: usize,
}

impl Drain {
    /// Checks that the drive has the output's namespace.
    pub(super) fn new(compute: &Compute, destination: Destination) -> Result<Self, Failure> {
        match destination {
            Destination::Completion => {}
            Destination::KvChunks { nsid, chunk_bytes, .. }
                if [NSID_KV, NSID_OBJECTS].contains(&nsid) =>
            {
                compute.shared.may_change(nsid, opcode::Kv::STORE.0)?;
                let most = compute.shared.value_bytes_max;
                if chunk_bytes > most {
                    let reason = format!("values of {chunk_bytes} bytes: at most {most}");
                    return Err(Failure::new(Status::INVALID_VALUE_SIZE, reason));
                }
            }
            Destination::Memory { nsid, start, bytes } => {
                let range = Range { start, length: bytes.into() };
                compute.shared.memory.check_of(nsid, range)?;
                compute.shared.may_change(nsid, Slm::WRITE.0)?;
            }
            Destination::KvChunks { nsid, .. } => {
                let reason = format!("namespace {nsid} is none that a program's output can go to");
                return Err(Failure::new(Status::INVALID_NAMESPACE, reason));
            }
        }
        let (kv, shared) = (Rc::clone(&compute.kv), Arc::clone(&compute.shared));
        let (under_way, under_way_bytes) = (VecDeque::new(), 0);
        Ok(Self { kv, shared, destination, chunks: 0, remembered: 0, under_way, under_way_bytes })
    }

    /// Begins to store the chunks that are full, and at the `last` time what is left.
    pub(super) async fn drain(&mut self, output: &mut Output, last: bool) -> Result<(), Failure> {
        for chunk in output.take(last) {
            let is_full = |drain: &Self| {
                drain.under_way.len() >= STORES || drain.under_way_bytes + chunk.len() > FULL_BYTES
            };
            while !self.under_way.is_empty() && is_full(self) {
                self.wait_for_one().await?;
            }
            self.store(chunk).await?;
        }
        Ok(())
    }

    async fn store(&mut self, chunk: Buffer) -> Result<(), Failure> {
        let (nsid, prefix, first, stride) = match self.destination {
            Destination::Completion => return Ok(()),
            Destination::Memory { start, bytes, .. } => {
                return self.remember(&chunk, start, bytes.into()).await;
            }
            Destination::KvChunks { nsid, prefix, first, stride, .. } => {
                (nsid, prefix, first, stride)
            }
        };
        let number = self.chunks.checked_mul(stride).and_then(|step| step.checked_add(first));
        let number = number.ok_or_else(|| Failure::misuse("the output's numbers leave 32 bits"))?;
        let nsid = u16::try_from(nsid).expect("2 or 3");
        let kv = Rc::clone(&self.kv);
        let bytes = chunk.len();
        let stored =
            async move { kv.store(nsid, chunk_key(&prefix, number), vec![chunk], 0).await };
        self.under_way.push_back((bytes, spawn(Class::Background, stored)));
        self.under_way_bytes += bytes;
        self.chunks += 1;
        Ok(())
    }

    /// Writes a chunk to its place in memory.
    async fn remember(&mut self, chunk: &[u8], start: u64, bytes: u64) -> Result<(), Failure> {
        let end = self.remembered + chunk.len() as u64;
        if end > bytes {
            let reason = format!("the program writes more than the {bytes} bytes of its output");
            return Err(Failure::new(Status::PROGRAM_FAILED, reason));
        }
        self.shared.memory.write_in_turns(start + self.remembered, chunk).await;
        self.remembered = end;
        Ok(())
    }

    async fn wait_for_one(&mut self) -> Result<(), Failure> {
        let Some((bytes, oldest)) = self.under_way.pop_front() else { return Ok(()) };
        self.under_way_bytes -= bytes;
        oldest.await.map_err(|status| Failure::new(status, format!("output: {status}")))
    }

    /// Waits for all stores, after a failure too, so that none outlives its execution.
    pub(super) async fn finish(mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while !self.under_way.is_empty() {
            result = result.and(self.wait_for_one().await);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(chunk_bytes: u32) -> Output {
        let destination = Destination::KvChunks {
            nsid: NSID_OBJECTS,
            prefix: [0; 12],
            first: 0,
            stride: 1,
            chunk_bytes,
        };
        Output::new(&destination)
    }

    #[test]
    fn bytes_come_out_in_chunks_and_the_rest_at_the_end() {
        let mut output = output(4);
        output.append(b"abcdefghij");
        output.count_work(3);
        let lengths = |chunks: VecDeque<Buffer>| chunks.iter().map(|c| c.len()).collect::<Vec<_>>();
        assert_eq!(lengths(output.take(false)), [4, 4]);
        output.room(9)[..1].copy_from_slice(b"k");
        output.commit(1);
        let rest = output.take(true);
        assert_eq!(rest[0][..], b"ijk"[..]);
        assert_eq!((output.written(), output.work(), output.take(true).len()), (11, 3, 0));
    }

    #[test]
    fn a_full_output_says_so_until_it_is_drained() {
        let mut output = output(1 << 20);
        output.append(&vec![1; FULL_BYTES - 1]);
        assert!(!output.is_full());
        output.append(&[1]);
        assert!(output.is_full());
        output.take(false);
        assert!(!output.is_full());
    }

    #[test]
    fn an_output_that_nobody_wants_takes_no_memory() {
        let mut output = Output::new(&Destination::Completion);
        output.append(&[1; 100]);
        assert_eq!((output.is_wanted(), output.written(), output.take(true).len()), (false, 0, 0));
    }
}
