//! The steps of a run on each core, and the state that the cores share.
//!
//! A step is one pass over all units: page rank takes many, everything else one. Invariant: all
//! cores reach every barrier, even after a failure, or the others would wait for them forever.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_initiator::Options;
use csd_kernels::kernel::{self, Position};
use csd_kernels::page_rank::Progress as Step;
use csd_kernels::program::Program;
use csd_reactor::sync::Barrier;
use csd_reactor::{CoreId, random_u64};
use csd_store::array::{Array, Plan};

use crate::cores::{self, CorePart};
use crate::drives;
use crate::host;
use crate::lease::Leases;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::memory;
use crate::queue::{Queue, Taken};
use crate::rank::Ranking;
use crate::tally::Tally;
use crate::target::Target;
use crate::work::{self, AllPieces, Common, Done, MemberError, Work};
use crate::{Answer, Error, Job, Mode, RunOptions};

/// State shared by the cores of a run.
pub(crate) struct Shared {
    plan: Plan,
    options: Options,
    job: Arc<Job>,
    pub(crate) run_options: RunOptions,
    pub(crate) target: Target,
    ledger: Arc<Ledger>,
    /// True if the host takes over the units of lost drives.
    takes_over: bool,
    /// Answers of the step so far.
    tally: Mutex<Tally>,
    barrier: Barrier,
    state: Mutex<State>,
}

/// Units of a step, and the vector that all of them read, little-endian.
type Units = (Arc<Queue>, Arc<Vec<u8>>);

/// State that changes from step to step.
#[derive(Default)]
struct State {
    /// The step's units; `None` once the run is over.
    step: Option<Units>,
    ranking: Option<Ranking>,
    bytes: u64,
    answer: Answer,
    failed: bool,
    /// Holder of the leases: see [`StepContext::holder`].
    holder: u64,
}

