//! Options of `csd characterize`, and parsers of their lists.

use std::path::PathBuf;

use clap::{Args, value_parser};

use crate::units::parse_size;

/// Options of `csd characterize`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd characterize -o box.toml                  this machine, with a drive started for it
  csd characterize --kernels count --size 64M,256M --cores 1,2 --repeat 9 -o box.toml
  csd characterize --overload memory:32M,64M --overload cpu --size 64M -o box.toml
  csd characterize --array csd-array.toml -o array.toml
  csd characterize --drive nvme+tcp://10.0.0.7:4420/nqn.2014-08.org.example:ssd -o ssd.toml
  csdplan bep --profile box.toml --kernel count")]
pub(crate) struct Characterize {
    /// Measure this drive, which only reads unless --allow-write is given; any NVMe/TCP drive will
    /// do, and one without a compute namespace gives the host's side alone
    #[arg(long, value_name = "URL", conflicts_with = "array")]
    pub(crate) drive: Option<String>,
    /// Overwrite the beginning of the block namespace of --drive: destroys what is there
    #[arg(long, requires = "drive")]
    pub(crate) allow_write: bool,
    /// Kernels to measure: count, vector-add, array-merge, page-rank, verify
    #[arg(long, value_name = "KERNELS", value_delimiter = ',', default_value = "count")]
    pub(crate) kernels: Vec<String>,
    /// Working sets, whole multiples of 64K
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "64M",
          value_parser = parse_working_set)]
    pub(crate) size: Vec<u64>,
    /// Numbers of cores, in the drive and on the host, such as 1..4 or 1,2,8 [default: 1 up to all
    /// cores of this machine]
    #[arg(long, value_name = "CORES", value_parser = parse_counts)]
    pub(crate) cores: Option<Counts>,
    /// Repetitions that count, after one for warmth
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = value_parser!(u16).range(1..))]
    pub(crate) repeat: u16,
    /// Also measure Host(1) under a burden: memory:SIZES (the working set must be larger), cpu or
    /// cpu:N (N busy threads), io or io:N (N readers of the drive); may be repeated
    #[arg(long, value_name = "BURDEN", value_parser = parse_burden)]
    pub(crate) overload: Vec<Burden>,
    /// Media of the drive started for this: `file` in --dir, or `memory`
    #[arg(long, value_name = "file|memory", default_value = "file",
          value_parser = ["file", "memory"], conflicts_with_all = ["drive", "array"])]
    pub(crate) media: String,
    /// Folder for media and scratch files, on the disk to be measured [default: the folder for
    /// temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Name of the drive in the profile; drives of an array that differ get NAME-DRIVE
    #[arg(long, value_name = "NAME", default_value = "drive", value_parser = parse_name)]
    pub(crate) device: String,
    /// Bandwidth of the host from all drives together, bytes per second [default: measured against
    /// a drive in memory where a drive is started, and against all drives of an array at once where
    /// they are limited together; else unknown]
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u64).range(1..))]
    pub(crate) ingest_bw: Option<u64>,
    /// Folder of the processor's energy counters (RAPL), which only root may read
    #[arg(long, value_name = "FOLDER", default_value = csd_measure::rapl::POWERCAP)]
    pub(crate) powercap: PathBuf,
    /// Power of one working core of the host, watts: for energies where no counter measures them
    #[arg(long, value_name = "WATTS", value_parser = parse_watts)]
    pub(crate) core_watts: Option<f64>,
    /// Power of the drive at rest and at work, watts
    #[arg(long, value_name = "IDLE,ACTIVE", value_parser = parse_two_watts)]
    pub(crate) drive_watts: Option<(f64, f64)>,
    /// Profile to write
    #[arg(short, long, value_name = "FILE", default_value = "profile.toml")]
    pub(crate) output: PathBuf,
    /// Measure in a memory group, as a request on standard input says; --overload memory starts
    /// this
    #[arg(long, hide = true)]
    pub(crate) limited: bool,
}

/// Numbers of cores, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) Vec<usize>);

