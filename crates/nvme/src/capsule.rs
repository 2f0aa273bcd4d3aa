//! Submission and completion queue entries, and the data descriptor of a command.
//!
//! Source: NVMe Base Specification, "Submission Queue Entry" and "Completion Queue Entry"; NVMe/TCP
//! Transport Specification for SGL types. The meaning of opcodes is in the modules of the command
//! sets. Invariant: every command's own view is 64 bytes and keeps the bytes of the entry it was
//! made from.

use crate::status::Status;
use crate::wire::{bits, layout};

layout! {
    /// Submission Queue Entry (SQE): a command.
    pub struct Sqe[64] {
        /// Opcode (OPC).
        opcode / set_opcode: u8 @ 0,
        /// Fused operation (bits 1:0) and PRP or SGL for Data Transfer (PSDT, bits 7:6).
        flags / set_flags: u8 @ 1,
        /// Command Identifier (CID).
        cid / set_cid: u16 @ 2,
        /// Namespace Identifier (NSID).
        nsid / set_nsid: u32 @ 4,
        /// Command Dword 2.
        cdw2 / set_cdw2: u32 @ 8,
        /// Command Dword 3.
        cdw3 / set_cdw3: u32 @ 12,
        /// Metadata Pointer (MPTR).
        mptr / set_mptr: u64 @ 16,
        /// Data Pointer (DPTR), one SGL descriptor on fabrics.
        dptr / set_dptr: [16] @ 24,
        /// Command Dword 10.
        cdw10 / set_cdw10: u32 @ 40,
        /// Command Dword 11.
        cdw11 / set_cdw11: u32 @ 44,
        /// Command Dword 12.
        cdw12 / set_cdw12: u32 @ 48,
        /// Command Dword 13.
        cdw13 / set_cdw13: u32 @ 52,
        /// Command Dword 14.
        cdw14 / set_cdw14: u32 @ 56,
        /// Command Dword 15.
        cdw15 / set_cdw15: u32 @ 60,
    }
}

/// `flags` of a command on fabrics: PSDT 01b, the data pointer is an SGL.
pub const FLAGS_SGL: u8 = 0x40;
/// Mask of the fused-operation bits in `flags`.
pub const FLAGS_FUSED: u8 = 0x03;

impl Sqe {
    /// Returns a command with this opcode for this namespace and no data.
    pub fn new(opcode: u8, nsid: u32) -> Self {
        let mut sqe = Self::zeroed();
        sqe.set_opcode(opcode).set_flags(FLAGS_SGL).set_nsid(nsid);
        sqe
    }

    /// Returns the data descriptor.
    pub fn sgl(&self) -> Sgl {
        Sgl::from_bytes(self.dptr())
    }

    /// Replaces the data descriptor.
    pub fn set_sgl(&mut self, sgl: Sgl) -> &mut Self {
        self.set_dptr(sgl.as_bytes())
    }
}

layout! {
    /// Scatter Gather List descriptor (SGL), 16 bytes.
    pub struct Sgl[16] {
        /// Address, or offset within the capsule.
        address / set_address: u64 @ 0,
        /// Length in bytes.
        length / set_length: u32 @ 8,
        /// Descriptor type (bits 7:4) and sub type (bits 3:0).
        kind / set_kind: u8 @ 15,
    }
}

/// SGL Data Block with an offset into the capsule: in-capsule data.
pub const SGL_IN_CAPSULE: u8 = 0x01;
/// Transport SGL Data Block: data moved by H2CData and C2HData PDUs.
pub const SGL_TRANSPORT: u8 = 0x5A;

impl Sgl {
    /// Returns a descriptor of `length` bytes inside the capsule.
    pub fn in_capsule(length: u32) -> Self {
        let mut sgl = Self::zeroed();
        sgl.set_length(length).set_kind(SGL_IN_CAPSULE);
        sgl
    }

    /// Returns a descriptor of `length` bytes moved by the transport.
    pub fn transport(length: u32) -> Self {
        let mut sgl = Self::zeroed();
        sgl.set_length(length).set_kind(SGL_TRANSPORT);
        sgl
    }
}

layout! {
    /// Completion Queue Entry (CQE): a response.
    pub struct Cqe[16] {
        /// Command-specific result, dword 0.
        dw0 / set_dw0: u32 @ 0,
        /// Command-specific result, dword 1.
        dw1 / set_dw1: u32 @ 4,
        /// Submission Queue Head Pointer (SQHD).
        sqhd / set_sqhd: u16 @ 8,
        /// Submission Queue Identifier (SQID).
        sqid / set_sqid: u16 @ 10,
        /// Command Identifier (CID).
        cid / set_cid: u16 @ 12,
        /// Phase tag and status field.
        status_field / set_status_field: u16 @ 14,
    }
}

bits! {
    /// The last two bytes of a completion: phase tag and status.
    pub struct StatusField: u16 {
        /// Phase tag, unused on fabrics.
        phase / with_phase: 0..=0,
        /// Status Code (SC).
        sc / with_sc: 1..=8,
        /// Status Code Type (SCT).
        sct / with_sct: 9..=11,
        /// Command Retry Delay (CRD).
        crd / with_crd: 12..=13,
        /// More information in the error log (M).
        more / with_more: 14..=14,
        /// Do Not Retry (DNR).
        dnr / with_dnr: 15..=15,
    }
}

impl Cqe {
    /// Returns the status of the completion.
    pub fn status(&self) -> Status {
        let field = StatusField(self.status_field());
        Status::new(field.sct() & 7, field.sc())
    }

    /// Returns true if a retry of the same command would fail again (DNR).
    pub fn do_not_retry(&self) -> bool {
        StatusField(self.status_field()).dnr() == 1
    }

    /// Sets the status. Errors of this controller are final, so it also sets Do Not Retry unless
    /// the status itself asks for a retry.
    pub fn set_status(&mut self, status: Status) -> &mut Self {
        let field = StatusField::default()
            .with_sc(status.sc())
            .with_sct(status.sct())
            .with_dnr(u16::from(!status.is_success() && !status.retryable()));
        self.set_status_field(field.0)
    }

    /// Returns result dwords 0 and 1 as one number, dword 0 low.
    pub fn result(&self) -> u64 {
        u64::from(self.dw0()) | u64::from(self.dw1()) << 32
    }

    /// Sets result dwords 0 and 1 from one number, dword 0 low.
    #[allow(clippy::cast_possible_truncation)] // the low and the high half, on purpose
    pub fn set_result(&mut self, result: u64) -> &mut Self {
        self.set_dw0(result as u32).set_dw1((result >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_carries_status_and_result() {
        let mut cqe = Cqe::zeroed();
        cqe.set_cid(7).set_status(Status::LBA_OUT_OF_RANGE).set_result(0x1_0000_0002);
        assert_eq!(cqe.status(), Status::LBA_OUT_OF_RANGE);
        assert_eq!((cqe.dw0(), cqe.dw1(), cqe.result()), (2, 1, 0x1_0000_0002));
        assert!(cqe.do_not_retry());
        assert_eq!(cqe.as_bytes()[14..16], [0x00, 0x81]); // SC 80h << 1 = 100h, DNR bit 15
    }

    #[test]
    fn descriptors_have_the_types_of_fabrics() {
        assert_eq!(Sgl::in_capsule(512).as_bytes()[15], 0x01);
        assert_eq!(Sgl::transport(4096).as_bytes()[8..12], [0, 16, 0, 0]);
        assert_eq!(Sgl::transport(4096).as_bytes()[15], 0x5A);
    }
}
