//! A drive put together: medium, namespaces, controllers; one [`Core`] per core.
//!
//! Never: bytes of the wire, nor a socket. Invariant: the medium is formatted or surveyed before
//! a core starts, and a core recovers its shards before it is kept.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use csd_nvme::controller::Subsystem;
use csd_reactor::{Buffer, Class, CoreId, call, core_count, core_id, random_u64, set_core_local};

use crate::config::HostLimits;
use crate::controller::{Access, Controllers, CoreCounters, ExecutionLog, Settings};
use crate::describe::{self, MDTS};
use crate::error::Error;
use crate::format::{self, SHARDS, Split, Superblock};
use crate::log::Log;
use crate::media::{Media, Syncer};
use crate::metrics::{CoreMetrics, Metrics};
use crate::namespace::block::{Block, COPY_BYTES_MAX};
use crate::namespace::compute::{Compute, Executions, Library, Limits, RangeSets};
use crate::namespace::gate::Gate;
use crate::namespace::kv::Kv;
use crate::namespace::kv::recover::{Found, survey};
use crate::namespace::kv::segments::Segments;
use crate::namespace::memory::LocalMemory;
use crate::namespace::{NSID_KV, NSID_OBJECTS};
use crate::pace::Pace;
use crate::provision::{Expose, Provision};
use crate::transport::accept::Connections;
use crate::transport::budget::Budget;
use crate::transport::newcomers::Newcomers;
use crate::transport::turns::Turns;

/// Bytes received at once on a core, whatever the connection.
const SCRATCH_BYTES: usize = 256 << 10;

/// A Copy may be as long as a transfer: that is what Identify says.
const _: () = assert!(COPY_BYTES_MAX == 4096 << MDTS);

/// What the cores of a drive share.
#[derive(Debug)]
pub struct Shared {
    /// What the drive is.
    pub subsystem: Subsystem,
    /// Who may connect.
    pub access: Access,
    /// The superblock of its medium.
    pub superblock: Superblock,
    /// Segments of the kv log, and what its namespaces count.
    pub segments: Arc<Segments>,
    /// Controllers.
    pub controllers: Controllers,
    /// The last executions.
    pub execution_log: ExecutionLog,
    /// How slow it is to be.
    pub pace: Pace,
    /// Counters by core.
    pub counters: Vec<Arc<CoreCounters>>,
    /// Connections by core.
    pub connections: Vec<AtomicUsize>,
    /// How much of them there may be.
    pub host_limits: HostLimits,
    /// Those of them whose hosts have not proved who they are.
    pub newcomers: Newcomers,
    /// Connections that were refused because there were too many.
    pub surplus: AtomicU64,
    /// What hosts have saved.
    pub settings: Arc<Settings>,
    /// The memory namespace.
    pub memory: LocalMemory,
    /// Programs that hosts have loaded.
    pub library: Arc<Library>,
    /// Memory range sets.
    pub range_sets: Arc<RangeSets>,
    /// Executions under way.
    pub executions: Arc<Executions>,
    /// What one execution may take.
    pub limits: Limits,
    /// Keeps writers of blocks out while a fused pair runs.
    pub gate: Arc<Gate>,
    /// The medium has become read-only.
    pub read_only: AtomicBool,
    /// What is counted of commands.
    pub metrics: Metrics,
    /// Which namespaces hosts see.
    expose: Expose,
    /// Where events are told.
    pub log: Log,
    /// The medium.
    pub media: Media,
    /// Its syncs.
    pub syncer: Syncer,
    found: Vec<Found>,
}

impl Shared {
    /// The medium.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Whether I/O commands may name this namespace; that of all namespaces is not one.
    pub fn serves(&self, nsid: u32) -> bool {
        self.expose.has(nsid)
    }

