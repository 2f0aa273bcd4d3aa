//! Every kernel over its sample: neither pieces nor parts change work or answer.

#![allow(clippy::unwrap_used)]

use csd_buffer::Buffer;
use csd_kernels::kernel::Kernel;
use csd_kernels::registry::BUILTIN;

/// Runs a kernel over bytes of its sample that arrive in these pieces; returns the result, the
/// work and the output.
fn run(kernel: &dyn Kernel, cuts: &[u64]) -> (u64, u64, Vec<u8>) {
    let sample = kernel.sample();
    let mut execution = kernel.start_sample().unwrap();
    for pair in cuts.windows(2) {
        for stream in 0..sample.streams {
            let mut piece = Buffer::zeroed(usize::try_from(pair[1] - pair[0]).unwrap());
            (sample.fill)(stream, pair[0], &mut piece);
            execution.push(stream, piece);
        }
    }
    let result = execution.finish().unwrap();
    let work = execution.work();
    let mut written = Vec::new();
    execution.into_parts().1.iter().for_each(|chunk| written.extend_from_slice(chunk));
    (result, work, written)
}

#[test]
fn pieces_change_neither_work_nor_answer() {
    const END: u64 = 64 << 10;
    for kernel in BUILTIN {
        let whole = run(kernel, &[0, END]);
        let pieces = run(kernel, &[0, 4096, 28 << 10, 60 << 10, END]);
        assert!(whole == pieces, "{}", kernel.name());
        assert!(whole.1 > 0, "{} counts its work", kernel.name());
        assert_eq!(!whole.2.is_empty(), kernel.sample().stores, "{}", kernel.name());
    }
}

#[test]
fn parts_are_the_whole_wherever_they_begin() {
    const END: u64 = 64 << 10;
    for kernel in BUILTIN {
        let name = kernel.name();
        let whole = run(kernel, &[0, END]);
        let (first, second) = (run(kernel, &[0, END / 2]), run(kernel, &[END / 2, END]));
        assert_eq!(whole.1, first.1 + second.1, "{name}");
        assert!(whole.2 == [first.2, second.2].concat(), "{name}");
        let parts = [(0..END / 2, first.0), (END / 2..END, second.0)];
        assert_eq!(kernel.join(&kernel.sample().parameters, &parts), whole.0, "{name}");
    }
}
