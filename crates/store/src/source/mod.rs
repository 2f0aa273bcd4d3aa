//! Input of `put`: raw little-endian bytes, a column of a CSV file, or a `.npy` array. Lists of
//! edges ([`edges`]) become raw elements before they are put.
//!
//! Holds at most one chunk of its input, and guesses no type. Invariant: [`Source::fill`] returns
//! little-endian elements of [`Source::element`], whole ones in total.

mod csv;
pub mod edges;
mod npy;

use std::io::{self, Read};

use csd_kernels::ElementType;

use crate::fault::Fault;

pub use self::csv::{Column, CsvOptions, Empty, Header, Taken as CsvTaken};
pub use self::npy::{AS_BYTES, write_header as npy_header};

/// A stream of elements.
pub struct Source {
    /// Input as messages name it: a path, or `standard input`.
    name: String,
    element: ElementType,
    kind: Kind,
    bytes: u64,
}

enum Kind {
    Raw(Box<dyn Read + Send>),
    Npy { reader: Box<dyn Read + Send>, shape: Vec<u64>, bytes: u64 },
    Csv(Box<csv::Numbers>),
}

/// Reason why an input cannot be stored: the user's file is at fault, except for [`Error::Read`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The input.
        name: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The input does not hold whole elements.
    #[error(
        "{name} has {bytes} bytes, which is not a whole number of {element} elements of {} bytes",
        .element.bytes()
    )]
    Trailing {
        /// The input.
        name: String,
        /// Its element type.
        element: ElementType,
        /// Its length, bytes.
        bytes: u64,
    },
    /// A `.npy` header is malformed, or describes an unsupported array.
    #[error("{name} is not a usable .npy file: {why}")]
    Npy {
        /// The input.
        name: String,
        /// Description of the fault.
        why: String,
    },
    /// A value of a CSV file is not of the element type.
    #[error("{name}, line {line}, column {column}: {text:?} is not a valid {element}{hint}")]
    Value {
        /// The input.
        name: String,
        /// Line, from 1.
        line: u64,
        /// Column: its name, or its number from 1.
        column: String,
        /// Text of the cell.
        text: String,
        /// Expected type.
        element: ElementType,
        /// The option that decides, in words, or nothing.
        hint: &'static str,
    },
    /// The file is not CSV, or has no such column.
    #[error("{name} is not usable as CSV: {why}")]
    Csv {
        /// The input.
        name: String,
        /// Description of the fault.
        why: String,
    },
    /// The file is no list of edges that can be taken.
    #[error("{name}{why}")]
    Edges {
        /// The input.
        name: String,
        /// Place in it and description of the fault, which follow the name.
        why: String,
    },
    /// The options contradict the input.
    #[error("{name}: {why}")]
    Option {
        /// The input.
        name: String,
        /// Description of the contradiction.
        why: String,
    },
}

impl Error {
    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Read { .. } => Fault::Run,
            _ => Fault::Usage,
        }
    }
}

impl Source {
    /// Returns a source of raw little-endian elements.
    #[must_use]
    pub fn raw(name: &str, reader: Box<dyn Read + Send>, element: ElementType) -> Self {
        Self { name: name.to_owned(), element, kind: Kind::Raw(reader), bytes: 0 }
    }

    /// Returns a source for a `.npy` array in C order, whose type must be `wanted`, if given.
    ///
    /// # Errors
    /// [`Error::Npy`], [`Error::Option`] or [`Error::Read`].
    pub fn npy(
        name: &str,
        mut reader: Box<dyn Read + Send>,
        wanted: Option<ElementType>,
    ) -> Result<Self, Error> {
        let header = npy::read_header(&mut reader).map_err(|error| match error {
            npy::HeaderError::Read(source) => Error::Read { name: name.to_owned(), source },
            npy::HeaderError::Malformed(why) => Error::Npy { name: name.to_owned(), why },
        })?;
        if wanted.is_some_and(|wanted| wanted != header.element) {
            let why = format!("the file says its elements are {}", header.element);
            return Err(Error::Option { name: name.to_owned(), why });
        }
        let npy::Header { element, shape, bytes } = header;
        let kind = Kind::Npy { reader, shape, bytes };
        Ok(Self { name: name.to_owned(), element, kind, bytes: 0 })
    }

    /// Returns a source of raw little-endian elements that are an array of this shape.
    ///
    /// # Errors
    /// [`Error::Option`] if no array of bytes has so many elements.
    pub fn array(
        name: &str,
        reader: Box<dyn Read + Send>,
        element: ElementType,
        shape: &[u64],
    ) -> Result<Self, Error> {
        let elements = shape.iter().try_fold(1u64, |product, &length| product.checked_mul(length));
        let bytes = elements.and_then(|elements| elements.checked_mul(element.bytes() as u64));
        let why = || "its shape has too many elements".to_owned();
        let bytes = bytes.ok_or_else(|| Error::Option { name: name.to_owned(), why: why() })?;
        let kind = Kind::Npy { reader, shape: shape.to_vec(), bytes };
        Ok(Self { name: name.to_owned(), element, kind, bytes: 0 })
    }

