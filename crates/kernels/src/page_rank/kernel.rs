//! Page rank as a [`Kernel`]: an execution computes the sums of some rows; the host iterates.

use super::{Form, NAME, PROGRAM_ID, Parameters, VECTOR_BYTES_MAX, program};
use crate::ElementType;
use crate::kernel::{
    Answer, AnswerForm, Arguments, Description, Input, Kernel, Layout, Plan, Sample, Unit, Wanted,
    mix,
};
use crate::program::{Failure, Program, SplitRule};

/// The kernel.
pub static KERNEL: PageRankKernel = PageRankKernel;

/// Page rank: products of rows with a vector.
#[derive(Debug)]
pub struct PageRankKernel;

/// Number of elements in a row of the sample. At 4 bytes each, a row is a grain.
const SAMPLE_COLUMNS: u64 = 1024;

impl Kernel for PageRankKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters, wanted)
    }

    /// Returns a rule for dense rows, which are equally long. The end of a sparse row is known only
    /// after it has been read.
    fn split(&self, parameters: &[u8], _: Wanted) -> Option<SplitRule> {
        let parameters = Parameters::parse(parameters).ok()?;
        let item_bytes = parameters.columns * 4;
        let rule = SplitRule { streams: 2, item_bytes, written_bytes: 4, ..SplitRule::ANYWHERE };
        (parameters.form == Form::Dense).then_some(rule)
    }

    fn kept_bytes(&self, parameters: &[u8]) -> u64 {
        let bytes = Parameters::parse(parameters).map_or(0, |parsed| parsed.vector_bytes());
        if bytes <= VECTOR_BYTES_MAX { bytes } else { 0 }
    }

    fn plan(&self, inputs: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        let parameters = parameters(&inputs[0])?;
        let name = inputs[0].name;
        if parameters.columns == 0 {
            return Err(format!("{name:?} has no node: there is nothing to rank"));
        }
        let vector_bytes = parameters.vector_bytes();
        if vector_bytes > VECTOR_BYTES_MAX {
            return Err(format!(
                "a vector of {} elements is more than a drive keeps: {vector_bytes} bytes of at \
                 most {VECTOR_BYTES_MAX}",
                parameters.columns
            ));
        }
        let bytes = parameters.element_bytes();
        Ok(Plan {
            unit: Unit::Part { remedy: "put it with larger chunks: a row is never cut" },
            answer: AnswerForm::RowSums { bytes, vector_bytes },
            ..Plan::over_chunks(parameters.encode(), inputs[0].element)
        })
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("nodes", answer.result)
    }

    fn sample(&self) -> Sample {
        let parameters = Parameters { form: Form::Dense, columns: SAMPLE_COLUMNS }.encode();
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (index, bytes) in (offset / 4..).zip(piece.as_chunks_mut::<4>().0) {
                *bytes = fraction(index).to_le_bytes();
            }
        };
        let vector = (0..SAMPLE_COLUMNS).map(|column| fraction(u64::MAX - column));
        Sample {
            stores: true,
            resident: Some(vector.flat_map(f32::to_le_bytes).collect()),
            note: Some("one product of the matrix, dense rows of 1024 f32, with a vector"),
            ..Sample::new(parameters, fill)
        }
    }
}

/// Returns a number from 0 up to 1, exact in an f32.
fn fraction(position: u64) -> f32 {
    f32::from(u16::try_from(mix(position) >> 48).expect("16 bits")) / 65_536.0
}

fn parameters(input: &Input<'_>) -> Result<Parameters, String> {
    let name = input.name;
    match (input.layout, input.shape) {
        (Layout::Graph { nodes }, _) => Ok(Parameters { form: Form::Sparse, columns: nodes }),
        (Layout::Rows, _) if input.element != ElementType::F32 => {
            Err(format!("{name:?} is of type {}: dense rows are f32", input.element))
        }
        (Layout::Rows, &[rows, columns]) if rows == columns => {
            Ok(Parameters { form: Form::Dense, columns })
        }
        (Layout::Rows, shape) => {
            let shape = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
            Err(format!("{name:?} is {shape}: page rank needs a square"))
        }
        (Layout::Chunks | Layout::Ranges, _) => Err(format!(
            "the rows of {name:?} may be split across drives: put a matrix with --layout rows, or \
             a list of edges with --graph"
        )),
    }
}
