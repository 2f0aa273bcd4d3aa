//! One execution on one core: reads of its sources and stores of its output overlap with computing.
//!
//! Invariants: when an execution ends, no read and no store of it runs; a panic of a program fails
//! its execution and nothing else.

use csd_kernels::program::{self, Cause, Inputs, Output, Program, Step};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::Execution;
use csd_reactor::{Class, Job, Progress, compute, now, spawn};

use super::output::{self, Drain};
use super::sources::{Batch, Sources};
use super::{CancelToken, Compute, Failure};

/// Cost of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Bytes read from its sources.
    pub read_bytes: u64,
    /// Bytes of these that its program used.
    pub used_bytes: u64,
    /// Bytes that the program wrote.
    pub written_bytes: u64,
    /// Work as the program counts it: elements, edges or bytes.
    pub work: u64,
    /// Time in which computing waited for reads, ns.
    pub reading_ns: u64,
    /// Time on the compute thread, its queue included, ns.
    pub computing_ns: u64,
    /// Time in which computing waited for stores, ns.
    pub writing_ns: u64,
}

/// Report of an execution that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Result of the program, or its failure.
    pub result: Result<u64, Failure>,
    /// Cost until then.
    pub meter: Meter,
    /// Identifier of the program; 0 when no existing program was named.
    pub program: u64,
    /// Number of cores that computed; 0 when the program did not begin.
    pub cores: u16,
}

impl Report {
    /// Makes the report of an execution that did not begin.
    pub(super) fn failed(program: u64, failure: Failure) -> Self {
        Self { result: Err(failure), meter: Meter::default(), program, cores: 0 }
    }
}

impl Compute {
    /// Runs a program to its end, on this core.
    pub(super) async fn run(
        &self,
        execution: &Execution,
        cancel: &CancelToken,
        program: Result<Box<dyn Program>, Failure>,
    ) -> Report {
        let mut meter = Meter::default();
        match program {
            Ok(program) => {
                let result = self.work((execution, cancel), program, &mut meter).await;
                Report { result, meter, program: execution.program, cores: 1 }
            }
            Err(failure) => Report::failed(execution.program, failure),
        }
    }

    async fn work(
        &self,
        (execution, cancel): (&Execution, &CancelToken),
        program: Box<dyn Program>,
        meter: &mut Meter,
    ) -> Result<u64, Failure> {
        let mut drain = Drain::new(self, execution.output)?;
        let mut sources = Sources::plan(self, execution).await?;
        let mut state = ExecutionState {
            program,
            inputs: Inputs::new(execution.streams()),
            output: output::gather(&execution.output, execution.serial),
            cancel: cancel.clone(),
        };
        let done = self.rounds(&mut state, &mut sources, &mut drain, meter).await;
        sources.settle().await;
        let began = now();
        let last = match &done {
            Ok(_) => drain.drain(&mut state.output, true).await,
            Err(_) => Ok(()),
        };
        let finished = drain.finish().await;
        meter.writing_ns += now().ns() - began.ns();
        meter.written_bytes = state.output.written();
        meter.work = state.output.work();
        meter.used_bytes = state.inputs.consumed();
        done.and_then(|result| last.and(finished).map(|()| result))
    }

    /// Reads, computes and stores in parallel rounds, until the program is done.
    async fn rounds(
        &self,
        state: &mut ExecutionState,
        sources: &mut Sources,
        drain: &mut Drain,
        meter: &mut Meter,
    ) -> Result<u64, Failure> {
        let began = now();
        let batch = sources.read(self, &state.at_hand()).await?;
        meter.reading_ns += now().ns() - began.ns();
        state.take(batch, meter);
        loop {
            // A task of its own reads the next batch while the compute thread works.
            let (this, at_hand) = (self.clone(), state.at_hand());
            let mut rest = std::mem::take(sources);
            let next = spawn(Class::Execution, async move {
                let batch = rest.read(&this, &at_hand).await;
                (batch, rest)
            });
            let began = now();
            let worked = state.take_out().work(Class::Execution).await;
            let computed = now();
            let (batch, rest) = next.await;
            meter.computing_ns += computed.ns() - began.ns();
            meter.reading_ns += now().ns() - computed.ns();
            *sources = rest;
            let (back, step) = worked?;
            *state = back;
            let step = match step {
                Err(failure) => {
                    if let Ok(batch) = batch {
                        state.take(batch, meter);
                    }
                    return Err(state.reason(self, sources, failure).await);
                }
                Ok(step) => step,
            };
            if let Step::Done { result } = step {
                if state.inputs.midway().is_some() {
                    state.take(batch?, meter);
                    state.check_rest(self, sources).await?;
                }
                return Ok(result);
            }
            state.take(batch?, meter);
            let began = now();
            let drained = drain.drain(&mut state.output, false).await;
            meter.writing_ns += now().ns() - began.ns();
            if let Err(failure) = drained.and_then(|()| state.check(step)) {
                return Err(state.reason(self, sources, failure).await);
            }
        }
    }
}

