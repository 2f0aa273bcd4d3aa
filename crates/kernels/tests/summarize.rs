//! Compares summarize with its reference, and with 128-bit and exact arithmetic, for pieces of any
//! length.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use csd_kernels::ElementType;
use csd_kernels::kernel::{Answer, Kernel};
use csd_kernels::summarize::{KERNEL, Parameters, Summarize, Summary, scalar};
use proptest::prelude::*;

fn summary(element: ElementType, bytes: &[u8], piece: usize) -> Summary {
    let mut summarize = Summarize::new(Parameters::new(element).unwrap());
    let piece = piece * element.bytes();
    bytes.chunks(piece).for_each(|piece| summarize.feed(piece).unwrap());
    summarize.summary().clone()
}

fn combined(element: ElementType, bytes: &[u8], cut: usize) -> Answer {
    let (first, second) = bytes.split_at(cut * element.bytes());
    let mut whole = Answer::default();
    for part in [second, first] {
        let summary = summary(element, part, 7);
        let answer = Answer { result: summary.numbers(), bytes: summary.encode() };
        KERNEL.combine(&mut whole, answer);
    }
    whole
}

proptest! {
    #[test]
    fn any_bytes_equal_the_reference_and_combine(
        words in prop::collection::vec(any::<u64>(), 1..200),
        piece in 1..50_usize,
        cut in 0..100_usize,
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for element in [
            ElementType::I32, ElementType::I64, ElementType::F32, ElementType::F64,
            ElementType::Bytes,
        ] {
            let expected = scalar::summarize(Parameters::new(element).unwrap(), &bytes);
            prop_assert_eq!(&summary(element, &bytes, piece), &expected);
            let whole = combined(element, &bytes, cut.min(words.len()));
            prop_assert_eq!(whole.bytes, expected.encode());
            prop_assert_eq!(whole.result, expected.numbers());
        }
    }

    #[test]
    fn integers_sum_as_128_bits_do(values in prop::collection::vec(any::<i64>(), 0..100)) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let summary = summary(ElementType::I64, &bytes, 13);
        let expected: i128 = values.iter().map(|value| i128::from(*value)).sum();
        prop_assert_eq!(summary.integer_sum(), Some(expected));
        let range = values.iter().min().copied().zip(values.iter().max().copied());
        prop_assert_eq!(summary.integer_range(), range);
    }

    #[test]
    fn fixed_point_numbers_sum_as_integers_do(
        values in prop::collection::vec(-(1i64 << 52)..1 << 52, 1..100),
    ) {
        // Multiples of 2^-20: sums in units of it are exact in 128 bits.
        #[allow(clippy::cast_precision_loss)]
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| (*value as f64 / f64::from(1 << 20)).to_le_bytes())
            .collect();
        let total: i128 = values.iter().map(|value| i128::from(*value)).sum();
        #[allow(clippy::cast_precision_loss)] // rounds once, to nearest even
        let expected = total as f64 / f64::from(1 << 20);
        let found = summary(ElementType::F64, &bytes, 9).float_sum();
        prop_assert_eq!(found.to_bits(), (expected + 0.0).to_bits());
    }
}
