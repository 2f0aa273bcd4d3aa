//! Commands of an admin queue, of a connection without a queue, and of one whose host has not
//! authenticated itself.
//!
//! The controller's state machine ([`csd_nvme::controller`]) answers admin commands. This module
//! moves their data and carries out the answers.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use csd_kvlog::error::Access;
use csd_nvme::controller::admin::{self, ADMIN_DATA_BYTES_MAX, Answer};
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin as Opcode, Fabrics};
use csd_nvme::status::Status;

use super::super::auth_gate::is_auth;
use super::super::budget::FLOOR_BYTES;
use super::super::cause::Cause;
use super::super::connections;
use super::super::request::Request;
use super::super::session::{Admin, Session};
use super::view::View;
use super::{auth, fabrics as fabrics_commands};
use crate::controller::Association;

/// Runs a command.
pub(in super::super) async fn run(mut request: Request) {
    let link = Rc::clone(&request.link);
    if let Err(status) = link.auth.pass(&request.sqe) {
        return request.fail(status);
    }
    let wanted = admin::data_to_controller(&request.sqe);
    // Parts of programs are longer than other data, and hosts of admin queues may send them.
    let most =
        if link.is_admin() { admin::data_bytes_max(&request.sqe) } else { ADMIN_DATA_BYTES_MAX };
    if wanted > most {
        return request.refuse(Status::SGL_LENGTH_INVALID, 0);
    }
    let data = match request.payload(wanted).await {
        Ok(data) => data.joined().await,
        Err(status) => return request.fail(status),
    };
    // An answer is queued whole, so there must be space before it is made.
    link.wait_for_space().await;
    // Connect may have shut the gate meanwhile.
    if let Err(status) = link.auth.pass(&request.sqe) {
        return request.fail(status);
    }
    if is_auth(&request.sqe) {
        return auth::run(request, &data).await;
    }
    // A long answer, such as a log page, is made whole: it takes memory as data of a host does.
    let (core, sgl) = (Rc::clone(&request.core), request.sqe.sgl());
    let long = sgl.length().min(core.shared.subsystem.transfer_bytes_max());
    let _held = match long > FLOOR_BYTES {
        true => Some(core.budget.grant(long).await),
        false => None,
    };
    let is_connect = Opcode(request.sqe.opcode()) == Opcode::FABRICS
        && fabrics::fctype(&request.sqe) == Fabrics::CONNECT;
    let unconnected = matches!(*link.session.borrow(), Session::Unconnected);
    if unconnected && is_connect {
        return fabrics_commands::connect(request, &data).await;
    }
    answer(request, &data).await;
}

async fn answer(request: Request, data: &[u8]) {
    let (core, link) = (Rc::clone(&request.core), Rc::clone(&request.link));
    let answer = match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => ask(admin, &request, data),
        _ => Answer::from(Status::COMMAND_SEQUENCE_ERROR),
    };
    let answer = match answer {
        Answer::Compute(command) => {
            let association = link.association().expect("an admin queue has a controller");
            let ended = core.compute.admin(association.host_nqn(), command, data).await;
            ended.map_or_else(Answer::from, Answer::result)
        }
        answer => answer,
    };
    // A command is answered when its settings are durable. A request to be held is held in the
    // same turn as the controller noted it.
    if matches!(&answer, Answer::Complete { status, .. } if status.is_success())
        && let Err(error) = core.shared.settings.persist(&core.shared.syncer).await
    {
        return request.fail(error.status(Access::Write));
    }
    // After this no host outside changes what only the inside may.
    link.host.there(core.shared.inside_only.settle()).await;
    match answer {
        Answer::Hold => hold(request),
        Answer::Abort(cids) => abort(request, &cids),
        Answer::Compute(_) => unreachable!("it was answered above"),
        Answer::Complete { status, .. } if !status.is_success() => request.refuse(status, 0),
        Answer::Complete { result, data, .. } if data.is_empty() => request.complete(result),
        Answer::Complete { result, data, .. } => request.answer_with(result, &data).await,
    }
    // The command may have caused an event, or have let one through.
    link.report_event();
}

/// Asks the controller for its answer.
fn ask(admin: &mut Admin, request: &Request, data: &[u8]) -> Answer {
    let (drive, association) = (&*request.core.shared, &*admin.association);
    let view = View { drive, association, local: request.link.local, side: request.link.side };
    let was_ready = admin.controller.io_allowed();
    let answer = admin.controller.admin(&request.sqe, data, &drive.subsystem, &view);
    let is_ready = admin.controller.io_allowed();
    if was_ready != is_ready {
        association.ready.store(is_ready, Relaxed);
        if !is_ready {
            end_queues(association);
        }
    }
    answer
}

/// Ends every I/O connection of a controller, on any core.
fn end_queues(association: &Association) {
    for (core, number) in association.end_queues() {
        connections::end(core, number, Cause::Disabled);
    }
}

/// Holds an Asynchronous Event Request.
fn hold(request: Request) {
    let link = Rc::clone(&request.link);
    match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => admin.hold(request.into_permit()),
        _ => unreachable!("only an admin queue's answer is Hold"),
    }
}

/// Completes each held request in `cids` with Abort Requested, then completes the Abort command.
fn abort(request: Request, cids: &[u16]) {
    let link = Rc::clone(&request.link);
    let held: Vec<_> = match &mut *link.session.borrow_mut() {
        Session::Admin(admin) => cids.iter().map(|cid| admin.take_held(*cid)).collect(),
        _ => unreachable!("only an admin queue's answer is Abort"),
    };
    for permit in held {
        link.complete(permit, Status::ABORT_REQUESTED, 0);
    }
    request.complete(0);
}
