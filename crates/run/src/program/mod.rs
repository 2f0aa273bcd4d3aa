//! Users' programs over stored objects: chunk by chunk, on the drives, on the host, or on both.
//!
//! Each chunk, or each [`Group`] of chunks, is one execution, so its answer does not depend on the
//! place or on concurrent work. Answers are folded in the order of the chunks, by the program's own
//! function on the host, or else concatenated; or a [`Consumer`] takes each when its turn has come.
//! Contains no engine: the caller supplies a [`Sandbox`]. Invariants: exactly one execution sees
//! each record of the objects, and sees it whole; every mode gives the same bytes.
//!
//! Modules: `task` checks program and objects, `units` divides them, `lines` keeps lines whole,
//! `drives` and `host` run chunks, `sources` says what a drive reads, `guest` is the program in a
//! drive, `owner` finds programs of killed runs, `gather` folds, `native` is a built-in kernel,
//! `context` is the state of a run, `core` runs a core.

mod context;
mod core;
mod drives;
mod gather;
mod guest;
mod host;
mod lines;
mod native;
mod owner;
mod sources;
mod task;
mod units;

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

use csd_initiator::Options;
use csd_reactor::Buffer;
use csd_store::array::Plan;
use csd_store::catalogue;
use csd_store::object::Progress;

use crate::error::Error;
use crate::{Failed, Mode, Share, cores};

pub use gather::HELD_BYTES_MAX;
pub use native::Native;
pub use task::{LINE_BYTES_MAX, Limits, Records, Task};
pub use units::Group;

/// Answer of an execution, or of several that were folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The program's result.
    pub result: u64,
    /// Bytes that it wrote.
    pub output: Vec<u8>,
}

/// A function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The program's entry point.
    Run,
    /// Combines two answers; each is a stream: its result in 8 bytes, then its output.
    Fold,
}

/// A running execution.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, String>> + 'a>>;

/// A program and its engine on this host; drives get the same module, parameters and limits.
pub trait Sandbox: Send + Sync {
    /// Returns the identifier of the program, if it is built into drives: then they are sent no
    /// bytes of it, and apply their own limits.
    fn built_in(&self) -> Option<u64> {
        None
    }
    /// Returns the name of the program's type, as drives list it.
    fn type_name(&self) -> &str;
    /// Returns the program's bytes, for drives.
    fn module(&self) -> &[u8];
    /// Returns the kind of records in its inputs.
    fn records(&self) -> Records;
    /// Returns true if it can fold.
    fn folds(&self) -> bool;
    /// Returns true if it can write bytes.
    fn emits(&self) -> bool;
    /// Returns true if the host may do what a drive refuses or fails to do, such as an answer that
    /// is longer than its room.
    fn host_may_do(&self) -> bool {
        false
    }
    /// Runs one of its functions over streams, each in chunks; fails with a reason in words.
    fn run(
        &self,
        function: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        limits: Limits,
    ) -> Running<'_>;
}

/// Takes the answers of chunks, in the order of the chunks.
pub trait Consumer: Send + Sync {
    /// Takes the next answer; one call at a time. It may block: it is called on a compute thread.
    /// `Break` ends the run, which needs no further answers.
    fn take(&self, answer: Answer) -> ControlFlow<()>;
}

/// Options of a run.
#[derive(Clone)]
pub struct RunOptions {
    /// Mode of the run.
    pub mode: Mode,
    /// Number of host cores that work; [`Mode::Drives`] uses one.
    pub cores: usize,
    /// Callback for the number of bytes processed.
    pub progress: Progress,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Mode of the run.
    pub mode: Mode,
    /// Number of host cores that the run used.
    pub cores: usize,
    /// The answer.
    pub answer: Answer,
    /// Size of the objects, bytes.
    pub bytes: u64,
    /// Number of executions of the program, without folds.
    pub executions: u64,
    /// Bytes of records across the end of a chunk that were handed to an execution.
    pub handed_bytes: u64,
    /// Wall time from the last connection to the answer, seconds; of the second attempt, if the run
    /// began again.
    pub wall_s: f64,
    /// Bytes on the wire between drives and host in that time, in both directions.
    pub crossed_bytes: u64,
    /// Shares of drives and cores.
    pub shares: Vec<Share>,
    /// Reasons why the host computed chunks of protected objects from other pieces.
    pub warnings: Vec<String>,
    /// Reasons why the host did units that drives refused or failed to do.
    pub refused: Vec<String>,
}

/// Runs `task`. Begins again, once, if executions over lines have not agreed on the first bytes of
/// a chunk: one had those of a damaged chunk.
///
/// # Errors
/// [`Failed::Run`] with the first failure, [`Failed::Partial`] when drives were lost, or
/// [`Failed::Runtime`] when the cores could not run.
pub fn run(
    config: &csd_reactor::Config,
    plan: &Plan,
    options: &Options,
    task: &Arc<Task>,
    run_options: &RunOptions,
) -> Result<Outcome, Failed> {
    let cores = if run_options.mode == Mode::Drives { 1 } else { run_options.cores };
    let run_options = RunOptions { cores, ..run_options.clone() };
    let run = |run_options: &RunOptions, whole_heads| {
        let shared = context::Shared::new(plan, options, task, run_options, whole_heads);
        let shared = Arc::new(shared);
        let on_cores = Arc::clone(&shared);
        let spent = cores::run(config, cores, move |core| core::main(core, Arc::clone(&on_cores)));
        (shared, spent)
    };
    let (mut shared, mut spent) = run(&run_options, false);
    let begins_again = match &spent {
        Ok(_) => shared.mistrusts_heads(),
        // It may have failed because of a wrong head.
        Err(Failed::Run(
            Error::Program { .. }
            | Error::Store(csd_store::Error::Drive(csd_store::error::DriveError::Command { .. })),
        )) => task.records() == Records::Lines && catalogue::are_protected(&task.inputs),
        Err(_) => false,
    };
    if begins_again {
        // The progress of the first attempt stands.
        let progress = Progress::none();
        (shared, spent) = run(&RunOptions { progress, ..run_options.clone() }, true);
    }
    let spent = spent?;
    let sums = shared.sums();
    if let Some(partial) = shared.ledger().partial(task.unit_name(), sums.bytes, task.bytes()) {
        return Err(Failed::Partial(partial));
    }
    if !shared.is_enough() {
        assert_eq!(sums.bytes, task.bytes(), "every unit is worked on exactly once");
    }
    Ok(Outcome {
        mode: run_options.mode,
        cores,
        answer: shared.answer(),
        bytes: sums.bytes,
        executions: sums.executions,
        handed_bytes: sums.handed_bytes,
        wall_s: spent.wall_s,
        crossed_bytes: spent.crossed_bytes,
        shares: shared.ledger().shares(),
        warnings: shared.ledger().reasons(),
        refused: shared.refused(),
    })
}
