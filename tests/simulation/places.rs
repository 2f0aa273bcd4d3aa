//! Places of values on a medium, found by their bytes.

use std::collections::BTreeMap;

use csd_drive::media::Memory;

/// Values and blocks begin at multiples of this.
const STEP: usize = 64;
/// Bytes that are read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Returns where each value lies on the medium. A moved one lies at several places.
pub fn places(memory: &Memory, values: &[&[u8]]) -> Vec<Vec<u64>> {
    let mut by_start: BTreeMap<[u8; 8], Vec<usize>> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        by_start.entry(*value.first_chunk().expect("eight bytes")).or_default().push(index);
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
