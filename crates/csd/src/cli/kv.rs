//! The command line of `csd kv`.

use clap::{Args, Subcommand};

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

impl Kv {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> String {
        let word = match self {
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::Exists(_) => "exists",
            Self::Ls(_) => "ls",
            Self::Rm(_) => "rm",
            Self::Gc(_) => "gc",
            Self::Info(_) => "info",
        };
        format!("kv {word}")
    }
}
