//! Entries of a controller's error log (log page 01h).

use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::controller::queue::Permit;
use csd_nvme::log::ErrorEntry;
use csd_nvme::nvm;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_BLOCK;

use super::link::Link;

impl Link {
    /// Notes a failed command in its controller's error log. Answers that a host may expect (a key
    /// that does not exist, data that differs) are not errors.
    pub fn note_error(&self, permit: &Permit, sqe: &Sqe, status: Status) {
        let expected = matches!(
            status,
            Status::KEY_DOES_NOT_EXIST
                | Status::KEY_EXISTS
                | Status::COMPARE_FAILURE
                | Status::ABORTED_FAILED_FUSED
        );
        let session = self.session.borrow();
        let Some(association) = session.association().filter(|_| !expected) else { return };
        let mut entry = ErrorEntry::zeroed();
        let mut cqe = Cqe::zeroed();
        cqe.set_status(status);
        entry.set_sqid(permit.queue().qid()).set_cid(permit.cid()).set_location(0xFFFF);
        entry.set_status_field(cqe.status_field()).set_nsid(sqe.nsid()).set_trtype(3);
        if permit.queue().qid() != 0
            && sqe.nsid() == NSID_BLOCK
            && nvm::Command::has_lba(sqe.opcode())
        {
            entry.set_lba(u64::from(sqe.cdw10()) | u64::from(sqe.cdw11()) << 32);
        }
        association.note_error(entry);
    }
}
