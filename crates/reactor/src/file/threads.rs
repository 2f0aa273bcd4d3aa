//! Helper threads of a core, for file operations that would block its back end.
//!
//! Invariant: every submitted operation is executed and answered, even if the core ends meanwhile.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::{FileDone, FileOp};
use crate::backend::thread::NO_THREAD;
use crate::oneshot::Sender;

/// Maximum number of helper threads of a core.
const THREADS_MAX: usize = 4;

struct Queue {
    waiting: VecDeque<(Box<FileOp>, Sender<FileDone>)>,
    idle: usize,
    stopping: bool,
}

struct Pool {
    queue: Mutex<Queue>,
    changed: Condvar,
    // Operations that are not answered.
    pending: AtomicUsize,
}

impl Pool {
    /// Locks the queue. Operations run outside the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, reply: Sender<FileDone>, done: FileDone) {
        // Before the answer: the core that gets it looks next.
        self.pending.fetch_sub(1, Ordering::Relaxed);
        reply.send(done);
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some((op, reply)) = queue.waiting.pop_front() {
                drop(queue);
                self.answer(reply, op.run());
                queue = self.lock();
            } else if queue.stopping {
                return;
            } else {
                queue.idle += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

/// Helper threads of a core, started as needed. Dropping this waits until they have finished all
/// submitted operations.
pub(crate) struct FileThreads {
    name: String,
    pool: Arc<Pool>,
    threads: std::cell::RefCell<Vec<JoinHandle<()>>>,
}

impl FileThreads {
    pub(crate) fn new(core_name: &str) -> Self {
        let queue = Queue { waiting: VecDeque::new(), idle: 0, stopping: false };
        Self {
            name: format!("{core_name}-file"),
            pool: Arc::new(Pool {
                queue: Mutex::new(queue),
                changed: Condvar::new(),
                pending: AtomicUsize::new(0),
            }),
            threads: std::cell::RefCell::default(),
        }
    }

    pub(crate) fn start(&self, op: Box<FileOp>, reply: Sender<FileDone>) {
        self.pool.pending.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.pool.lock();
        queue.waiting.push_back((op, reply));
        let short_of_hands = queue.waiting.len() > queue.idle;
        drop(queue);
        self.pool.changed.notify_one();
        let mut threads = self.threads.borrow_mut();
        if short_of_hands && threads.len() < THREADS_MAX {
            let pool = Arc::clone(&self.pool);
            let builder = std::thread::Builder::new().name(self.name.clone());
            match builder.spawn(move || pool.work()) {
                Ok(thread) => threads.push(thread),
                // With one thread at least the work will be done, if later.
                Err(_) if !threads.is_empty() => {}
                Err(error) => self.refuse(&error),
            }
        }
    }

    /// Returns true while an operation is not answered.
    pub(crate) fn work(&self) -> bool {
        self.pool.pending.load(Ordering::Relaxed) > 0
    }

    /// Answers every queued operation with the error that prevented a thread from starting.
    fn refuse(&self, error: &io::Error) {
        let waiting = std::mem::take(&mut self.pool.lock().waiting);
        for (op, reply) in waiting {
            self.pool.answer(reply, op.finish(Err(no_thread(error))));
        }
    }
}

/// Returns the error of an operation for which the system gave no thread.
pub(crate) fn no_thread(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{NO_THREAD} ({error})"))
}

impl Drop for FileThreads {
    fn drop(&mut self) {
        self.pool.lock().stopping = true;
        self.pool.changed.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            let _ended = thread.join();
        }
    }
}
