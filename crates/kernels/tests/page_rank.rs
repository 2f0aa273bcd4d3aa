//! Compares every compiled version of page rank's products that this machine runs bit for bit with
//! the scalar references: all lengths, alignments, cuts into pieces and parts, special numbers,
//! wrong rows.

use csd_kernels::page_rank::{
    Dense, DenseVersion, Error, Form, Graph, Iteration, Options, Parameters, Progress, Sparse,
    SparseVersion, scalar,
};
use proptest::prelude::*;

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn bits32(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Returns numbers whose sums depend on their order; `odd` adds infinities, NaN, -0.0 and
/// denormals.
fn numbers(seed: u64, count: usize, odd: bool) -> Vec<f32> {
    let mut state = seed | 1;
    let strange = [f32::INFINITY, f32::NEG_INFINITY, f32::from_bits(0xFFC0_0123), -0.0, 1e-45];
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(77);
            let pick = (state >> 40) as usize;
            if odd && pick.is_multiple_of(97) {
                return strange[pick / 97 % 5];
            }
            #[allow(clippy::cast_precision_loss)]
            let value = (pick % 20_000) as f32 * 1e-4 - 1.0;
            value * if pick.is_multiple_of(7) { 1e6 } else { 1e-3 }
        })
        .collect()
}

