//! Identify data of a controller and its namespaces.

use super::{
    Backing, Controller, ERROR_ENTRIES_MAX, EVENT_REQUESTS_MAX, Namespace, NamespaceKind, Subsystem,
};
use crate::capsule::Sqe;
use crate::identify::{
    self, Cns, EVENT_NAMESPACE_ATTRIBUTE, IDENTIFY_BYTES, IdentifyComputeNamespace,
    IdentifyController, IdentifyKvController, IdentifyKvNamespace, IdentifyMemoryNamespace,
    IdentifyNamespace, IdentifyNamespaceIndependent, IdentifyNvmController, LbaFormat, SglSupport,
};
use crate::kv::KEY_BYTES_MAX;
use crate::nvm::COPY_RANGES_MAX;
use crate::nvm::FORMAT_MEMORY;
use crate::opcode::Csi;
use crate::program;
use crate::property::VERSION;
use crate::status::Status;
use crate::wire::fixed_text;

/// Traffic Based Keep Alive Support (CTRATT bit 6) and 128-bit host identifier (bit 0).
const ATTRIBUTES: u32 = 1 << 6 | 1;

/// ONCS: Compare, Dataset Management, Write Zeroes, Save and Select, Verify, Copy. No reservations
/// (bit 5), no Write Uncorrectable (bit 1), no Timestamp (bit 6).
const COMMANDS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7 | 1 << 8;

/// Limit of Verify and Write Zeroes: 2^16 pages of 4 KiB, the range of 16 bits of blocks.
const SIZE_LIMIT: u8 = 16;

/// LBADS reported for a namespace without blocks: 512 bytes, the smallest that a format may have.
const OTHER_LBADS: u32 = 9;

/// Preferred alignment of writes and deallocations in bytes, for every block size.
const PAGE_BYTES: u32 = 4096;

