//! Compares every program with its kernel over the whole, for streams cut into many kinds of
//! pieces.

use csd_buffer::Buffer;
use csd_kernels::kernel::Wanted;
use csd_kernels::page_rank::{self, Form, Graph};
use csd_kernels::program::{Cause, Failure, Inputs, Output, Program, Step};
use csd_kernels::registry;
use csd_kernels::verify::{Plan, Spacing};
use csd_kernels::{Numeric, array_merge, vector_add, verify};

const CHUNKS: Wanted = Wanted::Chunks(4096);

type Started = (u64, Wanted, Vec<u8>);

fn start((program, wanted, parameters): &Started) -> Result<Box<dyn Program>, Failure> {
    registry::by_program_id(*program).expect("a kernel").start(parameters, *wanted)
}

/// Runs a program over streams that arrive in pieces of `piece` bytes, one a round; returns its
/// result and its output.
fn run(started: &Started, streams: &[&[u8]], piece: usize) -> Result<(u64, Vec<u8>), Failure> {
    let mut program = start(started)?;
    part(&mut *program, started.1.output(), streams, piece)
}

fn part(
    program: &mut dyn Program,
    mut output: Output,
    streams: &[&[u8]],
    piece: usize,
) -> Result<(u64, Vec<u8>), Failure> {
    let mut inputs = Inputs::new(streams.len());
    let mut pieces: Vec<_> = streams.iter().map(|stream| stream.chunks(piece)).collect();
    let mut written = Vec::new();
    loop {
        inputs.admit()?;
        let step = program.step(&mut inputs, &mut output)?;
        let last = matches!(step, Step::Done { .. });
        output.take(last).iter().for_each(|chunk| written.extend_from_slice(chunk));
        match step {
            Step::Done { result } => return Ok((result, written)),
            Step::Starved { stream } => {
                assert!(!inputs.is_last(stream), "waits for what has ended");
                match pieces[stream].next() {
                    Some(piece) => inputs.push(stream, Buffer::from_slice(piece).into()),
                    None => inputs.end(stream),
                }
            }
            Step::More | Step::Full => {}
        }
    }
}

fn i32s(values: impl Iterator<Item = i32>) -> Vec<u8> {
    values.flat_map(i32::to_le_bytes).collect()
}

#[test]
fn sums_are_those_of_the_whole() {
    let left = i32s((0..10_000).map(|i| i * 7));
    let right = i32s((0..10_000).map(|i| 5 - i));
    let expected = i32s((0..10_000).map(|i| i * 6 + 5));
    let parameters = vector_add::Parameters { element: Numeric::I32 }.encode();
    let execution = (2, CHUNKS, parameters);
    for piece in [4, 1000, 4096, 100_000] {
        let run = run(&execution, &[&left, &right], piece);
        assert_eq!(run, Ok((10_000, expected.clone())), "{piece}");
    }
    let shorter = run(&execution, &[&left, &right[4..]], 4096).unwrap_err();
    assert_eq!(shorter.to_string(), "stream 1 ended before the other");
    assert_eq!(run(&execution, &[&left, &right], 4098).unwrap_err().cause, Cause::InputType);
    assert_eq!(run(&execution, &[&[], &[]], 4), Ok((0, Vec::new())));
}

#[test]
fn merges_are_those_of_the_whole_and_wait_for_the_right_stream() {
    let left = i32s((0..20_000).map(|i| i / 2));
    let right = i32s((0..300).map(|i| i * 100));
    let expected = array_merge::merge(Numeric::I32, &left, &right).unwrap();
    let parameters = array_merge::Parameters { element: Numeric::I32 }.encode();
    let execution = (3, CHUNKS, parameters);
    let elements = expected.len() as u64 / 4;
    for piece in [4, 1000, 4096, 100_000] {
        for streams in [[&left[..], &right], [&right, &left]] {
            let run = run(&execution, &streams, piece);
            assert_eq!(run, Ok((elements, expected.clone())), "{piece}");
        }
    }
    assert_eq!(run(&execution, &[&[], &right], 400), Ok((300, right.clone())));
    assert_eq!(run(&execution, &[&[], &[]], 400), Ok((0, Vec::new())));
    let unsorted = run(&execution, &[&left, &i32s([3, 1].into_iter())], 400).unwrap_err();
    assert_eq!(unsorted.cause, Cause::InputOrder);
    assert!(unsorted.reason.starts_with("element 1 of the right input"), "{unsorted}");
}

