//! Subsystem and state of the drive in memory, and its configurable behaviour.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_nvme::compute::{self, ProgramDescriptor, device_defined};
use csd_nvme::controller::{Backing, Controller, Namespace, NamespaceKind, Subsystem};
use csd_nvme::kv::{self, Key, KeyList};
use csd_nvme::log::Smart;
use csd_nvme::nvm;
use csd_nvme::status::Status;
use csd_nvme::tcp::Digests;
use csd_nvme::vendor::execute::Execution;

pub const NQN: &str = "nqn.2026-11.io.csdstore:memory";
pub const BLOCK_NSID: u32 = 1;
pub const KV_NSID: u32 = 2;
pub const COMPUTE_NSID: u32 = 5;
pub const BLOCK_BYTES: usize = 512;
pub const BLOCKS: usize = 8192;

/// One unlawful or unlucky act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answers a read under an identifier that is not in flight.
    WrongCid,
    /// Answers a read with more data than was asked for.
    TooMuchData,
    /// Answers a read with data at the wrong place.
    WrongOffset,
    /// Answers a read with less data than was asked for.
    ShortData,
    /// Answers a read twice.
    AnswerTwice,
    /// Closes the connection instead of answering a read.
    Close,
    /// Never answers a read.
    Silence,
    /// Answers a read with a terminate request.
    Terminate,
    /// Answers a read with bytes that are no PDU.
    Garbage,
    /// Damages the digest of a read's data.
    BadDigest,
    /// Asks for data beyond a write's.
    R2tBeyond,
    /// Asks for a write's second half before it has the first.
    R2tTwice,
    /// Fails a write when it has the first part of its data.
    AnswerEarly,
    /// Accepts connections and says nothing.
    Mute,
    /// Refuses Connect.
    Refuse,
    /// Answers ICReq with something else.
    NoIcResp,
}

/// Configurable behaviour of the drive.
#[derive(Clone, Debug)]
pub struct Behaviour {
    pub digests: Digests,
    /// Time that each I/O command takes, one after another.
    pub delay: Duration,
    pub queue_entries_max: u16,
    pub io_queues_max: u16,
    pub mdts: u8,
    pub in_capsule_bytes_max: u32,
    pub h2c_data_bytes_max: u32,
    /// Most bytes that are asked for at once.
    pub grant_bytes_max: u32,
    /// Most bytes of one C2HData PDU.
    pub data_bytes_max: usize,
    pub fault: Option<Fault>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            digests: Digests { header: true, data: true },
            delay: Duration::ZERO,
            queue_entries_max: 64,
            io_queues_max: 4,
            mdts: 8, // 1 MiB
            in_capsule_bytes_max: 8192,
            h2c_data_bytes_max: 20_000,
            grant_bytes_max: 300_000,
            data_bytes_max: 100_000,
            fault: None,
        }
    }
}

/// A drive in memory.
pub struct Drive {
    pub behaviour: Behaviour,
    pub subsystem: Subsystem,
    pub blocks: RefCell<Vec<u8>>,
    pub values: RefCell<BTreeMap<Key, Vec<u8>>>,
    pub controllers: RefCell<BTreeMap<u16, Rc<RefCell<Controller>>>>,
    /// I/O connections that were made, and that ended.
    pub sessions: Cell<(u32, u32)>,
    pub keep_alives: Cell<u32>,
    /// I/O commands by queue id.
    pub commands: RefCell<BTreeMap<u16, u32>>,
    pub absent_is_error: Cell<bool>,
    /// Programs that another host has loaded; after each look it loads one more, up to `loads`.
    pub loaded: Cell<u16>,
    pub loads: Cell<u16>,
}

impl Drive {
    pub fn new(behaviour: Behaviour) -> Self {
        let bytes = 1 << 30;
        let value_bytes_max = 4096 << behaviour.mdts;
        let blocks = NamespaceKind::Block { blocks: BLOCKS as u64, block_bytes_log2: 9 };
        let programs = vec![device_defined(1, "count"), device_defined(7, "other")];
        let namespaces = [
            (BLOCK_NSID, blocks),
            (KV_NSID, NamespaceKind::Kv { bytes, value_bytes_max }),
            (COMPUTE_NSID, NamespaceKind::Compute { programs }),
        ];
        let namespace = |(nsid, kind)| Namespace { nsid, nguid: [nsid as u8; 16], kind };
        let subsystem = Subsystem {
            nqn: NQN.into(),
            serial: "MEMORY".into(),
            model: "in memory".into(),
            firmware: "1".into(),
            namespaces: namespaces.map(namespace).into(),
            volatile_cache: false,
            io_queues_max: behaviour.io_queues_max,
            queue_entries_max: behaviour.queue_entries_max,
            mdts: behaviour.mdts,
            in_capsule_bytes_max: behaviour.in_capsule_bytes_max,
            tunnel: false,
            life: 1,
        };
        Self {
            behaviour,
            subsystem,
            blocks: RefCell::new(vec![0; BLOCKS * BLOCK_BYTES]),
            values: RefCell::default(),
            controllers: RefCell::default(),
            sessions: Cell::default(),
            keep_alives: Cell::default(),
            commands: RefCell::default(),
            absent_is_error: Cell::new(true),
            loaded: Cell::default(),
            loads: Cell::default(),
        }
    }

