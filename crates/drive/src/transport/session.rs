//! What a connection has become: nothing yet, an admin queue, an I/O queue.
//!
//! Never: I/O commands. Invariant: a session ends with its connection, and an admin session takes
//! its controller's I/O connections with it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::auth::CONNECT_ATR;
use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::controller::admin::Answer;
use csd_nvme::controller::queue::Permit;
use csd_nvme::controller::{Controller, Event};
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin as Opcode, Fabrics};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, core_id, now};

use super::accept::end;
use super::link::{HEADROOM, Link, TAILROOM};
use super::newcomers::Connection;
use super::{PDU_DATA_BYTES_MAX, command, connect};
use crate::controller::{Association, View};
use crate::drive::Core;
use crate::error::Access;
use crate::log::Level;
use crate::namespace::compute;

/// What a connection has become.
#[derive(Debug)]
pub enum Session {
    /// Only Connect is allowed.
    Unconnected,
    /// The admin queue of a controller.
    Admin(Box<Admin>),
    /// An I/O queue.
    Io {
        /// Its controller.
        association: Arc<Association>,
        /// Its id.
        qid: u16,
        /// Its core, and the number of its connection there.
        connection: Connection,
    },
}

/// An admin queue.
#[derive(Debug)]
pub struct Admin {
    controller: Controller,
    association: Arc<Association>,
    held: Vec<Permit>,
}

impl Admin {
    /// Notes an event.
    pub fn raise(&mut self, event: Event) {
        self.controller.raise(event);
    }

    /// Id of the controller.
    pub fn cntlid(&self) -> u16 {
        self.controller.cntlid
    }

    /// Drops the held request of this identifier; false when there is none.
    fn forget(&mut self, cid: u16) -> bool {
        let held = self.controller.forget(cid);
        if held {
            self.take_held(cid).forget();
        }
        held
    }

    /// The completion of the request held for an event, if there are both.
    pub fn next_event(&mut self) -> Option<Cqe> {
        let (cid, dword) = self.controller.take_event()?;
        Some(self.take_held(cid).complete(Status::SUCCESS, u64::from(dword)))
    }

    fn take_held(&mut self, cid: u16) -> Permit {
        let at = self.held.iter().position(|permit| permit.cid() == cid);
        self.held.remove(at.expect("the controller knows what is held"))
    }
}

impl Session {
    /// The admin queue of a new controller.
    pub(super) fn admin(controller: Controller, association: Arc<Association>) -> Self {
        Self::Admin(Box::new(Admin { controller, association, held: Vec::new() }))
    }

    /// The controller's shared part.
    pub fn association(&self) -> Option<&Arc<Association>> {
        match self {
            Self::Unconnected => None,
            Self::Admin(admin) => Some(&admin.association),
            Self::Io { association, .. } => Some(association),
        }
    }

    /// The host has proved itself on this queue. False when its queue id went to another
    /// connection meanwhile.
    pub(super) fn proved(&self) -> bool {
        match self {
            Self::Io { association, qid, connection } => association.proved(*qid, *connection),
            _ => true,
        }
    }

    /// Gives up a held Asynchronous Event Request whose identifier a new command has: SPDK drops
    /// its requests without a word before it detaches, and uses their identifiers again. False
    /// when it is no such request that has it.
    pub fn forget(&mut self, cid: u16) -> bool {
        match self {
            Self::Admin(admin) => admin.forget(cid),
            _ => false,
        }
    }

    /// Keep-alive timeout in milliseconds; 0 is none, or not this connection's to enforce.
    pub fn keep_alive_ms(&self) -> u64 {
        match self {
            Self::Admin(admin) => u64::from(admin.controller.keep_alive_ms()),
            _ => 0,
        }
    }

