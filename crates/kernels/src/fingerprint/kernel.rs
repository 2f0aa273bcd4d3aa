//! Fingerprint as a [`Kernel`].

use std::ops::Range;

use super::{NAME, PROGRAM_ID, Parameters, Piece, SUMS, program};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Wanted, mix};
use crate::program::{Failure, Program};

/// The kernel.
pub static KERNEL: FingerprintKernel = FingerprintKernel;

/// Fingerprint: sums over GF(2^8) of the pieces of an erasure code.
#[derive(Debug)]
pub struct FingerprintKernel;

impl Kernel for FingerprintKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    fn join(&self, _: &[u8], parts: &[(Range<u64>, u64)]) -> u64 {
        parts.iter().fold(0, |sums, (_, of_part)| sums ^ of_part)
    }

    fn kept_bytes(&self, parameters: &[u8]) -> u64 {
        let cells = |parameters: Parameters| (SUMS * parameters.cell_bytes()) as u64;
        Parameters::parse(parameters).map_or(0, cells)
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("fingerprint does not run over objects: `csd scrub --deep` uses it".to_owned())
    }

    fn combine(&self, whole: &mut Answer, other: Answer) {
        whole.result ^= other.result;
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("sums", answer.result)
    }

    fn sample(&self) -> Sample {
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (index, word) in (offset / 8..).zip(piece.as_chunks_mut::<8>().0) {
                *word = mix(index).to_le_bytes();
            }
        };
        let piece_bytes = u32::try_from(Sample::GRAIN_BYTES).expect("a page");
        let pieces = vec![Piece { stripe: 0, piece: 0 }];
        let parameters = Parameters { data: 4, parity: 2, piece_bytes, seed: [1, 2], pieces };
        Sample::new(parameters.encode(), fill)
    }
}
