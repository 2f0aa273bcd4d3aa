//! Top k: emits the k largest `f32` of stream 0, largest first; the parameter is k, a `u32`, at
//! most 1024. The result is their number. NaN is no number and left out. The fold emits the k
//! largest of two answers.
#![no_std]

use csd_sdk::{Element, elements, emit, fail, parameters, part};

csd_sdk::program!(run);
csd_sdk::fold!(fold);

const MOST: usize = 1024;

/// Largest numbers so far, in descending order; equal ones in order of arrival.
struct Best {
    values: [f32; MOST],
    count: usize,
    wanted: usize,
}

impl Best {
    fn new() -> Self {
        let mut room = [0; 8];
        let wanted = match parameters(&mut room) {
            bytes if bytes.len() == 4 => u32::read(bytes) as usize,
            _ => fail("the parameter is a u32"),
        };
        if wanted == 0 || wanted > MOST {
            fail("k is 1 to 1024");
        }
        Self { values: [0.0; MOST], count: 0, wanted }
    }

    fn add(&mut self, value: f32) {
        let full = self.count == self.wanted;
        if value.is_nan() || (full && value <= self.values[self.count - 1]) {
            return;
        }
        let at = self.values[..self.count].partition_point(|other| *other >= value);
        self.count = self.wanted.min(self.count + 1);
        self.values.copy_within(at..self.count - 1, at + 1);
        self.values[at] = value;
    }

    fn end(&self) -> u64 {
        self.values[..self.count].iter().for_each(|value| emit(&value.to_le_bytes()));
        self.count as u64
    }
}

fn run() -> u64 {
    let mut best = Best::new();
    elements(0, |value| best.add(value));
    best.end()
}

fn fold() -> u64 {
    let mut best = Best::new();
    for stream in 0..2 {
        let mut room = [0; MOST * 4];
        let part = part(stream, &mut room);
        part.output.as_chunks::<4>().0.iter().for_each(|four| best.add(f32::from_le_bytes(*four)));
    }
    best.end()
}
