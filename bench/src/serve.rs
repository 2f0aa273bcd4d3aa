//! The servers, as processes pinned to one CPU; the client uses the others.
//!
//! A server is this program, started again with the words of a [`Launch`]. Invariant: no server
//! outlives the process that started it, even if that is killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use csd_drive::kv_store::KvStore;
use csd_drive::throttle::{Cost, Model};
use csd_drive::{MediaKind, Resources, dedup};
use csd_kernels::encode::PROGRAM_ID;
use csd_kvlog::media::Direct;
use csd_reactor::end_with_parent;
use csd_sched::Policy;
use rustix::process::Pid;

use crate::wire::NQN;
use crate::{Error, cpus, floor, long_floor};

/// Kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// A drive.
    Drive,
    /// The bare server, [`crate::floor`].
    Floor,
    /// The bare server of operations of any length, [`crate::long_floor`].
    LongFloor,
}

/// Options of a server.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// I/O backend of the drive.
    #[arg(long, default_value = "auto")]
    pub backend: String,
    /// Time that the drive polls before it sleeps, microseconds.
    #[arg(long, default_value_t = SPIN_US)]
    pub spin_us: u32,
    /// File or block device with the drive's media [default: memory]
    #[arg(long)]
    pub media: Option<PathBuf>,
    /// CPU that servers are pinned to; the client uses the others [default: the first one]
    #[arg(long)]
    pub cpu: Option<usize>,
    /// Size of new media, bytes.
    #[arg(long, default_value_t = SIZE_BYTES)]
    pub size_bytes: u64,
    /// Number of cores of the drive; of the floor of long operations, its connections.
    #[arg(long, default_value_t = 1)]
    pub cores: usize,
    /// Let servers and client run on all CPUs.
    #[arg(long)]
    pub unpinned: bool,
    /// Let the drive's medium use the page cache.
    #[arg(long)]
    pub buffered: bool,
    /// Count chunks of this many bytes that were there before [default: not at all]
    #[arg(long)]
    pub dedup: Option<u32>,
    /// Let values share these chunks.
    #[arg(long, requires = "dedup")]
    pub dedup_share: bool,
    /// Policy that chooses the core of the counting.
    #[arg(long, default_value_t = Policy::default())]
    pub policy: Policy,
    /// Time that the program `encode` takes for a byte, ns [default: as long as it takes]
    #[arg(long)]
    pub encode_ns_per_byte: Option<f64>,
    /// Process that this one must not outlive.
    #[arg(long, hide = true)]
    pub parent: Option<u32>,
}

/// Default of the time that a measured drive polls before it sleeps, microseconds.
pub const SPIN_US: u32 = 1000;
/// Most memory for the chunks that a drive knows, bytes.
const DEDUP_MEMORY_BYTES: u64 = 64 << 20;
/// Default size of new media, bytes.
pub const SIZE_BYTES: u64 = 384 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: "auto".to_owned(),
            spin_us: SPIN_US,
            media: None,
            cpu: None,
            size_bytes: SIZE_BYTES,
            cores: 1,
            unpinned: false,
            buffered: false,
            dedup: None,
            dedup_share: false,
            policy: Policy::default(),
            encode_ns_per_byte: None,
            parent: None,
        }
    }
}

impl Options {
    /// Returns the CPU that servers are pinned to; `None` if this machine has no other for the
    /// client.
    pub fn pinned_to(&self) -> Option<usize> {
        let allowed = cpus::allowed();
        self.cpu.or(allowed.first().copied()).filter(|_| allowed.len() > 1 && !self.unpinned)
    }