impl Shared {
    pub(crate) fn new(
        plan: &Plan,
        options: &Options,
        job: &Arc<Job>,
        target: Option<Target>,
        run_options: &RunOptions,
    ) -> Self {
        let target = target.unwrap_or_else(|| Target::without_object(job));
        let takes_over = job.can_lose_drives() && !matches!(target, Target::Object { .. });
        let step = (Arc::new(Queue::new(job.piles())), Arc::default());
        Self {
            plan: plan.clone(),
            options: options.clone(),
            job: Arc::clone(job),
            run_options: run_options.clone(),
            target,
            ledger: Arc::default(),
            takes_over,
            tally: Mutex::default(),
            barrier: Barrier::new(run_options.cores),
            state: Mutex::new(State { step: Some(step), ..State::default() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the answer, and the number of bytes that went into it.
    pub(crate) fn answer(&self) -> (Answer, u64) {
        let state = self.state();
        (state.answer.clone(), state.bytes)
    }

    /// Returns the next step, unless the run is over.
    fn step(&self) -> Option<Units> {
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

/// State shared by the workers of one core during a step.
pub(crate) struct StepContext {
    pub(crate) common: Common,
    pub(crate) shared: Arc<Shared>,
    /// Vector that every unit reads, little-endian; empty if there is none.
    pub(crate) vector: Arc<Vec<u8>>,
    /// Holder of the lease of the drives' memory: a number unique to the run; 0 if the run needs no
    /// memory.
    pub(crate) holder: u64,
    /// Programs of this core that have finished a part and can be reused for another one of the
    /// step.
    pub(crate) idle: RefCell<Vec<Box<dyn Program>>>,
}

impl StepContext {
    pub(crate) fn job(&self) -> &Job {
        &self.shared.job
    }

    /// Adds the answer of an execution over `taken`, whose items are at `position`; returns the
    /// number of its elements.
    pub(crate) fn done(&self, taken: &Taken, position: &Position, answer: kernel::Answer) -> u64 {
        let (job, bytes) = (self.job(), self.job().run_bytes(&taken.run));
        self.shared.tally().add(job, taken, position, answer);
        (self.common.progress)(bytes);
        bytes / job.inputs[0].element.bytes() as u64
    }
}

/// Runs one core's share.
pub(crate) async fn main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Array::connect_drives(&shared.plan, &shared.options).await;
    let members = &shared.job.inputs[0].members;
    let can_compute = shared.job.can_lose_drives();
    let links = Link::all(&array, &shared.plan, &shared.options, members, can_compute);
    if links.is_err() {
        shared.fail();
    }
    shared.barrier().await;
    if shared.state().failed {
        links?;
        // Another core reports the reason.
        return Ok(CorePart::begin(&[]));
    }
    let links = Rc::new(links?);
    let pieces = work::pieces(&array, &shared.job.inputs);
    let others = if can_compute { cores::others(&array, members) } else { Vec::new() };
    let part = CorePart::begin(&links);
    let worked = steps(core, (&links, &pieces), &shared).await;
    let part = part.end(&links).with(&others);
    drop(links);
    array.disconnect().await;
    worked.map(|()| part)
}

/// Links to the drives of a run's members, and the pieces of its inputs.
type Reach<'a> = (&'a Rc<Vec<Link>>, &'a AllPieces);

/// Runs steps until the run is over; the first core leads.
async fn steps(core: CoreId, reach: Reach<'_>, shared: &Arc<Shared>) -> Result<(), Error> {
    let leads = core == CoreId(0);
    let mut failure = None;
    let mut note = |error| {
        shared.fail();
        failure.get_or_insert(error);
    };
    let leases = if leads { prepare(reach, shared).await.map_err(&mut note) } else { Ok(None) };
    loop {
        shared.barrier().await;
        let Some(step) = shared.step() else { break };
        let context = context(reach, shared, step);
        if let Err(error) = work::all(&context, leads).await {
            note(error);
        }
        shared.barrier().await;
        if leads {
            lead(shared);
            if let Err(error) = publish(reach, shared).await {
                note(error);
            }
        }
    }
    if let Ok(Some(leases)) = leases {
        let over = failure.is_some() || shared.ledger.has_losses();
        failure = failure.or(leases.finish(over).await.err());
    }
    failure.map_or(Ok(()), Err)
}

fn context(
    (links, pieces): Reach<'_>,
    shared: &Arc<Shared>,
    (queue, vector): Units,
) -> Rc<StepContext> {
    let common = Common {
        mode: shared.run_options.mode,
        queue,
        links: Rc::clone(links),
        ledger: Arc::clone(&shared.ledger),
        progress: Arc::clone(&shared.run_options.progress),
        pieces: Rc::clone(pieces),
        takes_over: shared.takes_over,
    };
    let (shared, holder) = (Arc::clone(shared), shared.state().holder);
    Rc::new(StepContext { common, shared, vector, holder, idle: RefCell::default() })
}

/// Prepares the first step: leases the drives' memory if the job needs it, and computes the first
/// ranks of page rank.
async fn prepare(reach: Reach<'_>, shared: &Arc<Shared>) -> Result<Option<Leases>, Error> {
    let (links, _) = reach;
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
        leases = Some(Leases::take(links, holder, shared.takes_over).await?);
    }
    let begun = async {
        if shared.job.has_row_sums() {
            let context = context(reach, shared, step);
            shared.begin(Ranking::begin(&context, shared.run_options.ranks).await?);
        }
        publish(reach, shared).await
    };
    let begun = begun.await;
    if begun.is_err()
        && let Some(leases) = leases.take()
    {
        leases.end().await;
    }
    begun.map(|()| leases)
}

/// Prepares the memory of the drives for the next step.
async fn publish(reach: Reach<'_>, shared: &Arc<Shared>) -> Result<(), Error> {
    let step = shared.state().step.clone();
    match step {
        Some(step) if shared.state().holder != 0 => {
            memory::prepare_all(&context(reach, shared, step)).await
        }
        _ => Ok(()),
    }
}

/// Ends a step: sets the answer, or the next step.
fn lead(shared: &Shared) {
    let lost = shared.ledger.has_losses();
    let mut state = shared.state();
    let tally = std::mem::take(&mut *shared.tally());
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

impl Work for StepContext {
    fn common(&self) -> &Common {
        &self.common
    }

    fn ahead(&self) -> usize {
        host::ahead(self)
    }

    async fn on_host(self: &Rc<Self>, taken: &Taken) -> Result<u64, MemberError> {
        host::unit(self, taken).await.map_err(|error| (taken.member, error))
    }

    async fn on_drive(self: &Rc<Self>, member: usize) -> Result<Done, Error> {
        drives::work(self, member).await
    }
}
