//! Erasure code: every version gives the reference's parity, and any n pieces give all others.
//!
//! Input: n, k, a byte for each piece that sorts the pieces, then lengths and bytes of data.

#![no_main]

use csd_kernels::erasure::{Code, Version, scalar};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [n, k, rest @ ..] = data else { return };
    let Ok(code) = Code::new(usize::from(*n), usize::from(*k)) else { return };
    let Some((order, mut rest)) = rest.split_at_checked(code.pieces()) else { return };
    let mut pieces: Vec<&[u8]> = Vec::new();
    for _ in 0..code.data() {
        let length = rest.first().map_or(0, |byte| usize::from(*byte) * 3).min(rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    let parity: Vec<Vec<u8>> =
        (0..code.parity()).map(|row| scalar::parity(&code, row, &pieces)).collect();
    let mut numbers: Vec<usize> = (0..code.pieces()).collect();
    numbers.sort_by_key(|piece| order[*piece]);
    let (sources, wanted) = numbers.split_at(code.data());
    let decoder = code.decoder(sources, wanted).expect("each piece once");
    let all: Vec<&[u8]> =
        pieces.iter().copied().chain(parity.iter().map(|piece| &**piece)).collect();
    let given: Vec<&[u8]> = sources.iter().map(|piece| all[*piece]).collect();
    for version in Version::available() {
        let mut encoded: Vec<Vec<u8>> = parity.iter().map(|piece| vec![1; piece.len()]).collect();
        let mut rooms: Vec<&mut [u8]> = encoded.iter_mut().map(|room| &mut room[..]).collect();
        version.encode(&code, &pieces, &mut rooms).expect("room for all");
        assert!(encoded == parity, "{}", version.name());
        let mut decoded: Vec<Vec<u8>> =
            wanted.iter().map(|piece| vec![1; all[*piece].len()]).collect();
        let mut rooms: Vec<&mut [u8]> = decoded.iter_mut().map(|room| &mut room[..]).collect();
        version.decode(&decoder, &given, &mut rooms).expect("room for all");
        let is_right =
            wanted.iter().zip(&decoded).all(|(piece, decoded)| all[*piece] == &**decoded);
        assert!(is_right, "{}", version.name());
    }
});
