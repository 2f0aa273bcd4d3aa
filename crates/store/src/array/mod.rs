//! An array: drives used together, as one core sees them.
//!
//! Connects to all drives at once and stays usable while a majority answers. Never retries a
//! drive that is down, and never hides one: every error names the drive. Invariant: a drive keeps
//! its index, its place in the array file, whether it is up or down.

mod file;
mod home;

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Block, Compute, Controller, Kv, NamespaceKind, Options};
use csd_reactor::{Class, spawn};

use crate::fault::Fault;

pub use file::{
    ArrayFile, DEFAULT_PATH, DriveOptions, DriveRecord, FileError, IN_MEMORY, SCHEMA, Words,
};
pub use home::{DEFAULT_FOLDER, Home};

pub use csd_nvme::vendor::{
    NSID_BLOCK as BLOCK_NSID, NSID_COMPUTE as COMPUTE_NSID, NSID_OBJECTS as OBJECTS_NSID,
};

/// Where the drives are: an array file with its addresses resolved.
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
    /// Its name in the array file.
    pub name: String,
    /// Its address in the array file.
    pub url: String,
    /// Its place in the array file.
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
    /// Its name in the array file.
    pub name: String,
    /// Its address in the array file.
    pub url: String,
    link: Result<Rc<Drive>, String>,
}

/// Drives used together.
pub struct Array {
    slots: Vec<DriveSlot>,
    patience: Duration,
}

/// How long a writer of a name waits for another one that has begun to change it, before it takes
/// that one for cut off.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an array cannot be used: drives or the network are at fault, but for [`Error::File`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The array file.
    File(FileError),
    /// A drive that is needed is down.
    Down {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Why.
        why: String,
    },
    /// Fewer than a majority of the drives are up.
    TooFew {
        /// How many are up.
        up: usize,
        /// How many there are.
        drives: usize,
        /// Those that are down, each with its reason.
        down: Vec<String>,
    },
}

impl Error {
    /// Name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Down { drive, .. } => Some(drive),
            Self::File(_) | Self::TooFew { .. } => None,
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::File(error) => error.fault(),
            Self::Down { .. } | Self::TooFew { .. } => Fault::Run,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Down { drive, url, why } => {
                write!(f, "drive {drive} ({url}) is down: {why}")
            }
            Self::TooFew { up, drives, down } => {
                let needed = drives / 2 + 1;
                match up {
                    0 => write!(f, "no drive is up; `csd array up` starts them; down: ")?,
                    _ => write!(
                        f,
                        "{up} of {drives} drives are up, {needed} are needed: `csd array up` \
                         starts those that are down: "
                    )?,
                }
                f.write_str(&down.join("; "))
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl Plan {
    /// Resolves the addresses of an array file. May ask a name server, so it is called before
    /// any core starts. An address that cannot be resolved makes its drive a drive that is down.
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
    /// Why it is down.
    pub(crate) async fn connect(&self, index: usize, options: &Options) -> Result<Drive, String> {
        let planned = self.drives.get(index).ok_or("the array file does not list it")?;
        open(index, planned, options).await
    }
}

impl Array {
    /// Connects to all drives at once, and waits for every one to answer or to fail.
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

    /// Sets how long a writer of a name waits for another one that has begun to change it, before
    /// it takes that one for cut off. Which of the two gets the name never depends on it.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// See [`Self::with_patience`].
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The array that the first `drives` drives are, over the same connections.
    #[must_use]
    pub fn first(&self, drives: usize) -> Self {
        Self { slots: self.slots[..drives].to_vec(), ..*self }
    }

    /// Every drive's place, in the order of the array file.
    #[must_use]
    pub fn slots(&self) -> &[DriveSlot] {
        &self.slots
    }

    /// The drives that are up.
    pub fn drives(&self) -> impl Iterator<Item = &Rc<Drive>> {
        self.slots.iter().filter_map(|slot| slot.link.as_ref().ok())
    }

    /// The drive with this index.
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

    /// Smallest number of drives that any two such sets share one of.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.slots.len() / 2 + 1
    }

    /// Drives that are down, each with its reason.
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

    /// Ends all connections in order.
    pub async fn disconnect(self) {
        for slot in self.slots {
            if let Ok(drive) = slot.link {
                drive.controller.clone().disconnect().await;
            }
        }
    }
}

impl DriveSlot {
    /// The drive, or why it is down.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn drive(&self) -> Result<&Rc<Drive>, &str> {
        self.link.as_ref().map_err(String::as_str)
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

/// What went wrong, without the address: messages of an array name the drive themselves.
pub(crate) fn words(error: &csd_initiator::Error) -> String {
    let text = error.to_string();
    let prefix = error.drive().map(|drive| format!("drive {drive}: "));
    match prefix.and_then(|prefix| text.strip_prefix(&prefix).map(str::to_owned)) {
        Some(words) => words,
        None => text,
    }
}