impl Controller {
    pub(super) fn identify(
        &self,
        sqe: &Sqe,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<Vec<u8>, Status> {
        let view = identify::Identify::from_bytes(*sqe.as_bytes());
        let (csi, nsid) = (Csi(view.csi()), sqe.nsid());
        let namespace = || subsystem.namespace(nsid).ok_or(Status::INVALID_NAMESPACE);
        match Cns(view.cns()) {
            Cns::CONTROLLER => Ok(controller(self.cntlid, subsystem)),
            // What is allocated is active: there is no namespace management.
            Cns::NAMESPACE | Cns::ALLOCATED_NAMESPACE => {
                let namespace = namespace()?;
                Ok(match namespace.kind {
                    NamespaceKind::Block { .. } => block(namespace, subsystem, backing),
                    _ => other(namespace, backing),
                })
            }
            Cns::ACTIVE_LIST | Cns::ALLOCATED_LIST => active(subsystem, nsid, None),
            Cns::ACTIVE_LIST_FOR_CSI | Cns::ALLOCATED_LIST_FOR_CSI => {
                active(subsystem, nsid, Some(csi))
            }
            Cns::FORMAT if view.index() == 0 => {
                let mut all = subsystem.namespaces.iter();
                let found = all.find(|namespace| namespace.csi() == Csi::NVM);
                Ok(block(found.ok_or(Status::INVALID_FIELD)?, subsystem, backing))
            }
            Cns::FORMAT_FOR_CSI if view.index() == 0 => {
                let mut all = subsystem.namespaces.iter();
                let found = all.find(|namespace| namespace.csi() == csi);
                for_command_set(found.ok_or(Status::INVALID_FIELD)?, csi, backing)
            }
            Cns::CONTROLLERS => Ok(controllers(view.cntid(), backing)),
            Cns::CONTROLLERS_OF_NAMESPACE => {
                namespace()?;
                Ok(controllers(view.cntid(), backing))
            }
            Cns::DESCRIPTORS => Ok(descriptors(namespace()?)),
            Cns::NAMESPACE_FOR_CSI | Cns::ALLOCATED_NAMESPACE_FOR_CSI => {
                for_command_set(namespace()?, csi, backing)
            }
            Cns::CONTROLLER_FOR_CSI => controller_for(csi, subsystem),
            Cns::NAMESPACE_INDEPENDENT => {
                namespace()?;
                let mut data = IdentifyNamespaceIndependent::zeroed();
                data.set_nmic(1).set_nsattr(backing.is_protected(nsid).into()).set_nstat(1);
                data.set_nsfeat(u8::from(backing.is_uncached(nsid)) << 5);
                Ok(data.as_bytes().to_vec())
            }
            Cns::COMMAND_SETS => {
                let sets = subsystem.namespaces.iter().map(|ns| 1u64 << ns.csi().0);
                let mut data = sets.fold(0, |all, set| all | set).to_le_bytes().to_vec();
                data.resize(IDENTIFY_BYTES, 0);
                Ok(data)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

fn controller(cntlid: u16, subsystem: &Subsystem) -> Vec<u8> {
    let mut data = IdentifyController::zeroed();
    data.set_sn(&fixed_text(&subsystem.serial, b' '))
        .set_mn(&fixed_text(&subsystem.model, b' '))
        .set_fr(&fixed_text(&subsystem.firmware, b' '));
    data.set_cmic(1 << 1).set_mdts(subsystem.mdts).set_cntlid(cntlid).set_ver(VERSION);
    data.set_ctratt(ATTRIBUTES).set_cntrltype(1).set_oaes(EVENT_NAMESPACE_ATTRIBUTE);
    data.set_elpe(ERROR_ENTRIES_MAX - 1).set_nwpc(1 << 1 | 1);
    // Atomic units are one block (0's based 0): all that the medium promises.
    let of_memory = subsystem.namespaces.iter().any(|namespace| namespace.csi() == Csi::SLM);
    let formats = 1 | u16::from(of_memory) << FORMAT_MEMORY;
    data.set_oncs(COMMANDS).set_fuses(1).set_ocfs(formats).set_ofcs(1);
    data.set_acl(3).set_aerl(EVENT_REQUESTS_MAX - 1).set_frmw(1 << 1 | 1);
    data.set_lpa(1 << 5 | 1 << 2 | 1 << 1).set_kas(10);
    data.set_wctemp(343).set_cctemp(353);
    data.set_sqes(0x66).set_cqes(0x44).set_maxcmd(subsystem.queue_entries_max);
    let last = subsystem.namespaces.last().map_or(0, |namespace| namespace.nsid);
    data.set_nn(last).set_mnan(last);
    // Bits 2:1 = 11b: Flush with NSID FFFFFFFFh is supported.
    data.set_vwc(0b110 | u8::from(subsystem.volatile_cache));
    data.set_icsvscc(u8::from(subsystem.tunnel));
    data.set_sgls(SglSupport::default().with_supported(1).with_offset(1).with_transport(1).0);
    data.set_subnqn(&fixed_text(&subsystem.nqn, 0));
    data.set_ioccsz((64 + subsystem.in_capsule_bytes_max) / 16).set_iorcsz(1).set_msdbd(1);
    data.set_life(subsystem.life);
    data.as_bytes().to_vec()
}

fn block(namespace: &Namespace, subsystem: &Subsystem, backing: &dyn Backing) -> Vec<u8> {
    let mut data = IdentifyNamespace::zeroed();
    if let NamespaceKind::Block { blocks, block_bytes_log2 } = namespace.kind {
        data.set_nsze(blocks).set_ncap(blocks).set_nuse(backing.used(namespace.nsid));
        let format = LbaFormat::default().with_lbads(u32::from(block_bytes_log2));
        data.set_nmic(1).set_nguid(&namespace.nguid).set_lbaf0(format.0);
        data.set_nsattr(backing.is_protected(namespace.nsid).into());
        // OPTPERF: the preferred sizes are given. Deallocated blocks read as zeros.
        let page = u16::try_from((PAGE_BYTES >> block_bytes_log2).max(1) - 1).expect("at most 7");
        data.set_nsfeat(1 << 4).set_npwg(page).set_npwa(page).set_npdg(page).set_npda(page);
        data.set_nows(page);
        data.set_dlfeat(1 << 3 | 1);
        let copy = subsystem.transfer_bytes_max() >> block_bytes_log2;
        data.set_mssrl(u16::try_from(copy).unwrap_or(u16::MAX)).set_mcl(copy);
        data.set_msrc(u8::try_from(COPY_RANGES_MAX - 1).expect("0's based, of a byte"));
    }
    data.as_bytes().to_vec()
}

/// Returns CNS 00h of a namespace without blocks. Hosts that support several command sets request
/// it anyway: SPDK's takes a namespace with a capacity (NCAP) of 0 there for inactive, before it
/// asks for its command set. Sizes are in units of the smallest block that LBADS can express.
fn other(namespace: &Namespace, backing: &dyn Backing) -> Vec<u8> {
    let bytes = match namespace.kind {
        NamespaceKind::Kv { bytes, .. } => backing.kv_bytes(namespace.nsid, bytes),
        NamespaceKind::Memory { bytes } => bytes,
        // What it has room for is programs.
        _ => program::ALL_PROGRAMS_BYTES_MAX.into(),
    };
    let size = bytes >> OTHER_LBADS;
    let used = backing.used(namespace.nsid).div_ceil(1 << OTHER_LBADS).min(size);
    let mut data = IdentifyNamespace::zeroed();
    data.set_nsze(size).set_ncap(size).set_nuse(used).set_nmic(1).set_nguid(&namespace.nguid);
    data.set_nsattr(backing.is_protected(namespace.nsid).into());
    data.set_lbaf0(LbaFormat::default().with_lbads(OTHER_LBADS).0);
    data.as_bytes().to_vec()
}

fn kv(namespace: &Namespace, backing: &dyn Backing) -> Vec<u8> {
    let mut data = IdentifyKvNamespace::zeroed();
    if let NamespaceKind::Kv { bytes, value_bytes_max } = namespace.kind {
        let nsid = namespace.nsid;
        data.set_nsze(backing.kv_bytes(nsid, bytes)).set_nuse(backing.used(nsid)).set_nmic(1);
        data.set_nguid(&namespace.nguid).set_novg(4096);
        data.set_kvkml(KEY_BYTES_MAX.into()).set_kvvml(value_bytes_max);
        data.set_mnks(backing.kv_keys_max(nsid));
    }
    data.as_bytes().to_vec()
}

fn memory(bytes: u64, used: u64) -> Vec<u8> {
    let mut data = IdentifyMemoryNamespace::zeroed();
    data.set_nsze(bytes).set_nuse(used);
    data.as_bytes().to_vec()
}

fn compute(programs: usize) -> Vec<u8> {
    let mut data = IdentifyComputeNamespace::zeroed();
    let own = u16::try_from(programs).expect("few programs of the drive's own");
    data.set_maxact(own + program::ACTIVE_MAX);
    // Ranges and programs are of bytes: 2^0.
    data.set_maxmemrs(program::RANGE_SETS_MAX).set_mrsg(0).set_maxmemr(program::RANGES_MAX);
    data.set_maxpb(u64::from(program::PROGRAM_BYTES_MAX >> 20)).set_lpg(0);
    data.as_bytes().to_vec()
}

fn for_command_set(
    namespace: &Namespace,
    csi: Csi,
    backing: &dyn Backing,
) -> Result<Vec<u8>, Status> {
    if namespace.csi() != csi {
        return Err(Status::INVALID_FIELD);
    }
    Ok(match namespace.kind {
        // The NVM command set's own structure: protection and storage tags, which we do not have.
        NamespaceKind::Block { .. } => vec![0; IDENTIFY_BYTES],
        NamespaceKind::Kv { .. } => kv(namespace, backing),
        NamespaceKind::Memory { bytes } => memory(bytes, backing.used(namespace.nsid)),
        NamespaceKind::Compute { ref programs } => compute(programs.len()),
    })
}

fn controller_for(csi: Csi, subsystem: &Subsystem) -> Result<Vec<u8>, Status> {
    if !subsystem.namespaces.iter().any(|namespace| namespace.csi() == csi) {
        return Err(Status::INVALID_FIELD);
    }
    match csi {
        Csi::NVM => {
            let mut data = IdentifyNvmController::zeroed();
            data.set_vsl(SIZE_LIMIT).set_wzsl(SIZE_LIMIT);
            Ok(data.as_bytes().to_vec())
        }
        Csi::KV => {
            let mut data = IdentifyKvController::zeroed();
            data.set_ver(identify::KV_VERSION);
            Ok(data.as_bytes().to_vec())
        }
        _ => Ok(vec![0; IDENTIFY_BYTES]),
    }
}

fn controllers(from: u16, backing: &dyn Backing) -> Vec<u8> {
    let mut ids = backing.controllers();
    ids.retain(|id| *id >= from);
    identify::controller_list(&ids)
}

fn active(subsystem: &Subsystem, after: u32, csi: Option<Csi>) -> Result<Vec<u8>, Status> {
    if after >= 0xFFFF_FFFE {
        return Err(Status::INVALID_NAMESPACE);
    }
    let all = subsystem.namespaces.iter();
    let chosen = all.filter(|ns| ns.nsid > after && csi.is_none_or(|csi| ns.csi() == csi));
    Ok(identify::namespace_list(chosen.map(|namespace| namespace.nsid)))
}

fn descriptors(namespace: &Namespace) -> Vec<u8> {
    let mut data = Vec::new();
    identify::push_descriptor(&mut data, identify::DESCRIPTOR_NGUID, &namespace.nguid);
    identify::push_descriptor(&mut data, identify::DESCRIPTOR_UUID, &uuid(namespace.nguid));
    identify::push_descriptor(&mut data, identify::DESCRIPTOR_CSI, &[namespace.csi().0]);
    data.resize(IDENTIFY_BYTES, 0);
    data
}

/// Returns the UUID of a namespace: its NGUID, which is random, with the version (4) and the
/// variant that make 16 random bytes a UUID.
fn uuid(mut nguid: [u8; 16]) -> [u8; 16] {
    nguid[6] = nguid[6] & 0x0F | 0x40;
    nguid[8] = nguid[8] & 0x3F | 0x80;
    nguid
}
