//! Parameters of page rank, as commands carry them: 16 bytes.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 | form: 1 dense, 2 sparse |
//! | 1..8 | reserved, 0 |
//! | 8..16 | columns: length of the vector, at most 2^32 |
//!
//! Invariant: parsing panics on no bytes, and every accepted form has exactly one encoding.

use super::NAME;
use crate::numeric::{Malformed, PARAMETER_BYTES, sixteen};

/// Most columns: indices of columns have 32 bits.
const COLUMNS_MAX: u64 = 1 << 32;

/// Storage form of the matrix's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rows of f32, as many as there are columns.
    Dense,
    /// Rows of u32: the number of sources, then the sources.
    Sparse,
}

/// Matrix and vector to multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Storage form of the rows.
    pub form: Form,
    /// Length of the vector; from 1 when dense.
    pub columns: u64,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; PARAMETER_BYTES];
        data[0] = if self.form == Form::Dense { 1 } else { 2 };
        data[8..].copy_from_slice(&self.columns.to_le_bytes());
        data
    }

    /// Returns the size of an element of the vector and of a row's sum, bytes.
    #[must_use]
    pub fn element_bytes(&self) -> u32 {
        if self.form == Form::Dense { 4 } else { 8 }
    }

    /// Returns the size of the vector, bytes.
    #[must_use]
    pub fn vector_bytes(&self) -> u64 {
        self.columns.saturating_mul(self.element_bytes().into())
    }

    /// Parses parameters.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let [form, reserved @ .., b0, b1, b2, b3, b4, b5, b6, b7] = *sixteen(NAME, data)?;
        let form = match form {
            1 => Form::Dense,
            2 => Form::Sparse,
            _ => return Err(malformed("unknown form")),
        };
        if reserved != [0; 7] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let columns = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        if columns > COLUMNS_MAX {
            return Err(malformed("more than 2^32 columns"));
        }
        if form == Form::Dense && columns == 0 {
            return Err(malformed("no columns"));
        }
        Ok(Self { form, columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_field_is_named() {
        let parameters = Parameters { form: Form::Sparse, columns: 0x0102 };
        let good = [2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(parameters.encode(), good);
        assert_eq!(Parameters::parse(&good), Ok(parameters));
        let with = |index: usize, byte: u8| {
            let mut data = good;
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 0), Err("unknown form"));
        assert_eq!(with(0, 3), Err("unknown form"));
        for index in 1..8 {
            assert_eq!(with(index, 1), Err("reserved bytes are not zero"));
        }
        assert_eq!(with(12, 1), Err("more than 2^32 columns"));
        let none = Parameters { form: Form::Dense, columns: 0 }.encode();
        assert_eq!(Parameters::parse(&none).unwrap_err().reason, "no columns");
        assert_eq!(Parameters::parse(&good[1..]).unwrap_err().reason, "not 16 bytes");
    }
}
