//! Keys on the command line and in JSON: as text, or as hexadecimal digits.
//!
//! Invariant: a key that is printed as text is printable; other bytes are escapes, such as `\xf5`.

use csd_client::Key;
use serde_json::{Value, json};

use crate::report::Failure;
use crate::units::{counted, hex};

/// Parses a key.
pub(super) fn parse(text: &str, is_hex: bool) -> Result<Key, Failure> {
    let bytes = bytes(text, is_hex)?;
    Key::new(&bytes).map_err(|_| {
        let hint = if is_hex || bytes.is_empty() { "" } else { "; --hex takes hexadecimal digits" };
        let length = counted(bytes.len() as u64, "byte");
        let why = format!("key {text:?} has {length}, and a key has 1 to 16{hint}");
        Failure::usage(why)
    })
}

/// Parses the bytes of a key, or of a part of one.
pub(super) fn bytes(text: &str, is_hex: bool) -> Result<Vec<u8>, Failure> {
    if !is_hex {
        return Ok(text.as_bytes().to_vec());
    }
    let wrong = || Failure::usage(format!("{text:?} is not hexadecimal digits, two a byte"));
    if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong());
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Formats a key for people.
pub(super) fn shown(key: &Key, as_hex: bool) -> String {
    match as_hex {
        true => hex(key.as_bytes()),
        false => escaped(key.as_bytes()),
    }
}

/// Describes a key for JSON output.
pub(super) fn describe(key: &Key) -> Value {
    json!({ "key": escaped(key.as_bytes()), "hex": hex(key.as_bytes()) })
}

fn escaped(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_text_or_digits() {
        let text = parse("m\u{e9}t\u{e9}o", false).unwrap();
        assert_eq!((shown(&text, false), text.as_bytes().len()), ("m\u{e9}t\u{e9}o".to_owned(), 7));
        let raw = parse("F5ff00", true).unwrap();
        assert_eq!(raw.as_bytes(), [0xF5, 0xFF, 0]);
        assert_eq!([shown(&raw, false), shown(&raw, true)], ["\\xf5\\xff\\x00", "f5ff00"]);
        for (wrong, is_hex) in [("", false), ("seventeen letters", false), ("abc", true)] {
            assert!(parse(wrong, is_hex).is_err(), "{wrong}");
        }
        for wrong in ["xy", "", "+1", "00112233445566778899aabbccddeeff00"] {
            assert!(parse(wrong, true).is_err(), "{wrong}");
        }
    }
}
