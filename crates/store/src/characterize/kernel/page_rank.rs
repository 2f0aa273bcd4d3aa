//! Page rank: dense rows of 1024 f32, and their products with one vector.

use csd_kernels::page_rank::{self, Dense, Form, Parameters};

use super::{Gathered, Kernel, Running, mix};

pub(super) struct PageRank;

/// Length of a row: with 4 bytes an element, a row is a grain.
const COLUMNS: u64 = 1024;

/// A number from 0 up to 1, exact in an f32.
fn part(position: u64) -> f32 {
    f32::from(u16::try_from(mix(position) >> 48).expect("16 bits")) / 65_536.0
}

fn vector() -> Vec<f32> {
    (0..COLUMNS).map(|column| part(u64::MAX - column)).collect()
}

impl Kernel for PageRank {
    fn name(&self) -> &'static str {
        page_rank::NAME
    }

    fn program(&self) -> u64 {
        page_rank::PROGRAM_ID
    }

    fn parameters(&self) -> Vec<u8> {
        Parameters { form: Form::Dense, columns: COLUMNS }.encode()
    }

    fn stores(&self) -> bool {
        true
    }

    fn resident(&self) -> Option<Vec<u8>> {
        Some(vector().iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    fn fill(&self, _: usize, offset: u64, piece: &mut [u8]) {
        for (index, bytes) in (offset / 4..).zip(piece.as_chunks_mut::<4>().0) {
            *bytes = part(index).to_le_bytes();
        }
    }

    fn start(&self) -> Box<dyn Running> {
        Box::new(Product { dense: Dense::new(vector()), sums: Vec::new() })
    }

    fn note(&self) -> Option<&'static str> {
        Some("one product of the matrix, dense rows of 1024 f32, with a vector")
    }
}

struct Product {
    dense: Dense<Vec<f32>>,
    sums: Vec<f32>,
}

impl Running for Product {
    fn feed(&mut self, pieces: &[&[u8]], output: &mut Gathered) {
        self.sums.clear();
        self.dense.feed(pieces[0], &mut self.sums).expect("pieces hold whole elements");
        self.sums.iter().for_each(|sum| output.append(&sum.to_le_bytes()));
    }

    fn work(&self) -> u64 {
        self.dense.elements()
    }
}