    /// Returns a source for a column of a CSV file as elements of a real type.
    ///
    /// # Errors
    /// [`Error::Csv`], [`Error::Option`] or [`Error::Read`].
    pub fn csv(
        name: &str,
        reader: Box<dyn Read + Send>,
        element: ElementType,
        options: &CsvOptions,
    ) -> Result<Self, Error> {
        if options.empty == Empty::Nan && matches!(element, ElementType::I32 | ElementType::I64) {
            let why =
                format!("no {element} is NaN: empty cells can be 0 or left out, or choose f64");
            return Err(Error::Option { name: name.to_owned(), why });
        }
        if matches!(element, ElementType::C64 | ElementType::Bytes) {
            let why = format!("a CSV column holds numbers, not {element}");
            return Err(Error::Option { name: name.to_owned(), why });
        }
        let numbers = csv::Numbers::new(name, reader, element, options)?;
        Ok(Self { name: name.to_owned(), element, kind: Kind::Csv(Box::new(numbers)), bytes: 0 })
    }

    /// Returns what was taken for the column and the header of a CSV file.
    #[must_use]
    pub fn csv_taken(&self) -> Option<&CsvTaken> {
        match &self.kind {
            Kind::Csv(numbers) => Some(numbers.taken()),
            _ => None,
        }
    }

    /// Returns the input's name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Fills `out`, whose length is a multiple of 16; fills it partly only at the end.
    ///
    /// # Errors
    /// Any [`Error`]; [`Error::Trailing`] at the end of an input that ends within an element.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let filled = match &mut self.kind {
            Kind::Raw(reader) => read_full(reader, out),
            Kind::Npy { reader, bytes, .. } => {
                let rest = usize::try_from(*bytes - self.bytes).unwrap_or(usize::MAX);
                let length = out.len().min(rest);
                read_full(reader, &mut out[..length])
            }
            Kind::Csv(numbers) => return numbers.fill(out).inspect(|&n| self.bytes += n as u64),
        };
        let filled = filled.map_err(|source| Error::Read { name: self.name.clone(), source })?;
        self.bytes += filled as u64;
        if filled < out.len() {
            self.check_end()?;
        }
        Ok(filled)
    }

    /// Returns the shape of the elements read, once the end was reached.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        match &self.kind {
            Kind::Npy { shape, .. } => shape.clone(),
            _ => vec![self.bytes / self.element.bytes() as u64],
        }
    }

    /// Returns the shape that the input declares, before it is read.
    #[must_use]
    pub fn known_shape(&self) -> Option<&[u64]> {
        match &self.kind {
            Kind::Npy { shape, .. } => Some(shape),
            _ => None,
        }
    }

    fn check_end(&mut self) -> Result<(), Error> {
        let (name, element, bytes) = (self.name.clone(), self.element, self.bytes);
        match &mut self.kind {
            Kind::Npy { bytes: expected, reader, .. } => {
                let expected = *expected;
                let mut more = [0];
                let more = read_full(reader, &mut more)
                    .map_err(|source| Error::Read { name: name.clone(), source })?;
                if bytes == expected && more == 0 {
                    return Ok(());
                }
                let found = if more == 0 { format!("only {bytes}") } else { "more".to_owned() };
                let why = format!("its shape needs {expected} bytes, and {found} follow");
                Err(Error::Npy { name, why })
            }
            _ if bytes.is_multiple_of(element.bytes() as u64) => Ok(()),
            _ => Err(Error::Trailing { name, element, bytes }),
        }
    }
}

fn read_full(reader: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match reader.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(source: &mut Source, piece: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        loop {
            let mut out = vec![0; piece];
            let filled = source.fill(&mut out)?;
            all.extend_from_slice(&out[..filled]);
            if filled < piece {
                return Ok(all);
            }
        }
    }

    fn input(bytes: &[u8]) -> Box<dyn Read + Send> {
        Box::new(io::Cursor::new(bytes.to_vec()))
    }

    #[test]
    fn raw_input_must_be_whole_elements() {
        let mut source = Source::raw("x", input(&[1; 40]), ElementType::I64);
        assert_eq!(drain(&mut source, 16).unwrap(), [1; 40]);
        assert_eq!(source.shape(), [5]);
        let mut source = Source::raw("x", input(&[1; 41]), ElementType::I32);
        let error = drain(&mut source, 16).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x has 41 bytes, which is not a whole number of i32 elements of 4 bytes"
        );
        assert_eq!(error.fault(), Fault::Usage);
    }

    #[test]
    fn an_empty_input_is_an_empty_object() {
        let mut source = Source::raw("x", input(&[]), ElementType::I32);
        assert!(drain(&mut source, 16).unwrap().is_empty());
        assert_eq!(source.shape(), [0]);
    }

    fn npy_file(shape: &str, data: &[u8]) -> Vec<u8> {
        let dict = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&u16::try_from(dict.len()).unwrap().to_le_bytes());
        file.extend_from_slice(dict.as_bytes());
        file.extend_from_slice(data);
        file
    }

    #[test]
    fn an_array_must_have_the_bytes_its_shape_needs() {
        let whole = npy_file("(2, 3)", &[7; 24]);
        let mut source = Source::npy("a.npy", input(&whole), None).unwrap();
        assert_eq!(drain(&mut source, 16).unwrap(), [7; 24]);
        assert_eq!(source.shape(), [2, 3]);
        for (data, found) in [(20, "only 20 follow"), (25, "more follow"), (16, "only 16 follow")] {
            let file = npy_file("(2, 3)", &vec![7; data]);
            let mut source = Source::npy("a.npy", input(&file), None).unwrap();
            let error = drain(&mut source, 16).unwrap_err().to_string();
            assert!(error.ends_with(found), "{error}");
        }
    }

    #[test]
    fn a_type_that_contradicts_the_array_is_refused() {
        let file = npy_file("(1,)", &[0; 4]);
        let error = Source::npy("a.npy", input(&file), Some(ElementType::F32)).err().unwrap();
        assert_eq!(error.to_string(), "a.npy: the file says its elements are i32");
    }
}
