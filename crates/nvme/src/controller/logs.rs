//! Get Log Page.

use super::{Backing, Controller, NamespaceKind, Subsystem};
use crate::capsule::Sqe;
use crate::compute;
use crate::log::{self, FirmwareSlot, GetLogPage, LSP_RETAIN, LogId};
use crate::opcode::{Admin, Cp, Csi, Kv, Nvm};
use crate::status::Status;
use crate::wire::fixed_text;

const SUPPORTED: [LogId; 6] = [
    LogId::SUPPORTED,
    LogId::ERROR,
    LogId::SMART,
    LogId::FIRMWARE_SLOT,
    LogId::EFFECTS,
    LogId::PROGRAM_LIST,
];

const ADMIN: [u8; 8] = [
    Admin::GET_LOG_PAGE.0,
    Admin::IDENTIFY.0,
    Admin::ABORT.0,
    Admin::SET_FEATURES.0,
    Admin::GET_FEATURES.0,
    Admin::ASYNC_EVENT_REQUEST.0,
    Admin::KEEP_ALIVE.0,
    Admin::FABRICS.0,
];

const NVM: [(u8, bool); 3] = [(Nvm::FLUSH.0, false), (Nvm::WRITE.0, true), (Nvm::READ.0, false)];

const KV: [(u8, bool); 6] = [
    (Kv::FLUSH.0, false),
    (Kv::STORE.0, true),
    (Kv::RETRIEVE.0, false),
    (Kv::LIST.0, false),
    (Kv::DELETE.0, true),
    (Kv::EXIST.0, false),
];

const CP: [(u8, bool); 1] = [(Cp::EXECUTE_PROGRAM.0, false)];

/// Bytes of one Error Information entry.
const ERROR_ENTRY_BYTES: usize = 64;

impl Controller {
    pub(super) fn get_log_page(
        &mut self,
        sqe: &Sqe,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<Vec<u8>, Status> {
        let view = GetLogPage::from_bytes(*sqe.as_bytes());
        if view.bytes() > u64::from(subsystem.transfer_bytes_max()) {
            return Err(Status::INVALID_FIELD);
        }
        let id = LogId(view.lid());
        let log = match id {
            LogId::SUPPORTED => log::supported(&SUPPORTED),
            // One entry, always unused: errors are reported in completions only.
            LogId::ERROR => vec![0; ERROR_ENTRY_BYTES],
            LogId::SMART => backing.smart().as_bytes().to_vec(),
            LogId::FIRMWARE_SLOT => {
                let mut slot = FirmwareSlot::zeroed();
                slot.set_afi(1).set_frs1(&fixed_text(&subsystem.firmware, b' '));
                slot.as_bytes().to_vec()
            }
            LogId::EFFECTS => effects(Csi(view.csi()))?,
            LogId::PROGRAM_LIST => program_list(sqe.nsid(), subsystem)?,
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        if view.lsp() & LSP_RETAIN == 0 {
            self.masked.retain(|masked| *masked != id);
        }
        part(&log, view.offset(), view.bytes())
    }
}

/// The asked part of a log; zeros follow its end, an offset past its end is refused.
fn part(log: &[u8], offset: u64, bytes: u64) -> Result<Vec<u8>, Status> {
    let start = usize::try_from(offset).map_err(|_| Status::INVALID_FIELD)?;
    if start > log.len() || !offset.is_multiple_of(4) {
        return Err(Status::INVALID_FIELD);
    }
    let length = usize::try_from(bytes).map_err(|_| Status::INVALID_FIELD)?;
    let mut data = log[start..log.len().min(start + length)].to_vec();
    data.resize(length, 0);
    Ok(data)
}

fn effects(csi: Csi) -> Result<Vec<u8>, Status> {
    match csi {
        Csi::NVM => Ok(log::effects(&ADMIN, &NVM)),
        Csi::KV => Ok(log::effects(&ADMIN, &KV)),
        Csi::CP => Ok(log::effects(&ADMIN, &CP)),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn program_list(nsid: u32, subsystem: &Subsystem) -> Result<Vec<u8>, Status> {
    match subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
        Some(NamespaceKind::Compute { programs }) => Ok(compute::program_list(programs)),
        _ => Err(Status::INVALID_NAMESPACE),
    }
}