fn bytes(values: &[f32], shift: usize) -> Vec<u8> {
    let mut bytes = vec![0xA5; shift];
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Returns rows with degrees from 0 to more than several turns, at any alignment.
fn rows(seed: u64, count: usize, columns: u32, degree_max: u64, shift: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(55);
        state >> 33
    };
    let mut bytes = vec![0xA5; shift];
    for _ in 0..count {
        let degree = next() % (degree_max + 1);
        bytes.extend(u32::try_from(degree).expect("small").to_le_bytes());
        for _ in 0..degree {
            bytes.extend(
                u32::try_from(next() % u64::from(columns)).expect("a column").to_le_bytes(),
            );
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..Default::default() })]
    #[test]
    fn every_dense_version_equals_the_reference(
        (count, columns, seed) in (0..6usize, 1..400usize, any::<u64>()),
        (shift, cut, odd) in (0..64usize, 1..900usize, any::<bool>()),
    ) {
        let matrix = bytes(&numbers(seed, count * columns, odd), shift);
        let matrix = &matrix[shift..];
        let vector = numbers(!seed, columns, odd);
        let expected = scalar::dense(matrix, &vector);
        for version in DenseVersion::available() {
            let (mut whole, mut sums) = (version.start(&vector), Vec::new());
            whole.feed(matrix, &mut sums).expect("whole elements");
            prop_assert_eq!(bits32(&sums), bits32(&expected), "{}", version.name());
            // Pieces that cut rows anywhere.
            let (mut pieces, mut sums) = (version.start(&vector), Vec::new());
            for piece in matrix.chunks(cut * 4) {
                pieces.feed(piece, &mut sums).expect("whole elements");
            }
            prop_assert_eq!(bits32(&sums), bits32(&expected), "{} in pieces", version.name());
            prop_assert_eq!(pieces.finish(), Ok(()));
            prop_assert_eq!(pieces.rows(), count as u64);
            prop_assert_eq!((pieces.elements(), pieces.bytes()),
                ((count * columns) as u64, matrix.len() as u64));
        }
    }

    #[test]
    fn every_sparse_version_equals_the_reference(
        (count, columns, seed) in (0..200usize, 1..400u32, any::<u64>()),
        (shift, cut, odd) in (0..64usize, 1..900usize, any::<bool>()),
        degree_max in prop_oneof![Just(3u64), Just(20), Just(300)],
    ) {
        let rows = rows(seed, count, columns, degree_max, shift);
        let rows = &rows[shift..];
        let vector: Vec<f64> = numbers(!seed, columns as usize, odd)
            .into_iter().map(|value| f64::from(value) / 3.0).collect();
        let expected = scalar::sparse(rows, &vector).expect("whole rows");
        prop_assert_eq!(expected.len(), count);
        for version in SparseVersion::available() {
            for cut in [rows.len().max(1), cut * 4] {
                let (mut product, mut sums) = (version.start(&vector), Vec::new());
                for piece in rows.chunks(cut) {
                    product.feed(piece, &mut sums).expect("right rows");
                }
                prop_assert_eq!(bits(&sums), bits(&expected), "{} by {}", version.name(), cut);
                prop_assert_eq!(product.finish(), Ok(()));
                prop_assert_eq!(product.rows(), count as u64);
                prop_assert_eq!(product.bytes(), rows.len() as u64);
                prop_assert_eq!(product.edges(), (rows.len() / 4 - count) as u64);
            }
        }
    }

    #[test]
    fn a_source_that_is_not_there_is_refused_by_every_version(
        (at, degree, cut) in (0..40usize, 1..40usize, 1..80usize),
        wrong in prop_oneof![Just(50u32), Just(u32::MAX), Just(1 << 31)],
    ) {
        let mut words = vec![1, 3, u32::try_from(degree).expect("small")];
        words.extend((0..degree).map(|position| if position == at % degree { wrong } else { 1 }));
        let rows: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        prop_assert_eq!(scalar::sparse(&rows, &[1.0; 50]), None);
        for version in SparseVersion::available() {
            let (mut product, mut sums) = (version.start([1.0; 50]), Vec::new());
            let pieces = rows.chunks(cut * 4);
            let results: Vec<_> = pieces.map(|piece| product.feed(piece, &mut sums)).collect();
            let error = Err(Error::Source { row: 1, columns: 50 });
            prop_assert_eq!(results.last(), Some(&error), "{}", version.name());
            prop_assert_eq!(&sums, &[1.0]);
        }
    }

    #[test]
    fn no_bytes_panic(data in prop::collection::vec(0..8u8, 0..200), columns in 0..5usize) {
        if let Ok(parameters) = Parameters::parse(&data) {
            prop_assert_eq!(parameters.encode(), &data[..]);
        }
        let mut product = Sparse::new(vec![1.0; columns]);
        let _ = product.feed(&data, &mut Vec::new());
        let _ = product.finish();
    }

    #[test]
    fn ranks_are_the_same_bits_on_any_number_of_drives(
        (nodes, edges, seed, drives) in (1..60u32, 0..300usize, any::<u64>(), 1..6usize)
    ) {
        let mut state = seed;
        let edges: Vec<[u32; 2]> = (0..edges).map(|_| [0; 2].map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(3);
            u32::try_from((state >> 33) % u64::from(nodes)).unwrap()
        })).collect();
        let graph = Graph::from_edges(nodes, &edges).expect("nodes of the graph");
        let ranks = |parts: usize| {
            let out_degrees = graph.out_degrees().to_vec();
            let mut iteration = Iteration::new(out_degrees, Options::default()).expect("defaults");
            loop {
                let vector = iteration.contributions();
                let mut sums = Vec::new();
                for part in graph.parts(parts) {
                    let mut product = Sparse::new(&vector);
                    product.feed(&graph.rows()[part.bytes], &mut sums).expect("right rows");
                    assert_eq!(product.finish(), Ok(()));
                    assert_eq!(product.rows(), u64::from(part.rows.end - part.rows.start));
                }
                if iteration.advance(&sums) != Progress::Again {
                    return iteration.ranks().to_vec();
                }
            }
        };
        let whole = ranks(1);
        prop_assert_eq!(bits(&ranks(drives)), bits(&whole));
        prop_assert!((whole.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn cut_rows_and_cut_words_are_named() {
    let (mut product, mut sums) = (Sparse::new([1.0]), Vec::new());
    product.feed(&[0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0], &mut sums).unwrap();
    assert_eq!(sums, [0.0]);
    let error = product.finish().unwrap_err();
    assert_eq!(error.to_string(), "row 1 is cut: a row is never split across drives");
    assert!(product.feed(&[0; 3], &mut sums).unwrap_err().to_string().starts_with("3 bytes"));
    let mut product = Dense::new([1f32; 3]);
    product.feed(&[0; 16], &mut Vec::new()).unwrap();
    assert_eq!(product.finish().unwrap_err().row, 1);
    assert!(product.feed(&[0; 2], &mut Vec::new()).is_err());
}

#[test]
fn products_are_not_fused_with_their_addition() {
    // (1 + e)^2 - (1 + 2e) is e^2 when fused, 0 when the product is rounded first.
    let e = f32::EPSILON;
    let mut row = [0f32; 128];
    let mut vector = [1f32; 128];
    (row[0], vector[0]) = (-(1.0 + 2.0 * e), 1.0);
    (row[64], vector[64]) = (1.0 + e, 1.0 + e);
    for version in DenseVersion::available() {
        let mut sums = Vec::new();
        version.start(&vector).feed(&bytes(&row, 0), &mut sums).unwrap();
        assert_eq!(sums, [0.0], "{}", version.name());
    }
    let form = Parameters { form: Form::Dense, columns: 128 };
    assert_eq!(Parameters::parse(&form.encode()), Ok(form));
}
