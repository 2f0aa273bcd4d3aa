//! Compares every compiled version of vector add that this machine runs with the scalar reference:
//! all types, all alignments, all tails, cached and streamed results, and special floating-point
//! values.

use csd_kernels::Numeric;
use csd_kernels::vector_add::{self, Parameters, VectorAdd, Version, scalar};
use proptest::prelude::*;

/// Returns bytes of elements that are often extreme: infinities, NaN with payloads, denormals,
/// overflow.
fn elements(element: Numeric, seed: u64, count: usize) -> Vec<u8> {
    let odd: [u64; 8] = match element.bytes() {
        4 => [0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001, 0xFFC0_0123, 1, 0x7F7F_FFFF],
        _ => [
            0,
            1 << 63,
            0x7FF0 << 48,
            0xFFF0 << 48,
            (0x7FF0 << 48) | 1,
            (0xFFF8 << 48) | 7,
            1,
            (0x7FF0 << 48) - 1,
        ],
    };
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(count * element.bytes());
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let pick = (state >> 33) as usize;
        let bits = if pick.is_multiple_of(3) { odd[pick / 3 % 8] } else { state ^ (state >> 31) };
        bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]);
    }
    bytes
}

fn check(element: Numeric, left: &[u8], right: &[u8], shift: usize) {
    let mut expected = vec![0; left.len()];
    scalar::add(element, left, right, &mut expected);
    for version in Version::available() {
        let mut room = vec![0xA5; left.len() + shift + 64];
        version.add(element, left, right, &mut room[shift..shift + left.len()]);
        assert!(room[shift..shift + left.len()] == expected, "{} {element:?}", version.name());
        assert!(room[..shift].iter().all(|byte| *byte == 0xA5), "wrote before the sum");
        assert!(room[shift + left.len()..].iter().all(|byte| *byte == 0xA5), "wrote behind it");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..Default::default() })]
    #[test]
    fn every_version_equals_the_reference(
        (kind, count, seed) in (0..4usize, 0..400usize, any::<u64>()),
        shifts in prop::array::uniform3(0..64usize),
    ) {
        let element = Numeric::ALL[kind];
        let (a, b) = (elements(element, seed, count + 16), elements(element, !seed, count + 16));
        let size = element.bytes();
        // Cut at odd bytes, so that the inputs lie at any alignment.
        let (left, right) = (&a[shifts[0]..], &b[shifts[1]..]);
        let length = count * size;
        check(element, &left[..length], &right[..length], shifts[2]);
    }

    #[test]
    fn pieces_are_those_of_the_whole((seed, cut) in (any::<u64>(), 0..=300usize)) {
        let (a, b) = (elements(Numeric::F32, seed, 300), elements(Numeric::F32, !seed, 300));
        let mut expected = vec![0; a.len()];
        scalar::add(Numeric::F32, &a, &b, &mut expected);
        let (mut add, mut sum) =
            (VectorAdd::new(Parameters { element: Numeric::F32 }), vec![0; a.len()]);
        for piece in [0..cut * 4, cut * 4..a.len()] {
            add.feed(&a[piece.clone()], &b[piece.clone()], &mut sum[piece]).expect("equal pieces");
        }
        prop_assert_eq!(sum, expected);
        prop_assert_eq!(add.elements(), 300);
    }

    #[test]
    fn no_bytes_of_parameters_panic(data in prop::collection::vec(0..8u8, 0..20)) {
        if let Ok(parameters) = Parameters::parse(vector_add::NAME, &data) {
            prop_assert_eq!(parameters.encode(), data);
        }
    }
}

#[test]
fn streamed_results_equal_the_reference_at_every_alignment() {
    for element in Numeric::ALL {
        let count = (4 << 20) / element.bytes() + 77;
        let (left, right) = (elements(element, 1, count), elements(element, 2, count));
        for shift in [0, 1, element.bytes(), 60] {
            check(element, &left, &right, shift);
        }
    }
}
