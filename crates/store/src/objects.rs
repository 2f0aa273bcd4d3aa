//! [`Objects`]: the objects of an array, for threads that are no core.
//!
//! It has a core of its own with connections to all drives, and a door to it; calls block the
//! calling thread only. Before each call it reads the array file, and connects again if the file
//! has changed; a read whose connection is lost is tried once more on a new one. A put or remove
//! has connections of its own and the lock of writers, as the commands `csd put` and `csd rm`
//! have. Invariants: every call ends, also when it is closed meanwhile; in a fork of the process
//! every call is an error.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::{Config, CoreId, Hosted, Pending, Unanswered, core_local, set_core_local, sleep};

use crate::array::{self, Array, ArrayFile, Plan, Writers};
use crate::catalogue::Entry;
use crate::error::DriveError;
use crate::object::{self, Children, Progress, PutOptions, Stored};
use crate::source::Source;

/// The one core.
const CORE: CoreId = CoreId(0);
/// Calls under way before another thread waits.
const CAPACITY: usize = 64;
/// Bytes of a long read that one request has, and requests of it under way: the drives send the
/// next part while the caller's thread takes one. Memory of this size is used again, without page
/// faults.
const PART_BYTES: u64 = 8 << 20;
const PARTS_AHEAD: usize = 2;
/// Pause between two tries to take the lock of writers, and the number of tries: 90 s together.
const TRY_EVERY: Duration = Duration::from_millis(20);
const TRIES: u32 = 4500;

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation failed.
    #[error(transparent)]
    Object(#[from] object::Error),
    /// The call has no answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The core failed.
    #[error(transparent)]
    Runtime(#[from] csd_reactor::Error),
    /// Drives are being added for a long time.
    #[error(
        "array {}: drives are being added to it for more than 90 s; try again later",
        .0.display()
    )]
    Adding(PathBuf),
}

impl From<array::FileError> for Error {
    fn from(error: array::FileError) -> Self {
        Self::Object(array::Error::from(error).into())
    }
}

/// A part of an object that is being read.
type Part = Pending<Result<Vec<u8>, Error>>;

/// The objects of an array; see the module's text.
pub struct Objects {
    hosted: Hosted,
    path: PathBuf,
    options: Options,
    connected: Mutex<Connected>,
}

/// Connections of the core.
#[derive(Default)]
struct Connected {
    /// Array file that they are to.
    file: Option<ArrayFile>,
    /// Number of times that they were made.
    times: u64,
}

impl Objects {
    /// Connects to the drives of an array file.
    ///
    /// # Errors
    /// If the file cannot be used, or no drive is up.
    pub fn connect(array: &Path, options: Options) -> Result<Self, Error> {
        let config =
            Config { name: "csd-fs".to_owned(), compute_yields: false, ..Config::default() };
        let hosted = Hosted::start(&config, CAPACITY)?;
        let objects = Self { hosted, path: array.to_owned(), options, connected: Mutex::default() };
        objects.current()?;
        Ok(objects)
    }

    /// Returns the sealed entry of `name`.
    ///
    /// # Errors
    /// As [`object::lookup`].
    pub fn lookup(&self, name: &str) -> Result<Entry, Error> {
        let name = name.to_owned();
        self.run(async move |array: &Array| object::lookup(array, &name).await)
    }

    /// Returns the objects whose names begin with `prefix`, and the number of names of which too
    /// few copies are sound.
    ///
    /// # Errors
    /// As [`object::list_under`].
    pub fn list(&self, prefix: &str) -> Result<(Vec<Entry>, usize), Error> {
        let prefix = prefix.to_owned();
        self.run(async move |array: &Array| object::list_under(array, &prefix).await)
    }

    /// Returns what lies in a folder; its `path` is empty or ends in `/`.
    ///
    /// # Errors
    /// As [`object::children`].
    pub fn children(&self, path: &str) -> Result<Children, Error> {
        let path = path.to_owned();
        self.run(async move |array: &Array| object::children(array, &path).await)
    }

    /// Returns true if an object lies below the folder `path`, which ends in `/`.
    ///
    /// # Errors
    /// As [`object::is_folder`].
    pub fn is_folder(&self, path: &str) -> Result<bool, Error> {
        let path = path.to_owned();
        self.run(async move |array: &Array| object::is_folder(array, &path).await)
    }

    /// Fills `into` with the object's bytes from `start` on. All bytes together are compared with
    /// the object's digest.
    ///
    /// # Errors
    /// As [`object::read`]; [`object::Error::Digest`]; [`object::Error::Input`] if the object ends
    /// before.
    pub fn read(&self, entry: &Entry, start: u64, into: &mut [u8]) -> Result<(), Error> {
        self.current()?;
        let is_whole = entry.has_digest() && into.len() as u64 == entry.bytes;
        let mut hasher = is_whole.then(blake3::Hasher::new);
        // Ends of parts are ends of chunks: no chunk is read twice.
        let step = PART_BYTES.next_multiple_of(u64::from(entry.chunk_bytes.max(1)));
        let end = start.saturating_add(into.len() as u64);
        if end > entry.bytes {
            let why = format!("has {} bytes, and bytes up to {end} were asked for", entry.bytes);
            return Err(object::Error::Input { name: entry.name.clone(), why }.into());
        }
        let (mut next, mut at) = (start, 0);
        let mut parts = VecDeque::new();
        loop {
            while parts.len() < PARTS_AHEAD && next < end {
                let range = next..end.min((next / step + 1) * step);
                next = range.end;
                parts.push_back((range.clone(), self.start(entry, range)?));
            }
            let Some((range, pending)) = parts.pop_front() else { break };
            let bytes = match pending.wait().map_err(Error::from).flatten() {
                // As a call of its own, which connects again.
                Err(error) if is_lost(&error) => {
                    let entry = entry.clone();
                    self.run(async move |array: &Array| object::read(array, &entry, range).await)?
                }
                done => done?,
            };
            into[at..at + bytes.len()].copy_from_slice(&bytes);
            if let Some(hasher) = &mut hasher {
                hasher.update(&bytes);
            }
            at += bytes.len();
        }
        match hasher {
            Some(hasher) if hasher.finalize() != entry.digest => self.other_bytes(entry),
            _ => Ok(()),
        }
    }

