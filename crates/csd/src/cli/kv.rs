//! The command line of `csd kv`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Kv {
    /// Store a file, or standard input, under a key
    #[command(after_help = "\
Examples:
  csd kv put photo.jpg --drive nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive
  echo hello | csd kv put - greeting
  csd kv put weights.bin 00112233445566778899aabbccddeeff --hex --if-absent")]
    Put(Put),
    /// Fetch the object of a key
    #[command(after_help = "\
Examples:
  csd kv get greeting                        to standard output
  csd kv get photo.jpg copy.jpg")]
    Get(Get),
    /// Ask if keys exist; exit code 4 if one does not
    Exists(Keys),
    /// List keys
    Ls(Ls),
    /// List or count the keys between two bounds
    ///
    /// Keys are ordered by length, then by bytes. The drive needs an index in that order, as
    /// `csd drive serve --kv-index ordered` makes it. With --on drive the drive's program `range`
    /// reads the keys, and only the answer crosses the wire; with --on host the same program runs
    /// here over the drive's lists of keys, which works with any maker's drive that lists keys in
    /// this order. Both give the same answer.
    #[command(after_help = "\
Examples:
  csd kv range user:0100 user:0199
  csd kv range user:0100 user:0199 --count
  csd kv range 00 ffff --hex --on host")]
    Range(Range),
    /// Delete the objects of keys
    Rm(Keys),
    /// Find pieces that no object has, and delete them with --delete
    #[command(after_help = "\
A host that ends while it stores an object longer than one value leaves pieces of it behind. They
take space, and no object needs them. Pieces of an object that is being stored look the same, so
--delete searches twice and deletes those that no object has taken in between.

Examples:
  csd kv gc                                  say what is there
  csd kv gc --delete                         delete it, unless it grows within a minute
  csd kv gc --delete --wait 3600             the same, for hosts that may pause for an hour")]
    Gc(Gc),
    /// Wait until everything that was stored or deleted before is durable
    ///
    /// A drive with a volatile write cache, such as one that runs with --volatile-cache, answers a
    /// Store before it is durable. Flush covers all changes that were answered before, of any key
    /// and any host. A drive without such a cache answers at once.
    #[command(after_help = "\
Examples:
  csd kv flush
  csd kv flush --drive nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive")]
    Flush(Where),
    /// Show a namespace's size, use and limits
    Info(Where),
}

/// The namespace to address, and the form of keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct Where {
    /// A drive's name in the array, or its URL: nvme+tcp://HOST:PORT/NQN?nsid=2; without nsid the
    /// first key-value namespace [default: the only drive of the array]
    #[arg(long, value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
    /// Keys are hexadecimal digits, two a byte, where they are given and where they are printed
    #[arg(long)]
    pub(crate) hex: bool,
}

/// Options of `csd kv put`.
#[derive(Args, Debug)]
pub(crate) struct Put {
    /// File to store, or `-` for standard input
    pub(crate) file: String,
    /// Key of 1 to 16 bytes [default: the file's name without folders]
    pub(crate) key: Option<String>,
    /// Store only if the key does not exist
    #[arg(long, conflicts_with = "if_exists")]
    pub(crate) if_absent: bool,
    /// Store only if the key exists
    #[arg(long)]
    pub(crate) if_exists: bool,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd kv get`.
#[derive(Args, Debug)]
pub(crate) struct Get {
    /// Key of 1 to 16 bytes
    pub(crate) key: String,
    /// File to write, or `-` for standard output
    #[arg(default_value = "-")]
    pub(crate) file: String,
    /// Overwrite the file if it exists; a symbolic link is followed, and stays
    #[arg(long, short)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd kv exists` and `csd kv rm`.
#[derive(Args, Debug)]
pub(crate) struct Keys {
    /// Keys of 1 to 16 bytes
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd kv ls`.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    /// Only keys that begin with this
    pub(crate) prefix: Option<String>,
    /// Also list the keys of pieces of long objects
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd kv gc`.
#[derive(Args, Debug)]
pub(crate) struct Gc {
    /// Delete the pieces
    #[arg(long)]
    pub(crate) delete: bool,
    /// Seconds between the two searches; longer than any host takes to store an object
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "delete")]
    pub(crate) wait: u32,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Options of `csd kv range`.
#[derive(Args, Debug)]
pub(crate) struct Range {
    /// Lowest key, which need not exist
    pub(crate) from: String,
    /// Highest key, which need not exist; a key equal to it is in the range
    pub(crate) to: String,
    /// Print the number of keys only
    #[arg(long)]
    pub(crate) count: bool,
    /// Side that reads the keys
    #[arg(long, value_enum, value_name = "drive|host", default_value_t = Side::Drive)]
    pub(crate) on: Side,
    #[command(flatten)]
    pub(crate) at: Where,
}

/// Side that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// The drive.
    Drive,
    /// This host.
    Host,
}

impl Kv {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> String {
        let word = match self {
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::Exists(_) => "exists",
            Self::Ls(_) => "ls",
            Self::Range(_) => "range",
            Self::Rm(_) => "rm",
            Self::Gc(_) => "gc",
            Self::Flush(_) => "flush",
            Self::Info(_) => "info",
        };
        format!("kv {word}")
    }
}
