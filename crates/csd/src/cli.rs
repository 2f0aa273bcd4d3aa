//! The command line, declared once: clap derives parser and help from it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use csd_reactor::BackendKind;
use csd_store::ElementType;
use csd_store::source::Column;

use crate::cli_run::Arrange;
pub(crate) use crate::cli_run::Run;
use crate::units::{parse_percent, parse_size};

pub(crate) mod program;

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
    /// Run a kernel over an object
    #[command(subcommand)]
    Run(Run),
    /// Load programs of your own into drives, and run them
    #[command(subcommand)]
    Program(program::Program),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Drive {
    /// Serve a drive over NVMe/TCP until SIGTERM or SIGINT
    #[command(after_help = "\
Examples:
  csd drive serve --media memory --size 1G
  csd drive serve --media /data/d0.media --size 64G --kv 80% --listen 127.0.0.1:4421")]
    Serve(Serve),
    /// Look at media that no drive serves: every checksum; exit code 1 when there is damage
    Check(Check),
}

/// Options of `csd drive check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// File or block device to look at; nothing is written to it
    pub(crate) media: PathBuf,
}

/// Options of `csd drive serve`.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Where the bytes are kept: `memory`, the path of a file, which is created if it is not
    /// there, or a block device, which is opened for this drive alone
    #[arg(long, value_name = "memory|PATH")]
    pub(crate) media: String,
    /// Size of new media; a block device is used whole without it
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Share of key-value namespaces in the media; the rest is blocks
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT", default_value = "50%")]
    pub(crate) kv: u8,
    /// Share of the key-value part kept free for cleaning
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT", default_value = "10%")]
    pub(crate) reserve: u8,
    /// Size of the memory namespace, whose bytes programs and hosts share; it takes RAM as it is
    /// written, and is empty after a start; 0 for none
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "64M")]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) programs: program::Programs,
    /// Address to listen on; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4420")]
    pub(crate) listen: SocketAddr,
    /// Allow an address beyond loopback: there is no authentication, anyone who can connect may
    /// read and write
    #[arg(long)]
    pub(crate) allow_any_host: bool,
    /// NVMe Qualified Name of the drive
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.io.csdstore:drive")]
    pub(crate) nqn: String,
    /// Number of cores that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = cores())]
    pub(crate) cores: u16,
    /// How to wait for the kernel
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
    /// Size of a logical block: 512 or 4096 bytes
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = parse_block)]
    pub(crate) block: u32,
    /// Whether to bypass the page cache (O_DIRECT); `auto` does where the file system takes it
    #[arg(long, value_enum, value_name = "auto|on|off", default_value_t = Direct::Auto)]
    pub(crate) direct: Direct,
    /// Count commands, and tell Prometheus at this address (GET /metrics)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Form of the log on standard error
    #[arg(long, value_enum, value_name = "text|json", default_value_t = crate::log::Form::Text)]
    pub(crate) log: crate::log::Form,
    /// Most talkative level of the log
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = crate::log::Level::Info)]
    pub(crate) log_level: crate::log::Level,
    /// Longest wait for commands in flight after SIGTERM or SIGINT, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) drain: u16,
    /// Longest spin before a core sleeps, microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    pub(crate) spin: u32,
    /// Write the drive's URL to this file once it serves
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

/// Whether to bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direct {
    Auto,
    On,
    Off,
}

impl From<Direct> for csd_drive::media::Direct {
    fn from(direct: Direct) -> Self {
        match direct {
            Direct::Auto => Self::Auto,
            Direct::On => Self::On,
            Direct::Off => Self::Off,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Array {
    /// Start drives as processes on this machine and write the array file
    ///
    /// Run again, it starts only the drives that are not running. Media files stay over down and
    /// up; drives in memory come up empty.
    Up(Up),
    /// Show every drive of the array
    Status,
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
    /// Folder for the drives' media and logs
    #[arg(long, value_name = "FOLDER", default_value = "./csd-array")]
    pub(crate) dir: PathBuf,
    /// Size of each drive's media
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "1G")]
    pub(crate) size: u64,
    /// Where drives keep their bytes
    #[arg(long, value_enum, default_value_t = Media::File)]
    pub(crate) media: Media,
    /// Cores of each drive
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = cores())]
    pub(crate) cores: u16,
    /// How drives wait for the kernel
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
}

