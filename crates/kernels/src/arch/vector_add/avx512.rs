//! AVX-512F: 64 bytes per vector, four vectors per turn.
#![allow(unsafe_code)]

use super::vectors::vectors;

vectors!(
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
