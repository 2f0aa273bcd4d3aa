//! The command line, declared once: clap derives parser and help from it.
//!
//! Each module has one group of commands. This one lists them and has their shared parts.

pub(crate) mod account;
mod array;
pub(crate) mod attach;
pub(crate) mod bench;
pub(crate) mod bench_ec;
pub(crate) mod characterize;
mod drive;
pub(crate) mod drive_log;
pub(crate) mod drive_service;
pub(crate) mod drive_status;
pub(crate) mod drive_trace;
pub(crate) mod edges;
pub(crate) mod files;
pub(crate) mod kernel;
pub(crate) mod kv;
pub(crate) mod meter;
pub(crate) mod mount;
mod object;
pub(crate) mod os;
pub(crate) mod program;
#[cfg(feature = "query")]
pub(crate) mod query;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod scrub;
pub(crate) mod search;
mod secret;
pub(crate) mod tuning;
pub(crate) mod tunnel;
pub(crate) mod ways;
mod words;

pub(crate) use array::{Add, Array, Down, Media, Rebalance, Rebuild, Remove, Replace, Up};
pub(crate) use bench::Bench;
pub(crate) use drive::{Check, Drive, Serve};
pub(crate) use object::{Get, Ls, On, Protect, Put, Rm, Stat};
pub(crate) use run::Run;
pub(crate) use secret::{NewSecret, SecretCommand};

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand, value_parser};
pub(crate) use csd_client::parse_nqn;

/// Drives that compute where their data is, and arrays of them.
///
/// `csd COMMAND --help` tells more of a command.
///
/// Sizes: 64K, 1M, 1.5G and 1T (or KiB and so on) are binary, 1M is 2^20 bytes; 1KB, 1MB, 1GB and
/// 1TB are decimal, 1MB is 10^6 bytes.
///
/// Exit codes: 0 done; 1 a file, drive or network failed; 2 wrong use; 3 answers differ; 4 done,
/// with a warning that a script must see.
#[derive(Debug, Parser)]
#[command(name = "csd", version = VERSION, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Array file [default: $CSD_ARRAY, or else ./csd-array.toml]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub(crate) array: Option<PathBuf>,
    /// Secrets file, of a drive to serve or of this host [default: $CSD_SECRETS, or else none]
    ///
    /// A line is `host NQN SECRET` or `controller [NQN] SECRET`, with secrets as `csd secret new`
    /// prints them. Only the file's owner may be able to read it.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// NVMe Qualified Name of this host, under which drives keep its programs [default:
    /// $CSD_HOST_NQN, or else the one host of the secrets file, /etc/nvme/hostnqn, or a name that
    /// follows from the machine's id]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NQN")]
    #[arg(value_parser = parse_nqn)]
    pub(crate) host_nqn: Option<String>,
    /// Longest wait for an answer of a drive, seconds
    ///
    /// A drive whose machine accepts no connection within 5 s is down. A read for which a drive is
    /// needed tries it a second time, and waits as long again. A measurement waits, too, and says
    /// which drive was silent: its figures contain that time.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECONDS", default_value = "30")]
    #[arg(value_parser = parse_timeout)]
    pub(crate) timeout: Duration,
    /// Print one JSON object {schema, command, result, warnings} instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// Print results, warnings and errors only
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Name drives by their whole URL in messages and tables
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Longest `--timeout`, seconds: an hour.
const TIMEOUT_S_MAX: f64 = 3600.0;

/// Parses a positive number of seconds.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "no number of seconds".to_owned())?;
    match seconds > 0.0 && seconds <= TIMEOUT_S_MAX {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(format!("a number of seconds above 0, at most {TIMEOUT_S_MAX}")),
    }
}

/// Help heading of the options that most commands take.
const GLOBAL: &str = "Global options";

/// Version, commit if the build knew it, and features.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("CSD_BUILD"));

