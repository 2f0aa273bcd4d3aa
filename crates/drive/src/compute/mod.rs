//! The compute namespace: runs programs where their sources lie.
//!
//! Programs and kernels are in `csd-kernels`. Invariant: the memory that the executions of a core
//! take is bounded, whether they wait or run (`capacity`).
//!
//! | module | contents |
//! |---|---|
//! | `output` | stores the output of an execution |
//! | `sources` | an execution's sources, read ahead |
//! | `reads` | the reads of sources, and the digests that they must have |
//! | `key_source` | the keys of a namespace as a source |
//! | `call` | the parameters of Execute Program |
//! | `parts` | the split of an execution for several cores |
//! | `parallel` | an execution on several cores |
//! | `adapting` | executions whose division the drive chooses while it works |
//! | `combine` | gathers pieces from this drive and its peers, and stores sums of products |
//! | `piece_io` | reads and stores of pieces on this drive and its peers |
//! | `pages` | compares pages of pieces with the checksums of page lists |
//! | `execute` | one execution on one core, from its first read to its last write |
//! | `admin` | loading, activating and unloading programs; memory range sets |
//! | `capacity` | limits of the executions of a core |
//! | `cancel` | cancellation of executions |
//! | `builtin` | the built-in programs |
//! | `library` | programs that hosts load |
//! | `failure` | failures of executions, as statuses and in words |
//! | `ranges` | memory range sets |
//! | `shared` | state that executions share |
//! | `run_within` | a program that a host runs under the limits of a drive |

mod adapting;
mod admin;
mod builtin;
mod call;
mod cancel;
mod capacity;
mod combine;
mod execute;
mod failure;
mod key_source;
mod library;
mod output;
mod pages;
mod parallel;
mod parts;
mod piece_io;
mod ranges;
mod reads;
mod run_within;
mod shared;
mod sources;

use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::Kv;
use csd_nvme::compute::Controls;
use csd_nvme::vendor::combine::PROGRAM_ID as COMBINE;
use csd_nvme::vendor::pages::PROGRAM_ID as PAGES;
use csd_nvme::vendor::{NSID_KV, NSID_OBJECTS};
use csd_reactor::set_core_local;

use adapting::Adapting;
use call::Prepared;
use cancel::Watch;
use capacity::Capacity;

use crate::log::Level;
use crate::namespace::block::Block;
use crate::peers::Connections;

pub use builtin::programs;
pub use call::Call;
pub use cancel::{Caller, CancelToken, Executions, Listed, UnderWay};
pub use capacity::EXECUTIONS_MAX;
pub use execute::{Meter, Report};
pub use failure::Failure;
pub use library::{Admission, Library, digest};
pub use ranges::RangeSets;
pub use run_within::run_within;
pub use shared::Shared;

/// The compute namespace as one core sees it.
#[derive(Clone)]
pub struct Compute {
    block: Block,
    kv: Rc<Kv>,
    shared: Arc<Shared>,
    capacity: Capacity,
    adapting: Rc<Adapting>,
    connections: Rc<Connections>,
}

impl Compute {
    /// Makes the namespace of this core and keeps it as a core-local value, for parts of executions
    /// of other cores. Its sources are these namespaces and the drive's memory.
    pub fn start(block: Block, kv: Rc<Kv>, shared: Shared) -> Rc<Self> {
        let capacity = Capacity::new(&shared.limits);
        let (shared, adapting) = (Arc::new(shared), Adapting::new());
        let connections = Rc::default();
        let this = Rc::new(Self { block, kv, shared, capacity, adapting, connections });
        set_core_local(Rc::clone(&this));
        this
    }

    /// Begins an execution that a host asks for. From here on the host may abort it, and its time
    /// on the clock runs: it may wait for memory, for its turn, and for the program.
    pub fn begin(&self, caller: Caller, controls: Controls) -> UnderWay {
        let listed = self.shared.executions.begin(caller);
        // Limits that are too high are refused when the data is parsed.
        let limits = self.shared.limits_of(controls).unwrap_or(self.shared.limits);
        UnderWay::new(listed, limits)
    }

    /// Runs a program. The report has its result for dwords 0 and 1, or the failure.
    pub async fn execute(&self, under_way: &UnderWay, call: &Call<'_>, data: Vec<u8>) -> Report {
        let report = match self.prepare(call, data) {
            Ok(prepared) => {
                let report = self.run_prepared(&prepared, under_way.token()).await;
                if report.result.is_ok() {
                    let written = report.meter.written_bytes;
                    prepared.write_count(&self.shared.memory, call.controls, written);
                }
                report
            }
            Err(failure) => Report::failed(0, failure),
        };
        if let Err(failure) = &report.result {
            self.log_failure(call, failure);
        }
        report
    }

    async fn run_prepared(&self, prepared: &Prepared, cancel: &CancelToken) -> Report {
        let execution = &prepared.execution;
        let Some(loaded) = &prepared.loaded else {
            if execution.program == COMBINE {
                return self.combine(execution, cancel).await;
            }
            if execution.program == PAGES {
                return self.pages(execution, cancel).await;
            }
            return match self.run_parallel(execution, cancel).await {
                Some(report) => report,
                None => self.in_turn((execution, 0), cancel, || prepared.start()).await,
            };
        };
        let mut ticks = None;
        let start = || {
            ticks = Some(Watch::ticks(Arc::clone(&loaded.engine)));
            prepared.start()
        };
        self.in_turn((execution, prepared.limits.memory_bytes), cancel, start).await
    }

    /// Logs the reason of a failure, for which a status has no space.
    fn log_failure(&self, call: &Call<'_>, failure: &Failure) {
        let (controller, queue, command) = call.caller;
        let fields = [
            ("index", call.index.to_string()),
            ("controller", controller.to_string()),
            ("queue", queue.to_string()),
            ("command", command.to_string()),
            ("status", failure.status.to_string()),
            ("reason", failure.reason.clone()),
        ];
        self.shared.log.write_rated(Level::Warn, "execution failed", &fields);
    }
}

/// Checks that a namespace is a kv namespace.
fn values_of(nsid: u32) -> Result<u16, Failure> {
    match nsid {
        NSID_OBJECTS | NSID_KV => Ok(u16::try_from(nsid).expect("2 or 3")),
        _ => Err(Failure::no_namespace("key-value", nsid)),
    }
}
