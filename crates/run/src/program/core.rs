//! A program's run on each core.
//!
//! The first core supervises the drives' work; every core does the host's work. Invariant: the run
//! removes everything that it loaded or stored in a drive at its end, also when a signal ends the
//! run. A run that is killed leaves that to the next one: see [`super::owner`].

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use csd_reactor::{CoreId, Semaphore, random_u64, sleep, stop_requested};
use csd_store::array::{Array, Drive, DriveIndex};
use csd_store::catalogue;

use super::context::{Shared, StepContext};
use super::lines::Heads;
use super::owner::{Owner, Watch};
use super::{Function, drives, host};
use crate::Mode;
use crate::cores::{self, CorePart};
use crate::error::Error;
use crate::lease::{self, Leases};
use crate::link::Link;
use crate::queue::Taken;
use crate::team::Team;
use crate::work::{self, Common, Done, MemberError, Work};

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
    let links = Link::all(&array, members, takes_over);
    let links = Rc::new(links.inspect_err(|_| shared.queue.stop())?);
    let leads = core == CoreId(0);
    let owner = Owner::new(random_u64(), &shared.options.host_nqn);
    let mut watch = None;
    let mut renewing = Team::default();
    let loads = shared.task.sandbox.built_in().is_none();
    if leads && loads && shared.run_options.mode != Mode::Host {
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
        compute_turn: Semaphore::new(1),
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
    let drives: Vec<Rc<Drive>> = links.iter().filter_map(|link| link.connected()).collect();
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
    if leads && failed.is_none() && context.task().has_no_unit() {
        failed = over_nothing(context).await.err();
    }
    failed.map_or(Ok(()), Err)
}

/// Runs the program once over empty streams on the host, for an object without chunks, so that its
/// answer has the usual form.
async fn over_nothing(context: &StepContext) -> Result<(), Error> {
    let task = context.task();
    let streams = task.inputs.iter().map(|_| Vec::new()).collect();
    let ran = task.sandbox.run(Function::Run, streams, task.parameters(0), task.limits).await;
    let answer = ran.map_err(|why| Error::Program { why })?;
    context.shared.gather.add(0, Some(answer)).await?;
    context.shared.locked().executions += 1;
    Ok(())
}
