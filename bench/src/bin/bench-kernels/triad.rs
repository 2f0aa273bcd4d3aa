//! The triad of the STREAM benchmark with non-temporal stores: a floor of vector add. Only x86-64
//! has it.
#![allow(unsafe_code)]

/// Computes `left + 3 * right` in doubles, from the first whole cache line of the sums on.
#[cfg(target_arch = "x86_64")]
pub(crate) fn streamed(left: &[u8], right: &[u8], sum: &mut [u8]) {
    use std::arch::x86_64::*;
    let skipped = sum.as_ptr().align_offset(64).min(sum.len());
    let left = left[skipped..].as_chunks::<16>().0.iter();
    let inputs = left.zip(right[skipped..].as_chunks::<16>().0);
    let sums = sum[skipped..].as_chunks_mut::<16>().0;
    for (sum, (left, right)) in sums.iter_mut().zip(inputs) {
        // SAFETY: each is 16 bytes long, and the sums are aligned so; every x86-64 has SSE2.
        unsafe {
            let left = _mm_loadu_pd(left.as_ptr().cast());
            let right = _mm_mul_pd(_mm_loadu_pd(right.as_ptr().cast()), _mm_set1_pd(3.0));
            _mm_stream_pd(sum.as_mut_ptr().cast(), _mm_add_pd(left, right));
        }
    }
    // SAFETY: a fence touches nothing.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn streamed(_: &[u8], _: &[u8], _: &mut [u8]) {}
