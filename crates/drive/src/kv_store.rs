//! [`KvStore`]: a store of values in the place of the log, for comparisons behind the same server.
//!
//! The users' key-value namespace of a drive that has one takes Store and Retrieve alone; the
//! medium's log holds nothing of it. It does not say how values are kept. Invariant: a store that
//! is acknowledged is as durable as the store's own settings say.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

/// An answer of a store, waited for on the core that asked.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Status>>>>;

/// Bytes of a value that stay readable until this is dropped.
pub type Held = Box<dyn AsRef<[u8]> + Send>;

/// A store of values that hosts put and get; see the module's text.
pub trait KvStore: fmt::Debug + Send + Sync {
    /// Stores a value, whose bytes are those of its pieces in order.
    fn store(&self, key: Key, pieces: Vec<Buffer>) -> Answer<()>;

    /// Returns a value, `None` if there is none.
    fn retrieve(&self, key: Key) -> Answer<Option<Held>>;
}
