//! Parses and formats sizes, times and rates.
//!
//! Sizes are binary: `1M` is 1 MiB, 1,048,576 bytes. Only units with a decimal name, such as `1MB`,
//! are decimal. Rates are decimal, as in drives' data sheets: 1 GB/s is 1,000,000,000 bytes per
//! second.

pub(crate) use csd_store::words::{counted, grouped};

/// Parses a size: a number of bytes, or of a unit. `K` and `KiB` are 1024 bytes, `KB` is 1000
/// bytes; so are `M`, `G` and `T`, in upper or lower case. A fraction of a unit is rounded down to
/// whole bytes.
///
/// # Errors
/// The reason why the text is invalid, in words.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write 65536, 64K, 1.5G, 1GiB or 1GB");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit_bytes(unit).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if number.contains('.') && unit == 1 || fraction.len() > FRACTION_DIGITS_MAX {
        return Err(wrong());
    }
    let number = |digits: &str| digits.parse::<u64>().map(u128::from).map_err(|_| wrong());
    let parts = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| wrong())?);
    let bytes = number(whole)? * unit + number(fraction)? * unit / parts;
    u64::try_from(bytes).map_err(|_| format!("{text:?} is too large"))
}

/// Formats bytes as hexadecimal digits, two each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats a program's identifier, which may be any number of 64 bits.
pub(crate) fn program_id(pid: u64) -> String {
    format!("{pid:#018x}")
}

/// Most digits of a fraction.
const FRACTION_DIGITS_MAX: usize = 15;

/// Returns the bytes of a unit.
fn unit_bytes(unit: &str) -> Option<u128> {
    let lower = unit.to_ascii_lowercase();
    let mut rest = lower.chars();
    let power = match rest.next() {
        None => return Some(1),
        Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return None,
    };
    match (power, rest.as_str()) {
        (0, "") => Some(1),
        (1.., "" | "ib") => Some(1 << (10 * power)),
        (1.., "b") => Some(10u128.pow(3 * power)),
        _ => None,
    }
}

/// Parses a share in percent, with or without its sign: 0 to 100.
///
/// # Errors
/// The reason why the text is invalid, in words.
pub(crate) fn parse_percent(text: &str) -> Result<u8, String> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(format!("{text:?} is not a percentage from 0% to 100%")),
    }
}

/// Formats a size in the largest binary unit that keeps it at least 1.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, shift)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((unit, shift)) => {
            let value = real(bytes) / real(1 << shift);
            let decimals = if bytes.is_multiple_of(1 << shift) { 0 } else { 1 };
            format!("{value:.decimals$} {unit}")
        }
    }
}

/// Formats a size as [`size`] does, with its bytes.
pub(crate) fn exact_size(bytes: u64) -> String {
    let exact = counted(bytes, "byte");
    if bytes < 1 << 10 { exact } else { format!("{} ({exact})", size(bytes)) }
}

/// Formats a duration in seconds, milliseconds or microseconds.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// Returns nanoseconds in seconds.
#[allow(clippy::cast_precision_loss)] // 2^53 ns are 104 days
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Formats a rate, decimal; a dash if there are no bytes or no time.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    if bytes == 0 || seconds <= 0.0 {
        return "-".to_owned();
    }
    format!("{:.2} GB/s", real(bytes) / seconds / 1e9)
}

/// Formats a part of a whole in percent; a dash if the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", 100.0 * real(part) / real(whole)) }
}

#[allow(clippy::cast_precision_loss)] // for people to read: 53 bits are plenty
fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_hexadecimal_digits() {
        assert_eq!(hex(&[0, 0xAB]), "00ab");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64K", 65_536),
            ("64k", 65_536),
            ("1M", 1 << 20),
            ("1MiB", 1 << 20),
            ("3G", 3 << 30),
            ("2TiB", 2 << 40),
            ("512B", 512),
            ("1.5G", 3 << 29),
            ("0.25KiB", 256),
            ("0.3K", 307),
            ("500M", 500 << 20),
            ("1GB", 1_000_000_000),
            ("1gb", 1_000_000_000),
            ("2.5TB", 2_500_000_000_000),
            ("1kB", 1000),
            ("1gib", 1 << 30),
            ("16777215T", 16_777_215 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "",
            "M",
            "1 M",
            "-1",
            "iB",
            "1iB",
            "99999999999T",
            "1MM",
            "1.5",
            "1.5B",
            "1.G",
            ".5G",
            "1..5G",
            "1.2.3G",
            "1é",
            "1Bi",
            "1BB",
            "1.0000000000000001G",
            "16777216T",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages_end_at_100() {
        assert_eq!((parse_percent("50%"), parse_percent("0")), (Ok(50), Ok(0)));
        for wrong in ["101%", "-1", "", "%", "50 %"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([size(0), size(1023), size(1 << 20)], ["0 B", "1023 B", "1 MiB"]);
        assert_eq!([size(1536), size(5 << 40)], ["1.5 KiB", "5 TiB"]);
        assert_eq!(
            [duration(2.5), duration(0.0125), duration(1e-5)],
            ["2.50 s", "12.50 ms", "10.0 us"]
        );
        assert_eq!([rate(2_000_000_000, 0.5), rate(0, 1.0)], ["4.00 GB/s", "-"]);
        assert_eq!([percent(1, 8), percent(0, 0)], ["12.5%", "-"]);
        let sizes = [exact_size(1), exact_size(0), exact_size(1536)];
        assert_eq!(sizes, ["1 byte", "0 bytes", "1.5 KiB (1,536 bytes)"]);
    }
}
