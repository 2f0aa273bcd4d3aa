//! The two servers as processes of their own, each on CPU 0 (the client has CPU 1).

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::Side;
use crate::client::{BLOCKS, NQN};

/// A running server; killed when dropped.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts one, pinned where `taskset` is there to do it.
    pub(crate) fn start(side: Side, backend: &str, spin_us: u32) -> Self {
        let program = std::env::current_exe().expect("our own path");
        let mut command = match pinned() {
            true => {
                let mut command = Command::new("taskset");
                command.args(["-c", "0"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        let name = if side == Side::Drive { "drive" } else { "floor" };
        command.args(["--serve", name, "--backend", backend]);
        command.args(["--spin-us", &spin_us.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let address = line.trim().parse().expect("an address");
        Self { address, child }
    }

    /// CPU time used so far, in microseconds (resolution: a clock tick, 10 ms).
    pub(crate) fn cpu_us(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or("");
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10_000
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that is gone already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether servers can be pinned.
pub(crate) fn pinned() -> bool {
    let found = Command::new("taskset").arg("-V").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Serves a drive on memory media and prints its address.
pub(crate) fn drive(backend: &str, spin_us: u32) {
    let config = csd_drive::Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        nqn: NQN.into(),
        size_bytes: 2 * BLOCKS * 4096 + (256 << 20),
        backend: backend.parse().expect("auto, uring or epoll"),
        spin_us,
        ..csd_drive::Config::default()
    };
    csd_drive::serve(&config, |address| println!("{address}")).expect("the drive serves");
}
