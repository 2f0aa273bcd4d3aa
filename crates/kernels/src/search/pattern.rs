//! Patterns: from their text to an expression that matches within a line.
//!
//! The syntax is that of the crate regex, over bytes: unless a pattern says `(?u)`, a character is
//! a byte, as for grep in the C locale. Invariant: the expression matches no newline, and its
//! anchors are those of lines.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind,
    Look, Repetition,
};

/// Most bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 4096;
/// Most bytes of an automaton. Longer ones take longer to compile than a step should.
pub(super) const AUTOMATON_BYTES_MAX: usize = 512 << 10;
/// Least bytes of a text that is worth being looked for: shorter ones are in too many lines.
const INNER_BYTES_MIN: usize = 3;
/// Most levels of groups in groups.
const NEST_MAX: u32 = 100;

/// Why a pattern cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no regular expression.
    #[error("{0}")]
    Syntax(String),
    /// It is too long.
    #[error("the pattern has more than {PATTERN_BYTES_MAX} bytes")]
    Long,
    /// It has a newline, which no line contains.
    #[error("the pattern contains a newline, and no line does: join patterns by `|`")]
    Newline,
    /// It is too large once it is compiled.
    #[error("the pattern takes more than {} KiB once it is compiled", AUTOMATON_BYTES_MAX >> 10)]
    Large,
    /// It asks for the words of Unicode.
    #[error("the pattern has a word boundary of Unicode: use `(?-u:\\b)`")]
    UnicodeWords,
}

/// Returns the pattern that matches this text itself.
#[must_use]
pub fn literal(text: &str) -> String {
    regex_syntax::escape(text)
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str, ignore_case: bool) -> Result<Hir, Refused> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Refused::Long);
    }
    let mut parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(ignore_case)
        .nest_limit(NEST_MAX)
        .build();
    within_lines(parser.parse(pattern).map_err(|error| Refused::Syntax(error.to_string()))?)
}

/// Returns true if an expression matches some texts alone, so that no automaton is needed.
pub(super) fn is_literal(hir: &Hir) -> bool {
    hir.properties().look_set().is_empty() && Extractor::new().extract(hir).is_exact()
}

/// Returns the longest text that every match contains, as far as it can be seen at once.
pub(super) fn inner(hir: &Hir) -> Option<&[u8]> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let texts = parts.iter().filter_map(|part| match part.kind() {
        HirKind::Literal(literal) => Some(&literal.0[..]),
        _ => None,
    });
    texts.max_by_key(|text| text.len()).filter(|text| text.len() >= INNER_BYTES_MIN)
}

/// Takes newlines out of what an expression matches, and makes its anchors those of lines.
fn within_lines(hir: Hir) -> Result<Hir, Refused> {
    let each = |all: Vec<Hir>| all.into_iter().map(within_lines).collect::<Result<Vec<_>, _>>();
    Ok(match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => return Err(Refused::Newline),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(without_newline(class)),
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            Hir::repetition(Repetition { min, max, greedy, sub: Box::new(within_lines(*sub)?) })
        }
        // Nobody asks for groups.
        HirKind::Capture(Capture { sub, .. }) => within_lines(*sub)?,
        HirKind::Concat(all) => Hir::concat(each(all)?),
        HirKind::Alternation(all) => Hir::alternation(each(all)?),
    })
}

fn without_newline(class: Class) -> Class {
    match class {
        Class::Bytes(mut class) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Class::Bytes(class)
        }
        Class::Unicode(mut class) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Class::Unicode(class)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_searched_for_is_refused_in_words() {
        let why = |pattern: &str| parse(pattern, false).unwrap_err().to_string();
        assert!(why("a(").contains("unclosed group"), "{}", why("a("));
        for newline in ["a\nb", r"a\nb", r"[\n]", r"ab\x0A*"] {
            assert_eq!(parse(newline, false), Err(Refused::Newline), "{newline}");
        }
        assert_eq!(parse(&"a".repeat(4097), false), Err(Refused::Long));
        assert!(
            why(&"(".repeat(200)).contains("nest") || why(&"(".repeat(200)).contains("unclosed")
        );
    }

    #[test]
    fn the_longest_text_of_a_pattern_is_found() {
        let inner = |pattern| {
            let hir = parse(pattern, false).unwrap();
            inner(&hir).map(|text| String::from_utf8(text.to_vec()).unwrap())
        };
        assert_eq!(inner("[A-Z]+Error(s?)[a-z]x").as_deref(), Some("Error"));
        assert_eq!(inner("[a-z]+abc[0-9]longer"), Some("longer".to_owned()));
        for without in ["ab[c-e]d", "(abc|def)", "[a-z](abc)*", "(?i)[x-z]abc"] {
            assert_eq!(inner(without), None, "{without}");
        }
    }

    #[test]
    fn newlines_leave_classes_and_anchors_are_those_of_lines() {
        let same = |pattern: &str, other: &str| {
            assert_eq!(parse(pattern, false).unwrap(), parse(other, false).unwrap(), "{pattern}");
        };
        same(r"[\na]", "a");
        same(r"\Aa\z", "(?m)^a$");
        same("^a$", "(?m)^a$");
        same(r"[^b]", r"[^b\n]");
        same(r"(a)(?:b)", "ab");
    }
}
