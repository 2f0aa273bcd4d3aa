//! Options of `csd array`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use csd_os::filesystem::Fs;

use super::os::parse_cpus;
use super::scrub::rate;
use super::tuning::Tuned;
use super::tunnel::parse_network;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Array {
    /// Start drives as processes on this machine and write the array file
    ///
    /// Run again, it starts only the drives that are not running. Media files stay over down and
    /// up; drives in memory come up empty. Media, logs and the array file lie in one folder:
    /// nothing is started, written or deleted outside of it.
    ///
    /// The array file keeps the options of drives for every later start. Metrics are served at the
    /// given address by the first drive, and at the ports that follow by the others.
    #[command(after_help = "\
Examples:
  csd array up                              two drives of 1 GiB, or those of the array file
  csd array up --drives 4 --size 256M
  csd array up --size 100G --array /mnt/disk/csd-array.toml
                                            media on another disk
  csd array up --media memory               drives that come up empty")]
    Up(Up),
    /// Add drives to the array: URLs of drives that serve, or new ones on this machine
    ///
    /// Copies every name to the new drives before the array file names them. Objects that are
    /// there stay where they are, unless --rebalance is given; new ones use all drives. Every drive
    /// of the array must be up, and no host with a copy of the array file may write meanwhile. New
    /// drives on this machine have the options of the array's last one, but for those that are
    /// given.
    #[command(after_help = "\
Examples:
  csd array add --drives 2
  csd array add nvme+tcp://192.0.2.7:4420/nqn.2026-11.io.csdstore:d7")]
    Add(Add),
    /// Put a new drive into the place of another one, with what it held
    ///
    /// The new drive is one that serves at a URL, or a new one on this machine. If the former drive
    /// answers, every piece is copied from it and compared with its digest before the new one takes
    /// its place; others may go on using the array meanwhile. If it does not, its medium is read if
    /// that is here, even a damaged one. Pieces that cannot be copied are computed from the other
    /// drives. Without the former drive all pieces of the others are read first, and a replacement
    /// by which objects would lose bytes is refused.
    ///
    /// Then the new drive gets the names and a vote, and all objects are repaired, as `csd repair`
    /// does. The former drive is stopped if it is on this machine; its medium is kept, and can be
    /// taken back with --medium, or with --url where it serves. A drive that holds data of another
    /// array is refused. An interrupted command leaves the array as it was.
    #[command(after_help = "\
Examples:
  csd array replace d3
  csd array replace d3 --url nvme+tcp://192.0.2.7:4420/nqn.2026-11.io.csdstore:d3
  csd array replace d3 --medium csd-array/d3.media    take back a medium that was kept")]
    Replace(Replace),
    /// Move objects that do not lie on all drives to all of them
    ///
    /// For objects that were there before drives were added. Layout, placement, code and digests
    /// stay as they are; a whole object, which lies on one drive, is not moved. Every chunk goes
    /// from drive to drive, or by this host if its drives do not know each other, and is compared
    /// with its digest; lost ones are computed from other pieces. Others may go on using the array
    /// meanwhile. It can be interrupted and run again, which deletes unfinished copies; `csd
    /// array reclaim` deletes a former copy that was left.
    /// Every drive must be up.
    #[command(after_help = "\
Examples:
  csd array rebalance                       all objects
  csd array rebalance climate/grid.npy      this one
  csd array rebalance --rate 50M            at most 50 MiB/s of each drive")]
    Rebalance(Rebalance),
    /// Take a drive out of the array, once its objects are on the others
    ///
    /// All objects with pieces on the drive are moved to all other drives, as `csd array rebalance`
    /// does; then every name is copied to each of the others, and the drive loses its place. It may
    /// be down: then its pieces are computed from others, and a removal by which objects would lose
    /// bytes is refused. So is one after which a code would need more drives than are left. The
    /// drive is stopped if it is on this machine; its medium is kept. All other drives must be up,
    /// and no host with a copy of the array file may write meanwhile.
    #[command(after_help = "\
Examples:
  csd array remove d3
  csd array remove d3 --rate 50M            at most 50 MiB/s of each drive")]
    Remove(Remove),
    /// Show every drive of the array
    #[command(after_help = "\
Examples:
  csd array status
  csd array status --verbose                with whole URLs")]
    Status,
    /// Free what interrupted puts left on the drives
    ///
    /// These are puts that were cut off, or that lost their name to another put. Others may go on
    /// using the array meanwhile. A put that may still run, because a command of this machine
    /// writes objects or its data grows, is named and kept: `csd rm` removes it, too.
    Reclaim,
    /// Give drives that have forgotten names their vote back
    ///
    /// A drive that was emptied, replaced, or put back with an older medium does not vote: its
    /// answers do not count, and commands say so. This copies every name from the other drives to
    /// it. The objects' data is not copied. Others may go on using the array meanwhile.
    ///
    /// A drive that is named and votes has damaged copies of names mended.
    ///
    /// After most drives were emptied, too few are left that know the names. --accept goes on with
    /// what the voting drives know. Names and changes that only the others knew are lost, and a
    /// removed name may come back. Likewise --accept-name takes the highest sound copy of a name
    /// whose other copies are damaged. Both need all drives up, and no other host may write
    /// meanwhile.
    #[command(after_help = "\
Examples:
  csd array rebuild                         every drive that does not vote
  csd array rebuild d3
  csd array rebuild --accept                from the drives that vote, however few
  csd array rebuild --accept-name prices    one name, as its highest sound copy says")]
    Rebuild(Rebuild),
    /// Stop the drives that `csd array up` started
    ///
    /// Sends SIGTERM, waits, and kills after 10 s with a warning.
    Down(Down),
}

