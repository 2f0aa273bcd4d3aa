//! Verify: the CRC-32C of every page of 4 KiB.

use csd_kernels::verify::{self, Plan};

use super::{Gathered, Kernel, Running, mix};

pub(super) struct Verify;

fn plan() -> Plan {
    Plan::new(4096, 8, 1, 8).expect("pages, units and unroll are within their bounds")
}

impl Kernel for Verify {
    fn name(&self) -> &'static str {
        verify::NAME
    }

    fn program(&self) -> u64 {
        verify::PROGRAM_ID
    }

    fn parameters(&self) -> Vec<u8> {
        plan().encode()
    }

    fn fill(&self, _: usize, offset: u64, piece: &mut [u8]) {
        for (index, bytes) in (offset / 8..).zip(piece.as_chunks_mut::<8>().0) {
            *bytes = mix(index).to_le_bytes();
        }
    }

    fn start(&self) -> Box<dyn Running> {
        Box::new(Pages { verify: verify::Verify::new(plan()), checksums: Vec::new() })
    }

    fn note(&self) -> Option<&'static str> {
        Some("CRC-32C of 4 KiB pages, 8 of them advancing together")
    }
}

struct Pages {
    verify: verify::Verify,
    checksums: Vec<u32>,
}

impl Running for Pages {
    fn feed(&mut self, pieces: &[&[u8]], _: &mut Gathered) {
        self.checksums.clear();
        self.verify.feed(pieces[0], &mut self.checksums);
    }

    fn work(&self) -> u64 {
        self.verify.bytes()
    }

    fn result(&self) -> u64 {
        u64::from(self.verify.digest())
    }
}
