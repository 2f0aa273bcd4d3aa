//! The command line of `csd program`, and a drive's options for programs.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use csd_initiator::Address;

use crate::cli::cores;
use crate::cli::ways::Who;
use crate::program::parameter::Parameter;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Program {
    /// Make a folder with a program of your own that builds, and the SDK that it needs
    #[command(after_help = "\
Examples:
  csd program new lines                      in Rust; lines/README.md has the next commands
  csd program new lines --lang c             in C")]
    New(New),
    /// Load a program into a drive
    #[command(after_help = "\
Examples:
  csd program load grep.wasm --activate      into every drive of the array, at index 16
  csd program load grep.wasm --index 17 --drive nvme+tcp://127.0.0.1:4420/NQN")]
    Load(Load),
    /// Have a drive forget a program that is not active
    Unload(Index),
    /// Allow executions of a program
    Activate(Index),
    /// Forbid executions of a program
    Deactivate(Index),
    /// List programs, and the types that can be loaded
    List(Where),
    /// Run a program over objects of the array, or over files
    ///
    /// With --object it takes a module. Every chunk of the objects is one execution, on the drive
    /// that holds it or on the host; no element and no line is cut. The program's own fold, or else
    /// their order, makes one answer of all.
    ///
    /// With --input it takes the index of a program that one drive has loaded. The files are copied
    /// to the drive's memory namespace, and what the program wrote is fetched from there.
    #[command(after_help = "\
Examples:
  csd program run grep.wasm --object access.log --parameter text:ERROR --output -
  csd program run top_k.wasm --object prices --parameter u32:10 --on split --check
  csd program run 16 --input access.log --output hits.txt --parameter text:ERROR")]
    Run(Box<Run>),
}

/// Options of `csd program new`.
#[derive(Args, Clone, Debug)]
pub(crate) struct New {
    /// The folder, which must not exist; its name becomes the program's
    #[arg(value_name = "NAME")]
    pub(crate) folder: PathBuf,
    /// Language of the program
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    pub(crate) lang: Lang,
}

/// Languages of new programs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Lang {
    /// Built by cargo, for the target wasm32-unknown-unknown
    Rust,
    /// Built by make with clang and wasm-ld
    C,
}

/// The drives to address.
#[derive(Args, Clone, Debug)]
pub(crate) struct Where {
    /// Drive to talk to: nvme+tcp://HOST:PORT/NQN [default: every drive of the array]
    #[arg(long, value_name = "URL")]
    pub(crate) drive: Option<Address>,
}

/// Options of `csd program load`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Load {
    /// The program: a WebAssembly module
    pub(crate) file: PathBuf,
    /// Program index
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) index: u16,
    /// Program identifier, which executions name together with the index [default: the first 8
    /// bytes of its digest]
    #[arg(long, value_name = "N", value_parser = parse_program_id)]
    pub(crate) pid: Option<u64>,
    /// Name of its type, as `csd program list` prints it
    #[arg(long = "type", value_name = "NAME", default_value = "wasm")]
    pub(crate) ptype: String,
    /// Activate it too
    #[arg(long)]
    pub(crate) activate: bool,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// A program by its index.
