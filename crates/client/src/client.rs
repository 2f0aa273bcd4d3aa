//! [`Client`]: a connection to a key-value namespace that any thread may use.
//!
//! It has a core of its own, with a [`Session`] on it. Calls block the calling thread only.
//! Invariants: every call ends, also when the client is closed meanwhile; in a fork of the process
//! every call is an error.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_initiator::Address;
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, Config, CoreId, Hosted, Unanswered, core_local, set_core_local};

use crate::pages::Pages;
use crate::session::Info;
use crate::{Error, Operation, Outcome, Put, Session, Settings, Within};

/// The one core of a client.
const CORE: CoreId = CoreId(0);

/// A connection; clones are the same one, which closes when the last clone is dropped. See the
/// module's text.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    hosted: Hosted,
    address: Address,
    value_bytes_max: u32,
    /// True if the wait for an answer was given up: a drive that may be silent.
    was_interrupted: AtomicBool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.0.address)
    }
}

impl Client {
    /// Connects to the namespace of a URL, `nvme+tcp://HOST:PORT/NQN?nsid=2`; without `nsid`, to
    /// the drive's first key-value namespace. Resolves the host's name.
    ///
    /// # Errors
    /// If the URL is malformed, the drive cannot be reached or refuses this host, or it has no such
    /// namespace.
    pub fn connect(url: &str, settings: &Settings) -> Result<Self, Error> {
        Self::connect_to(&url.parse()?, settings)
    }

