//! A drive put together: medium, namespaces, controllers; one [`Core`] per core.
//!
//! Never: bytes of the wire. Invariants: the medium is formatted or recovered before the first
//! connection is accepted; with the stop request the drive takes no new connections or commands,
//! answers those it has, and ends.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use csd_nvme::controller::Subsystem;
use csd_reactor::{
    BackendKind, Buffer, Class, CoreId, Semaphore, call, core_count, core_id, keep, spawn,
    stop_requested, yield_now,
};

use crate::controller::{Controllers, CoreCounters, ExecutionLog, Settings};
use crate::describe::{self, MDTS};
use crate::error::Error;
use crate::format::{self, SHARDS, Split, Superblock};
use crate::life;
use crate::log::{Log, Rate};
use crate::media::{Direct, Media, Syncer};
use crate::metrics::{self, CoreMetrics, Metrics};
use crate::namespace::block::{Block, COPY_BYTES_MAX};
use crate::namespace::compute::{Compute, Executions, Library, Limits, RangeSets};
use crate::namespace::gate::Gate;
use crate::namespace::kv::Kv;
use crate::namespace::kv::recover::{Found, survey};
use crate::namespace::kv::segments::Segments;
use crate::namespace::memory::LocalMemory;
use crate::namespace::{NSID_KV, NSID_OBJECTS};
use crate::pace::{Model, Pace};
use crate::provision::Provision;
use crate::transport::accept::{Connections, accept};

/// Bytes received at once on a core, whatever the connection.
const SCRATCH_BYTES: usize = 256 << 10;
/// Memory for data that hosts were granted to send, per core.
const BUDGET_BYTES: u32 = 64 << 20;
/// Unit of that budget.
const BUDGET_UNIT_BYTES: u32 = 4096;

/// A Copy may be as long as a transfer: that is what Identify says.
const _: () = assert!(COPY_BYTES_MAX == 4096 << MDTS);

/// What keeps a drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Memory: gone when the drive stops.
    Memory,
    /// A plain file, created when it does not exist, or a block device.
    File(PathBuf),
}

/// How to serve a drive.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// NVMe Qualified Name of the subsystem; empty for one made from the drive's identifier.
    pub nqn: String,
    /// What keeps the bytes.
    pub media: MediaKind,
    /// Size of a new medium in bytes; 0 for all of a block device.
    pub size_bytes: u64,
    /// Whether a file or device is used past the page cache.
    pub direct: Direct,
    /// Share of the kv namespaces in percent.
    pub kv_percent: u8,
    /// Share kept free for the drive's own work in percent.
    pub reserve_percent: u8,
    /// Size of a logical block in bytes: 512 or 4096.
    pub block_bytes: u32,
    /// What it is given beside its medium.
    pub provision: Provision,
    /// Number of cores.
    pub cores: usize,
    /// Back end of the reactor.
    pub backend: BackendKind,
    /// Microseconds to spin after work before sleeping.
    pub spin_us: u32,
    /// Longest wait for commands in flight when the drive is asked to stop.
    pub drain: Duration,
    /// Address of the Prometheus endpoint; none without it.
    pub metrics: Option<SocketAddr>,
    /// The device whose pace it keeps, if any.
    pub pace: Option<Model>,
    /// Where events are told.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], csd_nvme::PORT)),
            nqn: String::new(),
            media: MediaKind::Memory,
            size_bytes: 1 << 30,
            direct: Direct::Auto,
            kv_percent: 50,
            reserve_percent: 10,
            block_bytes: 4096,
            provision: Provision::default(),
            cores: 1,
            backend: BackendKind::Auto,
            spin_us: 50,
            drain: Duration::from_secs(5),
            metrics: None,
            pace: None,
            log: Log::default(),
        }
    }
}

/// What the cores of a drive share.
#[derive(Debug)]
pub struct Shared {
    /// What the drive is.
    pub subsystem: Subsystem,
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
    log: OnceLock<Log>,
    /// The medium.
    pub media: Media,
    found: Vec<Found>,
}

