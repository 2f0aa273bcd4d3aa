//! Executions to compare: every program of a drive, over every kind of source, to every kind of
//! output.

use csd_initiator::{Block, Controller, Kv, Memory};
use csd_nvme::vendor::execute::{Digests, Execution, Output, Source, SourceData, chunk_key};
use csd_reactor::Buffer;

use csd_nvme::vendor::NSID_KV as KV_NSID;
pub use csd_nvme::vendor::NSID_MEMORY as MEMORY_NSID;
/// Bytes of each input.
const BYTES: u32 = 600 << 10;
/// Length of values: the last one has 20 KiB.
const VALUE_BYTES: usize = 116 << 10;
/// Columns of the dense matrix.
const COLUMNS: u32 = 1000;
/// Addresses in memory.
const VECTOR_AT: u64 = 8 << 20;
const OUTPUT_AT: u64 = 16 << 20;
const GRAPH_AT: u64 = 24 << 20;

pub struct Case {
    pub name: &'static str,
    pub index: u16,
    pub execution: Execution,
    /// Most cores that can work on it.
    pub most: u16,
}

pub fn count_parameters(value: i64) -> Vec<u8> {
    // Element type i32, equal to, six zeros, the value.
    [&[1, 0, 0, 0, 0, 0, 0, 0], &value.to_le_bytes()[..]].concat()
}

/// Returns sorted input, so that it can be merged, with values of every residue.
fn input() -> Vec<u8> {
    (0..BYTES / 4).flat_map(|i| (i / 3).to_le_bytes()).collect()
}

fn prefix(tag: u8) -> [u8; 12] {
    [tag; 12]
}

/// Writes the input of the cases.
pub async fn prepare(controller: &Controller) {
    let block = Block::open(controller, 1).unwrap();
    let kv = Kv::open(controller, KV_NSID).unwrap();
    let memory = Memory::open(controller, MEMORY_NSID).unwrap();
    let input = input();
    block.write(4096, vec![Buffer::from_slice(&input)], false).await.unwrap();
    memory.write(0, vec![Buffer::from_slice(&input)]).await.unwrap();
    let mut vector: Vec<u8> =
        (0..COLUMNS).flat_map(|j| (1.0 / (j + 1) as f32).to_le_bytes()).collect();
    vector.resize(vector.len().next_multiple_of(8), 0);
    memory.write(VECTOR_AT, vec![Buffer::from_slice(&vector)]).await.unwrap();
    // 40,000 rows of one source each, which is the row itself modulo 500.
    let graph: Vec<u8> =
        (0..40_000u32).flat_map(|row| [1, row % 500]).flat_map(u32::to_le_bytes).collect();
    memory.write(GRAPH_AT, vec![Buffer::from_slice(&graph)]).await.unwrap();
    for (number, value) in (0..).zip(input.chunks(VALUE_BYTES)) {
        let value = vec![Buffer::from_slice(value)];
        kv.store(&chunk_key(&prefix(1), number * 2), value, 0).await.unwrap();
    }
    for (number, bytes) in [(0, 100_000), (1, 100_002), (2, 250_000)] {
        let value = vec![Buffer::from_slice(&vec![1; bytes])];
        kv.store(&chunk_key(&prefix(2), number), value, 0).await.unwrap();
    }
}

fn blocks() -> SourceData {
    SourceData::Blocks { nsid: 1, slba: 1, skip: 0, bytes: BYTES }
}

fn memory(start: u64, bytes: u32) -> SourceData {
    SourceData::Memory { nsid: MEMORY_NSID, start, bytes }
}

fn values() -> SourceData {
    let count = BYTES.div_ceil(u32::try_from(VALUE_BYTES).expect("116 KiB"));
    SourceData::KvChunks { nsid: KV_NSID, prefix: prefix(1), first: 0, count, stride: 2 }
}

fn to_memory(bytes: u32) -> Output {
    Output::Memory { nsid: MEMORY_NSID, start: OUTPUT_AT, bytes }
}

fn to_values(chunk_bytes: u32) -> Output {
    Output::KvChunks { nsid: KV_NSID, prefix: prefix(9), first: 3, stride: 2, chunk_bytes }
}

fn case(
    name: &'static str,
    program: u16,
    sources: Vec<Source>,
    parameters: Vec<u8>,
    output: Output,
) -> Case {
    let pid = program.into();
    let execution = Execution {
        program: pid,
        output,
        sources,
        inline: vec![],
        digests: None,
        parameters,
        serial: false,
        cores: 1,
    };
    Case { name, index: program - 1, execution, most: u16::MAX }
}

/// Adds the digests of the input to these streams, a unit of 64 KiB each if it lies on blocks.
fn with_digests(streams: u8, case: Case) -> Case {
    let (input, unit_bytes) = (input(), 64u32 << 10);
    let sums = case.execution.sources.iter().flat_map(|source| match source.data {
        _ if streams >> source.stream & 1 == 0 => input[..0].chunks(1),
        SourceData::KvChunks { .. } => input.chunks(VALUE_BYTES),
        SourceData::Blocks { .. } => input.chunks(unit_bytes as usize),
        _ => input[..0].chunks(1),
    });
    let digests = Some(Digests { unit_bytes, streams, sums: sums.map(crc32c::crc32c).collect() });
    Case { execution: Execution { digests, ..case.execution }, ..case }
}

