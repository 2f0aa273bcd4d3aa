//! [`Ending`]: ends a connection's session, also when its commands run on without their host.

use std::rc::Rc;

use super::super::cause::Cause;
use super::super::connections;
use super::super::link::Link;
use super::super::session::Session;
use crate::drive::Core;
use crate::log::Level;

/// A guard that ends a connection's session when the connection's loop ends, however it ends.
pub(super) struct Ending {
    pub(super) link: Rc<Link>,
    pub(super) core: Rc<Core>,
    // Why the connection ended; the drive stops if nothing else is said.
    pub(super) cause: Cause,
}

impl Ending {
    /// Notes that the connection is over. The session of an I/O queue stays until its running
    /// commands have ended: true when there may be some.
    pub(super) fn disconnect(&self) -> bool {
        self.core.shared.causes.count(self.cause);
        self.link.queue().close();
        self.link.disconnect();
        if let Session::Io { association, qid, connection } = &*self.link.session.borrow()
            && association.part(*qid, *connection)
        {
            self.core.shared.executions.abort_all(association.cntlid, *qid);
            return true;
        }
        self.end();
        false
    }

    /// Logs that commands run for long after their connection is over.
    pub(super) fn log_slow(&self, commands: usize) {
        let session = self.link.session.borrow();
        let host = session.association().map_or("", |association| association.host_nqn());
        let fields = [("host", host.to_owned()), ("commands", commands.to_string())];
        let event = "commands of a lost connection go on: the medium is slow";
        self.core.shared.log().write_rated(Level::Warn, event, &fields);
    }

    fn end(&self) {
        self.core.connections.remove(self.link.number);
        // Held requests go with the session, after the queue was closed.
        let mut session = self.link.session.replace(Session::Unconnected);
        session.log_event(self.core.shared.log(), Level::Info, "queue closed", Some(self.cause));
        for (core, number) in session.end(&self.core.shared.controllers) {
            connections::end(core, number, Cause::AdminQueueEnded);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.link.queue().close();
        self.end();
    }
}
