//! [`ElementType`]: type of an object's elements.
//!
//! Invariant: codes and names are stable, because catalogues and commands contain them.

use std::fmt;
use std::str::FromStr;

/// Type of an element; all are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 32-bit IEEE 754 number.
    F32,
    /// 64-bit IEEE 754 number.
    F64,
    /// Complex number: two 64-bit IEEE 754 numbers, the real part first. NumPy calls it complex128.
    C64,
    /// Bytes without further structure.
    Bytes,
}

impl ElementType {
    /// Every type with its code and name; the only such table.
    pub const TABLE: [(Self, u8, &'static str); 6] = [
        (Self::I32, 1, "i32"),
        (Self::I64, 2, "i64"),
        (Self::F32, 3, "f32"),
        (Self::F64, 4, "f64"),
        (Self::C64, 5, "c64"),
        (Self::Bytes, 6, "bytes"),
    ];

    /// NumPy's names of types: with a number of bytes, and with one of bits.
    const NUMPY: [(Self, &'static str, &'static str); 5] = [
        (Self::I32, "i4", "int32"),
        (Self::I64, "i8", "int64"),
        (Self::F32, "f4", "float32"),
        (Self::F64, "f8", "float64"),
        (Self::C64, "c16", "complex128"),
    ];

    /// Returns the type that NumPy calls by this name: `<i4`, `i4`, `=i4` or `int32`.
    #[must_use]
    pub fn from_numpy(name: &str) -> Option<Self> {
        let short = name.strip_prefix(['<', '=', '|']).unwrap_or(name);
        let mut rows = Self::NUMPY.iter();
        rows.find(|row| row.1 == short || row.2 == name).map(|row| row.0)
    }

    /// Returns the size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
            Self::C64 => 16,
            Self::Bytes => 1,
        }
    }

    /// Returns the name as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::TABLE[self as usize].2
    }

    /// Returns the code that catalogues and commands use.
    #[must_use]
    pub const fn code(self) -> u8 {
        Self::TABLE[self as usize].1
    }

    /// Returns the type with this code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::TABLE.iter().find(|row| row.1 == code).map(|row| row.0)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: a name that no element type has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an element type: use one of {names}{hint}",
    names = ElementType::TABLE.map(|row| row.2).join(" "),
    hint = match .0.as_str() {
        "c8" | "<c8" | "complex64" => ": it is two f32, and c64 is two f64 (NumPy's complex128)",
        _ => "",
    }
)]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(text: &str) -> Result<Self, UnknownElementType> {
        let row = Self::TABLE.iter().find(|row| row.2 == text).map(|row| row.0);
        row.or_else(|| Self::from_numpy(text)).ok_or_else(|| UnknownElementType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip_in_table_order() {
        for (index, (element, code, name)) in ElementType::TABLE.into_iter().enumerate() {
            assert_eq!(element as usize, index);
            assert_eq!(ElementType::from_code(code), Some(element));
            assert_eq!(name.parse(), Ok(element));
            assert_eq!((element.code(), element.to_string().as_str()), (code, name));
        }
        assert_eq!(ElementType::from_code(0), None);
        assert_eq!(ElementType::from_code(7), None);
    }

    #[test]
    fn names_of_numpy_are_taken_and_none_means_two_types() {
        for (element, short, long) in ElementType::NUMPY {
            for name in [short, long, &format!("<{short}")] {
                assert_eq!(name.parse(), Ok(element));
            }
            let bits: usize = long.trim_start_matches(char::is_alphabetic).parse().unwrap();
            assert_eq!((element.bytes(), short[1..].parse()), (bits / 8, Ok(bits / 8)));
        }
        assert_eq!("c64".parse(), Ok(ElementType::C64), "the name that stored objects have");
        for two_f32 in ["c8", "complex64"] {
            let error = two_f32.parse::<ElementType>().unwrap_err().to_string();
            assert!(error.ends_with("c64 is two f64 (NumPy's complex128)"), "{error}");
        }
        assert!(">i4".parse::<ElementType>().is_err());
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = "int".parse::<ElementType>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"int\" is not an element type: use one of i32 i64 f32 f64 c64 bytes"
        );
    }
}