impl Shared {
    /// The medium.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Where events are told.
    pub fn log(&self) -> &Log {
        self.log.get_or_init(Log::default)
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
    /// How often media errors are told.
    pub media_error_rate: Rate,
    /// This core's connections.
    pub connections: Connections,
    /// Memory for granted data, in pages.
    pub budget: Semaphore,
    /// Where bytes are received, by one connection at a time.
    pub scratch: RefCell<Buffer>,
}

impl Core {
    /// Units of the budget that `bytes` bytes take.
    pub fn budget_units(bytes: u32) -> usize {
        bytes.div_ceil(BUDGET_UNIT_BYTES) as usize
    }
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
    let found = survey(&media, &segments, SHARDS).await?;
    let settings = Settings::open(&media, uuid).await?;
    settings.apply(&segments);
    let cores = core_count();
    Ok(Arc::new(Shared {
        subsystem: describe::subsystem(nqn, &superblock, &segments, provision),
        superblock,
        segments,
        controllers: Controllers::default(),
        execution_log: ExecutionLog::default(),
        pace: Pace::default(),
        counters: (0..cores).map(|_| Arc::default()).collect(),
        connections: (0..cores).map(|_| AtomicUsize::new(0)).collect(),
        settings: Arc::new(settings),
        memory: LocalMemory::new(provision.memory_bytes),
        library: Arc::new(Library::new(provision.engines.clone(), provision.admission.clone())),
        range_sets: Arc::default(),
        executions: Arc::default(),
        limits: provision.limits,
        gate: Arc::new(Gate::new(cores)),
        read_only: AtomicBool::new(false),
        metrics: Metrics::new(cores),
        log: OnceLock::new(),
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
    let syncer = Rc::new(Syncer::new(media.clone()));
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
        media_error_rate: Rate::default(),
        connections: Connections::default(),
        budget: Semaphore::new(Core::budget_units(BUDGET_BYTES)),
        scratch: RefCell::new(Buffer::zeroed(SCRATCH_BYTES)),
        shared,
    });
    keep(Rc::clone(&core));
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

/// What is known of a drive once hosts can connect.
#[derive(Clone, Debug)]
pub struct Started {
    /// The address it listens on.
    pub address: SocketAddr,
    /// How it uses its medium, in words: whether direct I/O is on.
    pub media: String,
}

type Ready = Mutex<Option<Box<dyn FnOnce(&Started) + Send>>>;

async fn first_core(config: &Config, ready: &Ready) -> Result<(), Error> {
    let split = Split {
        kv_percent: config.kv_percent,
        reserve_percent: config.reserve_percent,
        block_bytes: config.block_bytes,
    };
    let listener = life::listen(config.listen)?;
    let address = listener.local_addr().map_err(|error| Error::Runtime(error.to_string()))?;
    let scraped = config.metrics.map(life::listen).transpose()?;
    let (media, is_new) = life::open_media(config, &split).await?;
    let shared = open(media, is_new, &config.nqn, &split, &config.provision).await?;
    // Nobody has asked for it before.
    let _ = shared.log.set(config.log.clone());
    if let Some(model) = &config.pace {
        shared.pace.set(model.clone());
    }
    start_all(&shared).await?;
    let accepting = spawn(Class::System, accept(listener, Arc::clone(&shared)));
    if let Some(listener) = scraped {
        shared.metrics.measure();
        drop(spawn(Class::System, metrics::serve(listener, Arc::clone(&shared))));
    }
    // From the moment that anybody knows of the drive a signal drains it.
    let stop = spawn(Class::System, stop_requested());
    yield_now().await;
    life::told_start(&shared, address);
    let ready = ready.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ready) = ready {
        ready(&Started { address, media: shared.media.note().to_owned() });
    }
    stop.await;
    accepting.abort();
    life::drain(&shared, config.drain).await
}

/// Serves a drive until the process is asked to stop; calls `ready` with the address once hosts
/// can connect.
///
/// # Errors
/// When the drive cannot be opened or served.
pub fn serve(
    config: &Config,
    ready: impl FnOnce(SocketAddr) + Send + 'static,
) -> Result<(), Error> {
    serve_told(config, move |started: &Started| ready(started.address))
}

/// As [`serve`], with all that is known once hosts can connect.
///
/// # Errors
/// When the drive cannot be opened or served.
pub fn serve_told(
    config: &Config,
    ready: impl FnOnce(&Started) + Send + 'static,
) -> Result<(), Error> {
    let runtime = csd_reactor::Config {
        backend: config.backend,
        cores: config.cores.max(1),
        spin_us: config.spin_us,
        name: "drive".into(),
        ..csd_reactor::Config::default()
    };
    let config = config.clone();
    let ready: Arc<Ready> = Arc::new(Mutex::new(Some(Box::new(ready))));
    let main = move |core: CoreId| {
        let (config, ready) = (config.clone(), Arc::clone(&ready));
        async move {
            if core == CoreId(0) {
                let result = first_core(&config, &ready).await;
                life::end_others();
                return result;
            }
            life::other_core().await;
            Ok(())
        }
    };
    let results =
        csd_reactor::run(&runtime, main).map_err(|error| Error::Runtime(error.to_string()))?;
    results.into_iter().collect()
}