    /// Returns the words that give a server these options.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--backend".into(), (&self.backend).into()];
        arguments.extend(["--spin-us".into(), self.spin_us.to_string().into()]);
        arguments.extend(["--size-bytes".into(), self.size_bytes.to_string().into()]);
        arguments.extend(["--cores".into(), self.cores.to_string().into()]);
        arguments.extend(["--parent".into(), std::process::id().to_string().into()]);
        if self.unpinned {
            arguments.push("--unpinned".into());
        }
        if self.buffered {
            arguments.push("--buffered".into());
        }
        if let Some(bytes) = self.dedup {
            arguments.extend(["--dedup".into(), bytes.to_string().into()]);
        }
        if self.dedup_share {
            arguments.push("--dedup-share".into());
        }
        arguments.extend(["--policy".into(), self.policy.name().into()]);
        if let Some(cpu) = self.pinned_to() {
            arguments.extend(["--cpu".into(), cpu.to_string().into()]);
        }
        if let Some(time) = self.encode_ns_per_byte {
            arguments.extend(["--encode-ns-per-byte".into(), time.to_string().into()]);
        }
        if let Some(media) = &self.media {
            arguments.extend(["--media".into(), media.into()]);
        }
        arguments
    }
}

/// Words that make this program serve; the side and its options follow.
#[derive(Clone, Copy, Debug)]
pub struct Launch(pub &'static [&'static str]);

/// A running server process; dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    /// Address that it listens on.
    pub address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(launch: Launch, side: Side, options: &Options) -> Result<Self, Error> {
        let name = match side {
            Side::Drive => "drive",
            Side::Floor => "floor",
            Side::LongFloor => "long-floor",
        };
        let words = launch.0.iter().copied().chain([name]).map(OsString::from);
        Self::launch(name, words.chain(options.arguments()))
    }

    /// Starts this program with these words as a server that is called `name` in errors, and waits
    /// until it listens.
    ///
    /// # Errors
    /// If it does not start.
    pub fn launch(name: &str, words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let cannot = || Error::system(format!("cannot start the {name} as a process"));
        let program = std::env::current_exe().map_err(cannot())?;
        let mut command = Command::new(program);
        command.args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // An interrupt at the terminal reaches this process alone, which then ends its servers.
        command.process_group(0);
        let mut child = command.spawn().map_err(cannot())?;
        let output = child.stdout.take();
        // Dropping it ends the process.
        let mut server = Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), child };
        let mut line = String::new();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        match (read, line.trim().parse()) {
            (Some(Ok(_)), Ok(address)) => server.address = address,
            _ => {
                let why = "ended before it served; its own message is on standard error";
                return Err(Error::Server(format!("the {name} {why}")));
            }
        }
        Ok(server)
    }

    /// Pins its threads whose names end with `suffix` to these CPUs.
    ///
    /// # Errors
    /// If there is no such thread, or it cannot be moved.
    pub fn place(&self, suffix: &str, cpus: &[usize]) -> Result<(), Error> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = std::fs::read_dir(&tasks).map_err(Error::system(tasks))?;
        let mut placed = 0;
        for task in tasks.filter_map(Result::ok) {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let id = task.file_name().to_str().and_then(|id| id.parse().ok());
            let Some(id) = id.and_then(Pid::from_raw).filter(|_| name.trim_end().ends_with(suffix))
            else {
                continue;
            };
            cpus::pin(Some(id), cpus).map_err(Error::system("cannot pin a thread"))?;
            placed += 1;
        }
        match placed {
            0 => Err(Error::Server(format!("the server has no thread {suffix}"))),
            _ => Ok(()),
        }
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time used so far, in microseconds (resolution: a clock tick, 10 ms).
    pub fn cpu_us(&self) -> u64 {
        cpu_us(self.id())
    }

    /// Returns the CPU time used so far by its current threads, in nanoseconds.
    ///
    /// # Errors
    /// If the kernel keeps no such statistics (`CONFIG_SCHED_INFO`).
    pub fn cpu_ns(&self) -> Result<u64, Error> {
        let path = format!("/proc/{}/task", self.child.id());
        let threads = std::fs::read_dir(&path).map_err(Error::system(path))?;
        let of = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let times: Option<Vec<u64>> = threads.flatten().map(of).collect();
        let missing = || Error::Usage("this kernel keeps no statistics of scheduling".to_owned());
        Ok(times.ok_or_else(missing)?.iter().sum())
    }

    /// Waits until it takes no CPU time for as long as `quiet`; returns the time until then.
    ///
    /// # Errors
    /// Those of [`Server::cpu_ns`].
    pub fn until_quiet(&self, quiet: Duration) -> Result<Duration, Error> {
        let (begun, mut last) = (Instant::now(), (Instant::now(), self.cpu_ns()?));
        loop {
            std::thread::sleep(Duration::from_millis(2));
            let spent = self.cpu_ns()?;
            // Timers take some time of an idle drive, too.
            if spent > last.1 + 500_000 {
                last = (Instant::now(), spent);
            } else if last.0.elapsed() > quiet {
                return Ok(last.0.duration_since(begun));
            }
        }
    }
}

