//! Field GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (11Dh), whose elements are bytes: addition is
//! exclusive or, and 2 generates all elements but 0.

/// The polynomial.
const POLYNOMIAL: u16 = 0x11D;
/// Number of elements other than 0, which is the order of their group.
const ORDER: usize = 255;

/// Powers of 2, twice in a row, and the exponent of each element but 0.
const TABLES: ([u8; 2 * ORDER], [u8; 256]) = tables();

const fn tables() -> ([u8; 2 * ORDER], [u8; 256]) {
    let (mut powers, mut exponents) = ([0; 2 * ORDER], [0; 256]);
    let (mut exponent, mut power) = (0, 1u16);
    while exponent < ORDER {
        let [byte, _] = power.to_le_bytes();
        powers[exponent] = byte;
        powers[exponent + ORDER] = byte;
        let [low, ..] = exponent.to_le_bytes();
        exponents[byte as usize] = low;
        power <<= 1;
        if power > 0xFF {
            power ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    (powers, exponents)
}

/// Returns the product of two elements.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    const { assert!(TABLES.0[ORDER] == 1, "2 generates the group") };
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.0[TABLES.1[a as usize] as usize + TABLES.1[b as usize] as usize]
}

/// Returns the element whose product with this one is 1; `None` for 0.
pub(crate) const fn inverse(a: u8) -> Option<u8> {
    if a == 0 {
        return None;
    }
    Some(TABLES.0[ORDER - TABLES.1[a as usize] as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies as polynomials, bit by bit.
    fn by_bits(a: u8, b: u8) -> u8 {
        let (mut product, mut term) = (0, u16::from(a));
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= term;
            }
            term <<= 1;
            if term > 0xFF {
                term ^= POLYNOMIAL;
            }
        }
        u8::try_from(product).unwrap()
    }

    #[test]
    fn products_are_those_of_polynomials_and_commute() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), by_bits(a, b));
                assert_eq!(multiply(a, b), multiply(b, a));
            }
        }
    }

    #[test]
    fn multiplication_is_associative_and_distributes_over_addition() {
        for a in 0..=255 {
            for b in (0..=255).step_by(3) {
                for c in (0..=255).step_by(5) {
                    assert_eq!(multiply(multiply(a, b), c), multiply(a, multiply(b, c)));
                    assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
                }
            }
        }
    }

    #[test]
    fn every_element_but_zero_has_an_inverse() {
        assert_eq!(inverse(0), None);
        assert_eq!((inverse(1), multiply(0x80, 2)), (Some(1), 0x1D));
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a).unwrap()), 1);
            assert_eq!(multiply(a, 1), a);
        }
    }
}
