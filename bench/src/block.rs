//! Block I/O of a drive compared with a lower bound: the same bytes per I/O over bare loopback TCP.
//!
//! One client, which sends raw capsules, loads either a drive or a server that knows only sizes
//! ([`crate::floor`]). `bench/README.md` estimates the expected ratios.

use std::time::Duration;

use crate::client::{self, Client};
use crate::frame::{Frame, Step, Stop};
use crate::report::{Outcome, Row, Run};
use crate::serve::{Launch, Options, Server, Side};
use crate::wire::{Controller, Target};
use crate::workload::{BLOCK_BYTES, Workload};
use crate::{Error, client::Server as Endpoint};

/// Number of blocks of [`BLOCK_BYTES`] that are read and written.
pub const BLOCKS: u64 = 16 << 10;
/// Least rate of the floor at depth 1, 4 KiB read, operations per second.
const FLOOR_DEPTH_1: f64 = 60e3;
/// Least rate of the floor at depth 32, 4 KiB read, operations per second.
const FLOOR_DEPTH_32: f64 = 450e3;

/// Workloads in the order of the table. The drive of the last one sleeps without spinning.
const WORKLOADS: [Workload; 6] = [
    workload("4 KiB random read, depth 1", true, 4096, 1),
    workload("4 KiB random read, depth 32", true, 4096, 32),
    workload("4 KiB random read, depth 128", true, 4096, 128),
    workload("4 KiB random write, depth 32", false, 4096, 32),
    workload("128 KiB read, depth 32", true, 128 << 10, 32),
    workload(SLEEPING, true, 4096, 1),
];

/// Name of the workload whose drive does not spin.
const SLEEPING: &str = "4 KiB read, depth 1, sleeping";

const fn workload(name: &'static str, read: bool, bytes: usize, depth: u16) -> Workload {
    Workload { name, read, bytes, depth, in_order: false, blocks: BLOCKS }
}

/// The drive to measure.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A drive that the measurement starts for every run, and fills before reads.
    Started,
    /// A drive that is there, and its limits.
    Existing {
        /// Its block namespace.
        target: Target,
        /// Size of the namespace in bytes.
        bytes: u64,
        /// Most bytes of one command.
        transfer_bytes_max: u32,
    },
}

/// A measurement to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of pairs of runs for each workload.
    pub pairs: usize,
    /// Length of one run.
    pub run: Duration,
    /// Options of the servers.
    pub options: Options,
    /// Words that start a server.
    pub launch: Launch,
    /// The drive to measure.
    pub subject: Subject,
}

