//! The header of a `.npy` file: versions 1 to 3 are read, version 1 is written.
//!
//! Source: NumPy, "A Simple File Format for NumPy Arrays" (NEP 1). Headers of Python 2
//! are read, with `L` behind lengths and `u` before strings, and those of NumPy 2 with
//! `np.int64(3)` for a length. Does not unpickle, swap bytes or transpose: arrays that need this
//! are refused with a reason. Invariant: an accepted header has a shape whose size in bytes fits
//! 64 bits.

use std::io::{self, Read};

use csd_kernels::ElementType;

/// Longest header that is read, bytes: NumPy's own limit for safe parsing.
const HEADER_BYTES_MAX: u32 = 10_000;

/// First bytes of every file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) element: ElementType,
    pub(super) shape: Vec<u64>,
    /// Size of the data that follows, bytes.
    pub(super) bytes: u64,
}

/// Reason why there is no valid header.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{0}")]
    Malformed(String),
}

fn malformed<T>(why: impl Into<String>) -> Result<T, HeaderError> {
    Err(HeaderError::Malformed(why.into()))
}

/// End of the reason why an array that is whole is refused.
pub const AS_BYTES: &str = ", or store the file as it is with --type bytes";

fn unsupported<T>(why: impl std::fmt::Display) -> Result<T, HeaderError> {
    malformed(format!("{why}{AS_BYTES}"))
}

/// Reads the header; the reader is then at the data.
pub(super) fn read_header(reader: &mut impl Read) -> Result<Header, HeaderError> {
    let mut start = [0; 8];
    read_exact(reader, &mut start)?;
    if &start[..6] != MAGIC {
        return malformed("it does not begin with the magic string");
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            read_exact(reader, &mut length)?;
            u32::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            read_exact(reader, &mut length)?;
            u32::from_le_bytes(length)
        }
        version => return malformed(format!("version {version} is unknown")),
    };
    if length > HEADER_BYTES_MAX {
        return malformed(format!("its header of {length} bytes is too long"));
    }
    let mut text = vec![0; length as usize];
    read_exact(reader, &mut text)?;
    let text = str::from_utf8(&text)
        .map_err(|_| HeaderError::Malformed("its header is not text".to_owned()))?;
    parse(text)
}

fn read_exact(reader: &mut impl Read, out: &mut [u8]) -> Result<(), HeaderError> {
    reader.read_exact(out).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            HeaderError::Malformed("it ends within its header".to_owned())
        }
        _ => HeaderError::Read(error),
    })
}

/// Parses the dictionary: a Python literal with exactly the keys descr, fortran_order and shape.
fn parse(text: &str) -> Result<Header, HeaderError> {
    let mut input = Input(text.trim());
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    input.expect('{')?;
    while !input.eat('}') {
        let key = input.string()?;
        input.expect(':')?;
        match key {
            "descr" if input.0.starts_with('[') => {
                return unsupported(
                    "records (structured types) are not supported: save each field as an array",
                );
            }
            "descr" => descr = Some(input.string()?),
            "fortran_order" => fortran = Some(input.boolean()?),
            "shape" => shape = Some(input.tuple()?),
            _ => return malformed(format!("unknown key {key:?}")),
        }
        if !input.eat(',') {
            input.expect('}')?;
            break;
        }
    }
    if !input.0.is_empty() {
        return malformed("something follows its header's dictionary");
    }
    let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
        return malformed("its header lacks descr, fortran_order or shape");
    };
    let element = element(descr)?;
    if fortran && shape.iter().filter(|&&length| length != 1).count() > 1 {
        return unsupported("it is in Fortran order: save numpy.ascontiguousarray(a) instead");
    }
    let elements = shape.iter().try_fold(1u64, |product, &length| product.checked_mul(length));
    match elements.and_then(|elements| elements.checked_mul(element.bytes() as u64)) {
        Some(bytes) => Ok(Header { element, shape, bytes }),
        None => malformed("its shape is too large"),
    }
}

fn element(descr: &str) -> Result<ElementType, HeaderError> {
    if let Some(element) = ElementType::from_numpy(descr) {
        return Ok(element);
    }
    if let Some(name) = descr.strip_prefix('>') {
        return unsupported(format_args!(
            "its elements ({descr:?}) are big-endian: convert them with a.astype(\"<{name}\")"
        ));
    }
    if matches!(descr, "<c8" | "complex64") {
        return unsupported(format_args!(
            "elements of type {descr:?} (two f32) are not supported: convert them with \
             a.astype(\"<c16\")"
        ));
    }
    unsupported(format_args!(
        "elements of type {descr:?} are not supported: use <i4, <i8, <f4, <f8 or <c16"
    ))
}

