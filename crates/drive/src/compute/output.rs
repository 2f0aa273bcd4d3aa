//! [`Drain`]: stores the output of an execution at its destination.
//!
//! A program gathers its output in chunks; between two rounds of the program full chunks are
//! stored. Bytes are written to the destination that the execution names and nowhere else.
//! Invariants: at most [`FULL_BYTES`] and a chunk are gathered at once ([`SOURCE_BYTES_MAX`] and a
//! chunk in a serial execution), and at most [`FULL_BYTES`] or a chunk are being stored
//! ([`held_bytes`]); the output of an execution that succeeded is stored, durably, also in a
//! namespace with a volatile cache.
//! An execution that failed may have stored some of its output: the host deletes it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use csd_kernels::kernel::Wanted;
use csd_kernels::program::{FULL_BYTES, Output};
use csd_kvlog::Kv;
use csd_nvme::memory::Range;
use csd_nvme::opcode::{self, Slm};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Output as Destination, SOURCE_BYTES_MAX, chunk_key};
use csd_nvme::vendor::{NSID_KV, NSID_OBJECTS};
use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::{Compute, Failure, Shared};

/// Stores of one execution under way at once.
const STORES: usize = 4;

/// Returns the output that this destination takes of a program.
pub(super) fn wanted(destination: &Destination) -> Wanted {
    match destination {
        Destination::Completion => Wanted::Result,
        Destination::Memory { .. } => Wanted::Bytes,
        Destination::KvChunks { chunk_bytes, .. } => Wanted::Chunks(*chunk_bytes),
    }
}

/// Most memory that the output of an execution that is not serial takes: what is gathered, the
/// chunk that is being filled, and what is being stored.
pub(super) fn held_bytes(destination: &Destination) -> u64 {
    let Some(chunk_bytes) = wanted(destination).chunk_bytes() else { return 0 };
    let (full, chunk) = (FULL_BYTES as u64, chunk_bytes as u64);
    full + 2 * chunk + full.max(chunk)
}

/// Returns an empty output for this destination. A serial execution gathers its whole output, up to
/// the number of bytes that an execution may read.
pub(super) fn gather(destination: &Destination, serial: bool) -> Output {
    let whole = usize::try_from(SOURCE_BYTES_MAX).expect("256 MiB");
    let full_bytes = if serial { whole } else { FULL_BYTES };
    wanted(destination).output().with_full_bytes(full_bytes)
}

/// Stores what was gathered.
pub(super) struct Drain {
    kv: Rc<Kv>,
    shared: Arc<Shared>,
    destination: Destination,
    chunks: u32,
    /// Number of bytes written to memory.
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
                let reason = format!("namespace {nsid} takes no output of programs");
                return Err(Failure::new(Status::INVALID_NAMESPACE, reason));
            }
        }
        let (kv, shared) = (Rc::clone(&compute.kv), Arc::clone(&compute.shared));
        let (under_way, under_way_bytes) = (VecDeque::new(), 0);
        Ok(Self { kv, shared, destination, chunks: 0, remembered: 0, under_way, under_way_bytes })
    }

    /// Begins to store the chunks that are full, and if this is the `last` call, the rest as well.
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
        self.under_way.push_back((bytes, spawn(Class::Execution, stored)));
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

    /// Waits for all stores, after a failure too, so that none outlives its execution, and makes
    /// them durable.
    pub(super) async fn finish(mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while !self.under_way.is_empty() {
            result = result.and(self.wait_for_one().await);
        }
        if let (Destination::KvChunks { nsid, .. }, Ok(()), 1..) =
            (self.destination, &result, self.chunks)
        {
            let nsid = u16::try_from(nsid).expect("2 or 3");
            self.kv.flush_namespace(nsid).await.map_err(|status| {
                Failure::new(status, format!("output: it is not durable: {status}"))
            })?;
        }
        result
    }
}
