//! Range as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, program};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Wanted};
use crate::program::{Failure, Program};

/// Size of an entry of the sample, bytes.
const ENTRY_BYTES: u64 = 16;

/// The kernel.
pub static KERNEL: RangeKernel = RangeKernel;

/// Range: the keys of a key-value namespace between two bounds.
#[derive(Debug)]
pub struct RangeKernel;

impl Kernel for RangeKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("range reads the keys of a namespace, and no objects: `csd kv range`".to_owned())
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("keys", answer.result)
    }

    /// Returns keys of 14 bytes, which end with their number.
    fn sample(&self) -> Sample {
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (entry, number) in piece.chunks_mut(16).zip(offset / ENTRY_BYTES..) {
                entry[..8].copy_from_slice(&[14, 0, 0, 0, 0, 0, 0, 0]);
                entry[8..].copy_from_slice(&number.to_be_bytes());
            }
        };
        let sample = Sample::new(Parameters::default().encode(), fill);
        Sample { takes_any_bytes: false, adds_up: true, ..sample }
    }
}