    /// Connects to an address; see [`Self::connect`].
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(address: &Address, settings: &Settings) -> Result<Self, Error> {
        let config =
            Config { name: "csd-kv".to_owned(), compute_yields: false, ..Config::default() };
        let hosted = Hosted::start(&config, settings.capacity.max(1))?;
        let (address, settings) = (address.clone(), settings.clone());
        let connected = hosted.door().call(CORE, move || async move {
            let session = Session::connect(&address, &settings).await?;
            let told = (session.address().clone(), session.value_bytes_max());
            set_core_local(Rc::new(session));
            Ok::<_, Error>(told)
        });
        let (address, value_bytes_max) = connected??;
        let was_interrupted = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { hosted, address, value_bytes_max, was_interrupted })))
    }

    /// Returns the address of the namespace.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns the maximum length of a value in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u32 {
        self.0.value_bytes_max
    }

    /// Stores a value; replaces an older one.
    ///
    /// # Errors
    /// As [`Session::put`]; [`Error::KeyLength`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_with(key, value, 0)
    }

    /// Stores a value; `options` are `STORE_*`.
    ///
    /// # Errors
    /// As [`Session::put`]; [`Error::KeyLength`].
    pub fn put_with(&self, key: &[u8], value: &[u8], options: u8) -> Result<(), Error> {
        self.put_value(&key_of(key)?, value.to_vec(), options)
    }

    /// Stores a value that the caller gives away, which saves a copy.
    ///
    /// # Errors
    /// As [`Session::put`].
    pub fn put_value(
        &self,
        key: &Key,
        value: impl AsRef<[u8]> + Send + 'static,
        options: u8,
    ) -> Result<(), Error> {
        let key = *key;
        // The value comes back to this thread, which drops it.
        let (put, _value) = self.call(async move |session| {
            let put = session.put(&key, value.as_ref(), options).await;
            Ok((put, value))
        })?;
        put
    }

    /// Returns a value; `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Session::get`]; [`Error::KeyLength`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Buffer>, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.get(&key).await)
    }

    /// Returns the first `size` bytes of a value, and its length; `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Session::front`]; [`Error::KeyLength`].
    pub fn front(&self, key: &[u8], size: u32) -> Result<Option<(Buffer, u64)>, Error> {
        let (key, size) = (key_of(key)?, size.min(self.0.value_bytes_max));
        self.call(async move |session| session.front(&key, size).await)
    }

    /// Writes the first bytes of a value into `into`, and returns the length of the whole value;
    /// `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Session::front`]; [`Error::KeyLength`].
    pub fn get_into(&self, key: &[u8], into: &mut [u8]) -> Result<Option<u64>, Error> {
        let front = self.front(key, u32::try_from(into.len()).unwrap_or(u32::MAX))?;
        Ok(front.map(|(bytes, whole)| {
            into[..bytes.len()].copy_from_slice(&bytes);
            whole
        }))
    }

    /// Returns true if a key exists.
    ///
    /// # Errors
    /// As [`Session::exists`]; [`Error::KeyLength`].
    pub fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.exists(&key).await)
    }

    /// Deletes a key; see [`Session::delete`].
    ///
    /// # Errors
    /// As [`Session::delete`]; [`Error::KeyLength`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.delete(&key).await)
    }

    /// Returns one page of keys; see [`Session::list`].
    ///
    /// # Errors
    /// As [`Session::list`].
    pub fn list(&self, from: Option<Key>, size: u32) -> Result<Vec<Key>, Error> {
        self.call(async move |session| session.list(from.as_ref(), size).await)
    }

    /// Returns all keys that begin with `prefix`, pieces of long objects among them.
    #[must_use]
    pub fn keys(&self, prefix: &[u8]) -> Keys {
        let (client, prefix) = (self.clone(), prefix.to_vec());
        Keys { client, prefix, pages: Pages::default(), page: VecDeque::new(), ended: false }
    }

    /// Executes operations, at most `depth` in flight, in any order; returns their outcomes in the
    /// order of the operations.
    ///
    /// # Errors
    /// If the client is closed meanwhile.
    pub fn batch(
        &self,
        operations: Vec<Operation>,
        depth: usize,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        self.call(async move |session| Ok(session.batch(&operations, depth).await))
    }

    /// Stores an object of any length; see [`Session::put_object`].
    ///
    /// # Errors
    /// As [`Session::put_object`]; [`Error::KeyLength`].
    pub fn put_object(&self, key: &[u8], bytes: &[u8], options: u8) -> Result<Put, Error> {
        self.put_object_value(&key_of(key)?, bytes.to_vec(), options)
    }

    /// Stores an object that the caller gives away, which saves a copy.
    ///
    /// # Errors
    /// As [`Session::put_object`].
    pub fn put_object_value(
        &self,
        key: &Key,
        object: impl AsRef<[u8]> + Send + 'static,
        options: u8,
    ) -> Result<Put, Error> {
        let key = *key;
        let (put, _object) = self.call(async move |session| {
            let put = session.put_object(&key, &mut object.as_ref(), options, &|_| {}).await;
            Ok((put, object))
        })?;
        put
    }

    /// Returns an object of any length; `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Session::get_object`]; [`Error::KeyLength`].
    pub fn get_object(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.get_object(&key).await)
    }

    /// Returns an object of at most `bytes_max` bytes, or the length of a longer one; `None` if the
    /// key does not exist.
    ///
    /// # Errors
    /// As [`Session::get_object`]; [`Error::KeyLength`].
    pub fn get_object_within(&self, key: &[u8], bytes_max: u64) -> Result<Option<Within>, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.get_object_within(&key, bytes_max).await)
    }

    /// Deletes an object of any length; returns false if it did not exist.
    ///
    /// # Errors
    /// As [`Session::delete_object`]; [`Error::KeyLength`].
    pub fn delete_object(&self, key: &[u8]) -> Result<bool, Error> {
        let key = key_of(key)?;
        self.call(async move |session| session.delete_object(&key).await)
    }

    /// Makes every change durable that was answered before, to any host.
    ///
    /// # Errors
    /// Any of a command's; it is unknown then how much is durable.
    pub fn flush(&self) -> Result<(), Error> {
        self.call(async |session| session.flush().await)
    }

    /// Returns the description of the namespace as it is now.
    ///
    /// # Errors
    /// Any of a command's.
    pub fn info(&self) -> Result<Info, Error> {
        self.call(async |session| session.info().await)
    }

    /// Starts an operation; `deliver` gets its outcome, on the client's own thread, where it must
    /// not block. Waits while [`Settings::capacity`] operations are under way.
    ///
    /// # Errors
    /// [`Error::Unanswered`]; `deliver` is not called then.
    pub fn submit(
        &self,
        operation: Operation,
        deliver: impl FnOnce(Result<Outcome, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let request = move || async move { session()?.execute(&operation).await };
        Ok(self.0.hosted.door().submit_with(CORE, request, flattened(deliver))?)
    }

    /// Does the same as [`Self::submit`], but does not wait for room.
    ///
    /// # Errors
    /// [`Unanswered::Full`] and others; `deliver` is not called then.
    pub fn try_submit(
        &self,
        operation: Operation,
        deliver: impl FnOnce(Result<Outcome, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let request = move || async move { session()?.execute(&operation).await };
        Ok(self.0.hosted.door().try_submit(CORE, request, flattened(deliver))?)
    }

    /// Disconnects in order and ends the client for all clones. Calls under way end with an error.
    /// After a call that was interrupted it does not wait for the drive.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the client's thread had failed; [`Error::Unanswered`] in a fork.
    pub fn close(&self) -> Result<(), Error> {
        self.0.hosted.check_process()?;
        let disconnect = || async {
            if let Ok(session) = session() {
                session.disconnect().await;
            }
        };
        if !self.0.was_interrupted.load(Relaxed) {
            // A client that was closed before, or on its own thread, has no connection to wait for.
            let _closed = self.0.hosted.door().call(CORE, disconnect);
        }
        Ok(self.0.hosted.close()?)
    }

    /// Runs a call on the session, and waits for its answer.
    fn call<T: Send + 'static>(
        &self,
        body: impl AsyncFnOnce(&Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let request = move || async move { body(&*session()?).await };
        let answer = self.0.hosted.door().call(CORE, request);
        if matches!(answer, Err(Unanswered::Interrupted)) {
            self.0.was_interrupted.store(true, Relaxed);
        }
        answer?
    }
}

/// Keys in the drive's order, read page by page. A key that is stored or deleted meanwhile may or
/// may not be there; every other key is there once. After an error the iterator ends.
#[derive(Debug)]
pub struct Keys {
    client: Client,
    prefix: Vec<u8>,
    pages: Pages,
    page: VecDeque<Key>,
    ended: bool,
}

impl Keys {
    /// Reads the next page.
    fn turn(&mut self) -> Result<(), Error> {
        let mut pages = self.pages;
        let turned = self.client.call(async move |session| {
            let page = session.page(&mut pages).await?;
            Ok((page, pages))
        });
        let (page, pages) = turned?;
        self.pages = pages;
        match page {
            Some(page) => self.page = page.into(),
            None => self.ended = true,
        }
        Ok(())
    }
}

impl Iterator for Keys {
    type Item = Result<Key, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.page.pop_front() {
                Some(key) if key.as_bytes().starts_with(&self.prefix) => return Some(Ok(key)),
                Some(_) => {}
                None => {
                    if let Err(error) = self.turn() {
                        self.ended = true;
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }
}

/// Turns a receiver of outcomes into one of answers.
fn flattened(
    deliver: impl FnOnce(Result<Outcome, Error>),
) -> impl FnOnce(Result<Result<Outcome, Error>, Unanswered>) {
    |answer| deliver(answer.unwrap_or_else(|unanswered| Err(unanswered.into())))
}

/// Returns the session of this core.
fn session() -> Result<Rc<Session>, Error> {
    core_local().ok_or(Error::Unanswered(Unanswered::Closed))
}

fn key_of(key: &[u8]) -> Result<Key, Error> {
    Key::new(key).map_err(|_| Error::KeyLength(key.len()))
}
