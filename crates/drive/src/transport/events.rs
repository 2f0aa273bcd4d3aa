//! Asynchronous events: an event completes one held request, or none.

use csd_nvme::controller::Event;

use super::link::Link;
use super::session::Session;

impl Link {
    /// Reports an event to the host, if this is an admin queue that holds a request for it. The
    /// controller `except`, which caused the event, is left out.
    pub fn raise(&self, event: Event, except: Option<u16>) {
        if let Session::Admin(admin) = &mut *self.session.borrow_mut()
            && except != Some(admin.cntlid())
        {
            admin.raise(event);
        }
        self.report_event();
    }

    /// Completes the request held for an event, if this is an admin queue and there are both.
    pub fn report_event(&self) {
        let completed = match &mut *self.session.borrow_mut() {
            Session::Admin(admin) => admin.next_event(),
            _ => None,
        };
        if let Some(cqe) = completed {
            self.respond(&cqe);
        }
    }
}
