//! Word count as a [`Kernel`].

use std::ops::Range;

use super::{Counts, NAME, PROGRAM_ID, program};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Value, Wanted};
use crate::program::{Failure, Program};

/// The kernel.
pub static KERNEL: WordCountKernel = WordCountKernel;

/// Word count: the lines and words of a text.
#[derive(Debug)]
pub struct WordCountKernel;

impl Kernel for WordCountKernel {
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
        let parts = parts.iter().filter(|(bytes, _)| !bytes.is_empty());
        let counts = parts.map(|(_, result)| Counts::from_result(*result));
        // Executions are not divided, so their parts have room.
        counts.fold(Counts::default(), Counts::then).to_result().unwrap_or(u64::MAX)
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("wc has a command of its own: `csd wc`".to_owned())
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        let counts = Counts::from_result(answer.result);
        let fields = vec![("words", Value::Count(counts.words))];
        Description { fields, ..Description::count("lines", counts.lines) }
    }

    /// Returns words of 1 to 8 letters, and a newline in each 64 bytes.
    fn sample(&self) -> Sample {
        Sample::new(Vec::new(), |_, offset: u64, piece: &mut [u8]| {
            for (byte, at) in piece.iter_mut().zip(offset..) {
                *byte = match (at % 64, crate::kernel::mix(at) % 5) {
                    (63, _) => b'\n',
                    (_, 0) => b' ',
                    _ => b'a',
                };
            }
        })
    }
}
