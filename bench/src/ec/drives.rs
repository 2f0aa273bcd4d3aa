//! The drives' side: processes whose program `encode` works on data of their block namespace.
//!
//! One thread talks to all drives. Invariant: the time of an encoding is that of its executions,
//! without what the measurement does between them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_client::Address;
use csd_initiator::{Block, Compute, Controller, Memory, NamespaceKind, Options};
use csd_kernels::encode::PROGRAM_ID;
use csd_nvme::compute::ProgramDescriptor;
use csd_nvme::vendor::execute::{Execution, Output, Place};
use csd_reactor::{Buffer, Class, Config, CoreId, Hosted, core_local, now, set_core_local, spawn};

use super::host::Host;
use super::shape::{CELL_BYTES, Shape};
use super::{Case, Plan};
use crate::frame::Stop;
use crate::serve::{self, SPIN_US, Server, Side};
use crate::wire::NQN;
use crate::{Error, cpus};

/// Bytes of one write or read of the data.
const PIECE_BYTES: usize = 4 << 20;
/// Longest wait for an answer: a slow pace may take minutes for a window.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Times of an encoding in the slowest drive, seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoded {
    /// From the first command to the last answer.
    pub(super) total_s: f64,
    /// Reading of the data into the drive's memory.
    pub(super) load_s: f64,
    /// Computing.
    pub(super) comp_s: f64,
}

/// Drives that hold the data, and the thread that talks to them.
pub(super) struct Drives {
    shape: Shape,
    hosted: Hosted,
    /// Dropped after the connections.
    _servers: Vec<Server>,
}

/// Namespaces of one drive.
struct Drive {
    shape: Shape,
    blocks: Block,
    memory: Memory,
    compute: Compute,
    /// Index of the program.
    program: u16,
}

impl Drives {
    /// Starts the drives and stores the data in each.
    pub(super) fn start(plan: &Plan, case: &Case, stop: &Stop) -> Result<Self, Error> {
        let allowed = cpus::allowed();
        let mut servers = Vec::new();
        for index in 0..plan.drives {
            stop.check()?;
            // The host keeps the last CPU for itself.
            let shared = allowed.len().saturating_sub(1).max(1);
            let cpu = (allowed.len() > 1).then(|| allowed[index % shared]);
            let options = serve::Options {
                cpu: plan.options.cpu.or(cpu),
                encode_ns_per_byte: case.ns_per_byte(),
                ..plan.options.clone()
            };
            servers.push(Server::start(plan.launch, Side::Drive, &options)?);
        }
        let config = Config {
            name: "bench".to_owned(),
            compute_yields: false,
            spin_us: SPIN_US,
            ..Config::default()
        };
        let hosted = Hosted::start(&config, 1).map_err(failed)?;
        let addresses: Vec<Address> =
            servers.iter().map(|server| Address::new(server.address, NQN)).collect();
        let shape = case.shape;
        let drives = Self { shape, hosted, _servers: servers };
        drives.call(move || async move {
            let mut connected = Vec::new();
            for address in addresses {
                connected.push(Rc::new(Drive::connect(&address, shape).await?));
            }
            set_core_local(Rc::new(connected));
            Ok(())
        })?;
        Ok(drives)
    }

    /// Stores the data, and checks the parity of its first row in every drive.
    pub(super) fn check(&self, host: &Host) -> Result<(), Error> {
        let (data, expected) = (Arc::new(host.data().to_vec()), host.first_row());
        let equal = self.call(move || async move {
            let mut equal = true;
            for drive in drives().iter() {
                drive.fill(&data).await?;
                equal &= drive.first_row().await? == expected;
            }
            Ok(equal)
        })?;
        match equal {
            true => Ok(()),
            false => Err(Error::Server("a drive computes other parity: a bug".to_owned())),
        }
    }

    /// Returns the time in which the first drive transfers all data blocks, seconds. A window of
    /// them is read, which is as many bytes again for each pass.
    pub(super) fn load(&self) -> Result<f64, Error> {
        let share = self.shape.data_bytes() as f64 / self.shape.window_bytes() as f64;
        let window_s = self.call(|| async { drives()[0].read_all().await })?;
        Ok(window_s * share)
    }

    /// Encodes a block in every drive at the same time; returns the times of the slowest.
    pub(super) fn encode(&self, stop: &Stop) -> Result<Encoded, Error> {
        let stop = stop.clone();
        self.call(move || async move {
            let encode = |drive: &Rc<Drive>| {
                let (drive, stop) = (Rc::clone(drive), stop.clone());
                spawn(Class::Foreground, async move { drive.encode(&stop).await })
            };
            let tasks: Vec<_> = drives().iter().map(encode).collect();
            let mut all = Vec::new();
            for task in tasks {
                all.push(task.await);
            }
            let all = all.into_iter().collect::<Result<Vec<Encoded>, Error>>()?;
            let slowest = all.into_iter().max_by(|a, b| a.total_s.total_cmp(&b.total_s));
            Ok(slowest.unwrap_or_default())
        })
    }

