//! Layouts and numbers of the kernel's ublk driver (`linux/ublk_cmd.h` of Linux 6.12).
//!
//! The kernel reads and writes these values in the machine's own byte order, so they are plain
//! structures here. Invariant: every layout has the size that the header gives it.

use std::mem::{offset_of, size_of};

/// Sectors of the block layer are counted in this unit, whatever the size of a block.
pub(super) const SECTOR_BYTES: u32 = 512;

/// State of a device without a block device: not started yet, or stopped.
pub(super) const STATE_DEAD: u16 = 0;
/// Process id of a device that was stopped.
pub(super) const PID_STOPPED: i32 = -1;

/// Data of requests is copied by reading and writing the character device (Linux 6.5).
pub(super) const FEATURE_USER_COPY: u64 = 1 << 7;

pub(super) const PARAMS_BASIC: u32 = 1;
pub(super) const PARAMS_DISCARD: u32 = 1 << 1;
pub(super) const ATTRIBUTE_VOLATILE_CACHE: u32 = 1 << 2;
pub(super) const ATTRIBUTE_FUA: u32 = 1 << 3;

pub(super) const OP_READ: u32 = 0;
pub(super) const OP_WRITE: u32 = 1;
pub(super) const OP_FLUSH: u32 = 2;
pub(super) const OP_DISCARD: u32 = 3;
pub(super) const OP_WRITE_ZEROES: u32 = 5;
/// Bits of a descriptor's word that hold the operation.
pub(super) const OP_MASK: u32 = 0xFF;
pub(super) const FLAG_FUA: u32 = 1 << 13;
pub(super) const FLAG_NO_UNMAP: u32 = 1 << 15;

/// Returns the position in the character device of the data of the request with this tag, of the
/// first queue.
pub(super) fn data_position(tag: u16) -> u64 {
    0x8000_0000 + (u64::from(tag) << 25)
}

/// Commands, encoded as the numbers of ioctls are: direction, size, type `u`, number.
const fn code(direction: u32, number: u32, bytes: usize) -> u32 {
    assert!(bytes < 1 << 14, "the field of the size has 14 bits");
    #[expect(clippy::cast_possible_truncation, reason = "asserted above")]
    let bytes = bytes as u32;
    direction << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

const READS: u32 = 2;
const READS_AND_WRITES: u32 = 3;
pub(super) const GET_DEV_INFO: u32 = code(READS, 0x02, size_of::<Control>());
pub(super) const ADD_DEV: u32 = code(READS_AND_WRITES, 0x04, size_of::<Control>());
pub(super) const DEL_DEV: u32 = code(READS_AND_WRITES, 0x05, size_of::<Control>());
pub(super) const START_DEV: u32 = code(READS_AND_WRITES, 0x06, size_of::<Control>());
pub(super) const STOP_DEV: u32 = code(READS_AND_WRITES, 0x07, size_of::<Control>());
pub(super) const SET_PARAMS: u32 = code(READS_AND_WRITES, 0x08, size_of::<Control>());
/// Deletes without waiting until the last program has closed the block device.
pub(super) const DEL_DEV_ASYNC: u32 = code(READS, 0x14, size_of::<Control>());
pub(super) const FETCH: u32 = code(READS_AND_WRITES, 0x20, size_of::<Commit>());
pub(super) const COMMIT_AND_FETCH: u32 = code(READS_AND_WRITES, 0x21, size_of::<Commit>());

/// `struct ublksrv_ctrl_cmd`: a command to `/dev/ublk-control`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Control {
    pub(super) dev_id: u32,
    /// -1: no command here concerns a queue.
    pub(super) queue_id: u16,
    pub(super) len: u16,
    pub(super) addr: u64,
    pub(super) data: u64,
    pub(super) dev_path_len: u16,
    pub(super) pad: u16,
    pub(super) reserved: u32,
}
const _: () = assert!(size_of::<Control>() == 32);

