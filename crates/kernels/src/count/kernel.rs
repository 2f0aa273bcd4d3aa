//! Count as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, program};
use crate::kernel::{
    Answer, Arguments, Choice, Description, Input, Kernel, Kind, ObjectName, OutputUse, Plan,
    Sample, Usage, Wanted, fill_i32, mix,
};
use crate::program::{Failure, Program, SplitRule};
use crate::{ElementType, Scalar};

/// The kernel.
pub static KERNEL: CountKernel = CountKernel;

/// Count: counts the elements of an object that equal a number.
#[derive(Debug)]
pub struct CountKernel;

static USAGE: Usage = Usage {
    about: "Count the elements that equal a number (IEEE 754: -0.0 equals 0.0)",
    details: "",
    examples: "\
csd run count prices --equal 10.5
csd run count samples --equal -1 --on host --cores 2
csd run count samples --equal -1 --on all --json",
    inputs: &[ObjectName { name: "NAME", help: "Name of the object" }],
    options: &[Choice {
        name: "equal",
        value_name: "NUMBER",
        help: "The number to count, in the object's type",
        kind: Kind::Text,
        default: None,
        is_required: true,
        is_tuned: false,
    }],
    output: OutputUse::Never,
    can_tune: false,
};

impl Kernel for CountKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    fn split(&self, parameters: &[u8], _: Wanted) -> Option<SplitRule> {
        let parameters = Parameters::parse(parameters).ok()?;
        Some(SplitRule::elements(parameters.value.element().bytes()))
    }

    fn usage(&self) -> Option<&'static Usage> {
        Some(&USAGE)
    }

    fn plan(&self, inputs: &[Input<'_>], arguments: &Arguments) -> Result<Plan, String> {
        let (input, text) = (&inputs[0], arguments.text("equal").unwrap_or(""));
        let value = Scalar::parse(input.element, text)
            .map_err(|error| format!("--equal {text}: {error} (object {:?})", input.name))?;
        Ok(Plan::over_chunks(Parameters { value }.encode(), input.element))
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("count", answer.result)
    }

    fn sample(&self) -> Sample {
        let value = Scalar::parse(ElementType::I32, "7").expect("7 is an i32");
        let fill = |_, offset, piece: &mut [u8]| {
            fill_i32(offset, piece, |index| i32::try_from(mix(index) % 100).expect("below 100"));
        };
        Sample { adds_up: true, ..Sample::new(Parameters { value }.encode(), fill) }
    }
}
