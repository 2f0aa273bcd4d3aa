//! [`Loader`]: loads a key-value namespace through the client library.
//!
//! Every thread is a core of the reactor with a connection of its own and `depth` operations in
//! flight. Invariants: stores keys with the loader's own prefix only; checks the length of every
//! value that it retrieves.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use csd_client::{Address, Info, Key, Session, Settings};
use csd_reactor::{Class, Config, CoreId, Hosted, core_local, random_bytes, set_core_local, spawn};
use hdrhistogram::Histogram;

use crate::Error;
use crate::frame::Stop;
use crate::serve::{SPIN_US, Server};
use crate::wire::NQN;

/// First bytes of every key that a loader stores.
pub const PREFIX: &[u8; 4] = b"csdb";
/// Largest latency that a histogram resolves, ns.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Size of a List command, bytes.
const LIST_BYTES: u32 = 64 << 10;
/// Size of the Retrieve command that finds the length of a value, bytes.
const FRONT_BYTES: u32 = 64;

/// Operation of a run.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Stores this value.
    Put(Arc<Vec<u8>>),
    /// Stores a value for each key, by its number.
    PutEach(Arc<Vec<Vec<u8>>>),
    /// Retrieves a value, which has this length if one is given.
    Get(Option<u64>),
    /// Stores this value and retrieves one as long, in turns.
    PutAndGet(Arc<Vec<u8>>),
    /// Deletes a value.
    Delete,
}

/// A run that ended.
#[derive(Debug)]
pub struct Ran {
    /// Time from the first operation to the last completion.
    pub elapsed: Duration,
    /// Latencies of the operations, ns.
    pub latencies: Histogram<u64>,
}

/// Connections to a key-value namespace; see the module's text.
pub struct Loader {
    hosted: Hosted,
    threads: usize,
    prefix: [u8; 12],
    info: Info,
    stop: Stop,
}

impl Loader {
    /// Connects each of `threads` threads.
    ///
    /// # Errors
    /// If the drive cannot be reached, or has no such namespace.
    pub fn connect(
        address: &Address,
        settings: &Settings,
        threads: usize,
        stop: &Stop,
    ) -> Result<Self, Error> {
        Self::spinning(address, settings, (threads, SPIN_US), stop)
    }

    /// Connects threads that poll for so many microseconds before they sleep.
    fn spinning(
        address: &Address,
        settings: &Settings,
        (threads, spin_us): (usize, u32),
        stop: &Stop,
    ) -> Result<Self, Error> {
        let config = Config {
            name: "bench".to_owned(),
            cores: threads,
            compute_yields: false,
            spin_us,
            ..Config::default()
        };
        let hosted = Hosted::start(&config, threads).map_err(failed)?;
        let mut connected = None;
        for core in 0..threads {
            stop.check()?;
            let (address, settings) = (address.clone(), settings.clone());
            let opened = hosted.door().call(CoreId(core), move || async move {
                let session = Session::connect(&address, &settings).await?;
                let info = session.info().await?;
                set_core_local(Rc::new(session));
                let mut own = [0; 8];
                random_bytes(&mut own);
                Ok::<_, csd_client::Error>((info, own))
            });
            connected = Some(opened.map_err(failed)?.map_err(failed)?);
        }
        let (info, own) = connected.ok_or_else(|| Error::Usage("a thread is needed".to_owned()))?;
        let mut prefix = [0; 12];
        prefix[..4].copy_from_slice(PREFIX);
        prefix[4..].copy_from_slice(&own);
        Ok(Self { hosted, threads, prefix, info, stop: stop.clone() })
    }

    /// Connects to a drive that the measurement has started. A lost connection is an error, not a
    /// pause.
    ///
    /// # Errors
    /// Those of [`Loader::connect`].
    pub fn started(server: &Server, threads: usize, stop: &Stop) -> Result<Self, Error> {
        Self::at_server(server, (threads, SPIN_US), stop)
    }

    /// Does the same with threads that sleep when they have nothing to do, because they share the
    /// CPUs with the drive.
    ///
    /// # Errors
    /// Those of [`Loader::connect`].
    pub fn sharing(server: &Server, threads: usize, stop: &Stop) -> Result<Self, Error> {
        Self::at_server(server, (threads, 0), stop)
    }

    fn at_server(server: &Server, threads: (usize, u32), stop: &Stop) -> Result<Self, Error> {
        let settings = Settings { tries: 0, ..Settings::default() };
        Self::spinning(&Address::new(server.address, NQN), &settings, threads, stop)
    }

    /// Stores `count` values of `value_bytes` bytes. Returns their keys, in order.
    ///
    /// # Errors
    /// Those of [`Loader::run`].
    pub fn fill(&self, count: u32, value_bytes: u32) -> Result<Arc<Vec<Key>>, Error> {
        let keys = Arc::new(self.keys(count));
        let put = Operation::Put(Arc::new(vec![0x5A; value_bytes as usize]));
        self.run(&put, &keys, keys.len(), 64)?;
        Ok(keys)
    }

    /// Returns the description of the namespace when it was connected.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns `count` keys of its own, in order.
    pub fn keys(&self, count: u32) -> Vec<Key> {
        let key = |index: u32| {
            let mut bytes = [0; 16];
            bytes[..12].copy_from_slice(&self.prefix);
            bytes[12..].copy_from_slice(&index.to_be_bytes());
            Key::new(&bytes).expect("16 bytes")
        };
        (0..count).map(key).collect()
    }

