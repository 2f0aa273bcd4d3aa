//! Places of values on a medium, found by their bytes.

use std::collections::BTreeMap;

use csd_kvlog::media::Memory;

/// Values and blocks begin at multiples of this.
const STEP: usize = 64;
/// Bytes that are read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Beginnings of values, so that few of the other words are looked up.
struct Begins(Vec<bool>);

impl Begins {
    fn new() -> Self {
        Self(vec![false; 1 << 16])
    }

    /// Returns whether a value may begin with this word.
    fn of(&mut self, word: [u8; 8]) -> &mut bool {
        let mixed = u64::from_le_bytes(word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &mut self.0[usize::try_from(mixed >> 48).unwrap()]
    }
}

/// Returns where each value lies on the medium. A moved one lies at several places.
pub fn places(memory: &Memory, values: &[&[u8]]) -> Vec<Vec<u64>> {
    let mut by_start: BTreeMap<[u8; 8], Vec<usize>> = BTreeMap::new();
    let mut begins = Begins::new();
    for (index, value) in values.iter().enumerate() {
        let word = *value.first_chunk().expect("eight bytes");
        *begins.of(word) = true;
        by_start.entry(word).or_default().push(index);
    }
    let longest = values.iter().map(|value| value.len()).max().unwrap_or(0);
    let (mut window, mut found) = (vec![0; WINDOW_BYTES + longest], vec![Vec::new(); values.len()]);
    for written in memory.written() {
        for from in written.clone().step_by(WINDOW_BYTES) {
            let count = usize::try_from(written.end - from).unwrap().min(WINDOW_BYTES);
            let with_next = usize::try_from(memory.bytes() - from).unwrap().min(count + longest);
            let window = &mut window[..with_next];
            memory.read(from, window);
            for at in (0..count).step_by(STEP) {
                let Some(start) = window[at..].first_chunk() else { break };
                if !*begins.of(*start) {
                    continue;
                }
                for &index in by_start.get(start).into_iter().flatten() {
                    if window[at..].starts_with(values[index]) {
                        found[index].push(from + at as u64);
                    }
                }
            }
        }
    }
    found
}
