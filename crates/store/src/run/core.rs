//! The steps of a run on each core, and the state that the cores share.
//!
//! A step is one pass over all units: page rank takes many, everything else one. Invariant: all
//! cores reach every barrier, even after a failure, or the others would wait for them forever.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_initiator::Options;
use csd_kernels::page_rank::Progress as Step;
use csd_reactor::sync::Barrier;
use csd_reactor::{Class, CoreId, Instant, now, random_u64, spawn};

use super::context::{Losses, StepContext};
use super::drives::{self, Part};
use super::host;
use super::lease::Leases;
use super::link::Link;
use super::memory;
use super::queue::Queue;
use super::rank::Ranking;
use super::tally::Tally;
use super::target::Target;
use super::{Answer, Error, Job, Mode, RunOptions, Share};
use crate::array::{Array, Plan};

/// State shared by the cores of a run.
pub(super) struct Shared {
    plan: Plan,
    options: Options,
    job: Arc<Job>,
    run_options: RunOptions,
    target: Target,
    losses: Arc<Losses>,
    barrier: Barrier,
    state: Mutex<State>,
}

/// Work of a step: its units, and the vector that all of them read, little-endian.
type Work = (Arc<Queue>, Arc<Vec<u8>>);

/// State that changes from step to step.
#[derive(Default)]
struct State {
    /// The step's work; `None` once the run is over.
    step: Option<Work>,
    ranking: Option<Ranking>,
    tally: Tally,
    bytes: u64,
    shares: BTreeMap<(bool, String), Share>,
    answer: Answer,
    failed: bool,
    /// Holder of the leases: see [`StepContext::holder`].
    holder: u64,
}

/// Contribution of one core to an outcome.
pub(super) struct CorePart {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    pub(super) crossed_bytes: u64,
}

