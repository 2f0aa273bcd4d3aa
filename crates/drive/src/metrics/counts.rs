//! Counts of commands: number, bytes and latency by operation, errors by status.
//!
//! Each core counts for itself, with plain loads and stores; a reader adds up. Latency is measured
//! only when there is an endpoint ([`Metrics::measure`]), because reading the clock costs a tenth
//! of a small read. No lock is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use csd_nvme::capsule::Sqe;
use csd_nvme::opcode::{Cp, Kv, Nvm, Slm};
use csd_nvme::status::Status;
use csd_nvme::vendor::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};
use csd_reactor::{Instant, now};

use crate::controller::CoreCounters;
use crate::side::Side;

/// Number of bytes that is counted for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// None, because the command moves no data of a host, or only a list.
    None,
    /// Length of its data.
    Data,
    /// Its result (the length of the value), at most the length of its data.
    Result,
}

/// An operation with counters of its own.
#[derive(Debug)]
pub(super) struct Op {
    nsid: u32,
    opcode: u8,
    /// Label of the namespace.
    pub(super) namespace: &'static str,
    /// Label of the operation.
    pub(super) name: &'static str,
    /// Number of bytes that is counted for it.
    pub(super) bytes: Bytes,
}

const fn block(opcode: Nvm, name: &'static str, bytes: Bytes) -> Op {
    Op { nsid: NSID_BLOCK, opcode: opcode.0, namespace: "block", name, bytes }
}

const fn kv(opcode: Kv, name: &'static str, bytes: Bytes) -> Op {
    Op { nsid: NSID_KV, opcode: opcode.0, namespace: "kv", name, bytes }
}

const fn objects(opcode: Kv, name: &'static str, bytes: Bytes) -> Op {
    Op { nsid: NSID_OBJECTS, opcode: opcode.0, namespace: "objects", name, bytes }
}

const fn memory(opcode: Slm, name: &'static str, bytes: Bytes) -> Op {
    Op { nsid: NSID_MEMORY, opcode: opcode.0, namespace: "memory", name, bytes }
}

const fn compute(opcode: Cp, name: &'static str, bytes: Bytes) -> Op {
    Op { nsid: NSID_COMPUTE, opcode: opcode.0, namespace: "compute", name, bytes }
}

/// Every operation with counters of its own. The first one stands for all others.
pub(super) const OPS: [Op; 31] = [
    Op { nsid: 0, opcode: 0, namespace: "other", name: "other", bytes: Bytes::None },
    block(Nvm::FLUSH, "flush", Bytes::None),
    block(Nvm::WRITE, "write", Bytes::Data),
    block(Nvm::READ, "read", Bytes::Data),
    block(Nvm::COMPARE, "compare", Bytes::Data),
    block(Nvm::WRITE_ZEROES, "write_zeroes", Bytes::None),
    block(Nvm::DATASET_MANAGEMENT, "dataset_management", Bytes::None),
    block(Nvm::VERIFY, "verify", Bytes::None),
    block(Nvm::COPY, "copy", Bytes::None),
    kv(Kv::FLUSH, "flush", Bytes::None),
    kv(Kv::STORE, "store", Bytes::Data),
    kv(Kv::RETRIEVE, "retrieve", Bytes::Result),
    kv(Kv::LIST, "list", Bytes::None),
    kv(Kv::DELETE, "delete", Bytes::None),
    kv(Kv::EXIST, "exist", Bytes::None),
    kv(Kv::STORE_NEWER, "store_newer", Bytes::Data),
    objects(Kv::FLUSH, "flush", Bytes::None),
    objects(Kv::STORE, "store", Bytes::Data),
    objects(Kv::RETRIEVE, "retrieve", Bytes::Result),
    objects(Kv::LIST, "list", Bytes::None),
    objects(Kv::DELETE, "delete", Bytes::None),
    objects(Kv::EXIST, "exist", Bytes::None),
    objects(Kv::STORE_NEWER, "store_newer", Bytes::Data),
    objects(Kv::LIST_FOLDER, "list_folder", Bytes::None),
    memory(Slm::COPY, "copy", Bytes::None),
    memory(Slm::READ, "read", Bytes::Data),
    memory(Slm::FILL, "fill", Bytes::None),
    memory(Slm::WRITE, "write", Bytes::Data),
    compute(Cp::EXECUTE_PROGRAM, "execute", Bytes::Data),
    compute(Cp::TUNNEL_SEND, "tunnel_send", Bytes::Data),
    compute(Cp::TUNNEL_RECEIVE, "tunnel_receive", Bytes::Result),
];

/// Number above every namespace identifier that has operations.
const NSIDS: usize = NSID_COMPUTE as usize + 1;

/// Index into [`OPS`] by namespace and opcode.
static INDEX: [[u8; 256]; NSIDS] = {
    let mut index = [[0; 256]; NSIDS];
    let mut op = 1;
    while op < OPS.len() {
        // Fewer operations than 256.
        index[OPS[op].nsid as usize][OPS[op].opcode as usize] = op.to_le_bytes()[0];
        op += 1;
    }
    index
};

/// Upper bounds of the latency buckets, microseconds; the last bucket has none.
pub(super) const BUCKETS_US: [u64; 15] = [
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000,
    2_000_000,
];

/// Status Code Type has 3 bits, Status Code 8.
pub(super) const STATUSES: usize = 1 << 11;

#[derive(Debug, Default)]
pub(super) struct OpCounters {
    pub(super) done: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) latency_ns: AtomicU64,
    pub(super) buckets: [AtomicU64; BUCKETS_US.len() + 1],
}

/// Counts of one core. Only that core writes them; every core reads them.
#[derive(Debug)]
pub struct CoreMetrics {
    // Both by side.
    pub(super) ops: [[OpCounters; OPS.len()]; 2],
    pub(super) errors: [Vec<AtomicU64>; 2],
    measured: Arc<AtomicBool>,
}

