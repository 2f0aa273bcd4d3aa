//! Sizes that a drive announces to its hosts, and holds them to.

use csd_nvme::tcp::Digests;
use csd_nvme::tcp::controller::Limits;

/// Maximum Data Transfer Size (MDTS) of a drive without an option for it: 2^12 pages of 4 KiB are
/// 16 MiB, the longest value.
pub const MDTS: u8 = 12;

/// Least MDTS: 2^5 pages are 128 KiB. Lists of ranges and pages of logs are shorter.
pub const MDTS_MIN: u8 = 5;

/// Most bytes of one H2CData PDU (MAXH2CDATA), and of one piece of the data of a C2HData PDU.
pub const PIECE_BYTES_MAX: u32 = 128 << 10;

/// Most bytes of in-capsule data (IOCCSZ).
pub const IN_CAPSULE_BYTES_MAX: u32 = 8 << 10;

/// Limits of every connection's transport.
pub const TRANSPORT: Limits = Limits {
    h2c_data_bytes_max: PIECE_BYTES_MAX,
    in_capsule_bytes_max: IN_CAPSULE_BYTES_MAX,
    digests: Digests { header: true, data: true },
};
