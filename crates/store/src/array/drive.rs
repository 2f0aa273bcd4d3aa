//! A drive of an array, with a connection to each of its namespaces.

use csd_initiator::{Address, Block, Compute, Controller, Error, Kv, Options};

use super::{BLOCK_NSID, COMPUTE_NSID, DriveIndex, OBJECTS_NSID};
use crate::pauses::Pauses;

/// Attempts to connect to a drive where the connection is lost.
pub(super) const ATTEMPTS: usize = 3;

/// A drive that is up.
#[derive(Clone)]
pub struct Drive {
    /// Name in the array file.
    pub name: String,
    /// Address in the array file.
    pub url: String,
    /// Index in the array file.
    pub index: DriveIndex,
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
    /// NGUID of the objects' namespace: identifies the medium.
    pub nguid: [u8; 16],
    /// Number of the drive's life: another one after each start.
    pub life: u64,
}

/// A drive as the array file lists it.
#[derive(Clone, Debug)]
pub(super) struct PlannedDrive {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) address: Result<Address, String>,
}

impl Drive {
    /// Connects to a drive that need not belong to an array; its name is its URL.
    ///
    /// # Errors
    /// The reason why it is down, or no drive of this project.
    pub async fn connect(address: &Address, options: &Options) -> Result<Self, String> {
        let url = address.to_string();
        let address = Ok(address.clone());
        open(DriveIndex::default(), &PlannedDrive { name: url.clone(), url, address }, options)
            .await
    }

    /// Returns the data of all commands so far, in both directions, bytes.
    pub(crate) fn crossed_bytes(&self) -> u64 {
        self.controller.bytes_to_host() + self.controller.bytes_to_drive()
    }

    /// Returns the bytes on the wire so far, in both directions.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        let traffic = self.controller.traffic();
        traffic.wire_to_host + traffic.wire_to_drive
    }
}

pub(super) async fn open(
    index: DriveIndex,
    planned: &PlannedDrive,
    options: &Options,
) -> Result<Drive, String> {
    let address = planned.address.as_ref().map_err(Clone::clone)?;
    let controller = connect(address, options).await.map_err(reason)?;
    let objects = Kv::open(&controller, OBJECTS_NSID).map_err(reason)?;
    let block = Block::open(&controller, BLOCK_NSID).map_err(reason)?;
    let compute = Compute::open(&controller, COMPUTE_NSID).map_err(reason)?;
    let nguid = controller.namespace(OBJECTS_NSID).map(|namespace| namespace.nguid);
    let (value_bytes_max, life) = (objects.value_bytes_max(), controller.identity().life());
    let (name, url, nguid) = (planned.name.clone(), planned.url.clone(), nguid.unwrap_or_default());
    let drive = Drive {
        name,
        url,
        index,
        controller,
        objects,
        block,
        compute,
        value_bytes_max,
        nguid,
        life,
    };
    Ok(drive)
}

/// Connects; tries again after a pause if the connection is lost meanwhile. A drive that was
/// stopped for a while takes a host that it has not heard of for gone, and a network may fail for a
/// moment.
async fn connect(address: &Address, options: &Options) -> Result<Controller, Error> {
    let mut pauses = Pauses::new();
    for _ in 1..ATTEMPTS {
        match Controller::connect(address, options).await {
            Err(Error::Lost { .. }) => pauses.wait().await,
            connected => return connected,
        }
    }
    Controller::connect(address, options).await
}

#[allow(clippy::needless_pass_by_value)] // it is what map_err passes
pub(super) fn reason(error: csd_initiator::Error) -> String {
    words(&error)
}

/// Describes the error without the address: messages of an array name the drive themselves.
pub fn words(error: &csd_initiator::Error) -> String {
    let text = error.to_string();
    let prefix = error.drive().map(|drive| format!("drive {drive}: "));
    match prefix.and_then(|prefix| text.strip_prefix(&prefix).map(str::to_owned)) {
        Some(words) => words,
        None => text,
    }
}
