//! The drive's side above the transport: queues, and the admin command set of one controller.
//!
//! A [`Controller`] is what a host gets from Connect on the admin queue: properties, features,
//! events. It answers admin commands from a [`Subsystem`] (what the drive is) and a [`Backing`]
//! (what the drive counts). It never does I/O and reads no clock: keep-alive time is the caller's.
//!
//! Invariants: before CC.EN only fabrics commands are answered with success; every answer has
//! exactly one status.

pub mod admin;
pub mod connect;
mod describe;
mod features;
mod logs;
pub mod queue;

use crate::compute::ProgramDescriptor;
use crate::log::Smart;
use crate::opcode::Csi;
use crate::property::{Capabilities, Configuration, ControllerStatus};

/// What a namespace is, as Identify tells it.
#[derive(Clone, Debug)]
pub enum NamespaceKind {
    /// Logical blocks.
    Block {
        /// Number of logical blocks.
        blocks: u64,
        /// Size of a logical block as a power of two (LBADS).
        block_bytes_log2: u8,
    },
    /// Keys and values.
    Kv {
        /// Capacity in bytes.
        bytes: u64,
        /// Longest value in bytes (KVVML).
        value_bytes_max: u32,
    },
    /// Programs.
    Compute {
        /// Programs by index.
        programs: Vec<ProgramDescriptor>,
    },
}

/// One namespace of a subsystem.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// Namespace id.
    pub nsid: u32,
    /// Globally unique identifier.
    pub nguid: [u8; 16],
    /// Its kind and size.
    pub kind: NamespaceKind,
}

impl Namespace {
    /// Command set of the namespace.
    pub fn csi(&self) -> Csi {
        match self.kind {
            NamespaceKind::Block { .. } => Csi::NVM,
            NamespaceKind::Kv { .. } => Csi::KV,
            NamespaceKind::Compute { .. } => Csi::CP,
        }
    }
}

/// What a drive is: the same for every controller.
#[derive(Clone, Debug)]
pub struct Subsystem {
    /// NVMe Qualified Name.
    pub nqn: String,
    /// Serial number, at most 20 ASCII characters.
    pub serial: String,
    /// Model number, at most 40 ASCII characters.
    pub model: String,
    /// Firmware revision, at most 8 ASCII characters.
    pub firmware: String,
    /// Namespaces by rising id.
    pub namespaces: Vec<Namespace>,
    /// A volatile write cache is present (VWC).
    pub volatile_cache: bool,
    /// Most I/O queues of one controller.
    pub io_queues_max: u16,
    /// Most entries of a queue.
    pub queue_entries_max: u16,
    /// Maximum data transfer size as a power of two of 4 KiB (MDTS).
    pub mdts: u8,
    /// Most bytes of in-capsule data on I/O queues.
    pub in_capsule_bytes_max: u32,
}

impl Subsystem {
    /// The namespace with this id.
    pub fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.nsid == nsid)
    }

    /// Largest transfer of one command in bytes.
    pub fn transfer_bytes_max(&self) -> u32 {
        4096 << self.mdts
    }

    /// Controller Capabilities (CAP).
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_mqes(u64::from(self.queue_entries_max) - 1)
            .with_cqr(1)
            .with_timeout(10) // 5 s
            .with_nvm(1)
            .with_io_sets(1)
    }
}

/// What a drive counts and keeps beside its fixed description.
pub trait Backing {
    /// Used part of a namespace, in its own unit (blocks or bytes).
    fn used(&self, nsid: u32) -> u64;
    /// The health log.
    fn smart(&self) -> Smart;
    /// Whether Delete of an absent key is an error in this kv namespace (EDNEK).
    fn absent_delete_is_error(&self, nsid: u32) -> bool;
    /// Sets the same.
    fn set_absent_delete_is_error(&self, nsid: u32, error: bool);
}

/// An event for the host, reported through an Asynchronous Event Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The media became read-only: SMART event, spare or reliability class, log 02h.
    ReadOnly,
}

impl Event {
    /// Dword 0 of the completion: type 7:0 split by the standard, log page 23:16.
    fn dword(self) -> u32 {
        match self {
            // Type 1 (SMART / Health), information 00h (NVM subsystem reliability), log 02h.
            Self::ReadOnly => 0x0002_0001,
        }
    }

    fn log(self) -> crate::log::LogId {
        match self {
            Self::ReadOnly => crate::log::LogId::SMART,
        }
    }
}

/// Most Asynchronous Event Requests held at once (AERL + 1).
pub const EVENT_REQUESTS_MAX: u8 = 4;

/// The state of one controller.
#[derive(Debug)]
pub struct Controller {
    /// Controller id.
    pub cntlid: u16,
    configuration: Configuration,
    status: ControllerStatus,
    features: features::Features,
    events: Vec<Event>,
    masked: Vec<crate::log::LogId>,
    held_requests: u8,
}

impl Controller {
    /// A controller just connected, with the keep-alive timeout of its Connect command.
    pub fn new(cntlid: u16, kato_ms: u32) -> Self {
        Self {
            cntlid,
            configuration: Configuration::default(),
            status: ControllerStatus::default(),
            features: features::Features::new(kato_ms),
            events: Vec::new(),
            masked: Vec::new(),
            held_requests: 0,
        }
    }

    /// True when the host has enabled the controller and it is not shut down.
    pub fn ready(&self) -> bool {
        self.status.ready() == 1 && self.status.shst() == 0
    }

    /// Keep-alive timeout in milliseconds; 0 is none.
    pub fn keep_alive_ms(&self) -> u32 {
        self.features.keep_alive_ms()
    }

    /// Notes an event for the host.
    pub fn raise(&mut self, event: Event) {
        if !self.events.contains(&event) {
            self.events.push(event);
        }
    }

    /// Result dword of the next event to report, when a request is held for it: complete one held
    /// request with it. Its log stays masked until the host reads it.
    pub fn take_event(&mut self) -> Option<u32> {
        let ready = self.events.iter().position(|event| !self.masked.contains(&event.log()))?;
        if self.held_requests == 0 {
            return None;
        }
        self.held_requests -= 1;
        let event = self.events.remove(ready);
        self.masked.push(event.log());
        Some(event.dword())
    }
}