    /// Tells of the session's beginning or end.
    pub(super) fn told(&self, core: &Core, level: Level, event: &'static str) {
        let Some(association) = self.association() else { return };
        let qid = if let Self::Io { qid, .. } = self { *qid } else { 0 };
        let fields = [
            ("host", association.host_nqn().to_owned()),
            ("controller", association.cntlid.to_string()),
            ("queue", qid.to_string()),
            ("core", core_id().to_string()),
        ];
        core.shared.log().write_rated(level, event, &fields);
    }

    /// Ends the session with its connection.
    pub fn end(&mut self, core: &Core) {
        match std::mem::replace(self, Self::Unconnected) {
            Self::Unconnected => {}
            Self::Io { association, qid, connection } => association.leave(qid, connection),
            Self::Admin(admin) => {
                admin.association.ready.store(false, Relaxed);
                end_queues(&admin.association);
                core.shared.controllers.remove(admin.association.cntlid);
            }
        }
    }
}

/// Ends every I/O connection of a controller, on whatever core.
fn end_queues(association: &Association) {
    for (core, number) in association.end_queues() {
        end(core, number);
    }
}

/// Milliseconds of this drive's clock.
pub fn now_ms() -> u64 {
    now().ns() / 1_000_000
}

/// Answers a command of an unconnected or admin connection.
pub async fn run(core: &Core, link: &Link, number: u64, permit: Permit, sqe: &Sqe, payload: &[u8]) {
    let is_connect =
        Opcode(sqe.opcode()) == Opcode::FABRICS && fabrics::fctype(sqe) == Fabrics::CONNECT;
    let unconnected = matches!(*link.session.borrow(), Session::Unconnected);
    if unconnected && is_connect {
        match connect::run(core, link, number, sqe, payload).await {
            Ok((cntlid, queue)) => {
                link.session.borrow().told(core, Level::Info, "queue connected");
                let required = if link.gate.is_shut() { CONNECT_ATR } else { 0 };
                link.complete(permit, Status::SUCCESS, u64::from(u32::from(cntlid) | required));
                link.set_queue(queue);
            }
            Err(refused) => {
                connect::tell_refused(core, link, refused, payload);
                link.complete(permit, refused.status, u64::from(refused.dword0));
            }
        }
        return;
    }
    let answer = match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => admin.run(core, link, sqe, payload),
        _ => Answer::from(Status::COMMAND_SEQUENCE_ERROR),
    };
    let answer = match answer {
        Answer::Compute(command) => {
            let association = link.association().expect("an admin queue's answer");
            let host = association.host_nqn();
            let ended = compute::admin(&core.shared, host, command, payload).await;
            ended.map_or_else(Answer::from, Answer::result)
        }
        answer => answer,
    };
    // What a command saved is durable before it is answered. A request to be held is held in the
    // same turn as the controller noted it.
    if matches!(&answer, Answer::Complete { status, .. } if status.is_success())
        && let Err(error) = core.shared.settings.persist(&core.shared.syncer).await
    {
        return command::fail(core, link, permit, sqe, error.status(Access::Write));
    }
    match answer {
        Answer::Hold => hold(link, permit),
        Answer::Abort(cids) => abort(link, permit, &cids),
        Answer::Compute(_) => unreachable!("it was answered above"),
        Answer::Complete { status, .. } if !status.is_success() => {
            link.note_error(&permit, sqe, status);
            link.complete(permit, status, 0);
        }
        Answer::Complete { status, result, data } if data.is_empty() => {
            link.complete(permit, status, result);
        }
        Answer::Complete { result, data, .. } => send(link, permit, result, &data).await,
    }
    // What the command did may have been an event, or have let one through.
    link.tell_event();
}

impl Admin {
    fn run(&mut self, core: &Core, link: &Link, sqe: &Sqe, payload: &[u8]) -> Answer {
        let (drive, association) = (&*core.shared, &*self.association);
        let view = View { drive, association, local: link.local };
        let was_ready = self.controller.io_allowed();
        let answer = self.controller.admin(sqe, payload, &core.shared.subsystem, &view);
        let is_ready = self.controller.io_allowed();
        if was_ready != is_ready {
            self.association.ready.store(is_ready, Relaxed);
            if !is_ready {
                end_queues(&self.association);
            }
        }
        answer
    }
}

