//! [`Kv`]: a kv namespace as typed calls.
//!
//! Keys and values are opaque. Invariant: an absent key is an answer, not an error.

use csd_nvme::identify::{Cns, IDENTIFY_BYTES, IdentifyKvNamespace, identify};
use csd_nvme::kv::{self, Key, KeyList};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::folders::Request;
use csd_reactor::Buffer;

use crate::handle::is_handle;
use crate::{Controller, Error, Handle, NamespaceKind};

/// A kv namespace; clones are cheap.
#[derive(Clone, Debug)]
pub struct Kv {
    handle: Handle,
    value_bytes_max: u32,
}

/// Maximum number of Retrieves for a value that grows while it is read.
const RETRIEVES_MAX: usize = 4;
/// Bytes of one List when all keys are listed.
const LIST_BYTES: u32 = 64 << 10;

is_handle!(Kv);

impl Kv {
    /// Returns the kv namespace `nsid` of a drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has no such namespace.
    pub fn open(controller: &Controller, nsid: u32) -> Result<Self, Error> {
        let (handle, value_bytes_max) = Handle::open(controller, nsid, "kv", |kind| match kind {
            NamespaceKind::Kv { value_bytes_max, .. } => Some(value_bytes_max),
            _ => None,
        })?;
        Ok(Self { handle, value_bytes_max })
    }