    /// Where events are told.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

/// A drive on one of its cores.
pub struct Core {
    /// What the cores share.
    pub shared: Arc<Shared>,
    /// The block namespace.
    pub block: Block,
    /// The kv namespaces.
    pub kv: Rc<Kv>,
    /// The compute namespace.
    pub compute: Compute,
    /// Longest value in bytes.
    pub value_bytes_max: u32,
    /// This core's counters.
    pub counters: Arc<CoreCounters>,
    /// This core's count of commands.
    pub metrics: Arc<CoreMetrics>,
    /// This core's connections.
    pub connections: Connections,
    /// Turns at what authentication computes.
    pub turns: Rc<Turns>,
    /// Memory for data on its way.
    pub budget: Rc<Budget>,
    /// Where bytes are received, by one connection at a time.
    pub scratch: RefCell<Buffer>,
}

/// Opens a medium: formats a new one, surveys an old one. Runs on the drive's first core.
///
/// # Errors
/// When the medium is unusable, or the provision impossible.
pub async fn open(
    media: Media,
    is_new: bool,
    nqn: &str,
    split: &Split,
    provision: &Provision,
) -> Result<Arc<Shared>, Error> {
    provision.check()?;
    let superblock = match is_new {
        true => format::format(&media, split).await?,
        false => format::open(&media).await?,
    };
    let segment_bytes = superblock.segment_bytes();
    let count = u32::try_from(superblock.kv_length() / segment_bytes)
        .map_err(|_| Error::Format("too many kv segments".into()))?;
    let nsids = [NSID_KV, NSID_OBJECTS].map(|nsid| u16::try_from(nsid).expect("2 and 3"));
    let (uuid, offset) = (superblock.uuid(), superblock.kv_offset());
    let segments = Arc::new(Segments::new(uuid, offset, segment_bytes, count, &nsids));
    if media.is_read_only() {
        segments.salvage();
    }
    let found = survey(&media, &segments, SHARDS, random_u64()).await?;
    let settings = Settings::open(&media, uuid).await?;
    settings.apply(&segments);
    let cores = core_count();
    Ok(Arc::new(Shared {
        subsystem: describe::subsystem(nqn, &superblock, &segments, provision),
        access: Access::default(),
        superblock,
        segments,
        controllers: Controllers::default(),
        execution_log: ExecutionLog::default(),
        pace: Pace::default(),
        counters: (0..cores).map(|_| Arc::default()).collect(),
        connections: (0..cores).map(|_| AtomicUsize::new(0)).collect(),
        host_limits: HostLimits::default(),
        newcomers: Newcomers::default(),
        surplus: AtomicU64::new(0),
        settings: Arc::new(settings),
        library: Arc::new(Library::new(
            provision.engines.clone(),
            provision.admission.clone(),
            provision.shared_compute,
        )),
        range_sets: Arc::new(RangeSets::new(provision.shared_compute)),
        // What hosts do not see is not there for their copies either.
        memory: LocalMemory::new(match provision.expose {
            Expose::All => provision.memory_bytes,
            _ => 0,
        }),
        executions: Arc::default(),
        limits: provision.limits,
        gate: Arc::new(Gate::new(cores)),
        read_only: AtomicBool::new(media.is_read_only()),
        metrics: Metrics::new(cores),
        expose: provision.expose,
        log: Log::default(),
        syncer: Syncer::new(media.clone()),
        media,
        found,
    }))
}

/// Starts a drive on this core: recovers its shards and keeps the [`Core`].
///
/// # Errors
/// When the medium fails.
pub async fn start(shared: Arc<Shared>) -> Result<Rc<Core>, Error> {
    let media = shared.media.clone();
    let syncer = Rc::new(shared.syncer.clone());
    let superblock = &shared.superblock;
    let block = Block::new(
        media.clone(),
        Rc::clone(&syncer),
        Arc::clone(&shared.gate),
        (superblock.block_offset(), superblock.block_length()),
        superblock.block_bytes(),
    );
    let value_bytes_max = superblock.value_bytes_max();
    let segments = Arc::clone(&shared.segments);
    let kv = Kv::recover(media, segments, value_bytes_max, syncer, &shared.found).await?;
    let core = Rc::new(Core {
        compute: Compute::new(block.clone(), Rc::clone(&kv), Arc::clone(&shared)),
        block,
        kv,
        value_bytes_max,
        counters: Arc::clone(&shared.counters[core_id().0]),
        metrics: shared.metrics.core(core_id().0),
        connections: Connections::default(),
        budget: Rc::new(shared.host_limits.core_budget()),
        turns: Rc::new(Turns::new(Arc::clone(&shared.counters[core_id().0]))),
        scratch: RefCell::new(Buffer::zeroed(SCRATCH_BYTES)),
        shared,
    });
    set_core_local(Rc::clone(&core));
    Ok(core)
}

/// Starts a drive on all cores, from the first one.
///
/// # Errors
/// When the medium fails on any.
pub async fn start_all(shared: &Arc<Shared>) -> Result<(), Error> {
    for core in 0..core_count() {
        let shared = Arc::clone(shared);
        let there = move || async move { start(shared).await.map(|_| ()) };
        let started = call(CoreId(core), Class::System, there).await;
        started.map_err(|_| Error::Runtime(format!("core {core} is gone")))??;
    }
    Ok(())
}