/// Measures every workload that the drive's limits and its owner permit.
///
/// # Errors
/// The first error of a run; [`Error::Interrupted`].
pub fn measure(
    plan: &Plan,
    stop: &Stop,
    progress: &dyn Fn(Step<'_>),
) -> Result<Outcome<Row>, Error> {
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    let depth_max = plan.subject.depth_max()?;
    for workload in WORKLOADS {
        match plan.subject.take(workload, depth_max) {
            Ok(workload) => chosen.push(workload),
            Err(why) => left_out.push(format!("{} was not measured: {why}", workload.name)),
        }
    }
    if chosen.is_empty() {
        return Err(Error::Usage(left_out.join("; ")));
    }
    let mut frame = Frame::new(plan.pairs, chosen.len(), stop, progress)?;
    let mut rows = Vec::new();
    for workload in chosen {
        let floor = || plan.floor(workload, stop);
        let pairs = frame.compare(workload.name, floor, || plan.drive(workload, stop))?;
        rows.push(Row::of(workload.name, &pairs)?);
    }
    let (valid, validity) = validity(&rows);
    Ok(Outcome { rows, valid, validity, left_out })
}

impl Subject {
    /// Returns the most commands of one queue in flight.
    fn depth_max(&self) -> Result<u16, Error> {
        match self {
            Self::Started => Ok(u16::MAX),
            Self::Existing { target, .. } => Ok(Controller::connect(target)?.depth_max()),
        }
    }

    /// Fits a workload to the drive, or says why it cannot run.
    fn take(&self, workload: Workload, depth_max: u16) -> Result<Workload, String> {
        let Self::Existing { target, bytes, transfer_bytes_max } = self else {
            return Ok(workload);
        };
        let blocks = (bytes / BLOCK_BYTES as u64).min(BLOCKS);
        if !workload.read && !target.may_write {
            return Err("it overwrites data; --write permits it".to_owned());
        }
        if workload.name == SLEEPING {
            return Err("it needs a drive that this command starts".to_owned());
        }
        if !workload.bytes.is_multiple_of(target.block_bytes as usize) {
            return Err(format!("a block has {} bytes", target.block_bytes));
        }
        if workload.depth > depth_max {
            return Err(format!("a queue takes {depth_max} commands at a time"));
        }
        if workload.length() > *transfer_bytes_max {
            return Err(format!("a command moves at most {transfer_bytes_max} bytes"));
        }
        if blocks * (BLOCK_BYTES as u64) < workload.bytes as u64 {
            return Err(format!("the namespace has {bytes} bytes"));
        }
        Ok(Workload { blocks, ..workload })
    }
}

impl Plan {
    fn floor(&self, workload: Workload, stop: &Stop) -> Result<Run, Error> {
        let server = Server::start(self.launch, Side::Floor, &self.options)?;
        self.run(&Endpoint::Floor(server.address), Some(&server), workload, stop)
    }

    fn drive(&self, workload: Workload, stop: &Stop) -> Result<Run, Error> {
        if let Subject::Existing { target, .. } = &self.subject {
            return self.run(&Endpoint::Drive(target.clone()), None, workload, stop);
        }
        let spin_us = if workload.name == SLEEPING { 0 } else { self.options.spin_us };
        let options = Options { spin_us, ..self.options.clone() };
        let server = Server::start(self.launch, Side::Drive, &options)?;
        let target = Target::started(server.address);
        if workload.read {
            client::fill(&target, BLOCKS, stop)?;
        }
        self.run(&Endpoint::Drive(target), Some(&server), workload, stop)
    }

    /// Runs the workload once and returns its rate and the server's CPU time.
    fn run(
        &self,
        endpoint: &Endpoint,
        server: Option<&Server>,
        workload: Workload,
        stop: &Stop,
    ) -> Result<Run, Error> {
        let mut client = Client::connect(endpoint, workload, stop)?;
        client.run(self.run / 5)?; // warm
        let before = server.map(Server::cpu_us);
        let (operations, elapsed) = client.run(self.run)?;
        let after = server.map(Server::cpu_us);
        let cpu_us = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(Run::new(operations, elapsed, cpu_us))
    }
}

/// Judges by the floor's rates at 4 KiB if the machine was fast enough; returns it in words, too.
fn validity(rows: &[Row]) -> (bool, String) {
    let limits = [(WORKLOADS[0], FLOOR_DEPTH_1), (WORKLOADS[1], FLOOR_DEPTH_32)];
    let rates: Vec<(u16, f64, f64)> = limits
        .iter()
        .filter_map(|(workload, least)| {
            let row = rows.iter().find(|row| row.name == workload.name)?;
            Some((workload.depth, row.rates.first, *least))
        })
        .collect();
    if rates.is_empty() {
        let why = "NOT VALID: no workload was measured that shows the speed of the floor";
        return (false, why.to_owned());
    }
    if rates.iter().all(|(_, rate, least)| rate >= least) {
        return (true, "valid: the floor is high enough".into());
    }
    let rates = rates
        .iter()
        .map(|(depth, rate, least)| format!("{rate:.0}/s at depth {depth} (wants {least:.0})"));
    let rates = rates.collect::<Vec<_>>().join(" and ");
    (false, format!("NOT VALID: the floor does {rates}: the machine is busy or slow"))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn row(name: &'static str, floor: f64) -> Row {
        let rates = crate::report::Comparison { first: floor, second: 1.0, ratio: [1.0; 3] };
        Row { name, rates, cpu_us: [None; 2] }
    }

    #[test]
    fn a_run_is_valid_only_if_the_floor_is_high_at_every_depth_measured() {
        let [one, many] = [WORKLOADS[0].name, WORKLOADS[1].name];
        for (rows, valid) in [
            (vec![row(one, 60e3), row(many, 450e3)], true),
            (vec![row(one, 59e3), row(many, 450e3)], false),
            (vec![row(one, 60e3), row(many, 449e3)], false),
            // Drives of others may leave workloads out.
            (vec![row(many, 450e3)], true),
            (vec![row(one, 59e3)], false),
            (vec![row(WORKLOADS[4].name, 450e3)], false),
        ] {
            let (found, text) = validity(&rows);
            assert_eq!((found, text.starts_with("valid")), (valid, valid), "{text}");
        }
    }

    fn existing(may_write: bool, block_bytes: u32, bytes: u64) -> Subject {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let target = Target { may_write, block_bytes, ..Target::started(address) };
        Subject::Existing { target, bytes, transfer_bytes_max: 64 << 10 }
    }

    #[test]
    fn an_existing_drive_gets_only_workloads_that_it_can_take() {
        let taken = |subject: &Subject| {
            let fits = |workload: &Workload| subject.take(*workload, 128).is_ok();
            WORKLOADS.map(|workload| fits(&workload))
        };
        assert_eq!(taken(&Subject::Started), [true; 6]);
        let reads = [true, true, true, false, false, false];
        assert_eq!(taken(&existing(false, 512, 1 << 30)), reads);
        assert_eq!(taken(&existing(true, 512, 1 << 30)), [true, true, true, true, false, false]);
        assert_eq!(taken(&existing(true, 8192, 1 << 30)), [false; 6]);
        assert_eq!(taken(&existing(true, 512, 2048)), [false; 6]);
        let small = existing(false, 512, 1 << 20).take(WORKLOADS[0], 1).unwrap();
        assert_eq!(small.blocks, 256);
        assert!(existing(true, 512, 1 << 30).take(WORKLOADS[1], 31).is_err());
    }

    #[test]
    fn a_target_that_may_not_be_written_is_not_even_connected_to_for_writes() {
        let Subject::Existing { target, .. } = existing(false, 512, 1 << 30) else { panic!() };
        let refused = Client::connect(&Endpoint::Drive(target), WORKLOADS[3], &Stop::default());
        assert!(matches!(refused, Err(Error::Usage(_))));
    }
}
