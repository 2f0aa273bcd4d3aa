//! Connect: makes an admin queue or an I/O queue of a connection.
//!
//! `nvme` checks the fields of the command; this module checks access, controllers and the host's
//! earlier queues. Invariant: a new queue begins only when no command runs of a queue that its host
//! has lost.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_nvme::auth::Keys;
use csd_nvme::capsule::Sqe;
use csd_nvme::controller::Controller;
use csd_nvme::controller::connect::{HOSTNQN_OFFSET, Refused, Request};
use csd_nvme::controller::queue::Queue;
use csd_nvme::fabrics::ConnectData;
use csd_nvme::status::Status;
use csd_nvme::wire::text_of;
use csd_reactor::{core_id, now, sleep};

use super::super::link::Link;
use super::super::session::Session;
use crate::controller::now_ms;
use crate::drive::Core;
use crate::log::Level;

/// Longest wait of Connect for commands of the host's lost queues. Hosts wait longer for the
/// answer, and a connection without a queue may last longer.
const SETTLING_MAX: Duration = Duration::from_secs(3);
/// Pause between two looks at those commands.
const SETTLING_PAUSE: Duration = Duration::from_millis(1);

/// Logs a refused Connect with the host, its address and the field that was wrong.
pub(super) fn log_refused(core: &Core, link: &Link, refused: Refused, payload: &[u8]) {
    let host = ConnectData::parse(payload).map(|data| data.hostnqn());
    let host = host.as_ref().and_then(|host| text_of(host)).unwrap_or("?");
    let mut fields = vec![
        ("status", refused.status.to_string()),
        ("host", host.to_owned()),
        ("peer", link.peer()),
    ];
    if refused.status == Status::CONNECT_INVALID_PARAMETERS {
        let part = if refused.dword0 >> 16 == 0 { "command" } else { "data" };
        fields.push(("field", format!("{part} byte {}", refused.dword0 & 0xFFFF)));
    }
    core.shared.log().write_rated(Level::Warn, "connect refused", &fields);
}

/// Makes the connection a queue of a new controller, or of one of its host's. Returns the
/// controller's identifier, and the queue.
///
/// # Errors
/// [`Refused`] with the status and the field that was wrong.
pub(super) async fn run(
    core: &Core,
    link: &Link,
    sqe: &Sqe,
    payload: &[u8],
) -> Result<(u16, Queue), Refused> {
    let request = Request::parse(sqe, payload, &core.shared.subsystem)?;
    if link.is_surplus() {
        core.shared.surplus.fetch_add(1, Relaxed);
        return Err(Refused { status: Status::CONTROLLER_BUSY, dword0: 0 });
    }
    let access = &core.shared.access;
    // A host without a name is taken only where every host is.
    if request.hostnqn.is_empty() && !access.is_open() {
        return Err(Refused::data(HOSTNQN_OFFSET));
    }
    let peer = peer(core, &request.hostnqn).await;
    if peer.is_none() && !access.admits(&request.hostnqn) {
        return Err(Refused { status: Status::CONNECT_INVALID_HOST, dword0: 0 });
    }
    // The discovery log needs no secret: it only says how to connect.
    let keys = access.secrets.keys(&request.hostnqn, &core.shared.subsystem.nqn);
    let keys = keys.or(peer.as_ref().and_then(|peer| peer.keys.clone()));
    let keys = keys.filter(|_| !request.discovery);
    let controllers = &core.shared.controllers;
    if !request.is_admin() {
        settle(core, &request).await?;
        if !matches!(*link.session.borrow(), Session::Unconnected) {
            return Err(Refused { status: Status::COMMAND_SEQUENCE_ERROR, dword0: 0 });
        }
    }
    let session = if request.is_admin() {
        let association = controllers.create(&request, now_ms())?;
        let (cntlid, kato_ms) = (association.cntlid, request.connect.kato());
        let controller = match request.discovery {
            true => Controller::discovery(cntlid, kato_ms),
            false => Controller::new(cntlid, kato_ms),
        };
        Session::admin(controller, association)
    } else {
        let connection = (core_id(), link.number);
        let association = controllers.join(&request, connection, keys.is_some())?;
        Session::Io { association, qid: request.connect.qid(), connection }
    };
    if peer.is_some() {
        link.serve_peer();
    }
    let cntlid = session.association().map_or(0, |association| association.cntlid);
    *link.session.borrow_mut() = session;
    match keys {
        Some(keys) => link.auth.require(keys, access.offer.clone()),
        None if request.discovery => {}
        None => core.shared.unauthenticated.settle(link.number),
    }
    Ok((cntlid, Queue::of(&request.connect)))
}

/// A host that is another drive.
struct PeerHost {
    /// Secrets that it and this drive prove to each other, if it has one.
    keys: Option<Keys>,
}

/// Returns the peer of this name, if the drive has it in its file of peers.
async fn peer(core: &Core, host: &str) -> Option<PeerHost> {
    let peers = core.shared.peers.as_ref()?;
    let list = peers.read(core.shared.log()).await;
    list.get(host).filter(|_| host != peers.own())?;
    Some(PeerHost { keys: list.keys(host, peers.own()) })
}

/// Waits until no command runs of a queue that the host has lost, so that no older command
/// overtakes one of the new queue. A stuck medium makes the host try again later.
async fn settle(core: &Core, request: &Request) -> Result<(), Refused> {
    let begun = now();
    while !core.shared.controllers.is_settled(request) {
        if begun.elapsed() >= SETTLING_MAX {
            let fields = [("host", request.hostnqn.clone())];
            let event = "connect refused: commands of the host's lost queues go on";
            core.shared.log().write_rated(Level::Warn, event, &fields);
            return Err(Refused { status: Status::CONTROLLER_BUSY, dword0: 0 });
        }
        sleep(SETTLING_PAUSE).await;
    }
    Ok(())
}
