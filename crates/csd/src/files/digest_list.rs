//! Lists of digests as `sha256sum` and `b3sum` write them: 64 hexadecimal digits, two spaces, a
//! name. A line whose name has a backslash begins with one, and doubles those of the name.

use super::hash::Bytes;
use crate::report::Failure;
use crate::units::hex;

/// Returns the line of a digest.
pub(crate) fn line(digest: &Bytes, name: &str) -> String {
    match name.contains('\\') {
        true => format!("\\{}  {}\n", hex(digest), name.replace('\\', "\\\\")),
        false => format!("{}  {name}\n", hex(digest)),
    }
}

/// Reads a list. A `./` before a name is dropped, as `find .` puts it there.
///
/// # Errors
/// Usage: a line is none of a list, or there is no line.
pub(crate) fn parse(list: &str, text: &str) -> Result<Vec<(Bytes, String)>, Failure> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let read = |(index, line): (usize, &str)| {
        parse_line(line).ok_or_else(|| {
            let (at, form) = (index + 1, "64 hexadecimal digits, two spaces and a name");
            Failure::usage(format!("{list}, line {at}: {line:?} is not {form}"))
        })
    };
    let parsed: Vec<_> = lines.map(read).collect::<Result<_, _>>()?;
    match parsed.is_empty() {
        true => Err(Failure::usage(format!("{list} has no digests"))),
        false => Ok(parsed),
    }
}

fn parse_line(line: &str) -> Option<(Bytes, String)> {
    let (is_escaped, line) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digits, rest) = line.split_at_checked(64)?;
    let name = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(" *"))?;
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = if is_escaped { name.replace("\\\\", "\\") } else { name.to_owned() };
    (!name.is_empty()).then_some((digest, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_written_are_read_and_others_refused() {
        let digest: Bytes = std::array::from_fn(|at| u8::try_from(at * 7).unwrap());
        for name in ["a", "a b/c", "back\\slash", " leading", "*star", "\\\\"] {
            assert_eq!(parse("l", &line(&digest, name)).unwrap(), [(digest, name.to_owned())]);
        }
        let digits = hex(&digest);
        for (text, name) in [
            (format!("{digits} *binary\n\n"), "binary"),
            (format!("{}  ./x/y\r\n", digits.to_uppercase()), "x/y"),
        ] {
            assert_eq!(parse("l", &text).unwrap(), [(digest, name.to_owned())]);
        }
        for wrong in [
            String::new(),
            "\n".to_owned(),
            digits.clone(),
            format!("{digits}  "),
            format!("{digits} x"),
            format!("{}  x", &digits[1..]),
            format!("{}  x", digits.replace('0', "g")),
            format!("SHA256 (x) = {digits}"),
            "\u{e9}".repeat(40) + "  x",
        ] {
            assert!(parse("l", &wrong).is_err(), "{wrong}");
        }
    }
}
