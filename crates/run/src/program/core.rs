//! A program's run on each core, and the state that the cores share.
//!
//! The first core supervises the drives' work; every core does the host's work. Invariant: the run
//! removes everything that it loaded or stored in a drive at its end, also when a signal ends the
//! run. A run that is killed leaves that to the next one: see [`super::owner`].

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::{CoreId, Semaphore, random_u64, sleep, stop_requested};
use csd_store::array::{Array, Drive, DriveIndex, Plan};
use csd_store::catalogue;

use super::gather::Gather;
use super::lines::{Cut, Heads, UsedHeads};
use super::owner::{Owner, Watch};
use super::{Answer, Function, RunOptions, Task, drives, host};
use crate::Mode;
use crate::cores::{self, CorePart};
use crate::error::Error;
use crate::lease::{self, Leases};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::queue::{Queue, Taken};
use crate::team::Team;
use crate::work::{self, Common, Done, MemberError, Work};

/// State shared by the cores of a run.
pub(super) struct Shared {
    plan: Plan,
    options: Options,
    task: Arc<Task>,
    run_options: RunOptions,
    queue: Arc<Queue>,
    gather: Gather,
    ledger: Arc<Ledger>,
    sums: Mutex<Sums>,
    /// True if heads of lines are read from whole chunks.
    whole_heads: bool,
    /// Heads that executions have used.
    used_heads: UsedHeads,
    /// True once an execution turned out to have used a wrong head.
    mistrusts_heads: AtomicBool,
}

/// Totals of the work done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) bytes: u64,
    pub(super) executions: u64,
    pub(super) handed_bytes: u64,
}

impl Shared {
    pub(super) fn new(
        plan: &Plan,
        options: &Options,
        task: &Arc<Task>,
        run_options: &RunOptions,
        whole_heads: bool,
    ) -> Self {
        Self {
            plan: plan.clone(),
            options: options.clone(),
            task: Arc::clone(task),
            run_options: run_options.clone(),
            queue: Arc::new(Queue::new(task.piles())),
            gather: Gather::new(task),
            ledger: Arc::default(),
            sums: Mutex::default(),
            whole_heads,
            used_heads: UsedHeads::default(),
            mistrusts_heads: AtomicBool::new(false),
        }
    }

    /// Returns true if the run must begin again, with heads of lines from whole chunks.
    pub(super) fn mistrusts_heads(&self) -> bool {
        self.mistrusts_heads.load(Ordering::Relaxed)
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn locked(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sums(&self) -> Sums {
        *self.locked()
    }

    /// Returns the answer of a run that is over.
    pub(super) fn answer(&self) -> Answer {
        self.gather.take().unwrap_or_default()
    }
}

/// State shared by the workers of one core.
pub(super) struct StepContext {
    pub(super) shared: Arc<Shared>,
    pub(super) common: Common,
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

    /// Adds the answer of a chunk; returns the number of elements that the first object has in it.
    pub(super) async fn done(
        &self,
        chunk: u32,
        answer: Option<Answer>,
        cut: &Cut,
    ) -> Result<u64, Error> {
        let task = self.task();
        if !self.shared.whole_heads && !self.shared.used_heads.agree(chunk, cut) {
            self.shared.mistrusts_heads.store(true, Ordering::Relaxed);
            self.common.queue.stop();
        }
        let (executions, bytes) = (u64::from(answer.is_some()), task.chunk_bytes(chunk));
        self.shared.gather.add(chunk, answer).await?;
        {
            let mut sums = self.shared.locked();
            sums.bytes += bytes;
            sums.executions += executions;
            sums.handed_bytes += cut.handed.len() as u64;
        }
        self.common.progress.add(bytes);
        Ok(u64::from(task.layout.chunk_len(chunk)) / task.inputs[0].element.bytes() as u64)
    }
}

impl Work for StepContext {
    fn common(&self) -> &Common {
        &self.common
    }

    fn ahead(&self) -> usize {
        // Chunks that the host takes early are lost to drives that start slowly.
        if self.common.mode == Mode::Split { host::CHUNKS_AHEAD / 2 } else { host::CHUNKS_AHEAD }
    }

    async fn on_host(self: &Rc<Self>, taken: &Taken) -> Result<u64, MemberError> {
        host::chunk(self, taken).await
    }

    async fn on_drive(self: &Rc<Self>, member: usize) -> Result<Done, Error> {
        drives::work(self, member).await
    }
}

/// Number of attempts, and the pause between them, to unload a program that a drive may still run.
const UNLOADS: u32 = 20;
const UNLOAD_PAUSE: Duration = Duration::from_millis(100);

/// Runs one core's share.
pub(super) async fn main(core: CoreId, shared: Arc<Shared>) -> Result<CorePart, Error> {
    let array = Array::connect_drives(&shared.plan, &shared.options).await;
    let inputs = &shared.task.inputs;
    let takes_over = catalogue::are_protected(inputs);
    let members = &inputs[0].members;
    let links = Link::all(&array, &shared.plan, &shared.options, members, takes_over);
    let links = Rc::new(links.inspect_err(|_| shared.queue.stop())?);
    let leads = core == CoreId(0);
    let owner = Owner::new(random_u64(), &shared.options.host_nqn);
    let mut watch = None;
    let mut renewing = Team::default();
    if leads && shared.run_options.mode != Mode::Host {
        watch = Some(Watch::begin(&links, owner).await);
        renewing.add(owner.renew(Rc::clone(&links)));
    }
    let others = if takes_over { cores::others(&array, members) } else { Vec::new() };
    let part = CorePart::begin(&links);
    let heads = if shared.whole_heads { Heads::of_whole_chunks() } else { Heads::default() };
    let context = Rc::new(StepContext {
        shared: Arc::clone(&shared),
        common: Common {
            mode: shared.run_options.mode,
            queue: Arc::clone(&shared.queue),
            links: Rc::clone(&links),
            ledger: Arc::clone(&shared.ledger),
            progress: shared.run_options.progress.clone(),
            pieces: work::pieces(&array, inputs),
            takes_over,
        },
        heads,
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
    let part = part.end(&links).with(&others);
    if let Some(watch) = watch.filter(|_| !stopped) {
        until_stopped(watch.end()).await;
    }
    let drives: Vec<Rc<Drive>> = links.iter().filter_map(Link::connected).collect();
    let members = drives.iter().map(|drive| (drive.index, drive.name.clone())).collect();
    drop((context, links, renewing, drives, others));
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
type Member = (DriveIndex, String);

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

async fn work(core: CoreId, context: &Rc<StepContext>) -> Result<(), Error> {
    let leads = core == CoreId(0);
    let mut leases = None;
    if leads && context.common.mode != Mode::Host && context.task().sandbox.emits() {
        for member in 0..context.common.links.len() {
            drives::areas(context, member)?;
        }
        let may_lose = context.common.takes_over;
        leases = Some(Leases::take(&context.common.links, context.owner.pid, may_lose).await?);
    }
    let mut failed = work::all(context, leads).await.err();
    if let Some(leases) = leases {
        let over = failed.is_some() || context.shared.ledger.has_losses();
        failed = failed.or(leases.finish(over).await.err());
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
