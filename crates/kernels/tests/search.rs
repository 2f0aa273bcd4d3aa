//! Search and word count over texts in random pieces, compared with a plain look at each line.

#![allow(clippy::unwrap_used)]

use csd_buffer::Buffer;
use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::program;
use csd_kernels::search::{self, Found, Join, Matcher, Parameters, Unjoined, Wants};
use csd_kernels::word_count::{self, Counts};
use proptest::prelude::*;

/// Patterns of all engines: literals, sets of them, classes, anchors, empty ones, bytes.
const PATTERNS: [&str; 22] = [
    "[ab]+abc[a-c]*",
    "[^b]aab$",
    "a",
    "ab",
    "ab|ba|c",
    "^a",
    "a$",
    "^$",
    "",
    "b*",
    "[^a]",
    "a.c",
    r"\ba",
    r"\Bb",
    "(a|b)*c",
    r"\s",
    r"[ab]*a[ab]{9}",
    r"\x00",
    r"\xFF",
    r"(?u)ü",
    "^.{3}$",
    r"c[^c]*c",
];

/// Returns the answers of the program to a text in pieces, each of which arrives in parts.
fn answers(parameters: &Parameters, pieces: &[Vec<&[u8]>]) -> Vec<(u64, Vec<u8>)> {
    let run = |parts: &Vec<&[u8]>| {
        let started = search::KERNEL.start(&parameters.encode(), Wanted::Bytes).unwrap();
        let stream = parts.iter().map(|part| Buffer::from_slice(part)).collect();
        program::run(started, vec![stream]).unwrap()
    };
    pieces.iter().map(run).collect()
}

/// Returns the selected lines with their numbers, and how many they are.
fn joined(parameters: &Parameters, pieces: &[Vec<&[u8]>]) -> (Vec<(u64, Vec<u8>)>, u64) {
    let mut all = Vec::new();
    let mut each = |found: Found<'_>| {
        let lines = found.lines.split_inclusive(|byte| *byte == b'\n');
        all.extend((found.number..).zip(lines.map(<[u8]>::to_vec)));
        Ok::<_, std::convert::Infallible>(())
    };
    let mut join = Join::new(parameters).unwrap();
    for (result, answer) in answers(parameters, pieces) {
        let room = pieces.iter().flatten().map(|part| part.len()).sum::<usize>();
        let room = search::answer_bytes_max(u32::try_from(room).unwrap());
        assert!(answer.len() <= room as usize);
        join.add((result, &answer), &mut each).unwrap();
    }
    join.end(&mut each).unwrap();
    let selected = join.selected();
    (all, selected)
}

/// Looks at each line by itself, as an expression over one line alone.
fn expected(parameters: &Parameters, text: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let regex = regex_automata::meta::Builder::new()
        .syntax(
            regex_automata::util::syntax::Config::new()
                .unicode(false)
                .utf8(false)
                .case_insensitive(parameters.ignore_case),
        )
        .configure(regex_automata::meta::Config::new().utf8_empty(false))
        .build(&parameters.pattern)
        .unwrap();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = (1u64..).zip(lines).filter(|(_, line)| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        regex.is_match(line) != parameters.invert
    });
    let ended = |line: &[u8]| [line.strip_suffix(b"\n").unwrap_or(line), b"\n"].concat();
    lines.map(|(number, line)| (number, ended(line))).collect()
}

/// Cuts a text at these places into pieces, and those at the others into parts.
fn cut<'a>(text: &'a [u8], cuts: &[(usize, bool)]) -> Vec<Vec<&'a [u8]>> {
    let mut places: Vec<(usize, bool)> =
        cuts.iter().map(|(at, piece)| (at % (text.len() + 1), *piece)).collect();
    places.sort_unstable();
    let (mut pieces, mut parts, mut begin) = (Vec::new(), Vec::new(), 0);
    for (at, ends_piece) in places {
        parts.push(&text[begin..at]);
        begin = at;
        if ends_piece {
            pieces.push(std::mem::take(&mut parts));
        }
    }
    parts.push(&text[begin..]);
    pieces.push(parts);
    pieces
}

fn check(parameters: &Parameters, text: &[u8], pieces: &[Vec<&[u8]>]) {
    let expected = expected(parameters, text);
    let with = |wants| Parameters { wants, ..parameters.clone() };
    let (lines, selected) = joined(&with(Wants::Numbered), pieces);
    assert_eq!((&lines, selected), (&expected, expected.len() as u64), "{parameters:?}");
    let (lines, selected) = joined(&with(Wants::Lines), pieces);
    assert!(lines.iter().map(|line| &line.1).eq(expected.iter().map(|line| &line.1)));
    assert_eq!(selected, expected.len() as u64);
    let (lines, selected) = joined(&with(Wants::Count), pieces);
    assert_eq!((lines.len(), selected), (0, expected.len() as u64));
    let (lines, selected) = joined(&with(Wants::First), pieces);
    assert_eq!((lines.len(), selected > 0), (0, !expected.is_empty()));
}

