//! Diffie-Hellman over the finite fields of RFC 7919, by the `crypto-bigint` crate.
//!
//! Source: RFC 7919 for primes, generator 2 and lengths of exponents; NVM Express Base
//! Specification 2.2, "DH-HMAC-CHAP Protocol", for identifiers of groups. Random numbers come from
//! the caller. Invariants: exponentiation takes the same time for every exponent; a peer's value is
//! refused unless it lies strictly between 1 and p - 1, which in a safe-prime group leaves no small
//! subgroup; values are as long as the prime, big-endian.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use zeroize::Zeroizing;

use super::primes::{P2048, P3072, P4096, P6144, P8192};

/// Bytes of a private exponent: 512 bits, where RFC 7919 asks for 400 in its largest group.
pub const EXPONENT_BYTES: usize = 64;

/// A Diffie-Hellman group, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it
pub enum Group {
    /// No Diffie-Hellman exchange.
    Null,
    Ffdhe2048,
    Ffdhe3072,
    Ffdhe4096,
    Ffdhe6144,
    Ffdhe8192,
}

impl Group {
    /// All of them, by identifier.
    pub const ALL: [Self; 6] = [
        Self::Null,
        Self::Ffdhe2048,
        Self::Ffdhe3072,
        Self::Ffdhe4096,
        Self::Ffdhe6144,
        Self::Ffdhe8192,
    ];

    /// Returns the identifier on the wire.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Returns the group with this identifier.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// Returns the name: `null`, or that of RFC 7919.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Ffdhe2048 => "ffdhe2048",
            Self::Ffdhe3072 => "ffdhe3072",
            Self::Ffdhe4096 => "ffdhe4096",
            Self::Ffdhe6144 => "ffdhe6144",
            Self::Ffdhe8192 => "ffdhe8192",
        }
    }

    /// Returns the size of its values in bytes; 0 for the null group.
    pub fn bytes(self) -> usize {
        self.prime_text().len() / 2
    }

    fn prime_text(self) -> &'static str {
        match self {
            Self::Null => "",
            Self::Ffdhe2048 => P2048,
            Self::Ffdhe3072 => P3072,
            Self::Ffdhe4096 => P4096,
            Self::Ffdhe6144 => P6144,
            Self::Ffdhe8192 => P8192,
        }
    }

    fn prime(self) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => byte - b'0',
            _ => byte - b'A' + 10,
        };
        let digits = self.prime_text().as_bytes();
        digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// Returns the public value of a private exponent; empty for the null group.
    pub fn public(self, exponent: &[u8]) -> Vec<u8> {
        if self == Self::Null {
            return Vec::new();
        }
        let mut generator = vec![0; self.bytes()];
        generator[self.bytes() - 1] = 2;
        self.power(&generator, exponent).to_vec()
    }

    /// Returns the secret shared with the peer of this public value; `None` if the value is outside
    /// the group's range, and always for the null group.
    pub fn shared(self, exponent: &[u8], peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.accepts(peer).then(|| self.power(peer, exponent))
    }

    /// Returns true if a public value is usable. Public values are not secret, so the comparison
    /// need not take constant time.
    pub(super) fn accepts(self, value: &[u8]) -> bool {
        if self == Self::Null || value.len() != self.bytes() {
            return false;
        }
        let last = value.len() - 1;
        let above_one = value[..last].iter().any(|byte| *byte != 0) || value[last] > 1;
        let mut greatest = self.prime();
        greatest[last] -= 1; // the prime is odd: p - 1
        above_one && *value < greatest[..]
    }

    fn power(self, base: &[u8], exponent: &[u8]) -> Zeroizing<Vec<u8>> {
        let number = |bytes: &[u8]| {
            let bits = u32::try_from(bytes.len() * 8).expect("at most 8192 bits");
            BoxedUint::from_be_slice(bytes, bits).expect("as many bits as bytes")
        };
        let prime = Option::from(Odd::new(number(&self.prime()))).expect("a prime is odd");
        let base = BoxedMontyForm::new(number(base), BoxedMontyParams::new_vartime(prime));
        let exponent = Zeroizing::new(number(exponent));
        let power = Zeroizing::new(base.pow(&exponent).retrieve());
        Zeroizing::new(power.to_be_bytes().into_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_share_a_secret_and_small_subgroups_are_refused() {
        let (one, two) = ([0x35; EXPONENT_BYTES], [0x9A; EXPONENT_BYTES]);
        for group in [Group::Ffdhe2048, Group::Ffdhe3072] {
            let (first, second) = (group.public(&one), group.public(&two));
            assert_eq!(first.len(), group.bytes());
            let shared = group.shared(&one, &second).unwrap();
            assert_eq!(*shared, *group.shared(&two, &first).unwrap());
            assert_ne!(*shared, first);
            let mut value = vec![0; group.bytes()];
            assert!(group.shared(&one, &value).is_none(), "0");
            value[group.bytes() - 1] = 1;
            assert!(group.shared(&one, &value).is_none(), "1");
            let mut value = group.prime();
            assert!(group.shared(&one, &value).is_none(), "p");
            value[group.bytes() - 1] -= 1;
            assert!(group.shared(&one, &value).is_none(), "p - 1");
            value[group.bytes() - 1] -= 1;
            assert!(group.shared(&one, &value).is_some(), "p - 2");
            assert!(group.shared(&one, &second[1..]).is_none(), "too short");
        }
        assert!(Group::Null.shared(&one, &[]).is_none());
        assert!(Group::Null.public(&one).is_empty());
    }

    #[test]
    fn primes_are_as_long_as_they_are_called() {
        let bytes = Group::ALL.map(Group::bytes);
        assert_eq!(bytes, [0, 256, 384, 512, 768, 1024]);
        for group in &Group::ALL[1..] {
            let prime = group.prime();
            assert_eq!((&prime[..8], &prime[prime.len() - 8..]), (&[0xFF; 8][..], &[0xFF; 8][..]));
            assert_eq!(Group::from_id(group.id()), Some(*group));
        }
        assert_eq!(Group::from_id(6), None);
    }
}
