//! Options of a drive that `csd drive serve`, `csd array up` and `csd array add` share.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};
use csd_drive::dedup;
use csd_reactor::BackendKind;
use csd_sched::Policy;
use csd_store::array::{DriveOptions, Words};

use super::{Listen, cores, parse_listen};
use crate::log_file::{FILES, FILES_MAX};
use crate::units::{parse_percent, parse_size};

/// Options of a drive that are independent of its media and address.
#[derive(Args, Debug)]
pub(crate) struct Tuning {
    /// Share of key-value namespaces in new media; the rest is blocks [default: 50%, and 80% in
    /// arrays]
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT")]
    pub(crate) kv: Option<u8>,
    /// Share of the key-value part kept free for cleaning
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT", default_value = "10%")]
    pub(crate) reserve: u8,
    /// Index of the users' keys: `hash` takes 24 to 32 bytes of memory a key; `ordered` takes about
    /// 64 and lists keys by length and bytes. Chosen at each start
    #[arg(long, value_enum, value_name = "hash|ordered", default_value_t = KvIndex::Hash)]
    pub(crate) kv_index: KvIndex,
    /// Most memory for keys: 32 bytes for each key of a hash index, 64 of an ordered one; further
    /// keys get Capacity Exceeded [default: no limit]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) index_memory: Option<u64>,
    /// Answer a Store or Delete of the users' key-value namespace when it is written, before it is
    /// durable; Flush makes it durable, and a power cut keeps a prefix of the answered changes
    #[arg(long)]
    pub(crate) volatile_cache: bool,
    /// Count how much of the stored values is in chunks of this many bytes that were there before:
    /// a power of two from 128 to 64K. `csd drive service list` says how much [default: not at all]
    #[arg(long, value_parser = parse_chunk, value_name = "BYTES")]
    pub(crate) dedup: Option<u32>,
    /// Keep chunks that several values have once: whole chunks of --dedup, of 4K and more, compared
    /// byte by byte. Older versions of this program cannot read such media
    #[arg(long, requires = "dedup")]
    pub(crate) dedup_share: bool,
    /// Most memory for the chunks that --dedup knows, and as much again for --dedup-share; when it
    /// is full a sample of them stays
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "64M")]
    pub(crate) dedup_memory: u64,
    /// Core on which --dedup counts: `local` where the values arrived, in slices that yield to
    /// hosts; `inline` there, too, but between hosts' commands; `bts` a random idle core;
    /// `adaptive` the one where waiting, moving and delaying hosts cost the least
    #[arg(long, value_name = "inline|local|bts|adaptive", default_value_t = Policy::Local)]
    #[arg(requires = "dedup")]
    pub(crate) policy: Policy,
    /// Size of the memory namespace, whose bytes programs and hosts share; it takes RAM as it is
    /// written, and is empty after a start; 0 for none
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "64M")]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) programs: super::program::Programs,
    /// Number of cores that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = cores())]
    pub(crate) cores: u16,
    /// I/O backend; `auto` takes io_uring where the kernel allows it and the medium is on no FUSE
    /// file system, else epoll
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
    /// Size of a logical block: 512 or 4096 bytes
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = parse_block)]
    pub(crate) block: u32,
    /// Bypass the page cache (O_DIRECT); `auto` does where the file system takes it
    #[arg(long, value_enum, value_name = "auto|on|off", default_value_t = Direct::Auto)]
    pub(crate) direct: Direct,
    /// Most connections at once, admin queues included; further hosts get Controller Busy
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(value_parser = value_parser!(u32).range(2..=1_000_000))]
    pub(crate) connections: u32,
    /// Most memory for data on its way between hosts and media, over all connections; at least
    /// 64M a core [default: 192M a core]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) transfer_memory: Option<u64>,
    /// Serve Prometheus metrics at this address (GET /metrics), at all addresses of a name
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    pub(crate) metrics: Option<Listen>,
    /// Log format
    #[arg(long, value_enum, value_name = "text|json", default_value_t = crate::log::Form::Text)]
    pub(crate) log: crate::log::Form,
    /// Log level
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = crate::log::Level::Info)]
    pub(crate) log_level: crate::log::Level,
    /// Most bytes of one file of the log; at least 4K
    #[arg(long, value_name = "SIZE", value_parser = parse_log_size, default_value = "8M")]
    pub(crate) log_size: u64,
    /// Most files of the log; the oldest is deleted
    #[arg(long, value_name = "N", default_value_t = FILES)]
    #[arg(value_parser = value_parser!(u32).range(1..=FILES_MAX.into()))]
    pub(crate) log_files: u32,
    /// Longest wait for commands in flight after SIGTERM, SIGINT or SIGHUP, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) drain: u16,
    /// Time that a core polls before it sleeps, microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    pub(crate) spin: u32,
}

