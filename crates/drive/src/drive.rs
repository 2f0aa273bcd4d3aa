//! A drive put together: medium, namespaces, controllers; one [`Core`] per core.
//!
//! Never: bytes of the wire. Invariants: the medium is formatted or recovered before the first
//! connection is accepted; with the stop request the drive takes no new connections and ends.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use csd_nvme::controller::{Event, Namespace, NamespaceKind, Subsystem};
use csd_nvme::status::Status;
use csd_reactor::{
    BackendKind, Buffer, Class, CoreId, Listener, Semaphore, call, core_count, core_id, keep, kept,
    post, spawn, stop_requested,
};

use crate::controller::{Access, Controllers, CoreCounters};
use crate::error::Error;
use crate::format::{self, SHARDS, Split, Superblock};
use crate::media::{FileMedia, Media, Memory, Syncer};
use crate::namespace::block::Block;
use crate::namespace::compute::{self, Compute};
use crate::namespace::kv::Kv;
use crate::namespace::kv::recover::{Found, survey};
use crate::namespace::kv::segments::Segments;
use crate::namespace::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_OBJECTS};
use crate::stop::{end_others, other_core};
use crate::transport::IN_CAPSULE_BYTES_MAX;
use crate::transport::accept::{Connections, accept};

/// Bytes received at once on a core, whatever the connection.
const SCRATCH_BYTES: usize = 256 << 10;
/// Memory for data that hosts were granted to send, per core.
const BUDGET_BYTES: u32 = 64 << 20;
/// Unit of that budget.
const BUDGET_UNIT_BYTES: u32 = 4096;
/// Most I/O queues of one controller.
const IO_QUEUES_MAX: u16 = 128;
/// Most entries of a queue.
const QUEUE_ENTRIES_MAX: u16 = 1024;
/// Maximum data transfer size: 2^12 pages of 4 KiB are 16 MiB, the longest value.
const MDTS: u8 = 12;

/// What keeps a drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Memory: gone when the drive stops.
    Memory,
    /// A plain file, created when it does not exist.
    File(PathBuf),
}

/// How to serve a drive.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// NVMe Qualified Name of the subsystem; empty for one made from the drive's identifier.
    pub nqn: String,
    /// Who may connect.
    pub access: Access,
    /// What keeps the bytes.
    pub media: MediaKind,
    /// Size of a new medium in bytes.
    pub size_bytes: u64,
    /// Share of the kv namespaces in percent.
    pub kv_percent: u8,
    /// Share kept free for the drive's own work in percent.
    pub reserve_percent: u8,
    /// Size of a logical block in bytes: 512 or 4096.
    pub block_bytes: u32,
    /// Number of cores.
    pub cores: usize,
    /// Back end of the reactor.
    pub backend: BackendKind,
    /// Microseconds to spin after work before sleeping.
    pub spin_us: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], csd_nvme::PORT)),
            nqn: String::new(),
            access: Access::default(),
            media: MediaKind::Memory,
            size_bytes: 1 << 30,
            kv_percent: 50,
            reserve_percent: 10,
            block_bytes: 4096,
            cores: 1,
            backend: BackendKind::Auto,
            spin_us: 50,
        }
    }
}

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
    /// Counters by core.
    pub counters: Vec<Arc<CoreCounters>>,
    /// Connections by core.
    pub connections: Vec<AtomicUsize>,
    /// The medium has become read-only.
    pub read_only: AtomicBool,
    media: Media,
    found: Vec<Found>,
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

    /// Notes a failed command: media errors are counted, and a medium that has become read-only
    /// is told to every host.
    pub fn note_failure(&self, status: Status) {
        let media = matches!(
            status,
            Status::WRITE_FAULT
                | Status::UNRECOVERED_READ_ERROR
                | Status::NAMESPACE_WRITE_PROTECTED
        );
        if !media {
            return;
        }
        CoreCounters::add(&self.counters.media_errors, 1);
        let read_only = status == Status::NAMESPACE_WRITE_PROTECTED;
        if read_only && !self.shared.read_only.swap(true, Relaxed) {
            for core in 0..core_count() {
                // A core that is gone has no hosts to tell.
                let _ = post(CoreId(core), Class::System, || {
                    if let Some(core) = kept::<Self>() {
                        core.connections.raise(Event::ReadOnly);
                    }
                });
            }
        }
    }
}

