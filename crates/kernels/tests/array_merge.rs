//! Compares every compiled version of array merge that this machine runs with the scalar reference:
//! all types, long and short runs of duplicates, any cut into pieces, wrong inputs, and parts.

use std::num::NonZeroUsize;

use csd_kernels::Numeric;
use csd_kernels::array_merge::{
    self, ArrayMerge, Error, Parameters, Piece, Side, Version, merge, range, scalar,
};
use proptest::prelude::*;

/// Returns sorted elements whose values come from a range `spread` wide, near zero or near the
/// ends.
fn sorted(element: Numeric, seed: u64, count: usize, spread: u64, extreme: bool) -> Vec<u8> {
    let spread = if element == Numeric::I32 { spread.min(1 << 31) } else { spread };
    let mut state = seed | 1;
    let mut values: Vec<i64> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let value = ((state >> 20) % spread).cast_signed() - (spread / 2).cast_signed();
            let (low, high) = match element {
                Numeric::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                _ => (i64::MIN, i64::MAX),
            };
            match (extreme, value % 2 == 0) {
                (false, _) => value,
                (true, false) => low + value.abs() % 9,
                (true, true) => high - value.abs() % 9,
            }
        })
        .collect();
    values.sort_unstable();
    let mut bytes = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        match element {
            Numeric::I32 => bytes.extend_from_slice(&(value as i32).to_le_bytes()),
            Numeric::I64 => bytes.extend_from_slice(&value.to_le_bytes()),
            // Zeros of both signs, which are equal.
            Numeric::F32 if value == 0 && index % 2 == 0 => bytes.extend((-0.0f32).to_le_bytes()),
            Numeric::F64 if value == 0 && index % 2 == 0 => bytes.extend((-0.0f64).to_le_bytes()),
            Numeric::F32 => bytes.extend_from_slice(&(value as f32 * 0.5).to_le_bytes()),
            Numeric::F64 => bytes.extend_from_slice(&(value as f64 * 0.5).to_le_bytes()),
        }
    }
    bytes
}

/// Generates two inputs of any lengths and densities.
fn case() -> impl Strategy<Value = (Numeric, Vec<u8>, Vec<u8>)> {
    let spread = prop_oneof![Just(1u64), Just(40), Just(5000), Just(1 << 40)];
    let counts = prop_oneof![0..40usize, 0..600usize, 4000..9000usize];
    ((0..4usize, any::<u64>()), (counts.clone(), counts), (spread.clone(), spread), any::<bool>())
        .prop_map(|((kind, seed), (left, right), (dense, sparse), extreme)| {
            let element = Numeric::ALL[kind];
            let extreme = extreme && seed % 4 == 0;
            (
                element,
                sorted(element, seed, left, dense, extreme),
                sorted(element, seed >> 7, right, sparse, extreme),
            )
        })
}