/// Kind of the indexes of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KvIndex {
    Hash,
    Ordered,
}

impl From<KvIndex> for csd_kvlog::IndexKind {
    fn from(kind: KvIndex) -> Self {
        match kind {
            KvIndex::Hash => Self::Hash,
            KvIndex::Ordered => Self::Ordered,
        }
    }
}

/// Use of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direct {
    Auto,
    On,
    Off,
}

impl From<Direct> for csd_kvlog::media::Direct {
    fn from(direct: Direct) -> Self {
        match direct {
            Direct::Auto => Self::Auto,
            Direct::On => Self::On,
            Direct::Off => Self::Off,
        }
    }
}

fn parse_log_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0..4096 => Err("a file of the log has at least 4K".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses the length of a chunk.
fn parse_chunk(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text)?;
    u32::try_from(bytes).ok().filter(|bytes| dedup::is_chunk(*bytes)).ok_or_else(|| {
        let (least, most) = (dedup::CHUNK_BYTES_MIN, dedup::CHUNK_BYTES_MAX >> 10);
        format!("a chunk is a power of two from {least} to {most}K")
    })
}

fn parse_block(text: &str) -> Result<u32, String> {
    match parse_size(text) {
        Ok(512) => Ok(512),
        Ok(4096) => Ok(4096),
        _ => Err("a logical block has 512 or 4096 bytes".to_owned()),
    }
}

/// Options of an array's drives, parsed and as given.
#[derive(Debug)]
pub(crate) struct Tuned {
    pub(crate) tuning: Tuning,
    /// Options given on the command line, in the form that the array file keeps.
    pub(crate) given: DriveOptions,
}

impl Args for Tuned {
    fn augment_args(command: Command) -> Command {
        Tuning::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Tuning::augment_args_for_update(command)
    }
}

impl FromArgMatches for Tuned {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { tuning: Tuning::from_arg_matches(matches)?, given: given(matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the options given on the command line.
fn given(matches: &ArgMatches) -> DriveOptions {
    let mut given = DriveOptions::new();
    for argument in Tuning::augment_args(Command::new("drive")).get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let (Some(name), true) = (argument.get_long(), is_given) else { continue };
        let words = matches.get_raw(id).into_iter().flatten();
        let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
        let words = match argument.get_action() {
            ArgAction::SetTrue => Words::Flag(true),
            ArgAction::Append => Words::Many(words),
            _ => Words::One(words.pop().unwrap_or_default()),
        };
        given.insert(name.to_owned(), words);
    }
    given
}

/// Parses options of an array file.
///
/// # Errors
/// Names the option that is wrong.
pub(crate) fn understand(options: &DriveOptions) -> Result<Tuning, String> {
    let words = options.iter().flat_map(|(name, words)| words.arguments(name));
    let command = Command::new("drive").no_binary_name(true).disable_help_flag(true);
    let matches = Tuning::augment_args(command).try_get_matches_from(words);
    matches.and_then(|matches| Tuning::from_arg_matches(&matches)).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
    })
}
