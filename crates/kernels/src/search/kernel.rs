//! Search as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, Wants, program};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Wanted};
use crate::program::{Failure, Program};
use crate::text_piece::LINE_BYTES_MAX;

/// Length of a line of the sample, bytes; it divides [`Sample::GRAIN_BYTES`].
const LINE_BYTES: u64 = 64;
/// One line of this many has a match, and not the first one of a grain.
const EVERY: u64 = 1 << 10;
/// Pattern of the sample.
const WORD: &[u8] = b"needle";
const WORDS: &[u8; 64] = b"the quick brown fox jumps over the lazy dog and then runs away.\n";

/// The kernel.
pub static KERNEL: SearchKernel = SearchKernel;

/// Search: the lines in which a regular expression matches.
#[derive(Debug)]
pub struct SearchKernel;

impl Kernel for SearchKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    /// Returns the longest line, and as much again for the engines' states.
    fn kept_bytes(&self, _: &[u8]) -> u64 {
        2 * LINE_BYTES_MAX as u64
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("grep has a command of its own: `csd grep`".to_owned())
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("lines", answer.result)
    }

    /// Returns lines of 64 bytes, of which one in 1024 has a match.
    fn sample(&self) -> Sample {
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (line, number) in piece.chunks_mut(64).zip(offset / LINE_BYTES..) {
                line.copy_from_slice(&WORDS[..line.len()]);
                if number % EVERY == EVERY / 2 + 1 {
                    line[..WORD.len()].copy_from_slice(WORD);
                }
            }
        };
        let pattern = String::from_utf8(WORD.to_vec()).expect("ASCII");
        let wants = Wants::Count;
        let parameters = Parameters { pattern, ignore_case: false, invert: false, wants };
        let sample = Sample::new(parameters.encode(), fill);
        Sample { adds_up: true, ..sample }
    }
}