/// A command that began and is not counted yet.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    side: usize,
    op: usize,
    bytes_max: u32,
    at: Option<Instant>,
}

/// Returns true for commands that wait for an event.
fn is_parked(sqe: &Sqe) -> bool {
    sqe.nsid() == NSID_COMPUTE && Cp(sqe.opcode()) == Cp::TUNNEL_RECEIVE
}

impl CoreMetrics {
    /// Begins a command of this side.
    pub fn begin(&self, sqe: &Sqe, side: Side) -> Begun {
        let row = usize::try_from(sqe.nsid()).ok().and_then(|nsid| INDEX.get(nsid));
        Begun {
            side: side as usize,
            op: row.map_or(0, |row| usize::from(row[usize::from(sqe.opcode())])),
            bytes_max: sqe.sgl().length(),
            // A Receive waits for packets, which says nothing of the drive.
            at: (self.measured.load(Relaxed) && !is_parked(sqe)).then(now),
        }
    }

    /// Counts a command that succeeded with this result.
    pub fn end(&self, begun: Begun, result: u64) {
        let counters = &self.ops[begun.side][begun.op];
        CoreCounters::add(&counters.done, 1);
        let data = u64::from(begun.bytes_max);
        match OPS[begun.op].bytes {
            Bytes::None => {}
            Bytes::Data => CoreCounters::add(&counters.bytes, data),
            Bytes::Result => CoreCounters::add(&counters.bytes, result.min(data)),
        }
        self.time(begun);
    }

    /// Counts a command that failed.
    pub fn fail(&self, begun: Begun, status: Status) {
        CoreCounters::add(&self.ops[begun.side][begun.op].done, 1);
        CoreCounters::add(&self.errors[begun.side][usize::from(status.0) % STATUSES], 1);
        self.time(begun);
    }

    fn time(&self, begun: Begun) {
        let Some(at) = begun.at else { return };
        let spent = now().since(at);
        let counters = &self.ops[begun.side][begun.op];
        let us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.iter().position(|most| us <= *most).unwrap_or(BUCKETS_US.len());
        CoreCounters::add(&counters.buckets[bucket], 1);
        let ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        CoreCounters::add(&counters.latency_ns, ns);
    }
}

/// Counts of all cores.
#[derive(Debug)]
pub struct Metrics {
    cores: Vec<Arc<CoreMetrics>>,
    measured: Arc<AtomicBool>,
    inside: AtomicBool,
}

impl Metrics {
    /// Makes counts for this many cores that do not measure latency yet.
    pub fn new(cores: usize) -> Self {
        let measured = Arc::<AtomicBool>::default();
        let core = || CoreMetrics {
            ops: Default::default(),
            errors: [(); 2].map(|()| (0..STATUSES).map(|_| AtomicU64::new(0)).collect()),
            measured: Arc::clone(&measured),
        };
        let cores = (0..cores).map(|_| Arc::new(core())).collect();
        Self { cores, measured, inside: AtomicBool::new(false) }
    }

    /// Notes that the drive serves its inside, too: the page then has lines of it.
    pub fn serve_inside(&self) {
        self.inside.store(true, Relaxed);
    }

    /// Returns the sides that the drive serves.
    pub(super) fn sides(&self) -> &'static [Side] {
        if self.inside.load(Relaxed) { &Side::ALL } else { &Side::ALL[..1] }
    }

    /// Returns the counts of a core.
    pub fn core(&self, index: usize) -> Arc<CoreMetrics> {
        Arc::clone(&self.cores[index])
    }

    /// Starts to measure latency.
    pub fn measure(&self) {
        self.measured.store(true, Relaxed);
    }

    /// Sums a counter over all cores.
    pub(super) fn sum(&self, counter: impl Fn(&CoreMetrics) -> &AtomicU64) -> u64 {
        self.cores.iter().map(|core| counter(core).load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_line() {
        for (index, op) in OPS.iter().enumerate().skip(1) {
            let found = INDEX[op.nsid as usize][usize::from(op.opcode)];
            assert_eq!(usize::from(found), index, "{}", op.name);
        }
        assert!(BUCKETS_US.is_sorted());
    }

    #[test]
    fn counts_are_those_of_the_commands() {
        let metrics = Metrics::new(2);
        let mut retrieve = Sqe::zeroed();
        retrieve.set_opcode(0x02).set_nsid(NSID_KV);
        for index in 0..2 {
            let core = metrics.core(index);
            let mut begun = core.begin(&retrieve, Side::Outside);
            begun.bytes_max = 1000;
            core.end(begun, 300);
            core.end(begun, 5000);
            core.fail(begun, Status::UNRECOVERED_ERROR);
            let inside = core.begin(&retrieve, Side::Inside);
            core.fail(inside, Status::INVALID_FIELD);
        }
        let op = usize::from(INDEX[NSID_KV as usize][0x02]);
        assert_eq!(metrics.sum(|core| &core.ops[0][op].done), 6);
        assert_eq!(metrics.sum(|core| &core.ops[0][op].bytes), 2 * 1300);
        assert_eq!(metrics.sum(|core| &core.ops[1][op].done), 2);
        assert_eq!(metrics.sum(|core| &core.errors[0][0x88]), 2);
        assert_eq!(metrics.sum(|core| &core.errors[1][0x88]), 0);
        assert_eq!(metrics.sum(|core| &core.errors[1][0x02]), 2);
        let mut unknown = Sqe::zeroed();
        unknown.set_opcode(0xFF).set_nsid(u32::MAX);
        assert_eq!(metrics.core(0).begin(&unknown, Side::Outside).op, 0);
    }
}
