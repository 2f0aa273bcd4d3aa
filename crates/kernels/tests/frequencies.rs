//! Frequencies over texts in random pieces, compared with a plain look at each line.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use csd_buffer::Buffer;
use csd_kernels::frequencies::{self, Item, Join, Unjoined, answer_bytes_max};
use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::program;
use proptest::prelude::*;

type Counts = BTreeMap<Vec<u8>, u64>;

/// Returns the answer of the program to a piece that arrives in parts of `part` bytes.
fn answer(item: Item, piece: &[u8], part: usize) -> Vec<u8> {
    let program = frequencies::KERNEL.start(&item.encode(), Wanted::Bytes).unwrap();
    let stream = piece.chunks(part).map(Buffer::from_slice).collect();
    let (_, answer) = program::run(program, vec![stream]).unwrap();
    assert!(answer.len() <= answer_bytes_max(u32::try_from(piece.len()).unwrap()) as usize);
    answer
}

/// Returns the counts of a text that is cut into pieces of `piece` bytes.
fn counts(item: Item, text: &[u8], (piece, part): (usize, usize)) -> Counts {
    let mut join = Join::new(item, usize::MAX);
    for piece in text.chunks(piece) {
        join.add(&answer(item, piece, part)).unwrap();
    }
    join.end().unwrap();
    join.into_counts().into_iter().map(|(item, count)| (item.into_vec(), count)).collect()
}

/// Returns the counts that a look at each line gives.
fn expected(item: Item, text: &[u8]) -> Counts {
    let mut counts = Counts::new();
    let mut add = |item: &[u8]| *counts.entry(item.to_vec()).or_default() += 1;
    let space = |byte: &u8| b" \t\n\x0B\x0C\r".contains(byte);
    let text = text.strip_suffix(b"\n").or(Some(text).filter(|text| !text.is_empty()));
    for line in text.into_iter().flat_map(|text| text.split(|byte| *byte == b'\n')) {
        let mut words = line.split(space).filter(|word| !word.is_empty());
        match item {
            Item::Line => add(line),
            Item::Word => words.for_each(&mut add),
            Item::WordNumber(number) => {
                words.nth(number as usize - 1).into_iter().for_each(&mut add);
            }
            Item::Field { number, separator } => {
                let mut fields = line.split(|byte| *byte == separator);
                fields.nth(number as usize - 1).into_iter().for_each(&mut add);
            }
        }
    }
    counts
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        Just(Item::Line),
        Just(Item::Word),
        (1..4u32).prop_map(Item::WordNumber),
        (1..4u32).prop_map(|number| Item::Field { number, separator: b',' }),
        (1..3u32).prop_map(|number| Item::Field { number, separator: b' ' }),
    ]
}

fn byte() -> impl Strategy<Value = u8> {
    prop::sample::select(&b"aab,, \t\n\n\r\0\xFF"[..])
}

proptest! {
    #[test]
    fn counts_are_those_of_each_line_wherever_pieces_and_parts_end(
        item in item(),
        text in prop::collection::vec(byte(), 0..120),
        piece in 1..130usize,
        part in 1..40usize,
    ) {
        prop_assert_eq!(counts(item, &text, (piece, part)), expected(item, &text));
    }
}

#[test]
fn more_items_than_an_execution_keeps_are_counted() {
    let lines = |count: u64| {
        (0..count).map(|line| format!("{} {}\n", line % 90_001, line % 2)).collect::<String>()
    };
    let text = lines(200_000).into_bytes();
    for item in [Item::Line, Item::Word, Item::WordNumber(2)] {
        let expected = expected(item, &text);
        assert!(counts(item, &text, (1 << 20, 1 << 16)) == expected, "{item:?}");
        assert!(counts(item, &text, (8 << 20, 300_000)) == expected, "{item:?}");
    }
}

#[test]
fn long_lines_are_counted_over_steps_and_pieces() {
    let word = |letter: &str| letter.repeat(70_000);
    let line =
        |letters: &[&str]| letters.iter().map(|letter| word(letter) + " ").collect::<String>();
    let text = format!("{}\n{}\n\n{}", line(&["a"]), line(&["a", "b", "a"]), line(&["b"]));
    for item in [Item::Line, Item::Word, Item::WordNumber(2)] {
        let expected = expected(item, text.as_bytes());
        for cuts in [(1 << 20, 1 << 16), (100_000, 4096), (4096, 4096)] {
            assert!(counts(item, text.as_bytes(), cuts) == expected, "{item:?} {cuts:?}");
        }
    }
    let long = [&b"\n"[..], &vec![b'y'; 9 << 20]].concat();
    let program = frequencies::KERNEL.start(&Item::Line.encode(), Wanted::Bytes).unwrap();
    let failure = program::run(program, vec![vec![Buffer::from_slice(&long)]]).unwrap_err();
    assert!(failure.reason.contains("more than 8388608 bytes"), "{failure}");
}

#[test]
fn answers_of_another_form_and_too_many_items_are_refused() {
    let mut join = Join::new(Item::Line, usize::MAX);
    assert!(matches!(join.add(b"a\n\x05"), Err(Unjoined::Unreadable(_))));
    let text: String = (0..1000).map(|line| format!("{line}\n")).collect();
    let answer = answer(Item::Line, text.as_bytes(), 1 << 16);
    assert_eq!(Join::new(Item::Line, 1 << 20).add(&answer), Ok(()));
    assert_eq!(Join::new(Item::Line, 1 << 14).add(&answer), Err(Unjoined::Memory(1 << 14)));
}
