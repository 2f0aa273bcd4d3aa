//! The drive's side above the transport: queues, and the admin command set of one controller.
//!
//! A host gets a [`Controller`] from Connect on the admin queue: properties, features, events. It
//! answers admin commands from a [`Subsystem`] (the drive's fixed description) and a [`Backing`]
//! (its counters and saved state). It does no I/O and reads no clock: the caller measures
//! keep-alive time.
//!
//! Invariants: before CC.EN only fabrics commands succeed; every answer has exactly one status.

pub mod admin;
pub mod connect;
mod describe;
mod discovery;
mod features;
mod logs;
pub mod queue;

use crate::compute::ProgramDescriptor;
use crate::discovery::DiscoveryRecord;
use crate::feature::FeatureId;
use crate::identify::EVENT_NAMESPACE_ATTRIBUTE;
use crate::log::{ErrorEntry, LogId, Smart, WARNING_READ_ONLY, WARNING_TEMPERATURE};
use crate::opcode::Csi;
use crate::program::{ProgramType, RangeSet};
use crate::property::{Capabilities, Configuration, ControllerStatus};
use crate::vendor::decisions::Decisions;
use crate::vendor::executions;
use crate::vendor::media_errors::MediaErrors;
use crate::vendor::services::{Order, Services};

/// Kind and size of a namespace, as Identify reports them.
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
        /// Maximum value length in bytes (KVVML).
        value_bytes_max: u32,
    },
    /// Bytes that programs and hosts share.
    Memory {
        /// Size in bytes.
        bytes: u64,
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
    /// Returns the command set of the namespace.
    pub fn csi(&self) -> Csi {
        match self.kind {
            NamespaceKind::Block { .. } => Csi::NVM,
            NamespaceKind::Kv { .. } => Csi::KV,
            NamespaceKind::Memory { .. } => Csi::SLM,
            NamespaceKind::Compute { .. } => Csi::CP,
        }
    }
}

/// Fixed description of a drive, the same for every controller.
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
    /// True if a volatile write cache is present (VWC).
    pub volatile_cache: bool,
    /// Maximum I/O queues of one controller.
    pub io_queues_max: u16,
    /// Maximum entries of a queue.
    pub queue_entries_max: u16,
    /// Maximum data transfer size as a power of two of 4 KiB (MDTS).
    pub mdts: u8,
    /// Maximum bytes of in-capsule data on I/O queues.
    pub in_capsule_bytes_max: u32,
    /// True if the compute namespace takes the tunnel's commands.
    pub tunnel: bool,
    /// Number of this life: random, another one at each start of the drive.
    pub life: u64,
}

impl Subsystem {
    /// Returns the namespace with this id.
    pub fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.nsid == nsid)
    }

    /// Returns the maximum transfer of one command in bytes.
    pub fn transfer_bytes_max(&self) -> u32 {
        4096 << self.mdts
    }

    /// Returns Controller Capabilities (CAP).
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_mqes(u64::from(self.queue_entries_max) - 1)
            .with_cqr(1)
            .with_timeout(10) // 5 s
            .with_nvm(1)
            .with_io_sets(1)
    }
}