    /// Returns the maximum value length in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u32 {
        self.value_bytes_max.min(self.controller.transfer_bytes_max())
    }

    /// Returns capacity and bytes in use now.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the answer is malformed; else any of a command's.
    pub async fn usage(&self) -> Result<(u64, u64), Error> {
        let sqe = identify(Cns::NAMESPACE_FOR_CSI, self.nsid, Csi::KV);
        let bytes = u32::try_from(IDENTIFY_BYTES).expect("4096");
        let data = self.controller.admin(sqe, &[], bytes).await?.data;
        let malformed = || self.controller.protocol("data of Identify is not 4096 bytes");
        let data = IdentifyKvNamespace::parse(&data).ok_or_else(malformed)?;
        Ok((data.nsze(), data.nuse()))
    }

    /// Stores a value under `key`; `options` are `csd_nvme::kv::STORE_*`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`Self::value_bytes_max`]; the status [`Status::KEY_EXISTS`] or
    /// [`Status::KEY_DOES_NOT_EXIST`] if an option requires it.
    pub async fn store(&self, key: &Key, mut value: Vec<Buffer>, options: u8) -> Result<(), Error> {
        self.store_kept(key, &mut value, options).await
    }

    /// Does the same as [`Self::store`]. If the connection is lost before an answer comes, the
    /// value is in `value` again, for another connection.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub async fn store_kept(
        &self,
        key: &Key,
        value: &mut Vec<Buffer>,
        options: u8,
    ) -> Result<(), Error> {
        let bytes = value.iter().map(|part| part.len() as u64).sum::<u64>();
        let size = u32::try_from(bytes).ok().filter(|size| *size <= self.value_bytes_max());
        let Some(size) = size else {
            return Err(self.controller.too_large(bytes, self.value_bytes_max().into()));
        };
        let sqe = kv::store(self.nsid, key, size, options);
        self.controller.submit_kept(sqe, value, 0).await.map(drop)
    }

    /// Returns the whole value of `key`; `None` if the key does not exist. The first read asks for
    /// `size_max` bytes: a longer value costs a second one.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the value is longer than one command can carry.
    pub async fn retrieve(&self, key: &Key, size_max: u32) -> Result<Option<Buffer>, Error> {
        let most = self.controller.transfer_bytes_max();
        let mut size = size_max.clamp(1, most);
        let mut whole = 0;
        for _ in 0..RETRIEVES_MAX {
            let sqe = kv::retrieve(self.nsid, key, size, 0);
            let reply = self.controller.submit(sqe, Vec::new(), size).await;
            let Some(reply) = existing(reply)? else { return Ok(None) };
            whole = reply.result & 0xFFFF_FFFF;
            if whole <= u64::from(size) {
                if reply.data.len() as u64 != whole {
                    return Err(self.controller.protocol("a value is not as long as it says"));
                }
                return Ok(Some(reply.data));
            }
            size = u32::try_from(whole).expect("a dword").min(most);
            if u64::from(size) < whole {
                break;
            }
        }
        Err(self.controller.too_large(whole, size.into()))
    }

    /// Returns the first `size` bytes of the value of `key`, or all if it is shorter, and its
    /// length in bytes; `None` if the key does not exist.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the drive sends another number of bytes; else any of a command's.
    pub async fn front(&self, key: &Key, size: u32) -> Result<Option<(Buffer, u64)>, Error> {
        self.front_with(key, size, 0).await
    }

    /// Does the same as [`Self::front`]; `options` are `csd_nvme::kv::RETRIEVE_*`.
    ///
    /// # Errors
    /// As [`Self::front`].
    pub async fn front_with(
        &self,
        key: &Key,
        size: u32,
        options: u8,
    ) -> Result<Option<(Buffer, u64)>, Error> {
        let sqe = kv::retrieve(self.nsid, key, size, options);
        let reply = self.controller.submit(sqe, Vec::new(), size).await;
        let Some(reply) = existing(reply)? else { return Ok(None) };
        let whole = reply.result & 0xFFFF_FFFF;
        if reply.data.len() as u64 != whole.min(size.into()) {
            return Err(self.controller.protocol("a value is not as long as it says"));
        }
        Ok(Some((reply.data, whole)))
    }

    /// Returns true if `key` exists.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn exist(&self, key: &Key) -> Result<bool, Error> {
        let reply = self.controller.submit(kv::exist(self.nsid, key), Vec::new(), 0).await;
        existing(reply).map(|reply| reply.is_some())
    }

    /// Deletes `key`. Returns false if the drive reports that it did not exist, which drives do
    /// only if so configured (feature 20h, EDNEK).
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn delete(&self, key: &Key) -> Result<bool, Error> {
        let reply = self.controller.submit(kv::delete(self.nsid, key), Vec::new(), 0).await;
        existing(reply).map(|reply| reply.is_some())
    }

    /// Returns keys from `from` on (included if it exists), as many as fit in `size` bytes, in the
    /// drive's order.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn list(&self, from: Option<&Key>, size: u32) -> Result<Vec<Key>, Error> {
        let size = size.min(self.controller.transfer_bytes_max());
        let sqe = kv::list(self.nsid, from, size);
        let reply = self.controller.submit(sqe, Vec::new(), size).await?;
        KeyList::parse(&reply.data)
            .ok_or_else(|| self.controller.protocol("its list of keys is malformed"))
    }

    /// Returns all keys that begin with `prefix`, in the drive's order. Keys stored or deleted
    /// meanwhile may or may not be there.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn list_all(&self, prefix: &[u8]) -> Result<Vec<Key>, Error> {
        let mut all = Vec::new();
        let mut last: Option<Key> = None;
        loop {
            let mut keys = self.list(last.as_ref(), LIST_BYTES).await?;
            if last.is_some() && keys.first() == last.as_ref() {
                keys.remove(0);
            }
            let Some(end) = keys.last() else { return Ok(all) };
            if last.is_some_and(|last| keys.contains(&last)) {
                return Err(self.controller.protocol("its list of keys goes round in a circle"));
            }
            last = Some(*end);
            all.extend(keys.into_iter().filter(|key| key.as_bytes().starts_with(prefix)));
        }
    }

    /// Returns what lies below a folder of names, if the drive is ours
    /// ([`Answered`](csd_nvme::vendor::folders::Answered)).
    ///
    /// # Errors
    /// Any error of a command; the status [`Status::CAPACITY_EXCEEDED`] if it has too many names.
    pub async fn list_folder(&self, request: &Request) -> Result<Buffer, Error> {
        let size = request.size.min(self.controller.transfer_bytes_max());
        let sqe = Request { size, ..*request }.command(self.nsid);
        Ok(self.controller.submit(sqe, Vec::new(), size).await?.data)
    }

    /// Makes completed stores durable. They already are, unless the drive has a volatile cache.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn flush(&self) -> Result<(), Error> {
        let sqe = csd_nvme::nvm::flush(self.nsid);
        self.controller.submit(sqe, Vec::new(), 0).await.map(drop)
    }
}

/// Turns "key does not exist" into `None`.
fn existing<T>(reply: Result<T, Error>) -> Result<Option<T>, Error> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.status() == Some(Status::KEY_DOES_NOT_EXIST) => Ok(None),
        Err(error) => Err(error),
    }
}