#[derive(Args, Clone, Debug)]
pub(crate) struct Index {
    /// Program index
    pub(crate) index: u16,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd program run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// The program: a file with a WebAssembly module, or with --input the index of one that is
    /// loaded
    #[arg(value_name = "FILE|INDEX")]
    pub(crate) program: Subject,
    /// Object for the next of its streams
    #[arg(long, value_name = "NAME", required_unless_present = "input")]
    pub(crate) object: Vec<String>,
    /// File for the next of its streams; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "object")]
    pub(crate) input: Vec<PathBuf>,
    /// File for what it writes; `-` is standard output [default: only its size is shown]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Overwrite that file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Object for what it writes, of type bytes
    #[arg(long, value_name = "NAME", requires = "object")]
    pub(crate) store: Option<String>,
    /// Room for what an execution writes [default: a chunk and 64 KiB, at least 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) room: Option<u64>,
    /// Next part of its parameters: text:..., hex:..., or i32: u32: i64: u64: f32: f64: and a
    /// number
    #[arg(long, value_name = "KIND:VALUE", allow_hyphen_values = true)]
    pub(crate) parameter: Vec<Parameter>,
    /// First byte of the drive's memory that is used
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    #[arg(conflicts_with = "object")]
    pub(crate) memory_at: u64,
    /// Most memory of an execution, in whole MiB [default: what the drive allows; over objects 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Longest time of an execution, milliseconds [default: what the drive allows; over objects
    /// 20000]
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) time: Option<u32>,
    /// Compute in the drives, on the host, or on both
    #[arg(long, value_enum, default_value_t = Who::Drives, requires = "object")]
    pub(crate) on: Who,
    /// Cores of the host that compute [default: 1]
    #[arg(long, value_name = "N", value_parser = cores(), requires = "object")]
    pub(crate) cores: Option<u16>,
    /// Also compute on the drives and on the host, compare all that is written byte for byte, and
    /// fail when answers differ (exit code 3)
    #[arg(long, requires = "object")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// The program to run: loaded in a drive, or in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Index(u16),
    File(PathBuf),
}

impl FromStr for Subject {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Index))
    }
}

/// Options of `csd drive serve` for programs.
#[derive(Args, Debug)]
pub(crate) struct Programs {
    /// BLAKE3 digest of a program that hosts may load, or `any`; may be given several times
    /// [default: any on loopback, none beyond]
    #[arg(long, value_name = "DIGEST|any", value_parser = parse_allowed)]
    pub(crate) allow_program: Vec<Allowed>,
    /// Most time of compute threads for one execution of a program, seconds; on the clock it has a
    /// quarter more
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) program_time: u16,
    /// Most memory of one execution of a loaded program
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64M")]
    pub(crate) program_memory: u64,
    /// Let every host see, use and remove what others have loaded, and their memory range sets;
    /// without it these belong to the host, by its NQN
    #[arg(long)]
    pub(crate) shared_compute: bool,
}

/// Programs that hosts may load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Any,
    Digest([u8; 32]),
}

/// Parses a program's identifier: a number, or 0x and hexadecimal digits, as lists have it.
fn parse_program_id(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| error.to_string())
}

fn parse_allowed(text: &str) -> Result<Allowed, String> {
    if text == "any" {
        return Ok(Allowed::Any);
    }
    let digits = text.as_bytes().as_chunks::<2>().0;
    let pair = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.iter().map(pair).collect();
    let digest = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
    digest.map(Allowed::Digest).ok_or_else(|| "`any`, or 64 hexadecimal digits".to_owned())
}

impl Program {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::New(_) => "program new",
            Self::Load(_) => "program load",
            Self::Unload(_) => "program unload",
            Self::Activate(_) => "program activate",
            Self::Deactivate(_) => "program deactivate",
            Self::List(_) => "program list",
            Self::Run(_) => "program run",
        }
    }
}

#[test]
fn a_program_is_an_index_or_a_file() {
    let parsed = |text: &str| text.parse::<Subject>().unwrap();
    assert_eq!(parsed("16"), Subject::Index(16));
    assert_eq!(parsed("16.wasm"), Subject::File("16.wasm".into()));
    assert_eq!(parsed("99999"), Subject::File("99999".into()));
}

#[test]
fn a_program_is_identified_by_a_number_or_by_what_lists_show() {
    for pid in [0, 7, 4_104_433_441_690_576_375, u64::MAX] {
        assert_eq!(parse_program_id(&crate::units::program_id(pid)), Ok(pid));
        assert_eq!(parse_program_id(&pid.to_string()), Ok(pid));
    }
    for wrong in ["", "0x", "ff", "0xg", "18446744073709551616", "-1"] {
        assert!(parse_program_id(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_may_be_loaded_is_any_or_a_digest() {
    assert_eq!(parse_allowed("any"), Ok(Allowed::Any));
    assert_eq!(parse_allowed(&"0f".repeat(32)), Ok(Allowed::Digest([15; 32])));
    for wrong in ["", "all", &"0f".repeat(31), &"0f".repeat(33), &"0g".repeat(32)] {
        assert!(parse_allowed(wrong).is_err(), "{wrong}");
    }
}
