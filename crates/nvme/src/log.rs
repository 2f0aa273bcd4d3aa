//! Log pages: Get Log Page, SMART, firmware slot, commands supported and effects.
//!
//! Source: NVMe Base Specification, "Get Log Page command". The drive supplies the counters.

use crate::capsule::Sqe;
use crate::opcode::{Admin, Csi};
use crate::wire::{bits, codes, layout};

codes! {
    /// Log Page Identifier (LID).
    pub struct LogId: u8 {
        SUPPORTED = 0x00: "Supported Log Pages",
        ERROR = 0x01: "Error Information",
        SMART = 0x02: "SMART / Health Information",
        FIRMWARE_SLOT = 0x03: "Firmware Slot Information",
        CHANGED_NAMESPACES = 0x04: "Changed Namespace List",
        EFFECTS = 0x05: "Commands Supported and Effects",
        FEATURES = 0x12: "Feature Identifiers Supported and Effects",
        DISCOVERY = 0x70: "Discovery",
        PROGRAM_LIST = 0x82: "Program List",
        PROGRAM_TYPES = 0x83: "Downloadable Program Types List",
        RANGE_SETS = 0x84: "Memory Range Set List",
        EXECUTIONS = 0xC0: "vendor: Executions",
        MEDIA_ERRORS = 0xC1: "vendor: Media Errors",
        TUNNEL = 0xC2: "vendor: Tunnel",
        SERVICES = 0xC3: "vendor: Services",
        DECISIONS = 0xC4: "vendor: Decisions",
    }
}

layout! {
    /// Get Log Page command.
    pub struct GetLogPage[64] {
        /// Log Page Identifier (LID).
        lid / set_lid: u8 @ 40,
        /// Log specific parameter (bits 6:0) and Retain Asynchronous Event (RAE, bit 7).
        lsp / set_lsp: u8 @ 41,
        /// Number of Dwords, low (NUMDL), 0's based with NUMDU.
        numdl / set_numdl: u16 @ 42,
        /// Number of Dwords, high (NUMDU).
        numdu / set_numdu: u16 @ 44,
        /// Log Page Offset (LPO) in bytes.
        offset / set_offset: u64 @ 48,
        /// Command Set Identifier (CSI), CDW14 bits 31:24.
        csi / set_csi: u8 @ 59,
    }
}

/// Bit of `lsp`: Retain Asynchronous Event (RAE).
pub const LSP_RETAIN: u8 = 1 << 7;

impl GetLogPage {
    /// Returns the number of bytes asked for, already converted from 0's based dwords.
    pub fn bytes(&self) -> u64 {
        ((u64::from(self.numdu()) << 16 | u64::from(self.numdl())) + 1) * 4
    }
}

/// Returns Get Log Page: `bytes` (a multiple of 4, not 0) of log `id` from `offset` on.
#[allow(clippy::cast_possible_truncation)] // the low and the high half, on purpose
pub fn get_log_page(id: LogId, nsid: u32, csi: Csi, offset: u64, bytes: u32) -> Sqe {
    let dwords = bytes / 4 - 1;
    let mut view = GetLogPage::from_bytes(*Sqe::new(Admin::GET_LOG_PAGE.0, nsid).as_bytes());
    view.set_lid(id.0).set_numdl(dwords as u16).set_numdu((dwords >> 16) as u16);
    view.set_offset(offset).set_csi(csi.0);
    Sqe::from_bytes(*view.as_bytes())
}

layout! {
    /// SMART / Health Information log (LID 02h).
    pub struct Smart[512] {
        /// Critical Warning: bit 3 media is read-only.
        critical_warning / set_critical_warning: u8 @ 0,
        /// Composite Temperature in kelvin.
        temperature / set_temperature: u16 @ 1,
        /// Available Spare in percent.
        available_spare / set_available_spare: u8 @ 3,
        /// Available Spare Threshold in percent.
        spare_threshold / set_spare_threshold: u8 @ 4,
        /// Percentage Used.
        percentage_used / set_percentage_used: u8 @ 5,
        /// Data Units Read, thousands of 512 bytes, rounded up.
        data_units_read / set_data_units_read: u64 @ 32,
        /// Data Units Written, thousands of 512 bytes, rounded up.
        data_units_written / set_data_units_written: u64 @ 48,
        /// Host Read Commands.
        host_reads / set_host_reads: u64 @ 64,
        /// Host Write Commands.
        host_writes / set_host_writes: u64 @ 80,
        /// Controller Busy Time in minutes.
        busy_minutes / set_busy_minutes: u64 @ 96,
        /// Power Cycles.
        power_cycles / set_power_cycles: u64 @ 112,
        /// Power On Hours.
        power_on_hours / set_power_on_hours: u64 @ 128,
        /// Unsafe Shutdowns.
        unsafe_shutdowns / set_unsafe_shutdowns: u64 @ 144,
        /// Media and Data Integrity Errors.
        media_errors / set_media_errors: u64 @ 160,
        /// Number of Error Information Log Entries over the controller's life.
        error_entries / set_error_entries: u64 @ 176,
    }
}

