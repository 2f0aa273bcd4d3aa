//! Opens the source of `csd put`, and says what it was taken for. A Parquet file is cut by its row
//! groups, so that each lies on one drive.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use csd_store::ElementType;
use csd_store::object::Arrange;
use csd_store::source::{AS_BYTES, CsvOptions, Empty, Source};

use crate::cli;
use crate::cli::run::Layout;
use crate::edges;
use crate::report::{Class, Failure};
use crate::taken::Taken;

/// An opened source, ready to be stored.
pub(crate) struct PutInput {
    pub(crate) source: Source,
    /// Length, if the file system knows it.
    pub(crate) bytes: Option<u64>,
    pub(crate) arrange: Arrange,
    pub(crate) chunk_bytes: Option<u64>,
    /// Form of a text as it was taken.
    pub(crate) taken: Option<Taken>,
}

/// A stream of bytes.
type Reader = Box<dyn Read + Send>;

/// Opens a file to store it as elements of this type, if one is given. It is read through `wrap`.
pub(crate) fn open_as(
    file: &str,
    options: &cli::Put,
    element: Option<ElementType>,
    wrap: impl FnOnce(Reader) -> Reader,
) -> Result<PutInput, Failure> {
    if options.arrange.graph {
        let input = edges::input(file, &options.arrange.lines, options.chunk)?;
        let edges::Input { source, arrange, chunk_bytes, taken } = input;
        return Ok(PutInput { source, bytes: None, arrange, chunk_bytes, taken: Some(taken) });
    }
    let mut arrange = match options.arrange.layout {
        Layout::Spread => Arrange::Spread,
        Layout::Whole => Arrange::Whole,
        Layout::Range => Arrange::Range,
        Layout::Rows => Arrange::Rows,
    };
    let mut chunk_bytes = options.chunk;
    let (reader, bytes, name): (Reader, _, &str) = match file {
        "-" => (Box::new(io::stdin()), None, "standard input"),
        path => {
            let file = File::open(path);
            let file = file.map_err(|error| Failure::os(path, &error))?;
            let metadata = file.metadata().map_err(|error| Failure::os(path, &error))?;
            if metadata.is_dir() {
                let why = "is a folder: `csd put -r FOLDER PREFIX/` stores the files in it";
                return Err(Failure::usage(format!("{path} {why}")));
            }
            let is_plain = !options.csv
                && metadata.is_file()
                && options.arrange.layout == Layout::Spread
                && options.arrange.align.is_none()
                && element.is_none_or(|element| element == ElementType::Bytes);
            if is_plain && let Some(starts) = table_starts(&file) {
                arrange = Arrange::Table { starts };
                chunk_bytes = chunk_bytes.or(Some(TABLE_CHUNK_BYTES));
            }
            (Box::new(file), metadata.is_file().then_some(metadata.len()), path)
        }
    };
    let reader = wrap(reader);
    let source = if options.csv {
        let element = element.unwrap_or(ElementType::F64);
        let csv_options = CsvOptions {
            column: options.column.clone(),
            header: options.header.into(),
            empty: options.empty.map(Empty::from).unwrap_or_default(),
        };
        Source::csv(name, reader, element, &csv_options)
    } else if is_npy(name) && element != Some(ElementType::Bytes) {
        Source::npy(name, reader, element)
    } else {
        let element = element.unwrap_or(ElementType::Bytes);
        refuse_text(name, element)?;
        Ok(Source::raw(name, reader, element))
    };
    // A CSV file has no total for the progress bar: its numbers and its text differ in length.
    let bytes = bytes.filter(|_| !options.csv);
    let source = source.map_err(|error| Failure::at_fault(error.fault(), error))?;
    let taken = source.csv_taken().map(|taken| Taken::csv(name, taken));
    Ok(PutInput { source, bytes, arrange, chunk_bytes, taken })
}

/// Chunk size of a table by default, bytes: a query reads whole chunks, of the columns that it
/// needs.
const TABLE_CHUNK_BYTES: u64 = 256 << 10;

/// Returns where a table's groups of rows begin; `None` if the file is no table. The file is at its
/// begin afterwards.
#[cfg(feature = "query")]
fn table_starts(file: &File) -> Option<Vec<(u64, u64)>> {
    use std::io::Seek;
    use std::os::unix::fs::FileExt;
    let mut magic = [0; 4];
    let is_table = file.read_exact_at(&mut magic, 0).is_ok() && &magic == b"PAR1";
    let starts = is_table.then(|| csd_query::table::starts(file)).flatten();
    // Reading the footer has moved the file's place.
    let mut file = file;
    file.rewind().ok()?;
    starts
}

/// Knows no tables: without the feature `query` nothing reads them.
#[cfg(not(feature = "query"))]
fn table_starts(_: &File) -> Option<Vec<(u64, u64)>> {
    None
}

/// Returns true if a file's name is that of a NumPy array.
pub(crate) fn is_npy(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "npy")
}

/// Refuses to store a CSV file as raw numbers.
fn refuse_text(name: &str, element: ElementType) -> Result<(), Failure> {
    let extension = Path::new(name).extension();
    let is_text = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if !is_text || element == ElementType::Bytes {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name} is CSV text, and holds no raw {element}: store a column of it with --csv --column \
         NAME|NUMBER --type {element}, or the file as it is with --type bytes"
    )))
}

/// Returns true if a file that was refused is stored as bytes instead: a NumPy array that cannot be
/// an object, if the user gave no type.
pub(crate) fn becomes_bytes(file: &str, options: &cli::Put, refused: &Failure) -> bool {
    is_npy(file) && options.element.is_none() && refused.class == Class::Usage
}

/// Returns the remark that a file was stored as bytes, from the reason why it was refused.
pub(crate) fn as_bytes(file: &str, why: &str) -> String {
    let why = why.strip_suffix(AS_BYTES).unwrap_or(why);
    match why.strip_prefix(file).and_then(|rest| rest.strip_prefix(' ')) {
        Some(rest) => format!("stored as bytes: it {rest}"),
        None => format!("stored as bytes: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_has_no_name_and_no_option_that_is_not_needed() {
        let refused = format!("d/x.npy is not a usable .npy file: it is odd{AS_BYTES}");
        let remark = as_bytes("d/x.npy", &refused);
        assert_eq!(remark, "stored as bytes: it is not a usable .npy file: it is odd");
        assert_eq!(as_bytes("x", "no"), "stored as bytes: no");
    }
}
