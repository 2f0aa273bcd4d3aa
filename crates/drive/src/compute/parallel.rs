//! An execution on several cores of the drive: one part on each, through that core's own
//! [`Compute`].
//!
//! `parts` splits the execution. Invariants: an execution holds a slot on a core only while it
//! runs there, so executions that wait for the same cores cannot deadlock; a part that fails ends
//! the others; when the execution is cancelled, its parts end with their steps.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use csd_kernels::program::Program;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, SourceData, chunk_key};
use csd_reactor::{
    Class, CoreGone, CoreId, JoinHandle, call, core_count, core_id, core_local, spawn,
};

use super::adapting::PART_BYTES;
use super::execute::Meter;
use super::parts::{self, Lengths, Part};
use super::{CancelToken, Compute, Failure, Report, builtin};

/// A part that runs on a core: its bytes, its program, and its report.
type Running = (Range<u64>, u64, JoinHandle<Result<Result<Report, Status>, CoreGone>>);

impl Compute {
    /// Runs a built-in program on as many cores as the execution asks for and can be split for;
    /// `None` when that is one.
    pub(super) async fn run_parallel(
        &self,
        execution: &Execution,
        cancel: &CancelToken,
    ) -> Option<Report> {
        let cores = core_count().min(execution.cores.into()).max(1);
        let is_adaptive = builtin::adapted(execution, 1).is_some();
        if cores < 2 && !is_adaptive {
            return None;
        }
        let rule = builtin::split_rule(execution)?;
        let lengths = match self.lengths(execution).await {
            Ok(lengths) => lengths,
            Err(failure) => return Some(Report::failed(execution.program, failure)),
        };
        let block_bytes = self.block.block_bytes().into();
        let bytes: u64 = lengths.as_ref().map_or(0, |lengths| lengths.iter().flatten().sum());
        let count = if is_adaptive { bytes.div_ceil(PART_BYTES) } else { cores as u64 };
        let parts = parts::cut(execution, &rule, &lengths?, count, block_bytes)?;
        Some(match is_adaptive {
            true => self.run_adapting(execution, parts, cores, cancel).await,
            false => self.run_parts(execution, parts, cancel).await,
        })
    }

