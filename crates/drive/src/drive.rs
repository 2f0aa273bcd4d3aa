//! Assembly of a drive: [`Shared`] over all cores, one [`Core`] per core.
//!
//! Invariant: the medium is formatted or surveyed before a core starts, and a core recovers its
//! shards before other cores can reach it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use csd_kernels::program::Limits;
use csd_kvlog::Kv;
use csd_kvlog::epochs::Epochs;
use csd_kvlog::format::{
    self, FEATURE_MARK, FEATURE_SHARED, SHARDS, Split, Superblock, UUID_OFFSET,
};
use csd_kvlog::mark::Mark;
use csd_kvlog::media::{Media, Syncer};
use csd_kvlog::recover::{Found, by_mark, lost, survey};
use csd_kvlog::segments::Segments;
use csd_nvme::controller::Subsystem;
use csd_nvme::feature::FeatureId;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};
use csd_reactor::{Buffer, core_count, core_id, now, random_u64, set_core_local};

use crate::compute::{self, Compute, Executions, Library, RangeSets};
use crate::config::HostLimits;
use crate::controller::{Access, Controllers, CoreCounters, ExecutionLog, InsideOnly, Settings};
use crate::core_choice::CoreChoice;
use crate::dedup::Dedup;
use crate::describe;
use crate::error::Error;
use crate::folders;
use crate::kv_store::KvStore;
use crate::limits::MDTS;
use crate::log::Log;
use crate::metrics::{CoreMetrics, Metrics};
use crate::namespace::block::{Block, COPY_BYTES_MAX};
use crate::namespace::memory::LocalMemory;
use crate::namespace::write_gate::WriteGate;
use crate::peers::Peers;
use crate::resources::{self, Expose, Resources};
use crate::services::controls::Services;
use crate::services::gate::Gate;
use crate::throttle::Throttle;
use crate::transport::auth_scheduler::AuthScheduler;
use crate::transport::budget::Budget;
use crate::transport::cause::Causes;
use crate::transport::connections::Connections;
use crate::transport::unauthenticated::Unauthenticated;
use crate::tunnel::Tunnel;

/// Most bytes that one receive call of a core takes.
const SCRATCH_BYTES: usize = 256 << 10;

/// A Copy may be as long as a transfer, as Identify says.
const _: () = assert!(COPY_BYTES_MAX == 4096 << MDTS);

/// State that the cores of a drive share.
#[derive(Debug)]
pub struct Shared {
    /// Identity of the drive, with its namespaces.
    pub subsystem: Subsystem,
    /// Hosts that may connect.
    pub access: Access,
    /// Superblock of the medium.
    pub superblock: Superblock,
    /// Segments of the kv log, and counters of its namespaces.
    pub segments: Arc<Segments>,
    /// Controllers.
    pub controllers: Controllers,
    /// Log of the last executions.
    pub execution_log: ExecutionLog,
    /// Tunnel, if there is one.
    pub tunnel: Option<Tunnel>,
    /// Device model that answers are delayed by.
    pub throttle: Throttle,
    /// Counters by core.
    pub counters: Vec<Arc<CoreCounters>>,
    /// Number of connections that were accepted; the last one's number.
    pub accepted: AtomicU64,
    /// Number of connections by core.
    pub connections: Vec<AtomicUsize>,
    /// Limits of connections and of their memory.
    pub host_limits: HostLimits,
    /// Connections whose hosts have not authenticated themselves.
    pub unauthenticated: Unauthenticated,
    /// Number of connections that were refused because there were too many.
    pub surplus: AtomicU64,
    /// Number of connections that ended, by cause.
    pub causes: Causes,
    /// Settings of hosts: saved features and write protection.
    pub settings: Arc<Settings>,
    /// Drives that this drive may work with, if it has a file of peers.
    pub peers: Option<Arc<Peers>>,
    /// State in which only the inside changes blocks.
    pub inside_only: Arc<InsideOnly>,
    /// Memory namespace.
    pub memory: Arc<LocalMemory>,
    /// Programs that hosts have loaded.
    pub library: Arc<Library>,
    /// Memory range sets.
    pub range_sets: Arc<RangeSets>,
    /// Executions that run.
    pub executions: Arc<Executions>,
    /// Limits of one execution.
    pub limits: Limits,
    /// Gate that keeps writers of blocks out while a fused pair runs.
    pub write_gate: Arc<WriteGate>,
    /// True once the medium has become read-only.
    pub read_only: AtomicBool,
    /// Counts of commands.
    pub metrics: Metrics,
    /// Settings and counts of the drive's services.
    pub services: Services,
    /// Chunks of the drive's values, if it counts them.
    pub dedup: Option<Dedup>,
    /// Choice of the core on which they are counted.
    pub core_choice: Arc<CoreChoice>,
    /// Store that takes the log's place for the users' kv namespace.
    pub kv_store: Option<Arc<dyn KvStore>>,
    /// Namespaces that hosts see.
    expose: Expose,
    /// Log of events.
    pub log: Log,
    /// Medium.
    pub media: Media,
    /// Syncs of the medium.
    pub syncer: Syncer,
    found: Vec<Found>,
}

