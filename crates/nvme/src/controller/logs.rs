//! Get Log Page.

use super::{Backing, Controller, ERROR_ENTRIES_MAX, Kind, NamespaceKind, Subsystem, features};
use crate::NSID_ALL;
use crate::capsule::Sqe;
use crate::compute::{self, ProgramDescriptor};
use crate::discovery::discovery_log;
use crate::log::{
    self, ErrorEntry, FeatureEffects, FirmwareSlot, GetLogPage, LSP_RETAIN, LogId,
    WARNING_TEMPERATURE,
};
use crate::opcode::{Admin, Cp, Csi, Kv, Nvm, Slm};
use crate::program;
use crate::status::Status;
use crate::vendor::executions;
use crate::wire::fixed_text;

/// Log pages of a discovery controller.
const SUPPORTED_DISCOVERY: [LogId; 3] = [LogId::SUPPORTED, LogId::ERROR, LogId::DISCOVERY];

/// Log pages of an I/O controller; only a drive with a tunnel has the last one.
const SUPPORTED: [LogId; 15] = [
    LogId::SUPPORTED,
    LogId::ERROR,
    LogId::SMART,
    LogId::FIRMWARE_SLOT,
    LogId::CHANGED_NAMESPACES,
    LogId::EFFECTS,
    LogId::FEATURES,
    LogId::PROGRAM_LIST,
    LogId::PROGRAM_TYPES,
    LogId::RANGE_SETS,
    LogId::EXECUTIONS,
    LogId::MEDIA_ERRORS,
    LogId::SERVICES,
    LogId::DECISIONS,
    LogId::TUNNEL,
];

const ADMIN: [u8; 11] = [
    Admin::GET_LOG_PAGE.0,
    Admin::IDENTIFY.0,
    Admin::ABORT.0,
    Admin::SET_FEATURES.0,
    Admin::GET_FEATURES.0,
    Admin::ASYNC_EVENT_REQUEST.0,
    Admin::KEEP_ALIVE.0,
    Admin::FABRICS.0,
    Admin::LOAD_PROGRAM.0,
    Admin::PROGRAM_ACTIVATION.0,
    Admin::MEMORY_RANGE_SET.0,
];

const NVM: [(u8, bool); 8] = [
    (Nvm::FLUSH.0, false),
    (Nvm::WRITE.0, true),
    (Nvm::READ.0, false),
    (Nvm::COMPARE.0, false),
    (Nvm::WRITE_ZEROES.0, true),
    (Nvm::DATASET_MANAGEMENT.0, true),
    (Nvm::VERIFY.0, false),
    (Nvm::COPY.0, true),
];

const KV: [(u8, bool); 8] = [
    (Kv::FLUSH.0, false),
    (Kv::STORE.0, true),
    (Kv::RETRIEVE.0, false),
    (Kv::LIST.0, false),
    (Kv::DELETE.0, true),
    (Kv::EXIST.0, false),
    (Kv::STORE_NEWER.0, true),
    (Kv::LIST_FOLDER.0, false),
];

const SLM: [(u8, bool); 4] =
    [(Slm::COPY.0, true), (Slm::READ.0, false), (Slm::FILL.0, true), (Slm::WRITE.0, true)];

const CP: [(u8, bool); 1] = [(Cp::EXECUTE_PROGRAM.0, false)];

/// The same for drives with a tunnel.
const CP_WITH_TUNNEL: [(u8, bool); 3] =
    [(Cp::EXECUTE_PROGRAM.0, false), (Cp::TUNNEL_SEND.0, false), (Cp::TUNNEL_RECEIVE.0, false)];

