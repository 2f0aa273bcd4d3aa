//! Array merge as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, program};
use crate::Numeric;
use crate::kernel::{
    Answer, Arguments, Description, Input, Kernel, Layout, ObjectName, OutputUse, Pairing, Plan,
    Sample, Unit, Usage, Wanted, Writes, fill_i32, mix, one_type,
};
use crate::program::{Failure, Program};

/// The kernel.
pub static KERNEL: ArrayMergeKernel = ArrayMergeKernel;

/// Array merge: merges two sorted arrays into one that has every value once.
#[derive(Debug)]
pub struct ArrayMergeKernel;

static USAGE: Usage = Usage {
    about: "Merge two sorted arrays into one, every value once",
    details: "\
Both inputs are split by ranges of values: put the first with --layout range, the second with \
--align. -0.0 equals 0.0 and is written as 0.0; NaN has no place in an order.",
    examples: "\
csd put a.npy --layout range; csd put b.npy --align a.npy
csd run array-merge a.npy b.npy -o merged
csd run array-merge a.npy b.npy -o merged --on host --check",
    inputs: ObjectName::PAIR,
    options: &[],
    output: OutputUse::ALWAYS,
    can_tune: false,
};

impl Kernel for ArrayMergeKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters, wanted)
    }

    fn usage(&self) -> Option<&'static Usage> {
        Some(&USAGE)
    }

    fn plan(&self, inputs: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        let element = one_type(&inputs[0], &inputs[1])?;
        if let Some(input) = inputs.iter().find(|input| input.layout != Layout::Ranges) {
            return Err(format!(
                "{:?} is not cut by ranges of its values: put it with --layout range, or with \
                 --align to the other input",
                input.name
            ));
        }
        let remedy = "align the denser input first (put it with --layout range, then the other \
                      with --align), or use larger chunks; equal elements stay together";
        Ok(Plan {
            unit: Unit::Part { remedy },
            pairing: Pairing::Ranges,
            writes: Writes::Ranges,
            ..Plan::over_chunks(Parameters { element }.encode(), inputs[0].element)
        })
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("merged", answer.result)
    }

    /// Returns two sorted arrays of i32 that share a quarter of their elements. Element k of either
    /// array is in 4k..4k+4, so splitting both at one index splits them by value.
    fn sample(&self) -> Sample {
        let parameters = Parameters { element: Numeric::I32 }.encode();
        let fill = |stream, offset, piece: &mut [u8]| {
            fill_i32(offset, piece, |index| {
                // Values fit 31 bits up to 2^29 elements: 2 GiB of each array.
                let value = index * 4 + mix(index * 2 + stream as u64) % 4;
                i32::try_from(value).unwrap_or(i32::MAX)
            });
        };
        let sample = Sample::new(parameters, fill);
        Sample { streams: 2, stores: true, takes_any_bytes: false, ..sample }
    }
}
