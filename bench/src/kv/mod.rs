//! Values of a key-value namespace compared with lower bounds: the same bytes over bare loopback
//! TCP and, for a drive on a file, in a plain file.
//!
//! Runs of drive and floor execute the same number of operations, in pairs. The drive is loaded
//! through the client library ([`crate::load`]), the floors by bare system calls. Invariants: a
//! namespace that may not be written gets no command that writes; keys that a run stores are
//! deleted after it, also if it fails.

mod plain;
mod row;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use csd_client::{Address, Key, Settings};
use hdrhistogram::Histogram;

use crate::client::{self, Client, Server as Endpoint};
use crate::frame::{Frame, Step, Stop};
use crate::load::{Loader, Operation, histogram};
use crate::report::{Outcome, Row, Run};
use crate::serve::{Launch, Options, SIZE_BYTES, Server, Side};
use crate::workload::Workload;
use crate::{Error, random};

use plain::{Plain, Removed};
pub use row::{Floor, KvRow};

/// Operation and order of the keys of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    name: &'static str,
    read: bool,
    random: bool,
}

/// Shapes in the order of the table.
const SHAPES: [Shape; 4] = [
    Shape { name: "fill, sequential keys", read: false, random: false },
    Shape { name: "fill, random keys", read: false, random: true },
    Shape { name: "read, sequential keys", read: true, random: false },
    Shape { name: "read, random keys", read: true, random: true },
];

/// The namespace to measure.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A drive that the measurement starts for every run.
    Started,
    /// A namespace that is there.
    Existing {
        /// The drive, and its namespace or its first key-value namespace.
        address: Address,
        /// This host.
        settings: Box<Settings>,
        /// True if the measurement may store values of its own.
        may_write: bool,
    },
}

/// A measurement to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of pairs of runs for each row.
    pub pairs: usize,
    /// Number of keys, and of operations of a run.
    pub keys: u32,
    /// Length of a value, bytes.
    pub value_bytes: u32,
    /// Number of client threads.
    pub threads: usize,
    /// Operations in flight of each thread.
    pub depth: u16,
    /// Least size of a drive that the measurement starts, bytes.
    pub size_bytes: u64,
    /// Options of the servers; a medium must not exist.
    pub options: Options,
    /// Words that start a server.
    pub launch: Launch,
    /// The namespace to measure.
    pub subject: Subject,
}

