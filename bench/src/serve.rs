//! The two servers, as processes pinned to one CPU each; the client uses the others.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clap::{Args, ValueEnum};
use csd_drive::{MediaKind, media::Direct};

use crate::client::NQN;

/// The server of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// A drive.
    Drive,
    /// The bare server, [`crate::floor`].
    Floor,
}

/// Options of every benchmark of a drive.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The drive.
    #[command(flatten)]
    pub drive: Options,
    /// Also append the results to this JSON-lines file.
    #[arg(long)]
    pub record: Option<PathBuf>,
    /// Serve one side and nothing else (used by the benchmark itself).
    #[arg(long, hide = true)]
    pub serve: Option<Side>,
}

/// Options of the drive under test.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// I/O backend of the drive.
    #[arg(long, default_value = "auto")]
    pub backend: String,
    /// Time that the drive polls before it sleeps, microseconds.
    #[arg(long, default_value_t = 1000)]
    pub spin_us: u32,
    /// File or block device with the drive's media [default: memory]
    #[arg(long)]
    pub media: Option<PathBuf>,
    /// CPU that servers are pinned to; the client uses the others.
    #[arg(long, default_value_t = 0)]
    pub cpu: usize,
    /// Size of new media, bytes.
    #[arg(long, default_value_t = 384 << 20)]
    pub size_bytes: u64,
    /// Number of cores of the drive.
    #[arg(long, default_value_t = 1)]
    pub cores: usize,
}

impl Options {
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--backend".into(), (&self.backend).into()];
        arguments.extend(["--spin-us".into(), self.spin_us.to_string().into()]);
        arguments.extend(["--size-bytes".into(), self.size_bytes.to_string().into()]);
        arguments.extend(["--cores".into(), self.cores.to_string().into()]);
        if let Some(media) = &self.media {
            arguments.extend(["--media".into(), media.into()]);
        }
        arguments
    }
}

/// A running server process; dropping it kills the process.
pub struct Server {
    /// Address that it listens on.
    pub address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server, pinned if `taskset` is installed.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(side: Side, options: &Options) -> Self {
        let program = std::env::current_exe().expect("our own path");
        let mut command = match pinned() {
            true => {
                let mut command = Command::new("taskset");
                command.args(["-c", &options.cpu.to_string()]).arg(program);
                command
            }
            false => Command::new(program),
        };
        let name = if side == Side::Drive { "drive" } else { "floor" };
        command.args(["--serve", name]).args(options.arguments());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let address = line.trim().parse().expect("an address");
        Self { address, child }
    }

    /// Pins its threads whose names end with `suffix` to these CPUs, in the list format of taskset.
    ///
    /// # Panics
    /// If there is no such thread, or it cannot be moved.
    pub fn place(&self, suffix: &str, cpus: &str) {
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = std::fs::read_dir(tasks).expect("it runs").filter_map(Result::ok);
        let named = tasks.filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.trim_end().ends_with(suffix)
        });
        let mut placed = 0;
        for task in named {
            let id = task.file_name();
            let moved = Command::new("taskset").args(["-p", "-c", cpus]).arg(id).output();
            assert!(moved.is_ok_and(|moved| moved.status.success()), "taskset moves a thread");
            placed += 1;
        }
        assert!(placed > 0, "no thread is called {suffix}");
    }

    /// Returns the CPU time used so far, in microseconds (resolution: a clock tick, 10 ms).
    pub fn cpu_us(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or("");
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10_000
    }

    /// Returns the CPU time used so far by its current threads, in nanoseconds.
    ///
    /// # Panics
    /// If the kernel keeps no such statistics (`CONFIG_SCHED_INFO`).
    pub fn cpu_ns(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let times: Option<Vec<u64>> = threads.expect("the server runs").flatten().map(of).collect();
        times.expect("the kernel keeps statistics of scheduling").iter().sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if servers can be pinned.
pub fn pinned() -> bool {
    let found = Command::new("taskset").arg("-V").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Serves a drive and prints its address.
///
/// # Panics
/// If the drive cannot be served.
pub fn drive(options: &Options) {
    let media = match &options.media {
        Some(path) => MediaKind::File(path.clone()),
        None => MediaKind::Memory,
    };
    let config = csd_drive::Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        nqn: NQN.into(),
        media,
        direct: Direct::Auto,
        size_bytes: options.size_bytes,
        cores: options.cores,
        backend: options.backend.parse().expect("auto, uring or epoll"),
        spin_us: options.spin_us,
        ..csd_drive::Config::default()
    };
    csd_drive::serve(&config, |address| println!("{address}")).expect("the drive serves");
}
