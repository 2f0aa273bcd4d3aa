//! Real runtimes: a thread for each core, and the core's loop. The simulation has a loop of its
//! own.
//!
//! A turn runs the ready foreground and system tasks, sends messages, reads messages, fires timers
//! and polls the back end. Then it runs the tasks that yield, each class for up to `SLICE_NS`. A
//! foreground task therefore waits at most one slice of each such class; tasks that yield are
//! deferred by at most one turn. With nothing to do, the core spins briefly if that paid lately,
//! else it sleeps. Invariant: when one core panics, all others end at their next turn, so that a
//! runtime never goes on with a part of its state lost.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::Notifier;
use crate::backend::epoll::Epoll;
use crate::backend::real::Real;
use crate::backend::uring::Uring;
use crate::backend::{Backend, BackendKind, os, thread};
use crate::class::Class;
use crate::compute_thread::ComputeThreads;
use crate::config::Config;
use crate::core::{Core, CoreId};
use crate::current::Entered;
use crate::idle_wait::{IdleWait, guard_compute};
use crate::mailbox::Shared;
use crate::ready::YIELDING;
use crate::turn_rules::{SLICE_NS, TurnRules};

/// Error that ended a runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A core could not be started: the configuration or the system is at fault.
    #[error("core {core} could not start: {source}")]
    Start {
        /// Number of the core.
        core: CoreId,
        /// Cause.
        source: io::Error,
    },
    /// The back end failed while it ran: the system is at fault.
    #[error("core {core} failed: {source}")]
    Backend {
        /// Number of the core.
        core: CoreId,
        /// Cause.
        source: io::Error,
    },
    /// A task panicked: a bug in this program.
    #[error("core {core} panicked: {message}")]
    Panicked {
        /// Number of the core.
        core: CoreId,
        /// Panic message.
        message: String,
    },
}

/// Starts `config.cores` threads, runs `main(core)` on each until it completes, and returns the
/// results in core order. When a core's main future is done, its other tasks are dropped and its
/// mailbox closed.
///
/// # Errors
/// If a core cannot be started, or panics: the error of the first such core. All others are then
/// torn down.
pub fn run<F, Fut>(config: &Config, main: F) -> Result<Vec<Fut::Output>, Error>
where
    F: Fn(CoreId) -> Fut + Send + Sync + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let main = Arc::new(main);
    start(config, config.cores, |core| {
        let main = Arc::clone(&main);
        move || main(core)
    })
}

/// Runs one future on one core, regardless of `config.cores`.
///
/// # Errors
/// As [`run`].
pub fn block_on<Fut>(
    config: &Config,
    main: impl FnOnce() -> Fut + Send + 'static,
) -> Result<Fut::Output, Error>
where
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let mut main = Some(main);
    let mut outputs =
        start(config, 1, move |_| main.take().expect("there is one core, started once"))?;
    Ok(outputs.pop().expect("one core gives one result"))
}

/// State that the threads of a runtime share.
struct Runtime {
    config: Config,
    started: std::time::Instant,
    peers: Arc<[Arc<Shared>]>,
    /// Set when a core failed: all others end.
    failed: AtomicBool,
}

impl Runtime {
    fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for peer in &*self.peers {
            peer.announce();
        }
    }
}

/// Reason why a core ended without a result.
enum Ended {
    Start(io::Error),
    Backend(io::Error),
    TornDown,
}

