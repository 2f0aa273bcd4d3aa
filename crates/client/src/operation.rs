//! [`Operation`] and [`Outcome`]: single commands as values, and batches of them.
//!
//! Invariant: the outcomes of a batch are in the order of its operations, one each.

use csd_nvme::kv::Key;
use csd_reactor::Buffer;

use crate::ordered::Ordered;
use crate::{Error, Session};

/// A command of a key-value namespace.
#[derive(Debug)]
pub enum Operation {
    /// Stores a value.
    Put {
        /// The key.
        key: Key,
        /// The value.
        value: Vec<u8>,
        /// `STORE_*`.
        options: u8,
    },
    /// Retrieves a value.
    Get(Key),
    /// Retrieves the first bytes of a value, and its length.
    Front {
        /// The key.
        key: Key,
        /// Number of bytes.
        size: u32,
        /// `RETRIEVE_*`.
        options: u8,
    },
    /// Asks if a key exists.
    Exists(Key),
    /// Deletes a key.
    Delete(Key),
    /// Lists keys from one on, as many as fit in this many bytes.
    List(Option<Key>, u32),
}

/// Outcome of an [`Operation`] that succeeded.
#[derive(Debug)]
pub enum Outcome {
    /// The value was stored.
    Put,
    /// The value; `None` if the key does not exist.
    Get(Option<Buffer>),
    /// The first bytes of the value, and its length; `None` if the key does not exist.
    Front(Option<(Buffer, u64)>),
    /// True if the key exists.
    Exists(bool),
    /// False if the drive reports that the key did not exist.
    Delete(bool),
    /// The keys.
    List(Vec<Key>),
}

impl Session {
    /// Executes one operation.
    ///
    /// # Errors
    /// Those of the method with the same name.
    pub async fn execute(&self, operation: &Operation) -> Result<Outcome, Error> {
        Ok(match operation {
            Operation::Put { key, value, options } => {
                self.put(key, value, *options).await?;
                Outcome::Put
            }
            Operation::Get(key) => Outcome::Get(self.get(key).await?),
            Operation::Front { key, size, options } => {
                Outcome::Front(self.front_with(key, *size, *options).await?)
            }
            Operation::Exists(key) => Outcome::Exists(self.exists(key).await?),
            Operation::Delete(key) => Outcome::Delete(self.delete(key).await?),
            Operation::List(from, size) => Outcome::List(self.list(from.as_ref(), *size).await?),
        })
    }

    /// Executes operations, at most `depth` in flight. They may take effect in any order.
    pub async fn batch(
        &self,
        operations: &[Operation],
        depth: usize,
    ) -> Vec<Result<Outcome, Error>> {
        let mut running = Ordered::new();
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            if running.len() >= depth.max(1) {
                outcomes.extend(running.next().await);
            }
            running.push(self.execute(operation));
        }
        while let Some(outcome) = running.next().await {
            outcomes.push(outcome);
        }
        outcomes
    }
}
