//! Plan and results of a characterization: options, cells, and a drive's description of itself.
//!
//! Does not interpret the numbers. Invariant: a cell is one kernel on one system over one working
//! set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_initiator::{Address, Block, Controller, NamespaceKind};
use csd_kernels::kernel::Kernel;

use super::host::{HostJob, Timed};
use super::meter::Meter;
use super::quantiles::Samples;
use super::region::Region;
use super::{Error, inside};
use crate::profile::{Overload, OverloadKind, Where};

/// Measures a host with limited memory; takes the job, the memory limit in bytes and the number of
/// runs. The caller knows how this machine limits memory.
pub type Limited = Arc<dyn Fn(&HostJob, u64, usize) -> Result<Vec<Timed>, Error> + Send + Sync>;

/// A burden of the host, and the way to measure under it.
#[derive(Clone)]
pub struct Overloaded {
    /// Description in the profile.
    pub overload: Overload,
    /// Function that limits memory; for memory only.
    pub limited: Option<Limited>,
}

/// Parts of a drive that are measured.
#[derive(Clone, Debug)]
pub struct DataArea {
    /// Part of the drive's blocks to measure.
    pub region: Region,
    /// Regions by kernel and bytes, for working sets that are prepared beforehand.
    pub regions: Vec<(&'static str, u64, Region)>,
    /// Identifier of the drive's kv namespace in which results may be stored temporarily.
    pub values_nsid: Option<u32>,
    /// True if the region may be overwritten. If not, the kernels read its present contents.
    pub write: bool,
}

impl DataArea {
    /// Returns the region of this kernel's working set of `bytes` bytes.
    #[must_use]
    pub fn region(&self, kernel: &str, bytes: u64) -> &Region {
        let own = self.regions.iter().find(|(name, size, _)| (*name, *size) == (kernel, bytes));
        own.map_or(&self.region, |(_, _, region)| region)
    }
}

/// A drive to measure.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Address of the drive.
    pub address: Address,
    /// Parts of the drive that are measured.
    pub area: DataArea,
    /// Identifier of its compute namespace; `None` for a drive that does not compute.
    pub compute_nsid: Option<u32>,
    /// True if it is on this machine, whose energy counters include it.
    pub here: bool,
}

/// Options of a characterization.
#[derive(Clone)]
pub struct Options {
    /// Configuration of this host's cores.
    pub runtime: csd_reactor::Config,
    /// Options of the connections.
    pub connection: csd_initiator::Options,
    /// Drives, at least one; each is measured by itself, in turns. Burdens are measured with the
    /// first only.
    pub subjects: Vec<Subject>,
    /// Kernels to measure.
    pub kernels: Vec<&'static dyn Kernel>,
    /// Sizes of working sets, bytes.
    pub sizes: Vec<u64>,
    /// Numbers of host cores.
    pub host_units: Vec<usize>,
    /// Numbers of drive cores.
    pub drive_units: Vec<usize>,
    /// Number of repetitions that count.
    pub repeat: usize,
    /// Burdens of the host, at one core.
    pub overloads: Vec<Overloaded>,
    /// Meter of this machine's energy.
    pub meter: Option<Meter>,
    /// Set by the caller to end the characterization before its next step.
    pub interrupted: Arc<AtomicBool>,
}

impl Options {
    /// Returns an error once the characterization is asked to end.
    pub(super) fn check_interruption(&self) -> Result<(), Error> {
        if self.interrupted.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Returns the size of the largest working set, bytes.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// Progress of a characterization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Measurements done.
    pub done: usize,
    /// Total number of measurements.
    pub of: usize,
    /// Description of the current measurement, for people.
    pub what: String,
}

/// Measurements of one kernel on one system over one working set.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Index of the drive in [`Options::subjects`].
    pub subject: usize,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Note on the measurement.
    pub note: Option<&'static str>,
    /// Side that computed.
    pub side: Where,
    /// Cores at work.
    pub units: usize,
    /// Working set, bytes.
    pub bytes: u64,
    /// Units of work.
    pub work: u64,
    /// Burden of the host.
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
    /// Energies of serial runs, J, if a counter measures them.
    pub joules: Samples,
    /// Bytes of the result that were stored.
    pub stored_bytes: u64,
}

/// Results of a characterization.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All cells, in order.
    pub cells: Vec<Cell>,
    /// By drive: times of writing its region from outside, s, and the bytes written.
    pub written: Vec<(Samples, u64)>,
    /// Failed measurements, and unsteady ones.
    pub warnings: Vec<String>,
}

/// A drive's description of itself.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Model name that the drive reports.
    pub model: String,
    /// Block namespace with the lowest identifier, or the requested one: identifier, bytes, block
    /// size.
    pub block: (u32, u64, u32),
    /// Identifier of its compute namespace.
    pub compute_nsid: Option<u32>,
    /// Identifier of its last kv namespace; in our drives this is the one of objects.
    pub values_nsid: Option<u32>,
    /// Identifiers of its programs.
    pub programs: Vec<u64>,
}

/// Queries a drive's description.
///
/// # Errors
/// An error of the drive or the network; [`Error::Unable`] without a block namespace.
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
    /// Returns a cell without measurements.
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

    /// Returns the cell's name for messages.
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

    /// Returns the burden under which it was measured, for messages and tables.
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
