//! [`Served`]: RocksDB in the place of a drive's log, behind the drive's server.
//!
//! RocksDB waits for its disk, so threads of its own call it. A thread that finds several puts
//! takes them together; RocksDB groups those of several threads by itself, too. Invariant: a put is
//! answered when its log is synced.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use csd_drive::kv_store::{Answer, Held, KvStore};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;
use futures_channel::oneshot::{Sender, channel};

use crate::store::Store;

/// Most bytes of values that a thread writes together, unless one is longer.
const BATCH_BYTES: usize = 1 << 20;

/// A put on its way.
struct Put {
    key: Key,
    pieces: Vec<Buffer>,
    answer: Sender<Result<(), Status>>,
}

enum Task {
    Put(Put),
    Get(Key, Sender<Result<Option<Held>, Status>>),
}

#[derive(Default)]
struct Queue {
    tasks: Mutex<VecDeque<Task>>,
    filled: Condvar,
}

/// A database behind a drive's server; see the module's text.
pub struct Served(Arc<Queue>);

impl Served {
    /// Serves a database by so many threads. They end with the process.
    pub fn new(store: Store, threads: usize) -> Self {
        let (store, queue) = (Arc::new(store), Arc::<Queue>::default());
        for _ in 0..threads {
            let (store, queue) = (Arc::clone(&store), Arc::clone(&queue));
            std::thread::spawn(move || {
                loop {
                    run(&store, queue.next());
                }
            });
        }
        Self(queue)
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RocksDB")
    }
}

impl KvStore for Served {
    fn store(&self, key: Key, pieces: Vec<Buffer>) -> Answer<()> {
        let (answer, answered) = channel();
        self.0.push(Task::Put(Put { key, pieces, answer }));
        Box::pin(async { answered.await.unwrap_or(Err(Status::INTERNAL_ERROR)) })
    }

    fn retrieve(&self, key: Key) -> Answer<Option<Held>> {
        let (answer, answered) = channel();
        self.0.push(Task::Get(key, answer));
        Box::pin(async { answered.await.unwrap_or(Err(Status::INTERNAL_ERROR)) })
    }
}

impl Queue {
    fn push(&self, task: Task) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
        self.filled.notify_one();
    }

    /// Waits for a get, or for puts that fit one batch.
    fn next(&self) -> Vec<Task> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = self.filled.wait_while(tasks, |tasks| tasks.is_empty());
        let mut tasks = tasks.unwrap_or_else(PoisonError::into_inner);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(task) = tasks.pop_front() {
            match &task {
                Task::Get(..) if taken.is_empty() => return vec![task],
                Task::Put(put) if taken.is_empty() || bytes + put.bytes() <= BATCH_BYTES => {
                    bytes += put.bytes();
                    taken.push(task);
                }
                _ => {
                    tasks.push_front(task);
                    break;
                }
            }
        }
        taken
    }
}

impl Put {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }
}

/// Runs a get, or puts in one batch. A host that is gone takes no answer.
fn run(store: &Store, tasks: Vec<Task>) {
    let mut puts = Vec::new();
    for task in tasks {
        match task {
            Task::Put(put) => puts.push(put),
            Task::Get(key, answer) => {
                let value = store.get(key.as_bytes());
                let value = value.map(|it| it.map(|it| Box::new(it) as Held)).map_err(status);
                let _gone = answer.send(value);
            }
        }
    }
    if puts.is_empty() {
        return;
    }
    let values = puts.iter().map(|put| (put.key.as_bytes(), &put.pieces[..]));
    let written = store.write(values).map_err(status);
    for put in puts {
        let _gone = put.answer.send(written);
    }
}

/// Says an error on standard error, and returns its status.
fn status(error: csd_bench::Error) -> Status {
    eprintln!("{error}");
    Status::INTERNAL_ERROR
}
