//! [`Chooser`]: the decisions of a core, and the work on the core that was chosen.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use csd_reactor::{
    Class, ComputeFailed, CoreId, Job, Progress, busy, call, charge, compute, core_id, now,
    random_u64, spawn, yield_now,
};
use csd_sched::{Cost, Decision, Policy, Scheduler, Task};

use super::CoreChoice;

/// The decisions of a core.
pub(crate) struct Chooser {
    choice: Arc<CoreChoice>,
    scheduler: Scheduler,
    /// Window that the scheduler has seen.
    window: u64,
}

impl Chooser {
    pub(crate) fn new(choice: Arc<CoreChoice>) -> Self {
        let scheduler = Scheduler::new(choice.policy(), choice.cores(), None, Cost::default());
        Self { choice, scheduler, window: 0 }
    }

    /// Does a job of about `work_ns` on the core that the policy names. `None` if that core is
    /// gone, because the drive stops.
    ///
    /// # Errors
    /// When the job panics, or the system gives no thread.
    pub(crate) async fn run<J: Job>(
        &mut self,
        job: J,
        work_ns: u64,
    ) -> Option<Result<J::Output, ComputeFailed>> {
        let Decision { core, .. } = self.choose(work_ns).await;
        let _queued = Queued::new(&self.choice.queued_ns[core], work_ns);
        if self.scheduler.policy() == Policy::Inline {
            return Some(Ok(spawn(Class::Foreground, in_the_loop(job)).await));
        }
        let work = async move || compute(Class::Service, job).await;
        call(CoreId(core), Class::Service, work).await.ok()
    }

    async fn choose(&mut self, work_ns: u64) -> Decision {
        let choice = &self.choice;
        self.scheduler.set_policy(choice.policy());
        if choice.ends_window() {
            read_loads(choice).await;
        }
        let window = choice.windows();
        if window != self.window {
            self.scheduler.observe(&choice.latest_window());
            self.window = window;
        }
        let task = Task { origin: core_id().0, work_ns };
        let queued_ns = |core: usize| choice.queued_ns[core].load(Relaxed);
        let decision = self.scheduler.choose(task, queued_ns, random_u64());
        let policy = self.scheduler.policy();
        choice.note(now().ns(), policy, task, decision, self.scheduler.window());
        decision
    }
}

/// Asks every core for its load, and publishes the answers. A core that is gone has none.
async fn read_loads(choice: &CoreChoice) {
    let mut loads = Vec::with_capacity(choice.cores());
    for core in 0..choice.cores() {
        let read = async || busy().foreground_ns;
        let busy_ns = call(CoreId(core), Class::Service, read).await.unwrap_or(0);
        loads.push((busy_ns, choice.requests(core)));
    }
    choice.end_window(now().ns(), &loads);
}

/// Does a job between the commands of hosts, as if it were one of them.
async fn in_the_loop<J: Job>(mut job: J) -> J::Output {
    loop {
        match job.step() {
            Progress::More { cost_ns } => charge(cost_ns),
            Progress::Done { cost_ns, output } => {
                charge(cost_ns);
                return output;
            }
        }
        yield_now().await;
    }
}

/// Work that waits on a core, as long as this lives.
struct Queued<'a> {
    ns: &'a AtomicU64,
    work_ns: u64,
}

impl<'a> Queued<'a> {
    fn new(ns: &'a AtomicU64, work_ns: u64) -> Self {
        ns.fetch_add(work_ns, Relaxed);
        Self { ns, work_ns }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.ns.fetch_sub(self.work_ns, Relaxed);
    }
}
