//! A drive's description: Identify Controller, and its namespaces.
//!
//! Invariant: namespaces are in the order of the active list, by rising id; a namespace of an
//! unknown command set or block format is listed, not refused.

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::capsule::Sqe;
use csd_nvme::identify::{
    Cns, IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, IdentifyMemoryNamespace,
    IdentifyNamespace, descriptor_csi, descriptor_nguid, identify, parse_namespace_list,
};
use csd_nvme::opcode::Csi;
use csd_reactor::Buffer;

use super::admin;
use crate::Error;
use crate::association::Association;
use crate::connection::Connection;

/// One namespace of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Namespace id.
    pub nsid: u32,
    /// Command set.
    pub csi: Csi,
    /// Globally unique identifier (NGUID); zeros if it has none.
    pub nguid: [u8; 16],
    /// Kind and size.
    pub kind: NamespaceKind,
}

/// Kind and size of a namespace.
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
        /// Maximum value length in bytes (KVVML).
        value_bytes_max: u32,
    },
    /// Bytes that programs and hosts share.
    Memory {
        /// Size in bytes.
        bytes: u64,
    },
    /// Programs.
    Compute,
    /// Another command set, or an unsupported block format.
    Other,
}

const LIST_IDS: usize = IDENTIFY_BYTES / 4;
/// Maximum number of namespaces read; a drive has a handful.
const NAMESPACES_MAX: usize = 4096;
/// Logical blocks are of 512 bytes to 64 KiB (LBADS 9 to 16).
const LBADS: std::ops::RangeInclusive<u32> = 9..=16;

async fn identify_data(
    association: &Association,
    connection: &Rc<Connection>,
    sqe: Sqe,
) -> Result<Buffer, Error> {
    let bytes = u32::try_from(IDENTIFY_BYTES).expect("4096");
    let reply = admin(association, connection, sqe, &[], bytes).await?;
    if reply.data.len() != IDENTIFY_BYTES {
        return Err(protocol(association, "data of Identify is not 4096 bytes"));
    }
    Ok(reply.data)
}

fn protocol(association: &Association, reason: impl Into<String>) -> Error {
    Error::Protocol { drive: Arc::clone(&association.drive), reason: reason.into() }
}

pub(super) async fn controller(
    association: &Association,
    connection: &Rc<Connection>,
) -> Result<IdentifyController, Error> {
    let data =
        identify_data(association, connection, identify(Cns::CONTROLLER, 0, Csi::NVM)).await?;
    Ok(IdentifyController::parse(&data).expect("4096 bytes"))
}

pub(super) async fn namespaces(
    association: &Association,
    connection: &Rc<Connection>,
) -> Result<Vec<Namespace>, Error> {
    let mut namespaces = Vec::new();
    let mut after = 0;
    loop {
        let list = identify(Cns::ACTIVE_LIST, after, Csi::NVM);
        let ids = parse_namespace_list(&identify_data(association, connection, list).await?);
        for nsid in &ids {
            if *nsid <= after || namespaces.len() >= NAMESPACES_MAX {
                return Err(protocol(
                    association,
                    "its list of namespaces does not rise, or not end",
                ));
            }
            after = *nsid;
            namespaces.push(namespace(association, connection, *nsid).await?);
        }
        if ids.len() < LIST_IDS {
            return Ok(namespaces);
        }
    }
}

async fn namespace(
    association: &Association,
    connection: &Rc<Connection>,
    nsid: u32,
) -> Result<Namespace, Error> {
    let sqe = identify(Cns::DESCRIPTORS, nsid, Csi::NVM);
    let descriptors = identify_data(association, connection, sqe).await?;
    let (csi, nguid) = (descriptor_csi(&descriptors), descriptor_nguid(&descriptors));
    let kind = match csi {
        Csi::NVM => {
            let sqe = identify(Cns::NAMESPACE, nsid, Csi::NVM);
            let data = identify_data(association, connection, sqe).await?;
            let data = IdentifyNamespace::parse(&data).expect("4096 bytes");
            block(&data)
                .map_err(|reason| protocol(association, format!("namespace {nsid} {reason}")))?
        }
        Csi::KV => {
            let sqe = identify(Cns::NAMESPACE_FOR_CSI, nsid, Csi::KV);
            let data = identify_data(association, connection, sqe).await?;
            let data = IdentifyKvNamespace::parse(&data).expect("4096 bytes");
            NamespaceKind::Kv {
                bytes: data.nsze(),
                used_bytes: data.nuse(),
                value_bytes_max: data.kvvml(),
            }
        }
        Csi::SLM => {
            let sqe = identify(Cns::NAMESPACE_FOR_CSI, nsid, Csi::SLM);
            let data = identify_data(association, connection, sqe).await?;
            let data = IdentifyMemoryNamespace::parse(&data).expect("4096 bytes");
            NamespaceKind::Memory { bytes: data.nsze() }
        }
        Csi::CP => NamespaceKind::Compute,
        _ => NamespaceKind::Other,
    };
    Ok(Namespace { nsid, csi, nguid, kind })
}

/// Describes a namespace of blocks; only formats without metadata are supported.
fn block(data: &IdentifyNamespace) -> Result<NamespaceKind, &'static str> {
    let format = data.format();
    if format.ms() != 0 || !LBADS.contains(&format.lbads()) {
        return Ok(NamespaceKind::Other);
    }
    let (blocks, block_bytes) = (data.nsze(), 1 << format.lbads());
    match blocks.checked_mul(u64::from(block_bytes)) {
        Some(_) => Ok(NamespaceKind::Block { blocks, block_bytes }),
        None => Err("says that it is beyond 16 EiB"),
    }
}

#[cfg(test)]
mod tests {
    use csd_nvme::identify::LbaFormat;

    use super::*;

    #[test]
    fn blocks_of_any_format_without_metadata_are_spoken() {
        let with = |index: usize, format: LbaFormat, blocks: u64| {
            let mut bytes = *IdentifyNamespace::zeroed().as_bytes();
            bytes[128 + 4 * index..][..4].copy_from_slice(&format.0.to_le_bytes());
            let mut data = IdentifyNamespace::from_bytes(bytes);
            data.set_nsze(blocks).set_nlbaf(3).set_flbas(u8::try_from(index).unwrap());
            block(&data)
        };
        let format = LbaFormat::default().with_lbads(12);
        for index in 0..4 {
            let kind = with(index, format, 7).unwrap();
            assert_eq!(kind, NamespaceKind::Block { blocks: 7, block_bytes: 4096 });
        }
        for unknown in [format.with_ms(8), format.with_lbads(8), format.with_lbads(17)] {
            assert_eq!(with(1, unknown, 7), Ok(NamespaceKind::Other));
        }
        assert!(with(0, format, 1 << 52).is_err());
    }
}
