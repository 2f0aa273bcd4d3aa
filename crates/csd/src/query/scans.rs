//! [`Scans`]: runs the plans of a query over row groups, in drives or here.
//!
//! Objects on the same drives are one run, whose answers come in the order of the row groups. A
//! scan that no drive can do is done here, and says why. Invariant: a query that is interrupted, or
//! needs no more rows, leaves nothing in drives.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use csd_query::CompiledPlan;
use csd_query::host::{Answers, Runner, ScanJob, Sender, answers};
use csd_query::table::Piece;
use csd_run::Mode;
use csd_run::program::{self, Answer, Consumer, Limits, RunOptions, Sandbox, Task};
use csd_store::Options;
use csd_store::array::Plan;
use csd_store::object::Progress;

use super::sandbox::HostPlan;
use crate::cli::query::Query;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::Failure;
use crate::runtime::runtime;

/// Room for the answer about a row group in a drive's memory, bytes.
const ROOM_BYTES: u32 = 8 << 20;

/// Record of a scan.
#[derive(Clone, Debug)]
pub(super) struct ScanRecord {
    pub(super) table: String,
    pub(super) steps: String,
    pub(super) mode: Mode,
    /// Reasons why the host did parts of it, in words.
    pub(super) refused: Vec<String>,
    /// Reasons why the host did row groups of it that drives refused, in words.
    pub(super) refused_row_groups: Vec<String>,
    pub(super) row_groups: usize,
    pub(super) excluded: usize,
    /// Bytes of the row groups' columns.
    pub(super) bytes: u64,
    /// Bytes of answers.
    pub(super) answer_bytes: u64,
    /// Bytes on the wire.
    pub(super) crossed_bytes: u64,
    pub(super) wall_s: f64,
}

/// Runs the scans of one query.
pub(super) struct Scans {
    plan: Plan,
    options: Options,
    mode: Mode,
    limits: Limits,
    _bar: Bar,
    progress: Progress,
    done: Arc<Mutex<Done>>,
}

#[derive(Default)]
struct Done {
    records: Vec<ScanRecord>,
    warnings: Vec<String>,
    failed: Option<Failure>,
}

impl std::fmt::Debug for Scans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scans on {}", self.mode)
    }
}

fn lock(done: &Mutex<Done>) -> std::sync::MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scans {
    pub(super) fn new(
        (context, plan): (&Context, &Plan),
        options: &Query,
        mode: Mode,
    ) -> Result<Self, Failure> {
        let mib = u16::try_from(options.memory.div_ceil(1 << 20));
        let memory_mib = mib.map_err(|_| Failure::usage("--memory is below 64 GiB"))?;
        let limits = Limits { time_ms: options.time, memory_mib, room_bytes: ROOM_BYTES };
        let bar = Bar::new(context, &format!("on {mode}"), None);
        let progress = bar.progress.clone();
        Ok(Self {
            plan: plan.clone(),
            options: context.options()?,
            mode,
            limits,
            _bar: bar,
            progress,
            done: Arc::default(),
        })
    }

    /// Returns what the scans did, in the order in which they ended.
    pub(super) fn records(&self) -> Vec<ScanRecord> {
        lock(&self.done).records.clone()
    }

    /// Returns the number of bytes that crossed the wire for the scans.
    pub(super) fn crossed_bytes(&self) -> u64 {
        lock(&self.done).records.iter().map(|record| record.crossed_bytes).sum()
    }

    /// Returns the reasons why the host computed chunks from other pieces.
    pub(super) fn warnings(&self) -> Vec<String> {
        lock(&self.done).warnings.clone()
    }

    /// Returns the failure of a scan, if one has failed.
    pub(super) fn failed(&self) -> Option<Failure> {
        lock(&self.done).failed.take()
    }
}

impl Runner for Scans {
    fn start(&self, job: ScanJob) -> Answers {
        let (sender, receiver) = answers();
        let scan = Scan {
            plan: self.plan.clone(),
            options: self.options.clone(),
            mode: self.mode,
            limits: self.limits,
            progress: self.progress.clone(),
            sender,
            job,
        };
        let done = Arc::clone(&self.done);
        tokio::task::spawn_blocking(move || scan.run(&done));
        receiver
    }
}