    /// Bytes that an I/O command brings.
    pub fn data_to_controller(&self, sqe: &Sqe) -> u32 {
        match sqe.nsid() {
            BLOCK_NSID => match nvm::Command::parse(sqe) {
                Ok(nvm::Command::Write { extent, .. }) => extent.blocks * BLOCK_BYTES as u32,
                _ => 0,
            },
            KV_NSID => match kv::Command::parse(sqe) {
                Ok(kv::Command::Store { size, .. }) => size,
                _ => 0,
            },
            _ => match compute::Command::parse(sqe) {
                Ok(compute::Command::Execute { length, .. }) => length,
                _ => 0,
            },
        }
    }

    /// Executes an I/O command: result and data.
    pub fn execute(&self, sqe: &Sqe, payload: &[u8]) -> Result<(u64, Vec<u8>), Status> {
        match sqe.nsid() {
            BLOCK_NSID => self.block(sqe, payload).map(|data| (0, data)),
            KV_NSID => self.kv(sqe, payload),
            COMPUTE_NSID => {
                let compute::Command::Execute { program, .. } = compute::Command::parse(sqe)?;
                if program != 0 {
                    return Err(Status::INVALID_PROGRAM_INDEX);
                }
                let parsed = Execution::parse(payload).map_err(|_| Status::INVALID_PROGRAM_DATA)?;
                Ok((parsed.program << 32 | parsed.sources.len() as u64, Vec::new()))
            }
            _ => Err(Status::INVALID_NAMESPACE),
        }
    }

    fn block(&self, sqe: &Sqe, payload: &[u8]) -> Result<Vec<u8>, Status> {
        let mut blocks = self.blocks.borrow_mut();
        let range = |extent: nvm::Extent| {
            let start = extent.slba as usize * BLOCK_BYTES;
            start..start + extent.blocks as usize * BLOCK_BYTES
        };
        match nvm::Command::parse(sqe)? {
            nvm::Command::Flush => Ok(Vec::new()),
            nvm::Command::Read(extent) => {
                blocks.get(range(extent)).map(<[u8]>::to_vec).ok_or(Status::LBA_OUT_OF_RANGE)
            }
            nvm::Command::Write { extent, .. } => {
                let into = blocks.get_mut(range(extent)).ok_or(Status::LBA_OUT_OF_RANGE)?;
                into.copy_from_slice(payload);
                Ok(Vec::new())
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn kv(&self, sqe: &Sqe, payload: &[u8]) -> Result<(u64, Vec<u8>), Status> {
        let mut values = self.values.borrow_mut();
        let absent = Status::KEY_DOES_NOT_EXIST;
        match kv::Command::parse(sqe)? {
            kv::Command::Flush => Ok((0, Vec::new())),
            kv::Command::Store { key, options, .. } => {
                let exists = values.contains_key(&key);
                if exists && options & kv::STORE_IF_ABSENT != 0 {
                    return Err(Status::KEY_EXISTS);
                }
                if !exists && options & kv::STORE_IF_EXISTS != 0 {
                    return Err(absent);
                }
                values.insert(key, payload.to_vec());
                Ok((0, Vec::new()))
            }
            kv::Command::Retrieve { key, size } => {
                let value = values.get(&key).ok_or(absent)?;
                let cut = value.len().min(size as usize);
                Ok((value.len() as u64, value[..cut].to_vec()))
            }
            kv::Command::List { from, size } => {
                let mut list = KeyList::new(size)?;
                let all = values.keys().filter(|key| from.is_none_or(|from| **key >= from));
                let _last = all.take_while(|key| list.push(key)).count();
                Ok((0, list.finish()))
            }
            kv::Command::Delete(key) => match values.remove(&key) {
                None if self.absent_is_error.get() => Err(absent),
                _ => Ok((0, Vec::new())),
            },
            kv::Command::Exist(key) => match values.contains_key(&key) {
                true => Ok((0, Vec::new())),
                false => Err(absent),
            },
            kv::Command::ListFolder(_) => Err(Status::INVALID_OPCODE),
        }
    }
}

impl Backing for Drive {
    fn used(&self, nsid: u32) -> u64 {
        match nsid {
            KV_NSID => self.values.borrow().values().map(|value| value.len() as u64).sum(),
            _ => 0,
        }
    }
    fn smart(&self) -> Smart {
        Smart::zeroed()
    }
    fn absent_delete_is_error(&self, _nsid: u32) -> bool {
        self.absent_is_error.get()
    }
    fn set_absent_delete_is_error(&self, _nsid: u32, error: bool) {
        self.absent_is_error.set(error);
    }
    fn loaded_programs(&self) -> Vec<(u16, ProgramDescriptor)> {
        let loaded = self.loaded.get();
        self.loaded.set(self.loads.get().min(loaded + 1));
        (2..2 + loaded).map(|index| (index, device_defined(index.into(), "loaded"))).collect()
    }
}