fn start<M, Fut>(
    config: &Config,
    cores: usize,
    mut main_of: impl FnMut(CoreId) -> M,
) -> Result<Vec<Fut::Output>, Error>
where
    M: FnOnce() -> Fut + Send + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let refuse = |source| Error::Start { core: CoreId(0), source };
    if cores == 0 {
        let none = io::Error::new(io::ErrorKind::InvalidInput, "a runtime needs at least one core");
        return Err(refuse(none));
    }
    os::ignore_file_size_signal();
    let notifiers =
        (0..cores).map(|_| os::EventFd::new().map(Arc::new)).collect::<io::Result<Vec<_>>>();
    let notifiers = notifiers.map_err(refuse)?;
    let shared = |notifier: &Arc<os::EventFd>| {
        Arc::new(Shared::new(Box::new(EventNotifier(Arc::clone(notifier)))))
    };
    let runtime = Arc::new(Runtime {
        config: config.clone(),
        started: std::time::Instant::now(),
        peers: notifiers.iter().map(shared).collect(),
        failed: AtomicBool::new(false),
    });
    let mut threads = Vec::with_capacity(cores);
    let mut unstarted = None;
    for (index, notifier) in notifiers.into_iter().enumerate() {
        let core = CoreId(index);
        let (main, runtime_of_core) = (main_of(core), Arc::clone(&runtime));
        let builder = std::thread::Builder::new().name(format!("{}-{index}", config.name));
        match builder.spawn(move || run_core(&runtime_of_core, core, notifier, main)) {
            Ok(thread) => threads.push((core, thread)),
            Err(source) => {
                runtime.fail();
                unstarted = Some(Error::Start { core, source });
                break;
            }
        }
    }
    let mut outputs = Vec::with_capacity(cores);
    let mut first_error = unstarted;
    for (core, thread) in threads {
        let error = match thread.join() {
            Ok(Ok(output)) => {
                outputs.push(output);
                continue;
            }
            Ok(Err(Ended::TornDown)) => continue,
            Ok(Err(Ended::Start(source))) => Error::Start { core, source },
            Ok(Err(Ended::Backend(source))) => Error::Backend { core, source },
            Err(panic) => Error::Panicked { core, message: panic_text(&*panic) },
        };
        first_error.get_or_insert(error);
    }
    first_error.map_or(Ok(outputs), Err)
}

/// An eventfd shared by the core's poller and its mailbox.
struct EventNotifier(Arc<os::EventFd>);

impl Notifier for EventNotifier {
    fn notify(&self) {
        self.0.notify();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Closes a core when its thread ends, however it ends.
struct Closing<'a> {
    core: Rc<Core>,
    runtime: &'a Runtime,
    orderly: bool,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if !self.orderly {
            self.runtime.fail();
        }
        self.core.close();
    }
}

/// Marks the runtime as failed when a thread ends before its core exists.
struct Arming<'a>(Option<&'a Runtime>, CoreId);

impl Drop for Arming<'_> {
    fn drop(&mut self) {
        if let Some(runtime) = self.0 {
            runtime.peers[self.1.0].close();
            runtime.fail();
        }
    }
}

fn run_core<Fut: Future + 'static>(
    runtime: &Runtime,
    id: CoreId,
    notifier: Arc<os::EventFd>,
    main: impl FnOnce() -> Fut,
) -> Result<Fut::Output, Ended>
where
    Fut::Output: 'static,
{
    let mut arming = Arming(Some(runtime), id);
    let config = &runtime.config;
    if config.pin {
        thread::pin_thread(id.0).map_err(Ended::Start)?;
    }
    let name = format!("{}-{id}", config.name);
    let backend = make_backend(config, notifier, runtime.started, &name).map_err(Ended::Start)?;
    let core = Core::new(id, Arc::clone(&runtime.peers), backend);
    let _entered = Entered::new(&core);
    let mut closing = Closing { core: Rc::clone(&core), runtime, orderly: false };
    arming.0 = None;

    let output = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&output);
    let main = main();
    let task = async move {
        let value = main.await;
        *slot.borrow_mut() = Some(value);
    };
    core.spawn(Class::System, Box::pin(task));
    let (mut idle_wait, mut rules) = (IdleWait::new(config.spin_us), TurnRules::default());
    while output.borrow().is_none() {
        if runtime.failed.load(Ordering::Relaxed) {
            return Err(Ended::TornDown);
        }
        let done = || output.borrow().is_some();
        turn(&core, &mut rules, &mut idle_wait, &done).map_err(Ended::Backend)?;
    }
    core.flush_messages();
    closing.orderly = true;
    let value = output.borrow_mut().take();
    Ok(value.expect("the loop ends when there is one"))
}

