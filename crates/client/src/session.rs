//! [`Session`]: one key-value namespace on a core, reconnected when its connection is lost.
//!
//! A command whose completion is unknown is sent again after a new connection was made. That
//! repeats its effect: a value that another host stored in between is overwritten. A Store with
//! [`STORE_IF_ABSENT`] that finds its key on the second try succeeds if the key has its value.
//! Invariant: a command is sent at most once for each of the [`Settings::tries`] reconnections,
//! and once before.

use std::cell::{Cell, RefCell};

use csd_initiator::{Address, Controller, Kv, NamespaceKind};
use csd_nvme::identify::{Cns, IDENTIFY_BYTES, IdentifyKvNamespace, identify};
use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Semaphore, sleep};

use crate::pages::{PAGE_BYTES, Pages};
use crate::{Error, Settings};

/// First size of a Retrieve; later ones follow the length of the values seen.
const HINT_BYTES: u32 = 64 << 10;

/// A key-value namespace on a core; see the module's text.
#[derive(Debug)]
pub struct Session {
    address: Address,
    settings: Settings,
    nsid: u32,
    kv: RefCell<Kv>,
    /// Number of connections made after the first one.
    renewals: Cell<u64>,
    renewing: Semaphore,
    /// Size of the next Retrieve, bytes.
    hint_bytes: Cell<u32>,
}

/// Description of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The drive's address, with the namespace.
    pub address: Address,
    /// Namespace id.
    pub nsid: u32,
    /// Maximum length of a key (KVKML), bytes.
    pub key_bytes_max: u16,
    /// Maximum length of a value (KVVML), as far as one command transfers it, bytes.
    pub value_bytes_max: u32,
    /// Maximum number of keys (MNKS); 0 is no limit.
    pub keys_max: u32,
    /// Size of the namespace (NSZE), bytes.
    pub bytes: u64,
    /// Bytes in use (NUSE).
    pub used_bytes: u64,
}

impl Session {
    /// Connects to the namespace of `address`, or to the drive's first key-value namespace if the
    /// address names none.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], or any of connecting.
    pub async fn connect(address: &Address, settings: &Settings) -> Result<Self, Error> {
        let controller = Controller::connect(address, &settings.options).await?;
        let first = || {
            let is_kv = |kind: &NamespaceKind| matches!(kind, NamespaceKind::Kv { .. });
            let found = controller.namespaces().iter().find(|one| is_kv(&one.kind));
            found.map(|namespace| namespace.nsid)
        };
        let drive = || Address { nsid: None, ..address.clone() }.to_string();
        let nsid = address.nsid.or_else(first);
        let nsid = nsid.ok_or_else(|| Error::NoNamespace { drive: drive() })?;
        Ok(Self {
            address: Address { nsid: Some(nsid), ..address.clone() },
            settings: settings.clone(),
            nsid,
            kv: RefCell::new(Kv::open(&controller, nsid)?),
            renewals: Cell::new(0),
            renewing: Semaphore::new(1),
            hint_bytes: Cell::new(HINT_BYTES),
        })
    }