/// State of an execution that moves to the compute thread and back: the program, its inputs and its
/// output.
pub(super) struct ExecutionState {
    pub(super) program: Box<dyn Program>,
    pub(super) inputs: Inputs,
    pub(super) output: Output,
    pub(super) cancel: CancelToken,
}

impl ExecutionState {
    fn at_hand(&self) -> Vec<usize> {
        self.inputs.all_held()
    }

    /// Returns the reason of a failure: a checksum that is wrong, if the program has seen bytes
    /// that are not checked yet, or else the failure itself.
    async fn reason(
        &mut self,
        compute: &Compute,
        sources: &mut Sources,
        failure: Failure,
    ) -> Failure {
        if self.cancel.check().is_err() {
            return failure;
        }
        self.check_rest(compute, sources).await.err().unwrap_or(failure)
    }

    fn take(&mut self, batch: Batch, meter: &mut Meter) {
        self.inputs.free_spent();
        meter.read_bytes += batch.bytes;
        for (stream, chunk) in batch.chunks {
            self.inputs.push(stream, chunk);
        }
        batch.ended.into_iter().for_each(|stream| self.inputs.end(stream));
    }

    /// Checks the rest of values and blocks of which the program has used only the beginning, which
    /// may be wrong.
    async fn check_rest(
        &mut self,
        compute: &Compute,
        sources: &mut Sources,
    ) -> Result<(), Failure> {
        while let Some(stream) = self.inputs.midway() {
            self.inputs.check_rest(stream)?;
            if self.inputs.midway() == Some(stream) {
                let Some(part) = sources.next_part(compute, stream).await? else { break };
                self.inputs.push(stream, part);
            }
        }
        Ok(())
    }

    /// Takes the state, and leaves a program that does nothing in its place.
    fn take_out(&mut self) -> Self {
        let empty = Self {
            program: Box::new(NullProgram),
            inputs: Inputs::new(0),
            output: Output::default(),
            cancel: CancelToken::default(),
        };
        std::mem::replace(self, empty)
    }

    /// Steps the program on the compute thread until it needs input or space for its output.
    pub(super) async fn work(self, class: Class) -> Result<(Self, Result<Step, Failure>), Failure> {
        let job = LaneJob { cancel: self.cancel.clone(), state: Some(self) };
        compute(class, job).await.map_err(Failure::from)
    }

    /// Checks that a program does not wait for input of a stream that has ended.
    pub(super) fn check(&self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Starved { stream } if self.inputs.is_last(stream) => {
                let reason = format!("the program waits for more of stream {stream}, which ended");
                Err(Failure::new(Status::PROGRAM_FAILED, reason))
            }
            _ => Ok(()),
        }
    }
}

/// A program in the place of one that is on the compute thread.
struct NullProgram;

impl Program for NullProgram {
    fn step(&mut self, _: &mut Inputs, _: &mut Output) -> Result<Step, program::Failure> {
        Err(program::Failure::new(Cause::Program, "the program is gone"))
    }
}

/// A job that steps a program until it needs input or space for its output.
struct LaneJob {
    state: Option<ExecutionState>,
    cancel: CancelToken,
}

impl Job for LaneJob {
    type Output = (ExecutionState, Result<Step, Failure>);

    fn step(&mut self) -> Progress<Self::Output> {
        let ExecutionState { program, inputs, output, cancel } =
            self.state.as_mut().expect("a job that is done is not stepped again");
        let before = inputs.consumed();
        let stepped = cancel.check().and_then(|()| {
            inputs.admit()?;
            Ok(program.step(inputs, output)?)
        });
        // The simulated clock is charged 10 GB/s: the order of one core's memory bandwidth.
        let cost_ns = (inputs.consumed() - before) / 10;
        match stepped {
            Ok(Step::More) => return Progress::More { cost_ns },
            Ok(Step::Starved { stream }) if inputs.has_unseen(stream) => {
                return Progress::More { cost_ns };
            }
            _ => {}
        }
        let state = self.state.take().expect("looked at above");
        Progress::Done { cost_ns, output: (state, stepped) }
    }

    fn ran(&mut self, spent_ns: u64) {
        self.cancel.ran(spent_ns);
    }
}
