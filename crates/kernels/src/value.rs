//! [`Scalar`]: one element's value, from a user's text or from a command's bits.
//!
//! Refuses numbers that are too large or too small for their type, because rounding would hide a
//! mistake; a number between two neighbours of a floating type becomes the nearer one. Invariant: a
//! parsed value is not NaN, because nothing equals NaN.

use std::fmt;

use crate::ElementType;

/// A value of a numeric element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// 32-bit signed integer.
    I32(i32),
    /// 64-bit signed integer.
    I64(i64),
    /// 32-bit IEEE 754 number.
    F32(f32),
    /// 64-bit IEEE 754 number.
    F64(f64),
}

/// Reason why a text is not a value of a type: wrong use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not a number of this type.
    #[error("{text:?} is not an {element}")]
    NotANumber {
        /// The type wanted.
        element: ElementType,
        /// The text as given.
        text: String,
    },
    /// A number, but beyond what the type can hold (too large, or so small that it would be 0).
    #[error("{text:?} is out of the range of {element}")]
    OutOfRange {
        /// The type wanted.
        element: ElementType,
        /// The text as given.
        text: String,
    },
    /// NaN, which equals nothing, not even itself.
    #[error("NaN equals nothing, not even itself (IEEE 754)")]
    Nan,
    /// The type has no single number as value.
    #[error("elements of type {0} cannot be compared with one number")]
    NoScalar(ElementType),
}

impl Scalar {
    /// Parses `text` as a value of type `element`.
    ///
    /// # Errors
    /// [`ParseError`], worded for the user.
    pub fn parse(element: ElementType, text: &str) -> Result<Self, ParseError> {
        match element {
            ElementType::I32 => integer(element, text).map(Self::I32),
            ElementType::I64 => integer(element, text).map(Self::I64),
            ElementType::F32 => {
                let value: f32 = text.parse().map_err(|_| not_a_number(element, text))?;
                check(element, text, f64::from(value)).map(|()| Self::F32(value))
            }
            ElementType::F64 => {
                let value: f64 = text.parse().map_err(|_| not_a_number(element, text))?;
                check(element, text, value).map(|()| Self::F64(value))
            }
            ElementType::C64 | ElementType::Bytes => Err(ParseError::NoScalar(element)),
        }
    }

    /// Returns the type of the value.
    #[must_use]
    pub const fn element(self) -> ElementType {
        match self {
            Self::I32(_) => ElementType::I32,
            Self::I64(_) => ElementType::I64,
            Self::F32(_) => ElementType::F32,
            Self::F64(_) => ElementType::F64,
        }
    }

    /// Returns the value's bits; those of a 32-bit type are in the low half.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        match self {
            Self::I32(value) => value.cast_unsigned() as u64,
            Self::I64(value) => value.cast_unsigned(),
            Self::F32(value) => value.to_bits() as u64,
            Self::F64(value) => value.to_bits(),
        }
    }

    /// Returns the value of this type with these bits; `None` if the type has no scalar, or the
    /// bits do not fit it.
    #[must_use]
    pub fn from_bits(element: ElementType, bits: u64) -> Option<Self> {
        let narrow = u32::try_from(bits).ok();
        match element {
            ElementType::I32 => narrow.map(|bits| Self::I32(bits.cast_signed())),
            ElementType::I64 => Some(Self::I64(bits.cast_signed())),
            ElementType::F32 => narrow.map(|bits| Self::F32(f32::from_bits(bits))),
            ElementType::F64 => Some(Self::F64(f64::from_bits(bits))),
            ElementType::C64 | ElementType::Bytes => None,
        }
    }

    /// Returns true for NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        match self {
            Self::I32(_) | Self::I64(_) => false,
            Self::F32(value) => value.is_nan(),
            Self::F64(value) => value.is_nan(),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I32(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
        }
    }
}

fn not_a_number(element: ElementType, text: &str) -> ParseError {
    ParseError::NotANumber { element, text: text.to_owned() }
}

fn integer<T>(element: ElementType, text: &str) -> Result<T, ParseError>
where
    T: std::str::FromStr<Err = std::num::ParseIntError>,
{
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        PosOverflow | NegOverflow => ParseError::OutOfRange { element, text: text.to_owned() },
        _ => not_a_number(element, text),
    })
}

/// Refuses NaN, and digits that became infinity or zero on their way into the type.
fn check(element: ElementType, text: &str, value: f64) -> Result<(), ParseError> {
    if value.is_nan() {
        return Err(ParseError::Nan);
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits = mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if digits && (value.is_infinite() || value == 0.0) {
        return Err(ParseError::OutOfRange { element, text: text.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::{Bytes, C64, F32, F64, I32, I64};

    #[test]
    fn numbers_are_parsed_in_their_type() {
        assert_eq!(Scalar::parse(I32, "-2147483648"), Ok(Scalar::I32(i32::MIN)));
        assert_eq!(Scalar::parse(I64, "9223372036854775807"), Ok(Scalar::I64(i64::MAX)));
        assert_eq!(Scalar::parse(F32, "0.1"), Ok(Scalar::F32(0.1)));
        assert_eq!(Scalar::parse(F64, "-inf"), Ok(Scalar::F64(f64::NEG_INFINITY)));
        assert_eq!(Scalar::parse(F64, "0e9"), Ok(Scalar::F64(0.0)));
        assert_eq!(Scalar::parse(F32, "-0").unwrap().to_bits(), 0x8000_0000);
    }

    #[test]
    fn wrong_texts_are_refused_with_the_reason() {
        let message = |element, text| Scalar::parse(element, text).unwrap_err().to_string();
        assert_eq!(message(I32, "2147483648"), "\"2147483648\" is out of the range of i32");
        assert_eq!(message(I64, "1.5"), "\"1.5\" is not an i64");
        assert_eq!(message(F32, "1e39"), "\"1e39\" is out of the range of f32");
        assert_eq!(message(F64, "1e-400"), "\"1e-400\" is out of the range of f64");
        assert_eq!(message(F64, ""), "\"\" is not an f64");
        for nan in ["nan", "NaN", "-nan"] {
            assert!(message(F32, nan).starts_with("NaN equals nothing"), "{nan}");
        }
        assert!(message(C64, "1").contains("c64"));
        assert!(message(Bytes, "1").contains("bytes"));
    }

    #[test]
    fn bits_round_trip_and_stray_high_bits_are_refused() {
        for scalar in [Scalar::I32(-1), Scalar::I64(-1), Scalar::F32(-0.0), Scalar::F64(1.5)] {
            let bits = scalar.to_bits();
            let back = Scalar::from_bits(scalar.element(), bits).unwrap();
            assert_eq!((back, back.to_bits()), (scalar, bits));
        }
        assert_eq!(Scalar::from_bits(I32, 1 << 32), None);
        assert_eq!(Scalar::from_bits(F32, 1 << 63), None);
        assert_eq!(Scalar::from_bits(C64, 0), None);
    }
}