/// Number of digits that NumPy reserves for the first length, so that an array can grow in place.
const GROWTH_DIGITS: usize = 21;
/// The length of magic string, version, length and header is a multiple of this.
const ALIGNMENT: usize = 64;

/// Returns the header that `numpy.save` writes for an array in C order, byte for byte; `None` for
/// elements that are not numbers.
#[must_use]
pub fn write_header(element: ElementType, shape: &[u64]) -> Option<Vec<u8>> {
    let descr = match element {
        ElementType::I32 => "<i4",
        ElementType::I64 => "<i8",
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::C64 => "<c16",
        ElementType::Bytes => return None,
    };
    let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = match &lengths[..] {
        [only] => format!("({only},)"),
        lengths => format!("({})", lengths.join(", ")),
    };
    let growth = lengths.first().map_or(0, |first| GROWTH_DIGITS.saturating_sub(first.len()));
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    text.push_str(&" ".repeat(growth));
    // The line ends in a newline. NumPy pads with 1 to 64 spaces, never with none.
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.push_str(&" ".repeat(ALIGNMENT - unpadded % ALIGNMENT));
    text.push('\n');
    let length = u16::try_from(text.len()).ok()?;
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend(length.to_le_bytes());
    header.extend(text.into_bytes());
    Some(header)
}

/// Rest of the literal.
struct Input<'a>(&'a str);

