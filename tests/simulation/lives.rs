//! Lives of one simulated drive without a host: each opens the medium, works on the kv namespaces
//! directly, and ends in a clean stop or a power cut.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::dedup;
use csd_drive::drive::{self, Core};
use csd_drive::life::drain;
use csd_kvlog::IndexKind;
use csd_kvlog::format::{self, Split};
use csd_kvlog::media::{Faulty, Media, Volatile, VolatileConfig};
use csd_kvlog::segments::Segments;
use csd_kvlog::shard_of;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Buffer, Class, core_local, spawn};

pub use crate::writer::content;

/// The users' namespace, which has an index of either kind.
pub const NSID: u16 = 2;
/// Size of the smallest drive, bytes.
pub const SMALL: u64 = 128 << 20;
const LIMIT: Duration = Duration::from_secs(100_000);

/// Answer of a life, once there is one; an error has the reason why the drive could not be opened.
pub type Answer<T> = Rc<RefCell<Option<Result<T, String>>>>;

pub struct Lives {
    pub world: World,
    pub disk: Arc<Volatile>,
    media: Media,
    machine: MachineId,
    split: Split,
    formatted: bool,
    /// Each life has another kind of index than the one before, unless it is fixed.
    resources: Resources,
    index_is_fixed: bool,
}

/// Returns the kind of index of a seed.
pub fn index_of(seed: u64) -> IndexKind {
    if (seed >> 1).is_multiple_of(2) { IndexKind::Hash } else { IndexKind::Ordered }
}

impl Lives {
    pub fn new(seed: u64, cores: usize, bytes: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), cores);
        let disk = Arc::new(Volatile::new(bytes, VolatileConfig::default()));
        let media = Media::Volatile(Arc::clone(&disk));
        let split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
        let resources = Resources { kv_index: index_of(seed), ..Resources::default() };
        let (formatted, index_is_fixed) = (false, false);
        Self { world, disk, media, machine, split, formatted, resources, index_is_fixed }
    }

    /// Gives every life this kind of index, and a limit of the memory for keys.
    pub fn with_index(mut self, kind: IndexKind, memory_bytes: Option<u64>) -> Self {
        (self.resources.kv_index, self.resources.index_memory_bytes) = (kind, memory_bytes);
        self.index_is_fixed = true;
        self
    }

    /// Gives the next lives a volatile cache, or none.
    pub fn with_cache(&mut self, is_cached: bool) {
        self.resources.volatile_cache = is_cached;
    }

    /// Has the next lives count chunks.
    pub fn count_chunks(&mut self, options: dedup::Options) {
        self.resources.dedup = Some(options);
    }

    /// Wraps the disk in another medium.
    pub fn on(mut self, wrap: impl FnOnce(Media) -> Media) -> Self {
        self.media = wrap(self.media);
        self
    }

    /// Exchanges the disk, while no drive runs.
    pub fn on_disk(&mut self, disk: Volatile) {
        self.disk = Arc::new(disk);
        self.media = Media::Volatile(Arc::clone(&self.disk));
    }

    /// Says that a drive has formatted the disk.
    pub fn is_formatted(&mut self) {
        self.formatted = true;
    }

    /// Says that no drive has formatted the disk.
    pub fn is_blank(&mut self) {
        self.formatted = false;
    }

    /// Returns the most work between two yields since the last call.
    pub fn longest_poll(&self) -> u64 {
        self.world.longest_poll(self.machine)
    }

    pub fn draw(&self, below: u64) -> u64 {
        self.world.random_u64() % below
    }

    /// Opens the drive and starts work on it.
    pub fn begin<T: 'static, Fut: Future<Output = T> + 'static>(
        &mut self,
        work: impl FnOnce(Rc<Core>) -> Fut + 'static,
    ) -> Answer<T> {
        let answer: Answer<T> = Rc::default();
        let is_new = !std::mem::replace(&mut self.formatted, true);
        let (media, split, slot) = (self.media.clone(), self.split, Rc::clone(&answer));
        let work = Rc::new(RefCell::new(Some(work)));
        let resources = self.resources.clone();
        if !self.index_is_fixed {
            self.resources.kv_index = other(resources.kv_index);
        }
        self.world.start(self.machine, move |core| {
            let (media, slot) = (media.clone(), Rc::clone(&slot));
            let resources = resources.clone();
            let work = if core.0 == 0 { work.borrow_mut().take() } else { None };
            async move {
                if let Some(work) = work {
                    let result = match open(media, is_new, &split, &resources).await {
                        Ok(core) => Ok(work(core).await),
                        Err(error) => Err(error.to_string()),
                    };
                    *slot.borrow_mut() = Some(result);
                }
                std::future::pending().await
            }
        });
        answer
    }

    /// Waits for the answer of a life that has begun; the drive stays up.
    pub fn end<T>(&self, answer: &Answer<T>) -> Result<T, String> {
        let waited = self.world.run_until(|_| answer.borrow().is_some(), LIMIT);
        waited.unwrap_or_else(|stuck| panic!("the life does not end: {stuck}"));
        answer.borrow_mut().take().expect("just seen")
    }

    /// Does the work of a whole life; the drive stays up.
    pub fn live<T: 'static, Fut: Future<Output = T> + 'static>(
        &mut self,
        work: impl FnOnce(Rc<Core>) -> Fut + 'static,
    ) -> Result<T, String> {
        let answer = self.begin(work);
        self.end(&answer)
    }

    /// Cuts the power: `draw` decides which unsynced sectors land, as in [`Volatile::power_cut`].
    pub fn cut(&self, draw: impl FnMut() -> u64) {
        self.world.crash(self.machine);
        self.disk.power_cut(draw);
        self.disk.power_on();
    }

    /// Cuts the power; any subset of unsynced sectors lands.
    pub fn cut_at_random(&self) {
        self.cut(|| self.world.random_u64());
    }

    /// Cuts the power when so many accesses of the medium have begun, or the life has its answer.
    pub fn cut_after<T>(&self, medium: &Faulty, accesses: usize, answer: &Answer<T>) {
        let is_over = || medium.begun().len() >= accesses || answer.borrow().is_some();
        let waited = self.world.run_until(|_| is_over(), LIMIT);
        waited.unwrap_or_else(|stuck| panic!("the life does not go on: {stuck}"));
        self.cut_at_random();
    }

    /// Works on the medium while no drive runs; writes are durable.
    pub fn inspect<T: 'static, Fut: Future<Output = T> + 'static>(
        &self,
        work: impl Fn(Media) -> Fut + 'static,
    ) -> T {
        let media = Media::Volatile(Arc::clone(&self.disk));
        let done: Rc<RefCell<Option<T>>> = Rc::default();
        let (slot, work) = (Rc::clone(&done), Rc::new(work));
        self.world.start(self.machine, move |core| {
            let (media, slot, work) = (media.clone(), Rc::clone(&slot), Rc::clone(&work));
            async move {
                if core.0 == 0 {
                    let result = work(media.clone()).await;
                    media.sync().await.expect("synced");
                    *slot.borrow_mut() = Some(result);
                }
                std::future::pending().await
            }
        });
        let waited = self.world.run_until(|_| done.borrow().is_some(), LIMIT);
        waited.unwrap_or_else(|stuck| panic!("the look does not end: {stuck}"));
        self.cut_at_random();
        done.borrow_mut().take().expect("just seen")
    }
}

