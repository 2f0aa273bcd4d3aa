//! The compute namespace: runs programs where their sources lie.
//!
//! Never: a program's arithmetic (that is `kernels`). Invariant: at most [`EXECUTIONS_MAX`]
//! executions run on a core, so the memory they take is bounded.
//!
//! | module | what it is |
//! |---|---|
//! | `program` | what a program is: steps over inputs, towards an output |
//! | `inputs` | what a program reads: streams of bytes at hand |
//! | `output` | what a program writes, and where that goes |
//! | `sources` | an execution's sources, read ahead |
//! | `execute` | one execution, from its first read to its last write |
//! | `builtin` | the programs of every drive |

mod builtin;
mod execute;
mod inputs;
mod output;
mod program;
mod sources;

use std::rc::Rc;

use csd_nvme::execute::Execution;
use csd_nvme::status::Status;
use csd_reactor::Semaphore;

use super::block::Block;
use super::kv::Kv;

pub use builtin::programs;
pub use execute::{Meter, Report};
pub use inputs::Inputs;
pub use output::Output;
pub use program::{Failure, Program, Step};

/// Executions that run at once on a core; more wait.
pub const EXECUTIONS_MAX: usize = 4;

/// The compute namespace as one core sees it.
#[derive(Clone)]
pub struct Compute {
    block: Block,
    kv: Rc<Kv>,
    running: Semaphore,
}

impl Compute {
    /// A namespace whose sources are these namespaces.
    pub fn new(block: Block, kv: Rc<Kv>) -> Self {
        Self { block, kv, running: Semaphore::new(EXECUTIONS_MAX) }
    }

    /// Runs the program at `index` on a payload of Execute Program; the result for dwords 0 and 1.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn execute(&self, index: u16, payload: &[u8]) -> Result<u64, Status> {
        let programs = programs();
        let program = programs.get(usize::from(index)).ok_or(Status::INVALID_PROGRAM_INDEX)?;
        let execution = Execution::parse(payload).map_err(|_| Status::INVALID_PROGRAM_DATA)?;
        if execution.program != program.pid() {
            return Err(Status::INVALID_PROGRAM_INDEX);
        }
        let permit = self.running.acquire(1).await;
        let report = self.run(&execution, builtin::start(&execution)).await;
        drop(permit);
        report.result.map_err(|failure| failure.status)
    }
}
