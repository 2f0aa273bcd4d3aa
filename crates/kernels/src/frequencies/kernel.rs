//! Frequencies as a [`Kernel`].

use super::program::{self, ITEM_BYTES_MAX, ITEMS_MAX};
use super::{Item, NAME, PROGRAM_ID};
use crate::kernel::{Answer, Arguments, Description, Input, Kernel, Plan, Sample, Wanted};
use crate::program::{Failure, Program};
use crate::text_piece::LINE_BYTES_MAX;

/// Memory of an item besides its bytes: its entry, its place in the table, its allocation.
const ITEM_OVERHEAD_BYTES: u64 = 64;

/// Length of a line of the sample, bytes; it divides [`Sample::GRAIN_BYTES`].
const LINE_BYTES: u64 = 16;

/// The kernel.
pub static KERNEL: FrequenciesKernel = FrequenciesKernel;

/// Frequencies: how often each line, word or field occurs.
#[derive(Debug)]
pub struct FrequenciesKernel;

impl Kernel for FrequenciesKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    /// Returns the longest line, an item as long, and the items that are kept until they are
    /// written.
    fn kept_bytes(&self, _: &[u8]) -> u64 {
        2 * LINE_BYTES_MAX as u64 + ITEM_BYTES_MAX as u64 + ITEMS_MAX as u64 * ITEM_OVERHEAD_BYTES
    }

    fn plan(&self, _: &[Input<'_>], _: &Arguments) -> Result<Plan, String> {
        Err("frequencies has commands of its own: `csd top-k`, `csd histogram`".to_owned())
    }

    fn describe(&self, _: &[u8], answer: &Answer, _: u64) -> Description {
        Description::count("items", answer.result)
    }

    /// Returns lines of 16 bytes whose second field is one of 4,096. The first line of a grain has
    /// one field: it is counted by the host when a part begins there.
    fn sample(&self) -> Sample {
        let item = Item::Field { number: 2, separator: b',' };
        let sample = Sample::new(item.encode(), |_, offset: u64, piece: &mut [u8]| {
            for (line, number) in piece.chunks_mut(16).zip(offset / LINE_BYTES..) {
                let page = crate::kernel::mix(number) % 4096;
                let words = match (number * LINE_BYTES).is_multiple_of(Sample::GRAIN_BYTES) {
                    true => "one field alone\n".to_owned(),
                    false => format!("client,page{page:04}\n"),
                };
                line.copy_from_slice(&words.as_bytes()[..line.len()]);
            }
        });
        Sample { adds_up: true, ..sample }
    }
}
