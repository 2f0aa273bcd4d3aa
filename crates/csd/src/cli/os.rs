//! The command line of `csd os`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use csd_os::filesystem::Fs;

use super::attach::parse_time;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Os {
    /// Start the operating system of a drive: a Linux root folder, with /data on the drive's blocks
    ///
    /// An empty block namespace gets a file system. While ext4 is mounted, hosts only read the
    /// blocks. The drive serves its inside (`csd drive serve --inside`) on this machine. Run again,
    /// it starts an operating system that has ended.
    #[command(after_help = "\
Examples:
  csd os up nvme+unix:///run/d0.sock/nqn.2026-11.io.csdstore:drive --root build/os/root
  csd os up d0 --root build/os/root --cpus 0.5 --memory 2G --pids 512
  csd os up d0 --root build/os/root --key ~/.ssh/id_ed25519.pub
  csd os up nvme+unix:///run/d0.sock/nqn.2026-11.io.csdstore:drive --root / --fs ocfs2")]
    Up(Up),
    /// Show operating systems: CPU, memory, processes that were killed for memory, /data, services
    ///
    /// One that has ended, or whose drive does not answer, makes exit code 4.
    Status(Which),
    /// Run a program in the operating system of a drive, as root, in /data
    ///
    /// The exit code is that of the program.
    #[command(after_help = "\
Examples:
  csd os exec d0 -- sh -c 'sort big | head'
  csd os exec nvme+unix:///run/d0.sock/nqn.2026-11.io.csdstore:drive -- sh")]
    Exec(Exec),
    /// Start and end programs that go on after the command, in the operating system of a drive
    #[command(subcommand)]
    Service(Service),
    /// Stop operating systems, and remove all that they have on this machine; /data stays on the
    /// drive
    ///
    /// Also removes what is left of one that was killed. Hosts may write the drive's blocks from
    /// then on.
    Down(Which),
    /// Copy a pipe to a log of bounded size; `csd os up` starts this
    #[command(hide = true)]
    KeepLog(KeepLog),
}

/// Services of an operating system.
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Start a service: a program inside, as root, in /data, that `csd os status` lists
    ///
    /// Its output goes to /var/log/csd/NAME.log inside. It ends by `csd os service stop` and with
    /// its operating system; one that has ended by itself makes exit code 4 of `csd os status`.
    #[command(after_help = "\
Examples:
  csd os service start d0 web -- python3 -m http.server --bind d0
  csd os service stop d0 web")]
    Start(StartService),
    /// End a service, and the processes that it has started
    Stop(StopService),
}

/// Options of `csd os service start`.
#[derive(Args, Debug)]
pub(crate) struct StartService {
    /// The URL of the drive's inside, or its name in the array
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: String,
    /// Name of the service: letters, digits, - and _
    pub(crate) service: String,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    pub(crate) program: Vec<String>,
}

/// Options of `csd os service stop`.
#[derive(Args, Debug)]
pub(crate) struct StopService {
    /// The URL of the drive's inside, or its name in the array
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: String,
    /// Name of the service
    pub(crate) service: String,
}

/// Options of `csd os keep-log`.
#[derive(Args, Debug)]
pub(crate) struct KeepLog {
    /// Named pipe into which programs write
    pub(crate) pipe: PathBuf,
    /// Log to write
    pub(crate) log: PathBuf,
}

/// Options of `csd os up`.
#[derive(Args, Debug)]
pub(crate) struct Up {
    /// The URL of the drive's inside, or its name in the array [default: every drive of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
    /// Root folder of the image, which is only read [default: as `csd array up` was given]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,
    /// CPU time that all programs together may take, in cores [default: 1]
    #[arg(long, value_name = "CORES", value_parser = parse_cpus)]
    pub(crate) cpus: Option<u32>,
    /// Memory that all programs together may take, page cache included [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Most processes and threads [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<u32>,
    /// File system of /data. With ocfs2, other machines mount the drive's blocks at the same time,
    /// and write them; this machine's kernel needs OCFS2, a registered cluster and an end of the
    /// drive's tunnel [default: ext4]
    #[arg(long, value_name = "ext4|ocfs2")]
    pub(crate) fs: Option<Fs>,
    /// Run OpenSSH for the owners of these public keys; the drive has a tunnel (`csd drive serve
    /// --tunnel-host`) [default: as `csd array up` was given]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Longest wait of /data for a drive that is away; then its programs get errors
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    pub(crate) retry: Duration,
}

/// Drives of `csd os status` and `csd os down`.
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// The URL of the drive's inside, or its name in the array [default: every drive of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
}

/// Options of `csd os exec`.
#[derive(Args, Debug)]
pub(crate) struct Exec {
    /// The URL of the drive's inside, or its name in the array
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: String,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    pub(crate) program: Vec<String>,
}

impl Os {
    /// Returns the command's words.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Up(_) => "os up",
            Self::Status(_) => "os status",
            Self::Exec(_) => "os exec",
            Self::Service(Service::Start(_)) => "os service start",
            Self::Service(Service::Stop(_)) => "os service stop",
            Self::Down(_) => "os down",
            Self::KeepLog(_) => "os keep-log",
        }
    }
}

/// Parses a number of cores; returns thousandths.
pub(crate) fn parse_cpus(text: &str) -> Result<u32, String> {
    let wrong = || "say a number of cores from 0.01 to 1024, as in 0.5".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let has_digits = !whole.is_empty() && !text.ends_with('.');
    if part.len() > 3 || !has_digits || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    let thousandths: u32 = format!("{whole}{part:0<3}").parse().map_err(|_| wrong())?;
    if (10..=1_024_000).contains(&thousandths) { Ok(thousandths) } else { Err(wrong()) }
}

#[test]
fn cores_are_counted_in_thousandths() {
    for (text, thousandths) in [("1", 1000), ("0.5", 500), ("0.01", 10), ("12.345", 12_345)] {
        assert_eq!(parse_cpus(text), Ok(thousandths), "{text}");
    }
    for wrong in ["", ".", ".5", "1.", "0", "0.001", "-1", "1.2345", "1025", "x", "1e3", "1,5"] {
        assert!(parse_cpus(wrong).is_err(), "{wrong}");
    }
}