/// Feeds both inputs in pieces of these many elements, with the rest of a piece before the next.
fn pieces(
    mut merge: ArrayMerge,
    size: usize,
    inputs: [&[u8]; 2],
    steps: [usize; 2],
) -> (Vec<u8>, ArrayMerge) {
    let mut at = [0; 2];
    let mut merged = Vec::new();
    loop {
        let window = |side: usize| {
            let end = (at[side] + steps[side] * size).min(inputs[side].len());
            Piece { bytes: &inputs[side][at[side]..end], last: end == inputs[side].len() }
        };
        let (left, right) = (window(0), window(1));
        let over = left.last && right.last;
        let taken = merge
            .feed(left, right, |bytes| {
                assert!(bytes.len() <= 64 << 10);
                merged.extend_from_slice(bytes);
            })
            .expect("sorted inputs");
        at[0] += taken.left;
        at[1] += taken.right;
        if over {
            assert_eq!(at, [inputs[0].len(), inputs[1].len()], "both are used up");
            return (merged, merge);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]
    #[test]
    fn every_version_equals_the_reference((element, left, right) in case()) {
        let expected = scalar::merge(element, &left, &right).expect("sorted");
        for version in Version::available() {
            let merged = version.merge(element, &left, &right).expect("sorted");
            prop_assert!(merged == expected, "{} {:?}", version.name(), element);
        }
        let back = merge(element, &right, &left).expect("sorted");
        prop_assert!(back == expected, "the order of the inputs does not matter");
    }

    #[test]
    fn any_cut_gives_the_same(
        ((element, left, right), a, b) in (case(), 1..5000usize, 1..5000usize)
    ) {
        let expected = scalar::merge(element, &left, &right).expect("sorted");
        let start = ArrayMerge::new(Parameters { element });
        let (merged, merge) = pieces(start, element.bytes(), [&left, &right], [a, b]);
        prop_assert!(merged == expected, "pieces of {} and {}", a, b);
        let read = (left.len() + right.len()) / element.bytes();
        prop_assert_eq!(merge.elements(), read as u64);
    }

    #[test]
    fn parts_merge_to_the_parts_of_the_whole(
        ((element, left, right), count) in (case(), 1..6usize)
    ) {
        let whole = scalar::merge(element, &left, &right).expect("sorted");
        let samples: Vec<u8> = [&left[..], &right[..]].concat();
        let count = NonZeroUsize::new(count).expect("from 1");
        let splitters = range::splitters(element, &samples, count).expect("no NaN");
        let ranges = [&left, &right]
            .map(|input| range::parts(element, input, &splitters).expect("sorted"));
        let size = element.bytes();
        let mut joined = Vec::new();
        for (a, b) in ranges[0].iter().zip(&ranges[1]) {
            let [a, b] = [(a, &left), (b, &right)]
                .map(|(range, input)| &input[range.start * size..range.end * size]);
            joined.extend(merge(element, a, b).expect("sorted"));
        }
        prop_assert_eq!(ranges[0].len(), count.get());
        prop_assert!(joined == whole);
    }

    #[test]
    fn a_wrong_element_is_named_by_every_version(
        (at, blocks, nan) in (1..300usize, 0..3usize, any::<bool>())
    ) {
        let at = at + blocks * 4096;
        let mut input: Vec<f32> = (0..10_000u16).map(f32::from).collect();
        input[at] = if nan { f32::NAN } else { input[at - 1] - 0.5 };
        let bytes: Vec<u8> = input.iter().flat_map(|value| value.to_le_bytes()).collect();
        let at = at as u64;
        let wrong = |side| match nan {
            true => Error::Nan { side, at },
            false => Error::NotSorted { side, at },
        };
        prop_assert_eq!(scalar::merge(Numeric::F32, &bytes, &[]), Err(wrong(Side::Left)));
        for version in Version::available() {
            let merged = version.merge(Numeric::F32, &bytes, &[]);
            prop_assert_eq!(merged, Err(wrong(Side::Left)), "{}", version.name());
            let merged = version.merge(Numeric::F32, &0f32.to_le_bytes(), &bytes);
            prop_assert_eq!(merged, Err(wrong(Side::Right)), "{}", version.name());
        }
    }

    #[test]
    fn no_bytes_of_parameters_panic(data in prop::collection::vec(0..8u8, 0..20)) {
        if let Ok(parameters) = Parameters::parse(array_merge::NAME, &data) {
            prop_assert_eq!(parameters.encode(), data);
        }
    }
}

#[test]
fn the_fault_of_an_earlier_piece_stays() {
    let mut merge = ArrayMerge::new(Parameters { element: Numeric::I32 });
    let piece = |bytes| Piece { bytes, last: false };
    let two = [2i32, 1].map(i32::to_le_bytes).concat();
    let error = merge.feed(piece(&two), piece(&[]), |_| {}).unwrap_err();
    assert_eq!(error, Error::NotSorted { side: Side::Left, at: 1 });
    assert!(error.to_string().contains("element 1 of the left input is smaller"));
    assert_eq!(merge.feed(piece(&[]), piece(&[]), |_| {}), Err(error));
    let mut merge = ArrayMerge::new(Parameters { element: Numeric::I32 });
    let error = merge.feed(piece(&[0; 4]), piece(&[0; 5]), |_| {}).unwrap_err();
    assert!(error.to_string().starts_with("5 bytes do not hold whole elements"));
}

#[test]
fn infinities_and_denormals_keep_their_order() {
    let left = [f64::NEG_INFINITY, -5e-324, -0.0, 5e-324].map(f64::to_le_bytes).concat();
    let right = [-f64::MAX, 0.0, f64::MAX, f64::INFINITY].map(f64::to_le_bytes).concat();
    let expected = [f64::NEG_INFINITY, -f64::MAX, -5e-324, 0.0, 5e-324, f64::MAX, f64::INFINITY];
    for version in Version::available() {
        let merged = version.merge(Numeric::F64, &left, &right).expect("sorted");
        assert_eq!(merged, expected.map(f64::to_le_bytes).concat(), "{}", version.name());
    }
}

#[test]
fn runs_of_one_input_and_equal_inputs_are_merged_as_any() {
    let runs = |side: i64, length: i64| -> Vec<i64> {
        (0..9000).map(|index| (index / length * 2 + side) * length + index % length).collect()
    };
    let even: Vec<i64> = (0..9000).map(|index| index * 2).collect();
    let mut inserted = even.clone();
    inserted.insert(3000, 5999);
    let ends: Vec<i64> = (0..5000).map(|index| if index < 100 { 0 } else { i64::MAX }).collect();
    let cases = [
        (runs(0, 1000), runs(1, 1000)),
        (runs(0, 130), runs(1, 130)),
        (runs(0, 9000), runs(1, 9000)),
        (even.clone(), even.clone()),
        (even.clone(), inserted),
        (ends.clone(), even),
        (ends.clone(), ends),
    ];
    for (left, right) in cases {
        let [wide, narrow] = [Numeric::I64, Numeric::I32].map(|element| {
            [&left, &right].map(|values| -> Vec<u8> {
                let narrow = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
                let bytes = |value: &i64| match element {
                    Numeric::I32 => narrow(*value).to_le_bytes().to_vec(),
                    _ => value.to_le_bytes().to_vec(),
                };
                values.iter().flat_map(bytes).collect()
            })
        });
        for (element, [left, right]) in [(Numeric::I64, wide), (Numeric::I32, narrow)] {
            let expected = scalar::merge(element, &left, &right).expect("sorted");
            for version in Version::available() {
                let merged = version.merge(element, &left, &right).expect("sorted");
                assert!(merged == expected, "{} {element:?}", version.name());
                let merged = version.merge(element, &right, &left).expect("sorted");
                assert!(merged == expected, "{} {element:?}, turned", version.name());
            }
        }
    }
}
