//! Numbers in base 128: the lowest digits first, bit 7 set in all but the last byte (LEB128).

/// Takes a number off the front; `None` if there is none, or none of 64 bits.
pub(crate) fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        let digit = u64::from(byte & 0x7F);
        // The last byte has one digit's room.
        if digit << shift >> shift != digit {
            return None;
        }
        number |= digit << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends a number.
pub(crate) fn append(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}