/// `struct ublksrv_ctrl_dev_info`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct DevInfo {
    pub(super) queues: u16,
    pub(super) queue_depth: u16,
    pub(super) state: u16,
    pub(super) pad0: u16,
    pub(super) io_bytes_max: u32,
    pub(super) dev_id: u32,
    pub(super) pid: i32,
    pub(super) pad1: u32,
    pub(super) flags: u64,
    /// Kept by the kernel, and not looked at.
    pub(super) label: u64,
    pub(super) owner: [u32; 2],
    pub(super) reserved: [u64; 2],
}
const _: () = assert!(size_of::<DevInfo>() == 64);

/// `struct ublk_params`, without the kinds of parameters that are not used.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Params {
    pub(super) len: u32,
    pub(super) types: u32,
    pub(super) basic: Basic,
    pub(super) discard: Discard,
}
/// Length of [`Params`] without the padding at its end, where other kinds would follow.
pub(super) const PARAMS_BYTES: usize = offset_of!(Params, discard) + size_of::<Discard>();
const _: () = assert!(PARAMS_BYTES == 60);

/// `struct ublk_param_basic`; sizes of blocks are powers of two, by their exponent.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Basic {
    pub(super) attributes: u32,
    pub(super) logical_shift: u8,
    pub(super) physical_shift: u8,
    pub(super) io_opt_shift: u8,
    pub(super) io_min_shift: u8,
    pub(super) sectors_max: u32,
    pub(super) chunk_sectors: u32,
    pub(super) sectors: u64,
    pub(super) virt_boundary_mask: u64,
}
const _: () = assert!(size_of::<Basic>() == 32);

/// `struct ublk_param_discard`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Discard {
    pub(super) alignment: u32,
    pub(super) granularity: u32,
    pub(super) discard_sectors_max: u32,
    pub(super) write_zeroes_sectors_max: u32,
    pub(super) segments_max: u16,
    pub(super) reserved: u16,
}
const _: () = assert!(size_of::<Discard>() == 20);

/// `struct ublksrv_io_desc`: a request, in memory that the kernel shares.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Descriptor {
    /// Operation and flags.
    pub(super) word: u32,
    pub(super) sectors: u32,
    pub(super) start_sector: u64,
    pub(super) addr: u64,
}
const _: () = assert!(size_of::<Descriptor>() == 24);

impl Descriptor {
    /// Returns the offset of the range in bytes. A flush has no range: its sector is the highest
    /// number there is.
    pub(super) fn offset(&self) -> u64 {
        self.start_sector.saturating_mul(u64::from(SECTOR_BYTES))
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.sectors) * u64::from(SECTOR_BYTES)
    }
}

/// `struct ublksrv_io_cmd`: the outcome of a request, and the wish for the next one of its tag.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Commit {
    pub(super) queue: u16,
    pub(super) tag: u16,
    /// Bytes, or a negative error number.
    pub(super) result: i32,
    pub(super) addr: u64,
}
const _: () = assert!(size_of::<Commit>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_has_a_sector_beyond_all_bytes() {
        let flush = Descriptor { word: OP_FLUSH, sectors: 0, start_sector: u64::MAX, addr: 0 };
        assert_eq!((flush.offset(), flush.bytes()), (u64::MAX, 0));
    }

    /// The numbers that the C header gives, printed by a C program.
    #[test]
    fn commands_have_the_numbers_of_the_header() {
        assert_eq!(
            [GET_DEV_INFO, ADD_DEV, DEL_DEV, START_DEV, STOP_DEV, SET_PARAMS, DEL_DEV_ASYNC],
            [
                0x8020_7502,
                0xC020_7504,
                0xC020_7505,
                0xC020_7506,
                0xC020_7507,
                0xC020_7508,
                0x8020_7514
            ]
        );
        assert_eq!([FETCH, COMMIT_AND_FETCH], [0xC010_7520, 0xC010_7521]);
        assert_eq!(data_position(3), (1 << 31) + (3 << 25));
    }
}