/// An overload of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Burden {
    /// Memory limits, bytes; each is measured.
    Memory(Vec<u64>),
    /// Number of busy threads [default: the number of cores].
    Cpu(Option<u64>),
    /// Number of readers of the drive.
    Io(u64),
}

/// Most cores that a list may name.
const CORES_MAX: usize = 1024;
/// Default number of readers.
const READERS: u64 = 4;

fn parse_working_set(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes > 0 && bytes.is_multiple_of(64 << 10) => Ok(bytes),
        _ => Err(format!("{text:?}: a working set is a whole multiple of 64K")),
    }
}

fn parse_counts(text: &str) -> Result<Counts, String> {
    let wrong = || format!("{text:?} is no list of cores such as 1..4 or 1,2,8");
    let number = |text: &str| match text.trim().parse() {
        Ok(number @ 1..=CORES_MAX) => Ok(number),
        _ => Err(wrong()),
    };
    let mut counts: Vec<usize> = match text.split_once("..") {
        Some((first, last)) => (number(first)?..=number(last.trim_start_matches('='))?).collect(),
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    counts.sort_unstable();
    counts.dedup();
    if counts.is_empty() { Err(wrong()) } else { Ok(Counts(counts)) }
}

fn parse_burden(text: &str) -> Result<Burden, String> {
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    let wrong = || format!("{text:?} is none of memory:SIZES, cpu, cpu:N, io and io:N");
    let number = |text: &str| match text.parse() {
        Ok(number @ 1..=256) => Ok(number),
        _ => Err(wrong()),
    };
    match (kind, rest) {
        ("memory", Some(sizes)) => {
            let sizes = sizes.split(',').map(parse_working_set).collect::<Result<_, _>>()?;
            Ok(Burden::Memory(sizes))
        }
        ("cpu", rest) => Ok(Burden::Cpu(rest.map(number).transpose()?)),
        ("io", rest) => Ok(Burden::Io(rest.map(number).transpose()?.unwrap_or(READERS))),
        _ => Err(wrong()),
    }
}

pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    match first && text.len() <= 64 && text.bytes().all(allowed) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?}: a name has 1 to 64 of a-z, 0-9, _ and -")),
    }
}

fn parse_watts(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(watts) if watts.is_finite() && watts > 0.0 => Ok(watts),
        _ => Err(format!("{text:?} is no power in watts, greater than 0")),
    }
}

fn parse_two_watts(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("{text:?} is not IDLE,ACTIVE in watts, the second the larger");
    let (idle, active) = text.split_once(',').ok_or_else(wrong)?;
    match (parse_watts(idle)?, parse_watts(active)?) {
        (idle, active) if idle < active => Ok((idle, active)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(parse_counts("1..4"), Ok(Counts(vec![1, 2, 3, 4])));
        assert_eq!(parse_counts("8,1, 2,1"), Ok(Counts(vec![1, 2, 8])));
        for wrong in ["", "0", "4..1", "1..", "1,x", "1..2000", "-1"] {
            assert!(parse_counts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn burdens() {
        let sizes = vec![32 << 20, 64 << 20];
        assert_eq!(parse_burden("memory:32M,64M"), Ok(Burden::Memory(sizes)));
        assert_eq!(parse_burden("cpu"), Ok(Burden::Cpu(None)));
        assert_eq!(parse_burden("cpu:3"), Ok(Burden::Cpu(Some(3))));
        assert_eq!(parse_burden("io"), Ok(Burden::Io(READERS)));
        for wrong in ["memory", "memory:", "memory:1K", "cpu:0", "io:x", "disk", "", "cpu:"] {
            assert!(parse_burden(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_names_and_watts() {
        assert_eq!(parse_working_set("3M"), Ok(3 << 20));
        assert!(parse_working_set("63K").is_err() && parse_working_set("0").is_err());
        assert!(parse_name("csd-1").is_ok() && parse_name("CSD").is_err());
        assert!(parse_name("-x").is_err() && parse_name("").is_err());
        assert_eq!(parse_two_watts("2,9.5"), Ok((2.0, 9.5)));
        assert!(parse_two_watts("9,2").is_err() && parse_watts("nan").is_err());
    }
}
