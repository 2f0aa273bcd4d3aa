//! An array: drives used together, as one core sees them.
//!
//! Connects to all drives at once and stays usable while a majority answers. Does not retry a drive
//! that is down, and hides none: every error names the drive. Invariant: a drive keeps its index,
//! its place in the array file, whether it is up or down.

mod file;
mod home;
mod writers;

use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Block, Compute, Controller, Kv, NamespaceKind, Options};
use csd_reactor::{Class, spawn};

use crate::fault::Fault;

pub use file::{
    ArrayFile, DEFAULT_PATH, DriveOptions, DriveRecord, FileError, IN_MEMORY, SCHEMA, Words,
};
pub use home::{DEFAULT_FOLDER, Home};
pub use writers::Writers;

pub use csd_nvme::vendor::{
    NSID_BLOCK as BLOCK_NSID, NSID_COMPUTE as COMPUTE_NSID, NSID_OBJECTS as OBJECTS_NSID,
};

/// The drives of an array file, with their addresses resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    drives: Vec<PlannedDrive>,
}

#[derive(Clone, Debug)]
struct PlannedDrive {
    name: String,
    url: String,
    address: Result<Address, String>,
}

/// A drive that is up.
#[derive(Clone)]
pub struct Drive {
    /// Name in the array file.
    pub name: String,
    /// Address in the array file.
    pub url: String,
    /// Index in the array file.
    pub index: usize,
    /// The connection.
    pub controller: Controller,
    /// The kv namespace that holds objects.
    pub objects: Kv,
    /// The block namespace.
    pub block: Block,
    /// The compute namespace.
    pub compute: Compute,
    /// Largest value of the objects' namespace, bytes.
    pub value_bytes_max: u32,
}

/// A drive's place in an array: the drive, or why it is down.
#[derive(Clone)]
pub struct DriveSlot {
    /// Name in the array file.
    pub name: String,
    /// Address in the array file.
    pub url: String,
    link: Result<Rc<Drive>, String>,
}

/// Drives used together.
pub struct Array {
    slots: Vec<DriveSlot>,
    patience: Duration,
}

/// Time that a writer of a name waits for another writer that has begun to change it, before it
/// takes that writer for interrupted.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reason why an array cannot be used: drives or the network are at fault, except for
/// [`Error::File`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array file is missing or invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// A drive that is needed is down.
    #[error("drive {drive} ({url}) is down: {why}")]
    Down {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Reason, in words.
        why: String,
    },
    /// Fewer than a majority of the drives are up.
    #[error("{}: {}", too_few(*.up, *.drives), .down.join("; "))]
    TooFew {
        /// Number of drives that are up.
        up: usize,
        /// Number of drives of the array.
        drives: usize,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
}

/// Returns the beginning of the message of [`Error::TooFew`].
fn too_few(up: usize, drives: usize) -> String {
    let needed = drives / 2 + 1;
    match up {
        0 => "no drive is up; `csd array up` starts them; down".to_owned(),
        _ => format!(
            "{up} of {drives} drives are up, {needed} are needed: `csd array up` starts those that \
             are down"
        ),
    }
}

impl Error {
    /// Returns the name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Down { drive, .. } => Some(drive),
            Self::File(_) | Self::TooFew { .. } => None,
        }
    }

    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::File(error) => error.fault(),
            Self::Down { .. } | Self::TooFew { .. } => Fault::Run,
        }
    }
}

impl Plan {
    /// Resolves the addresses of an array file. May query a name server, so it is called before any
    /// core starts. A drive whose address cannot be resolved counts as down.
    #[must_use]
    pub fn new(file: &ArrayFile) -> Self {
        let drives = file.drives.iter().map(|record| PlannedDrive {
            name: record.name.clone(),
            url: record.url.clone(),
            address: record.url.parse().map_err(reason),
        });
        Self { drives: drives.collect() }
    }

    /// Connects to one drive.
    ///
    /// # Errors
    /// The reason why it is down.
    pub(crate) async fn connect(&self, index: usize, options: &Options) -> Result<Drive, String> {
        let planned = self.drives.get(index).ok_or("the array file does not list it")?;
        open(index, planned, options).await
    }
}

impl Array {
    /// Connects to all drives at once, and waits until every one has answered or failed.
    pub async fn connect(plan: &Plan, options: &Options) -> Self {
        let links: Vec<_> = plan
            .drives
            .iter()
            .enumerate()
            .map(|(index, planned)| {
                let (planned, options) = (planned.clone(), options.clone());
                spawn(Class::Foreground, async move { open(index, &planned, &options).await })
            })
            .collect();
        let mut slots = Vec::with_capacity(links.len());
        for (planned, link) in plan.drives.iter().zip(links) {
            let (name, url) = (planned.name.clone(), planned.url.clone());
            slots.push(DriveSlot { name, url, link: link.await.map(Rc::new) });
        }
        Self { slots, patience: PATIENCE }
    }