/// Measures every workload that the namespace can take. Calls `progress` before every pair.
///
/// # Errors
/// The first error of a run; [`Error::Interrupted`].
pub fn measure(
    plan: &Plan,
    stop: &Stop,
    progress: &dyn Fn(Step<'_>),
) -> Result<Outcome<KvRow>, Error> {
    let (may_write, bytes) = plan.check(stop)?;
    let (chosen, rest): (Vec<Shape>, Vec<Shape>) =
        SHAPES.into_iter().partition(|shape| shape.read || may_write);
    let why = "was not measured: it stores values; --write permits it";
    let left_out = rest.iter().map(|shape| format!("{} {why}", shape.name)).collect();
    let compared: Vec<(Shape, Floor)> = chosen
        .into_iter()
        .flat_map(|shape| {
            let in_file = plan.options.media.is_some();
            let floors = [Some(Floor::Loopback), in_file.then_some(Floor::File)];
            floors.into_iter().flatten().map(move |floor| (shape, floor))
        })
        .collect();
    let mut frame = Frame::new(plan.pairs, compared.len(), stop, progress)?;
    let mut rows = Vec::new();
    for (shape, floor) in compared {
        let latencies = RefCell::new(histogram());
        let first = || match floor {
            Floor::Loopback => plan.loopback(shape, bytes, stop),
            Floor::File => plan.file(shape, stop),
        };
        let second = || plan.drive(shape, &latencies, stop);
        let row = Row::of(shape.name, &frame.compare(shape.name, first, second)?)?;
        rows.push(KvRow { row, floor, value_bytes: bytes, latencies: latencies.into_inner() });
    }
    let (valid, validity) = row::validity(&rows);
    Ok(Outcome { rows, valid, validity, left_out })
}

impl Plan {
    /// Checks that the namespace can take the values. Returns true if it may be written, and the
    /// length of a value in bytes.
    fn check(&self, stop: &Stop) -> Result<(bool, u64), Error> {
        let Subject::Existing { address, settings, may_write } = &self.subject else {
            self.check_medium()?;
            return Ok((true, self.value_bytes.into()));
        };
        let loader = Loader::connect(address, settings, 1, stop)?;
        if !may_write {
            let (keys, bytes) = loader.existing(self.keys as usize)?;
            return Ok((false, bytes / keys.len() as u64));
        }
        let free = loader.info().bytes.saturating_sub(loader.info().used_bytes);
        let needed = u64::from(self.keys) * u64::from(self.value_bytes);
        if needed > free {
            return Err(Error::Usage(format!(
                "{address} has {free} bytes left, and the values need {needed}: take fewer --keys"
            )));
        }
        Ok((true, self.value_bytes.into()))
    }

    /// Checks that nothing would be lost by the medium and its deletion.
    fn check_medium(&self) -> Result<(), Error> {
        match &self.options.media {
            Some(path) if path.symlink_metadata().is_ok() => {
                let why = "exists: name a file that the measurement can create and delete";
                Err(Error::Usage(format!("{} {why}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Runs the bare server with the bytes of the workload.
    fn loopback(&self, shape: Shape, bytes: u64, stop: &Stop) -> Result<Run, Error> {
        let options = Options { cores: self.threads, media: None, ..self.options.clone() };
        let server = Server::start(self.launch, Side::LongFloor, &options)?;
        let workload = Workload {
            name: shape.name,
            read: shape.read,
            bytes: usize::try_from(bytes).map_err(|_| Error::Usage("too long".to_owned()))?,
            depth: self.depth,
            in_order: true,
            blocks: 1,
        };
        let endpoint = Endpoint::Floor(server.address);
        let clients: Result<Vec<Client>, Error> =
            (0..self.threads).map(|_| Client::connect(&endpoint, workload, stop)).collect();
        let mut clients = clients?;
        client::run_together(&mut clients, u64::from(self.keys / 10).max(1))?; // warm
        let before = server.cpu_us();
        let elapsed = client::run_together(&mut clients, self.keys.into())?;
        let cpu_us = server.cpu_us().saturating_sub(before);
        Ok(Run::new(self.keys.into(), elapsed, Some(cpu_us)))
    }

    /// Runs the workload in a plain file next to the medium.
    fn file(&self, shape: Shape, stop: &Stop) -> Result<Run, Error> {
        let mut path = self.options.media.clone().unwrap_or_default().into_os_string();
        path.push(".floor");
        let plain = Plain {
            path: path.into(),
            keys: self.keys,
            value_bytes: self.value_bytes,
            depth: self.threads * usize::from(self.depth),
        };
        match shape.read {
            true => plain.read(shape.random, stop),
            false => plain.fill(stop),
        }
    }

    /// Runs the workload once on the drive, and adds its latencies.
    fn drive(
        &self,
        shape: Shape,
        latencies: &RefCell<Histogram<u64>>,
        stop: &Stop,
    ) -> Result<Run, Error> {
        let (elapsed, cpu_us) = match &self.subject {
            Subject::Existing { address, settings, may_write } => {
                let loader = Loader::connect(address, settings, self.threads, stop)?;
                let ran = match may_write {
                    true => self.own(&loader, shape, None, latencies),
                    false => self.others(&loader, shape, latencies),
                };
                (ran?.0, None)
            }
            Subject::Started => {
                self.check_medium()?;
                // Dropped after the server has ended.
                let _media = self.options.media.clone().map(Removed);
                let options = Options { size_bytes: self.drive_bytes(), ..self.options.clone() };
                let server = Server::start(self.launch, Side::Drive, &options)?;
                let loader = Loader::started(&server, self.threads, stop)?;
                self.own(&loader, shape, Some(&server), latencies)?
            }
        };
        Ok(Run::new(self.keys.into(), elapsed, cpu_us))
    }

    /// Returns the size of a drive that has room for all values and for those that it cleans.
    pub fn drive_bytes(&self) -> u64 {
        let entry = u64::from(self.value_bytes).next_multiple_of(4096) + 4096;
        let needed = SIZE_BYTES + 3 * (u64::from(self.keys) * entry).next_multiple_of(1 << 20);
        needed.max(self.size_bytes)
    }

    /// Stores values of its own, reads them if the workload reads, and deletes them from a drive
    /// that was there before.
    fn own(
        &self,
        loader: &Loader,
        shape: Shape,
        server: Option<&Server>,
        latencies: &RefCell<Histogram<u64>>,
    ) -> Result<(Duration, Option<u64>), Error> {
        let keys = loader.keys(self.keys);
        let shuffled = Arc::new(if shape.random { shuffled(keys.clone()) } else { keys.clone() });
        let keys = Arc::new(keys);
        let put = Operation::Put(Arc::new(random::bytes(self.value_bytes as usize, 1)));
        let run = |operation: &Operation, keys: &Arc<Vec<Key>>| {
            loader.run(operation, keys, keys.len(), self.depth)
        };
        let measured = || {
            if shape.read {
                run(&put, &keys)?;
            }
            let before = server.map(Server::cpu_us);
            let ran = match shape.read {
                true => run(&Operation::Get(Some(self.value_bytes.into())), &shuffled)?,
                false => run(&put, &shuffled)?,
            };
            let after = server.map(Server::cpu_us);
            let cpu_us = after.zip(before).map(|(after, before)| after.saturating_sub(before));
            latencies.borrow_mut().add(&ran.latencies).expect("the same bounds");
            Ok((ran.elapsed, cpu_us))
        };
        let measured: Result<_, Error> = measured();
        let deleted = match server {
            None => run(&Operation::Delete, &keys).map(drop),
            Some(_) => Ok(()),
        };
        // The first error is the one that matters.
        let measured = measured?;
        deleted.map(|()| measured)
    }

    /// Reads values that are there.
    fn others(
        &self,
        loader: &Loader,
        shape: Shape,
        latencies: &RefCell<Histogram<u64>>,
    ) -> Result<(Duration, Option<u64>), Error> {
        let (keys, _) = loader.existing(self.keys as usize)?;
        let keys = Arc::new(if shape.random { shuffled(keys) } else { keys });
        let ran = loader.run(&Operation::Get(None), &keys, self.keys as usize, self.depth)?;
        latencies.borrow_mut().add(&ran.latencies).expect("the same bounds");
        Ok((ran.elapsed, None))
    }
}

/// Returns the keys in a random order, each once.
fn shuffled(mut keys: Vec<Key>) -> Vec<Key> {
    random::shuffle(&mut keys);
    keys
}