    /// Returns the address, with the namespace.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the maximum length of a value in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u32 {
        self.kv.borrow().value_bytes_max()
    }

    /// Returns the number of connections that replaced a lost one.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.renewals.get()
    }

    /// Returns the description of the namespace as it is now.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn info(&self) -> Result<Info, Error> {
        let bytes = u32::try_from(IDENTIFY_BYTES).expect("4096");
        let sqe = identify(Cns::NAMESPACE_FOR_CSI, self.nsid, Csi::KV);
        let reply = self.run(async |kv, _| kv.controller().admin(sqe, &[], bytes).await).await?;
        let malformed = || self.protocol("data of Identify is not 4096 bytes");
        let data = IdentifyKvNamespace::parse(&reply.data).ok_or_else(malformed)?;
        Ok(Info {
            address: self.address.clone(),
            nsid: self.nsid,
            key_bytes_max: data.kvkml(),
            value_bytes_max: self.value_bytes_max(),
            keys_max: data.mnks(),
            bytes: data.nsze(),
            used_bytes: data.nuse(),
        })
    }

    /// Stores a value under `key`; `options` are `STORE_*`.
    ///
    /// # Errors
    /// The status [`Status::KEY_EXISTS`] or [`Status::KEY_DOES_NOT_EXIST`] if an option requires
    /// it; any of a command's.
    pub async fn put(&self, key: &Key, value: &[u8], options: u8) -> Result<(), Error> {
        let stored = self.run(async |kv, again| {
            let stored = kv.store(key, payload(value), options).await;
            match stored {
                // The first try may have stored it.
                Err(error)
                    if again
                        && options & STORE_IF_ABSENT != 0
                        && error.status() == Some(Status::KEY_EXISTS) =>
                {
                    let size = u32::try_from(value.len()).unwrap_or(u32::MAX);
                    let found = kv.retrieve(key, size).await?;
                    if found.as_deref() == Some(value) { Ok(()) } else { Err(error) }
                }
                stored => stored,
            }
        });
        stored.await
    }

    /// Returns the value of `key`; `None` if the key does not exist.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn get(&self, key: &Key) -> Result<Option<Buffer>, Error> {
        let hint = self.hint_bytes.get();
        let value = self.run(async |kv, _| kv.retrieve(key, hint).await).await?;
        if let Some(value) = &value {
            let seen = u32::try_from(value.len()).unwrap_or(u32::MAX);
            self.hint_bytes.set(seen.checked_next_power_of_two().unwrap_or(seen).max(HINT_BYTES));
        }
        Ok(value)
    }

    /// Returns the first `size` bytes of the value of `key`, and its length in bytes; `None` if the
    /// key does not exist.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn front(&self, key: &Key, size: u32) -> Result<Option<(Buffer, u64)>, Error> {
        self.front_with(key, size, 0).await
    }

    /// Does the same as [`Self::front`]; `options` are `RETRIEVE_*`.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn front_with(
        &self,
        key: &Key,
        size: u32,
        options: u8,
    ) -> Result<Option<(Buffer, u64)>, Error> {
        self.run(async |kv, _| kv.front_with(key, size, options).await).await
    }

    /// Returns true if `key` exists.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn exists(&self, key: &Key) -> Result<bool, Error> {
        self.run(async |kv, _| kv.exist(key).await).await
    }

    /// Deletes `key`. Returns false if the drive reports that it did not exist; drives do so only
    /// if they are configured for it (feature 20h, EDNEK).
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn delete(&self, key: &Key) -> Result<bool, Error> {
        // A key that is gone on the second try was deleted by the first one.
        self.run(async |kv, again| Ok(kv.delete(key).await? || again)).await
    }

    /// Returns keys in the drive's order from `from` on (included if it exists), as many as fit in
    /// `size` bytes.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn list(&self, from: Option<&Key>, size: u32) -> Result<Vec<Key>, Error> {
        self.run(async |kv, _| kv.list(from, size).await).await
    }

    /// Returns all keys for which `wanted` is true, in the drive's order. A key that is stored or
    /// deleted meanwhile may or may not be there; every other key is there once.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn keys(&self, wanted: impl Fn(&Key) -> bool) -> Result<Vec<Key>, Error> {
        let (mut all, mut pages) = (Vec::new(), Pages::default());
        while let Some(page) = self.page(&mut pages).await? {
            all.extend(page.into_iter().filter(&wanted));
        }
        Ok(all)
    }

    /// Returns the next keys of a listing; `None` at its end.
    ///
    /// # Errors
    /// Any of a command's.
    pub(crate) async fn page(&self, pages: &mut Pages) -> Result<Option<Vec<Key>>, Error> {
        let page = self.list(pages.last.as_ref(), PAGE_BYTES).await?;
        pages.turn(page).map_err(|reason| self.protocol(reason))
    }

    /// Makes every change durable that was answered before, if the drive has a volatile cache.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn flush(&self) -> Result<(), Error> {
        self.run(async |kv, _| kv.flush().await).await
    }

    /// Returns an error for the drive's violation of a rule.
    fn protocol(&self, reason: &str) -> Error {
        let drive = self.address.to_string().into();
        csd_initiator::Error::Protocol { drive, reason: reason.to_owned() }.into()
    }

    /// Closes the connection in order.
    pub async fn disconnect(&self) {
        let controller = self.kv.borrow().controller().clone();
        controller.disconnect().await;
    }

    /// Sends a command, and sends it again after its connection was lost and replaced; `body` gets
    /// the namespace, and true on every try but the first.
    ///
    /// # Errors
    /// The command's, or the reason why the connection was lost.
    pub(crate) async fn run<T>(
        &self,
        body: impl AsyncFn(&Kv, bool) -> Result<T, csd_initiator::Error>,
    ) -> Result<T, Error> {
        let mut losses = 0;
        loop {
            let (kv, renewals) = (self.kv.borrow().clone(), self.renewals.get());
            match body(&kv, losses > 0).await {
                Err(error) if losses < self.settings.tries && is_lost(&error) => {
                    losses += 1;
                    self.renew(renewals, error).await?;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Connects again, unless another task has done so since.
    async fn renew(
        &self,
        renewals: u64,
        error: csd_initiator::Error,
    ) -> Result<(), csd_initiator::Error> {
        let _permit = self.renewing.acquire(1).await;
        if self.renewals.get() != renewals {
            return Ok(());
        }
        let mut pause = self.settings.pause;
        for _ in 0..self.settings.tries {
            sleep(pause).await;
            pause *= 3;
            let connected = Controller::connect(&self.address, &self.settings.options).await;
            if let Ok(kv) = connected.and_then(|controller| Kv::open(&controller, self.nsid)) {
                self.kv.replace(kv);
                self.renewals.set(renewals + 1);
                return Ok(());
            }
        }
        Err(error)
    }
}

fn payload(value: &[u8]) -> Vec<Buffer> {
    if value.is_empty() { Vec::new() } else { vec![Buffer::from_slice(value)] }
}

/// Returns true if a connection failed, and not only a command: any error but an answer of the
/// drive.
fn is_lost(error: &csd_initiator::Error) -> bool {
    use csd_initiator::Error::{Closed, Lost, Protocol, Timeout, Unreachable};
    matches!(
        error,
        Closed { .. } | Lost { .. } | Protocol { .. } | Timeout { .. } | Unreachable { .. }
    )
}
