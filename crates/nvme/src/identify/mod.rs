//! Identify: controller, namespaces of each command set, lists and descriptors.
//!
//! Source: NVMe Base, NVM, Key Value and Computational Programs specifications, "Identify".
//! [`crate::controller`] fills them in.

mod descriptors;

use crate::capsule::Sqe;
use crate::opcode::{Admin, Csi};
use crate::wire::{bits, codes, layout};

pub use descriptors::{
    DESCRIPTOR_CSI, DESCRIPTOR_NGUID, DESCRIPTOR_UUID, descriptor_csi, descriptor_nguid,
    push_descriptor,
};

/// Every Identify data structure has this many bytes.
pub const IDENTIFY_BYTES: usize = 4096;

codes! {
    /// Controller or Namespace Structure (CNS).
    pub struct Cns: u8 {
        NAMESPACE = 0x00: "namespace (NVM)",
        CONTROLLER = 0x01: "controller",
        ACTIVE_LIST = 0x02: "active namespace list",
        DESCRIPTORS = 0x03: "namespace identification descriptors",
        NAMESPACE_FOR_CSI = 0x05: "namespace for a command set",
        CONTROLLER_FOR_CSI = 0x06: "controller for a command set",
        ACTIVE_LIST_FOR_CSI = 0x07: "active namespace list for a command set",
        NAMESPACE_INDEPENDENT = 0x08: "command set independent namespace",
        FORMAT = 0x09: "namespace for a user data format (NVM)",
        FORMAT_FOR_CSI = 0x0A: "namespace for a user data format of a command set",
        ALLOCATED_LIST = 0x10: "allocated namespace list",
        ALLOCATED_NAMESPACE = 0x11: "allocated namespace (NVM)",
        CONTROLLERS_OF_NAMESPACE = 0x12: "controllers that a namespace is attached to",
        CONTROLLERS = 0x13: "controllers of the subsystem",
        ALLOCATED_LIST_FOR_CSI = 0x1A: "allocated namespace list for a command set",
        ALLOCATED_NAMESPACE_FOR_CSI = 0x1B: "allocated namespace for a command set",
        COMMAND_SETS = 0x1C: "I/O command set combinations",
    }
}

layout! {
    /// Identify command.
    pub struct Identify[64] {
        /// Controller or Namespace Structure (CNS).
        cns / set_cns: u8 @ 40,
        /// Controller Identifier (CNTID).
        cntid / set_cntid: u16 @ 42,
        /// CNS Specific Identifier: index of a format, where the structure has one.
        index / set_index: u16 @ 44,
        /// Command Set Identifier (CSI), CDW11 bits 31:24.
        csi / set_csi: u8 @ 47,
    }
}

/// Returns Identify with this structure, namespace and command set.
pub fn identify(cns: Cns, nsid: u32, csi: Csi) -> Sqe {
    let mut view = Identify::from_bytes(*Sqe::new(Admin::IDENTIFY.0, nsid).as_bytes());
    view.set_cns(cns.0).set_csi(csi.0);
    Sqe::from_bytes(*view.as_bytes())
}

