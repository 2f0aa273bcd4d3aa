//! Drive with WebAssembly in this process, and a client of raw bytes.

use std::sync::{Arc, Mutex};

use csd_drive::Resources;
use csd_drive::compute::Admission;
use csd_drive::log::{Level, Log};
use csd_kernels::program::{Engine, Limits};
use csd_wasm::{PROGRAM_TYPE, Wasm};

use csd_tests::drive::serve;
use csd_tests::wire::{Command, Reply, Wire};

const NQN: &str = "nqn.2026-11.io.csdstore:programs";
/// Index under which the tests load their programs.
pub const INDEX: u32 = 20;

/// Host with both queues, and the drive's log.
pub struct Host {
    pub admin: Wire,
    pub io: Wire,
    said: Arc<Mutex<Vec<String>>>,
}

impl Host {
    /// Starts a drive of two cores, whose programs have ample time even on a busy machine, and a
    /// host.
    pub fn new() -> Self {
        Self::with(2, Vec::new())
    }

    /// Does the same with so many cores, and with engines in addition to WebAssembly.
    pub fn with(cores: usize, mut engines: Vec<Arc<dyn Engine>>) -> Self {
        engines.push(Arc::new(Wasm::new().unwrap()));
        let said = Arc::<Mutex<Vec<String>>>::default();
        let sink = Arc::clone(&said);
        let log = Log::new(Level::Warn, move |record| {
            let reason = record.fields.iter().find(|(name, _)| *name == "reason");
            let reason = reason.map_or("", |(_, reason)| reason.as_str());
            sink.lock().unwrap().push(format!("{}: {reason}", record.event));
        });
        let resources = Resources {
            engines,
            admission: Admission::Any,
            limits: Limits { memory_bytes: 4 << 20, output_bytes: 8 << 20, ..Limits::for_s(120) },
            ..Resources::default()
        };
        let config = csd_drive::Config {
            nqn: NQN.into(),
            size_bytes: 256 << 20,
            cores,
            resources,
            log,
            ..csd_drive::Config::default()
        };
        let address = serve(config);
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let mut io = Wire::open(address);
        io.initialise();
        assert_eq!(io.connect(NQN, 1, cntlid, true).status, 0);
        Self { admin, io, said }
    }

    /// Returns the drive's log since the last call.
    pub fn said(&self) -> String {
        // The drive logs before it answers the command.
        std::mem::take(&mut *self.said.lock().unwrap()).join("\n")
    }

    /// Sends Load Program, in parts of at most 100,000 bytes.
    pub fn load(&mut self, index: u32, program: &[u8]) -> u16 {
        let mut offset = 0;
        for part in program.chunks(100_000) {
            let select = index | u32::from(PROGRAM_TYPE) << 16 | 1 << 25;
            let command = Command::new(0x85, 5).dword(10, select).dword(11, program.len() as u32);
            let command = command.dword(12, 7).dword(14, part.len() as u32).dword(15, offset);
            let status = self.admin.command(command, part, 0).status;
            if status != 0 {
                return status;
            }
            offset += part.len() as u32;
        }
        0
    }

    pub fn unload(&mut self, index: u32) -> u16 {
        let command = Command::new(0x85, 5).dword(10, index | 1 << 24);
        self.admin.command(command, &[], 0).status
    }

    pub fn activate(&mut self, index: u32, active: bool) -> u16 {
        let command = Command::new(0x88, 5).dword(10, index | u32::from(active) << 16);
        self.admin.command(command, &[], 0).status
    }

    /// Sends Memory Write, from byte `start` on.
    pub fn write(&mut self, start: u64, data: &[u8]) {
        let command = Command::new(0x05, 4).dword(10, start as u32).dword(12, data.len() as u32);
        assert_eq!(self.io.command(command, data, 0).status, 0);
    }

    /// Sends Memory Read.
    pub fn read(&mut self, start: u64, length: usize) -> Vec<u8> {
        let command = Command::new(0x02, 4).dword(10, start as u32).dword(12, length as u32);
        let reply = self.io.command(command, &[], length);
        assert_eq!(reply.status, 0);
        reply.data
    }

    /// Sends Execute Program over one range of memory that it reads and one that it writes, with
    /// the ranges in the data.
    pub fn execute(&mut self, index: u32, ranges: [(u64, u32); 2], parameters: &[u8]) -> Reply {
        let mut data = ranges.map(|(start, length)| descriptor(start, length)).concat();
        data.extend_from_slice(parameters);
        let command = Command::new(0x01, 5).dword(2, index).dword(3, 2);
        let command = command.dword(4, data.len() as u32).dword(10, 2);
        self.io.command_in_capsule(command, &data)
    }
}

/// Returns a range of the memory namespace.
pub fn descriptor(start: u64, length: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = 4;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&start.to_le_bytes());
    bytes
}