/// Counters and stored state of a drive.
pub trait Backing {
    /// Returns the used part of a namespace, in its own unit (blocks or bytes).
    fn used(&self, nsid: u32) -> u64;
    /// Returns the size of a kv namespace in bytes. Namespaces that share their space announce what
    /// each can still take.
    fn kv_bytes(&self, _nsid: u32, announced: u64) -> u64 {
        announced
    }
    /// Returns the most keys of a kv namespace, 0 for no limit.
    fn kv_keys_max(&self, _nsid: u32) -> u32 {
        0
    }
    /// Returns true if every change of a namespace is durable when it is answered.
    fn is_uncached(&self, _nsid: u32) -> bool {
        false
    }
    /// Returns the health log.
    fn smart(&self) -> Smart;
    /// Returns the log of media errors.
    fn media_errors(&self) -> MediaErrors {
        MediaErrors::none()
    }
    /// Returns true if Delete of an absent key is an error in this kv namespace (EDNEK).
    fn absent_delete_is_error(&self, nsid: u32) -> bool;
    /// Sets the value of [`Self::absent_delete_is_error`].
    fn set_absent_delete_is_error(&self, nsid: u32, error: bool);
    /// Returns the saved value of a feature, for a namespace or (0) for the subsystem.
    fn saved(&self, _id: FeatureId, _nsid: u32) -> Option<u32> {
        None
    }
    /// Saves a value of a feature, durably before the command is answered.
    fn save(&self, _id: FeatureId, _nsid: u32, _value: u32) {}
    /// Returns the write protection state of a namespace (feature 84h).
    fn protection(&self, _nsid: u32) -> u32 {
        0
    }
    /// Sets the write protection state, and notifies the other controllers.
    fn set_protection(&self, _nsid: u32, _value: u32) {}
    /// Returns true if this controller's host is inside, false outside; `None` if the drive serves
    /// no inside.
    fn inside(&self) -> Option<bool> {
        None
    }
    /// Returns true if only the inside changes a namespace (feature C0h).
    fn is_inside_only(&self, _nsid: u32) -> bool {
        false
    }
    /// Sets that only the inside changes a namespace, and notifies the other controllers.
    fn set_inside_only(&self, _nsid: u32, _only: bool) {}
    /// Returns true if the drive refuses this controller's changes of a namespace.
    fn is_protected(&self, nsid: u32) -> bool {
        self.protection(nsid) != 0 || self.inside() != Some(true) && self.is_inside_only(nsid)
    }
    /// Returns recent errors of this controller, newest first.
    fn errors(&self) -> Vec<ErrorEntry> {
        Vec::new()
    }
    /// Returns the number of executions that ended since the start, and the entries of the last
    /// ones, newest first.
    fn executions(&self) -> (u64, Vec<executions::Entry>) {
        (0, Vec::new())
    }
    /// Returns the data of the tunnel's log page.
    fn tunnel(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Returns the drive's services.
    fn services(&self) -> Services {
        Services { segments: 0, free_segments: 0, is_low: false, entries: Vec::new() }
    }
    /// Returns the latest cores that background tasks were sent to.
    fn decisions(&self) -> Decisions {
        Decisions { decisions: 0, now_ns: 0, cores: 0, policy: 0, entries: Vec::new() }
    }
    /// Gives an order to a service; returns false if the drive has none of this name, or none that
    /// can take it.
    fn order(&self, _order: &Order) -> bool {
        false
    }
    /// Returns the ids of the controllers that have namespaces, rising.
    fn controllers(&self) -> Vec<u16> {
        Vec::new()
    }
    /// Returns the number of this controller's I/O queues, including ended ones with unanswered
    /// commands.
    fn io_queues(&self) -> usize {
        0
    }
    /// Returns the programs that hosts have loaded, by rising index.
    fn loaded_programs(&self) -> Vec<(u16, ProgramDescriptor)> {
        Vec::new()
    }
    /// Returns the types of program that hosts may load.
    fn program_types(&self) -> Vec<ProgramType> {
        Vec::new()
    }
    /// Returns the memory range sets.
    fn range_sets(&self) -> Vec<RangeSet> {
        Vec::new()
    }
    /// Asks a command of one of this controller's I/O queues to end early; returns false if it
    /// cannot.
    fn abort(&self, _qid: u16, _cid: u16) -> bool {
        false
    }
    /// Returns generation and records of the discovery log, with addresses that this host can
    /// reach.
    fn discovery(&self) -> (u64, Vec<DiscoveryRecord>) {
        (0, Vec::new())
    }
}

/// Entries of the Error Information log (ELPE + 1).
pub const ERROR_ENTRIES_MAX: u8 = 64;

/// An event for the host, reported through an Asynchronous Event Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The composite temperature went beyond a threshold: SMART event, temperature, log 02h.
    Temperature,
    /// The media became read-only: SMART event, spare or reliability class, log 02h.
    ReadOnly,
    /// Attributes of this namespace changed: notice, log 04h.
    NamespaceChanged(u32),
}