    /// Returns at most `most` keys that the namespace has, as many as one List returns, and the
    /// length of all their values in bytes.
    ///
    /// # Errors
    /// Those of the commands; a namespace without keys.
    pub fn existing(&self, most: usize) -> Result<(Vec<Key>, u64), Error> {
        let asked = self.hosted.door().call(CoreId(0), move || async move {
            let session = session();
            let mut keys = session.list(None, LIST_BYTES).await?;
            keys.truncate(most);
            let mut bytes = 0;
            for key in &keys {
                bytes += session.front(key, FRONT_BYTES).await?.map_or(0, |(_, whole)| whole);
            }
            Ok::<_, csd_client::Error>((keys, bytes))
        });
        let (keys, bytes) = asked.map_err(failed)?.map_err(failed)?;
        if keys.is_empty() {
            let why = "has no values to read: --write lets the command store its own";
            return Err(Error::Usage(format!("{} {why}", self.info.address)));
        }
        Ok((keys, bytes))
    }

    /// Executes the operation `count` times, on the keys in turn, with `depth` in flight on each
    /// thread. Only deletes go on after the measurement was asked to end.
    ///
    /// # Errors
    /// The first error of an operation; [`Error::Interrupted`].
    pub fn run(
        &self,
        operation: &Operation,
        keys: &Arc<Vec<Key>>,
        count: usize,
        depth: u16,
    ) -> Result<Ran, Error> {
        let next = Arc::new(AtomicUsize::new(0));
        let stop = match operation {
            Operation::Delete => Stop::default(),
            _ => self.stop.clone(),
        };
        let start = Instant::now();
        let started: Result<Vec<_>, _> = (0..self.threads)
            .map(|core| {
                let turn = Turn {
                    operation: operation.clone(),
                    keys: Arc::clone(keys),
                    count,
                    next: Arc::clone(&next),
                    stop: stop.clone(),
                };
                self.hosted.door().submit(CoreId(core), move || turn.all(depth))
            })
            .collect();
        let mut latencies = histogram();
        // Every thread has ended before an error is returned.
        let ended: Vec<_> =
            started.map_err(failed)?.into_iter().map(csd_reactor::Pending::wait).collect();
        for one in ended {
            latencies.add(one.map_err(failed)??).expect("the same bounds");
        }
        Ok(Ran { elapsed: start.elapsed(), latencies })
    }
}

/// Share of one thread in a run.
struct Turn {
    operation: Operation,
    keys: Arc<Vec<Key>>,
    count: usize,
    next: Arc<AtomicUsize>,
    stop: Stop,
}

impl Turn {
    /// Keeps `depth` operations in flight until none is left.
    async fn all(self, depth: u16) -> Result<Histogram<u64>, Error> {
        let latencies = Rc::new(RefCell::new(histogram()));
        let turn = Rc::new(self);
        let tasks: Vec<_> = (0..depth)
            .map(|_| {
                let (turn, latencies) = (Rc::clone(&turn), Rc::clone(&latencies));
                spawn(Class::System, async move { turn.one_by_one(&latencies).await })
            })
            .collect();
        let mut outcome = Ok(());
        for task in tasks {
            outcome = outcome.and(task.await);
        }
        outcome.map(|()| latencies.replace(histogram()))
    }

    async fn one_by_one(&self, latencies: &RefCell<Histogram<u64>>) -> Result<(), Error> {
        let session = session();
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            if index >= self.count {
                return Ok(());
            }
            self.stop.check()?;
            let start = Instant::now();
            if let Err(error) = self.one(&session, index % self.keys.len()).await {
                // The other tasks start nothing more.
                self.next.store(self.count, Relaxed);
                return Err(error);
            }
            let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            latencies.borrow_mut().saturating_record(ns);
        }
    }

    /// Executes one operation.
    async fn one(&self, session: &Session, index: usize) -> Result<(), Error> {
        let key = &self.keys[index];
        match &self.operation {
            Operation::Put(value) => put(session, key, value).await,
            Operation::PutEach(values) => put(session, key, &values[index]).await,
            Operation::Get(wanted) => get(session, key, *wanted).await,
            Operation::PutAndGet(value) => match index.is_multiple_of(2) {
                true => put(session, key, value).await,
                false => get(session, key, Some(value.len() as u64)).await,
            },
            Operation::Delete => session.delete_object(key).await.map(drop).map_err(failed),
        }
    }
}

/// Stores a value, in pieces if it is longer than the namespace takes.
async fn put(session: &Session, key: &Key, value: &[u8]) -> Result<(), Error> {
    if value.len() as u64 > u64::from(session.value_bytes_max()) {
        let stored = session.put_object(key, &mut &*value, 0, &|_| {}).await;
        return stored.map(drop).map_err(failed);
    }
    session.put(key, value, 0).await.map_err(failed)
}

/// Retrieves a value, which has `wanted` bytes if a length is given, likewise.
async fn get(session: &Session, key: &Key, wanted: Option<u64>) -> Result<(), Error> {
    let found = match wanted {
        Some(bytes) if bytes > u64::from(session.value_bytes_max()) => {
            session.get_object(key).await.map_err(failed)?.map(|object| object.len())
        }
        _ => session.get(key).await.map_err(failed)?.map(|value| value.len()),
    };
    if found.is_some_and(|found| wanted.is_none_or(|bytes| bytes == found as u64)) {
        return Ok(());
    }
    let (key, drive) = (key.as_bytes().escape_ascii(), session.address());
    Err(Error::Server(format!("{drive}: the value of key \"{key}\" is not the one stored")))
}

/// Returns an empty histogram of latencies, with three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_NS_MAX, 3).expect("sound bounds")
}

/// Returns the session of this core.
fn session() -> Rc<Session> {
    core_local().expect("connected before")
}

fn failed(error: impl Into<csd_client::Error>) -> Error {
    Error::Client(error.into())
}