const EXAMPLES: &str = "\
Examples:
  csd array up --drives 2                    start two drives on this machine
  csd put readings.npy                       store an array, spread over the drives
  csd put - prices --csv --column price --type f64 < trades.csv
  csd run count prices --equal 10.5          count inside the drives
  csd run count prices --equal 10.5 --on all
                                             compare drives, host and both
  csd array down                             stop the drives, keep their data";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a drive, check its media, show its last executions
    #[command(subcommand)]
    Drive(Drive),
    /// Make secrets with which hosts and drives prove who they are
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Start, show, grow or stop an array of drives
    #[command(subcommand)]
    Array(Array),
    /// Make a drive's blocks a file of this machine, until it is unmounted (FUSE)
    Attach(attach::Attach),
    /// Show objects as files of a folder that can be read, until it is unmounted (FUSE)
    ///
    /// A `/` in a name ends the name of a folder. A file is what `csd get` writes: numbers have a
    /// .npy header if the name ends in .npy. Their dates are those of the puts. They cannot be
    /// written. A program that has a file open reads the version that it opened, or gets an error
    /// (ESTALE) once that is gone. An object with the name of a folder hides the folder.
    Mount(mount::Mount),
    /// Make a network device of a drive's tunnel
    #[command(subcommand)]
    Tunnel(tunnel::Tunnel),
    /// Run Linux programs in drives, on the drives' own blocks
    #[command(subcommand)]
    Os(os::Os),
    /// Store files as objects
    Put(Put),
    /// Fetch an object, checking its digest
    Get(Get),
    /// Write objects to standard output
    Cat(files::Cat),
    /// List objects
    Ls(Ls),
    /// Show the sizes of objects by folder
    Du(files::Du),
    /// Show an object's type, shape, size, place and digest
    Stat(Stat),
    /// Print digests of objects, or compare them with a list, as sha256sum and b3sum do
    Sum(files::Sum),
    /// Make a folder and the objects of a prefix the same, in one direction
    Sync(files::Sync),
    /// Write objects to a tar, each as the file that `csd get` writes
    Export(files::Export),
    /// Store the members of a tar as objects
    Import(files::Import),
    /// Copy an object to another name, from drive to drive
    ///
    /// The copy has the same type, layout and code, and lies on the same drives while they are up.
    /// Its chunks do not go through this host, unless drives cannot fetch them. An interrupted copy
    /// leaves both names as they were.
    #[command(after_help = "\
Examples:
  csd cp climate/grid climate/grid-2025
  csd cp climate/grid backup/                becomes backup/grid
  csd cp prices prices-old --force           replaces prices-old once the copy is whole")]
    Cp(files::Copy),
    /// Rename an object
    ///
    /// Copies it as `csd cp` does, and removes the former name once the copy is whole. It needs the
    /// room of the copy meanwhile. If it is cut off, the object has its former name, or both: then
    /// `csd rm` removes the former one.
    #[command(after_help = "\
Examples:
  csd mv climate/grid climate/grid-2025
  csd mv prices archive/                     becomes archive/prices")]
    Mv(files::Copy),
    /// Print the lines of objects in which a regular expression matches, found in the drives
    ///
    /// Objects are bytes, and a line is what ends with a newline; any other byte may be in it, and
    /// is printed as it is. So the lines are those of `grep -a` in the C locale, for patterns that
    /// mean the same to both. A line may be longer than a chunk; one that goes over the end of a
    /// chunk has at most 256 MiB.
    ///
    /// Exit codes: 0 if a line was printed or counted, 1 if there is none, 2 if something failed.
    Grep(search::Grep),
    /// Count the lines, words and bytes of objects, in the drives
    Wc(search::Wc),
    /// Show the most frequent lines, words or fields of objects, counted in the drives
    TopK(search::TopK),
    /// Show how numbers in objects are distributed, counted in the drives
    Histogram(search::Histogram),
    /// Protect an object against the loss of drives, by an erasure code
    Protect(Protect),
    /// Remove objects
    Rm(Rm),
    /// Let the drives check the chunks of objects where they are
    ///
    /// Each drive reads its chunks and compares them with the checksums that the catalogue holds;
    /// only digests cross the network. Names every bad chunk: missing, unreadable, or another one
    /// than was put. Reads every copy of every name, too. Changes nothing. Exit code 4 if a chunk
    /// or a copy is bad or was not read.
    Scrub(scrub::Scrub),
    /// Rebuild lost pieces of protected objects
    ///
    /// Gives drives that were emptied or replaced their votes back, mends damaged copies of names,
    /// rebuilds the pieces that drives lack, the stripes with the least redundancy first, lets the
    /// drives compare every piece with its checksum, and rebuilds those that differ. It can be
    /// interrupted and run again. Exit code 4 if a piece is still missing; it says which.
    Repair(repair::Repair),
    /// Store and fetch values in the key-value namespace of a drive, also another maker's
    #[command(subcommand)]
    Kv(kv::Kv),
    /// Run a command, and record what it took: time, CPU time of host and drives, bytes, energy
    ///
    /// Counts the command and all that it starts, and of the array, if there is one, the operating
    /// systems, the drives and both ends of their tunnels. Output of the command stays as it is;
    /// the record follows on standard error, or with --json on standard output.
    ///
    /// The exit code is the command's own; 125 if the meter itself failed, 126 if the command
    /// cannot be run, 127 if it is not there.
    #[command(after_help = "\
