//! AVX2: 32 bytes per vector, four vectors per turn.
#![allow(unsafe_code)]

use super::vectors::vectors;

vectors!(
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