/// Critical warning: a temperature is beyond a threshold.
pub const WARNING_TEMPERATURE: u8 = 1 << 1;
/// Critical warning: the media is read-only.
pub const WARNING_READ_ONLY: u8 = 1 << 3;

layout! {
    /// One entry of the Error Information log (LID 01h).
    pub struct ErrorEntry[64] {
        /// Error Count: number of this error, from 1; 0 is no entry.
        count / set_count: u64 @ 0,
        /// Submission Queue ID.
        sqid / set_sqid: u16 @ 8,
        /// Command ID.
        cid / set_cid: u16 @ 10,
        /// Status Field as in a completion's last two bytes.
        status_field / set_status_field: u16 @ 12,
        /// Parameter Error Location; FFFFh if not reported.
        location / set_location: u16 @ 14,
        /// First LBA of the command; 0 for commands that have none.
        lba / set_lba: u64 @ 16,
        /// Namespace.
        nsid / set_nsid: u32 @ 24,
        /// Transport Type: 3 is TCP. All behind it is reserved in version 2.0, which Identify
        /// announces: command set, opcode and the version of the page came later.
        trtype / set_trtype: u8 @ 29,
    }
}

layout! {
    /// Firmware Slot Information log (LID 03h).
    pub struct FirmwareSlot[512] {
        /// Active Firmware Info (AFI): bits 2:0 active slot.
        afi / set_afi: u8 @ 0,
        /// Firmware Revision for Slot 1 (FRS1).
        frs1 / set_frs1: [8] @ 8,
    }
}

bits! {
    /// One entry of the Commands Supported and Effects log (LID 05h).
    pub struct Effects: u32 {
        /// Command Supported (CSUPP).
        supported / with_supported: 0..=0,
        /// Logical Block Content Change (LBCC).
        content_change / with_content_change: 1..=1,
        /// Namespace Capability Change (NCC).
        capability_change / with_capability_change: 2..=2,
    }
}

/// Bytes of the effects log: 256 admin entries, 256 I/O entries, reserved.
pub const EFFECTS_BYTES: usize = 4096;

/// Returns the effects log from the opcodes that are supported; `true` marks a content change.
pub fn effects(admin: &[u8], io: &[(u8, bool)]) -> Vec<u8> {
    let mut data = vec![0; EFFECTS_BYTES];
    let mut put = |slot: usize, changes: bool| {
        let entry = Effects::default().with_supported(1).with_content_change(u32::from(changes));
        data[slot * 4..slot * 4 + 4].copy_from_slice(&entry.0.to_le_bytes());
    };
    admin.iter().for_each(|opcode| put(usize::from(*opcode), false));
    io.iter().for_each(|(opcode, changes)| put(256 + usize::from(*opcode), *changes));
    data
}

bits! {
    /// One entry of the Feature Identifiers Supported and Effects log (LID 12h).
    pub struct FeatureEffects: u32 {
        /// FID Supported (FSUPP).
        supported / with_supported: 0..=0,
        /// User Data Content Change (UDCC).
        content_change / with_content_change: 1..=1,
        /// Namespace Capability Change (NCC).
        capability_change / with_capability_change: 2..=2,
        /// FID Scope: namespace.
        of_namespace / with_of_namespace: 20..=20,
        /// FID Scope: controller.
        of_controller / with_of_controller: 21..=21,
    }
}

/// Returns the Changed Namespace List log: the ids, or the one entry FFFFFFFFh when there are too
/// many.
pub fn changed_namespaces(ids: &[u32]) -> Vec<u8> {
    let too_many = ids.len() > EFFECTS_BYTES / 4;
    let ids = if too_many { &[crate::NSID_ALL][..] } else { ids };
    let mut data: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    data.resize(EFFECTS_BYTES, 0);
    data
}

/// Returns the Supported Log Pages log: one dword per log id, bit 0 LID Supported (LSUPP).
pub fn supported(ids: &[LogId]) -> Vec<u8> {
    let mut data = vec![0; 1024];
    ids.iter().for_each(|id| data[usize::from(id.0) * 4] = 1);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dword_counts_are_converted_from_zero_based() {
        let sqe = get_log_page(LogId::SMART, crate::NSID_ALL, Csi::NVM, 64, 512);
        let view = GetLogPage::from_bytes(*sqe.as_bytes());
        assert_eq!((view.bytes(), view.offset(), view.lid()), (512, 64, 2));
        let big = get_log_page(LogId::EFFECTS, 0, Csi::KV, 0, 1 << 20);
        assert_eq!(GetLogPage::from_bytes(*big.as_bytes()).bytes(), 1 << 20);
    }

    #[test]
    fn effects_stand_at_their_opcodes() {
        let data = effects(&[0x06], &[(0x01, true), (0x02, false)]);
        assert_eq!((data[0x06 * 4], data[(256 + 1) * 4], data[(256 + 2) * 4]), (1, 3, 1));
        assert_eq!(data.iter().filter(|byte| **byte != 0).count(), 3);
    }
}
