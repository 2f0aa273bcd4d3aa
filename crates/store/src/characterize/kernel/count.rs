//! Count: elements of one array of i32 that equal 7, which one in a hundred does.

use csd_kernels::count::{self, Parameters};
use csd_kernels::{ElementType, Scalar};

use super::{Gathered, Kernel, Running, fill_i32, mix};

pub(super) struct Count;

fn parameters() -> Parameters {
    let value = Scalar::parse(ElementType::I32, "7").expect("7 is an i32");
    Parameters { value }
}

impl Kernel for Count {
    fn name(&self) -> &'static str {
        count::NAME
    }

    fn program(&self) -> u64 {
        count::PROGRAM_ID
    }

    fn parameters(&self) -> Vec<u8> {
        parameters().encode()
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn fill(&self, _: usize, offset: u64, piece: &mut [u8]) {
        fill_i32(offset, piece, |index| i32::try_from(mix(index) % 100).expect("below 100"));
    }

    fn start(&self) -> Box<dyn Running> {
        Box::new(count::Count::new(parameters()))
    }
}

impl Running for count::Count {
    fn feed(&mut self, pieces: &[&[u8]], _: &mut Gathered) {
        self.feed(pieces[0]).expect("pieces hold whole elements");
    }

    fn work(&self) -> u64 {
        self.elements()
    }

    fn result(&self) -> u64 {
        self.result()
    }
}
