//! Parses parts of a program's parameters from the command line.

use std::str::FromStr;

/// Bytes of one part of a program's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter(pub(crate) Vec<u8>);

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').ok_or("a kind, a colon and a value")?;
        let bytes = match kind {
            "text" => value.as_bytes().to_vec(),
            "hex" => hex(value)?,
            "i32" => number::<i32, 4>(value, i32::to_le_bytes)?,
            "u32" => number::<u32, 4>(value, u32::to_le_bytes)?,
            "i64" => number::<i64, 8>(value, i64::to_le_bytes)?,
            "u64" => number::<u64, 8>(value, u64::to_le_bytes)?,
            "f32" => number::<f32, 4>(value, f32::to_le_bytes)?,
            "f64" => number::<f64, 8>(value, f64::to_le_bytes)?,
            _ => return Err(format!("{kind:?} is none of text hex i32 u32 i64 u64 f32 f64")),
        };
        Ok(Self(bytes))
    }
}

fn number<T: FromStr, const N: usize>(
    text: &str,
    bytes: impl Fn(T) -> [u8; N],
) -> Result<Vec<u8>, String> {
    let value = text.parse().map_err(|_| format!("{text:?} is no such number"))?;
    Ok(bytes(value).to_vec())
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let pair = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(pair).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| "pairs of hexadecimal digits".to_owned())
}

#[test]
fn parameters_are_little_endian_bytes() {
    let parsed = |text: &str| Parameter::from_str(text).map(|parameter| parameter.0);
    assert_eq!(parsed("i32:-2").unwrap(), [254, 255, 255, 255]);
    assert_eq!(parsed("u64:258").unwrap(), [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(parsed("f32:1").unwrap(), 1f32.to_le_bytes());
    assert_eq!(parsed("text:a:b").unwrap(), b"a:b");
    assert_eq!(parsed("hex:00ff").unwrap(), [0, 255]);
    for wrong in ["5", "i32:x", "u32:-1", "hex:0", "hex:zz", "i8:1"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