#[test]
fn products_are_those_of_the_whole_once_the_vector_is_there() {
    let edges: Vec<[u32; 2]> = (0..5000).map(|i| [i * 31 % 700, i * i % 700]).collect();
    let graph = Graph::from_edges(700, &edges).unwrap();
    let vector: Vec<f64> = (0..700).map(|i| 1.0 / f64::from(i + 1)).collect();
    let expected = page_rank::scalar::sparse(graph.rows(), &vector).unwrap();
    let expected: Vec<u8> = expected.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let vector: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    let parameters = page_rank::Parameters { form: Form::Sparse, columns: 700 }.encode();
    let execution = (4, CHUNKS, parameters);
    for piece in [8, 1000, 100_000] {
        let run = run(&execution, &[graph.rows(), &vector], piece);
        assert_eq!(run, Ok((700, expected.clone())), "{piece}");
    }
    for (vector, than) in [(&vector[8..], "shorter"), (&[&vector[..], &[0; 8]].concat(), "longer")]
    {
        let wrong = run(&execution, &[graph.rows(), vector], 1000).unwrap_err();
        assert_eq!(wrong.reason, format!("the vector is {than} than 700 elements"));
    }
    let cut = run(&execution, &[&graph.rows()[..8], &vector], 1000);
    assert_eq!(cut.unwrap_err().cause, Cause::InputType);
}

#[test]
fn dense_products_are_those_of_the_whole() {
    let row = |i: u16| (0..100u16).map(move |j| f32::from(i) - f32::from(j) / 3.0);
    let rows: Vec<u8> = (0..50).flat_map(row).flat_map(f32::to_le_bytes).collect();
    let vector: Vec<f32> = (0..100u16).map(|j| 1.0 / f32::from(j + 1)).collect();
    let expected = page_rank::scalar::dense(&rows, &vector);
    let expected: Vec<u8> = expected.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let vector: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    let parameters = page_rank::Parameters { form: Form::Dense, columns: 100 }.encode();
    let execution = (4, CHUNKS, parameters);
    for piece in [4, 1000, 100_000] {
        let run = run(&execution, &[&rows, &vector], piece);
        assert_eq!(run, Ok((50, expected.clone())), "{piece}");
    }
}

#[test]
fn checksums_are_those_of_the_whole_and_the_digest_comes_without_an_output() {
    let data: Vec<u8> = (0..100_001u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
    let plan = Plan::new(4096, 1, 1, 3).unwrap();
    let expected = verify::checksums(plan, &data);
    let bytes: Vec<u8> = expected.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let result = u64::from(crc32c::crc32c(&bytes)) | (expected.len() as u64) << 32;
    let parameters = verify::Parameters { plan, spacing: Spacing::default() }.encode();
    for piece in [1, 1000, 4096, 200_000] {
        let run = |wanted| run(&(5, wanted, parameters.clone()), &[&data], piece);
        assert_eq!(run(CHUNKS), Ok((result, bytes.clone())), "{piece}");
        assert_eq!(run(Wanted::Result), Ok((result, Vec::new())), "{piece}");
    }
}

#[test]
fn executions_that_make_no_sense_are_refused_before_they_read() {
    let element = vector_add::Parameters { element: Numeric::I64 }.encode();
    let sparse = page_rank::Parameters { form: Form::Sparse, columns: 1 }.encode();
    let wide = page_rank::Parameters { form: Form::Sparse, columns: 1 << 32 }.encode();
    let odd = Wanted::Chunks(4097);
    for (program, wanted, parameters, reason) in [
        (2, Wanted::Result, element.clone(), "vector-add needs an output"),
        (3, Wanted::Result, element.clone(), "array-merge needs an output"),
        (4, Wanted::Result, sparse, "page-rank needs an output"),
        (2, odd, element.clone(), "chunks of 4097 bytes cut elements of 8 bytes"),
        (3, odd, element, "chunks of 4097 bytes cut elements of 8 bytes"),
        (4, CHUNKS, wide, "a vector of 34359738368 bytes is more than a drive keeps"),
        (5, CHUNKS, vec![0; 16], "malformed parameters of verify: the page size is 0"),
    ] {
        let failure = start(&(program, wanted, parameters)).err().unwrap();
        assert_eq!((failure.cause, &*failure.reason), (Cause::Parameters, reason));
    }
}

#[test]
fn a_product_keeps_its_vector_for_the_next_part() {
    let rows: Vec<u8> = (0..64u16).map(f32::from).flat_map(f32::to_le_bytes).collect();
    let vector: Vec<u8> = [1f32, 2.0, 0.5, -1.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let parameters = page_rank::Parameters { form: Form::Dense, columns: 4 }.encode();
    let started = (4, CHUNKS, parameters);
    let whole = run(&started, &[&rows, &vector], 100).unwrap().1;
    let mut program = start(&started).unwrap();
    assert!(!program.next_part(), "it has no vector yet");
    let (rows, rest) = rows.split_at(96);
    let first = part(&mut *program, CHUNKS.output(), &[rows, &vector], 100).unwrap();
    assert!(program.next_part());
    let second = part(&mut *program, CHUNKS.output(), &[rest], 100).unwrap();
    assert_eq!((first.0, second.0), (6, 10));
    assert_eq!([first.1, second.1].concat(), whole);
}
