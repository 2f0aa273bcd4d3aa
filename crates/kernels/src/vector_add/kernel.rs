//! Vector add as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, program};
use crate::Numeric;
use crate::kernel::{
    Answer, Arguments, Description, Input, Kernel, ObjectName, OutputUse, Pairing, Plan, Sample,
    Usage, Wanted, Writes, fill_i32, mix, one_type,
};
use crate::program::{Failure, Program, SplitRule};

/// The kernel.
pub static KERNEL: VectorAddKernel = VectorAddKernel;

/// Vector add: the sum of two arrays, element by element.
#[derive(Debug)]
pub struct VectorAddKernel;

static USAGE: Usage = Usage {
    about: "Add two arrays element by element",
    details: "\
Both inputs lie alike: put the second with --align. Integers wrap; a sum that is NaN is the \
positive quiet NaN.",
    examples: "\
csd put a.npy; csd put b.npy --align a.npy
csd run vector-add a.npy b.npy -o sum
csd run vector-add a.npy b.npy -o sum --on split --cores 2 --check",
    inputs: ObjectName::PAIR,
    options: &[],
    output: OutputUse::ALWAYS,
    can_tune: false,
};

impl Kernel for VectorAddKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters, wanted)
    }

    fn split(&self, parameters: &[u8], _: Wanted) -> Option<SplitRule> {
        let bytes = Parameters::parse(NAME, parameters).ok()?.element.bytes();
        let written_bytes = bytes as u64;
        Some(SplitRule {
            split_streams: 2,
            streams: 2,
            written_bytes,
            ..SplitRule::elements(bytes)
        })
    }

    fn usage(&self) -> Option<&'static Usage> {
        Some(&USAGE)
    }

    fn plan(&self, inputs: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        let (left, right) = (&inputs[0], &inputs[1]);
        let element = one_type(left, right)?;
        if left.elements != right.elements {
            return Err(format!(
                "{:?} has {} elements and {:?} has {}: vector-add needs equally many",
                left.name, left.elements, right.name, right.elements
            ));
        }
        let parameters = Parameters { element }.encode();
        let (pairing, writes) = (Pairing::Elements, Writes::SameShape);
        Ok(Plan { pairing, writes, ..Plan::over_chunks(parameters, left.element) })
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("added", answer.result)
    }

    fn sample(&self) -> Sample {
        let parameters = Parameters { element: Numeric::I32 }.encode();
        let fill = |stream, offset, piece: &mut [u8]| {
            let small = |index| i32::try_from(mix(index * 2 + stream as u64) >> 33);
            fill_i32(offset, piece, |index| small(index).expect("31 bits"));
        };
        Sample { streams: 2, stores: true, ..Sample::new(parameters, fill) }
    }
}
