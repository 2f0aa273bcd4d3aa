//! Compares every compiled version of count that this machine runs with the scalar reference: all
//! types, all alignments, all tails, and special floating-point values.

use csd_kernels::count::{self, Count, Parameters, Version, scalar};
use csd_kernels::{ElementType, Scalar};
use proptest::prelude::*;

/// Generates values that are often equal, and the special ones of each type.
fn value(element: ElementType) -> BoxedStrategy<u64> {
    let odd: Vec<u64> = match element {
        ElementType::F32 => [0.0, -0.0, 1.5, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -1e-45]
            .into_iter()
            .map(|value: f32| u64::from(value.to_bits()))
            .chain([0x7FC0_0000, 0xFFC0_0000, 0x7F80_0001])
            .collect(),
        ElementType::F64 => [0.0, -0.0, 1.5, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -5e-324]
            .into_iter()
            .map(|value: f64| value.to_bits())
            .chain([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) | 1])
            .collect(),
        ElementType::I32 => vec![0, 1, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF],
        _ => vec![0, 1, 7, 1 << 32, u64::MAX >> 1, 1 << 63, u64::MAX],
    };
    let all = if element.bytes() == 4 { u64::from(u32::MAX) } else { u64::MAX };
    prop_oneof![9 => proptest::sample::select(odd), 1 => 0..=all].boxed()
}

fn case() -> impl Strategy<Value = (Scalar, Vec<u8>, usize)> {
    let element = proptest::sample::select(vec![
        ElementType::I32,
        ElementType::I64,
        ElementType::F32,
        ElementType::F64,
    ]);
    element.prop_flat_map(|element| {
        let elements = prop::collection::vec(value(element), 0..300);
        (value(element), elements, 0..64usize).prop_map(move |(wanted, elements, shift)| {
            let wanted = Scalar::from_bits(element, wanted).expect("bits of the type");
            // Odd bytes before the data put it at any alignment.
            let mut bytes = vec![0xA5; shift];
            for bits in elements {
                bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]);
            }
            (wanted, bytes, shift)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..Default::default() })]
    #[test]
    fn every_version_equals_the_reference((wanted, bytes, shift) in case()) {
        let data = &bytes[shift..];
        let expected = scalar::count(wanted, data);
        prop_assert_eq!(count::count(wanted, data), expected);
        for version in Version::available() {
            let counted = version.count(wanted, data);
            prop_assert_eq!(counted, expected, "{} {:?}", version.name(), wanted);
        }
    }

    #[test]
    fn no_bytes_of_parameters_panic(data in prop::collection::vec(any::<u8>(), 0..20)) {
        if let Ok(parameters) = Parameters::parse(&data) {
            prop_assert_eq!(parameters.encode(), data);
        }
    }

    #[test]
    fn any_parameters_round_trip((wanted, bytes, shift) in case()) {
        let parameters = Parameters { value: wanted };
        match Parameters::parse(&parameters.encode()) {
            Ok(parsed) => {
                prop_assert_eq!(parsed, parameters);
                let mut count = Count::new(parsed);
                count.feed(&bytes[shift..]).expect("whole elements");
                prop_assert_eq!(count.result(), scalar::count(wanted, &bytes[shift..]));
            }
            Err(_) => prop_assert!(wanted.is_nan()),
        }
    }
}

#[test]
fn long_inputs_where_all_or_none_match() {
    let ones: Vec<u8> = 1i32.to_le_bytes().repeat((3 << 20) + 5);
    for version in Version::available() {
        let name = version.name();
        assert_eq!(version.count(Scalar::I32(1), &ones), (3 << 20) + 5, "{name}");
        assert_eq!(version.count(Scalar::I32(2), &ones), 0, "{name}");
        let wide = i64::from(1) << 32 | 1;
        let whole = ones.len() / 8;
        assert_eq!(version.count(Scalar::I64(wide), &ones), whole as u64, "{name}");
    }
}

#[test]
fn the_portable_version_is_always_there() {
    let names: Vec<_> = Version::available().map(Version::name).collect();
    assert_eq!(names.last(), Some(&"portable"));
}

#[cfg(target_arch = "aarch64")]
#[test]
fn neon_comes_first_on_aarch64() {
    let names: Vec<_> = Version::available().map(Version::name).collect();
    assert_eq!(names, ["neon", "portable"]);
    let verify = csd_kernels::verify::Version::available().map(csd_kernels::verify::Version::name);
    assert_eq!(verify.collect::<Vec<_>>(), ["crc", "portable"]);
}
