//! A program's run on each core, and the state that the cores share.
//!
//! The first core supervises the drives' work; every core does the host's work. Invariant: the run
//! removes everything that it loaded or stored in a drive at its end, also when a signal ends the
//! run. A run that is killed leaves that to the next one: see [`super::owner`].

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::{CoreId, Instant, Semaphore, now, random_u64, sleep, stop_requested};

use super::gather::Gather;
use super::lines::Heads;
use super::owner::{Owner, Watch};
use super::team::Team;
use super::{Answer, Function, RunOptions, Task, drives, host};
use crate::array::{Array, Drive, Plan};
use crate::layout::Run;
use crate::object::Error;
use crate::run::context::Losses;
use crate::run::lease::{self, Leases};
use crate::run::link::Link;
use crate::run::queue::Queue;
use crate::run::{Mode, Share};

/// State shared by the cores of a run.
pub(super) struct Shared {
    plan: Plan,
    options: Options,
    task: Arc<Task>,
    run_options: RunOptions,
    queue: Queue,
    gather: Gather,
    losses: Losses,
    sums: Mutex<Sums>,
}

/// Totals of the work done.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) bytes: u64,
    pub(super) executions: u64,
    pub(super) handed_bytes: u64,
    /// Shares, keyed by the name and true for a host's core, so that drives come first.
    pub(super) shares: BTreeMap<(bool, String), Share>,
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
        task: &Arc<Task>,
        run_options: &RunOptions,
    ) -> Self {
        Self {
            plan: plan.clone(),
            options: options.clone(),
            task: Arc::clone(task),
            run_options: run_options.clone(),
            queue: Queue::new(task.piles()),
            gather: Gather::new(task),
            losses: Losses::default(),
            sums: Mutex::default(),
        }
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    fn locked(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sums(&self) -> Sums {
        self.locked().clone()
    }

    pub(super) fn add_share(&self, share: Share, host: bool) {
        self.locked().shares.insert((host, share.who.clone()), share);
    }

    /// Returns the answer of a run that is over.
    pub(super) fn answer(&self) -> Answer {
        self.gather.take().unwrap_or_default()
    }
}

/// State shared by the workers of one core.
pub(super) struct StepContext {
    pub(super) shared: Arc<Shared>,
    /// Links to the drives, by member.
    pub(super) links: Rc<Vec<Link>>,
    pub(super) heads: Heads,
    /// Permit for the core's compute thread: one execution at a time, because an execution's wall
    /// time is bounded.
    pub(super) lane: Semaphore,
    /// Owner of the program in the drives; its identifier is the holder of their memory, too.
    pub(super) owner: Owner,
}

impl StepContext {
    pub(super) fn task(&self) -> &Task {
        &self.shared.task
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    pub(super) fn mode(&self) -> Mode {
        self.shared.run_options.mode
    }

    /// Returns the number of elements in a chunk of the first object.
    pub(super) fn elements(&self, chunk: u32) -> u64 {
        let task = self.task();
        u64::from(task.layout.chunk_len(chunk)) / task.inputs[0].element.bytes() as u64
    }

    /// Records that a member's drive is lost while it worked on `at`, and removes its other units
    /// from the queue.
    pub(super) fn lose(&self, member: usize, error: &Error, at: Option<Run>) {
        self.shared.losses.add(&self.shared.queue, member, error, at);
    }

    /// Adds the answer of a chunk.
    pub(super) async fn done(
        &self,
        chunk: u32,
        answer: Option<Answer>,
        handed_bytes: usize,
    ) -> Result<(), Error> {
        let (executions, bytes) = (u64::from(answer.is_some()), self.task().chunk_bytes(chunk));
        self.shared.gather.add(chunk, answer).await?;
        {
            let mut sums = self.shared.locked();
            sums.bytes += bytes;
            sums.executions += executions;
            sums.handed_bytes += handed_bytes as u64;
        }
        (self.shared.run_options.progress)(bytes);
        Ok(())
    }
}

/// Number of attempts, and the pause between them, to unload a program that a drive may still run.
const UNLOADS: u32 = 20;
const UNLOAD_PAUSE: Duration = Duration::from_millis(100);

/// Runs one core's share.
pub(super) async fn main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Array::connect(&shared.plan, &shared.options).await;
    let links = links(&array, &shared).inspect_err(|_| shared.queue.stop());
    let links = Rc::new(links?);
    let leads = core == CoreId(0);
    let owner = Owner::new(random_u64(), &shared.options.host_nqn);
    let mut watch = None;
    let mut renewing = Team::default();
    if leads && shared.run_options.mode != Mode::Host {
        watch = Some(Watch::begin(&links, owner).await);
        renewing.add(owner.renew(Rc::clone(&links)));
    }
    let crossed = || links.iter().map(Link::crossed_bytes).sum::<u64>();
    let (before, begin) = (crossed(), now());
    let context = Rc::new(StepContext {
        shared: Arc::clone(&shared),
        links: Rc::clone(&links),
        heads: Heads::default(),
        lane: Semaphore::new(1),
        owner,
    });
    let worked = match leads {
        true => until_stopped(work(core, &context)).await,
        false => Some(work(core, &context).await),
    };
    let stopped = worked.is_none();
    if !matches!(worked, Some(Ok(()))) {
        shared.queue.stop();
    }
    let part = CorePart { begin, end: now(), crossed_bytes: crossed() - before };
    if let Some(watch) = watch.filter(|_| !stopped) {
        until_stopped(watch.end()).await;
    }
    let drives: Vec<Rc<Drive>> = links.iter().map(Link::drive).collect();
    let members = drives.iter().map(|drive| (drive.index, drive.name.clone())).collect();
    drop((context, links, renewing, drives));
    // A drive ends executions whose connection closes.
    array.disconnect().await;
    match worked {
        Some(worked) => worked.map(|()| part),
        None if shared.run_options.mode == Mode::Host => {
            Err(Error::Interrupted { left: Vec::new() })
        }
        None => Err(Error::Interrupted { left: clean_up(&shared, owner, members).await }),
    }
}

/// Runs `work`; returns `None` when SIGINT or SIGTERM comes first.
async fn until_stopped<T>(work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut stop) = (pin!(work), pin!(stop_requested()));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => stop.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Index of a drive in the array, and its name.
type Member = (usize, String);

/// Removes what the run loaded and stored in drives, over new connections; returns the names of
/// drives where this failed.
async fn clean_up(shared: &Arc<Shared>, owner: Owner, members: Vec<Member>) -> Vec<String> {
    let mut team = Team::default();
    for (index, name) in members {
        let shared = Arc::clone(shared);
        team.add(async move {
            let Ok(drive) = shared.plan.connect(index, &shared.options).await else {
                return Some(name);
            };
            lease::give_back(&drive, owner.pid).await;
            let mut unloaded = owner.unload(&drive).await;
            for _ in 1..UNLOADS {
                if unloaded.is_ok() {
                    break;
                }
                sleep(UNLOAD_PAUSE).await;
                unloaded = owner.unload(&drive).await;
            }
            drive.controller.clone().disconnect().await;
            unloaded.is_err().then_some(name)
        });
    }
    let mut left = Vec::new();
    while let Some(drive) = team.next().await {
        left.extend(drive);
    }
    left
}

fn links(array: &Array, shared: &Shared) -> Result<Vec<Link>, Error> {
    let members = shared.task.inputs[0].members.iter();
    let link = |&member: &u16| Link::new(array, &shared.plan, &shared.options, member.into());
    members.map(link).collect()
}

async fn work(core: CoreId, context: &Rc<StepContext>) -> Result<(), Error> {
    let leads = core == CoreId(0);
    let mut leases = None;
    let mut watched = Team::default();
    if leads && context.mode() != Mode::Host {
        if context.task().sandbox.emits() {
            for member in 0..context.links.len() {
                drives::areas(context, member)?;
            }
            leases = Some(Leases::take(&context.links, context.owner.pid).await?);
        }
        for member in 0..context.links.len() {
            let context = Rc::clone(context);
            watched.add(async move {
                drives::work(&context, member).await.inspect_err(|_| context.queue().stop())
            });
        }
    }
    let mut failed = match context.mode() {
        Mode::Drives => None,
        Mode::Host | Mode::Split => host::work(context).await.err(),
    };
    while let Some(part) = watched.next().await {
        failed = failed.or(part.err());
    }
    if let Some(leases) = leases {
        if failed.is_none() && !context.shared.losses.any() {
            failed = leases.confirm().await.err();
        }
        leases.end().await;
    }
    if leads && failed.is_none() && context.task().layout.chunks() == 0 {
        failed = over_nothing(context).await.err();
    }
    failed.map_or(Ok(()), Err)
}

/// Runs the program once over empty streams on the host, for an object without chunks, so that its
/// answer has the usual form.
async fn over_nothing(context: &StepContext) -> Result<(), Error> {
    let task = context.task();
    let streams = task.inputs.iter().map(|_| Vec::new()).collect();
    let ran = task.sandbox.run(Function::Run, streams, &task.parameters, task.limits).await;
    let answer = ran.map_err(|why| Error::Program { why })?;
    context.shared.gather.add(0, Some(answer)).await?;
    context.shared.locked().executions += 1;
    Ok(())
}