/// One scan, on a thread of its own: it has a core of the reactor.
struct Scan {
    plan: Plan,
    options: Options,
    mode: Mode,
    limits: Limits,
    progress: Progress,
    sender: Sender,
    job: ScanJob,
}

/// Hands answers on to the query.
struct Forward {
    sender: Sender,
    bytes: Mutex<u64>,
}

impl Consumer for Forward {
    fn take(&self, answer: Answer) -> ControlFlow<()> {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += answer.output.len() as u64;
        match self.sender.blocking_send(Ok(answer.output)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Scan {
    fn run(self, done: &Mutex<Done>) {
        let mut record = self.record();
        if let Err(failure) = self.run_all(&mut record, done) {
            let why = failure.message.clone();
            lock(done).failed.get_or_insert(failure);
            let _gone = self.sender.blocking_send(Err(why));
        }
        lock(done).records.push(record);
    }

    fn record(&self) -> ScanRecord {
        let (reading, mut refused) = (&self.job.reading, self.job.refused.clone());
        let apart = reading.pieces.iter().find_map(|piece| piece.apart.clone());
        let apart = apart.or_else(|| self.job.bytes.as_ref().err().cloned());
        let mode = if apart.is_some() { Mode::Host } else { self.mode };
        refused.extend(apart);
        ScanRecord {
            table: self.job.table.name.clone(),
            steps: self.job.plan.to_string(),
            mode,
            refused,
            refused_row_groups: Vec::new(),
            row_groups: reading.pieces.len(),
            excluded: reading.excluded,
            bytes: reading.bytes(),
            answer_bytes: 0,
            crossed_bytes: 0,
            wall_s: 0.0,
        }
    }

    fn run_all(&self, record: &mut ScanRecord, done: &Mutex<Done>) -> Result<(), Failure> {
        let plan = CompiledPlan::from(Arc::clone(&self.job.plan));
        let bytes = self.job.bytes.clone().unwrap_or_default();
        let sandbox: Arc<dyn Sandbox> = Arc::new(HostPlan { plan, bytes });
        let forward = Arc::new(Forward { sender: self.sender.clone(), bytes: Mutex::default() });
        for pieces in self.on_same_drives() {
            if self.sender.is_closed() {
                break;
            }
            let task = self.task(pieces, &sandbox)?;
            let task = task.with_consumer(Arc::<Forward>::clone(&forward));
            let (mode, progress) = (record.mode, self.progress.clone());
            let run_options = RunOptions { mode, cores: 1, progress };
            let ran =
                program::run(&runtime(), &self.plan, &self.options, &Arc::new(task), &run_options);
            let outcome = ran?;
            record.crossed_bytes += outcome.crossed_bytes;
            record.wall_s += outcome.wall_s;
            record.refused_row_groups.extend(outcome.refused);
            lock(done).warnings.extend(outcome.warnings);
        }
        record.answer_bytes = *forward.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    /// Returns the row groups, those of neighbouring objects on the same drives together.
    fn on_same_drives(&self) -> impl Iterator<Item = &[Piece]> {
        let members = |piece: &Piece| &self.job.table.files[piece.group.input].entry.members;
        self.job.reading.pieces.chunk_by(move |a, b| members(a) == members(b))
    }

    fn task(&self, pieces: &[Piece], sandbox: &Arc<dyn Sandbox>) -> Result<Task, Failure> {
        let first = pieces.first().map_or(0, |piece| piece.group.input);
        let last = pieces.last().map_or(0, |piece| piece.group.input);
        let files = &self.job.table.files[first..=last];
        let inputs = files.iter().map(|file| file.entry.clone()).collect();
        let groups = pieces.iter().map(|piece| {
            let mut group = piece.group.clone();
            group.input -= first;
            group
        });
        Ok(Task::over_groups(inputs, groups.collect(), Arc::clone(sandbox), self.limits)?)
    }
}