/// Options of `csd array up`.
#[derive(Args, Debug)]
pub(crate) struct Up {
    /// Number of drives [default: 2, or as the array file says]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) drives: Option<u16>,
    /// Folder for the drives' media and logs, inside the array file's [default: csd-array, next to
    /// the array file]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Size of each new drive's media [default: 1G]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Media of new drives [default: file]
    #[arg(long, value_enum)]
    pub(crate) media: Option<Media>,
    #[command(flatten)]
    pub(crate) drive: Tuned,
    #[command(flatten)]
    pub(crate) os: OsOptions,
    /// Make new, empty media where media of the array are missing; what was on them is lost
    #[arg(long)]
    pub(crate) recreate: bool,
    /// Make a new array of media that are in the folder, such as after its array file was lost
    #[arg(long)]
    pub(crate) adopt: bool,
}

/// Operating systems of an array's drives.
#[derive(Args, Debug)]
pub(crate) struct OsOptions {
    /// Start the operating system of every drive, too, from this root folder of an image; the array
    /// file keeps these options. `csd os` has more
    #[arg(long, value_name = "FOLDER")]
    pub(crate) os: Option<PathBuf>,
    /// CPU time that the programs of one may take, in cores [default: 1]
    #[arg(long, value_name = "CORES", value_parser = parse_cpus, requires = "os")]
    pub(crate) os_cpus: Option<u32>,
    /// Memory that the programs of one may take, page cache included [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "os")]
    pub(crate) os_memory: Option<u64>,
    /// Most processes and threads of one [default: 512]
    #[arg(long, value_name = "N", requires = "os")]
    pub(crate) os_pids: Option<u32>,
    /// File system of /data: ext4, or ocfs2, which other machines mount at the same time [default:
    /// ext4]. `csd os up --help` has more
    #[arg(long, alias = "fs", value_name = "KIND", requires = "os")]
    pub(crate) os_fs: Option<Fs>,
    /// Run OpenSSH for the owners of these public keys, reached by the drives' tunnels from this
    /// host alone: `ssh -F csd-array/ssh_config d0`
    #[arg(long, value_name = "FILE", requires = "os")]
    pub(crate) os_key: Option<PathBuf>,
    /// Address of this host in the network of the operating systems, with the length of its prefix;
    /// drives have those that follow. Each array of a machine has a network of its own [default:
    /// 10.77.0.1/24]
    #[arg(long, value_name = "IP/BITS", value_parser = parse_network, requires = "os_key")]
    pub(crate) os_network: Option<(IpAddr, u8)>,
    /// Let root of each operating system log in to the others by OpenSSH, with a key of the array's
    /// own: a program inside then starts others on other drives, and reaches their /data
    #[arg(long, requires = "os_key")]
    pub(crate) os_cluster: bool,
}

