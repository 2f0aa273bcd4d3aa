//! [`escape`] and [`escape_lines`]: escape untrusted text for a terminal or a log.
//!
//! Names, messages of programs and reasons of drives may hold any character. Characters that move
//! the cursor, change colours, reorder text or are invisible become escapes, such as `\u{1b}`. JSON
//! output has names unescaped. Invariant: the result is printable, and printable text is unchanged.

use std::borrow::Cow;

/// Escapes text in one line.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, is_unfit)
}

/// Escapes text, except its line ends.
pub(crate) fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_if(text, |c| c != '\n' && is_unfit(c))
}

fn escape_if(text: &str, unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&unfit) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match unfit(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Returns true for control characters, format characters (directions, joiners, tags), line and
/// paragraph separators, and code points without a character.
fn is_unfit(c: char) -> bool {
    // Most characters of most texts.
    if matches!(c, ' '..='~') {
        return false;
    }
    c.is_control()
        || matches!(
            c,
            '\u{AD}'
                | '\u{600}'..='\u{605}'
                | '\u{61C}'
                | '\u{6DD}'
                | '\u{70F}'
                | '\u{890}'..='\u{891}'
                | '\u{8E2}'
                | '\u{115F}'..='\u{1160}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{110BD}'
                | '\u{110CD}'
                | '\u{13430}'..='\u{1345F}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E000}'..='\u{F8FF}'
                | '\u{E0000}'..='\u{10FFFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_or_hides_is_escaped_and_the_rest_is_as_it_was() {
        for same in ["", "one two", "m\u{e9}t\u{e9}o", "\u{65e5}\u{672c}", "a\\b\"c'"] {
            assert!(matches!(escape(same), Cow::Borrowed(text) if text == same));
        }
        let all = [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("x\u{202e}txt.exe", "x\\u{202e}txt.exe"),
            ("\u{2066}\u{feff}\u{200d}\u{e0041}", "\\u{2066}\\u{feff}\\u{200d}\\u{e0041}"),
        ];
        for (raw, escaped) in all {
            assert_eq!(escape(raw), escaped);
        }
        assert_eq!(escape_lines("a\nb\u{7}\n"), "a\nb\\u{7}\n");
    }
}
