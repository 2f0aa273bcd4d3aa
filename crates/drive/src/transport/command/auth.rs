//! Authentication Send and Receive (in-band authentication).
//!
//! Modular powers run on the compute thread when it is this host's turn
//! ([`super::super::auth_scheduler`]); everything else runs at once. After a failure the connection
//! ends, so that a host that fails must connect again.

use std::net::Ipv4Addr;

use csd_nvme::auth::controller::Outcome;
use csd_nvme::auth::message::AuthCommand;
use csd_nvme::capsule::{SGL_TRANSPORT, Sqe};
use csd_nvme::controller::admin::ADMIN_DATA_BYTES_MAX;
use csd_nvme::fabrics;
use csd_nvme::opcode::Fabrics;
use csd_nvme::status::Status;

use super::super::auth_gate::AuthGate;
use super::super::auth_scheduler::origin;
use super::super::cause::Cause;
use super::super::link::Link;
use super::super::request::Request;
use crate::drive::Core;
use crate::log::Level;

/// Answers Authentication Send, with its data, or Receive.
pub(super) async fn run(request: Request, data: &[u8]) {
    let (core, link) = (request.core.clone(), request.link.clone());
    let sqe = request.sqe;
    let result = match fabrics::fctype(&sqe) {
        Fabrics::AUTH_SEND => send(&link.auth, &sqe, data).map(|outcome| (outcome, Vec::new())),
        _ => receive(&core, &link, &sqe).await,
    };
    let result = result.and_then(|(outcome, data)| match outcome {
        Outcome::Authenticated => open(&core, &link).map(|()| data),
        _ => Ok(data),
    });
    match result {
        Ok(data) if data.is_empty() => request.complete(0),
        Ok(data) => request.answer_with(0, &data).await,
        Err(status) => request.fail(status),
    }
    if link.auth.has_failed() {
        // Also of a queue that was open: its host could not prove itself again.
        link.auth.fail();
        link.session.borrow().log_event(
            core.shared.log(),
            Level::Warn,
            "authentication failed",
            None,
        );
        // The answer still goes out.
        link.end(Cause::Unauthenticated);
    }
}

/// Opens the gate for a host that has authenticated itself.
fn open(core: &Core, link: &Link) -> Result<(), Status> {
    core.auth_scheduler.give_back(link.auth.take_spent());
    if !link.session.borrow().authenticated() {
        link.auth.fail();
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    core.shared.unauthenticated.remove(link.number);
    link.auth.open();
    Ok(())
}

fn send(gate: &AuthGate, sqe: &Sqe, data: &[u8]) -> Result<Outcome, Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    if !command.is_ours() || command.length() as usize != data.len() {
        return Err(Status::INVALID_FIELD);
    }
    let mut controller = gate.take(true)?;
    controller.send(data);
    let outcome = controller.outcome();
    gate.put(controller);
    Ok(outcome)
}

/// Returns the message, padded with zeros to the length that the host asked for.
async fn receive(core: &Core, link: &Link, sqe: &Sqe) -> Result<(Outcome, Vec<u8>), Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    let (length, sgl) = (command.length(), sqe.sgl());
    let fits = length > 0 && length <= ADMIN_DATA_BYTES_MAX && length == sgl.length();
    if !command.is_ours() || !fits {
        return Err(Status::INVALID_FIELD);
    }
    if sgl.kind() != SGL_TRANSPORT {
        return Err(Status::SGL_TYPE_INVALID);
    }
    let gate = &link.auth;
    let mut controller = gate.take(false)?;
    let most = length as usize;
    let mut message = match controller.power(most) {
        None => controller.receive(most),
        Some(group) => {
            let peer = link.peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
            let stepped = core.auth_scheduler.compute((origin(peer), group), move || {
                let message = controller.receive(most);
                (controller, message)
            });
            let (stepped, spent) = stepped.await.map_err(|_| Status::INTERNAL_ERROR)?;
            gate.add_spent(spent);
            let message;
            (controller, message) = stepped;
            message
        }
    };
    let outcome = controller.outcome();
    gate.put(controller);
    if let Ok(message) = &mut message {
        message.resize(most, 0);
    }
    message.map(|message| (outcome, message))
}