/// Options of `csd array add`.
#[derive(Args, Debug)]
pub(crate) struct Add {
    /// Drives that serve, on any machine: nvme+tcp://host:port/NQN
    #[arg(value_name = "URL", required_unless_present = "drives", conflicts_with = "drives")]
    pub(crate) urls: Vec<String>,
    /// Number of new drives to start on this machine
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) drives: Option<u16>,
    /// Size of each new drive's media [default: as the array's last drive on this machine, or 1G]
    #[arg(long, value_parser = parse_size, value_name = "SIZE", requires = "drives")]
    pub(crate) size: Option<u64>,
    /// Media of new drives [default: as the array's last drive on this machine, or file]
    #[arg(long, value_enum, requires = "drives")]
    pub(crate) media: Option<Media>,
    /// Then move all objects to all drives, as `csd array rebalance` does
    #[arg(long)]
    pub(crate) rebalance: bool,
    #[command(flatten)]
    pub(crate) drive: Tuned,
}

/// Options of `csd array replace`.
#[derive(Args, Debug)]
pub(crate) struct Replace {
    /// The drive to replace, by name
    #[arg(value_name = "DRIVE")]
    pub(crate) drive: String,
    /// The new drive, which serves on any machine: nvme+tcp://host:port/NQN [default: a new one on
    /// this machine]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A medium in the array's folder that this place had before; what it still has is used
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "size", "media"])]
    pub(crate) medium: Option<PathBuf>,
    /// Size of the new drive's media [default: as the drive before, or the array's last one here]
    #[arg(long, value_parser = parse_size, value_name = "SIZE", conflicts_with = "url")]
    pub(crate) size: Option<u64>,
    /// Media of the new drive [default: as the drive before, or the array's last one here]
    #[arg(long, value_enum, conflicts_with = "url")]
    pub(crate) media: Option<Media>,
    /// Replace it although objects lose bytes by that
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Bytes that each drive reads or writes in a second, such as 50M [default: no limit]
    #[arg(long, alias = "budget", value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// Options of `csd array rebalance`.
#[derive(Args, Debug)]
pub(crate) struct Rebalance {
    /// Names of the objects [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Bytes that each drive reads or writes in a second, such as 50M [default: no limit]
    #[arg(long, alias = "budget", value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// Options of `csd array remove`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Remove {
    /// The drive to remove, by name
    #[arg(value_name = "DRIVE")]
    pub(crate) drive: String,
    /// Remove it although objects lose bytes by that
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Bytes that each drive reads or writes in a second, such as 50M [default: no limit]
    #[arg(long, alias = "budget", value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// Media of an array's drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Media {
    /// A file each, in the array's folder
    File,
    /// Memory, lost when a drive stops
    Memory,
}

/// Options of `csd array rebuild`.
#[derive(Args, Debug)]
pub(crate) struct Rebuild {
    /// Drives, by name [default: all that do not vote]
    #[arg(value_name = "DRIVE", conflicts_with = "accept_name")]
    pub(crate) drives: Vec<String>,
    /// Take for true what the voting drives know, however few they are; the rest is lost
    #[arg(long, conflicts_with = "accept_name")]
    pub(crate) accept: bool,
    /// Take for true the highest sound copy of this name; later changes of it are lost
    #[arg(long, value_name = "NAME")]
    pub(crate) accept_name: Vec<String>,
}

/// Options of `csd array down`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd array down                            stop the drives, keep their data
  csd array down --delete                   and free the disk, once you have said yes")]
pub(crate) struct Down {
    /// Also delete media, logs and the array file, and with them all objects; asks first
    #[arg(long)]
    pub(crate) delete: bool,
    /// Delete without asking
    #[arg(long, requires = "delete")]
    pub(crate) yes: bool,
}