/// Returns the state of a medium's log before its survey.
pub async fn segments_of(media: &Media) -> Segments {
    let superblock = format::open(media).await.expect("a drive");
    let (bytes, offset) = (superblock.segment_bytes(), superblock.kv_offset());
    let count = u32::try_from(superblock.kv_length() / bytes).unwrap();
    let segments = Segments::new(superblock.uuid(), offset, bytes, count, &[]);
    segments.of_format(&superblock)
}

/// Returns the other kind of index.
pub fn other(kind: IndexKind) -> IndexKind {
    match kind {
        IndexKind::Hash => IndexKind::Ordered,
        IndexKind::Ordered => IndexKind::Hash,
    }
}

async fn open(
    media: Media,
    is_new: bool,
    split: &Split,
    resources: &Resources,
) -> Result<Rc<Core>, csd_drive::Error> {
    let shared = drive::open(media, is_new, "", split, resources).await?;
    csd_drive::life::start_all(&shared).await?;
    Ok(core_local::<Core>().expect("started"))
}

/// Stops the drive as SIGTERM does.
pub async fn stop(core: &Core) {
    drain(&core.shared, Duration::from_secs(10)).await.expect("stopped");
}

/// Returns keys of one shard.
pub fn keys_of(shard: usize) -> impl Iterator<Item = Key> {
    keys_in(NSID, shard)
}

/// Returns keys of one shard of a namespace.
pub fn keys_in(nsid: u16, shard: usize) -> impl Iterator<Item = Key> {
    let all = (0u32..).map(|number| Key::new(&number.to_be_bytes()).unwrap());
    all.filter(move |key| shard_of(&(nsid, *key)) == shard)
}

pub async fn store(core: &Core, key: Key, value: &[u8]) -> Result<(), Status> {
    core.kv.store(NSID, key, vec![Buffer::from_slice(value)], 0).await
}

/// Reads a value as a host does: `None` if the key does not exist.
pub async fn find(core: &Core, key: Key) -> Result<Option<Vec<u8>>, Status> {
    find_in(NSID, core, key).await
}

/// Reads a value of a namespace.
pub async fn find_in(nsid: u16, core: &Core, key: Key) -> Result<Option<Vec<u8>>, Status> {
    let Some(mut value) = core.kv.open(nsid, key).await? else { return Ok(None) };
    let mut bytes = Vec::new();
    while let Some(piece) = value.next(1 << 20, 0, 0).await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// Runs all at once, like the commands of one deep queue.
pub async fn together<T: 'static>(
    work: impl IntoIterator<Item = impl Future<Output = T> + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = work.into_iter().map(|work| spawn(Class::Foreground, work)).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await);
    }
    results
}
