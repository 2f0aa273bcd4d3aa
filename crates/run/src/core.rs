//! The steps of a run on each core, and the state that the cores share and change.
//!
//! A step is one pass over all units: page rank takes many, everything else one. Invariant: all
//! cores reach every barrier, even after a failure, or the others would wait for them forever.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::page_rank::Progress as Step;
use csd_reactor::sync::Barrier;
use csd_reactor::{CoreId, random_u64};
use csd_store::array::Array;

use crate::context::{RunContext, StepContext};
use crate::cores::{self, CorePart};
use crate::drives;
use crate::host;
use crate::lease::Leases;
use crate::link::Link;
use crate::memory;
use crate::queue::{Queue, Taken};
use crate::rank::Ranking;
use crate::work::{self, AllPieces, Common, Done, MemberError, Work};
use crate::{Answer, Error, Mode};

/// State shared by the cores of a run.
pub(crate) struct Shared {
    pub(crate) run: Arc<RunContext>,
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
    pub(crate) fn new(run: RunContext) -> Self {
        let step = (Arc::new(Queue::new(run.job.piles())), Arc::default());
        Self {
            barrier: Barrier::new(run.run_options.cores),
            state: Mutex::new(State { step: Some(step), ..State::default() }),
            run: Arc::new(run),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Runs one core's share.
pub(crate) async fn main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Array::connect_drives(&shared.run.plan, &shared.run.options).await;
    let members = &shared.run.job.inputs[0].members;
    let can_compute = shared.run.job.can_lose_drives();
    let links = Link::all(&array, members, can_compute);
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
    let pieces = work::pieces(&array, &shared.run.job.inputs);
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
        let over = failure.is_some() || shared.run.ledger.has_losses();
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
        mode: shared.run.run_options.mode,
        queue,
        links: Rc::clone(links),
        ledger: Arc::clone(&shared.run.ledger),
        progress: shared.run.run_options.progress.clone(),
        pieces: Rc::clone(pieces),
        takes_over: shared.run.takes_over,
    };
    let (run, holder) = (Arc::clone(&shared.run), shared.state().holder);
    Rc::new(StepContext { common, run, vector, holder, idle: RefCell::default() })
}

/// Prepares the first step: leases the drives' memory if the job needs it, and computes the first
/// ranks of page rank.
async fn prepare(reach: Reach<'_>, shared: &Arc<Shared>) -> Result<Option<Leases>, Error> {
    let (links, _) = reach;
    let step = shared.state().step.clone().expect("the first step");
    let memory_bytes = match shared.run.run_options.mode {
        Mode::Host => 0,
        Mode::Drives | Mode::Split => shared.run.target.memory_bytes(&shared.run.job),
    };
    let mut leases = None;
    if memory_bytes > 0 {
        memory::check(links, memory_bytes)?;
        let holder = random_u64().max(1);
        shared.state().holder = holder;
        leases = Some(Leases::take(links, holder, shared.run.takes_over).await?);
    }
    let begun = async {
        if shared.run.job.has_row_sums() {
            let context = context(reach, shared, step);
            shared.begin(Ranking::begin(&context, shared.run.run_options.ranks).await?);
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
    let lost = shared.run.ledger.has_losses();
    let mut state = shared.state();
    let tally = std::mem::take(&mut *shared.run.tally());
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
        let queue = Arc::new(Queue::new(shared.run.job.piles()));
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
