//! Vector add for x86-64, as a macro. Versions differ in the width of vectors and the names of
//! instructions, and functions must be compiled with the features of the module that uses them.

macro_rules! vectors {
    (
        $feature:literal, $bytes:literal, $vector:ident,
        $load:ident, $store:ident, $stream:ident,
        $add_epi32:ident, $add_epi64:ident, $add_ps:expr, $add_pd:expr
    ) => {
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
                        // SAFETY: in its turn, and aligned, because the bytes before it were added
                        // as the head.
                        unsafe { $stream(to, vector) }
                    } else {
                        // SAFETY: in its turn; this store needs no alignment.
                        unsafe { $store(to, vector) }
                    }
                }
            }
            if stream {
                // Other cores see non-temporal stores only after a fence.
                _mm_sfence();
            }
        }
    };
}
pub(super) use vectors;