    /// Runs `work` on the thread that talks to the drives.
    fn call<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.hosted.door().call(CoreId(0), work).map_err(failed)?
    }
}

/// Returns the drives of this thread.
fn drives() -> Rc<Vec<Rc<Drive>>> {
    core_local().expect("connected before")
}

fn failed(error: impl Into<csd_client::Error>) -> Error {
    Error::Client(error.into())
}

impl Drive {
    async fn connect(address: &Address, shape: Shape) -> Result<Self, Error> {
        // An answer of a paced drive may take long.
        let options = Options { command_timeout: TIMEOUT, ..Options::default() };
        let controller = Controller::connect(address, &options).await?;
        let namespace = |wanted: fn(NamespaceKind) -> bool| {
            let found = controller.namespaces().iter().find(|found| wanted(found.kind));
            found.map(|found| found.nsid).ok_or_else(|| lacks(address, "such a namespace"))
        };
        let blocks = namespace(|kind| matches!(kind, NamespaceKind::Block { .. }))?;
        let memory = namespace(|kind| matches!(kind, NamespaceKind::Memory { .. }))?;
        let compute = namespace(|kind| kind == NamespaceKind::Compute)?;
        let compute = Compute::open(&controller, compute)?;
        let programs = compute.programs().await?;
        let program = programs.iter().map(ProgramDescriptor::pid).position(|id| id == PROGRAM_ID);
        let program = program.and_then(|index| u16::try_from(index).ok());
        Ok(Self {
            shape,
            blocks: Block::open(&controller, blocks)?,
            memory: Memory::open(&controller, memory)?,
            compute,
            program: program.ok_or_else(|| lacks(address, "the program encode"))?,
        })
    }

    /// Stores the data from the first block on.
    async fn fill(&self, data: &[u8]) -> Result<(), Error> {
        let block = self.blocks.block_bytes() as usize;
        for (piece, bytes) in data.chunks(PIECE_BYTES).enumerate() {
            let mut buffer = Buffer::zeroed(bytes.len().next_multiple_of(block));
            buffer[..bytes.len()].copy_from_slice(bytes);
            self.blocks.write((piece * PIECE_BYTES) as u64, vec![buffer], false).await?;
        }
        Ok(())
    }

    /// Returns the parity of the first row, as the drive computes it.
    async fn first_row(&self) -> Result<Vec<u8>, Error> {
        let bytes = u32::from(self.shape.parity()) * CELL_BYTES;
        let nsid = self.memory.nsid();
        let output = Output::Memory { nsid, start: 0, bytes };
        self.compute.execute(self.program, &self.execution(1, output)).await?;
        Ok(self.memory.read(0, bytes as usize).await?.to_vec())
    }

    /// Reads the data once; returns the time, seconds.
    async fn read_all(&self) -> Result<f64, Error> {
        let block = self.blocks.block_bytes() as usize;
        let bytes = self.shape.window_bytes().next_multiple_of(block);
        let begin = now();
        for start in (0..bytes).step_by(PIECE_BYTES) {
            self.blocks.read(start as u64, PIECE_BYTES.min(bytes - start)).await?;
        }
        Ok(now().since(begin).as_secs_f64())
    }

    /// Encodes all blocks, pass after pass.
    async fn encode(&self, stop: &Stop) -> Result<Encoded, Error> {
        let mut encoded = Encoded::default();
        for cells in self.shape.passes() {
            stop.check()?;
            let execution = self.execution(cells, Output::Completion);
            let begin = now();
            self.compute.execute(self.program, &execution).await?;
            encoded.total_s += now().since(begin).as_secs_f64();
            let (_, log) = self.compute.executions().await?;
            let own = log.first().filter(|entry| entry.program() == PROGRAM_ID);
            let own = own.ok_or_else(|| lacks(self.compute.controller().address(), "its log"))?;
            encoded.load_s += own.reading_ns() as f64 / 1e9;
            encoded.comp_s += own.computing_ns() as f64 / 1e9;
        }
        Ok(encoded)
    }

    /// Returns an execution over the first rows.
    fn execution(&self, rows: u64, output: Output) -> Execution {
        let parameters = self.shape.parameters();
        let bytes = rows * parameters.row_bytes() as u64;
        let bytes = u32::try_from(bytes).expect("at most a window");
        let place = Place::Blocks { nsid: self.blocks.nsid(), slba: 0, skip: 0, bytes };
        Execution {
            program: PROGRAM_ID,
            output,
            sources: vec![place.into()],
            inline: Vec::new(),
            digests: None,
            parameters: parameters.encode(),
            // Reading and computing are timed apart.
            serial: true,
            cores: 1,
        }
    }
}

/// Returns the error of a drive without something that every drive of this version has.
fn lacks(address: &Address, what: &str) -> Error {
    Error::Server(format!("{address} does not have {what}"))
}
