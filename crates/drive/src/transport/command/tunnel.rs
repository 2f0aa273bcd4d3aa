//! Tunnel Send and Receive: frames between the wire and the drive's [`crate::tunnel::Tunnel`].
//!
//! A Send asks for its data when the queue has room for it. A Receive that waits has no memory, and
//! its time says nothing of the drive, so it stays out of the figures of latency and errors. The
//! connection of such a command goes on in the tunnel's class.

use csd_nvme::status::Status;
use csd_nvme::vendor::tunnel::{Command, count, parse};

use super::super::request::{Done, Request};
use crate::log::Level;
use crate::side::Side;
use crate::tunnel::{Refused, Tunnel};

/// Runs a command of the tunnel, if the drive has one.
pub(super) async fn run(mut request: Request) {
    let shared = std::sync::Arc::clone(&request.core.shared);
    let Some(tunnel) = &shared.tunnel else { return request.fail(Status::INVALID_OPCODE) };
    let ended = match Command::parse(&request.sqe) {
        Ok(command) => execute(&mut request, tunnel, command).await,
        Err(status) => Err(status),
    };
    match ended {
        // The host asked for it, or has another connection: no command has failed.
        Err(Status::ABORT_REQUESTED) => request.end_uncounted(Status::ABORT_REQUESTED),
        ended => request.answer(ended),
    }
}

async fn execute(request: &mut Request, tunnel: &Tunnel, command: Command) -> Result<Done, Status> {
    let side = request.link.side;
    let association = request.link.association().ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
    let refused = |refused: Refused, request: &Request| {
        let fields = [
            ("host", association.host_nqn().to_owned()),
            ("side", side.name().to_owned()),
            ("why", refused.0.to_owned()),
        ];
        let log = request.core.shared.log();
        log.write_rated(Level::Warn, "a command of the tunnel was refused", &fields);
        Status::OPERATION_DENIED
    };
    tunnel.join(side, &association).map_err(|why| refused(why, request))?;
    request.link.carry_tunnel();
    match command {
        Command::Send { bytes } => send(request, tunnel, bytes).await,
        Command::Receive { room } => {
            request.check_buffer(room.into())?;
            let (qid, cid) = request.id();
            let caller = (association.cntlid, qid, cid);
            let host = &request.link.host;
            let received = host.there(tunnel.receive(side, caller, room as usize)).await;
            let frames = received.map_err(|why| refused(why, request))??;
            answer(request, side, &frames).await
        }
    }
}

async fn send(request: &mut Request, tunnel: &Tunnel, bytes: u32) -> Result<Done, Status> {
    let (link, side) = (std::rc::Rc::clone(&request.link), request.link.side);
    let sending = link.host.there(tunnel.begin_send(side, bytes as usize)).await?;
    pay(request, side, bytes).await;
    let frames = request.payload(bytes).await?.joined().await;
    let packets = parse(&frames)?.len() as u64;
    link.host.there(sending.deliver(frames, packets)).await?;
    Ok(Done::Result(0))
}

/// Answers a Receive with frames.
async fn answer(request: &Request, side: Side, frames: &[u8]) -> Result<Done, Status> {
    debug_assert!(frames.is_empty() || count(frames) > 0);
    let bytes = frames.len() as u64;
    if frames.is_empty() {
        return Ok(Done::Result(0));
    }
    pay(request, side, u32::try_from(bytes).expect("as much as there was room for")).await;
    let _reserved = request.link.reserve(bytes).await;
    request.send(frames, false).await;
    Ok(Done::Data(bytes))
}

/// Waits for as long as a paced drive's link takes for data that crosses it. The inside pays
/// nothing: its packets cross the link when the host sends or receives them.
async fn pay(request: &Request, side: Side, bytes: u32) {
    if side == Side::Outside {
        let delay = request.core.shared.throttle.cross(&request.sqe, side, bytes);
        request.link.host.there(delay).await;
    }
}
