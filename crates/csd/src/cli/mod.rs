//! The command line, declared once: clap derives parser and help from it.
//!
//! Modules: one a group of commands. Here is what they share, and the list of them.

pub(crate) mod account;
mod array;
pub(crate) mod characterize;
mod drive;
pub(crate) mod drive_log;
mod object;
pub(crate) mod program;
pub(crate) mod run;
mod secret;

pub(crate) use array::{Add, Array, Down, Media, Up};
pub(crate) use drive::{Check, Drive, Serve};
pub(crate) use object::{Get, Ls, Name, On, Put};
pub(crate) use run::Run;
pub(crate) use secret::{NewSecret, SecretCommand};

use std::path::PathBuf;

use clap::builder::RangedI64ValueParser;
use clap::{Parser, Subcommand, value_parser};
use csd_nvme::controller::connect::is_nqn;

/// Drives that compute where their data is, and arrays of them.
///
/// Sizes are binary: 64K, 1M, 1G and 1T are 2^16, 2^20, 2^30 and 2^40 bytes.
///
/// Exit codes: 0 done; 1 the run failed; 2 wrong use; 3 answers differ; 4 done, but degraded (a
/// drive is down).
#[derive(Debug, Parser)]
#[command(name = "csd", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Array file [default: $CSD_ARRAY, or else ./csd-array.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) array: Option<PathBuf>,
    /// Secrets file, of a drive to serve or of this host [default: $CSD_SECRETS, or else none]
    ///
    /// A line is `host NQN SECRET` or `controller [NQN] SECRET`, with secrets as `csd secret new`
    /// prints them. Only the file's owner may be able to read it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// NVMe Qualified Name of this host, under which drives keep its programs [default:
    /// $CSD_HOST_NQN, or else the one host of the secrets file, /etc/nvme/hostnqn, or a name that
    /// follows from the machine's id]
    #[arg(long, global = true, value_name = "NQN", value_parser = parse_nqn)]
    pub(crate) host_nqn: Option<String>,
    /// Print one JSON object {schema, command, result, warnings} instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  csd array up --drives 2                    start two drives on this machine
  csd put readings.npy                       store an array, spread over the drives
  csd put - prices --csv --column price --type f64 < trades.csv
  csd run count prices --equal 10.5          count inside the drives
  csd run count prices --equal 10.5 --on all compare drives, host and both
  csd array down                             stop the drives, keep their data";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a drive
    #[command(subcommand)]
    Drive(Drive),
    /// Make secrets, by which hosts and drives know each other
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Start, look at or stop an array of drives on this machine
    #[command(subcommand)]
    Array(Array),
    /// Store a file as an object
    Put(Put),
    /// Fetch an object, checking its digest
    Get(Get),
    /// List objects
    Ls(Ls),
    /// Show what the catalogue knows of an object
    Stat(Name),
    /// Remove an object
    Rm(Name),
    /// Measure what kernels cost in a drive and on this host, and write a profile
    Characterize(Box<characterize::Characterize>),
    /// Run a kernel over an object
    #[command(subcommand)]
    Run(Run),
    /// Load programs of your own into drives, and run them
    #[command(subcommand)]
    Program(program::Program),
}

/// A number of cores.
fn cores() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=1024)
}

/// An NVMe Qualified Name.
pub(crate) fn parse_nqn(text: &str) -> Result<String, String> {
    match is_nqn(text) {
        true => Ok(text.to_owned()),
        false => Err("an NQN begins with `nqn.` and has at most 223 bytes".to_owned()),
    }
}

impl Command {
    /// The command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Drive(Drive::Serve(_)) => "drive serve",
            Self::Drive(Drive::Check(_)) => "drive check",
            Self::Drive(Drive::Log(_)) => "drive log",
            Self::Secret(SecretCommand::New(_)) => "secret new",
            Self::Array(Array::Up(_)) => "array up",
            Self::Array(Array::Add(_)) => "array add",
            Self::Array(Array::Status) => "array status",
            Self::Array(Array::Reclaim) => "array reclaim",
            Self::Array(Array::Down(_)) => "array down",
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::Ls(_) => "ls",
            Self::Stat(_) => "stat",
            Self::Rm(_) => "rm",
            Self::Characterize(_) => "characterize",
            Self::Run(run) => run.words(),
            Self::Program(command) => command.words(),
        }
    }
}

#[cfg(test)]
mod tests;
