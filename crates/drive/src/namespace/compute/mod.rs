//! The compute namespace: runs programs where their sources lie.
//!
//! Programs and kernels are in `csd-kernels`. Invariant: the memory that executions take on a
//! core is bounded, whether they wait or run (`room`).
//!
//! | module | what it is |
//! |---|---|
//! | `output` | stores the output of an execution |
//! | `sources` | an execution's sources, read ahead |
//! | `call` | what Execute Program asks for |
//! | `parts` | how an execution is cut for several cores |
//! | `spread` | its parts, side by side on them |
//! | `execute` | one execution on one core, from its first read to its last write |
//! | `admin` | loading, activating and unloading programs; memory range sets |
//! | `room` | what the executions of a core may hold at once |
//! | `brake` | ending executions early |
//! | `builtin` | the built-in programs |
//! | `library` | programs that hosts load |
//! | `failure` | why an execution failed |
//! | `ranges` | memory range sets |
//! | `here` | a program that a host runs under the limits of a drive |

mod admin;
mod brake;
mod builtin;
mod call;
mod execute;
mod failure;
mod here;
mod library;
mod output;
mod parts;
mod ranges;
mod room;
mod sources;
mod spread;

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::compute::Controls;
use csd_nvme::status::Status;

use brake::Watch;
use call::Prepared;
use room::Room;

use super::block::Block;
use super::kv::Kv;
use crate::drive::Shared;
use crate::log::Level;

pub use admin::run as admin;
pub use brake::{Brake, Caller, Executions, Listed, UnderWay};
pub use builtin::programs;
pub use call::Call;
pub use execute::{Meter, Report};
pub use failure::Failure;
pub use here::run_within;
pub use library::{Admission, Library, digest};
pub use ranges::RangeSets;
pub use room::EXECUTIONS_MAX;

/// Whose programs and range sets a host's are: its own, by its NQN, or all hosts' together.
fn owner(shared: bool, host: &str) -> &str {
    if shared { "" } else { host }
}

/// The compute namespace as one core sees it.
#[derive(Clone)]
pub struct Compute {
    block: Block,
    kv: Rc<Kv>,
    drive: Arc<Shared>,
    room: Room,
}

impl Compute {
    /// A namespace whose sources are these namespaces, and the memory of the drive.
    pub fn new(block: Block, kv: Rc<Kv>, drive: Arc<Shared>) -> Self {
        let room = Room::new(&drive.limits);
        Self { block, kv, drive, room }
    }

    /// That a namespace may be changed by what a command of this opcode changes.
    fn may_change(&self, nsid: u32, opcode: u8) -> Result<(), Failure> {
        match self.drive.settings.refuses(nsid, opcode) {
            true => Err(Status::NAMESPACE_WRITE_PROTECTED.into()),
            false => Ok(()),
        }
    }

    /// Notes that a host asks for an execution, which it may abort from here on. The host waits
    /// from here on, too: for room for its data, for its turn, and for the program.
    pub fn begin(&self, caller: Caller, controls: Controls) -> UnderWay {
        let listed = self.drive.executions.begin(caller);
        // A host that asks for more than there is is refused when its data is looked at.
        let limits = self.drive.limits_of(controls).unwrap_or(self.drive.limits);
        UnderWay::new(listed, limits)
    }

    /// Runs a program: its result for dwords 0 and 1, or why there is none, and what it took.
    pub async fn execute(&self, under_way: &UnderWay, call: &Call<'_>, data: Vec<u8>) -> Report {
        let report = match self.prepare(call, data) {
            Ok(prepared) => {
                let report = self.run_prepared(&prepared, under_way.brake()).await;
                if report.result.is_ok() {
                    let written = report.meter.written_bytes;
                    prepared.count(&self.drive.memory, call.controls, written);
                }
                report
            }
            Err(failure) => Report::failed(0, failure),
        };
        if let Err(failure) = &report.result {
            self.told(call, failure);
        }
        report
    }

    async fn run_prepared(&self, prepared: &Prepared, brake: &Brake) -> Report {
        let execution = &prepared.execution;
        let Some(loaded) = &prepared.loaded else {
            return match self.spread(execution, brake).await {
                Some(report) => report,
                None => self.in_turn((execution, 0), brake, || prepared.start()).await,
            };
        };
        let mut ticks = None;
        let start = || {
            ticks = Some(Watch::ticks(Arc::clone(&loaded.engine)));
            prepared.start()
        };
        self.in_turn((execution, prepared.limits.memory_bytes), brake, start).await
    }

    /// Tells why an execution failed: a status cannot.
    fn told(&self, call: &Call<'_>, failure: &Failure) {
        let (controller, queue, command) = call.caller;
        let fields = [
            ("index", call.index.to_string()),
            ("controller", controller.to_string()),
            ("queue", queue.to_string()),
            ("command", command.to_string()),
            ("status", failure.status.to_string()),
            ("reason", failure.reason.clone()),
        ];
        self.drive.log().write_rated(Level::Warn, "execution failed", &fields);
    }
}
