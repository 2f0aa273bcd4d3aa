//! [`Sample`]: the data on which a kernel is measured.
//!
//! Invariant: a working set may be split at multiples of [`Sample::GRAIN_BYTES`] of every stream;
//! the parts give the work, and together the answer, of the whole.

/// The data on which a kernel is measured.
pub struct Sample {
    /// Parameters of its program.
    pub parameters: Vec<u8>,
    /// Number of streams that are the working set, all equally long.
    pub streams: usize,
    /// True if the kernel writes a large output, which is stored.
    pub stores: bool,
    /// True if any bytes are a working set; if not, they must be those of `fill`.
    pub takes_any_bytes: bool,
    /// A further stream that every execution reads whole, such as a vector.
    pub resident: Option<Vec<u8>>,
    /// Writes the bytes of a stream from an offset on, a multiple of [`Self::GRAIN_BYTES`].
    pub fill: fn(usize, u64, &mut [u8]),
    /// True if the results of parts add up to that of the whole.
    pub adds_up: bool,
    /// Note on the measurement.
    pub note: Option<&'static str>,
}

impl Sample {
    /// Streams may be split at multiples of this number of bytes.
    pub const GRAIN_BYTES: u64 = 4096;

    /// Makes a sample of one stream, which may hold any bytes; only the result is wanted.
    #[must_use]
    pub fn new(parameters: Vec<u8>, fill: fn(usize, u64, &mut [u8])) -> Self {
        Self {
            parameters,
            streams: 1,
            stores: false,
            takes_any_bytes: true,
            resident: None,
            fill,
            adds_up: false,
            note: None,
        }
    }

    /// Writes bytes of a working set of `bytes` bytes from `at` on: its streams follow each other.
    pub fn fill_set(&self, bytes: u64, at: u64, piece: &mut [u8]) {
        let stream_bytes = bytes / self.streams as u64;
        let stream = usize::try_from(at / stream_bytes).expect("few streams");
        let offset = at % stream_bytes;
        // A piece may end one stream and begin the next.
        let head = usize::try_from(stream_bytes - offset).unwrap_or(usize::MAX).min(piece.len());
        let (head, tail) = piece.split_at_mut(head);
        (self.fill)(stream, offset, head);
        if !tail.is_empty() {
            (self.fill)(stream + 1, 0, tail);
        }
    }
}

/// Returns a number that looks random, from a position (SplitMix64).
#[must_use]
pub fn mix(position: u64) -> u64 {
    let mut z = position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes i32 elements, each from its index in the stream.
pub fn fill_i32(offset: u64, piece: &mut [u8], element: impl Fn(u64) -> i32) {
    for (index, bytes) in (offset / 4..).zip(piece.as_chunks_mut::<4>().0) {
        *bytes = element(index).to_le_bytes();
    }
}
