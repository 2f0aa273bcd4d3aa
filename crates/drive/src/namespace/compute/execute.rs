//! One execution: reads go on while the lane works, and stores of what it wrote.
//!
//! Invariants: when an execution ends, however it does, no read and no store of it goes on; a
//! panic of a program fails its execution and nothing else.

use csd_kernels::program::{self, Cause, Inputs, Output, Program, Step};
use csd_nvme::execute::Execution;
use csd_nvme::status::Status;
use csd_reactor::{Class, Job, Progress, compute, now, spawn};

use super::output::{self, Drain};
use super::sources::{Batch, Sources};
use super::{Brake, Compute, Failure};

/// What an execution took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Bytes read from its sources.
    pub read_bytes: u64,
    /// Bytes of them that its program used.
    pub used_bytes: u64,
    /// Bytes that the program wrote.
    pub written_bytes: u64,
    /// Work as the program counts it: elements, edges or bytes.
    pub work: u64,
    /// Time in which the lane waited for reads, ns.
    pub reading_ns: u64,
    /// Time with the lane, its queue included, ns.
    pub computing_ns: u64,
    /// Time in which the lane waited for stores, ns.
    pub writing_ns: u64,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The program's result, or why there is none.
    pub result: Result<u64, Failure>,
    /// What it took until then.
    pub meter: Meter,
    /// Identifier of the program; 0 when none was named that there is.
    pub program: u64,
    /// Cores whose lanes worked; 0 when the program did not begin.
    pub cores: u16,
}

impl Report {
    /// Of an execution that did not begin.
    pub(super) fn failed(program: u64, failure: Failure) -> Self {
        Self { result: Err(failure), meter: Meter::default(), program, cores: 0 }
    }
}

impl Compute {
    /// Runs a program to its end, on this core.
    pub(super) async fn run(
        &self,
        execution: &Execution,
        brake: &Brake,
        program: Result<Box<dyn Program>, Failure>,
    ) -> Report {
        let mut meter = Meter::default();
        match program {
            Ok(program) => {
                let result = self.work((execution, brake), program, &mut meter).await;
                Report { result, meter, program: execution.program, cores: 1 }
            }
            Err(failure) => Report::failed(execution.program, failure),
        }
    }

    async fn work(
        &self,
        (execution, brake): (&Execution, &Brake),
        program: Box<dyn Program>,
        meter: &mut Meter,
    ) -> Result<u64, Failure> {
        let mut drain = Drain::new(self, execution.output)?;
        let mut sources = Sources::plan(self, execution)?;
        let mut desk = Desk {
            program,
            inputs: Inputs::new(execution.streams()),
            output: output::gather(&execution.output, execution.serial),
            brake: brake.clone(),
        };
        let done = self.rounds(&mut desk, &mut sources, &mut drain, meter).await;
        sources.settle().await;
        let began = now();
        let last = match &done {
            Ok(_) => drain.drain(&mut desk.output, true).await,
            Err(_) => Ok(()),
        };
        let finished = drain.finish().await;
        meter.writing_ns += now().ns() - began.ns();
        meter.written_bytes = desk.output.written();
        meter.work = desk.output.work();
        meter.used_bytes = desk.inputs.consumed();
        done.and_then(|result| last.and(finished).map(|()| result))
    }

    /// Rounds of reading, computing and storing side by side, until the program is done.
    async fn rounds(
        &self,
        desk: &mut Desk,
        sources: &mut Sources,
        drain: &mut Drain,
        meter: &mut Meter,
    ) -> Result<u64, Failure> {
        let began = now();
        let batch = sources.read(self, &desk.at_hand()).await?;
        meter.reading_ns += now().ns() - began.ns();
        desk.take(batch, meter);
        loop {
            // What comes next is read by a task of its own while the lane works.
            let (this, at_hand) = (self.clone(), desk.at_hand());
            let mut rest = std::mem::take(sources);
            let next = spawn(Class::Background, async move {
                let batch = rest.read(&this, &at_hand).await;
                (batch, rest)
            });
            let began = now();
            let worked = desk.lend().work(Class::Background).await;
            let computed = now();
            let (batch, rest) = next.await;
            meter.computing_ns += computed.ns() - began.ns();
            meter.reading_ns += now().ns() - computed.ns();
            *sources = rest;
            let (back, step) = worked?;
            *desk = back;
            let step = step?;
            if let Step::Done { result } = step {
                if desk.inputs.midway().is_some() {
                    desk.take(batch?, meter);
                    desk.check_rest(sources).await?;
                }
                return Ok(result);
            }
            desk.take(batch?, meter);
            let began = now();
            drain.drain(&mut desk.output, false).await?;
            meter.writing_ns += now().ns() - began.ns();
            desk.check(step)?;
        }
    }
}

/// A program with what it reads and writes: it goes to the lane and comes back.
pub(super) struct Desk {
    pub(super) program: Box<dyn Program>,
    pub(super) inputs: Inputs,
    pub(super) output: Output,
    pub(super) brake: Brake,
}

impl Desk {
    fn at_hand(&self) -> Vec<usize> {
        self.inputs.all_left()
    }

    fn take(&mut self, batch: Batch, meter: &mut Meter) {
        self.inputs.free_spent();
        meter.read_bytes += batch.bytes;
        for (stream, chunk) in batch.chunks {
            self.inputs.push(stream, chunk);
        }
        batch.ended.into_iter().for_each(|stream| self.inputs.end(stream));
    }

    /// Checks the rest of values of which the program has used the beginning: what it found there
    /// may be wrong.
    async fn check_rest(&mut self, sources: &mut Sources) -> Result<(), Failure> {
        while let Some(stream) = self.inputs.midway() {
            self.inputs.check_rest(stream)?;
            if self.inputs.midway() == Some(stream) {
                let Some(part) = sources.next_part(stream).await else { break };
                self.inputs.push(stream, part?);
            }
        }
        Ok(())
    }

    /// Leaves a program that does nothing in its place.
    fn lend(&mut self) -> Self {
        let nobody = Self {
            program: Box::new(Nobody),
            inputs: Inputs::new(0),
            output: Output::default(),
            brake: Brake::default(),
        };
        std::mem::replace(self, nobody)
    }

    /// Steps the program in the lane until it needs something that the lane cannot give.
    pub(super) async fn work(self, class: Class) -> Result<(Self, Result<Step, Failure>), Failure> {
        let job = LaneJob { brake: self.brake.clone(), desk: Some(self) };
        let panicked = |_| Failure::new(Status::PROGRAM_FAILED, "the program panicked");
        compute(class, job).await.map_err(panicked)
    }

    /// A program that waits for what cannot come would wait forever.
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

/// Stands where a program was that is in the lane.
struct Nobody;

impl Program for Nobody {
    fn step(&mut self, _: &mut Inputs, _: &mut Output) -> Result<Step, program::Failure> {
        Err(program::Failure::new(Cause::Program, "the program is gone"))
    }
}

/// Steps a program until it needs something that the lane cannot give.
struct LaneJob {
    desk: Option<Desk>,
    brake: Brake,
}

impl Job for LaneJob {
    type Output = (Desk, Result<Step, Failure>);

    fn step(&mut self) -> Progress<Self::Output> {
        let Desk { program, inputs, output, brake } =
            self.desk.as_mut().expect("a job that is done is not stepped again");
        let before = inputs.consumed();
        let stepped = brake.look().and_then(|()| {
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
        let desk = self.desk.take().expect("looked at above");
        Progress::Done { cost_ns, output: (desk, stepped) }
    }

    fn ran(&mut self, spent_ns: u64) {
        self.brake.ran(spent_ns);
    }
}