    /// Sets the time that a writer of a name waits for another writer that has begun to change it,
    /// before it takes that writer for interrupted. It does not affect which of the two gets the
    /// name.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the time set by [`Self::with_patience`].
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the array of the first `drives` drives, over the same connections.
    #[must_use]
    pub fn first(&self, drives: usize) -> Self {
        Self { slots: self.slots[..drives].to_vec(), ..*self }
    }

    /// Returns every drive's slot, in the order of the array file.
    #[must_use]
    pub fn slots(&self) -> &[DriveSlot] {
        &self.slots
    }

    /// Returns the drives that are up.
    pub fn drives(&self) -> impl Iterator<Item = &Rc<Drive>> {
        self.slots.iter().filter_map(|slot| slot.link.as_ref().ok())
    }

    /// Returns the drive with this index.
    ///
    /// # Errors
    /// [`Error::Down`].
    pub fn drive(&self, index: usize) -> Result<&Rc<Drive>, Error> {
        let Some(slot) = self.slots.get(index) else {
            let why = "the array file does not list it".to_owned();
            return Err(Error::Down { drive: format!("#{index}"), url: "?".to_owned(), why });
        };
        slot.link.as_ref().map_err(|why| Error::Down {
            drive: slot.name.clone(),
            url: slot.url.clone(),
            why: why.clone(),
        })
    }

    /// Returns the smallest number of drives such that any two sets of that many share a drive.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.slots.len() / 2 + 1
    }

    /// Returns the drives that are down, each with its reason.
    #[must_use]
    pub fn down(&self) -> Vec<String> {
        self.slots
            .iter()
            .filter_map(|slot| {
                let why = slot.link.as_ref().err()?;
                Some(format!("drive {} ({}) is down: {why}", slot.name, slot.url))
            })
            .collect()
    }

    /// Checks that a majority is up.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn require_majority(&self) -> Result<(), Error> {
        let up = self.drives().count();
        if up >= self.majority() {
            return Ok(());
        }
        Err(Error::TooFew { up, drives: self.slots.len(), down: self.down() })
    }

    /// Closes all connections in order.
    pub async fn disconnect(self) {
        for slot in self.slots {
            if let Ok(drive) = slot.link {
                drive.controller.clone().disconnect().await;
            }
        }
    }
}

impl DriveSlot {
    /// Returns the drive, or the reason why it is down.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn drive(&self) -> Result<&Rc<Drive>, &str> {
        self.link.as_ref().map_err(String::as_str)
    }
}

impl Drive {
    /// Connects to a drive that need not belong to an array; its name is its URL.
    ///
    /// # Errors
    /// The reason why it is down, or no drive of this project.
    pub async fn connect(address: &Address, options: &Options) -> Result<Self, String> {
        let url = address.to_string();
        let address = Ok(address.clone());
        open(0, &PlannedDrive { name: url.clone(), url, address }, options).await
    }
}

async fn open(index: usize, planned: &PlannedDrive, options: &Options) -> Result<Drive, String> {
    let address = planned.address.as_ref().map_err(Clone::clone)?;
    let controller = Controller::connect(address, options).await.map_err(reason)?;
    let objects = Kv::open(&controller, OBJECTS_NSID).map_err(reason)?;
    let block = Block::open(&controller, BLOCK_NSID).map_err(reason)?;
    let compute = Compute::open(&controller, COMPUTE_NSID).map_err(reason)?;
    let kind = controller
        .namespaces()
        .iter()
        .find(|namespace| namespace.nsid == OBJECTS_NSID)
        .map(|namespace| &namespace.kind);
    let Some(NamespaceKind::Kv { value_bytes_max, .. }) = kind else {
        return Err(format!("its namespace {OBJECTS_NSID} is not key-value"));
    };
    let value_bytes_max = (*value_bytes_max).min(controller.transfer_bytes_max());
    let (name, url) = (planned.name.clone(), planned.url.clone());
    Ok(Drive { name, url, index, controller, objects, block, compute, value_bytes_max })
}

#[allow(clippy::needless_pass_by_value)] // it is what map_err passes
fn reason(error: csd_initiator::Error) -> String {
    words(&error)
}

/// Describes the error without the address: messages of an array name the drive themselves.
pub(crate) fn words(error: &csd_initiator::Error) -> String {
    let text = error.to_string();
    let prefix = error.drive().map(|drive| format!("drive {drive}: "));
    match prefix.and_then(|prefix| text.strip_prefix(&prefix).map(str::to_owned)) {
        Some(words) => words,
        None => text,
    }
}