/// Where the drives of an array keep their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Media {
    /// A file each, in the array's folder
    File,
    /// Memory, lost when a drive stops
    Memory,
}

/// Options of `csd array down`.
#[derive(Args, Debug)]
pub(crate) struct Down {
    /// Also delete media, logs and the array file
    #[arg(long)]
    pub(crate) delete: bool,
}

/// Options of `csd put`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd put samples.bin --type i32             raw little-endian numbers
  csd put grid.npy climate/grid              a NumPy array, under another name
  csd put trades.csv prices --csv --column price --type f64
  csd put more.npy --align grid.npy          lie as another object does
  csd put links.txt links --graph            a list of edges as a graph
  zcat log.gz | csd put - log")]
pub(crate) struct Put {
    /// File to store; `-` is standard input
    pub(crate) source: String,
    /// Name of the object [default: the file's name]
    pub(crate) name: Option<String>,
    /// Element type: i32 i64 f32 f64 c64 bytes [default: bytes; f64 for CSV; a .npy file says
    /// itself]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) element: Option<ElementType>,
    /// The source is CSV
    #[arg(long)]
    pub(crate) csv: bool,
    /// Column to store: a name in the header, or a number from 1
    #[arg(long, value_name = "NAME|NUMBER", requires = "csv")]
    pub(crate) column: Option<Column>,
    /// Where chunks are kept: as values, or as blocks
    #[arg(long, value_enum, default_value_t = On::Kv)]
    pub(crate) on: On,
    /// Chunk size, a power of two from 4K to 8M, as far as the drives have values that long
    /// [default: 1M]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) chunk: Option<u64>,
    #[command(flatten)]
    pub(crate) arrange: Arrange,
}

/// Where chunks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// As values in the key-value namespace
    Kv,
    /// As extents of the block namespace
    Block,
}

/// Options of `csd get`.
#[derive(Args, Debug)]
pub(crate) struct Get {
    /// Name of the object
    pub(crate) name: String,
    /// Where to: a file, or `-` for standard output [default: the object's name without folders]
    pub(crate) file: Option<String>,
}

/// Options of `csd ls`.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    /// Also list puts that have not ended, or were cut off
    #[arg(long)]
    pub(crate) all: bool,
}

/// An object's name.
#[derive(Args, Debug)]
pub(crate) struct Name {
    /// Name of the object
    pub(crate) name: String,
}

/// A number of cores.
fn cores() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=1024)
}

fn parse_block(text: &str) -> Result<u32, String> {
    match parse_size(text) {
        Ok(512) => Ok(512),
        Ok(4096) => Ok(4096),
        _ => Err("a logical block has 512 or 4096 bytes".to_owned()),
    }
}

impl Command {
    /// The command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Drive(Drive::Serve(_)) => "drive serve",
            Self::Drive(Drive::Check(_)) => "drive check",
            Self::Array(Array::Up(_)) => "array up",
            Self::Array(Array::Status) => "array status",
            Self::Array(Array::Down(_)) => "array down",
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::Ls(_) => "ls",
            Self::Stat(_) => "stat",
            Self::Rm(_) => "rm",
            Self::Run(run) => run.words(),
            Self::Program(command) => command.words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn negative_numbers_and_global_options_parse() {
        let cli =
            Cli::try_parse_from(["csd", "run", "count", "x", "--equal", "-1", "--json"]).unwrap();
        assert!(cli.json);
        let Command::Run(Run::Count(count)) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!((count.equal.as_str(), count.ways.on), ("-1", crate::cli_run::Who::Drives));
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            "csd put x --chunk 1MB",
            "csd put x --type i16",
            "csd put x --column 1",
            "csd drive serve --media memory --size 1G --block 1000",
            "csd drive serve --media memory --size 1G --kv 101%",
            "csd array up --drives 0",
            "csd run count x",
            "csd run count x --equal 1 --on nowhere",
            "csd run vector-add a b",
            "csd run verify x --auto --unroll 2",
            "csd put x --align y --layout range",
        ] {
            let error = Cli::try_parse_from(wrong.split(' ')).expect_err(wrong);
            assert_eq!(error.exit_code(), 2, "{wrong}");
        }
    }
}
