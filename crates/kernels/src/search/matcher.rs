//! [`Matcher`]: a pattern, compiled.
//!
//! Two engines hold the same expression. The one for buffers is that of the crate regex, which
//! looks for literals first where it can; if it cannot, and every match contains a text, lines are
//! looked for by this text. The other one goes byte by byte, can stop after each, and takes lines
//! that are too long for a step.

use memchr::memmem::Finder;
use regex_automata::hybrid::dfa;
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::Look;

use super::pattern::{self, AUTOMATON_BYTES_MAX, Refused};
use crate::program::STEP_BYTES;

/// Most bytes of the states that an engine keeps while it searches.
const STATES_BYTES: usize = 1 << 20;
/// Most work of a step: bytes, times states of the automaton, which an engine visits for each byte
/// at worst. Some nanoseconds each.
const STEP_WORK: usize = 1 << 21;
/// Least and most bytes of a step with an automaton.
const STEP_BYTES_MIN: usize = 256;
const STEP_BYTES_MAX: usize = 64 << 10;
/// Longest line that is searched at once for texts alone, at gigabytes per second.
const LITERAL_LINE_BYTES_MAX: usize = 8 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Matcher {
    regex: meta::Regex,
    /// A text that every match contains; only if the engine itself looks for none.
    inner: Option<Finder<'static>>,
    by_bytes: dfa::DFA,
    step_bytes: usize,
    line_bytes: usize,
}

impl Matcher {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`Refused`] in words.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, Refused> {
        let hir = pattern::parse(pattern, ignore_case)?;
        let looks = hir.properties().look_set();
        let words = [Look::WordUnicode, Look::WordUnicodeNegate, Look::WordStartUnicode];
        let halves = [Look::WordEndUnicode, Look::WordStartHalfUnicode, Look::WordEndHalfUnicode];
        if words.into_iter().chain(halves).any(|look| looks.contains(look)) {
            return Err(Refused::UnicodeWords);
        }
        let automaton = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .which_captures(thompson::WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(automaton).build_from_hir(&hir);
        let nfa = nfa.map_err(|_| Refused::Large)?;
        let states = nfa.states().len();
        let by_bytes = dfa::DFA::config()
            .match_kind(MatchKind::LeftmostFirst)
            .cache_capacity(STATES_BYTES)
            .skip_cache_capacity_check(true);
        let by_bytes = dfa::DFA::builder().configure(by_bytes).build_from_nfa(nfa);
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .hybrid_cache_capacity(STATES_BYTES)
            .which_captures(thompson::WhichCaptures::Implicit);
        let regex = meta::Builder::new().configure(config).build_from_hir(&hir);
        let (regex, by_bytes) =
            (regex.map_err(|_| Refused::Large)?, by_bytes.map_err(|_| Refused::Large)?);
        let (step_bytes, line_bytes) = match regex.is_accelerated() && pattern::is_literal(&hir) {
            true => (STEP_BYTES, LITERAL_LINE_BYTES_MAX),
            false => {
                let step = (STEP_WORK / states.max(1)).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
                (step, 2 * step)
            }
        };
        let inner = pattern::inner(&hir).filter(|_| !regex.is_accelerated());
        let inner = inner.map(|text| Finder::new(text).into_owned());
        Ok(Self { regex, inner, by_bytes, step_bytes, line_bytes })
    }

    /// Returns the number of bytes that a step may search.
    #[must_use]
    pub fn step_bytes(&self) -> usize {
        self.step_bytes
    }

    /// Returns the length of the longest line that a step may search at once.
    #[must_use]
    pub fn line_bytes(&self) -> usize {
        self.line_bytes
    }

    /// Returns the engine that goes byte by byte.
    pub(super) fn by_bytes(&self) -> &dfa::DFA {
        &self.by_bytes
    }

    /// Returns a byte of the first line from `at` on, or the newline that ends it, in which the
    /// pattern matches. Lines begin at `at` and end with a newline.
    pub(super) fn first(&self, lines: &[u8], mut at: usize) -> Option<usize> {
        let Some(inner) = &self.inner else { return self.first_in(lines, at) };
        // Lines without the text need no engine.
        loop {
            let found = at + inner.find(&lines[at..])?;
            let start = memchr::memrchr(b'\n', &lines[at..found]);
            let start = start.map_or(at, |newline| at + newline + 1);
            at = found + memchr::memchr(b'\n', &lines[found..])? + 1;
            if let Some(end) = self.first_in(&lines[..at], start) {
                return Some(end);
            }
        }
    }

    /// Does the same by the engine alone.
    fn first_in(&self, lines: &[u8], at: usize) -> Option<usize> {
        let input = Input::new(lines).range(at..).earliest(true);
        // Behind the last newline there is no line.
        let end = self.regex.search_half(&input)?.offset();
        (end < lines.len()).then_some(end)
    }

    /// Returns true if the pattern matches in a line, which ends with a newline.
    #[must_use]
    pub fn matches(&self, line: &[u8]) -> bool {
        self.first(line, 0).is_some()
    }

    /// Returns the bytes of the matches in a line, which ends with a newline, without empty ones.
    pub fn all<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        self.regex.find_iter(line).map(|found| found.range()).filter(|found| !found.is_empty())
    }
}
