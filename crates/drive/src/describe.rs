//! The drive's identity: its name, its exposed namespaces and their sizes.
//!
//! Invariant: a namespace's globally unique identifier (NGUID) is the drive's identifier with the
//! namespace identifier added to its last byte.

use csd_kvlog::format::Superblock;
use csd_kvlog::segments::Segments;
use csd_nvme::controller::{Namespace, NamespaceKind, Subsystem};
use csd_nvme::vendor::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};
use csd_reactor::random_u64;

use crate::compute;
use crate::limits::IN_CAPSULE_BYTES_MAX;
use crate::resources::Resources;

/// Most I/O queues of one controller.
const IO_QUEUES_MAX: u16 = 128;
/// Most entries of a queue.
const QUEUE_ENTRIES_MAX: u16 = 1024;

/// Describes the subsystem of a drive. Without memory there is no memory namespace.
pub(crate) fn subsystem(
    nqn: &str,
    superblock: &Superblock,
    segments: &Segments,
    resources: &Resources,
) -> Subsystem {
    let uuid = superblock.uuid();
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let nqn = match nqn {
        "" => format!("nqn.2026-11.io.csdstore:{hex}"),
        name => name.to_owned(),
    };
    let namespace = |nsid: u32, kind| {
        let mut nguid = uuid;
        nguid[15] = nguid[15].wrapping_add(u8::try_from(nsid).expect("few namespaces"));
        Namespace { nsid, nguid, kind }
    };
    let block_bytes = superblock.block_bytes();
    let blocks = superblock.block_length() / u64::from(block_bytes);
    let block_bytes_log2 = u8::try_from(block_bytes.ilog2()).expect("9 or 12");
    let kv = NamespaceKind::Kv {
        bytes: segments.capacity_bytes(),
        value_bytes_max: superblock.value_bytes_max().min(resources.transfer_bytes_max()),
    };
    let mut namespaces = vec![
        namespace(NSID_BLOCK, NamespaceKind::Block { blocks, block_bytes_log2 }),
        namespace(NSID_KV, kv.clone()),
        namespace(NSID_OBJECTS, kv),
    ];
    let bytes = resources.memory_bytes;
    if bytes > 0 {
        namespaces.push(namespace(NSID_MEMORY, NamespaceKind::Memory { bytes }));
    }
    let programs = compute::programs();
    namespaces.push(namespace(NSID_COMPUTE, NamespaceKind::Compute { programs }));
    namespaces.retain(|namespace| resources.expose.has(namespace.nsid));
    Subsystem {
        nqn,
        serial: hex[..20].to_owned(),
        model: "CSDStore drive".into(),
        firmware: env!("CARGO_PKG_VERSION").into(),
        namespaces,
        volatile_cache: true,
        io_queues_max: IO_QUEUES_MAX,
        queue_entries_max: QUEUE_ENTRIES_MAX,
        mdts: resources.mdts,
        in_capsule_bytes_max: IN_CAPSULE_BYTES_MAX,
        tunnel: resources.tunnel.is_some(),
        life: random_u64(),
    }
}