/// Holds an Asynchronous Event Request.
fn hold(link: &Link, permit: Permit) {
    match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => admin.held.push(permit),
        _ => unreachable!("only an admin queue's answer is Hold"),
    }
}

/// Aborts held requests: their own answers, then that of what aborts them.
fn abort(link: &Link, permit: Permit, cids: &[u16]) {
    let held: Vec<_> = match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => cids.iter().map(|cid| admin.take_held(*cid)).collect(),
        _ => unreachable!("only an admin queue's answer is Abort"),
    };
    for request in held {
        link.complete(request, Status::ABORT_REQUESTED, 0);
    }
    link.complete(permit, Status::SUCCESS, 0);
}

/// Answers a fabrics command of an I/O queue: Disconnect ends the queue with its connection, when
/// the answer was sent.
pub fn run_fabrics_io(link: &Link, permit: Permit, sqe: &Sqe) {
    let status = match fabrics::fctype(sqe) {
        Fabrics::DISCONNECT if sqe.cdw10() & 0xFFFF != 0 => Status::INCOMPATIBLE_FORMAT,
        Fabrics::DISCONNECT => Status::SUCCESS,
        Fabrics::CONNECT => Status::COMMAND_SEQUENCE_ERROR,
        Fabrics::PROPERTY_GET | Fabrics::PROPERTY_SET => Status::INVALID_QUEUE_TYPE,
        _ => Status::INVALID_OPCODE,
    };
    if !status.is_success() {
        link.note_error(&permit, sqe, status);
        return link.complete(permit, status, 0);
    }
    link.complete(permit, status, 0);
    link.end_when_sent();
}

/// Sends an admin answer's data, as far as there is room for it.
pub async fn send(link: &Link, permit: Permit, result: u64, data: &[u8]) {
    let most = PDU_DATA_BYTES_MAX as usize;
    let count = data.len().div_ceil(most);
    let mut offset = 0;
    for (index, chunk) in data.chunks(most).enumerate() {
        link.room().await;
        let _reserved = link.reserve(chunk.len() as u64).await;
        let mut buffer = Buffer::with_room(HEADROOM, chunk.len(), TAILROOM);
        buffer.copy_from_slice(chunk);
        link.send_data(&permit, offset, buffer, index + 1 == count, result == 0);
        offset += PDU_DATA_BYTES_MAX;
    }
    link.finish_data(permit, result);
}

/// Ends a connection's session when its loop ends, however it ends.
pub struct Ending {
    /// The connection.
    pub link: Rc<Link>,
    /// Its core.
    pub core: Rc<Core>,
    /// Its number on the core.
    pub number: u64,
}

impl Ending {
    /// The connection is over. The session of an I/O queue stays until the commands have ended that
    /// go on without their host: true when there may be some.
    pub fn part(&self) -> bool {
        self.link.queue().close();
        self.link.part();
        if let Session::Io { association, qid, connection } = &*self.link.session.borrow()
            && association.part(*qid, *connection)
        {
            self.core.shared.executions.abort_all(association.cntlid, *qid);
            return true;
        }
        self.end();
        false
    }

    /// Tells that commands go on for long after their connection is over.
    pub fn told(&self, commands: usize) {
        let session = self.link.session.borrow();
        let host = session.association().map_or("", |association| association.host_nqn());
        let fields = [("host", host.to_owned()), ("commands", commands.to_string())];
        let event = "commands of a lost connection go on: the medium is slow";
        self.core.shared.log().write_rated(Level::Warn, event, &fields);
    }

    fn end(&self) {
        self.core.connections.remove(self.number);
        // Held requests go with the session, after the queue was closed.
        let mut session = self.link.session.replace(Session::Unconnected);
        session.told(&self.core, Level::Info, "queue closed");
        session.end(&self.core);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.link.queue().close();
        self.end();
    }
}
