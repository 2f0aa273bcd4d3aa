//! What a drive says of itself: Identify Controller, its namespaces and what they are.
//!
//! Invariant: namespaces stand by rising id, as the active list has them; a namespace of a command
//! set that we do not know is listed, not refused.

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::capsule::Sqe;
use csd_nvme::identify::{
    Cns, IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, IdentifyMemoryNamespace,
    IdentifyNamespace, LbaFormat, descriptor_csi, identify, parse_namespace_list,
};
use csd_nvme::opcode::Csi;
use csd_reactor::Buffer;

use super::admin;
use crate::Error;
use crate::connection::Connection;
use crate::fate::Fate;

/// One namespace of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Namespace id.
    pub nsid: u32,
    /// Command set.
    pub csi: Csi,
    /// What it is and how large.
    pub kind: NamespaceKind,
}

/// What a namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamespaceKind {
    /// Logical blocks.
    Block {
        /// Number of logical blocks.
        blocks: u64,
        /// Size of a logical block in bytes.
        block_bytes: u32,
    },
    /// Keys and values.
    Kv {
        /// Capacity in bytes.
        bytes: u64,
        /// Bytes in use.
        used_bytes: u64,
        /// Longest value in bytes (KVVML).
        value_bytes_max: u32,
    },
    /// Bytes that programs and hosts share.
    Memory {
        /// Size in bytes.
        bytes: u64,
    },
    /// Programs.
    Compute,
    /// Another command set.
    Other,
}

const LIST_IDS: usize = IDENTIFY_BYTES / 4;
/// Most namespaces that we look at; a drive has a handful.
const NAMESPACES_MAX: usize = 4096;
/// Logical blocks are of 512 bytes to 64 KiB (LBADS 9 to 16).
const LBADS: std::ops::RangeInclusive<u32> = 9..=16;

async fn identify_data(
    fate: &Fate,
    connection: &Rc<Connection>,
    sqe: Sqe,
) -> Result<Buffer, Error> {
    let bytes = u32::try_from(IDENTIFY_BYTES).expect("4096");
    let reply = admin(fate, connection, sqe, &[], bytes).await?;
    if reply.data.len() != IDENTIFY_BYTES {
        return Err(protocol(fate, "data of Identify is not 4096 bytes"));
    }
    Ok(reply.data)
}

fn protocol(fate: &Fate, reason: impl Into<String>) -> Error {
    Error::Protocol { drive: Arc::clone(&fate.drive), reason: reason.into() }
}

pub(super) async fn controller(
    fate: &Fate,
    connection: &Rc<Connection>,
) -> Result<IdentifyController, Error> {
    let data = identify_data(fate, connection, identify(Cns::CONTROLLER, 0, Csi::NVM)).await?;
    Ok(IdentifyController::parse(&data).expect("4096 bytes"))
}

pub(super) async fn namespaces(
    fate: &Fate,
    connection: &Rc<Connection>,
) -> Result<Vec<Namespace>, Error> {
    let mut namespaces = Vec::new();
    let mut after = 0;
    loop {
        let list = identify(Cns::ACTIVE_LIST, after, Csi::NVM);
        let ids = parse_namespace_list(&identify_data(fate, connection, list).await?);
        for nsid in &ids {
            if *nsid <= after || namespaces.len() >= NAMESPACES_MAX {
                return Err(protocol(fate, "its list of namespaces does not rise, or not end"));
            }
            after = *nsid;
            namespaces.push(namespace(fate, connection, *nsid).await?);
        }
        if ids.len() < LIST_IDS {
            return Ok(namespaces);
        }
    }
}

async fn namespace(
    fate: &Fate,
    connection: &Rc<Connection>,
    nsid: u32,
) -> Result<Namespace, Error> {
    let sqe = identify(Cns::DESCRIPTORS, nsid, Csi::NVM);
    let csi = descriptor_csi(&identify_data(fate, connection, sqe).await?);
    let kind = match csi {
        Csi::NVM => {
            let sqe = identify(Cns::NAMESPACE, nsid, Csi::NVM);
            let data = identify_data(fate, connection, sqe).await?;
            block(fate, nsid, &IdentifyNamespace::parse(&data).expect("4096 bytes"))?
        }
        Csi::KV => {
            let sqe = identify(Cns::NAMESPACE_FOR_CSI, nsid, Csi::KV);
            let data = identify_data(fate, connection, sqe).await?;
            let data = IdentifyKvNamespace::parse(&data).expect("4096 bytes");
            NamespaceKind::Kv {
                bytes: data.nsze(),
                used_bytes: data.nuse(),
                value_bytes_max: data.kvvml(),
            }
        }
        Csi::SLM => {
            let sqe = identify(Cns::NAMESPACE_FOR_CSI, nsid, Csi::SLM);
            let data = identify_data(fate, connection, sqe).await?;
            let data = IdentifyMemoryNamespace::parse(&data).expect("4096 bytes");
            NamespaceKind::Memory { bytes: data.nsze() }
        }
        Csi::CP => NamespaceKind::Compute,
        _ => NamespaceKind::Other,
    };
    Ok(Namespace { nsid, csi, kind })
}

fn block(fate: &Fate, nsid: u32, data: &IdentifyNamespace) -> Result<NamespaceKind, Error> {
    let lbads = LbaFormat(data.lbaf0()).lbads();
    if data.flbas() & 0xF != 0 || !LBADS.contains(&lbads) {
        return Err(protocol(fate, format!("namespace {nsid} has a block format of its own")));
    }
    let block_bytes = 1 << lbads;
    if data.nsze().checked_mul(u64::from(block_bytes)).is_none() {
        return Err(protocol(fate, format!("namespace {nsid} says that it is beyond 16 EiB")));
    }
    Ok(NamespaceKind::Block { blocks: data.nsze(), block_bytes })
}
