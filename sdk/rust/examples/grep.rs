//! Grep: emits the lines of stream 0 that hold the parameter, 1 to 256 bytes; the result is their
//! number. A line has at most 64 KiB.
#![no_std]

use core::arch::wasm32::{u8x16_bitmask, u8x16_eq, u8x16_splat, v128_and, v128_load};

use csd_sdk::{emit, fail, next, parameters};

csd_sdk::program!(run);
csd_sdk::lines!();

const LINE_BYTES_MAX: usize = 64 << 10;

/// Buffer of lines: the beginning of one, and the bytes fetched at once.
static mut TEXT: [u8; 3 * LINE_BYTES_MAX] = [0; 3 * LINE_BYTES_MAX];

fn run() -> u64 {
    let mut room = [0; 256];
    let word = parameters(&mut room);
    if word.is_empty() || word.contains(&b'\n') {
        fail("the parameter is what to look for in a line");
    }
    // SAFETY: a program has one thread and runs once.
    let text = unsafe { &mut *(&raw mut TEXT) };
    let (mut kept, mut found) = (0, 0);
    loop {
        let count = next(0, &mut text[kept..]).len();
        if count == 0 {
            break;
        }
        let filled = kept + count;
        let last = text[kept..filled].iter().rposition(|byte| *byte == b'\n');
        let end = last.map_or(0, |last| kept + last + 1);
        found += grep(&text[..end], word);
        text.copy_within(end..filled, 0);
        kept = filled - end;
        if kept > LINE_BYTES_MAX {
            fail("a line is longer than 64 KiB");
        }
    }
    found + grep(&text[..kept], word)
}

/// Emits those of whole lines that contain the word; returns their number.
fn grep(lines: &[u8], word: &[u8]) -> u64 {
    let is_newline = |byte: &u8| *byte == b'\n';
    let (mut rest, mut found) = (lines, 0);
    while let Some(hit) = find(rest, word) {
        let start = rest[..hit].iter().rposition(is_newline).map_or(0, |before| before + 1);
        let end = rest[hit..].iter().position(is_newline).map_or(rest.len(), |after| hit + after);
        if end - start > LINE_BYTES_MAX {
            fail("a line is longer than 64 KiB");
        }
        emit(&rest[start..end]);
        emit(b"\n");
        found += 1;
        rest = &rest[rest.len().min(end + 1)..];
    }
    found
}

/// Returns the first place of the word: compares its first and its last byte at 16 places at once.
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    let last = word.len() - 1;
    let ends = (u8x16_splat(word[0]), u8x16_splat(word[last]));
    let mut at = 0;
    while at + last + 16 <= text.len() {
        // SAFETY: both vectors lie in the text.
        let vectors = unsafe {
            let place = text.as_ptr().add(at);
            (v128_load(place.cast()), v128_load(place.add(last).cast()))
        };
        let both = v128_and(u8x16_eq(vectors.0, ends.0), u8x16_eq(vectors.1, ends.1));
        let mut places = u8x16_bitmask(both);
        while places != 0 {
            let place = at + places.trailing_zeros() as usize;
            if &text[place..=place + last] == word {
                return Some(place);
            }
            places &= places - 1;
        }
        at += 16;
    }
    let rest = text[at..].windows(word.len()).position(|window| window == word);
    rest.map(|place| at + place)
}
