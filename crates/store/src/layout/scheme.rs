//! [`Scheme`]: numbers of data and parity pieces of a stripe, written as `rs:4+2`.
//!
//! Performs no I/O. Invariant: a scheme is within the limits of the code.

use std::fmt;
use std::str::FromStr;

use csd_kernels::erasure::{Code, DATA_MAX, PARITY_MAX};

/// Numbers of pieces of a stripe: any `data` of them give all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    data: u8,
    parity: u8,
}

/// Reason why a text is no scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no protection: say rs:N+K, N data pieces (1 to {DATA_MAX}) and K parity pieces \
     (1 to {PARITY_MAX}), as in rs:4+2"
)]
pub struct NoScheme(String);

impl Scheme {
    /// Returns the scheme with these numbers of data and parity pieces; `None` if the code has none
    /// such.
    #[must_use]
    pub fn new(data: usize, parity: usize) -> Option<Self> {
        let possible = (1..=DATA_MAX).contains(&data) && (1..=PARITY_MAX).contains(&parity);
        let small = |number: usize| u8::try_from(number).ok().filter(|_| possible);
        Some(Self { data: small(data)?, parity: small(parity)? })
    }

    /// Returns the number of data pieces.
    #[must_use]
    pub fn data(self) -> usize {
        self.data.into()
    }

    /// Returns the number of parity pieces, which is that of the pieces that may be lost.
    #[must_use]
    pub fn parity(self) -> usize {
        self.parity.into()
    }

    /// Returns the number of pieces of a whole stripe.
    #[must_use]
    pub fn pieces(self) -> usize {
        self.data() + self.parity()
    }

    /// Returns the code with its multiply tables.
    ///
    /// # Panics
    /// If the scheme is beyond the limits, which [`Scheme::new`] excludes.
    #[must_use]
    pub fn code(self) -> Code {
        Code::new(self.data(), self.parity()).expect("a scheme is within the limits of the code")
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rs:{}+{}", self.data, self.parity)
    }
}

impl FromStr for Scheme {
    type Err = NoScheme;

    fn from_str(text: &str) -> Result<Self, NoScheme> {
        let parse = || {
            let (data, parity) = text.strip_prefix("rs:")?.split_once('+')?;
            let number = |digits: &str| {
                let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse().ok().filter(|_| only_digits)
            };
            Self::new(number(data)?, number(parity)?)
        };
        parse().ok_or_else(|| NoScheme(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_read_and_written() {
        for text in ["rs:1+1", "rs:4+2", "rs:32+16"] {
            assert_eq!(text.parse::<Scheme>().unwrap().to_string(), text);
        }
        let scheme: Scheme = "rs:4+2".parse().unwrap();
        assert_eq!((scheme.data(), scheme.parity(), scheme.pieces()), (4, 2, 6));
        for wrong in [
            "", "rs", "4+2", "rs:4", "rs:0+1", "rs:4+0", "rs:33+1", "rs:1+17", "rs:+4+2", "rs:4+2 ",
        ] {
            assert_eq!(wrong.parse::<Scheme>(), Err(NoScheme(wrong.to_owned())));
        }
    }
}
