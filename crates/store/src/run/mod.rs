//! Runs: a kernel over an object, on its drives, on the host, or on both.
//!
//! All three ways read the same chunks and run the same kernel; what differs is where, and
//! therefore what crosses the wire. Never holds an object in memory, never waits without a bound:
//! a drive that dies fails its commands, and the first failure empties the queue. Invariant: an
//! [`Outcome`] covers every element of the object exactly once.

mod drives;
mod host;
mod queue;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use csd_initiator::Options;
use csd_kernels::count::{self, Parameters};
use csd_kernels::{ParseError, Scalar};
use csd_reactor::{Class, CoreId, Instant, now, sleep, spawn};

use crate::array::{Array, Plan};
use crate::catalogue::Entry;
use crate::object::{Error, Progress};
use queue::Queue;

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The drives, where the chunks are.
    Drives,
    /// The host: chunks cross the wire. The system with ordinary SSDs.
    Host,
    /// Both take chunks until none is left.
    Split,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Drives => "drives",
            Self::Host => "host",
            Self::Split => "split",
        })
    }
}

/// What to compute.
#[derive(Clone, Debug)]
pub struct Job {
    /// The object.
    pub entry: Entry,
    /// The program's identifier.
    program: u64,
    /// Its parameters.
    parameters: Parameters,
}

impl Job {
    /// Count the elements of `entry` that equal the number `value`.
    ///
    /// # Errors
    /// [`ParseError`] when `value` is not of the object's type: wrong use.
    pub fn count(entry: Entry, value: &str) -> Result<Self, ParseError> {
        let value = Scalar::parse(entry.element, value)?;
        Ok(Self { entry, program: count::PROGRAM_ID, parameters: Parameters { value } })
    }
}

/// What one drive, or one core of the host, did of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The drive's name, or `host core 0`.
    pub who: String,
    /// Elements that it looked at.
    pub elements: u64,
    /// A drive: time with an execution in flight. A core: time not idle. Seconds.
    pub busy_s: f64,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Who computed.
    pub way: Way,
    /// Cores of the host that the run used: workers, or one that only asked the drives.
    pub cores: usize,
    /// The answer.
    pub count: u64,
    /// Elements of the object.
    pub elements: u64,
    /// Size of the object, bytes.
    pub bytes: u64,
    /// Wall time from all connections standing to the last answer, seconds.
    pub wall_s: f64,
    /// Everything that the drives sent to the host meanwhile, bytes on the wire.
    pub crossed_bytes: u64,
    /// Who did how much.
    pub shares: Vec<Share>,
}

/// Runs `job` one way with `cores` cores of the host; for [`Way::Drives`] one is used.
///
/// # Errors
/// The first failure of any drive, named; [`Failed::Runtime`] when the cores could not run.
pub fn run(
    config: &csd_reactor::Config,
    plan: &Plan,
    options: &Options,
    job: &Arc<Job>,
    (way, cores): (Way, usize),
    progress: &Progress,
) -> Result<Outcome, Failed> {
    let cores = if way == Way::Drives { 1 } else { cores };
    let config = csd_reactor::Config { cores, ..config.clone() };
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        options: options.clone(),
        job: Arc::clone(job),
        way,
        cores,
        queue: Arc::new(Queue::new(&job.entry.spread())),
        ready: AtomicUsize::new(0),
        progress: Arc::clone(progress),
    });
    let parts = csd_reactor::run(&config, move |core| core_main(core, Arc::clone(&shared)));
    let parts = parts.map_err(Failed::Runtime)?;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>().map_err(Failed::Run)?;
    let begin = parts.iter().map(|part| part.begin).min().unwrap_or(Instant::ZERO);
    let end = parts.iter().map(|part| part.end).max().unwrap_or(Instant::ZERO);
    let outcome = Outcome {
        way,
        cores,
        count: parts.iter().map(|part| part.count).sum(),
        elements: job.entry.elements(),
        bytes: job.entry.bytes,
        wall_s: seconds(end.ns().saturating_sub(begin.ns())),
        crossed_bytes: parts.iter().map(|part| part.crossed_bytes).sum(),
        shares: parts.into_iter().flat_map(|part| part.shares).collect(),
    };
    let covered: u64 = outcome.shares.iter().map(|share| share.elements).sum();
    assert_eq!(covered, outcome.elements, "every element is looked at exactly once");
    Ok(outcome)
}

/// Why there is no outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// A drive or the network failed.
    Run(Error),
    /// The cores could not run.
    Runtime(csd_reactor::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => error.fmt(f),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// What the cores of a run share.
struct Shared {
    plan: Plan,
    options: Options,
    job: Arc<Job>,
    way: Way,
    cores: usize,
    queue: Arc<Queue>,
    ready: AtomicUsize,
    progress: Progress,
}

/// What one core contributes to an [`Outcome`].
struct CorePart {
    begin: Instant,
    end: Instant,
    count: u64,
    crossed_bytes: u64,
    shares: Vec<Share>,
}

async fn core_main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Rc::new(Array::connect(&shared.plan, &shared.options).await);
    let needed = check_members(&array, &shared.job.entry);
    if needed.is_err() {
        shared.queue.stop();
    }
    shared.ready.fetch_add(1, Ordering::AcqRel);
    while shared.ready.load(Ordering::Acquire) < shared.cores && !shared.queue.is_stopped() {
        sleep(Duration::from_micros(100)).await;
    }
    needed?;
    let crossed_before = received_bytes(&array);
    let begin = now();
    let worked = work(core, &array, &shared).await;
    let end = now();
    let crossed_bytes = received_bytes(&array) - crossed_before;
    if let Ok(array) = Rc::try_unwrap(array) {
        array.disconnect().await;
    }
    let (count, shares) = worked.inspect_err(|_| shared.queue.stop())?;
    Ok(CorePart { begin, end, count, crossed_bytes, shares })
}

fn check_members(array: &Array, entry: &Entry) -> Result<(), Error> {
    entry.members.iter().try_for_each(|&member| Ok(array.drive(member.into()).map(|_| ())?))
}

/// The drives' work is watched over by core 0; every core works for the host.
async fn work(
    core: CoreId,
    array: &Rc<Array>,
    shared: &Arc<Shared>,
) -> Result<(u64, Vec<Share>), Error> {
    let mut watched = Vec::new();
    if shared.way != Way::Host && core == CoreId(0) {
        for member in 0..shared.job.entry.members.len() {
            let (array, shared) = (Rc::clone(array), Arc::clone(shared));
            watched.push(spawn(Class::Foreground, async move {
                let Shared { job, queue, progress, .. } = &*shared;
                let part = drives::work(&array, job, member, queue, progress).await;
                part.inspect_err(|_| queue.stop())
            }));
        }
    }
    let (mut count, mut shares, mut failed) = (0, Vec::new(), None);
    if shared.way != Way::Drives {
        match host::work(array, &shared.job, &shared.queue, &shared.progress).await {
            Ok(part) => {
                count += part.count;
                shares.push(part.share);
            }
            Err(error) => failed = Some(error),
        }
    }
    for part in watched {
        match part.await {
            Ok(part) => {
                count += part.count;
                shares.push(part.share);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok((count, shares)), Err)
}

fn received_bytes(array: &Array) -> u64 {
    array.drives().map(|drive| drive.controller.traffic().wire_to_host).sum()
}

#[allow(clippy::cast_precision_loss)] // a run of 2^53 ns takes 104 days
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
