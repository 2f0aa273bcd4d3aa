//! Versions of vector add. Long results are stored past the caches, because writing through them
//! would first read what is overwritten.
#![allow(unsafe_code)]

use std::sync::LazyLock;

use crate::numeric::Numeric;
use crate::vector_add::scalar;

/// Results at least this long leave the caches anyway, bytes.
#[cfg(target_arch = "x86_64")]
const STREAM_BYTES: usize = 4 << 20;

/// One compiled version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its name.
    pub(crate) name: &'static str,
    add: fn(Numeric, &[u8], &[u8], &mut [u8]),
}

impl Version {
    /// Adds equally long arrays of whole elements.
    pub(crate) fn add(&self, element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
        (self.add)(element, left, right, sum);
    }
}

/// Adds by the best version.
pub(crate) fn add(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
    static BEST: LazyLock<Version> =
        LazyLock::new(|| versions().next().expect("the portable version is always there"));
    BEST.add(element, left, right, sum);
}

/// Every version that this machine can run, the best first.
pub(crate) fn versions() -> impl Iterator<Item = Version> {
    #[cfg(target_arch = "x86_64")]
    let vector = [
        std::is_x86_feature_detected!("avx512f")
            .then_some(Version { name: "avx512", add: avx512::add }),
        std::is_x86_feature_detected!("avx2").then_some(Version { name: "avx2", add: avx2::add }),
    ];
    #[cfg(target_arch = "aarch64")]
    let vector = [std::arch::is_aarch64_feature_detected!("neon")
        .then_some(Version { name: "neon", add: neon::add })];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version>; 0] = [];
    vector.into_iter().flatten().chain([Version { name: "portable", add: scalar::add }])
}

/// Bytes to add one by one before the result is aligned for streaming; `None` when the result is
/// short, or lies so that no whole element ends there.
#[cfg(target_arch = "x86_64")]
fn head(sum: &[u8], vector_bytes: usize, element: Numeric) -> Option<usize> {
    let head = sum.as_ptr().align_offset(vector_bytes);
    (sum.len() >= STREAM_BYTES && head.is_multiple_of(element.bytes())).then_some(head)
}

/// One version's module: they differ in their vectors' width and in their instructions' names.
#[cfg(target_arch = "x86_64")]
macro_rules! version {
    (
        $module:ident, $feature:literal, $bytes:literal, $vector:ident,
        $load:ident, $store:ident, $stream:ident,
        $add_epi32:ident, $add_epi64:ident, $add_ps:expr, $add_pd:expr
    ) => {
        mod $module {
            use std::arch::x86_64::*;

            use super::{Numeric, head, scalar};

            /// Bytes of one turn: four vectors.
            const TURN: usize = 4 * $bytes;

            pub(super) fn add(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
                // SAFETY: this version is only offered where the feature was detected.
                unsafe { dispatch(element, left, right, sum) }
            }

            #[target_feature(enable = $feature)]
            fn dispatch(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
                let streams = head(sum, $bytes, element);
                let head = streams.unwrap_or(0).min(sum.len());
                scalar::add(element, &left[..head], &right[..head], &mut sum[..head]);
                let (left, right, sum) = (&left[head..], &right[head..], &mut sum[head..]);
                let stream = streams.is_some();
                match element {
                    Numeric::I32 => turns(left, right, sum, stream, |a, b| $add_epi32(a, b)),
                    Numeric::I64 => turns(left, right, sum, stream, |a, b| $add_epi64(a, b)),
                    Numeric::F32 => turns(left, right, sum, stream, $add_ps),
                    Numeric::F64 => turns(left, right, sum, stream, $add_pd),
                }
                let tail = sum.len() - sum.len() % TURN;
                scalar::add(element, &left[tail..], &right[tail..], &mut sum[tail..]);
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn turns(
                left: &[u8],
                right: &[u8],
                sum: &mut [u8],
                stream: bool,
                add: impl Fn($vector, $vector) -> $vector,
            ) {
                let pairs = left.as_chunks::<TURN>().0.iter().zip(right.as_chunks::<TURN>().0);
                for (sum, (left, right)) in sum.as_chunks_mut::<TURN>().0.iter_mut().zip(pairs) {
                    for at in (0..TURN).step_by($bytes) {
                        // SAFETY: every vector lies in its turn; loads need no alignment.
                        let vector = unsafe {
                            add(
                                $load(left.as_ptr().add(at).cast()),
                                $load(right.as_ptr().add(at).cast()),
                            )
                        };
                        let to = sum.as_mut_ptr().wrapping_add(at).cast();
                        if stream {
                            // SAFETY: in its turn, and aligned: the head before it was cut so.
                            unsafe { $stream(to, vector) }
                        } else {
                            // SAFETY: in its turn; this store needs no alignment.
                            unsafe { $store(to, vector) }
                        }
                    }
                }
                if stream {
                    // Streamed stores are seen by other cores only after a fence.
                    _mm_sfence();
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
version!(
    avx512,
    "avx512f",
    64,
    __m512i,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_stream_si512,
    _mm512_add_epi32,
    _mm512_add_epi64,
    |a, b| {
        let sum = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
        _mm512_mask_mov_epi32(_mm512_castps_si512(sum), nan, _mm512_set1_epi32(0x7FC0_0000))
    },
    |a, b| {
        let sum = _mm512_add_pd(_mm512_castsi512_pd(a), _mm512_castsi512_pd(b));
        let nan = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(sum, sum);
        _mm512_mask_mov_epi64(_mm512_castpd_si512(sum), nan, _mm512_set1_epi64(0x7FF8 << 48))
    }
);

#[cfg(target_arch = "x86_64")]
version!(
    avx2,
    "avx2",
    32,
    __m256i,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_stream_si256,
    _mm256_add_epi32,
    _mm256_add_epi64,
    |a, b| {
        let sum = _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
        let quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC0_0000));
        _mm256_castps_si256(_mm256_blendv_ps(sum, quiet, nan))
    },
    |a, b| {
        let sum = _mm256_add_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
        let nan = _mm256_cmp_pd::<_CMP_UNORD_Q>(sum, sum);
        let quiet = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FF8 << 48));
        _mm256_castpd_si256(_mm256_blendv_pd(sum, quiet, nan))
    }
);

#[cfg(target_arch = "aarch64")]
#[path = "add_neon.rs"]
mod neon;