layout! {
    /// Identify Controller data (CNS 01h).
    pub struct IdentifyController[4096] {
        /// PCI Vendor ID (VID).
        vid / set_vid: u16 @ 0,
        /// PCI Subsystem Vendor ID (SSVID).
        ssvid / set_ssvid: u16 @ 2,
        /// Serial Number (SN), space-padded.
        sn / set_sn: [20] @ 4,
        /// Model Number (MN), space-padded.
        mn / set_mn: [40] @ 24,
        /// Firmware Revision (FR), space-padded.
        fr / set_fr: [8] @ 64,
        /// Recommended Arbitration Burst (RAB).
        rab / set_rab: u8 @ 72,
        /// Controller Multi-Path I/O and Namespace Sharing (CMIC): bit 1 several controllers.
        cmic / set_cmic: u8 @ 76,
        /// Maximum Data Transfer Size (MDTS), 2^n pages of CAP.MPSMIN.
        mdts / set_mdts: u8 @ 77,
        /// Controller ID (CNTLID).
        cntlid / set_cntlid: u16 @ 78,
        /// Version (VER).
        ver / set_ver: u32 @ 80,
        /// Optional Asynchronous Events Supported (OAES): bit 8 namespace attributes.
        oaes / set_oaes: u32 @ 92,
        /// Controller Attributes (CTRATT): bit 0 128-bit host identifier.
        ctratt / set_ctratt: u32 @ 96,
        /// Controller Type (CNTRLTYPE): 1 I/O, 2 discovery.
        cntrltype / set_cntrltype: u8 @ 111,
        /// Optional Admin Command Support (OACS).
        oacs / set_oacs: u16 @ 256,
        /// Abort Command Limit (ACL), 0's based.
        acl / set_acl: u8 @ 258,
        /// Asynchronous Event Request Limit (AERL), 0's based.
        aerl / set_aerl: u8 @ 259,
        /// Firmware Updates (FRMW): bits 3:1 slots, bit 0 slot 1 is read-only.
        frmw / set_frmw: u8 @ 260,
        /// Log Page Attributes (LPA): bit 1 effects, bit 2 extended data, bit 5 supported logs.
        lpa / set_lpa: u8 @ 261,
        /// Error Log Page Entries (ELPE), 0's based.
        elpe / set_elpe: u8 @ 262,
        /// Number of Power States Support (NPSS), 0's based.
        npss / set_npss: u8 @ 263,
        /// Warning Composite Temperature Threshold (WCTEMP) in kelvin.
        wctemp / set_wctemp: u16 @ 266,
        /// Critical Composite Temperature Threshold (CCTEMP) in kelvin.
        cctemp / set_cctemp: u16 @ 268,
        /// Keep Alive Support (KAS): granularity in 100 ms, 0 is none.
        kas / set_kas: u16 @ 320,
        /// Submission Queue Entry Size (SQES): required 3:0 and maximum 7:4, 2^n.
        sqes / set_sqes: u8 @ 512,
        /// Completion Queue Entry Size (CQES): required 3:0 and maximum 7:4, 2^n.
        cqes / set_cqes: u8 @ 513,
        /// Maximum Outstanding Commands (MAXCMD) per I/O queue.
        maxcmd / set_maxcmd: u16 @ 514,
        /// Number of Namespaces (NN): largest valid namespace id.
        nn / set_nn: u32 @ 516,
        /// Optional NVM Command Support (ONCS).
        oncs / set_oncs: u16 @ 520,
        /// Fused Operation Support (FUSES): bit 0 Compare and Write.
        fuses / set_fuses: u16 @ 522,
        /// Volatile Write Cache (VWC): bit 0 present, bits 2:1 flush with NSID FFFFFFFFh.
        vwc / set_vwc: u8 @ 525,
        /// Atomic Write Unit Normal (AWUN) in blocks, 0's based.
        awun / set_awun: u16 @ 526,
        /// Atomic Write Unit Power Fail (AWUPF) in blocks, 0's based.
        awupf / set_awupf: u16 @ 528,
        /// I/O Command Set Vendor Specific Command Configuration (ICSVSCC): bit 0, vendor specific
        /// I/O commands have their length in dword 10 (NDT).
        icsvscc / set_icsvscc: u8 @ 530,
        /// Namespace Write Protection Capabilities (NWPC): bit 0 protect, bit 1 until power cycle.
        nwpc / set_nwpc: u8 @ 531,
        /// Atomic Compare and Write Unit (ACWU) in blocks, 0's based.
        acwu / set_acwu: u16 @ 532,
        /// Copy Descriptor Formats Supported (OCFS): bit 0 format 0, bit 4 format 4h.
        ocfs / set_ocfs: u16 @ 534,
        /// SGL Support (SGLS).
        sgls / set_sgls: u32 @ 536,
        /// Maximum Number of Allowed Namespaces (MNAN).
        mnan / set_mnan: u32 @ 540,
        /// NVM Subsystem NVMe Qualified Name (SUBNQN), zero-padded.
        subnqn / set_subnqn: [256] @ 768,
        /// I/O Queue Command Capsule Supported Size (IOCCSZ) in 16 bytes.
        ioccsz / set_ioccsz: u32 @ 1792,
        /// I/O Queue Response Capsule Supported Size (IORCSZ) in 16 bytes.
        iorcsz / set_iorcsz: u32 @ 1796,
        /// In Capsule Data Offset (ICDOFF) in 16 bytes.
        icdoff / set_icdoff: u16 @ 1800,
        /// Fabrics Controller Attributes (FCATT): bit 0 static model.
        fcatt / set_fcatt: u8 @ 1802,
        /// Maximum SGL Data Block Descriptors (MSDBD).
        msdbd / set_msdbd: u8 @ 1803,
        /// Optional Fabric Commands Support (OFCS).
        ofcs / set_ofcs: u16 @ 1804,
        /// Vendor specific: number of the drive's life. Each start draws another one.
        life / set_life: u64 @ 3072,
    }
}

/// OAES and feature 0Bh bit: namespace attribute changed.
pub const EVENT_NAMESPACE_ATTRIBUTE: u32 = 1 << 8;

bits! {
    /// SGL Support (SGLS).
    pub struct SglSupport: u32 {
        /// SGLs: 01b supported, 10b with dword alignment.
        supported / with_supported: 0..=1,
        /// An address that is an offset into the capsule.
        offset / with_offset: 20..=20,
        /// Transport SGL Data Block.
        transport / with_transport: 21..=21,
    }
}

