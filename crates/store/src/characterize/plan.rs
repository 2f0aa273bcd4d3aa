//! What is to be measured, and what was: options, cells, and what a drive says of itself.
//!
//! Never: what the numbers mean. Invariant: a cell is one kernel on one system over one working
//! set.

use std::sync::Arc;

use csd_initiator::{Address, Block, Controller, NamespaceKind};
use csd_kernels::kernel::Kernel;

use super::host::{HostJob, Timed};
use super::meter::Meter;
use super::quantiles::Samples;
use super::region::Region;
use super::{Error, inside};
use crate::profile::{Overload, OverloadKind, Where};

/// Measures a host that may use so much memory: given the job, the bytes and how often. The
/// caller knows how this machine limits memory.
pub type Limited = Arc<dyn Fn(&HostJob, u64, usize) -> Result<Vec<Timed>, Error> + Send + Sync>;

/// A host under a burden, and how it is measured.
#[derive(Clone)]
pub struct Overloaded {
    /// What the profile says.
    pub overload: Overload,
    /// How memory is limited; for memory only.
    pub limited: Option<Limited>,
}

/// Where working sets lie.
#[derive(Clone, Debug)]
pub struct Place {
    /// The part of the drive's blocks that is measured.
    pub region: Region,
    /// Parts of their own, by kernel and bytes, where working sets are laid beforehand.
    pub regions: Vec<(&'static str, u64, Region)>,
    /// The drive's kv namespace that results may be stored in for a while.
    pub values_nsid: Option<u32>,
    /// Whether the region may be overwritten. If not, the kernels read what is there.
    pub write: bool,
}

impl Place {
    /// Where this kernel's working set of `bytes` bytes lies.
    #[must_use]
    pub fn region(&self, kernel: &str, bytes: u64) -> &Region {
        let own = self.regions.iter().find(|(name, size, _)| (*name, *size) == (kernel, bytes));
        own.map_or(&self.region, |(_, _, region)| region)
    }
}

/// A drive that is measured.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Where it is.
    pub address: Address,
    /// Where working sets lie.
    pub place: Place,
    /// Its compute namespace; none for a drive that does not compute.
    pub compute_nsid: Option<u32>,
    /// It is on this machine, whose counters count what it draws, too.
    pub here: bool,
}

/// What to measure.
#[derive(Clone)]
pub struct Options {
    /// How this host's cores run.
    pub runtime: csd_reactor::Config,
    /// How to connect.
    pub connection: csd_initiator::Options,
    /// The drives, at least one, each by itself and taking turns; burdens with the first alone.
    pub subjects: Vec<Subject>,
    /// The kernels.
    pub kernels: Vec<&'static dyn Kernel>,
    /// Working sets, bytes.
    pub sizes: Vec<u64>,
    /// Numbers of host cores.
    pub host_units: Vec<usize>,
    /// Numbers of drive cores.
    pub drive_units: Vec<usize>,
    /// Repetitions that count.
    pub repeat: usize,
    /// Burdens of the host, at one core.
    pub overloads: Vec<Overloaded>,
    /// What counts this machine's energy.
    pub meter: Option<Meter>,
}

impl Options {
    /// The largest working set, bytes.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// How far a characterization has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Measurements done.
    pub done: usize,
    /// Measurements in all.
    pub of: usize,
    /// What is measured now, for people.
    pub what: String,
}

/// One kernel on one system over one working set, measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Which drive, by its place in [`Options::subjects`].
    pub subject: usize,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// What is said of it.
    pub note: Option<&'static str>,
    /// Who computed.
    pub side: Where,
    /// Cores at work.
    pub units: usize,
    /// Working set, bytes.
    pub bytes: u64,
    /// Units of work.
    pub work: u64,
    /// What the host had to bear.
    pub overload: Option<Overload>,
    /// Load times, s.
    pub load: Samples,
    /// Compute times, s.
    pub comp: Samples,
    /// Store times, s.
    pub store: Samples,
    /// Times of pipelined runs, s.
    pub pipelined: Samples,
    /// CPU times of serial runs, s.
    pub cpu: Samples,
    /// Energies of serial runs, J, where a counter measures them.
    pub joules: Samples,
    /// Bytes of the result that were stored.
    pub stored_bytes: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All cells, in order.
    pub cells: Vec<Cell>,
    /// By drive: times that writing its region from outside took, s, and what was written, bytes.
    pub written: Vec<(Samples, u64)>,
    /// What could not be measured, and what is unsteady.
    pub warnings: Vec<String>,
}

