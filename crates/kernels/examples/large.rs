//! Kernels beyond 2^32 elements: no counter, index or position wraps.
//!
//! Usage: `cargo run --release -p csd-kernels --example large [ELEMENTS]` (2^32 + 2^20 by default).
//! Inputs are generated piece by piece, with known results. Count also runs over one slice of more
//! than 2^31 elements, which takes no memory because it is never written. Prints one line per
//! kernel; ends with an error if a result is wrong.

use std::error::Error;
use std::time::Instant;

use csd_kernels::array_merge::{self, ArrayMerge, Piece, Side};
use csd_kernels::count::{self, Count};
use csd_kernels::vector_add::{self, VectorAdd};
use csd_kernels::verify::{Plan, Verify};
use csd_kernels::{Numeric, Scalar};

/// Number of elements of a piece.
const PIECE: u64 = 1 << 20;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let elements = std::env::args().nth(1).map_or(Ok((1 << 32) + PIECE), |text| text.parse())?;
    let pieces: u64 = u64::div_ceil(elements, PIECE);
    timed("count, elements", || count_pieces(pieces))?;
    timed("count of one slice, elements", count_slice)?;
    timed("vector-add, elements", || add(pieces))?;
    timed("array-merge, elements", || merge(pieces.div_ceil(2)))?;
    timed("verify, bytes", || verify(pieces))
}

fn timed(name: &str, work: impl FnOnce() -> Result<u64, Box<dyn Error>>) -> Outcome {
    let start = Instant::now();
    let number = work()?;
    println!("{name}: {number}, right, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}").into())
    }
}

/// Returns little-endian numbers, `step` apart, from `first` on.
fn numbers(first: u64, step: u64) -> Vec<u8> {
    (0..PIECE).flat_map(|index| (first + index * step).to_le_bytes()).collect()
}

/// Counts values that a quarter of the elements have.
fn count_pieces(pieces: u64) -> Result<u64, Box<dyn Error>> {
    let piece = [0i32, 1, 2, 3].map(i32::to_le_bytes).concat().repeat(usize::try_from(PIECE / 4)?);
    let mut count = Count::new(count::Parameters { value: Scalar::I32(3) });
    for _ in 0..pieces {
        count.feed(&piece)?;
    }
    expect("elements", count.elements(), pieces * PIECE)?;
    expect("count", count.result(), pieces * PIECE / 4)?;
    Ok(count.elements())
}

fn count_slice() -> Result<u64, Box<dyn Error>> {
    let elements = (1u64 << 31) + 5;
    let zeros = vec![0u8; usize::try_from(elements)? * 4];
    for version in count::Version::available() {
        let found = version.count(Scalar::I32(0), &zeros);
        expect(version.name(), found, elements)?;
    }
    Ok(elements)
}

fn add(pieces: u64) -> Result<u64, Box<dyn Error>> {
    let (left, right) = (numbers(0, 1), numbers(1, 2));
    let mut sum = vec![0; left.len()];
    let mut add = VectorAdd::new(vector_add::Parameters { element: Numeric::I64 });
    for _ in 0..pieces {
        sum.fill(0);
        add.feed(&left, &right, &mut sum)?;
    }
    expect("sum", &sum, &numbers(1, 3))?;
    expect("elements", add.elements(), pieces * PIECE)?;
    Ok(add.elements())
}

/// Merges even numbers with odd ones: the result is all numbers in order. Then appends an element
/// that is too small.
fn merge(pieces: u64) -> Result<u64, Box<dyn Error>> {
    let mut merge = ArrayMerge::new(array_merge::Parameters { element: Numeric::I64 });
    let mut next = 0u64;
    let mut wrong = None;
    let mut check = |merged: &[u8]| {
        for word in merged.as_chunks::<8>().0 {
            if u64::from_le_bytes(*word) != next {
                wrong.get_or_insert(next);
            }
            next += 1;
        }
    };
    for piece in 0..pieces {
        let first = piece * PIECE * 2;
        let (even, odd) = (numbers(first, 2), numbers(first + 1, 2));
        let last = piece + 1 == pieces;
        let (mut a, mut b) = (0, 0);
        while a < even.len() || b < odd.len() {
            let left = Piece { bytes: &even[a..], last: false };
            let right = Piece { bytes: &odd[b..], last };
            let taken = merge.feed(left, right, &mut check)?;
            (a, b) = (a + taken.left, b + taken.right);
        }
    }
    let small = Piece { bytes: &[0; 8], last: true };
    let error = merge.feed(small, Piece { bytes: &[], last: true }, &mut check);
    let side = Side::Left;
    let at = pieces * PIECE;
    expect("error", error, Err(array_merge::Error::NotSorted { side, at }))?;
    expect("first wrong", wrong, None)?;
    expect("elements", merge.elements(), 2 * pieces * PIECE)?;
    // The last even number precedes an odd one, which waits for more of the left input.
    expect("result", next + 1, 2 * pieces * PIECE)?;
    Ok(merge.elements())
}

/// Verifies equal pages of 512 bytes, which have equal checksums.
fn verify(pieces: u64) -> Result<u64, Box<dyn Error>> {
    let page: Vec<u8> = (0..=255).chain(0..=255).collect();
    let piece = page.repeat(1 << 13);
    let mut verify = Verify::new(Plan::new(512, 1, 1, 4)?);
    let mut checksums = Vec::new();
    for _ in 0..pieces {
        let before = checksums.first().copied();
        checksums.clear();
        verify.feed(&piece, &mut checksums);
        let first = before.unwrap_or(checksums[0]);
        expect("checksums", checksums.iter().all(|one| *one == first), true)?;
    }
    expect("pages", verify.pages(), pieces * (1 << 13))?;
    expect("bytes", verify.bytes(), pieces << 22)?;
    Ok(verify.bytes())
}