impl Shared {
    /// Returns the medium.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Returns true if I/O commands may name this namespace. NSID FFFFFFFFh is none.
    pub fn serves(&self, nsid: u32) -> bool {
        self.expose.has(nsid)
    }

    /// Notes that the drive serves its inside, too.
    pub fn serve_inside(&self) {
        self.metrics.serve_inside();
        self.inside_only.serve();
    }

    /// Returns the log of events.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

/// A drive on one of its cores.
pub struct Core {
    /// State that the cores share.
    pub shared: Arc<Shared>,
    /// Block namespace.
    pub block: Block,
    /// kv namespaces.
    pub kv: Rc<Kv>,
    /// Compute namespace.
    pub compute: Rc<Compute>,
    /// Longest value of the kv namespaces in bytes.
    pub value_bytes_max: u32,
    /// Counters of this core.
    pub counters: Arc<CoreCounters>,
    /// Counts of commands on this core.
    pub metrics: Arc<CoreMetrics>,
    /// Connections of this core.
    pub connections: Rc<Connections>,
    /// Gate at which services of this core wait until they may begin a step.
    pub gate: Rc<Gate>,
    /// AuthScheduler at the computations of authentication.
    pub auth_scheduler: Rc<AuthScheduler>,
    /// Memory for data between hosts and the medium.
    pub budget: Rc<Budget>,
    /// Receive buffer, used by one connection at a time.
    pub scratch: RefCell<Buffer>,
}

/// Opens a medium: formats a new one, surveys an old one. Runs on the drive's first core.
///
/// # Errors
/// When the medium is unusable, or the resources are impossible.
pub async fn open(
    media: Media,
    is_new: bool,
    nqn: &str,
    split: &Split,
    resources: &Resources,
) -> Result<Arc<Shared>, Error> {
    resources.check()?;
    let superblock = match is_new {
        true => format::format(&media, split).await?,
        false => format::open(&media).await?,
    };
    let segment_bytes = superblock.segment_bytes();
    let count = u32::try_from(superblock.kv_length() / segment_bytes)
        .map_err(|_| csd_kvlog::Error::Format("too many kv segments".into()))?;
    let nsids = [NSID_KV, NSID_OBJECTS].map(|nsid| u16::try_from(nsid).expect("2 and 3"));
    let (uuid, at) = (superblock.uuid(), superblock.kv_offset());
    let segments = Segments::new(uuid, at, segment_bytes, count, &nsids).of_format(&superblock);
    resources::check_index(resources.kv_index, superblock.kv_length())?;
    let segments = segments.with_index(resources.kv_index, resources.index_memory_bytes);
    if media.is_read_only() {
        segments.salvage();
    }
    let (syncer, settings) = (Syncer::new(media.clone()), Settings::open(&media, uuid).await?);
    syncer.expect(UUID_OFFSET, uuid);
    let (segments, found) = open_log(&syncer, segments, &superblock, resources).await?;
    settings.apply(&segments);
    let subsystem = describe::subsystem(nqn, &superblock, &segments, resources);
    let (cores, counters) = (core_count(), counters());
    Ok(Arc::new(Shared {
        access: Access::default(),
        superblock,
        segments,
        controllers: Controllers::default(),
        execution_log: ExecutionLog::default(),
        tunnel: resources.tunnel.clone().map(Tunnel::new),
        throttle: Throttle::default(),
        core_choice: Arc::new(CoreChoice::new(resources.policy, counters.clone(), now().ns())),
        counters,
        accepted: AtomicU64::new(0),
        connections: (0..cores).map(|_| AtomicUsize::new(0)).collect(),
        host_limits: HostLimits::default(),
        unauthenticated: Unauthenticated::default(),
        surplus: AtomicU64::new(0),
        causes: Causes::default(),
        peers: resources.peers.clone().map(|list| Arc::new(Peers::new(list, &subsystem.nqn))),
        inside_only: Arc::new(inside_only(&settings)),
        subsystem,
        settings: Arc::new(settings),
        library: Arc::new(library(resources)),
        range_sets: Arc::new(RangeSets::new(resources.shared_compute)),
        memory: Arc::new(memory(resources)),
        executions: Arc::default(),
        limits: resources.limits,
        write_gate: Arc::new(WriteGate::new(cores)),
        read_only: AtomicBool::new(media.is_read_only()),
        metrics: Metrics::new(cores),
        services: Services::default(),
        dedup: resources.dedup.map(Dedup::new),
        kv_store: resources.kv_store.clone(),
        expose: resources.expose,
        log: Log::default(),
        syncer,
        media,
        found,
    }))
}

/// Returns counters for each core.
fn counters() -> Vec<Arc<CoreCounters>> {
    (0..core_count()).map(|_| Arc::default()).collect()
}

/// Returns the memory namespace. Copies cannot name a namespace that hosts do not see.
fn memory(resources: &Resources) -> LocalMemory {
    LocalMemory::new(if resources.expose == Expose::All { resources.memory_bytes } else { 0 })
}

/// Returns an empty library of programs.
fn library(resources: &Resources) -> Library {
    let (engines, admission) = (resources.engines.clone(), resources.admission.clone());
    Library::new(engines, admission, resources.shared_compute)
}

/// Returns the state in which only the inside changes blocks, as it was saved.
fn inside_only(settings: &Settings) -> InsideOnly {
    InsideOnly::new(settings.saved(FeatureId::INSIDE_ONLY, NSID_BLOCK) == Some(1))
}

/// Surveys the kv log. If the medium has a mark, the log ends there.
async fn open_log(
    syncer: &Syncer,
    mut segments: Segments,
    superblock: &Superblock,
    resources: &Resources,
) -> Result<(Arc<Segments>, Vec<Found>), Error> {
    let media = syncer.media();
    if resources.volatile_cache && !segments.has_checkpoints() {
        return Err(Error::Usage(format!(
            "--volatile-cache needs a medium of format version 2, and this one has version {}: \
             leave the option out, or copy the values to a new medium",
            segments.version
        )));
    }
    let is_marked = superblock.features_needed() & FEATURE_MARK != 0;
    let mark = if is_marked { by_mark::read(media, &segments).await? } else { None };
    let mut found = survey(media, &segments, SHARDS, random_u64()).await?;
    if let Some(mark) = &mark {
        let lost = lost::by_mark(media, &segments, mark, &found).await?;
        for text in lost.into_iter().chain(by_mark::apply(mark, &mut found, &segments)) {
            segments.damaged(text)?;
        }
    }
    if media.is_read_only() {
        return Ok((Arc::new(segments), found));
    }
    if let Some(mark) = &mark {
        // After a kill it may have been read from a cache of the machine.
        mark.write(media, &segments.uuid).await?;
        syncer.sync().await?;
    }
    if resources.volatile_cache && !media.is_volatile() {
        // A mark that does not count may still be there: the next one is newer.
        let last = Mark::newest(Mark::read(media, &segments.uuid).await?);
        let closed = last.map_or(0, |mark| mark.epoch);
        let epochs = Epochs::new(syncer.clone(), segments.uuid, closed, mark);
        segments.epochs = Some(Arc::new(epochs));
    }
    Ok((Arc::new(segments), found))
}

/// Says on the medium that the drive may share chunks of values, and makes the medium's mark count
/// if the drive has a volatile cache, and not if it has none. The shards have recovered: everything
/// behind an old mark is durably gone.
pub(crate) async fn set_features(shared: &Shared) -> Result<(), Error> {
    let superblock = &shared.superblock;
    let shares = shared.dedup.as_ref().is_some_and(|dedup| dedup.sharing().is_some());
    let sharing = if shares { FEATURE_SHARED } else { 0 };
    let others = superblock.features_needed() & !FEATURE_MARK | sharing;
    let is_marked = superblock.features_needed() & FEATURE_MARK != 0;
    match &shared.segments.epochs {
        Some(epochs) => {
            if !is_marked {
                epochs.close(epochs.current()).await?;
            }
            Ok(format::set_needed(&shared.syncer, superblock, others | FEATURE_MARK).await?)
        }
        None if others != superblock.features_needed() && !shared.media.is_read_only() => {
            Ok(format::set_needed(&shared.syncer, superblock, others).await?)
        }
        None => Ok(()),
    }
}

/// Starts a drive on this core: recovers its shards and makes its [`Core`] a core-local value.
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
        Arc::clone(&shared.write_gate),
        (superblock.block_offset(), superblock.block_length()),
        superblock.block_bytes(),
    );
    let value_bytes_max = superblock.value_bytes_max();
    let segments = Arc::clone(&shared.segments);
    let kv = Kv::recover(media, segments, value_bytes_max, syncer, &shared.found).await?;
    folders::start(&kv);
    let connections = Rc::<Connections>::default();
    set_core_local(Rc::clone(&connections));
    let gate = Rc::<Gate>::default();
    set_core_local(Rc::clone(&gate));
    let core = Rc::new(Core {
        compute: Compute::start(block.clone(), Rc::clone(&kv), executed(&shared)),
        block,
        kv,
        value_bytes_max: value_bytes_max.min(shared.subsystem.transfer_bytes_max()),
        counters: Arc::clone(&shared.counters[core_id().0]),
        metrics: shared.metrics.core(core_id().0),
        connections,
        gate,
        budget: Rc::new(shared.host_limits.core_budget()),
        auth_scheduler: Rc::new(AuthScheduler::new(Arc::clone(&shared.counters[core_id().0]))),
        scratch: RefCell::new(Buffer::zeroed(SCRATCH_BYTES)),
        shared,
    });
    set_core_local(Rc::clone(&core));
    Ok(core)
}

/// Returns the state that executions share.
fn executed(shared: &Shared) -> compute::Shared {
    compute::Shared {
        memory: Arc::clone(&shared.memory),
        library: Arc::clone(&shared.library),
        range_sets: Arc::clone(&shared.range_sets),
        executions: Arc::clone(&shared.executions),
        limits: shared.limits,
        value_bytes_max: shared.superblock.value_bytes_max(),
        settings: Arc::clone(&shared.settings),
        inside_only: Arc::clone(&shared.inside_only),
        peers: shared.peers.clone(),
        log: shared.log.clone(),
    }
}
