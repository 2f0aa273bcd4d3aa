//! Programs of a user's own over stored objects: chunk by chunk, on the drives, on the host, or on
//! both.
//!
//! A chunk is one execution, so that its answer does not depend on where it ran or what ran beside
//! it; answers are folded in the order of the chunks, by the program's own function on the host, or
//! else put one behind the other. Never: an engine; it is given a [`Sandbox`]. Invariants: every
//! record of the objects is seen whole by exactly one execution; every way gives the same bytes.
//!
//! Modules: `task` is what to run over what, `lines` keeps lines whole, `drives` and `host` run
//! chunks, `guest` is the program in a drive, `owner` finds programs of killed runs, `gather`
//! folds, `core` is what a core does, with its tasks in a `team`.

mod core;
mod drives;
mod gather;
mod guest;
mod host;
mod lines;
mod owner;
mod task;
mod team;

use std::pin::Pin;
use std::sync::Arc;

use csd_initiator::Options;
use csd_reactor::{Buffer, Instant};

use super::{Failed, Mode, Share};
use crate::array::Plan;
use crate::object::Progress;

pub use gather::HELD_BYTES_MAX;
pub use lines::LINE_BYTES_MAX;
pub use task::{Limits, Records, Task};

/// What came of an execution, or of several that were folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The program's result.
    pub result: u64,
    /// What it wrote.
    pub output: Vec<u8>,
}

/// A function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The program.
    Run,
    /// Makes one answer of two: each is a stream, its result in 8 bytes before what it wrote.
    Fold,
}

/// An execution under way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, String>> + 'a>>;

/// A program, and what runs it on this host as a drive would: the same module, parameters and
/// limits.
pub trait Sandbox: Send + Sync {
    /// Name of the program's type, as drives list it.
    fn type_name(&self) -> &str;
    /// The program's bytes, for drives.
    fn module(&self) -> &[u8];
    /// What a record of its inputs is.
    fn records(&self) -> Records;
    /// Whether it can fold.
    fn folds(&self) -> bool;
    /// Whether it can write bytes.
    fn emits(&self) -> bool;
    /// Runs one of its functions over streams, each in chunks; or says in words why it failed.
    fn run(
        &self,
        function: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        limits: Limits,
    ) -> Running<'_>;
}

/// How to run a task.
#[derive(Clone)]
pub struct RunOptions {
    /// Who computes.
    pub mode: Mode,
    /// Cores of the host that work; for [`Mode::Drives`] one is used.
    pub cores: usize,
    /// Told of bytes worked on.
    pub progress: Progress,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Who computed.
    pub mode: Mode,
    /// Cores of the host that the run used.
    pub cores: usize,
    /// The answer.
    pub answer: Answer,
    /// Bytes of the objects.
    pub bytes: u64,
    /// Executions of the program, folds apart.
    pub executions: u64,
    /// Bytes of records that reached over the end of a chunk, handed to the execution over it.
    pub handed_bytes: u64,
    /// Wall time from all connections standing to the answer, seconds.
    pub wall_s: f64,
    /// Everything that crossed between drives and host meanwhile, both ways, bytes on the wire.
    pub crossed_bytes: u64,
    /// Who did how much.
    pub shares: Vec<Share>,
}

/// Runs `task`.
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
    let config = csd_reactor::Config { cores, ..config.clone() };
    let shared =
        core::Shared::new(plan, options, task, &RunOptions { cores, ..run_options.clone() });
    let shared = Arc::new(shared);
    let on_cores = Arc::clone(&shared);
    let parts = csd_reactor::run(&config, move |core| core::main(core, Arc::clone(&on_cores)));
    let parts = parts.map_err(Failed::Runtime)?;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>().map_err(Failed::Run)?;
    let sums = shared.sums();
    if let Some(partial) = shared.losses().partial("chunk", sums.bytes, task.bytes()) {
        return Err(Failed::Partial(partial));
    }
    assert_eq!(sums.bytes, task.bytes(), "every chunk is worked on exactly once");
    let begin = parts.iter().map(|part| part.begin).min().unwrap_or(Instant::ZERO);
    let end = parts.iter().map(|part| part.end).max().unwrap_or(Instant::ZERO);
    Ok(Outcome {
        mode: run_options.mode,
        cores,
        answer: shared.answer(),
        bytes: sums.bytes,
        executions: sums.executions,
        handed_bytes: sums.handed_bytes,
        wall_s: super::seconds(end.ns().saturating_sub(begin.ns())),
        crossed_bytes: parts.iter().map(|part| part.crossed_bytes).sum(),
        shares: sums.shares.into_values().collect(),
    })
}
