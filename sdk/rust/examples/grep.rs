//! Grep: emits the lines of stream 0 that hold the parameter, 1 to 256 bytes; the result is their
//! number. A line has at most 64 KiB.
#![no_std]

use csd_sdk::{each, emit, fail, parameters};

csd_sdk::program!(run);

const LINE_BYTES_MAX: usize = 64 << 10;

struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    length: usize,
}

static mut LINE: Line = Line { bytes: [0; LINE_BYTES_MAX], length: 0 };

fn run() -> u64 {
    let mut room = [0; 256];
    let word = parameters(&mut room);
    if word.is_empty() {
        fail("the parameter is what to look for");
    }
    // SAFETY: a program has one thread and runs once.
    let line = unsafe { &mut *(&raw mut LINE) };
    let mut found = 0;
    let mut end = |line: &mut Line| {
        let bytes = &line.bytes[..line.length];
        if bytes.windows(word.len()).any(|window| window == word) {
            emit(bytes);
            emit(b"\n");
            found += 1;
        }
        line.length = 0;
    };
    each(0, |mut bytes| {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            line.push(&bytes[..at]);
            end(line);
            bytes = &bytes[at + 1..];
        }
        line.push(bytes);
    });
    if line.length > 0 {
        end(line);
    }
    found
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => fail("a line is longer than 64 KiB"),
        }
        self.length += bytes.len();
    }
}
