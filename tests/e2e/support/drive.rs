//! One served drive, and a host in raw bytes.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use rustix::process::Signal;

use csd_tests::wire::{Command, Wire};

use crate::support::harness::{Array, Done, Running, address_of, finish, signal};

pub(crate) const NQN: &str = "nqn.2026-11.io.csdstore:operations";

/// A served drive in its own folder.
pub(crate) struct Drive {
    pub(crate) array: Array,
    pub(crate) running: Option<Running>,
}

impl Drive {
    /// Serves `media` with these additional options.
    pub(crate) fn serve(media: &str, options: &[&str]) -> Self {
        let mut drive = Self { array: Array::without_drives(), running: None };
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

    /// Returns the drive's URL for hosts.
    pub(crate) fn url(&self) -> String {
        fs::read_to_string(self.array.path("ready")).unwrap()
    }

    /// Returns the drive's URL at the socket of its inside, a file of its folder.
    pub(crate) fn inside_url(&self, socket: &str) -> String {
        format!("nvme+unix://{}/{NQN}", self.array.path(socket).display())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        address_of(&self.url())
    }

    /// Kills the drive, as a power cut of its machine would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let running = self.running.take().unwrap();
        signal(running.child.id(), Signal::KILL);
        assert_eq!(finish(running).code, -1);
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

/// Returns a command of the kv namespace.
pub(crate) fn kv(opcode: u8, key: &[u8], size: u32) -> Command {
    let mut command = Command::new(opcode, 2).dword(10, size);
    command.0[44] = u8::try_from(key.len()).unwrap();
    let mut padded = [0; 16];
    padded[..key.len()].copy_from_slice(key);
    command.0[8..16].copy_from_slice(&padded[..8]);
    command.0[56..64].copy_from_slice(&padded[8..]);
    command
}