/// Returns the Error Information log: newest first, zeros where there is no entry.
fn error_log(backing: &dyn Backing) -> Vec<u8> {
    let entries = backing.errors();
    let mut log: Vec<u8> = entries.iter().flat_map(|entry| *entry.as_bytes()).collect();
    log.resize(usize::from(ERROR_ENTRIES_MAX) * ErrorEntry::SIZE, 0);
    log
}

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
        let known = match self.kind {
            Kind::Io if subsystem.tunnel => &SUPPORTED[..],
            Kind::Io => &SUPPORTED[..SUPPORTED.len() - 1],
            Kind::Discovery => &SUPPORTED_DISCOVERY[..],
        };
        if !known.contains(&id) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        let retain = view.lsp() & LSP_RETAIN != 0;
        let log = match id {
            LogId::SUPPORTED => log::supported(known),
            LogId::ERROR => error_log(backing),
            // One log for all namespaces (LPA bit 0 is clear).
            LogId::SMART | LogId::MEDIA_ERRORS | LogId::SERVICES | LogId::DECISIONS
                if !matches!(sqe.nsid(), 0 | NSID_ALL) =>
            {
                return Err(Status::INVALID_FIELD);
            }
            LogId::SMART => {
                let mut smart = backing.smart();
                if self.features.is_beyond(smart.temperature()) {
                    smart.set_critical_warning(smart.critical_warning() | WARNING_TEMPERATURE);
                }
                smart.as_bytes().to_vec()
            }
            LogId::MEDIA_ERRORS => backing.media_errors().as_bytes().to_vec(),
            LogId::SERVICES => backing.services().encode(),
            LogId::DECISIONS => backing.decisions().encode(),
            LogId::FIRMWARE_SLOT => firmware_slot(subsystem),
            LogId::CHANGED_NAMESPACES => {
                let log = log::changed_namespaces(&self.changed);
                if !retain {
                    self.changed.clear();
                }
                log
            }
            LogId::FEATURES => feature_effects(backing),
            LogId::DISCOVERY => {
                let (generation, records) = backing.discovery();
                discovery_log(generation, &records)
            }
            LogId::EFFECTS => effects(Csi(view.csi()), subsystem)?,
            LogId::PROGRAM_LIST
            | LogId::PROGRAM_TYPES
            | LogId::RANGE_SETS
            | LogId::EXECUTIONS
            | LogId::TUNNEL => of_programs(id, sqe.nsid(), subsystem, backing)?,
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        if !retain {
            // What the host has read of it need not be told any more.
            self.events.retain(|event| event.log() != id);
            self.masked.retain(|masked| *masked != id);
        }
        part(&log, view.offset(), view.bytes())
    }
}

/// Returns the requested part of a log: zeros follow its end, and an offset past its end is
/// refused.
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

fn firmware_slot(subsystem: &Subsystem) -> Vec<u8> {
    let mut slot = FirmwareSlot::zeroed();
    slot.set_afi(1).set_frs1(&fixed_text(&subsystem.firmware, b' '));
    slot.as_bytes().to_vec()
}

fn effects(csi: Csi, subsystem: &Subsystem) -> Result<Vec<u8>, Status> {
    match csi {
        Csi::NVM => Ok(log::effects(&ADMIN, &NVM)),
        Csi::KV => Ok(log::effects(&ADMIN, &KV)),
        Csi::SLM => Ok(log::effects(&ADMIN, &SLM)),
        Csi::CP if subsystem.tunnel => Ok(log::effects(&ADMIN, &CP_WITH_TUNNEL)),
        Csi::CP => Ok(log::effects(&ADMIN, &CP)),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn feature_effects(backing: &dyn Backing) -> Vec<u8> {
    let mut data = vec![0; 1024];
    for (id, of_namespace) in features::supported(backing) {
        let scope = u32::from(*of_namespace);
        let entry = FeatureEffects::default()
            .with_supported(1)
            .with_of_namespace(scope)
            .with_of_controller(1 - scope);
        let at = usize::from(id.0) * 4;
        data[at..at + 4].copy_from_slice(&entry.0.to_le_bytes());
    }
    data
}

/// Returns a log of the compute namespace.
fn of_programs(
    id: LogId,
    nsid: u32,
    subsystem: &Subsystem,
    backing: &dyn Backing,
) -> Result<Vec<u8>, Status> {
    let Some(NamespaceKind::Compute { programs }) =
        subsystem.namespace(nsid).map(|namespace| &namespace.kind)
    else {
        return Err(Status::INVALID_NAMESPACE);
    };
    Ok(match id {
        LogId::PROGRAM_TYPES => program::program_types(&backing.program_types()),
        LogId::RANGE_SETS => program::range_sets(&backing.range_sets()),
        LogId::TUNNEL => backing.tunnel(),
        LogId::EXECUTIONS => {
            let (ended, entries) = backing.executions();
            executions::encode(ended, &entries)
        }
        _ => {
            // By index, as far as there are programs; what lies between is empty.
            let mut programs = programs.clone();
            for (index, loaded) in backing.loaded_programs() {
                programs.resize(usize::from(index), ProgramDescriptor::zeroed());
                programs.push(loaded);
            }
            compute::program_list(&programs)
        }
    })
}