    async fn run_parts(
        &self,
        execution: &Execution,
        parts: Vec<Part>,
        cancel: &CancelToken,
    ) -> Report {
        let mut running = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let core = CoreId((core_id().0 + index) % core_count());
            let (bytes, program) = (part.bytes.clone(), part.execution.program);
            let cancel = cancel.clone();
            let there = move || async move {
                let here = core_local::<Self>().ok_or(Status::NAMESPACE_NOT_READY)?;
                Ok(here.part(&part, &cancel).await)
            };
            let asked = spawn(Class::Execution, call(core, Class::Execution, there));
            running.push((bytes, program, asked));
        }
        Self::joined(execution, running).await
    }

    /// Runs the parts as the drive's controller says, on at most `cores` cores.
    async fn run_adapting(
        &self,
        execution: &Execution,
        parts: Vec<Part>,
        cores: usize,
        cancel: &CancelToken,
    ) -> Report {
        let (mut running, mut used) = (Vec::new(), BTreeSet::new());
        for mut part in parts {
            let slot = self.adapting.begin(cores).await;
            if let Some(parameters) = builtin::adapted(&part.execution, slot.unroll) {
                part.execution.parameters = parameters;
            }
            used.insert(slot.core);
            let (bytes, program) = (part.bytes.clone(), part.execution.program);
            let (cancel, length) = (cancel.clone(), bytes.end - bytes.start);
            let there = move || async move {
                let here = core_local::<Self>().ok_or(Status::NAMESPACE_NOT_READY)?;
                Ok(here.part(&part, &cancel).await)
            };
            let asked = async move {
                let report = call(slot.core, Class::Execution, there).await;
                if matches!(&report, Ok(Ok(report)) if report.result.is_ok()) {
                    slot.done(length);
                }
                report
            };
            running.push((bytes, program, spawn(Class::Execution, asked)));
        }
        let mut whole = Self::joined(execution, running).await;
        whole.cores = whole.cores.min(u16::try_from(used.len()).unwrap_or(u16::MAX));
        whole
    }

    /// Waits for all parts, in order, and joins their reports.
    async fn joined(execution: &Execution, running: Vec<Running>) -> Report {
        let mut whole = Report::failed(0, Status::SUCCESS.into());
        let (mut results, mut failure) = (Vec::new(), None);
        for (bytes, program, asked) in running {
            let gone = Err(Status::INTERNAL_ERROR);
            let report = asked.await.unwrap_or(gone);
            let report = report.unwrap_or_else(|status| Report::failed(program, status.into()));
            whole.program = program;
            whole.meter.add(&report.meter);
            whole.cores += report.cores;
            match report.result {
                Ok(result) => results.push((bytes, result)),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        whole.result = failure.map_or_else(|| Ok(builtin::join(execution, &results)), Err);
        whole
    }

    /// Runs one part on this core.
    async fn part(&self, part: &Part, cancel: &CancelToken) -> Report {
        let start = || builtin::start(&part.execution);
        let mut report = self.in_turn((&part.execution, 0), cancel, start).await;
        if report.result.is_ok() && report.meter.used_bytes != part.used_bytes {
            let reason = "a value was stored again with another length while it was read";
            report.result = Err(Failure::new(Status::PROGRAM_FAILED, reason));
        }
        if let Err(failure) = &report.result {
            cancel.fail(failure);
        }
        report
    }

    /// Runs a program on this core when the core has capacity for it. `program_bytes` is the most
    /// memory of a program that a host has loaded. One that is cancelled before does not begin.
    pub(super) async fn in_turn(
        &self,
        (execution, program_bytes): (&Execution, u64),
        cancel: &CancelToken,
        start: impl FnOnce() -> Result<Box<dyn Program>, Failure>,
    ) -> Report {
        let turn = cancel.unless_cancelled(self.capacity.acquire(execution, program_bytes)).await;
        let turn = match turn {
            Ok(turn) => turn,
            Err(failure) => return Report::failed(execution.program, failure),
        };
        let report = self.run(execution, cancel, start()).await;
        drop(turn);
        report
    }

    /// Returns the lengths of the sources; `None` when one of them does not exist on this drive.
    async fn lengths(&self, execution: &Execution) -> Result<Option<Lengths>, Failure> {
        let mut lengths = Vec::new();
        for source in &execution.sources {
            lengths.push(match source.data {
                SourceData::KvTail { .. } | SourceData::Keys { .. } => return Ok(None),
                SourceData::Blocks { skip, bytes, .. } => {
                    let unit_bytes = execution.unit_of(source).map_or(u64::MAX, u64::from);
                    parts::unit_lengths(unit_bytes, (skip, bytes))
                }
                SourceData::Memory { bytes, .. } | SourceData::Inline { bytes } => {
                    vec![bytes.into()]
                }
                SourceData::KvChunks { nsid, prefix, first, count, stride } => {
                    let Ok(nsid) = u16::try_from(nsid) else { return Ok(None) };
                    let numbers = (0..count).map(|step| first + step * stride);
                    let found = numbers.map(|number| {
                        let kv = Rc::clone(&self.kv);
                        let open = async move { kv.open(nsid, chunk_key(&prefix, number)).await };
                        spawn(Class::Execution, open)
                    });
                    let mut values = Vec::new();
                    for value in found.collect::<Vec<_>>() {
                        let Some(value) = value.await? else { return Ok(None) };
                        values.push(value.bytes().into());
                    }
                    values
                }
            });
        }
        Ok(Some(lengths))
    }
}

impl Meter {
    fn add(&mut self, other: &Self) {
        self.read_bytes += other.read_bytes;
        self.used_bytes += other.used_bytes;
        self.written_bytes += other.written_bytes;
        self.work += other.work;
        self.reading_ns += other.reading_ns;
        self.computing_ns += other.computing_ns;
        self.writing_ns += other.writing_ns;
    }
}