layout! {
    /// Identify Namespace data of the NVM command set (CNS 00h).
    pub struct IdentifyNamespace[4096] {
        /// Namespace Size (NSZE) in blocks.
        nsze / set_nsze: u64 @ 0,
        /// Namespace Capacity (NCAP) in blocks.
        ncap / set_ncap: u64 @ 8,
        /// Namespace Utilization (NUSE) in blocks.
        nuse / set_nuse: u64 @ 16,
        /// Namespace Features (NSFEAT).
        nsfeat / set_nsfeat: u8 @ 24,
        /// Number of LBA Formats (NLBAF), 0's based.
        nlbaf / set_nlbaf: u8 @ 25,
        /// Formatted LBA Size (FLBAS), index of the format in use.
        flbas / set_flbas: u8 @ 26,
        /// Namespace Multi-path I/O and Sharing (NMIC): bit 0 shared.
        nmic / set_nmic: u8 @ 30,
        /// Deallocate Logical Block Features (DLFEAT): bits 2:0 what is read after, 001b zeros; bit
        /// 3 the Deallocate bit of Write Zeroes.
        dlfeat / set_dlfeat: u8 @ 33,
        /// Namespace Optimal I/O Boundary (NOIOB) in blocks.
        noiob / set_noiob: u16 @ 46,
        /// Namespace Preferred Write Granularity (NPWG) in blocks, 0's based.
        npwg / set_npwg: u16 @ 64,
        /// Namespace Preferred Write Alignment (NPWA) in blocks, 0's based.
        npwa / set_npwa: u16 @ 66,
        /// Namespace Preferred Deallocate Granularity (NPDG) in blocks, 0's based.
        npdg / set_npdg: u16 @ 68,
        /// Namespace Preferred Deallocate Alignment (NPDA) in blocks, 0's based.
        npda / set_npda: u16 @ 70,
        /// Namespace Optimal Write Size (NOWS) in blocks, 0's based.
        nows / set_nows: u16 @ 72,
        /// Maximum Single Source Range Length (MSSRL) of Copy in blocks.
        mssrl / set_mssrl: u16 @ 74,
        /// Maximum Copy Length (MCL) in blocks.
        mcl / set_mcl: u32 @ 76,
        /// Maximum Source Range Count (MSRC), 0's based.
        msrc / set_msrc: u8 @ 80,
        /// Namespace Attributes (NSATTR): bit 0 write protected.
        nsattr / set_nsattr: u8 @ 99,
        /// Namespace Globally Unique Identifier (NGUID).
        nguid / set_nguid: [16] @ 104,
        /// IEEE Extended Unique Identifier (EUI64).
        eui64 / set_eui64: [8] @ 120,
        /// LBA Format 0 (LBAF0).
        lbaf0 / set_lbaf0: u32 @ 128,
    }
}

bits! {
    /// LBA Format descriptor.
    pub struct LbaFormat: u32 {
        /// Metadata Size (MS) in bytes.
        ms / with_ms: 0..=15,
        /// LBA Data Size (LBADS), 2^n bytes.
        lbads / with_lbads: 16..=23,
        /// Relative Performance (RP).
        rp / with_rp: 24..=25,
    }
}

impl IdentifyNamespace {
    /// Returns the format that the namespace has: the one that FLBAS names by bits 3:0 and, where
    /// there are more than 16, by bits 6:5 above them (NVM Command Set, FLBAS).
    pub fn format(&self) -> LbaFormat {
        let flbas = usize::from(self.flbas());
        let upper = if self.nlbaf() >= 16 { flbas >> 5 & 3 } else { 0 };
        let index = upper << 4 | flbas & 0xF;
        LbaFormat(u32::from_le_bytes(crate::wire::take(&self.bytes, LBAF_OFFSET + 4 * index)))
    }
}

/// Byte of the first LBA Format.
const LBAF_OFFSET: usize = 128;

layout! {
    /// Command set independent Identify Namespace data (CNS 08h).
    pub struct IdentifyNamespaceIndependent[4096] {
        /// Common Namespace Features (NSFEAT): bit 5 volatile write cache not present.
        nsfeat / set_nsfeat: u8 @ 0,
        /// Namespace Multi-path I/O and Sharing (NMIC): bit 0 shared.
        nmic / set_nmic: u8 @ 1,
        /// Namespace Attributes (NSATTR): bit 0 write protected.
        nsattr / set_nsattr: u8 @ 8,
        /// Namespace Status (NSTAT): bit 0 ready.
        nstat / set_nstat: u8 @ 14,
    }
}

