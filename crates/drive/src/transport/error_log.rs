//! What a connection's controller is told beside its commands: errors, for its log, and events.
//!
//! Never: an answer. Invariant: an event completes one held request, or none.

use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::controller::Event;
use csd_nvme::controller::queue::Permit;
use csd_nvme::log::ErrorEntry;
use csd_nvme::nvm;
use csd_nvme::status::Status;

use super::link::Link;
use super::session::Session;
use crate::namespace::NSID_BLOCK;

impl Link {
    /// Notes a failed command in its controller's error log. What a host may expect (a key that is
    /// not there, data that differs) is no error of anyone's.
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

    /// Tells the host of an event, if this is an admin queue with a request held for it.
    pub fn raise(&self, event: Event, except: Option<u16>) {
        if let Session::Admin(admin) = &mut *self.session.borrow_mut()
            && except != Some(admin.cntlid())
        {
            admin.raise(event);
        }
        self.tell_event();
    }

    /// Completes the request held for an event, if this is an admin queue and there are both.
    pub fn tell_event(&self) {
        let completed = match &mut *self.session.borrow_mut() {
            Session::Admin(admin) => admin.next_event(),
            _ => None,
        };
        if let Some(cqe) = completed {
            self.respond(&cqe);
        }
    }
}
