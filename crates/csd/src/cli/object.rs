//! Options of the commands for objects: `csd put`, `get`, `ls`, `stat`, `rm`.

use clap::{Args, ValueEnum};
use csd_nvme::vendor::pages::PAGE_BYTES;
use csd_store::ElementType;
use csd_store::layout::Scheme;
use csd_store::source::{Column, Empty, Header};

use super::edges::EdgeLines;
use super::files::Order;
use super::run::{Arrange, Layout};
use crate::units::parse_size;

/// Options of `csd put`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd put samples.bin --type i32             raw little-endian numbers
  csd put grid.npy climate/grid              a NumPy array, under another name
  csd put --each *.npy                       several files, each under its own name
  csd put -r data climate/                   all files below data, as climate/...
  csd put trades.csv prices --csv --column price --type f64
  csd put more.npy --align grid.npy          lie as another object does
  csd put trades.csv prices --csv --column price --empty skip
  csd put photo.npy --type bytes             a file as it is
  csd put photo.npy --protect rs:4+2         survives the loss of any two drives
  csd put links.txt links --graph            a list of edges as a graph
  csd put web.mtx web --graph                a MatrixMarket file as a graph
  zcat log.gz | csd put - log")]
pub(crate) struct Put {
    /// The file to store, `-` for standard input, and the object's name [default: the file's name
    /// without folders]
    #[arg(value_name = "FILE [NAME]", required = true)]
    pub(crate) words: Vec<String>,
    /// Take every argument as a file, and store each under its own name, without folders
    #[arg(long)]
    pub(crate) each: bool,
    /// The first word is a folder: store every file below it, under the second word and its path
    /// there [default: the folder's own name]
    ///
    /// .npy files become arrays, others bytes. Links to files are followed, and those to folders
    /// are not. An entry that cannot be an object is named, and the exit code is 4.
    #[arg(long, short, conflicts_with_all = ["each", "csv", "align", "list"])]
    pub(crate) recursive: bool,
    /// With -r: replace objects that exist, each in one step
    #[arg(long, short, requires = "recursive")]
    pub(crate) force: bool,
    /// Element type: i32 i64 f32 f64 c64 bytes [default: bytes; f64 for CSV; a .npy file says
    /// itself]. c64 is two f64, NumPy's complex128; NumPy's names are taken, too: f4, float32, c16
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) element: Option<ElementType>,
    /// The source is CSV
    #[arg(long)]
    pub(crate) csv: bool,
    /// Column to store: a name in the header, or a number from 1. With --header yes a number is a
    /// name first, if the header has it
    #[arg(long, value_name = "NAME|NUMBER", requires = "csv")]
    pub(crate) column: Option<Column>,
    /// Use of the first row: auto, yes for a header, no for values
    #[arg(long, value_enum, default_value_t = HeaderRow::Auto, requires = "csv")]
    pub(crate) header: HeaderRow,
    /// Element for an empty cell of the column [default: an error]
    #[arg(long, value_enum, requires = "csv")]
    pub(crate) empty: Option<EmptyCell>,
    /// Namespace for chunks: as values, or as blocks, of which an object takes at least a unit of 8
    /// MiB on each of its drives, however short it is
    #[arg(long, value_enum, default_value_t = On::Kv)]
    pub(crate) on: On,
    /// Chunk size, a power of two from 4K to 8M, as far as the drives have values that long
    /// [default: 1M]
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) chunk: Option<u64>,
    /// Size of the pages that get a checksum of their own, by which `csd scrub` names damage: a
    /// power of two from 4K to 8M, 0 for none
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = page_bytes)]
    pub(crate) page_bytes: u32,
    /// Protect the object against the loss of any K drives: K parity pieces for each N chunks
    #[arg(long, value_name = "rs:N+K")]
    pub(crate) protect: Option<Scheme>,
    #[command(flatten)]
    pub(crate) arrange: Arrange,
}

impl Put {
    /// Returns the options without any words, with this code.
    pub(crate) fn plain(protect: Option<Scheme>) -> Self {
        let arrange = Arrange {
            layout: Layout::Spread,
            align: None,
            graph: false,
            lines: EdgeLines::default(),
        };
        Self {
            words: Vec::new(),
            each: false,
            recursive: false,
            force: false,
            element: None,
            csv: false,
            column: None,
            header: HeaderRow::Auto,
            empty: None,
            on: On::Kv,
            chunk: None,
            page_bytes: csd_store::object::PAGE_BYTES,
            protect,
            arrange,
        }
    }
}

/// Parses the size of a page; 0 stands for none.
fn page_bytes(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(parse_size(text)?)
        .ok()
        .filter(|bytes| *bytes == 0 || (bytes.is_power_of_two() && PAGE_BYTES.contains(bytes)));
    bytes.ok_or_else(|| format!("{text:?} is no power of two from 4K to 8M, and not 0"))
}

/// Element for an empty cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmptyCell {
    /// Not a number (f32 and f64)
    Nan,
    /// The number 0
    #[value(name = "0")]
    Zero,
    /// No element: its row is left out
    Skip,
}

impl From<EmptyCell> for Empty {
    fn from(cell: EmptyCell) -> Self {
        match cell {
            EmptyCell::Nan => Self::Nan,
            EmptyCell::Zero => Self::Zero,
            EmptyCell::Skip => Self::Skip,
        }
    }
}

/// Use of the first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderRow {
    /// As the file shows; what is not certain is refused
    Auto,
    /// It holds names
    Yes,
    /// It holds values
    No,
}

impl From<HeaderRow> for Header {
    fn from(row: HeaderRow) -> Self {
        match row {
            HeaderRow::Auto => Self::Auto,
            HeaderRow::Yes => Self::Yes,
            HeaderRow::No => Self::No,
        }
    }
}

