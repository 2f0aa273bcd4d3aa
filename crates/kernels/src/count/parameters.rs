//! Parameters of count, as commands carry them: 16 bytes.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 | element type, [`ElementType::code`] |
//! | 1 | predicate, 0 is "equals" |
//! | 2..8 | reserved, 0 |
//! | 8..16 | bits of the value, little-endian; a 32-bit value in the low half |
//!
//! Invariant: parsing panics on no bytes, and every accepted form has exactly one encoding.

use super::NAME;
use crate::numeric::{Malformed, sixteen};
use crate::{ElementType, Scalar};

/// Predicate: equals.
const EQUAL: u8 = 0;

/// Value to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Value that elements are compared with; they have its type.
    pub value: Scalar,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![self.value.element().code(), EQUAL, 0, 0, 0, 0, 0, 0];
        data.extend_from_slice(&self.value.to_bits().to_le_bytes());
        data
    }

    /// Parses parameters.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let [code, predicate, reserved @ .., b0, b1, b2, b3, b4, b5, b6, b7] =
            *sixteen(NAME, data)?;
        let element = ElementType::from_code(code).ok_or(malformed("unknown element type"))?;
        if predicate != EQUAL {
            return Err(malformed("unknown predicate"));
        }
        if reserved != [0; 6] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let bits = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        let value = Scalar::from_bits(element, bits)
            .ok_or(malformed("the value is not one of its element type"))?;
        if value.is_nan() {
            return Err(malformed("NaN equals nothing"));
        }
        Ok(Self { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes() {
        let parameters = Parameters { value: Scalar::I32(-2) };
        let expected = [1, 0, 0, 0, 0, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];
        assert_eq!(parameters.encode(), expected);
        assert_eq!(Parameters::parse(&expected), Ok(parameters));
    }

    #[test]
    fn each_wrong_field_is_named() {
        let good = Parameters { value: Scalar::F32(1.0) }.encode();
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 0), Err("unknown element type"));
        assert_eq!(with(0, 7), Err("unknown element type"));
        assert_eq!(with(0, 5), Err("the value is not one of its element type"));
        assert_eq!(with(1, 1), Err("unknown predicate"));
        for reserved in 2..8 {
            assert_eq!(with(reserved, 1), Err("reserved bytes are not zero"));
        }
        assert_eq!(with(12, 1), Err("the value is not one of its element type"));
        for length in (0..16).chain([17]) {
            let mut data = good.clone();
            data.resize(length, 0);
            let error = Parameters::parse(&data).unwrap_err();
            assert_eq!(error.reason, "not 16 bytes", "{length}");
        }
        let nan = Parameters { value: Scalar::F64(f64::NAN) }.encode();
        let error = Parameters::parse(&nan).unwrap_err();
        assert_eq!(error.to_string(), "malformed parameters of count: NaN equals nothing");
    }
}
