//! Ingest bandwidth: bytes per second that a host takes in from all drives at once.
//!
//! Its cores share the bytes of every drive and read from all drives at the same time; the data is
//! discarded. Does not determine the bottleneck: [`Intake::is_limit`] compares with the bandwidths
//! of single drives. Invariant: all cores begin together.

use std::sync::Arc;

use csd_initiator::{Block, Controller};
use csd_kernels::kernel::{Kernel, Sample};
use csd_reactor::sync::Barrier;
use csd_reactor::{Class, CoreId, Instant, now, spawn};

use super::Error;
use super::bench::{pattern, write};
use super::build::bandwidth;
use super::host::Arriving;
use super::plan::{Options, Subject};
use super::quantiles::Samples;
use super::region::{Region, WorkingSet};

/// Below this part of the sum of the single drives' bandwidths, the drives share a limit.
const LIMITED: f64 = 0.9;

/// Measured ingest of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Number of drives.
    pub drives: usize,
    /// Number of host cores.
    pub cores: usize,
    /// Bytes per second, the median of all repetitions.
    pub bytes_per_s: u64,
}

impl Intake {
    /// Returns true if the host is the limit, and not its drives: the bandwidth is clearly less
    /// than `alone_bytes_per_s`, the sum of the single drives' bandwidths.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // bandwidths of 2^53 B/s are far away
    pub fn is_limit(&self, alone_bytes_per_s: u64) -> bool {
        (self.bytes_per_s as f64) < LIMITED * alone_bytes_per_s as f64
    }
}

struct Shared {
    options: Options,
    barrier: Barrier,
    cores: usize,
    /// Bytes to read, by drive.
    regions: Vec<Region>,
}

/// Measures the ingest of `cores` cores from all drives of `options`, after writing the regions if
/// that is allowed.
///
/// # Errors
/// An error of the drives or the network.
pub fn intake(options: &Options, cores: usize) -> Result<Intake, Error> {
    let (bytes, kernel) = (options.largest(), options.kernels[0]);
    for subject in options.subjects.iter().filter(|subject| subject.area.write) {
        write(options, subject, pattern(), bytes)?;
    }
    let mut times = Samples::default();
    for turn in 0..=options.repeat {
        options.check_interruption()?;
        let seconds = once(options, kernel, cores)?;
        if turn > 0 {
            times.push(seconds);
        }
    }
    let drives = options.subjects.len();
    let bytes_per_s = bandwidth(bytes * drives as u64, &times).unwrap_or(1);
    Ok(Intake { drives, cores, bytes_per_s })
}

/// Reads everything once; returns the seconds from the first begin to the last end.
fn once(options: &Options, kernel: &'static dyn Kernel, cores: usize) -> Result<f64, Error> {
    let region = |subject: &Subject| subject.area.region(kernel.name(), options.largest()).clone();
    let shared = Arc::new(Shared {
        options: options.clone(),
        barrier: Barrier::new(cores),
        cores,
        regions: options.subjects.iter().map(region).collect(),
    });
    let config = csd_reactor::Config { cores, ..options.runtime.clone() };
    let parts = csd_reactor::run(&config, move |core| core_main(core, Arc::clone(&shared)));
    let parts = parts.map_err(Error::Runtime)?;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let spans = || parts.iter().flatten();
    let begin = spans().map(|span| span.0).min().unwrap_or(Instant::ZERO);
    let end = spans().map(|span| span.1).max().unwrap_or(Instant::ZERO);
    Ok(end.since(begin).as_secs_f64())
}

async fn core_main(core: CoreId, shared: Arc<Shared>) -> Result<Option<(Instant, Instant)>, Error> {
    let part = work(core, &shared).await;
    if part.is_err() {
        shared.barrier.break_up();
    }
    part
}

async fn work(core: CoreId, shared: &Arc<Shared>) -> Result<Option<(Instant, Instant)>, Error> {
    let mut controllers = Vec::new();
    for subject in &shared.options.subjects {
        controllers.push(Controller::connect(&subject.address, &shared.options.connection).await?);
    }
    if shared.barrier.wait().await.is_err() {
        return Ok(None);
    }
    let begin = now();
    let loads: Vec<_> = controllers
        .iter()
        .enumerate()
        .map(|(drive, controller)| {
            let (controller, shared) = (controller.clone(), Arc::clone(shared));
            spawn(Class::Foreground, async move { load(core, drive, &controller, &shared).await })
        })
        .collect();
    for load in loads {
        load.await?;
    }
    let end = now();
    for controller in controllers {
        controller.disconnect().await;
    }
    Ok(Some((begin, end)))
}

/// Reads this core's part of a drive's bytes.
async fn load(
    core: CoreId,
    drive: usize,
    controller: &Controller,
    shared: &Shared,
) -> Result<(), Error> {
    let region = &shared.regions[drive];
    let block = Block::open(controller, region.nsid)?;
    let set = WorkingSet { bytes: shared.options.largest(), streams: 1 };
    let own = set.part(core.0 as u64, shared.cores as u64, Sample::GRAIN_BYTES);
    let mut arriving = Arriving::new(&block, region, set, own);
    while arriving.next().await?.is_some() {}
    Ok(())
}

#[test]
fn a_limit_is_clearly_less_than_what_the_drives_give() {
    let intake = |bytes_per_s| Intake { drives: 2, cores: 1, bytes_per_s };
    assert!(intake(1_000).is_limit(2_000));
    assert!(!intake(1_900).is_limit(2_000) && !intake(2_100).is_limit(2_000));
}