/// Namespace for chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// As values in the key-value namespace
    Kv,
    /// As extents of the block namespace
    Block,
}

/// Options of `csd get`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd get climate/grid.npy                   a NumPy array, into ./grid.npy
  csd get sums sums.npy                      what a run wrote, as a NumPy array
  csd get grid.npy numbers.bin --raw         its numbers alone
  csd get -r climate/ data                   all objects of a folder, as files below data
  csd get log - | zgrep error
  csd get photo.npy rest --partial           as much as can be read; zeros for the rest
  csd get photo.npy piece --piece 0:4        the first parity piece of stripe 0 of rs:4+2")]
pub(crate) struct Get {
    /// Name of the object
    pub(crate) name: String,
    /// File to write, or `-` for standard output [default: the object's name without folders]
    ///
    /// Numbers become a NumPy array when the file's name ends in .npy (for `-`, the object's name).
    /// Anything else is the object's bytes, numbers little-endian.
    pub(crate) file: Option<String>,
    /// The name is a folder: write every object in it to a file below the folder that the second
    /// word names [default: the last part of the name]
    #[arg(long, short, conflicts_with_all = ["partial", "piece"])]
    pub(crate) recursive: bool,
    /// Overwrite the file if it exists; a symbolic link is followed, and stays
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Write numbers without the header of a .npy file
    #[arg(long)]
    pub(crate) raw: bool,
    /// Write zeros for bytes that cannot be read, and name them, instead of failing
    #[arg(long)]
    pub(crate) partial: bool,
    /// Write one piece of a protected object as it is stored: data pieces of a stripe from 0 on,
    /// parity from N on
    #[arg(long, value_name = "STRIPE:PIECE", conflicts_with_all = ["partial", "raw"])]
    #[arg(value_parser = parse_piece)]
    pub(crate) piece: Option<(u32, usize)>,
}

/// Parses the number of a stripe and of a piece.
fn parse_piece(text: &str) -> Result<(u32, usize), String> {
    let parse = || {
        let (stripe, piece) = text.split_once(':')?;
        Some((stripe.parse().ok()?, piece.parse().ok()?))
    };
    parse().ok_or_else(|| "say STRIPE:PIECE, two numbers, as in 0:4".to_owned())
}

/// Options of `csd protect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd protect climate/grid.npy rs:4+2        2 parity pieces for each 4 chunks, on other drives
  csd protect prices rs:4+2 --encode drives  drives read from each other, and this host only plans
  csd protect prices rs:4+2 --encode auto    the way that moves less over the busiest link

The data stays where it is; only an object of the layout `whole` is spread over the drives. The
object can be read meanwhile. To protect it in another way, remove it and put it again.")]
pub(crate) struct Protect {
    /// Name of the object
    pub(crate) name: String,
    /// Numbers of data and parity pieces: the object survives the loss of any K drives
    #[arg(value_name = "rs:N+K")]
    pub(crate) scheme: Scheme,
    /// Place where parity is computed. `drives`: a drive of each stripe reads the chunks from the
    /// others and stores the parity there, and a whole object is encoded and spread by its own
    /// drive; the drives must be peers, as those of `csd array up` are. `auto`: prints the bytes on
    /// the links, and takes the faster way
    #[arg(long, value_enum, value_name = "host|drives|auto", default_value_t = EncodeOn::Host)]
    pub(crate) encode: EncodeOn,
    /// Speed of a link in bytes per second, for the times of `--encode auto`; each drive and the
    /// host have one
    #[arg(long, value_name = "SIZE", value_parser = super::scrub::rate, default_value = "1G")]
    pub(crate) link_rate: u64,
}

/// Place where parity is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodeOn {
    Host,
    Drives,
    Auto,
}

impl From<EncodeOn> for csd_store::object::Encode {
    fn from(on: EncodeOn) -> Self {
        match on {
            EncodeOn::Host => Self::Host,
            EncodeOn::Drives => Self::Drives,
            EncodeOn::Auto => Self::Auto,
        }
    }
}

/// Options of `csd stat`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd stat climate/grid.npy
  csd stat climate/grid.npy --pieces --json  every piece of a protected object, with its drive")]
pub(crate) struct Stat {
    /// Name of the object
    pub(crate) name: String,
    /// List the pieces of a protected object
    #[arg(long)]
    pub(crate) pieces: bool,
}

/// Options of `csd ls`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd ls climate/                            objects whose names begin with climate/
  csd ls -l --sort size                      the largest first, and the total
  csd ls -l --sort date                      the newest first
  csd ls --tree                              folders with their sizes

The date of an object is the time of its put, by the clock of the host that stored it. A copy keeps
the date of its original. Objects of earlier builds have none.")]
pub(crate) struct Ls {
    /// Only objects whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Also list puts that have not ended, or were cut off
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) order: Order,
}

/// Options of `csd rm`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd rm climate/grid.npy logs/old.log
  csd rm -r climate/                         every object below climate/, asks first
  csd rm -r climate/ --yes                   without asking
  csd rm --damaged prices                    a name of which too few copies are sound")]
pub(crate) struct Rm {
    /// Names of the objects; with -r, of folders
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Remove every object below these folders. Asks first
    #[arg(long, short, conflicts_with = "damaged")]
    pub(crate) recursive: bool,
    /// Remove folders without asking
    #[arg(long, requires = "recursive")]
    pub(crate) yes: bool,
    /// Drop names of which too few copies are sound, whatever they stand for; or what stands under
    /// a key that a warning names. Every drive must be up, and no other host may write meanwhile
    #[arg(long)]
    pub(crate) damaged: bool,
}