impl<'a> Input<'a> {
    fn eat(&mut self, what: char) -> bool {
        match self.0.trim_start().strip_prefix(what) {
            Some(rest) => {
                self.0 = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, what: char) -> Result<(), HeaderError> {
        if self.eat(what) { Ok(()) } else { malformed(format!("its header lacks a {what:?}")) }
    }

    fn string(&mut self) -> Result<&'a str, HeaderError> {
        let _prefix = self.eat('u');
        let quote = if self.eat('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect('\'')?;
        }
        let Some((text, rest)) = self.0.split_once(quote) else {
            return malformed("a string of its header does not end");
        };
        self.0 = rest.trim_start();
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        for (word, value) in [("False", false), ("True", true)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest.trim_start();
                return Ok(value);
            }
        }
        malformed("fortran_order is neither True nor False")
    }

    fn tuple(&mut self) -> Result<Vec<u64>, HeaderError> {
        self.expect('(')?;
        let (mut lengths, mut comma) = (Vec::new(), false);
        while !self.eat(')') {
            lengths.push(self.length()?);
            comma = self.eat(',');
            if !comma {
                self.expect(')')?;
                break;
            }
        }
        // In Python, `(5)` is a number.
        if lengths.len() == 1 && !comma {
            return malformed("its shape is a number, not a tuple");
        }
        if lengths.len() > crate::layout::DIMENSIONS_MAX {
            return malformed("its shape has too many dimensions");
        }
        Ok(lengths)
    }

    /// Reads a length: `3`, `3L` of Python 2, or `np.int64(3)` of NumPy 2.
    fn length(&mut self) -> Result<u64, HeaderError> {
        let wrapped = self.0.strip_prefix("np.").and_then(|rest| rest.split_once('('));
        if let Some((kind, rest)) = wrapped
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            self.0 = rest.trim_start();
        }
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(digits);
        let Ok(length) = number.parse() else {
            return malformed("its shape is not a tuple of whole numbers");
        };
        self.0 = rest.strip_prefix('L').unwrap_or(rest).trim_start();
        if wrapped.is_some() {
            self.expect(')')?;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, dict: &str) -> Vec<u8> {
        let mut file = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
        match version {
            1 => file.extend_from_slice(&u16::try_from(dict.len()).unwrap().to_le_bytes()),
            _ => file.extend_from_slice(&u32::try_from(dict.len()).unwrap().to_le_bytes()),
        }
        file.extend_from_slice(dict.as_bytes());
        file
    }

    fn header(bytes: &[u8]) -> Result<Header, String> {
        read_header(&mut &bytes[..]).map_err(|error| error.to_string())
    }

    #[test]
    fn all_versions_types_and_shapes_are_read() {
        for version in 1..=3 {
            for (descr, element) in [
                ("<i4", ElementType::I32),
                ("<i8", ElementType::I64),
                ("<f4", ElementType::F32),
                ("<f8", ElementType::F64),
                ("<c16", ElementType::C64),
            ] {
                let text = format!(
                    "{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 4), }}    \n"
                );
                let bytes = 12 * element.bytes() as u64;
                let expected = Header { element, shape: vec![3, 4], bytes };
                assert_eq!(header(&file(version, &text)), Ok(expected));
            }
        }
        for (shape, lengths) in [("()", vec![]), ("(5,)", vec![5]), ("(0, 7)", vec![0, 7])] {
            let text = format!("{{'descr':'<i4','fortran_order':False,'shape':{shape}}}");
            assert_eq!(header(&file(1, &text)).unwrap().shape, lengths);
        }
        let column = "{'descr': '<i4', 'fortran_order': True, 'shape': (5,)}";
        assert_eq!(header(&file(1, column)).unwrap().shape, [5]);
    }

    #[test]
    fn a_written_header_is_numpy_s_and_is_read_back() {
        // What numpy.save of NumPy 2 writes before the data of an array of (600, 1000) i32.
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(b"{'descr': '<i4', 'fortran_order': False, 'shape': (600, 1000), }");
        expected.resize(127, b' ');
        expected.push(b'\n');
        assert_eq!(write_header(ElementType::I32, &[600, 1000]), Some(expected));
        for shape in [vec![], vec![0], vec![7], vec![u64::MAX / 8], vec![2, 0, 9], vec![1; 8]] {
            for element in [ElementType::I32, ElementType::F32, ElementType::F64, ElementType::C64]
            {
                let Some(bytes) = shape.iter().product::<u64>().checked_mul(element.bytes() as u64)
                else {
                    continue;
                };
                let written = write_header(element, &shape).unwrap();
                assert!(written.len().is_multiple_of(ALIGNMENT));
                let shape = shape.clone();
                assert_eq!(header(&written), Ok(Header { element, shape, bytes }));
            }
        }
        assert_eq!(write_header(ElementType::Bytes, &[3]), None);
    }

    #[test]
    fn what_cannot_be_stored_says_why() {
        for (dict, why) in [
            ("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}", "big-endian"),
            ("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}", "not supported"),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "a.astype(\"<c16\")"),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "not supported"),
            ("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "records"),
            ("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 2)}", "Fortran order"),
            ("{'descr': '<i4', 'fortran_order': False}", "lacks descr"),
            ("{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}", "neither True nor False"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}", "whole numbers"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (5)}", "not a tuple"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (5L)}", "not a tuple"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (,)}", "whole numbers"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (np.int64(5,)}", "lacks a ')'"),
            ("{'descr': '<i4', 'fortran_order': False, 'shape': (5,)}}", "something follows"),
            ("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "too"),
            ("{'descr': '<i4', 'extra': '1'}", "unknown key"),
            ("{'descr': '<i4", "does not end"),
            ("", "lacks a '{'"),
        ] {
            let error = header(&file(1, dict)).unwrap_err();
            assert!(error.contains(why), "{dict}: {error}");
        }
        // An array that is whole can be stored as bytes.
        for (descr, order) in [(">i4", "False"), ("<u2", "False"), ("<i4", "True")] {
            let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 2)}}");
            let error = header(&file(1, &dict)).unwrap_err();
            assert!(error.ends_with(AS_BYTES), "{error}");
        }
    }

    #[test]
    fn headers_of_older_and_newer_numpy_are_read() {
        // NumPy's own test file win64python2.npy begins with the first of these.
        for (dict, shape) in [
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }", vec![2]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }", vec![2, 3]),
            ("{u'descr': u'<f8', u'fortran_order': False, u'shape': (2,)}", vec![2]),
            ("{\"shape\": (2,), \"descr\": \"=f8\", \"fortran_order\": False}", vec![2]),
            ("{'descr': 'float64', 'fortran_order': False, 'shape': ()}", vec![]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (np.int64(2), 3)}", vec![2, 3]),
        ] {
            let found = header(&file(1, dict)).unwrap();
            assert_eq!((found.element, found.shape), (ElementType::F64, shape), "{dict}");
        }
    }

    #[test]
    fn no_prefix_and_no_changed_byte_panics() {
        let whole = file(2, "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }");
        for length in 0..whole.len() {
            assert!(header(&whole[..length]).is_err(), "cut to {length}");
        }
        for index in 0..whole.len() {
            for value in [0, b'\'', b'(', b'9', 0xFF] {
                let mut changed = whole.clone();
                changed[index] = value;
                let _either = header(&changed);
            }
        }
        assert!(header(b"not a numpy file").unwrap_err().contains("magic"));
    }
}
