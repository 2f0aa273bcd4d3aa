//! Contents of objects: numbers that a seed gives, and files of them.

/// Returns numbers from a seed (SplitMix64).
pub(crate) fn numbers(seed: u64, count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(move |index| {
        let mut z = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// Returns this many bytes of a seed.
pub(crate) fn bytes(seed: u64, count: usize) -> Vec<u8> {
    numbers(seed, count.div_ceil(8)).flat_map(u64::to_le_bytes).take(count).collect()
}

/// Returns little-endian i32 from 0 to 99, and how many of them are 7.
pub(crate) fn small_i32(seed: u64, count: usize) -> (Vec<u8>, u64) {
    let values: Vec<i32> = numbers(seed, count).map(|n| i32::try_from(n % 100).unwrap()).collect();
    let sevens = values.iter().filter(|value| **value == 7).count();
    (values.iter().flat_map(|value| value.to_le_bytes()).collect(), sevens as u64)
}

/// Returns the bytes of little-endian i32.
pub(crate) fn i32s(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// Returns a file as `numpy.save` writes it: 128 bytes of header.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend_from_slice(dict.as_bytes());
    file.resize(127, b' ');
    file.push(b'\n');
    file.extend_from_slice(data);
    file
}
