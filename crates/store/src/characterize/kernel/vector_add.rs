//! Vector add: the sum of two arrays of i32.

use csd_kernels::Numeric;
use csd_kernels::vector_add::{self, Parameters};

use super::{Gathered, Kernel, Running, fill_i32, mix};

pub(super) struct VectorAdd;

const PARAMETERS: Parameters = Parameters { element: Numeric::I32 };

impl Kernel for VectorAdd {
    fn name(&self) -> &'static str {
        vector_add::NAME
    }

    fn program(&self) -> u64 {
        vector_add::PROGRAM_ID
    }

    fn parameters(&self) -> Vec<u8> {
        PARAMETERS.encode()
    }

    fn streams(&self) -> usize {
        2
    }

    fn stores(&self) -> bool {
        true
    }

    fn fill(&self, stream: usize, offset: u64, piece: &mut [u8]) {
        let salt = stream as u64;
        let small = |index: u64| i32::try_from(mix(index * 2 + salt) >> 33).expect("31 bits");
        fill_i32(offset, piece, small);
    }

    fn start(&self) -> Box<dyn Running> {
        Box::new(vector_add::VectorAdd::new(PARAMETERS))
    }
}

impl Running for vector_add::VectorAdd {
    fn feed(&mut self, pieces: &[&[u8]], output: &mut Gathered) {
        let sum = output.piece(pieces[0].len());
        self.feed(pieces[0], pieces[1], sum).expect("pieces are equally long");
    }

    fn work(&self) -> u64 {
        self.elements()
    }
}