/// Returns the CPU time that a process has used so far, in microseconds (resolution: a clock tick,
/// 10 ms).
pub fn cpu_us(process: u32) -> u64 {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10_000
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves one side and prints its address, until its client (the floor) or its parent ends.
///
/// # Errors
/// If the side cannot be served.
pub fn serve(side: Side, options: &Options) -> Result<(), Error> {
    prepare(options)?;
    match side {
        Side::Floor => floor::serve(announce),
        Side::LongFloor => long_floor::serve(options.cores, announce),
        Side::Drive => drive(options, None),
    }
}

/// Serves a drive whose values `store` keeps, likewise. The store's threads inherit the CPU.
///
/// # Errors
/// If the store cannot be opened, or the drive cannot be served.
pub fn serve_store(
    options: &Options,
    store: impl FnOnce() -> Result<Arc<dyn KvStore>, Error>,
) -> Result<(), Error> {
    prepare(options)?;
    drive(options, Some(store()?))
}

/// Binds the process to its parent and to its CPU.
fn prepare(options: &Options) -> Result<(), Error> {
    if let Some(parent) = options.parent {
        end_with_parent(parent).map_err(|_ended| Error::Interrupted)?;
    }
    if let Some(cpu) = options.cpu {
        cpus::pin(None, &[cpu]).map_err(Error::system(format!("cannot run on CPU {cpu}")))?;
    }
    Ok(())
}

fn drive(options: &Options, kv_store: Option<Arc<dyn KvStore>>) -> Result<(), Error> {
    let media = match &options.media {
        Some(path) => MediaKind::File(path.clone()),
        None => MediaKind::Memory,
    };
    let wrong = |why: &dyn std::fmt::Display| Error::Usage(format!("--backend: {why}"));
    let dedup = options.dedup.map(|chunk_bytes| dedup::Options {
        chunk_bytes,
        memory_bytes: DEDUP_MEMORY_BYTES,
        share: options.dedup_share,
    });
    let resources = Resources { dedup, policy: options.policy, kv_store, ..Resources::default() };
    let config = csd_drive::Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        nqn: NQN.into(),
        media,
        direct: if options.buffered { Direct::Off } else { Direct::Auto },
        size_bytes: options.size_bytes,
        cores: options.cores,
        backend: options.backend.parse().map_err(|why| wrong(&why))?,
        spin_us: options.spin_us,
        resources,
        throttle: options.encode_ns_per_byte.map(encoder),
        ..csd_drive::Config::default()
    };
    let served = csd_drive::serve(&config, announce);
    served.map_err(|error| Error::Server(error.to_string()))
}

/// Returns the model of a drive that encodes a byte in so many nanoseconds.
fn encoder(compute_ns_per_byte: f64) -> Model {
    let cost = Cost { load_ns_per_byte: 0.0, compute_ns_per_byte, pipelined: false };
    Model { programs: vec![(PROGRAM_ID, cost)], ..Model::default() }
}

/// Prints the address for [`Server::start`]. The death signal ends a server whose parent is gone.
fn announce(address: SocketAddr) {
    let mut output = std::io::stdout().lock();
    let _gone = writeln!(output, "{address}").and_then(|()| output.flush());
}