fn bytes() -> impl Strategy<Value = u8> {
    prop_oneof![
        6 => prop::sample::select(&b"aabbc"[..]),
        2 => Just(b'\n'),
        1 => prop::sample::select(&b"A \r\0\xFF\xC3\xBCx"[..]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_those_of_a_look_at_each(
        text in prop::collection::vec(bytes(), 0..120),
        cuts in prop::collection::vec((any::<usize>(), any::<bool>()), 0..8),
        pattern in prop::sample::select(&PATTERNS[..]),
        ignore_case in any::<bool>(),
        invert in any::<bool>(),
    ) {
        let pattern = pattern.to_owned();
        let parameters = Parameters { pattern, ignore_case, invert, wants: Wants::Lines };
        check(&parameters, &text, &cut(&text, &cuts));
    }

    #[test]
    fn lines_and_words_are_those_of_the_whole(
        text in prop::collection::vec(bytes(), 0..80),
        cuts in prop::collection::vec((any::<usize>(), any::<bool>()), 0..6),
    ) {
        let space = |byte: &u8| b" \t\n\x0B\x0C\r".contains(byte);
        let words = text.split(space).filter(|word| !word.is_empty()).count() as u64;
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let run = |parts: Vec<&[u8]>| {
            let program = word_count::KERNEL.start(&[], Wanted::Result).unwrap();
            let stream = parts.into_iter().map(Buffer::from_slice).collect();
            program::run(program, vec![stream]).unwrap().0
        };
        let pieces = cut(&text, &cuts);
        let some = pieces.into_iter().filter(|parts| parts.iter().any(|part| !part.is_empty()));
        let counts = some.map(|parts| Counts::from_result(run(parts)));
        let counts = counts.fold(Counts::default(), Counts::then);
        prop_assert_eq!((counts.lines, counts.words), (lines, words));
    }
}

#[test]
fn long_lines_are_searched_over_steps_and_pieces() {
    for pattern in ["needle", "[n]eedle$", "^x.*needle", "q", r"\bneedle\b", "(x|n)*e{2}dle", "^$"]
    {
        for invert in [false, true] {
            let pattern = pattern.to_owned();
            let wants = Wants::Lines;
            let parameters = Parameters { pattern, ignore_case: false, invert, wants };
            let long = |end: &str| format!("{}{end}\n", "x".repeat(700_000));
            let text = [long("needle"), long(" needle"), "x\n".to_owned(), long("q"), "y".into()];
            let text = text.concat().into_bytes();
            let even: Vec<usize> =
                (0..).map(|i| i * 65_536).take_while(|at| *at < text.len()).collect();
            let parts: Vec<(usize, bool)> =
                even.iter().map(|at| (*at, at % 262_144 == 0)).collect();
            check(&parameters, &text, &cut(&text, &[]));
            check(&parameters, &text, &cut(&text, &parts));
            check(&parameters, &text, &cut(&text, &[(701_000, false), (1_500_000, false)]));
        }
    }
}

#[test]
fn a_line_longer_than_any_chunk_is_refused_by_the_program() {
    let pattern = "x".to_owned();
    let parameters = Parameters { pattern, ignore_case: false, invert: false, wants: Wants::Lines };
    let text = [&b"\n"[..], &vec![b'y'; 9 << 20]].concat();
    let program = search::KERNEL.start(&parameters.encode(), Wanted::Bytes).unwrap();
    let failure = program::run(program, vec![vec![Buffer::from_slice(&text)]]).unwrap_err();
    assert!(failure.reason.contains("more than 8388608 bytes"), "{failure}");
}

#[test]
fn answers_of_another_form_are_refused() {
    let pattern = "x".to_owned();
    let parameters = Parameters { pattern, ignore_case: false, invert: false, wants: Wants::Lines };
    let ignore = |_: Found<'_>| Ok::<_, std::convert::Infallible>(());
    let mut join = Join::new(&parameters).unwrap();
    assert!(matches!(join.add((0, b"a\n\0"), ignore), Err(Unjoined::Unreadable(_))));
}

#[test]
fn patterns_that_grow_are_refused_and_steps_shrink_with_the_automaton() {
    let refused = |pattern: &str| Matcher::new(pattern, false).unwrap_err().to_string();
    assert!(refused("(a{500}){500}").contains("more than 512 KiB once it is compiled"));
    assert!(refused(r"(?u)\w{400}").contains("more than 512 KiB"));
    assert!(refused(r"(?u)\bx").contains("word boundary of Unicode"));
    let step = |pattern: &str| Matcher::new(pattern, false).unwrap().step_bytes();
    let (word, small, large) = (step("needle"), step("[a-z]+ing"), step("((a?){30}b){100}"));
    assert!(word > small && small > large && large >= 256, "{word} {small} {large}");
}
