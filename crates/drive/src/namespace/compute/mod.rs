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

    /// Runs the program at `index` on a payload of Execute Program: the result for dwords 0 and 1,
    /// or the status to answer with, and what it took.
    pub async fn execute(&self, index: u16, payload: &[u8]) -> Report {
        let (execution, program) = match self.admit(index, payload) {
            Ok(admitted) => admitted,
            Err(failure) => return Report::refused(failure),
        };
        // What is loaded as a whole may take as much memory as all that run side by side.
        let share = if execution.serial { EXECUTIONS_MAX } else { 1 };
        let permit = self.running.acquire(share).await;
        let report = self.run(&execution, program).await;
        drop(permit);
        report
    }

    /// The execution that a payload holds, and its program before its first step.
    fn admit(&self, index: u16, payload: &[u8]) -> Result<(Execution, Box<dyn Program>), Failure> {
        let programs = programs();
        let program = programs.get(usize::from(index)).ok_or_else(|| {
            let reason = format!("there is no program at index {index}");
            Failure::new(Status::INVALID_PROGRAM_INDEX, reason)
        })?;
        let execution = Execution::parse(payload).map_err(Failure::misuse)?;
        if execution.program != program.pid() {
            let reason = format!("index {index} is not program {}", execution.program);
            return Err(Failure::new(Status::INVALID_PROGRAM_INDEX, reason));
        }
        let program = builtin::start(&execution)?;
        Ok((execution, program))
    }
}