fn subsystem(nqn: &str, superblock: &Superblock, segments: &Segments) -> Subsystem {
    let uuid = superblock.uuid();
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let nqn = match nqn {
        "" => format!("nqn.2026-11.io.csdstore:{hex}"),
        name => name.to_owned(),
    };
    let namespace = |nsid: u32, kind| {
        let mut nguid = uuid;
        nguid[15] = nguid[15].wrapping_add(u8::try_from(nsid).expect("few namespaces"));
        Namespace { nsid, nguid, kind }
    };
    let block_bytes = superblock.block_bytes();
    let blocks = superblock.block_length() / u64::from(block_bytes);
    let block_bytes_log2 = u8::try_from(block_bytes.ilog2()).expect("9 or 12");
    let kv = NamespaceKind::Kv {
        bytes: segments.capacity_bytes(),
        value_bytes_max: superblock.value_bytes_max(),
    };
    Subsystem {
        nqn,
        serial: hex[..20].to_owned(),
        model: "CSDStore drive".into(),
        firmware: env!("CARGO_PKG_VERSION").into(),
        namespaces: vec![
            namespace(NSID_BLOCK, NamespaceKind::Block { blocks, block_bytes_log2 }),
            namespace(NSID_KV, kv.clone()),
            namespace(NSID_OBJECTS, kv),
            namespace(NSID_COMPUTE, NamespaceKind::Compute { programs: compute::programs() }),
        ],
        volatile_cache: true,
        io_queues_max: IO_QUEUES_MAX,
        queue_entries_max: QUEUE_ENTRIES_MAX,
        mdts: MDTS,
        in_capsule_bytes_max: IN_CAPSULE_BYTES_MAX,
    }
}

/// Opens a medium: formats a new one, surveys an old one. Runs on the drive's first core.
///
/// # Errors
/// When the medium is unusable.
pub async fn open(
    media: Media,
    is_new: bool,
    nqn: &str,
    split: &Split,
) -> Result<Arc<Shared>, Error> {
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
    let cores = core_count();
    Ok(Arc::new(Shared {
        subsystem: subsystem(nqn, &superblock, &segments),
        access: Access::default(),
        superblock,
        segments,
        controllers: Controllers::default(),
        counters: (0..cores).map(|_| Arc::default()).collect(),
        connections: (0..cores).map(|_| AtomicUsize::new(0)).collect(),
        read_only: AtomicBool::new(false),
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
        superblock.block_offset(),
        superblock.block_length(),
        superblock.block_bytes(),
    );
    let value_bytes_max = superblock.value_bytes_max();
    let segments = Arc::clone(&shared.segments);
    let kv = Kv::recover(media, segments, value_bytes_max, syncer, &shared.found).await?;
    let core = Rc::new(Core {
        compute: Compute::new(block.clone(), Rc::clone(&kv)),
        block,
        kv,
        value_bytes_max,
        counters: Arc::clone(&shared.counters[core_id().0]),
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

async fn open_media(config: &Config) -> Result<(Media, bool), Error> {
    match &config.media {
        MediaKind::Memory => Ok((Media::Memory(Arc::new(Memory::new(config.size_bytes))), true)),
        MediaKind::File(path) => {
            let (file, is_new) = FileMedia::open(path, config.size_bytes).await?;
            Ok((Media::File(file), is_new))
        }
    }
}

type Ready = Mutex<Option<Box<dyn FnOnce(SocketAddr) + Send>>>;

async fn first_core(config: &Config, ready: &Ready) -> Result<(), Error> {
    let split = Split {
        kv_percent: config.kv_percent,
        reserve_percent: config.reserve_percent,
        block_bytes: config.block_bytes,
    };
    // Impossible sizes are refused before a file is made.
    if config.media == MediaKind::Memory || !exists(&config.media) {
        Superblock::plan(config.size_bytes, &split, [0; 16])?;
    }
    let listening = |source| Error::Listen { address: config.listen, source };
    let listener = Listener::bind(config.listen).map_err(listening)?;
    let address = listener.local_addr().map_err(listening)?;
    let (media, is_new) = open_media(config).await?;
    let mut shared = open(media, is_new, &config.nqn, &split).await?;
    let alone = Arc::get_mut(&mut shared).expect("it was made just now");
    alone.access = config.access.clone();
    start_all(&shared).await?;
    drop(spawn(Class::System, accept(listener, shared)));
    let ready = ready.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ready) = ready {
        ready(address);
    }
    stop_requested().await;
    Ok(())
}

fn exists(media: &MediaKind) -> bool {
    matches!(media, MediaKind::File(path) if path.metadata().is_ok_and(|meta| meta.len() > 0))
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
                end_others();
                return result;
            }
            other_core().await;
            Ok(())
        }
    };
    let results =
        csd_reactor::run(&runtime, main).map_err(|error| Error::Runtime(error.to_string()))?;
    results.into_iter().collect()
}
