//! What is counted of commands: number, bytes and latency by operation, errors by status.
//!
//! Each core counts for itself, with plain loads and stores; whoever asks adds up. Latency is
//! measured only when somebody can ask ([`Metrics::measure`]), because a look at the clock costs
//! what a tenth of a small read costs. Never: a lock.

mod endpoint;

pub use endpoint::{render, serve};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use csd_nvme::capsule::Sqe;
use csd_nvme::status::Status;
use csd_reactor::{Instant, now};

use crate::controller::CoreCounters;
use crate::namespace::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};

/// An operation as it is counted: namespace, opcode, their names, and whether it moves data.
struct Op(u32, u8, &'static str, &'static str, bool);

const BLOCK: &str = "block";
const KV: &str = "kv";
const OBJECTS: &str = "objects";
const MEMORY: &str = "memory";

/// Every operation that has a line of its own; what is not here is `other`.
const OPS: [Op; 26] = [
    Op(0, 0, "other", "other", false),
    Op(NSID_BLOCK, 0x00, BLOCK, "flush", false),
    Op(NSID_BLOCK, 0x01, BLOCK, "write", true),
    Op(NSID_BLOCK, 0x02, BLOCK, "read", true),
    Op(NSID_BLOCK, 0x05, BLOCK, "compare", true),
    Op(NSID_BLOCK, 0x08, BLOCK, "write_zeroes", false),
    Op(NSID_BLOCK, 0x09, BLOCK, "dataset_management", false),
    Op(NSID_BLOCK, 0x0C, BLOCK, "verify", false),
    Op(NSID_BLOCK, 0x19, BLOCK, "copy", false),
    Op(NSID_KV, 0x00, KV, "flush", false),
    Op(NSID_KV, 0x01, KV, "store", true),
    Op(NSID_KV, 0x02, KV, "retrieve", true),
    Op(NSID_KV, 0x06, KV, "list", false),
    Op(NSID_KV, 0x10, KV, "delete", false),
    Op(NSID_KV, 0x14, KV, "exist", false),
    Op(NSID_OBJECTS, 0x00, OBJECTS, "flush", false),
    Op(NSID_OBJECTS, 0x01, OBJECTS, "store", true),
    Op(NSID_OBJECTS, 0x02, OBJECTS, "retrieve", true),
    Op(NSID_OBJECTS, 0x06, OBJECTS, "list", false),
    Op(NSID_OBJECTS, 0x10, OBJECTS, "delete", false),
    Op(NSID_OBJECTS, 0x14, OBJECTS, "exist", false),
    Op(NSID_MEMORY, 0x01, MEMORY, "copy", false),
    Op(NSID_MEMORY, 0x02, MEMORY, "read", true),
    Op(NSID_MEMORY, 0x04, MEMORY, "fill", false),
    Op(NSID_MEMORY, 0x05, MEMORY, "write", true),
    Op(NSID_COMPUTE, 0x01, "compute", "execute", true),
];

/// Namespace ids that have operations are below this.
const NSIDS: usize = 6;

/// Index into [`OPS`] by namespace and opcode.
static INDEX: [[u8; 256]; NSIDS] = {
    let mut index = [[0; 256]; NSIDS];
    let mut op = 1;
    while op < OPS.len() {
        // Fewer operations than 256.
        index[OPS[op].0 as usize][OPS[op].1 as usize] = op.to_le_bytes()[0];
        op += 1;
    }
    index
};

/// Upper bounds of the latency buckets, microseconds; the last bucket has none.
const BUCKETS_US: [u64; 15] = [
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000,
    2_000_000,
];

/// Status Code Type has 3 bits, Status Code 8.
const STATUSES: usize = 1 << 11;

#[derive(Debug, Default)]
struct OpCounters {
    done: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
}

/// What one core counts: only that core writes it, anyone reads.
#[derive(Debug)]
pub struct CoreMetrics {
    ops: [OpCounters; OPS.len()],
    errors: Vec<AtomicU64>,
    measured: Arc<AtomicBool>,
}

/// A command that is being counted.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    op: usize,
    bytes_max: u32,
    at: Option<Instant>,
}

