//! The kernels that can be characterized, one small description each.
//!
//! A description says what the working set of a kernel is, and how the host computes over it with
//! the code that `csd run --on host` uses. Never: I/O or time. Invariant: a working set is cut at
//! multiples of [`GRAIN_BYTES`] of every stream, and the parts by themselves give the work, and
//! together the answer, of the whole.

mod array_merge;
mod count;
mod page_rank;
mod vector_add;
mod verify;

use super::Gathered;

/// Streams are cut into parts at multiples of this.
pub const GRAIN_BYTES: u64 = 4096;

/// A kernel that can be characterized.
pub trait Kernel: Send + Sync {
    /// Name, as in profiles.
    fn name(&self) -> &'static str;
    /// Program identifier of the built-in program.
    fn program(&self) -> u64;
    /// The program's parameters.
    fn parameters(&self) -> Vec<u8>;
    /// Streams that it reads, all equally long; together they are the working set.
    fn streams(&self) -> usize {
        1
    }
    /// Whether it gives a large result, to be stored.
    fn stores(&self) -> bool {
        false
    }
    /// Whether any bytes are a working set; if not, they must be those of [`Self::fill`].
    fn takes_any_bytes(&self) -> bool {
        true
    }
    /// What more a drive must hold in memory: such as a vector, little-endian.
    fn resident(&self) -> Option<Vec<u8>> {
        None
    }
    /// Writes the bytes of `stream` from `offset` on, both multiples of [`GRAIN_BYTES`].
    fn fill(&self, stream: usize, offset: u64, piece: &mut [u8]);
    /// A computation on the host that has seen nothing.
    fn start(&self) -> Box<dyn Running>;
    /// Whether the short results of parts add up to that of the whole.
    fn adds_up(&self) -> bool {
        false
    }
    /// What a point's note says of it.
    fn note(&self) -> Option<&'static str> {
        None
    }
}

/// A computation on the host under way.
pub trait Running {
    /// Takes the next piece of every stream, equally long; appends to `output` what comes out.
    fn feed(&mut self, pieces: &[&[u8]], output: &mut Gathered);
    /// Units of work done so far.
    fn work(&self) -> u64;
    /// The short result so far, if the kernel has one.
    fn result(&self) -> u64 {
        0
    }
}

/// All kernels, in the order of their programs.
#[must_use]
pub fn all() -> Vec<Box<dyn Kernel>> {
    vec![
        Box::new(count::Count),
        Box::new(vector_add::VectorAdd),
        Box::new(array_merge::ArrayMerge),
        Box::new(page_rank::PageRank),
        Box::new(verify::Verify),
    ]
}

/// The kernel of this name.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Kernel>> {
    all().into_iter().find(|kernel| kernel.name() == name)
}

/// Writes bytes of a working set of `bytes` bytes from `at` on: its streams lie one after another.
pub fn fill_set(kernel: &dyn Kernel, bytes: u64, at: u64, piece: &mut [u8]) {
    let stream_bytes = bytes / kernel.streams() as u64;
    let stream = usize::try_from(at / stream_bytes).expect("few streams");
    let offset = at % stream_bytes;
    // A piece may end one stream and begin the next.
    let head = usize::try_from(stream_bytes - offset).unwrap_or(usize::MAX).min(piece.len());
    let (head, tail) = piece.split_at_mut(head);
    kernel.fill(stream, offset, head);
    if !tail.is_empty() {
        kernel.fill(stream + 1, 0, tail);
    }
}

/// A number that looks random, from a position (SplitMix64).
fn mix(position: u64) -> u64 {
    let mut z = position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes i32 elements, each from its index in the stream.
fn fill_i32(offset: u64, piece: &mut [u8], element: impl Fn(u64) -> i32) {
    for (index, bytes) in (offset / 4..).zip(piece.as_chunks_mut::<4>().0) {
        *bytes = element(index).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernel: &dyn Kernel, cuts: &[u64]) -> (u64, u64, Vec<u8>) {
        let (mut running, mut output) = (kernel.start(), Gathered::default());
        for pair in cuts.windows(2) {
            let streams = (0..kernel.streams()).map(|stream| {
                let mut piece = vec![0; usize::try_from(pair[1] - pair[0]).unwrap()];
                kernel.fill(stream, pair[0], &mut piece);
                piece
            });
            let streams: Vec<_> = streams.collect();
            let pieces: Vec<_> = streams.iter().map(Vec::as_slice).collect();
            running.feed(&pieces, &mut output);
        }
        let mut bytes = vec![0; usize::try_from(output.bytes()).unwrap()];
        output.copy(0, &mut bytes);
        (running.work(), running.result(), bytes)
    }

    #[test]
    fn cuts_change_neither_work_nor_answer() {
        const END: u64 = 64 << 10;
        for kernel in all() {
            let whole = run(&*kernel, &[0, END]);
            let cut = run(&*kernel, &[0, 4096, 28 << 10, 60 << 10, END]);
            assert!(whole == cut, "{}", kernel.name());
            assert!(whole.0 > 0, "{} counts its work", kernel.name());
            assert_eq!(!whole.2.is_empty(), kernel.stores(), "{}", kernel.name());
        }
    }

    #[test]
    fn parts_are_the_whole_wherever_a_core_begins() {
        const END: u64 = 64 << 10;
        for kernel in all() {
            let whole = run(&*kernel, &[0, END]);
            let (first, second) = (run(&*kernel, &[0, END / 2]), run(&*kernel, &[END / 2, END]));
            assert_eq!(whole.0, first.0 + second.0, "{}", kernel.name());
            assert!(whole.2 == [first.2, second.2].concat(), "{}", kernel.name());
        }
    }

    #[test]
    fn kernels_have_names_of_profiles_and_identifiers_of_their_own() {
        let kernels = all();
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name()).collect();
        assert_eq!(names, ["count", "vector-add", "array-merge", "page-rank", "verify"]);
        let programs: Vec<_> = kernels.iter().map(|kernel| kernel.program()).collect();
        assert_eq!(programs, [1, 2, 3, 4, 5]);
        assert!(named("count").is_some() && named("sort").is_none());
    }
}