impl Event {
    /// Returns dword 0 of the completion: event type in bits 7:0, log page in bits 23:16.
    fn dword(self) -> u32 {
        match self {
            // Type 1 (SMART / Health), information 01h (temperature threshold), log 02h.
            Self::Temperature => 0x0002_0101,
            // Type 1 (SMART / Health), information 00h (NVM subsystem reliability), log 02h.
            Self::ReadOnly => 0x0002_0001,
            // Type 2 (notice), information 00h (namespace attribute changed), log 04h.
            Self::NamespaceChanged(_) => 0x0004_0002,
        }
    }

    fn log(self) -> LogId {
        match self {
            Self::ReadOnly | Self::Temperature => LogId::SMART,
            Self::NamespaceChanged(_) => LogId::CHANGED_NAMESPACES,
        }
    }

    /// Returns the bit of Asynchronous Event Configuration that enables it.
    fn enable_bit(self) -> u32 {
        match self {
            Self::ReadOnly => u32::from(WARNING_READ_ONLY),
            Self::Temperature => u32::from(WARNING_TEMPERATURE),
            Self::NamespaceChanged(_) => EVENT_NAMESPACE_ATTRIBUTE,
        }
    }
}

/// Maximum Asynchronous Event Requests held at once (AERL + 1).
pub const EVENT_REQUESTS_MAX: u8 = 4;

/// Purpose of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Io,
    Discovery,
}

/// The state of one controller.
#[derive(Debug)]
pub struct Controller {
    /// Controller id.
    pub cntlid: u16,
    kind: Kind,
    configuration: Configuration,
    status: ControllerStatus,
    features: features::Features,
    events: Vec<Event>,
    masked: Vec<LogId>,
    // Namespaces changed since the host read of it.
    changed: Vec<u32>,
    // Identifiers of held Asynchronous Event Requests, oldest first.
    held: Vec<u16>,
}

impl Controller {
    /// Returns a controller just connected, with the keep-alive timeout of its Connect command.
    pub fn new(cntlid: u16, kato_ms: u32) -> Self {
        Self {
            cntlid,
            kind: Kind::Io,
            configuration: Configuration::default(),
            status: ControllerStatus::default(),
            features: features::Features::new(kato_ms),
            events: Vec::new(),
            masked: Vec::new(),
            changed: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Returns a discovery controller just connected.
    pub fn discovery(cntlid: u16, kato_ms: u32) -> Self {
        Self { kind: Kind::Discovery, ..Self::new(cntlid, kato_ms) }
    }

    /// Drops an Asynchronous Event Request that its host has forgotten; returns false if none with
    /// this identifier is held.
    pub fn forget(&mut self, cid: u16) -> bool {
        let at = self.held.iter().position(|held| *held == cid);
        at.map(|at| self.held.remove(at)).is_some()
    }

    /// Returns true if the host has enabled the controller and not shut it down.
    pub fn ready(&self) -> bool {
        self.status.ready() == 1 && self.status.shst() == 0
    }

    /// Returns the keep-alive timeout in milliseconds; 0 is none.
    pub fn keep_alive_ms(&self) -> u32 {
        match (self.kind, self.features.keep_alive_ms()) {
            (Kind::Discovery, 0) => discovery::ACTIVITY_TIMEOUT_MS,
            (_, asked) => asked,
        }
    }

    /// Queues an event for the host, if the host has it enabled and it is not already pending.
    pub fn raise(&mut self, event: Event) {
        if self.kind == Kind::Discovery {
            return;
        }
        if let Event::NamespaceChanged(nsid) = event
            && let Err(at) = self.changed.binary_search(&nsid)
        {
            self.changed.insert(at, nsid);
        }
        let kind = std::mem::discriminant(&event);
        let waits = self.events.iter().any(|waiting| std::mem::discriminant(waiting) == kind);
        if !waits && self.features.event_enabled(event.enable_bit()) {
            self.events.push(event);
        }
    }

    /// Returns the next event to report, if a request is held for it: the identifier of the request
    /// to complete, and its result dword. The event's log stays masked until the host reads it.
    pub fn take_event(&mut self) -> Option<(u16, u32)> {
        let ready = self.events.iter().position(|event| !self.masked.contains(&event.log()))?;
        if self.held.is_empty() {
            return None;
        }
        let event = self.events.remove(ready);
        self.masked.push(event.log());
        Some((self.held.remove(0), event.dword()))
    }
}