impl CoreMetrics {
    /// A command begins.
    pub fn begin(&self, sqe: &Sqe) -> Begun {
        let row = usize::try_from(sqe.nsid()).ok().and_then(|nsid| INDEX.get(nsid));
        Begun {
            op: row.map_or(0, |row| usize::from(row[usize::from(sqe.opcode())])),
            bytes_max: sqe.sgl().length(),
            at: self.measured.load(Relaxed).then(now),
        }
    }

    /// It has ended well, with this result: of a Retrieve that is the value's length.
    pub fn end(&self, begun: Begun, result: u64) {
        let Op(_, _, _, name, has_data) = OPS[begun.op];
        let counters = &self.ops[begun.op];
        CoreCounters::add(&counters.done, 1);
        if has_data {
            let most = u64::from(begun.bytes_max);
            let bytes = if name == "retrieve" { result.min(most) } else { most };
            CoreCounters::add(&counters.bytes, bytes);
        }
        self.time(begun);
    }

    /// It has failed.
    pub fn fail(&self, begun: Begun, status: Status) {
        CoreCounters::add(&self.ops[begun.op].done, 1);
        CoreCounters::add(&self.errors[usize::from(status.0) % STATUSES], 1);
        self.time(begun);
    }

    fn time(&self, begun: Begun) {
        let Some(at) = begun.at else { return };
        let spent = now().since(at);
        let counters = &self.ops[begun.op];
        let us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.iter().position(|most| us <= *most).unwrap_or(BUCKETS_US.len());
        CoreCounters::add(&counters.buckets[bucket], 1);
        let ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        CoreCounters::add(&counters.latency_ns, ns);
    }
}

/// What all cores count.
#[derive(Debug)]
pub struct Metrics {
    cores: Vec<Arc<CoreMetrics>>,
    measured: Arc<AtomicBool>,
}

impl Metrics {
    /// For this many cores; latency is not measured yet.
    pub fn new(cores: usize) -> Self {
        let measured = Arc::<AtomicBool>::default();
        let core = || CoreMetrics {
            ops: Default::default(),
            errors: (0..STATUSES).map(|_| AtomicU64::new(0)).collect(),
            measured: Arc::clone(&measured),
        };
        Self { cores: (0..cores).map(|_| Arc::new(core())).collect(), measured }
    }

    /// What a core counts.
    pub fn core(&self, index: usize) -> Arc<CoreMetrics> {
        Arc::clone(&self.cores[index])
    }

    /// Measures latency from now on.
    pub fn measure(&self) {
        self.measured.store(true, Relaxed);
    }

    fn sum(&self, counter: impl Fn(&CoreMetrics) -> &AtomicU64) -> u64 {
        self.cores.iter().map(|core| counter(core).load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_line() {
        for (index, op) in OPS.iter().enumerate().skip(1) {
            assert_eq!(usize::from(INDEX[op.0 as usize][usize::from(op.1)]), index, "{}", op.3);
        }
        assert!(BUCKETS_US.is_sorted());
    }

    #[test]
    fn what_is_counted_is_what_happened() {
        let metrics = Metrics::new(2);
        let mut retrieve = Sqe::zeroed();
        retrieve.set_opcode(0x02).set_nsid(NSID_KV);
        for index in 0..2 {
            let core = metrics.core(index);
            let mut begun = core.begin(&retrieve);
            begun.bytes_max = 1000;
            core.end(begun, 300);
            core.end(begun, 5000);
            core.fail(begun, Status::UNRECOVERED_ERROR);
        }
        let op = usize::from(INDEX[NSID_KV as usize][0x02]);
        assert_eq!(metrics.sum(|core| &core.ops[op].done), 6);
        assert_eq!(metrics.sum(|core| &core.ops[op].bytes), 2 * 1300);
        assert_eq!(metrics.sum(|core| &core.errors[0x88]), 2);
        let mut unknown = Sqe::zeroed();
        unknown.set_opcode(0xFF).set_nsid(u32::MAX);
        assert_eq!(metrics.core(0).begin(&unknown).op, 0);
    }
}