layout! {
    /// Identify Controller data of the NVM command set (CNS 06h, CSI 00h).
    pub struct IdentifyNvmController[4096] {
        /// Verify Size Limit (VSL), 2^n pages of CAP.MPSMIN.
        vsl / set_vsl: u8 @ 0,
        /// Write Zeroes Size Limit (WZSL), 2^n pages of CAP.MPSMIN.
        wzsl / set_wzsl: u8 @ 1,
        /// Dataset Management Ranges Limit (DMRL), 0 is 256.
        dmrl / set_dmrl: u8 @ 3,
    }
}

layout! {
    /// Identify Namespace data of the Key Value command set (CNS 05h, CSI 01h).
    pub struct IdentifyKvNamespace[4096] {
        /// Namespace Size (NSZE) in bytes.
        nsze / set_nsze: u64 @ 0,
        /// Namespace Utilization (NUSE) in bytes.
        nuse / set_nuse: u64 @ 16,
        /// Namespace Features (NSFEAT).
        nsfeat / set_nsfeat: u8 @ 24,
        /// Number of KV Formats (NKVF), 0's based.
        nkvf / set_nkvf: u8 @ 25,
        /// Namespace Multi-path I/O and Sharing (NMIC): bit 0 shared.
        nmic / set_nmic: u8 @ 26,
        /// KV Format Capability in use (KVFC), bits 3:0 index.
        kvfc / set_kvfc: u8 @ 29,
        /// Namespace Optimal Value Granularity (NOVG) in bytes.
        novg / set_novg: u32 @ 32,
        /// Namespace Globally Unique Identifier (NGUID).
        nguid / set_nguid: [16] @ 48,
        /// IEEE Extended Unique Identifier (EUI64).
        eui64 / set_eui64: [8] @ 64,
        /// KV Format 0: Maximum Key Length (KVKML) in bytes.
        kvkml / set_kvkml: u16 @ 72,
        /// KV Format 0: Additional Format Options (AFO).
        afo / set_afo: u8 @ 75,
        /// KV Format 0: Maximum Value Length (KVVML) in bytes.
        kvvml / set_kvvml: u32 @ 76,
        /// KV Format 0: Maximum Number of Keys (MNKS), 0 is no limit.
        mnks / set_mnks: u32 @ 80,
    }
}

layout! {
    /// Identify Controller data of the Key Value command set (CNS 06h, CSI 01h).
    pub struct IdentifyKvController[4096] {
        /// Version of the command set (VER).
        ver / set_ver: u32 @ 0,
    }
}

/// Version of the Key Value command set that we follow: 1.3.
pub const KV_VERSION: u32 = 0x0001_0300;

layout! {
    /// Identify Namespace data of Subsystem Local Memory (CNS 05h, CSI 03h). Provisional: no source
    /// of ours has its layout, so it begins as that of every other command set does.
    pub struct IdentifyMemoryNamespace[4096] {
        /// Namespace Size (NSZE) in bytes.
        nsze / set_nsze: u64 @ 0,
        /// Namespace Utilization (NUSE) in bytes.
        nuse / set_nuse: u64 @ 16,
    }
}

layout! {
    /// Identify Namespace data of Computational Programs (CNS 05h, CSI 04h).
    pub struct IdentifyComputeNamespace[4096] {
        /// Maximum activated programs (MAXACT).
        maxact / set_maxact: u16 @ 0,
        /// Maximum memory range sets (MAXMEMRS).
        maxmemrs / set_maxmemrs: u16 @ 2,
        /// Memory range set granularity (MRSG), 2^n bytes.
        mrsg / set_mrsg: u16 @ 4,
        /// Maximum memory ranges in a set (MAXMEMR).
        maxmemr / set_maxmemr: u8 @ 6,
        /// Maximum program bytes (MAXPB) in MiB.
        maxpb / set_maxpb: u64 @ 8,
        /// Load program granularity (LPG), 2^n bytes.
        lpg / set_lpg: u8 @ 16,
    }
}

/// Returns a controller list: at most 2,047 ids.
pub fn controller_list(ids: &[u16]) -> Vec<u8> {
    let ids = &ids[..ids.len().min(IDENTIFY_BYTES / 2 - 1)];
    let count = u16::try_from(ids.len()).expect("at most 2,047");
    let mut data = count.to_le_bytes().to_vec();
    ids.iter().for_each(|id| data.extend_from_slice(&id.to_le_bytes()));
    data.resize(IDENTIFY_BYTES, 0);
    data
}

/// Returns a namespace list of 1,024 ids; a short list ends at the first zero.
pub fn namespace_list(ids: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut data: Vec<u8> = ids.take(IDENTIFY_BYTES / 4).flat_map(u32::to_le_bytes).collect();
    data.resize(IDENTIFY_BYTES, 0);
    data
}

/// Returns the ids of a namespace list.
pub fn parse_namespace_list(data: &[u8]) -> Vec<u32> {
    let ids = data.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id));
    ids.take_while(|id| *id != 0).collect()
}

#[cfg(test)]
mod tests;