/// What a drive says of itself.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Model, as the drive names it.
    pub model: String,
    /// Its block namespace with the lowest id, or the one that was named: id, bytes, block size.
    pub block: (u32, u64, u32),
    /// Its compute namespace.
    pub compute_nsid: Option<u32>,
    /// Its last kv namespace, which is that of objects in our drives.
    pub values_nsid: Option<u32>,
    /// Identifiers of its programs.
    pub programs: Vec<u64>,
}

/// Asks a drive what it is.
///
/// # Errors
/// What the drive or the network did; [`Error::Unable`] without a block namespace.
pub fn survey(
    runtime: &csd_reactor::Config,
    address: &Address,
    connection: &csd_initiator::Options,
) -> Result<Survey, Error> {
    let (address, connection) = (address.clone(), connection.clone());
    let asked = csd_reactor::block_on(runtime, move || async move {
        let controller = Controller::connect(&address, &connection).await?;
        let surveyed = look(&controller, address.nsid).await;
        controller.disconnect().await;
        surveyed
    });
    asked.map_err(Error::Runtime)?
}

async fn look(controller: &Controller, named: Option<u32>) -> Result<Survey, Error> {
    let blocks = |nsid: u32| Block::open(controller, nsid).ok();
    let nsids = controller.namespaces().iter().map(|namespace| namespace.nsid);
    let block = nsids.filter(|nsid| named.is_none_or(|named| named == *nsid)).find_map(blocks);
    let Some(block) = block else {
        let why = match named {
            Some(nsid) => format!("namespace {nsid} of the drive is no block namespace"),
            None => "the drive has no block namespace".to_owned(),
        };
        return Err(Error::Unable(why));
    };
    let compute = |namespace: &&csd_initiator::Namespace| namespace.kind == NamespaceKind::Compute;
    let compute_nsid = controller.namespaces().iter().find(compute).map(|found| found.nsid);
    let programs = match compute_nsid {
        Some(nsid) => inside::programs(controller, nsid).await?,
        None => Vec::new(),
    };
    let kv =
        |namespace: &&csd_initiator::Namespace| matches!(namespace.kind, NamespaceKind::Kv { .. });
    let values_nsid = controller.namespaces().iter().rfind(kv).map(|found| found.nsid);
    let model = csd_nvme::wire::text_of(&controller.identity().mn()).unwrap_or("?").to_owned();
    let block = (block.nsid(), block.bytes(), block.block_bytes());
    Ok(Survey { model, block, compute_nsid, values_nsid, programs })
}

impl Cell {
    /// A cell without measurements.
    pub(super) fn new(
        kernel: &dyn Kernel,
        (subject, side): (usize, Where),
        units: usize,
        bytes: u64,
    ) -> Self {
        Self {
            subject,
            kernel: kernel.name(),
            note: kernel.sample().note,
            side,
            units,
            bytes,
            work: 0,
            overload: None,
            load: Samples::default(),
            comp: Samples::default(),
            store: Samples::default(),
            pipelined: Samples::default(),
            cpu: Samples::default(),
            joules: Samples::default(),
            stored_bytes: 0,
        }
    }

    pub(super) fn add(&mut self, timed: &Timed) {
        self.work = timed.work;
        self.load.push(timed.load_s);
        self.comp.push(timed.comp_s);
        self.cpu.push(timed.cpu_s);
        if let Some(joules) = timed.joules {
            self.joules.push(joules);
        }
        if let Some(store_s) = timed.store_s {
            self.store.push(store_s);
            self.stored_bytes = timed.stored_bytes;
        }
    }

    /// The cell as messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        let system = match self.side {
            Where::Host => format!("Host({})", self.units),
            Where::Drive => format!("the drive's {} cores", self.units),
        };
        let (size, unit) = match self.bytes >> 20 {
            0 => (self.bytes >> 10, "KiB"),
            mib => (mib, "MiB"),
        };
        let burden = self.burden().map_or_else(String::new, |burden| format!(" with {burden}"));
        format!("{} of {size} {unit} on {system}{burden}", self.kernel)
    }

    /// The burden under which it was measured, as messages and tables name it.
    #[must_use]
    pub fn burden(&self) -> Option<String> {
        let Overload { kind, memory_bytes, rivals } = self.overload?;
        Some(match kind {
            OverloadKind::Memory => format!("{} MiB of memory", memory_bytes? >> 20),
            OverloadKind::Cpu => format!("{} busy threads", rivals?),
            OverloadKind::Io => format!("{} other readers", rivals?),
        })
    }
}
