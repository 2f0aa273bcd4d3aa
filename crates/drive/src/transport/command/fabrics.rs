//! Fabrics commands: Connect of a new connection, and the commands of an I/O queue.

use csd_nvme::auth::CONNECT_ATR;
use csd_nvme::fabrics;
use csd_nvme::opcode::Fabrics;
use csd_nvme::status::Status;

use super::super::request::Request;
use super::connect;
use crate::log::Level;

/// Answers Connect.
pub(super) async fn connect(request: Request, data: &[u8]) {
    let (core, link) = (request.core.clone(), request.link.clone());
    match connect::run(&core, &link, &request.sqe, data).await {
        Ok((cntlid, queue)) => {
            link.session.borrow().log_event(
                core.shared.log(),
                Level::Info,
                "queue connected",
                None,
            );
            let required = if link.auth.is_shut() { CONNECT_ATR } else { 0 };
            request.complete(u64::from(u32::from(cntlid) | required));
            link.set_queue(queue);
        }
        Err(refused) => {
            connect::log_refused(&core, &link, refused, data);
            request.refuse(refused.status, refused.dword0);
        }
    }
}

/// Answers a fabrics command of an I/O queue. Disconnect ends the queue and its connection when the
/// answer was sent.
pub(super) fn run_io(request: Request) {
    let status = match fabrics::fctype(&request.sqe) {
        Fabrics::DISCONNECT if request.sqe.cdw10() & 0xFFFF != 0 => Status::INCOMPATIBLE_FORMAT,
        Fabrics::DISCONNECT => {
            let link = request.link.clone();
            request.complete(0);
            return link.close_after_flush();
        }
        Fabrics::CONNECT => Status::COMMAND_SEQUENCE_ERROR,
        Fabrics::PROPERTY_GET | Fabrics::PROPERTY_SET => Status::INVALID_QUEUE_TYPE,
        _ => Status::INVALID_OPCODE,
    };
    request.refuse(status, 0);
}
