//! Walk over rows that all versions of the sparse product share, one block of words at a time.
//!
//! The values of a block's sources are gathered before its rows are summed, in a loop without
//! branches. So many loads are in flight at once, even when the vector is in no near cache, and the
//! check that sources are in the vector costs next to nothing. Degrees are gathered like all other
//! words. A row that does not fit in a block is summed alone, and so is each row of a block with a
//! word that is not below the vector's length.
#![allow(unsafe_code)]

use crate::page_rank::{LANES_SPARSE, fold_sparse};

/// Words gathered together: their values stay in the nearest cache until they are used.
const BLOCK_WORDS: usize = 512;
/// Number of values after a row's own that a version may read: it reads a first vector of every
/// row, even of one without sources, before it checks the row's length.
const BEHIND: usize = LANES_SPARSE;

/// Values of a block's words, followed by values without meaning.
pub(super) type Values = [f64; BLOCK_WORDS + BEHIND];
/// Sums of a block's rows.
pub(super) type Sums = [f64; BLOCK_WORDS];

/// Progress of a version.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    /// Number of words in whole rows.
    pub(crate) words: usize,
    /// Number of edges in them.
    pub(crate) edges: u64,
    /// True if the next row names a source that the vector does not have.
    pub(crate) wrong: bool,
}

/// Runs the version for every processor.
pub(super) fn portable(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    walk(words, vector, sums, gather, |words, values, sums| {
        block(words, values, sums, |values, degree| {
            let mut lanes = [0.0; LANES_SPARSE];
            for turn in values[..degree].chunks(LANES_SPARSE) {
                lanes.iter_mut().zip(turn).for_each(|(lane, value)| *lane += value);
            }
            fold_sparse(lanes)
        })
    })
}

/// Walks over whole rows by a version's [`gather`] and [`block`]. The two loops are compiled apart,
/// because one loop would need too many registers.
pub(super) fn walk(
    words: &[[u8; 4]],
    vector: &[f64],
    sums: &mut Vec<f64>,
    gather: impl Fn(&[[u8; 4]], &[f64], &mut Values) -> bool,
    block: impl Fn(&[[u8; 4]], &Values, &mut Sums) -> (usize, usize),
) -> Walk {
    let mut walk = Walk::default();
    let (mut values, mut of_block) = ([0.0; BLOCK_WORDS + BEHIND], [0.0; BLOCK_WORDS]);
    while walk.words < words.len() {
        let rest = &words[walk.words..];
        let near = &rest[..rest.len().min(BLOCK_WORDS)];
        let (taken, rows) = if gather(near, vector, &mut values) {
            block(near, &values, &mut of_block)
        } else {
            (0, 0)
        };
        sums.extend_from_slice(&of_block[..rows]);
        walk.edges += (taken - rows) as u64;
        walk.words += taken;
        if taken == 0 && !one_by_one(rest, vector, sums, &mut walk) {
            break;
        }
    }
    walk
}

/// Gathers the values of words, if all are below the vector's length; returns true if they are.
#[inline(always)]
pub(super) fn gather(words: &[[u8; 4]], vector: &[f64], values: &mut Values) -> bool {
    // Without an early end, so that compilers make vectors of it.
    let highest = words.iter().fold(0, |most, word| u32::from_le_bytes(*word).max(most));
    if highest as usize >= vector.len() {
        return false;
    }
    for (value, word) in values.iter_mut().zip(words) {
        // SAFETY: all these words were found to be below the vector's length.
        *value = unsafe { *vector.get_unchecked(u32::from_le_bytes(*word) as usize) };
    }
    true
}

/// Sums the rows that end in a block's words; returns the number of words and rows. `row` sums the
/// first values of its slice, as many as its second argument says; the slice has at least one
/// vector of further values.
#[inline(always)]
pub(super) fn block(
    words: &[[u8; 4]],
    values: &Values,
    sums: &mut Sums,
    row: impl Fn(&[f64], usize) -> f64,
) -> (usize, usize) {
    let (mut at, mut rows) = (0, 0);
    while at < words.len() {
        let degree = u32::from_le_bytes(words[at]) as usize;
        if degree >= words.len() - at {
            break;
        }
        sums[rows] = row(&values[at + 1..][..degree + BEHIND], degree);
        rows += 1;
        at += degree + 1;
    }
    (at, rows)
}

/// Sums rows that together have a block's words or more; returns true if none is cut or wrong.
fn one_by_one(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>, walk: &mut Walk) -> bool {
    let mut at = 0;
    while at < BLOCK_WORDS && at < words.len() {
        let degree = u32::from_le_bytes(words[at]) as usize;
        let rest = &words[at + 1..];
        if rest.len() < degree {
            return false;
        }
        let Some(sum) = checked_row(&rest[..degree], vector) else {
            walk.wrong = true;
            return false;
        };
        sums.push(sum);
        walk.edges += degree as u64;
        walk.words += degree + 1;
        at += degree + 1;
    }
    true
}

fn checked_row(sources: &[[u8; 4]], vector: &[f64]) -> Option<f64> {
    let mut lanes = [0.0; LANES_SPARSE];
    let (turns, tail) = sources.as_chunks::<LANES_SPARSE>();
    for sources in turns.iter().map(<[_; LANES_SPARSE]>::as_slice).chain([tail]) {
        for (lane, source) in lanes.iter_mut().zip(sources) {
            *lane += vector.get(u32::from_le_bytes(*source) as usize)?;
        }
    }
    Some(fold_sparse(lanes))
}
