//! Compares every compiled version of the erasure code that this machine runs with the scalar
//! reference, at all lengths and alignments, and recovers stripes from every choice of pieces.

use csd_kernels::erasure::{Code, DATA_MAX, PARITY_MAX, Version, scalar};
use proptest::prelude::*;

fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

fn slices(pieces: &[Vec<u8>]) -> Vec<&[u8]> {
    pieces.iter().map(|piece| &**piece).collect()
}

/// Returns data pieces of these lengths and their parity, by the reference.
fn stripe(code: &Code, lengths: &[usize], seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let data: Vec<Vec<u8>> =
        lengths.iter().zip(seed..).map(|(length, seed)| bytes(seed * 77, *length)).collect();
    let parity = (0..code.parity()).map(|row| scalar::parity(code, row, &slices(&data)));
    let parity = parity.collect();
    (data, parity)
}

/// Calls `work` with rooms of these lengths at odd addresses, and checks what it wrote.
fn check_rooms(
    expected: &[Vec<u8>],
    shift: usize,
    fill: u8,
    what: &str,
    work: impl FnOnce(&mut [&mut [u8]]),
) {
    let mut memory: Vec<Vec<u8>> =
        expected.iter().map(|piece| vec![0xA5; piece.len() + shift + 64]).collect();
    let mut rooms: Vec<&mut [u8]> = memory
        .iter_mut()
        .zip(expected)
        .map(|(memory, piece)| &mut memory[shift..shift + piece.len()])
        .collect();
    rooms.iter_mut().for_each(|room| room.fill(fill));
    work(&mut rooms);
    for (index, (memory, piece)) in memory.iter().zip(expected).enumerate() {
        assert!(memory[shift..][..piece.len()] == piece[..], "{what}: piece {index}");
        assert!(memory[..shift].iter().all(|byte| *byte == 0xA5), "wrote before the piece");
        assert!(memory[shift + piece.len()..].iter().all(|byte| *byte == 0xA5), "wrote behind it");
    }
}

/// Encodes with every version, also as partial sums.
fn check_encode(data: usize, parity: usize, lengths: &[usize], shifts: [usize; 2], seed: u64) {
    let code = Code::new(data, parity).expect("in range");
    let (pieces, expected) = stripe(&code, lengths, seed);
    let shifted: Vec<Vec<u8>> =
        pieces.iter().map(|piece| [&vec![0x5A; shifts[0]], &**piece].concat()).collect();
    let sources: Vec<&[u8]> = shifted.iter().map(|piece| &piece[shifts[0]..]).collect();
    for version in Version::available() {
        let what = format!("{} ({data},{parity}) of {lengths:?}", version.name());
        check_rooms(&expected, shifts[1], 0xEE, &what, |rooms| {
            version.encode(&code, &sources, rooms).expect("all pieces");
        });
        check_rooms(&expected, shifts[1], 0, &what, |rooms| {
            for (column, source) in sources.iter().enumerate().rev() {
                version.accumulate(&code, column, source, rooms).expect("all pieces");
            }
        });
    }
}

/// Decodes all pieces that are not among the sources, with every version.
fn check_decode(code: &Code, all: &[Vec<u8>], sources: &[usize]) {
    let wanted: Vec<usize> =
        (0..code.pieces()).rev().filter(|piece| !sources.contains(piece)).collect();
    let decoder = code.decoder(sources, &wanted).expect("all pieces");
    let given: Vec<&[u8]> = sources.iter().map(|piece| &*all[*piece]).collect();
    let expected: Vec<Vec<u8>> = wanted.iter().map(|piece| all[*piece].clone()).collect();
    for version in Version::available() {
        let what = format!("{} from {sources:?}", version.name());
        check_rooms(&expected, 3, 0xEE, &what, |rooms| {
            version.decode(&decoder, &given, rooms).expect("all pieces");
        });
    }
    check_rooms(&expected, 0, 0, "partial sums", |rooms| {
        for (index, piece) in given.iter().enumerate() {
            decoder.accumulate(index, piece, rooms).expect("all pieces");
        }
    });
}

#[test]
fn every_number_of_parity_pieces_is_the_references() {
    for parity in 1..=PARITY_MAX {
        for data in [1, 2, 5, DATA_MAX] {
            let lengths: Vec<usize> = vec![256 * 3 + 65; data];
            check_encode(data, parity, &lengths, [1, 7], parity as u64);
        }
    }
}

#[test]
fn every_length_around_blocks_and_vectors_is_right() {
    for length in (0..70).chain(250..262).chain(510..516).chain([1023, 1024, 1025]) {
        check_encode(3, 2, &[length; 3], [0, 0], 5);
        check_encode(2, 9, &[length; 2], [5, 2], 6);
    }
}

#[test]
fn short_pieces_count_as_padded_with_zeros() {
    for lengths in [[0, 0, 0], [0, 700, 300], [1, 0, 0], [513, 512, 511], [0, 0, 256]] {
        check_encode(3, 2, &lengths, [0, 1], 9);
        check_encode(3, 11, &lengths, [2, 3], 9);
        let code = Code::new(3, 2).unwrap();
        let (data, parity) = stripe(&code, &lengths, 4);
        let all = [data, parity].concat();
        check_decode(&code, &all, &[3, 4, 0]);
        check_decode(&code, &all, &[1, 3, 2]);
    }
}

#[test]
fn room_beyond_the_longest_piece_is_zeros() {
    let code = Code::new(2, 1).unwrap();
    let expected = [scalar::parity(&code, 0, &[&[1; 300], &[2; 5]]), vec![0; 700]].concat();
    check_rooms(&[expected], 1, 0xEE, "longer room", |rooms| {
        code.encode(&[&[1; 300], &[2; 5]], rooms).unwrap();
    });
}

#[test]
fn small_codes_are_decoded_from_every_choice_of_pieces() {
    for (data, parity) in [(1, 1), (1, 3), (2, 2), (3, 2), (4, 2), (2, 5), (6, 3)] {
        let code = Code::new(data, parity).unwrap();
        let (pieces, parities) = stripe(&code, &vec![259; data], 3);
        let all = [pieces, parities].concat();
        for set in 0..1u32 << code.pieces() {
            let sources: Vec<usize> =
                (0..code.pieces()).filter(|piece| set >> piece & 1 == 1).collect();
            if sources.len() == data {
                check_decode(&code, &all, &sources);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..Default::default() })]

    #[test]
    fn the_largest_code_is_decoded_from_any_pieces_in_any_order(
        order in Just((0..48).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let code = Code::new(32, 16).unwrap();
        let (pieces, parities) = stripe(&code, &[300; 32], 2);
        check_decode(&code, &[pieces, parities].concat(), &order[..32]);
    }

    #[test]
    fn every_version_equals_the_reference(
        (parity, seed) in (1..=PARITY_MAX, 0..1000u64),
        lengths in prop::collection::vec(0..1500usize, 1..=DATA_MAX),
        is_even in any::<bool>(),
        shifts in prop::array::uniform2(0..64usize),
    ) {
        let even = vec![lengths[0]; lengths.len()];
        let lengths = if is_even { even } else { lengths };
        check_encode(lengths.len(), parity, &lengths, shifts, seed);
    }
}
