//! Numbers in messages for people.

/// Formats a whole number with commas between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number of things that have this regular noun: `1 copy`, `2 copies`, `1,000 keys`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let number_in_words = grouped(number);
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("{number_in_words} {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => {
            format!("{number_in_words} {stem}ies")
        }
        _ => format!("{number_in_words} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
    }

    #[test]
    fn only_one_thing_is_singular() {
        let found = [counted(1, "chunk"), counted(0, "byte"), counted(1_000, "key")];
        assert_eq!(found, ["1 chunk", "0 bytes", "1,000 keys"]);
        assert_eq!([counted(2, "entry"), counted(1, "entry")], ["2 entries", "1 entry"]);
    }
}
