//! Controller properties: capabilities, configuration, status, version.
//!
//! Source: NVM Express Base Specification 2.2, "Controller Properties".

use crate::wire::bits;

/// Offset of Controller Capabilities (CAP), 8 bytes.
pub const CAP: u32 = 0x00;
/// Offset of Version (VS), 4 bytes.
pub const VS: u32 = 0x08;
/// Offset of Controller Configuration (CC), 4 bytes.
pub const CC: u32 = 0x14;
/// Offset of Controller Status (CSTS), 4 bytes.
pub const CSTS: u32 = 0x1C;
/// Offset of NVM Subsystem Reset (NSSR), 4 bytes.
pub const NSSR: u32 = 0x20;
/// Offset of Controller Ready Timeouts (CRTO), 4 bytes.
pub const CRTO: u32 = 0x68;

/// Version that our controllers report: 2.0.0.
pub const VERSION: u32 = 0x0002_0000;

bits! {
    /// Controller Capabilities (CAP).
    pub struct Capabilities: u64 {
        /// Maximum Queue Entries Supported (MQES), 0's based.
        mqes / with_mqes: 0..=15,
        /// Contiguous Queues Required (CQR).
        cqr / with_cqr: 16..=16,
        /// Timeout (TO) in units of 500 ms.
        timeout / with_timeout: 24..=31,
        /// Command Sets Supported: NVM (CSS bit 37).
        nvm / with_nvm: 37..=37,
        /// Command Sets Supported: one or more I/O command sets (CSS bit 43).
        io_sets / with_io_sets: 43..=43,
        /// Memory Page Size Minimum (MPSMIN), 2^(12+n) bytes.
        mpsmin / with_mpsmin: 48..=51,
        /// Memory Page Size Maximum (MPSMAX), 2^(12+n) bytes.
        mpsmax / with_mpsmax: 52..=55,
    }
}

bits! {
    /// Controller Configuration (CC).
    pub struct Configuration: u32 {
        /// Enable (EN).
        enable / with_enable: 0..=0,
        /// I/O Command Set Selected (CSS): 000b NVM, 110b all supported, 111b admin only.
        css / with_css: 4..=6,
        /// Memory Page Size (MPS), 2^(12+n) bytes.
        mps / with_mps: 7..=10,
        /// Shutdown Notification (SHN): 01b normal, 10b abrupt.
        shn / with_shn: 14..=15,
        /// I/O Submission Queue Entry Size (IOSQES), 2^n bytes.
        iosqes / with_iosqes: 16..=19,
        /// I/O Completion Queue Entry Size (IOCQES), 2^n bytes.
        iocqes / with_iocqes: 20..=23,
    }
}

/// CC.CSS: NVM command set.
pub const CSS_NVM: u32 = 0b000;
/// CC.CSS: all supported I/O command sets.
pub const CSS_ALL: u32 = 0b110;
/// CC.CSS: admin command set only.
pub const CSS_ADMIN_ONLY: u32 = 0b111;

bits! {
    /// Controller Status (CSTS).
    pub struct ControllerStatus: u32 {
        /// Ready (RDY).
        ready / with_ready: 0..=0,
        /// Controller Fatal Status (CFS).
        fatal / with_fatal: 1..=1,
        /// Shutdown Status (SHST): 00b none, 01b occurring, 10b complete.
        shst / with_shst: 2..=3,
    }
}

/// CSTS.SHST: shutdown is under way.
pub const SHUTDOWN_OCCURRING: u32 = 0b01;
/// CSTS.SHST: shutdown is complete.
pub const SHUTDOWN_COMPLETE: u32 = 0b10;
