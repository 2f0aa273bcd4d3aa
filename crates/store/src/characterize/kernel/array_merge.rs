//! Array merge: two sorted arrays of i32, of which a quarter of the elements stand in both.
//!
//! Element k of either array lies in 4k..4k+4, so that cutting both at the same index cuts them by
//! value: parts merge to the parts of the whole, as the `range` layout has it.

use csd_kernels::Numeric;
use csd_kernels::array_merge::{self, Parameters, Piece};

use super::{Gathered, Kernel, Running, fill_i32, mix};

pub(super) struct ArrayMerge;

const PARAMETERS: Parameters = Parameters { element: Numeric::I32 };

impl Kernel for ArrayMerge {
    fn name(&self) -> &'static str {
        array_merge::NAME
    }

    fn program(&self) -> u64 {
        array_merge::PROGRAM_ID
    }

    fn parameters(&self) -> Vec<u8> {
        PARAMETERS.encode()
    }

    fn streams(&self) -> usize {
        2
    }

    fn stores(&self) -> bool {
        true
    }

    fn takes_any_bytes(&self) -> bool {
        false
    }

    fn fill(&self, stream: usize, offset: u64, piece: &mut [u8]) {
        let salt = stream as u64;
        fill_i32(offset, piece, |index| {
            // 2^29 elements, 2 GiB of each array, before values leave 31 bits.
            let value = index * 4 + mix(index * 2 + salt) % 4;
            i32::try_from(value).unwrap_or(i32::MAX)
        });
    }

    fn start(&self) -> Box<dyn Running> {
        Box::new(Merge(0))
    }
}

/// Elements read so far.
struct Merge(u64);

impl Running for Merge {
    fn feed(&mut self, pieces: &[&[u8]], output: &mut Gathered) {
        let mut merge = array_merge::ArrayMerge::new(PARAMETERS);
        let [left, right] = [pieces[0], pieces[1]].map(|bytes| Piece { bytes, last: true });
        let merged = merge.feed(left, right, |run| output.append(run));
        merged.expect("the arrays are sorted");
        self.0 += merge.elements();
    }

    fn work(&self) -> u64 {
        self.0
    }
}