    /// Starts to read some bytes of an object.
    fn start(&self, entry: &Entry, bytes: Range<u64>) -> Result<Part, Error> {
        let entry = entry.clone();
        Ok(self.hosted.door().submit(CORE, move || async move {
            let array = core_local::<Array>().ok_or(Unanswered::Closed)?;
            Ok(object::read(&array, &entry, bytes).await?)
        })?)
    }

    /// Returns the error of bytes that do not have the object's digest.
    fn other_bytes(&self, entry: &Entry) -> Result<(), Error> {
        let entry = entry.clone();
        self.run(async move |array: &Array| {
            let digest = object::Error::Digest { name: entry.name.clone() };
            Err(object::removed_or_moved(array, &entry, digest).await)
        })
    }

    /// Stores a new object.
    ///
    /// # Errors
    /// As [`object::put`]; [`Error::Adding`].
    pub fn put(&self, source: Source, options: PutOptions) -> Result<Stored, Error> {
        self.write(async move |array: &Array| {
            object::put(array, source, &options, &Progress::none()).await
        })
    }

    /// Removes an object; returns warnings about drives that are down or failed.
    ///
    /// # Errors
    /// As [`object::remove`]; [`Error::Adding`].
    pub fn remove(&self, name: &str) -> Result<Vec<String>, Error> {
        let name = name.to_owned();
        self.write(async move |array: &Array| object::remove(array, &name).await)
    }

    /// Disconnects. Calls under way end with an error.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the core had failed; [`Error::Unanswered`] in a fork.
    pub fn close(&self) -> Result<(), Error> {
        self.hosted.check_process()?;
        Ok(self.hosted.close()?)
    }

    /// Runs a call that reads, and once more if its connection is lost.
    fn run<T: Send + 'static>(
        &self,
        body: impl AsyncFnOnce(&Array) -> Result<T, object::Error> + Clone + Send + 'static,
    ) -> Result<T, Error> {
        let times = self.current()?;
        match self.call(body.clone()) {
            Err(error) if is_lost(&error) => {
                self.renew(times)?;
                self.call(body)
            }
            done => done,
        }
    }

    fn call<T: Send + 'static>(
        &self,
        body: impl AsyncFnOnce(&Array) -> Result<T, object::Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.hosted.door().call(CORE, move || async move {
            let array = core_local::<Array>().ok_or(Unanswered::Closed)?;
            Ok(body(&*array).await?)
        })?
    }

    /// Runs a call that writes names, on connections of its own.
    fn write<T: Send + 'static>(
        &self,
        body: impl AsyncFnOnce(&Array) -> Result<T, object::Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The array file is read under the lock.
        let _writers = self.share()?;
        let (plan, options) = (Plan::load(&self.path)?, self.options.clone());
        let done = self.hosted.door().call(CORE, move || async move {
            let array = Array::connect(&plan, &options).await;
            let done = body(&array).await;
            array.disconnect().await;
            done
        });
        Ok(done??)
    }

    /// Takes the lock of writers; waits while drives are being added.
    fn share(&self) -> Result<Writers, Error> {
        let failed = |source| array::FileError::Io { path: self.path.clone(), source };
        for _ in 0..TRIES {
            if let Some(writers) = Writers::try_share(&self.path).map_err(failed)? {
                return Ok(writers);
            }
            self.hosted.door().call(CORE, || sleep(TRY_EVERY))?;
        }
        Err(Error::Adding(self.path.clone()))
    }

    /// Connects if the array file has changed; returns the number of times.
    fn current(&self) -> Result<u64, Error> {
        self.hosted.check_process()?;
        let file = ArrayFile::load(&self.path)?;
        let mut connected = lock(&self.connected);
        if connected.file.as_ref() != Some(&file) {
            self.connect_to(file, &mut connected)?;
        }
        Ok(connected.times)
    }

    /// Connects again, unless another thread has since.
    fn renew(&self, times: u64) -> Result<(), Error> {
        let mut connected = lock(&self.connected);
        match connected.times == times {
            true => self.connect_to(ArrayFile::load(&self.path)?, &mut connected),
            false => Ok(()),
        }
    }

    fn connect_to(&self, file: ArrayFile, connected: &mut Connected) -> Result<(), Error> {
        let (plan, options) = (Plan::load(&self.path)?, self.options.clone());
        let done = self.hosted.door().call(CORE, move || async move {
            let array = Array::connect(&plan, &options).await;
            array.require(1)?;
            // The array before lives until its last call has ended.
            set_core_local(Rc::new(array));
            Ok::<_, array::Error>(())
        });
        done?.map_err(object::Error::from)?;
        *connected = Connected { file: Some(file), times: connected.times + 1 };
        Ok(())
    }
}

/// Returns true if a new connection may help.
fn is_lost(error: &Error) -> bool {
    use array::Error::{Down, TooFew};
    match error {
        Error::Object(object::Error::Array(Down { .. } | TooFew { .. })) => true,
        Error::Object(object::Error::Drive(DriveError::Command { source, .. })) => {
            source.status().is_none()
        }
        _ => false,
    }
}

/// Locks a value. No code under these locks leaves it inconsistent when it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
