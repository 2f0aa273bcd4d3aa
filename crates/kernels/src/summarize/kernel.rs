//! Summarize as a [`Kernel`].

use super::{BYTES, NAME, PROGRAM_ID, Parameters, Summary, program};
use crate::ElementType;
use crate::kernel::{
    Answer, AnswerForm, Arguments, Description, Field, Input, Kernel, ObjectName, OutputUse, Plan,
    Sample, Usage, Value, Wanted, fill_i32, mix,
};
use crate::program::{Failure, Program};

/// The kernel.
pub static KERNEL: SummarizeKernel = SummarizeKernel;

/// Summarize: count, sum, least and greatest element.
#[derive(Debug)]
pub struct SummarizeKernel;

static USAGE: Usage = Usage {
    about: "Sum an array's elements exactly, and find the least and the greatest",
    details: "\
The sum of integers is exact; the sum of floating-point numbers is the exact sum, rounded once. \
NaN elements are counted and left out. Elements of an object of bytes are numbers from 0 to 255.",
    examples: "\
csd run summarize prices
csd run summarize prices --on all
csd run summarize prices --on host --cores 2 --json",
    inputs: &[ObjectName { name: "NAME", help: "Name of the object" }],
    options: &[],
    output: OutputUse::Never,
    can_tune: false,
};

impl Kernel for SummarizeKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    fn usage(&self) -> Option<&'static Usage> {
        Some(&USAGE)
    }

    fn plan(&self, inputs: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        let (name, element) = (inputs[0].name, inputs[0].element);
        let parameters = Parameters::new(element)
            .ok_or_else(|| format!("{name:?} holds complex numbers, which have no order"))?;
        let answer = AnswerForm::Bytes(u32::try_from(BYTES).expect("a few hundred"));
        Ok(Plan { answer, ..Plan::over_chunks(parameters.encode(), element) })
    }

    fn combine(&self, whole: &mut Answer, other: Answer) {
        let parsed = |answer: &Answer| Summary::parse(&answer.bytes).unwrap_or_default();
        let mut summary = parsed(whole);
        summary.combine(&parsed(&other));
        *whole = Answer { result: summary.numbers(), bytes: summary.encode() };
    }

    fn describe(&self, parameters: &[u8], answer: &Answer, _: u64) -> Description {
        let element = Parameters::parse(parameters).map(Parameters::element);
        let summary = Summary::parse(&answer.bytes).unwrap_or_default();
        let fields = match element {
            Ok(ElementType::F32 | ElementType::F64) => {
                floats(element == Ok(ElementType::F32), &summary)
            }
            _ => integers(&summary),
        };
        let sum = match &fields[0].1 {
            Value::Text(sum) => sum.clone(),
            Value::Count(_) | Value::None => String::new(),
        };
        Description {
            shown: Some(("sum", sum)),
            fields,
            ..Description::count("numbers", summary.numbers())
        }
    }

    fn sample(&self) -> Sample {
        let parameters = Parameters::new(ElementType::I32).expect("integers have an order");
        let fill = |_, offset, piece: &mut [u8]| {
            fill_i32(offset, piece, |index| i32::try_from(mix(index) >> 33).expect("31 bits"));
        };
        Sample { adds_up: true, ..Sample::new(parameters.encode(), fill) }
    }
}

/// Returns the digits that tell a value from its neighbours in its own type.
fn number(value: f64, is_narrow: bool) -> Value {
    #[allow(clippy::cast_possible_truncation)] // it was widened from an f32
    let text = if is_narrow { format!("{:?}", value as f32) } else { format!("{value:?}") };
    Value::Text(text.strip_suffix(".0").unwrap_or(&text).to_owned())
}

fn floats(is_narrow: bool, summary: &Summary) -> Vec<Field> {
    let range = summary.float_range();
    let bound = |bound: Option<f64>| bound.map_or(Value::None, |bound| number(bound, is_narrow));
    vec![
        ("sum", number(summary.float_sum(), false)),
        ("least", bound(range.map(|(least, _)| least))),
        ("greatest", bound(range.map(|(_, greatest)| greatest))),
        ("nan", Value::Count(summary.nans())),
    ]
}

fn integers(summary: &Summary) -> Vec<Field> {
    let range = summary.integer_range();
    let text = |number: Option<String>| number.map_or(Value::None, Value::Text);
    let bound = |bound: Option<i64>| text(bound.map(|bound| bound.to_string()));
    let sum = text(summary.integer_sum().map(|sum| sum.to_string()));
    vec![
        ("sum", sum),
        ("least", bound(range.map(|(least, _)| least))),
        ("greatest", bound(range.map(|(_, greatest)| greatest))),
        ("nan", Value::Count(0)),
    ]
}