fn whole(case: Case) -> Case {
    Case { most: 1, ..case }
}

fn verify(spacing: bool) -> Vec<u8> {
    verify_parameters(1000, 3, spacing)
}

/// Returns parameters of verify: pages of this many bytes, one at a time, one unit, `unroll`
/// together (0: as the drive likes); with spacing a gap after every 7.
pub fn verify_parameters(page_bytes: u32, unroll: u8, spacing: bool) -> Vec<u8> {
    let mut parameters =
        [&page_bytes.to_le_bytes()[..], &1u32.to_le_bytes(), &[1, 0, unroll]].concat();
    parameters.resize(16, 0);
    if spacing {
        parameters.extend([&7u32.to_le_bytes()[..], &[0; 4], &99u64.to_le_bytes()].concat());
    }
    parameters
}

/// Returns cases whose sources have digests.
fn digested() -> Vec<Case> {
    let (sums, done) = ([vec![2], vec![0; 15]].concat(), Output::Completion);
    let skipped = SourceData::Blocks { nsid: 1, slba: 1, skip: 12, bytes: BYTES - 12 };
    let mixed = vec![memory(0, 4004).into(), values().into(), skipped.into()];
    let pair = |other: SourceData| vec![blocks().on(0), other.on(1)];
    let to = to_memory(BYTES);
    vec![
        with_digests(1, case("count with digests", 1, mixed, count_parameters(500), done)),
        with_digests(3, case("both with digests", 2, pair(blocks()), sums.clone(), to)),
        with_digests(2, case("digests of one", 2, pair(blocks()), sums.clone(), to)),
        with_digests(1, case("digests and memory", 2, pair(memory(0, BYTES)), sums, to)),
    ]
}

pub fn all() -> Vec<Case> {
    let element = |element: u8| [vec![element], vec![0; 15]].concat();
    let rank = |form: u8, columns: u64| {
        [&[form, 0, 0, 0, 0, 0, 0, 0], &columns.to_le_bytes()[..]].concat()
    };
    let done = Output::Completion;
    let skipped = SourceData::Blocks { nsid: 1, slba: 1, skip: 12, bytes: BYTES - 12 };
    let odd =
        SourceData::KvChunks { nsid: KV_NSID, prefix: prefix(2), first: 0, count: 3, stride: 1 };
    let missing =
        SourceData::KvChunks { nsid: KV_NSID, prefix: prefix(3), first: 0, count: 9, stride: 1 };
    let pair = |one: SourceData, other: SourceData| vec![one.on(0), other.on(1)];
    let rows = |rows: SourceData| vec![rows.on(0), memory(VECTOR_AT, COLUMNS * 4).on(1)];
    let sums = BYTES.div_ceil(COLUMNS * 4) * 4;
    let dense = SourceData::Blocks { nsid: 1, slba: 1, skip: 0, bytes: BYTES / 4000 * 4000 };
    let mut all = digested();
    all.extend([
        case("count of blocks", 1, vec![skipped.into()], count_parameters(500), done),
        case("count of values", 1, vec![values().into()], count_parameters(500), done),
        case(
            "count of all kinds",
            1,
            vec![memory(0, 4004).into(), values().into(), blocks().into()],
            count_parameters(4),
            done,
        ),
        case("sums to memory", 2, pair(blocks(), memory(0, BYTES)), element(2), to_memory(BYTES)),
        case("sums to values", 2, pair(memory(0, BYTES), blocks()), element(4), to_values(4096)),
        whole(case(
            "room for fewer",
            2,
            pair(blocks(), blocks()),
            element(1),
            to_memory(BYTES - 4),
        )),
        whole(case("unequal", 2, pair(blocks(), dense), element(1), to_memory(BYTES))),
        whole(case("merge", 3, pair(blocks(), values()), element(1), to_memory(2 * BYTES))),
        case("dense rows to memory", 4, rows(dense), rank(1, COLUMNS.into()), to_memory(sums)),
        case("dense rows to values", 4, rows(dense), rank(1, COLUMNS.into()), to_values(20)),
        whole(case(
            "sparse rows",
            4,
            vec![memory(GRAPH_AT, 320_000).on(0), memory(VECTOR_AT, 4000).on(1)],
            rank(2, 500),
            to_memory(320_000),
        )),
        case("pages", 5, vec![blocks().into()], verify(false), done),
        case("pages with gaps", 5, vec![blocks().into()], verify(true), done),
        whole(case("few pages", 5, vec![blocks().into()], verify_parameters(1000, 0, true), done)),
        case("pages to memory", 5, vec![skipped.into()], verify(true), to_memory(2460)),
        case("pages to values", 5, vec![blocks().into()], verify(false), to_values(128)),
        // Only one of these values begins where an element does.
        Case { most: 2, ..case("cut elements", 1, vec![odd.into()], count_parameters(1), done) },
        whole(case("missing", 1, vec![missing.into()], count_parameters(1), done)),
    ]);
    all
}
