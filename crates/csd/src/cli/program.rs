//! The command line of `csd program`, and what a drive is told of programs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use csd_initiator::Address;

use crate::program::parameter::Parameter;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Program {
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
    /// Run a program over files, in the memory of one drive
    ///
    /// Copies the inputs to the drive's memory namespace, makes a memory range set of them, runs
    /// the program, and fetches what it wrote.
    #[command(after_help = "\
Examples:
  csd program run 16 --input access.log --output hits.txt --parameter text:ERROR
  csd program run 16 --input samples.bin --parameter i32:-5 --json")]
    Run(Run),
}

/// Which drives.
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
    /// Program identifier, which executions name beside the index [default: the first 8 bytes of
    /// its digest]
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u64>,
    /// Name of its type, as `csd program list` has it
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
    /// Program index
    pub(crate) index: u16,
    /// File for the next of its streams; `-` is standard input
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) input: Vec<PathBuf>,
    /// File for what it writes; `-` is standard output [default: it writes nothing]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Overwrite that file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Room for what it writes
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "1M")]
    pub(crate) room: u64,
    /// Next part of its parameters: text:..., hex:..., or i32: u32: i64: u64: f32: f64: and a
    /// number
    #[arg(long, value_name = "KIND:VALUE", allow_hyphen_values = true)]
    pub(crate) parameter: Vec<Parameter>,
    /// First byte of the drive's memory that is used
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    pub(crate) memory_at: u64,
    /// Most memory of the program, in whole MiB [default: what the drive allows]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Longest time, milliseconds [default: what the drive allows]
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) time: Option<u32>,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// What `csd drive serve` is told of programs.
#[derive(Args, Debug)]
pub(crate) struct Programs {
    /// BLAKE3 digest of a program that hosts may load, or `any`; may be said several times
    /// [default: any on loopback, none beyond]
    #[arg(long, value_name = "DIGEST|any", value_parser = parse_allowed)]
    pub(crate) allow_program: Vec<Allowed>,
    /// Most time of compute lanes for one execution of a program, seconds; on the clock it has a
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

/// What may be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Any,
    Digest([u8; 32]),
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
    /// The command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
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
fn what_may_be_loaded_is_any_or_a_digest() {
    assert_eq!(parse_allowed("any"), Ok(Allowed::Any));
    assert_eq!(parse_allowed(&"0f".repeat(32)), Ok(Allowed::Digest([15; 32])));
    for wrong in ["", "all", &"0f".repeat(31), &"0f".repeat(33), &"0g".repeat(32)] {
        assert!(parse_allowed(wrong).is_err(), "{wrong}");
    }
}
