//! Thread-per-core runtime with io_uring, epoll and simulated back ends
//!
//! Work on sockets waits for readiness, which is the pattern Reactor (Schmidt 1995); work on files
//! waits for completion, which is the pattern Proactor (Pyarali, Harrison, Schmidt, Jordan 1997).
//! Futures hide the difference.
//!
//! A *core* is one thread with its own tasks, timers, sockets and mailbox; cores share nothing and
//! exchange messages. This crate alone uses io_uring, epoll, clocks, threads and random sources, so
//! code on a core also runs, repeatably, in the simulation ([`sim`]).
//!
//! This crate has no notion of drives, commands or media. Invariants: nothing on a core blocks
//! (files and computations have threads of their own, which answer by message); a future is polled
//! and dropped on the core that made it; an operation owns its descriptor and buffers while it is
//! in flight.
//!
//! Modules, in the order of the data path:
//!
//! | module | what it is |
//! |---|---|
//! | `config`, `runtime` | threads, and the loop of a real core |
//! | `idle_wait` | the wait of a real core |
//! | `core`, `core_id` | a core's state; spawning, posting, calling; its number |
//! | `task`, `ready` | the slab of tasks, their wakers and handles; the ready queue |
//! | `class` | priority classes of tasks and jobs |
//! | `instant`, `time`, `timer` | points in time, the clock, timers |
//! | `mailbox`, `oneshot` | messages and answers between threads |
//! | `door` | requests to a core from threads that are no core |
//! | `busy_times` | a core's counters |
//! | `sync` | notify, semaphore, channels, all within a core; barrier; pacer |
//! | `pool` | a connection's commands in flight |
//! | `endpoint`, `net`, `file` | sockets and their addresses, by readiness; files by completion |
//! | `line_writer` | lines to a writer that may block, such as a log's |
//! | `mapped` | memory that pages to a file, for measuring |
//! | `ublk` | block devices of this machine that the process answers for |
//! | `compute_thread` | computation on threads next to the reactor |
//! | `backend` | the interface to the system, and its implementations |
//! | `sim` | the simulated world |

mod backend;

mod busy_times;
mod class;
mod compute_thread;
mod config;
mod core;
mod core_id;
mod current;
mod door;
mod endpoint;
mod file;
mod idle_wait;
mod instant;
mod join;
mod line_writer;
mod mailbox;
mod mapped;
mod net;
mod oneshot;
mod pool;
mod ready;
mod runtime;
pub mod sim;
pub mod sync;
mod task;
mod time;
mod timer;
mod turn_rules;
mod ublk;

pub use backend::thread::{end_with_parent, lead_session, parallelism, redirect_stderr};
pub use backend::{BackendKind, UnknownBackend};
pub use busy_times::BusyTimes;
pub use class::Class;
pub use compute_thread::{
    Compute, ComputeFailed, Job, Progress, Single, compute, compute_fn, compute_long,
};
pub use config::Config;
pub use core::{
    CoreGone, CoreId, backend_name, busy, call, charge, class, core_count, core_id, core_local,
    post, random_bytes, random_u64, set_core_local, spawn, stop_requested, unix_ms, yield_now,
};
pub use csd_buffer::{ALIGNMENT, Buffer, ITEM, work, worked};
pub use door::{Completions, Door, Hosted, Pending, Unanswered, interruptible};
pub use endpoint::Endpoint;
pub use file::{DirectAlignment, File, FileOptions, is_on_fuse};
pub use instant::Instant;
pub use join::{join, race};
pub use line_writer::LineWriter;
pub use mapped::MappedFile;
pub use net::{DetachedStream, Listener, Stream};
pub use pool::TaskPool;
pub use runtime::{Error, block_on, run};
pub use sync::{Acquire, Notify, Pacer, Semaphore, SemaphorePermit, channel, transfer_time};
pub use task::JoinHandle;
pub use time::{Elapsed, Sleep, now, sleep, sleep_until, timeout};
pub use ublk::{UblkAction, UblkDevice, UblkOptions, UblkRequest};
