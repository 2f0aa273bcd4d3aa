//! Identify: what a controller says of itself and its namespaces.

use super::{Backing, Controller, EVENT_REQUESTS_MAX, Namespace, NamespaceKind, Subsystem};
use crate::NSID_ALL;
use crate::capsule::Sqe;
use crate::identify::{
    self, Cns, IDENTIFY_BYTES, IdentifyComputeNamespace, IdentifyController, IdentifyKvController,
    IdentifyKvNamespace, IdentifyNamespace, IdentifyNamespaceIndependent, LbaFormat, SglSupport,
};
use crate::kv::KEY_BYTES_MAX;
use crate::opcode::Csi;
use crate::property::VERSION;
use crate::status::Status;
use crate::wire::fixed_text;

/// Traffic Based Keep Alive Support (CTRATT bit 6) and 128-bit host identifier (bit 0).
const ATTRIBUTES: u32 = 1 << 6 | 1;

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
            Cns::NAMESPACE => {
                let namespace = block_or_all(subsystem, nsid)?;
                Ok(block(namespace, backing))
            }
            Cns::ACTIVE_LIST => active(subsystem, nsid, None),
            Cns::ACTIVE_LIST_FOR_CSI => active(subsystem, nsid, Some(csi)),
            Cns::DESCRIPTORS => Ok(descriptors(namespace()?)),
            Cns::NAMESPACE_FOR_CSI => for_command_set(namespace()?, csi, backing),
            Cns::CONTROLLER_FOR_CSI => controller_for(csi, subsystem),
            Cns::NAMESPACE_INDEPENDENT => {
                namespace()?;
                let mut data = IdentifyNamespaceIndependent::zeroed();
                data.set_nmic(1).set_nstat(1);
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
    data.set_ctratt(ATTRIBUTES).set_cntrltype(1);
    data.set_acl(3).set_aerl(EVENT_REQUESTS_MAX - 1).set_frmw(1 << 1 | 1);
    data.set_lpa(1 << 5 | 1 << 2 | 1 << 1).set_kas(10);
    data.set_wctemp(343).set_cctemp(353);
    data.set_sqes(0x66).set_cqes(0x44).set_maxcmd(subsystem.queue_entries_max);
    let last = subsystem.namespaces.last().map_or(0, |namespace| namespace.nsid);
    data.set_nn(last).set_mnan(last);
    // Bits 2:1 = 11b: Flush with NSID FFFFFFFFh is supported.
    data.set_vwc(0b110 | u8::from(subsystem.volatile_cache));
    data.set_sgls(SglSupport::default().with_supported(1).with_offset(1).with_transport(1).0);
    data.set_subnqn(&fixed_text(&subsystem.nqn, 0));
    data.set_ioccsz((64 + subsystem.in_capsule_bytes_max) / 16).set_iorcsz(1).set_msdbd(1);
    data.as_bytes().to_vec()
}

fn block_or_all(subsystem: &Subsystem, nsid: u32) -> Result<&Namespace, Status> {
    let is_block = |namespace: &&Namespace| namespace.csi() == Csi::NVM;
    let mut all = subsystem.namespaces.iter();
    let found = match nsid {
        NSID_ALL => all.find(is_block),
        _ => all.find(|namespace| namespace.nsid == nsid).filter(is_block),
    };
    found.ok_or(Status::INVALID_NAMESPACE)
}

fn block(namespace: &Namespace, backing: &dyn Backing) -> Vec<u8> {
    let mut data = IdentifyNamespace::zeroed();
    if let NamespaceKind::Block { blocks, block_bytes_log2 } = namespace.kind {
        data.set_nsze(blocks).set_ncap(blocks).set_nuse(backing.used(namespace.nsid));
        let format = LbaFormat::default().with_lbads(u32::from(block_bytes_log2));
        data.set_nmic(1).set_nguid(&namespace.nguid).set_lbaf0(format.0);
    }
    data.as_bytes().to_vec()
}

fn kv(namespace: &Namespace, backing: &dyn Backing) -> Vec<u8> {
    let mut data = IdentifyKvNamespace::zeroed();
    if let NamespaceKind::Kv { bytes, value_bytes_max } = namespace.kind {
        data.set_nsze(bytes).set_nuse(backing.used(namespace.nsid)).set_nmic(1);
        data.set_nguid(&namespace.nguid).set_novg(4096);
        data.set_kvkml(KEY_BYTES_MAX.into()).set_kvvml(value_bytes_max);
    }
    data.as_bytes().to_vec()
}

fn compute() -> Vec<u8> {
    // Device-defined programs only: nothing can be loaded, no memory range sets.
    let mut data = IdentifyComputeNamespace::zeroed();
    data.set_maxact(u16::MAX);
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
        NamespaceKind::Compute { .. } => compute(),
    })
}

fn controller_for(csi: Csi, subsystem: &Subsystem) -> Result<Vec<u8>, Status> {
    if !subsystem.namespaces.iter().any(|namespace| namespace.csi() == csi) {
        return Err(Status::INVALID_FIELD);
    }
    if csi != Csi::KV {
        return Ok(vec![0; IDENTIFY_BYTES]);
    }
    let mut data = IdentifyKvController::zeroed();
    data.set_ver(identify::KV_VERSION);
    Ok(data.as_bytes().to_vec())
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
    identify::push_descriptor(&mut data, identify::DESCRIPTOR_CSI, &[namespace.csi().0]);
    data.resize(IDENTIFY_BYTES, 0);
    data
}
