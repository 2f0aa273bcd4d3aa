//! Compares the speed of the kernels with memory and with the code of others, in one run.
//!
//! Every round measures a kernel and then each of its floors. Figures are medians of rounds, and
//! ratios are medians of the rounds' ratios, because other work on the machine slows both of a pair
//! alike.

mod count;
mod crc;
mod erasure;
mod oracle;
mod search;
mod speed;
mod triad;

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Compares the speed of the kernels with their floors.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Count compared with the widest loads and memcpy.
    Count(Memory),
    /// Vector add, dense rows and verify compared with reading, copying and another CRC-32C.
    Speed(Memory),
    /// CRC-32C of verify compared with crc-fast and libisal, on one core.
    Crc(Library),
    /// The erasure code compared with libisal and with memory, on one core.
    Erasure {
        #[command(flatten)]
        library: Library,
        /// Only this version
        version: Option<String>,
    },
    /// grep compared with ripgrep, on one core.
    Grep(Rival),
    /// Print nanoseconds per element of array merge, for `tests/oracle/speed.py`.
    Merge {
        /// Number of elements of the longer input
        elements: usize,
    },
    /// Print nanoseconds per edge of page rank, for `tests/oracle/speed.py`.
    Sparse {
        /// Number of nodes
        nodes: u32,
        /// File of pairs of little-endian numbers of 32 bits
        edges: PathBuf,
    },
}

/// Room that kernels work on.
#[derive(Args)]
struct Memory {
    /// Size of the input, MiB
    #[arg(default_value_t = 256)]
    mib: usize,
}

/// Another implementation.
#[derive(Args)]
struct Library {
    /// Path of the shared library of ISA-L
    libisal: String,
    /// Number of rounds
    #[arg(default_value_t = 25)]
    rounds: usize,
}

/// Another program, and the text that both search.
#[derive(Args)]
struct Rival {
    /// The text
    file: PathBuf,
    /// Path of ripgrep
    ripgrep: PathBuf,
    /// Number of rounds
    #[arg(default_value_t = 15)]
    rounds: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Count(memory) => count::compare(memory.mib),
        Command::Speed(memory) => speed::compare(memory.mib),
        Command::Crc(library) => crc::compare(&library),
        Command::Erasure { library, version } => erasure::compare(&library, version.as_deref()),
        Command::Grep(rival) => search::compare(&rival),
        Command::Merge { elements } => oracle::merge(elements),
        Command::Sparse { nodes, edges } => oracle::sparse(nodes, &std::fs::read(edges)?),
    }
}

/// Reads bytes once and returns the sum of their words: the widest loads that portable code gives,
/// by independent lanes for four wide vectors.
fn read(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; 32];
    for turn in bytes.as_chunks::<256>().0 {
        for (lane, word) in lanes.iter_mut().zip(turn.as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    lanes.iter().fold(0, |all, lane| all.wrapping_add(*lane))
}
