//! Encode as a [`Kernel`].

use super::{NAME, PROGRAM_ID, Parameters, program};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Wanted, mix};
use crate::program::{Failure, Program, SplitRule};

/// The kernel.
pub static KERNEL: EncodeKernel = EncodeKernel;

/// Encode: the parity of rows of cells.
#[derive(Debug)]
pub struct EncodeKernel;

/// Shape of the sample: a row is [`Sample::GRAIN_BYTES`] long.
const SAMPLE: Parameters = Parameters { data: 4, parity: 2, cell_bytes: 1024 };

impl Kernel for EncodeKernel {
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
        Some(SplitRule {
            item_bytes: parameters.row_bytes() as u64,
            written_bytes: u64::from(parameters.parity) * u64::from(parameters.cell_bytes),
            ..SplitRule::ANYWHERE
        })
    }

    fn kept_bytes(&self, parameters: &[u8]) -> u64 {
        Parameters::parse(parameters).map_or(0, |parameters| parameters.row_bytes() as u64)
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("encode does not run over objects: `csd bench ec` measures it".to_owned())
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("rows", answer.result)
    }

    fn sample(&self) -> Sample {
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (index, word) in (offset / 8..).zip(piece.as_chunks_mut::<8>().0) {
                *word = mix(index).to_le_bytes();
            }
        };
        Sample { stores: true, adds_up: true, ..Sample::new(SAMPLE.encode(), fill) }
    }
}