fn make_backend(
    config: &Config,
    notifier: Arc<os::EventFd>,
    started: std::time::Instant,
    name: &str,
) -> io::Result<Rc<dyn Backend>> {
    let threads = || ComputeThreads::new(name, config.compute_yields);
    let uring = |notifier| -> io::Result<Rc<dyn Backend>> {
        Ok(Rc::new(Real::new(Uring::new(notifier, name)?, started, threads())))
    };
    let epoll = |notifier| -> io::Result<Rc<dyn Backend>> {
        Ok(Rc::new(Real::new(Epoll::new(notifier, name)?, started, threads())))
    };
    match config.backend {
        BackendKind::Uring => uring(notifier).map_err(|error| {
            let advice = "use --backend auto or epoll, or allow io_uring (sysctl \
                          kernel.io_uring_disabled, the container's seccomp profile)";
            io::Error::new(error.kind(), format!("io_uring cannot be used: {error}; {advice}"))
        }),
        BackendKind::Epoll => epoll(notifier),
        // Whatever the reason (an old kernel, a container's seccomp filter), epoll will do.
        BackendKind::Auto => uring(Arc::clone(&notifier)).or_else(|_: io::Error| epoll(notifier)),
    }
}

/// Runs one turn of the loop; does not wait once the main future is done.
fn turn(
    core: &Core,
    rules: &mut TurnRules,
    idle_wait: &mut IdleWait,
    done: &dyn Fn() -> bool,
) -> io::Result<()> {
    core.meter.update(|times| times.turns += 1);
    // What these wake waits for the next turn, so that I/O gets its chance in between.
    let mut now_ns = None;
    for _ in 0..core.ready.prompt() {
        now_ns = poll_oldest(core, 0).or(now_ns);
    }
    core.flush_messages();
    if done() {
        return Ok(());
    }
    core.read_messages(|class| core.meter.charge_until(core.backend.now().ns(), class));
    core.fire_timers();
    if core.ready.prompt() > 0 && !rules.poll_is_due(now_ns) {
        return Ok(());
    }
    guard_compute(core);
    // Answers leave here, before anything that yields to hosts runs.
    core.backend.poll(Some(0))?;
    let polled_ns = core.backend.now().ns();
    rules.polled(polled_ns);
    core.meter.charge_until(polled_ns, Class::System);
    run_yielding(core, rules);
    if core.ready.all() > 0 || core.shared.is_pending() {
        return Ok(());
    }
    idle_wait.wait(core)
}

/// Polls the tasks that yield, those of each class for up to a slice of time; defers them by one
/// turn if a foreground task is ready.
fn run_yielding(core: &Core, rules: &mut TurnRules) {
    if rules.others_wait(&core.ready) {
        return;
    }
    YIELDING.into_iter().for_each(|class| run_slice(core, class));
    core.flush_messages();
}

/// Polls ready tasks of a class that yields for up to a slice of time.
fn run_slice(core: &Core, class: Class) {
    let (ready, _) = core.ready.yielding(class);
    if ready == 0 {
        return;
    }
    let began_ns = core.backend.now().ns();
    for _ in 0..ready {
        let (_, first) = core.ready.yielding(class);
        let now_ns = poll_oldest(core, first);
        if now_ns.is_some_and(|now_ns| now_ns - began_ns >= SLICE_NS) {
            break;
        }
    }
}

/// Polls the ready task at `position`; returns the time when it returned, ns.
fn poll_oldest(core: &Core, position: usize) -> Option<u64> {
    let class = core.poll_ready(position)?;
    let now_ns = core.backend.now().ns();
    core.meter.update(|times| times.polls += 1);
    core.meter.charge_until(now_ns, class);
    Some(now_ns)
}
