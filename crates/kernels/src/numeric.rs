//! [`Numeric`]: element types that kernels compute with, and code that kernels' parameters share.
//!
//! Invariant: an element of a [`Numeric`] is one number, so no kernel meets a type that it has no
//! arithmetic for.

use crate::ElementType;

/// Element type whose elements are single numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 32-bit IEEE 754 number.
    F32,
    /// 64-bit IEEE 754 number.
    F64,
}

/// Element type whose elements are not single numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("elements of type {0} are not numbers: use one of i32 i64 f32 f64")]
pub struct NotNumeric(pub ElementType);

impl Numeric {
    /// Every numeric type.
    pub const ALL: [Self; 4] = [Self::I32, Self::I64, Self::F32, Self::F64];

    /// Returns this type as an element type.
    #[must_use]
    pub const fn element(self) -> ElementType {
        match self {
            Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
            Self::F32 => ElementType::F32,
            Self::F64 => ElementType::F64,
        }
    }

    /// Returns the size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.element().bytes()
    }

    /// Returns the number of elements in `bytes`.
    ///
    /// # Errors
    /// [`Misaligned`] if the last one is cut.
    pub fn elements(self, bytes: &[u8]) -> Result<usize, Misaligned> {
        if bytes.len().is_multiple_of(self.bytes()) {
            Ok(bytes.len() / self.bytes())
        } else {
            Err(Misaligned { element: self.element(), bytes: bytes.len() })
        }
    }
}

impl TryFrom<ElementType> for Numeric {
    type Error = NotNumeric;

    fn try_from(element: ElementType) -> Result<Self, NotNumeric> {
        Self::ALL.into_iter().find(|one| one.element() == element).ok_or(NotNumeric(element))
    }
}

/// Bytes that do not hold whole elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes do not hold whole elements of type {element}")]
pub struct Misaligned {
    /// Type of the elements.
    pub element: ElementType,
    /// Number of bytes given.
    pub bytes: usize,
}

/// Length of every kernel's encoded parameters in bytes.
pub(crate) const PARAMETER_BYTES: usize = 16;

/// Reason why a kernel's parameters were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed parameters of {kernel}: {reason}")]
pub struct Malformed {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Error in them.
    pub reason: &'static str,
}

/// Returns the bytes of a kernel's parameters, of which there must be 16.
pub(crate) fn sixteen<'a>(
    kernel: &'static str,
    data: &'a [u8],
) -> Result<&'a [u8; PARAMETER_BYTES], Malformed> {
    data.try_into().map_err(|_| Malformed { kernel, reason: "not 16 bytes" })
}

/// Parameters that are an element type alone: its code, then 15 zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementParameters {
    /// Type of the elements of the inputs and of the result.
    pub element: Numeric,
}

impl ElementParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; PARAMETER_BYTES];
        data[0] = self.element.element().code();
        data
    }

    /// Parses the parameters of a kernel.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(kernel: &'static str, data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel, reason };
        let [code, reserved @ ..] = *sixteen(kernel, data)?;
        if reserved != [0; PARAMETER_BYTES - 1] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let element = ElementType::from_code(code).ok_or(malformed("unknown element type"))?;
        let element =
            Numeric::try_from(element).map_err(|_| malformed("the elements are not numbers"))?;
        Ok(Self { element })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_numeric() {
        for (element, _, _) in ElementType::TABLE {
            let numeric = Numeric::try_from(element);
            assert_eq!(numeric.is_ok(), element.bytes() % 4 == 0 && element.bytes() < 16);
            assert_eq!(numeric.map_or(element, Numeric::element), element);
        }
        let error = Numeric::try_from(ElementType::C64).unwrap_err();
        assert!(error.to_string().contains("c64"));
    }

    #[test]
    fn an_element_is_sixteen_bytes_and_each_wrong_one_is_named() {
        let parameters = ElementParameters { element: Numeric::F32 };
        let good = parameters.encode();
        assert_eq!(good, [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ElementParameters::parse("k", &good), Ok(parameters));
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            ElementParameters::parse("k", &data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 0), Err("unknown element type"));
        assert_eq!(with(0, 5), Err("the elements are not numbers"));
        for index in 1..16 {
            assert_eq!(with(index, 1), Err("reserved bytes are not zero"));
        }
        let error = ElementParameters::parse("k", &good[1..]).unwrap_err();
        assert_eq!(error.to_string(), "malformed parameters of k: not 16 bytes");
    }
}
