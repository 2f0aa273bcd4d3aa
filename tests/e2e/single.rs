//! One served drive, and a host in raw bytes.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use csd_tests::wire::{Command, Wire};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::harness::{Array, Done, Running, finish, signal};

pub(crate) const NQN: &str = "nqn.2026-11.io.csdstore:operations";

/// A served drive in its own folder.
pub(crate) struct Drive {
    pub(crate) array: Array,
    pub(crate) running: Option<Running>,
}

impl Drive {
    /// Serves `media` with these additional options.
    pub(crate) fn serve(media: &str, options: &[&str]) -> Self {
        let mut drive = Self { array: Array { folder: TempDir::new().unwrap() }, running: None };
        drive.start(media, options);
        drive
    }

    pub(crate) fn start(&mut self, media: &str, options: &[&str]) {
        let _ = fs::remove_file(self.array.path("ready"));
        let serve = ["drive", "serve", "--media", media, "--nqn", NQN];
        let listen = ["--listen", "127.0.0.1:0", "--ready-file", "ready"];
        let size = if options.contains(&"--size") { &[][..] } else { &["--size", "128M"] };
        let arguments = [&serve[..], &listen[..], size, options].concat();
        let running = self.running.insert(self.array.spawn(&arguments, Stdio::null()));
        running.serves(&self.array.path("ready"));
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let url = fs::read_to_string(self.array.path("ready")).unwrap();
        url.strip_prefix("nvme+tcp://").unwrap().split('/').next().unwrap().parse().unwrap()
    }

    /// Kills the drive, as a power cut of its machine would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let running = self.running.take().unwrap();
        signal(running.child.id(), Signal::KILL);
        finish(running);
    }

    pub(crate) fn ask_to_stop(&self) {
        signal(self.running.as_ref().unwrap().child.id(), Signal::TERM);
    }

    pub(crate) fn stop(&mut self) -> Done {
        self.ask_to_stop();
        finish(self.running.take().unwrap())
    }

    /// Connects a controller; returns its admin queue and an I/O queue.
    pub(crate) fn connect(&self) -> (Wire, Wire) {
        self.connect_sized(32)
    }

    /// Does the same, with so many entries.
    pub(crate) fn connect_sized(&self, entries: u16) -> (Wire, Wire) {
        let mut admin = Wire::open(self.address());
        let cntlid = admin.admin(NQN);
        let mut io = Wire::open(self.address());
        io.initialise();
        assert_eq!(io.connect_sized(NQN, 1, cntlid, entries, false).status, 0);
        (admin, io)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _gone = running.child.kill();
            let _reaped = running.child.wait();
        }
    }
}

pub(crate) fn kv(opcode: u8, key: &[u8], size: u32) -> Command {
    let mut command = Command::new(opcode, 2).dword(10, size);
    command.0[44] = u8::try_from(key.len()).unwrap();
    let mut padded = [0; 16];
    padded[..key.len()].copy_from_slice(key);
    command.0[8..16].copy_from_slice(&padded[..8]);
    command.0[56..64].copy_from_slice(&padded[8..]);
    command
}