impl Shared {
    pub(super) fn new(
        plan: &Plan,
        options: &Options,
        job: &Arc<Job>,
        target: Option<Target>,
        run_options: &RunOptions,
    ) -> Self {
        let target = target.unwrap_or_else(|| Target::without_object(job));
        let step = (Arc::new(Queue::new(job.piles())), Arc::default());
        Self {
            plan: plan.clone(),
            options: options.clone(),
            job: Arc::clone(job),
            run_options: run_options.clone(),
            target,
            losses: Arc::default(),
            barrier: Barrier::new(run_options.cores),
            state: Mutex::new(State { step: Some(step), ..State::default() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the answer, and the number of bytes that went into it.
    pub(super) fn answer(&self) -> (Answer, u64) {
        let state = self.state();
        (state.answer.clone(), state.bytes)
    }

    /// Returns the shares of drives and cores, drives first.
    pub(super) fn shares(&self) -> Vec<Share> {
        self.state().shares.values().cloned().collect()
    }

    /// Returns the next step, unless the run is over.
    fn step(&self) -> Option<Work> {
        let state = self.state();
        state.step.clone().filter(|_| !state.failed)
    }

    /// Waits for all cores.
    async fn barrier(&self) {
        self.barrier.wait().await.expect("no core breaks it: all reach it, failed or not");
    }

    /// Starts page rank: sets up its first step.
    fn begin(&self, ranking: Ranking) {
        let mut state = self.state();
        if let Some((_, vector)) = &mut state.step {
            *vector = Arc::new(ranking.vector());
        }
        state.ranking = Some(ranking);
    }

    /// Records a failure, which ends the run.
    fn fail(&self) {
        let mut state = self.state();
        state.failed = true;
        if let Some((queue, _)) = &state.step {
            queue.stop();
        }
    }
}

/// Runs one core's share.
pub(super) async fn main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Array::connect(&shared.plan, &shared.options).await;
    let links = links(&array, &shared);
    if links.is_err() {
        shared.fail();
    }
    shared.barrier().await;
    if shared.state().failed {
        links?;
        // Another core reports the reason.
        return Ok(CorePart { begin: now(), end: now(), crossed_bytes: 0 });
    }
    let links = Rc::new(links?);
    let crossed = || links.iter().map(Link::crossed_bytes).sum::<u64>();
    let (before, begin) = (crossed(), now());
    let worked = steps(core, &links, &shared).await;
    let part = CorePart { begin, end: now(), crossed_bytes: crossed() - before };
    drop(links);
    array.disconnect().await;
    worked.map(|()| part)
}

fn links(array: &Array, shared: &Shared) -> Result<Vec<Link>, Error> {
    let members = shared.job.inputs[0].members.iter();
    let link = |&member: &u16| Link::new(array, &shared.plan, &shared.options, member.into());
    members.map(link).collect()
}

/// Runs steps until the run is over; the first core leads.
async fn steps(core: CoreId, links: &Rc<Vec<Link>>, shared: &Arc<Shared>) -> Result<(), Error> {
    let leads = core == CoreId(0);
    let (mut leases, mut failure) = (None, None);
    if leads {
        match prepare(links, shared).await {
            Ok(taken) => leases = taken,
            Err(error) => {
                shared.fail();
                failure = Some(error);
            }
        }
    }
    loop {
        shared.barrier().await;
        let Some(step) = shared.step() else { break };
        let context = Rc::new(context(links, shared, step));
        if let Err(error) = work(core, &context, shared).await {
            shared.fail();
            failure = failure.or(Some(error));
        }
        shared.barrier().await;
        if leads {
            lead(shared);
            if let Err(error) = publish(links, shared).await {
                shared.fail();
                failure = failure.or(Some(error));
            }
        }
    }
    if let Some(leases) = leases {
        if failure.is_none() && !shared.losses.any() {
            failure = leases.confirm().await.err();
        }
        leases.end().await;
    }
    failure.map_or(Ok(()), Err)
}

fn context(links: &Rc<Vec<Link>>, shared: &Shared, (queue, vector): Work) -> StepContext {
    StepContext {
        job: Arc::clone(&shared.job),
        mode: shared.run_options.mode,
        drive_cores: shared.run_options.drive_cores,
        queue,
        links: Rc::clone(links),
        target: shared.target.clone(),
        vector,
        holder: shared.state().holder,
        progress: Arc::clone(&shared.run_options.progress),
        losses: Arc::clone(&shared.losses),
    }
}

/// Prepares the first step: leases the drives' memory if the job needs it, and computes the first
/// ranks of page rank.
async fn prepare(links: &Rc<Vec<Link>>, shared: &Arc<Shared>) -> Result<Option<Leases>, Error> {
    let step = shared.state().step.clone().expect("the first step");
    let memory_bytes = match shared.run_options.mode {
        Mode::Host => 0,
        Mode::Drives | Mode::Split => shared.target.memory_bytes(&shared.job),
    };
    let mut leases = None;
    if memory_bytes > 0 {
        memory::check(links, memory_bytes)?;
        let holder = random_u64().max(1);
        shared.state().holder = holder;
        leases = Some(Leases::take(links, holder).await?);
    }
    let begun = async {
        if shared.job.has_row_sums() {
            let context = Rc::new(context(links, shared, step));
            shared.begin(Ranking::begin(&context, shared.run_options.ranks).await?);
        }
        publish(links, shared).await
    };
    match (begun.await, leases) {
        (Ok(()), leases) => Ok(leases),
        (Err(error), Some(leases)) => {
            leases.end().await;
            Err(error)
        }
        (Err(error), None) => Err(error),
    }
}

/// Prepares the memory of the drives for the next step.
async fn publish(links: &Rc<Vec<Link>>, shared: &Arc<Shared>) -> Result<(), Error> {
    let step = shared.state().step.clone();
    match step {
        Some(step) if shared.state().holder != 0 => {
            memory::prepare_all(&Rc::new(context(links, shared, step))).await
        }
        _ => Ok(()),
    }
}

/// Ends a step: sets the answer, or the next step.
fn lead(shared: &Shared) {
    let lost = shared.losses.any();
    let mut state = shared.state();
    let tally = std::mem::take(&mut state.tally);
    state.bytes += tally.bytes;
    state.step = None;
    if state.failed {
        return;
    }
    state.answer.whole = tally.answer;
    state.answer.parts = tally.parts;
    state.answer.parts.sort_unstable();
    let Some(mut ranking) = state.ranking.take() else { return };
    // Without all sums there can be no next step.
    let progress = if lost { Step::Exhausted } else { ranking.advance(tally.sums) };
    if progress == Step::Again {
        let queue = Arc::new(Queue::new(shared.job.piles()));
        state.step = Some((queue, Arc::new(ranking.vector())));
    } else {
        state.answer.ranks = Some(ranking.ranks(progress));
    }
    state.ranking = Some(ranking);
}

/// Runs one step: the first core supervises the drives' work; every core does the host's work.
async fn work(core: CoreId, context: &Rc<StepContext>, shared: &Shared) -> Result<(), Error> {
    let mut watched = Vec::new();
    if shared.run_options.mode != Mode::Host && core == CoreId(0) {
        for member in 0..context.links.len() {
            let context = Rc::clone(context);
            watched.push(spawn(Class::Foreground, async move {
                let part = drives::work(&context, member).await;
                part.inspect_err(|_| context.queue.stop())
            }));
        }
    }
    let mut failed = None;
    if shared.run_options.mode != Mode::Drives {
        match host::work(context).await {
            Ok(part) => add(shared, part, true),
            Err(error) => failed = Some(error),
        }
    }
    for part in watched {
        match part.await {
            Ok(part) => add(shared, part, false),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(()), Err)
}

fn add(shared: &Shared, part: Part, host: bool) {
    let mut state = shared.state();
    state.tally.add(&shared.job, part.tally);
    let Share { who, elements, busy_s } = part.share;
    let key = (host, who.clone());
    let share = state.shares.entry(key).or_insert(Share { who, elements: 0, busy_s: 0.0 });
    share.elements += elements;
    share.busy_s += busy_s;
}