Examples:
  csd meter --idle 10s -o job.json -- recipes/mpi/run ./dft /data/cubes
  csd meter --profile catalina -- make")]
    Meter(meter::Meter),
    /// Measure what kernels cost in a drive and on this host, and write a profile
    Characterize(Box<characterize::Characterize>),
    /// Run a built-in kernel over objects: in the drives, on this host, or on both
    #[command(subcommand)]
    Run(Run),
    /// Ask the drives: SQL over tables in Parquet objects, filtered and grouped where they lie
    ///
    /// A table is an object, or with single quotes a pattern of several: `from lineitem`, or
    /// `from 'lineitem/*.parquet'`. This host does the rest of a query, and all that no drive can
    /// do, with the same answer.
    #[cfg(feature = "query")]
    Query(Box<query::Query>),
    /// Make programs of your own, load them into drives, and run them
    #[command(subcommand)]
    Program(program::Program),
    /// Measure this machine's drives, and what the machine can do without them
    #[command(subcommand)]
    Bench(Bench),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions(Completions),
    /// Write man pages, one a command
    #[command(hide = true)]
    Man(Man),
}

/// Options of `csd completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Options of `csd man`.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Folder for the pages; it is made if need be
    pub(crate) folder: PathBuf,
}

/// Commands, and the global options that they ignore.
const MEANINGLESS: [(&[&str], &[&str]); 8] = [
    (&["drive", "serve"], &["array", "host_nqn"]),
    (&["drive", "check"], &["array", "secrets", "host_nqn"]),
    (&["bench", "block"], &["array", "secrets", "verbose"]),
    (&["os", "exec"], &["json", "quiet", "verbose"]),
    (&["program", "new"], &["array", "secrets", "host_nqn", "timeout", "verbose"]),
    (&["secret", "new"], &["array", "secrets", "host_nqn"]),
    (&["completions"], &["array", "secrets", "host_nqn", "json", "quiet", "verbose"]),
    (&["man"], &["array", "secrets", "host_nqn", "json", "quiet", "verbose"]),
];

/// Returns the command line. Hides from each command's help the global options that it ignores.
pub(crate) fn command() -> clap::Command {
    let whole = Cli::command();
    let globals: Vec<clap::Arg> = whole.get_arguments().cloned().collect();
    let whole = MEANINGLESS.iter().fold(whole, |whole, (path, options)| {
        let hidden = globals.iter().filter(|one| options.contains(&one.get_id().as_str()));
        let hidden: Vec<_> = hidden.map(|one| one.clone().hide(true)).collect();
        at(whole, path, &|inner| inner.args(&hidden))
    });
    at(whole, &["grep"], &|inner| inner.args(search::globals_of_grep(&globals)))
}

/// Changes the subcommand at the end of a path.
pub(crate) fn at(
    command: clap::Command,
    path: &[&'static str],
    change: &dyn Fn(clap::Command) -> clap::Command,
) -> clap::Command {
    match path {
        [] => change(command),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| at(inner, rest, change)),
    }
}

/// Returns the words of the command in `arguments`, as JSON output names it, as far as they are
/// known.
pub(crate) fn words_of(arguments: impl Iterator<Item = String>) -> String {
    let (mut at, mut words) = (Cli::command(), Vec::new());
    for argument in arguments {
        if let Some(inner) = at.find_subcommand(&argument).cloned() {
            at = inner;
            words.push(argument);
        }
    }
    words.join(" ")
}

/// Addresses to listen on: all those of one name.
#[derive(Clone, Debug)]
pub(crate) struct Listen(pub(crate) Vec<SocketAddr>);

/// Parses an address to listen on: HOST:PORT, where the host may be a name.
pub(crate) fn parse_listen(text: &str) -> Result<Listen, String> {
    let wrong = |why: &str| format!("{why}; say HOST:PORT, as in 127.0.0.1:4420");
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // The last group of an IPv6 address without brackets is no port.
    let is_bare = text.parse::<Ipv6Addr>().is_ok();
    if !has_port || is_bare {
        return Err(wrong("there is no port"));
    }
    csd_initiator::resolve(text).map(Listen).map_err(|why| wrong(&why))
}

/// Returns a parser of numbers of cores.
fn cores() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=1024)
}

#[cfg(test)]
pub(crate) mod tests;
