//! Places where executions are split, inputs and outputs of parts, and the fold of results.

use super::*;

const KIB: u64 = 1 << 10;
const PREFIX: [u8; 12] = [7; 12];

fn rule(streams: usize, item_bytes: u64, written_bytes: u64) -> SplitRule {
    let split_streams = streams;
    SplitRule { split_streams, streams, item_bytes, written_bytes, unit_items: 1 }
}

fn execution(sources: Vec<Source>, output: Output) -> Execution {
    Execution {
        program: 1,
        output,
        sources,
        inline: vec![],
        digests: None,
        parameters: vec![1],
        serial: false,
        cores: 9,
    }
}

fn blocks(slba: u64, skip: u32, bytes: u64) -> SourceData {
    SourceData::Blocks { nsid: 1, slba, skip, bytes: bytes.try_into().unwrap() }
}

fn memory(start: u64, bytes: u64) -> SourceData {
    SourceData::Memory { nsid: 4, start, bytes: bytes.try_into().unwrap() }
}

fn values(first: u32, count: u32) -> SourceData {
    SourceData::KvChunks { nsid: 3, prefix: PREFIX, first, count, stride: 3 }
}

/// Returns the sources of each part, and its byte range in KiB.
fn cuts(
    execution: &Execution,
    rule: &SplitRule,
    lengths: &[&[u64]],
    cores: u64,
) -> Option<Vec<(Vec<Source>, Range<u64>)>> {
    let lengths = lengths.iter().map(|lengths| lengths.to_vec()).collect();
    let parts = cut(execution, rule, &lengths, cores, 4096)?;
    let told = parts.into_iter().map(|part| {
        assert_eq!(part.execution.cores, 1);
        (part.execution.sources, part.bytes.start / KIB..part.bytes.end / KIB)
    });
    Some(told.collect())
}

#[test]
fn bytes_are_cut_at_units_across_sources() {
    let sources = vec![blocks(10, 96, 100 * KIB).into(), memory(5, 200 * KIB).into()];
    let all = execution(sources, Output::Completion);
    let lengths: [&[u64]; 2] = [&[100 * KIB], &[200 * KIB]];
    let parts = cuts(&all, &rule(1, KIB, 0), &lengths, 3).unwrap();
    // 100 KiB are 25 blocks.
    let first = (vec![blocks(10, 96, 100 * KIB).into()], 0..100);
    let second = (vec![memory(5, 100 * KIB).into()], 100..200);
    let third = (vec![memory(5 + 100 * KIB, 100 * KIB).into()], 200..300);
    assert_eq!(parts, [first, second, third]);
    let parts = cuts(&all, &rule(1, 90 * KIB, 0), &lengths, 2).unwrap();
    let first = (vec![blocks(10, 96, 90 * KIB).into()], 0..90);
    let rest = vec![blocks(32, 96 + 2048, 10 * KIB).into(), memory(5, 200 * KIB).into()];
    assert_eq!(parts, [first, (rest, 90..300)]);
}

#[test]
fn values_are_not_cut_and_empty_ones_not_lost() {
    let all = execution(vec![values(2, 6).into()], Output::Completion);
    let mib = 1 << 20;
    let lengths: [&[u64]; 1] = [&[mib, mib, 0, mib, mib / 2, 0]];
    let parts = cuts(&all, &rule(1, 4, 0), &lengths, 2).unwrap();
    let first = (vec![values(2, 1).into()], 0..1024);
    assert_eq!(parts, [first, (vec![values(5, 5).into()], 1024..3584)]);
    let halves: [&[u64]; 1] = [&[mib, mib, 0, mib, mib, 0]];
    let parts = cuts(&all, &rule(1, 4, 0), &halves, 2).unwrap();
    let first = (vec![values(2, 2).into()], 0..2048);
    assert_eq!(parts, [first, (vec![values(8, 4).into()], 2048..4096)]);
    let odd: [&[u64]; 1] = [&[mib + 2, mib, 0, mib, mib, 0]];
    assert_eq!(cuts(&all, &rule(1, 4, 0), &odd, 2), None, "no value ends with an element");
}

#[test]
fn two_streams_are_cut_alike_and_a_third_is_everyones() {
    let sources = vec![values(0, 2).on(0), memory(0, 256 * KIB).on(1), memory(9, 7).on(2)];
    let all = execution(sources, Output::Completion);
    let lengths: [&[u64]; 3] = [&[64 * KIB, 192 * KIB], &[256 * KIB], &[7]];
    let parts = cuts(&all, &rule(2, 8, 0), &lengths, 2).unwrap();
    let first = vec![values(0, 1).on(0), memory(0, 64 * KIB).on(1), memory(9, 7).on(2)];
    let second = vec![values(3, 1).on(0), memory(64 * KIB, 192 * KIB).on(1), memory(9, 7).on(2)];
    assert_eq!(parts, [(first, 0..64), (second, 64..256)]);
    let unequal: [&[u64]; 3] = [&[64 * KIB, 192 * KIB], &[255 * KIB], &[7]];
    assert_eq!(cuts(&all, &rule(2, 8, 0), &unequal, 2), None);
}

#[test]
fn small_ones_stay_whole() {
    let all = execution(vec![memory(0, 127 * KIB).into()], Output::Completion);
    assert_eq!(cuts(&all, &rule(1, 4, 0), &[&[127 * KIB]], 8), None);
    let big = rule(1, 100 * KIB, 0);
    assert_eq!(cuts(&all, &big, &[&[127 * KIB]], 8), None);
}

#[test]
fn outputs_follow_their_parts() {
    let outputs = |written: u64, output| {
        let all = execution(vec![memory(0, 300 * KIB).into()], output);
        let lengths = vec![vec![300 * KIB]];
        let parts = cut(&all, &rule(1, KIB, written), &lengths, 2, 512)?;
        Some(parts.into_iter().map(|part| part.execution.output).collect::<Vec<_>>())
    };
    let to = |start, bytes| Output::Memory { nsid: 4, start, bytes };
    assert_eq!(outputs(8, to(100, 2400)).unwrap(), [to(100, 1200), to(1300, 1200)]);
    assert_eq!(outputs(8, to(100, 2399)), None, "the whole would fail");
    let to = |first| {
        let (prefix, stride, chunk_bytes) = (PREFIX, 5, 1024);
        Output::KvChunks { nsid: 3, prefix, first, stride, chunk_bytes }
    };
    // 128 units fill a chunk.
    assert_eq!(outputs(8, to(1)).unwrap(), [to(1), to(6)]);
    assert_eq!(outputs(8, to(u32::MAX - 4)), None, "numbers leave 32 bits");
    assert_eq!(outputs(3, to(1)), None, "no chunk ends with an item but the last");
}

#[test]
fn items_that_belong_together_stay_together() {
    let output = Output::Memory { nsid: 4, start: 0, bytes: 1200 };
    let all = execution(vec![memory(0, 300 * KIB).into()], output);
    let rule = SplitRule { unit_items: 40, ..rule(1, KIB, 4) };
    let parts = cut(&all, &rule, &vec![vec![300 * KIB]], 3, 512).unwrap();
    let told = parts.iter().map(|part| (part.bytes.start / KIB, part.execution.output));
    let to = |start, bytes| Output::Memory { nsid: 4, start, bytes };
    let expected = [(0, to(0, 320)), (80, to(320, 480)), (200, to(800, 400))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn digests_are_never_cut_and_go_with_their_bytes() {
    let sources = vec![
        blocks(10, 4097, 100 * KIB - 1).on(0),
        values(0, 2).on(0),
        blocks(90, 0, 300 * KIB - 1).on(1),
        memory(9, 7).on(2),
        values(9, 1).on(2),
    ];
    // Units of 64 KiB: of the first source bytes 4097 to 64 KiB, and the rest.
    let lengths: [&[u64]; 5] = [
        &[60 * KIB - 1, 40 * KIB],
        &[100 * KIB, 100 * KIB],
        &[64 * KIB, 64 * KIB, 64 * KIB, 64 * KIB, 44 * KIB - 1],
        &[7],
        &[1],
    ];
    assert_eq!(unit_lengths(64 * KIB, (4097, 100 * 1024 - 1)), lengths[0]);
    assert_eq!(unit_lengths(64 * KIB, (0, 300 * 1024 - 1)), lengths[2]);
    assert_eq!(unit_lengths(u64::MAX, (5, 7)), [7]);
    let sums: Vec<u32> = (0..10).collect();
    let digests = Some(Digests { unit_bytes: 64 << 10, streams: 0xFF, sums });
    let all = Execution { digests, ..execution(sources, Output::Completion) };
    let whole = vec![lengths[0].to_vec(), lengths[1].to_vec()];
    let first = Execution {
        sources: all.sources[..2].to_vec(),
        digests: Some(Digests { unit_bytes: 64 << 10, streams: 0xFF, sums: (0..4).collect() }),
        ..all.clone()
    };
    let parts = cut(&first, &rule(1, 1, 0), &whole, 4, 4096).unwrap();
    let told: Vec<(Vec<Source>, Vec<u32>)> = parts
        .into_iter()
        .map(|part| (part.execution.sources, part.execution.digests.unwrap().sums))
        .collect();
    let expected = [
        (vec![blocks(10, 4097, 60 * KIB - 1).into()], vec![0]),
        (vec![blocks(26, 0, 40 * KIB).into()], vec![1]),
        (vec![values(0, 1).into()], vec![2]),
        (vec![values(3, 1).into()], vec![3]),
    ];
    assert_eq!(told, expected);
    // Blocks of a stream without digests are cut anywhere.
    let digests = Some(Digests { unit_bytes: 64 << 10, streams: 2, sums: vec![] });
    let sources = vec![blocks(10, 0, 200 * KIB).into()];
    let bare = Execution { sources, digests, ..first };
    let parts = cut(&bare, &rule(1, KIB, 0), &vec![vec![200 * KIB]], 2, 4096).unwrap();
    assert_eq!(parts.iter().map(|part| part.bytes.start / KIB).collect::<Vec<_>>(), [0, 100]);
    // Every part has what the streams that are not cut need.
    let rest = Execution {
        sources: all.sources[2..].iter().map(|one| one.data.on(one.stream - 1)).collect(),
        digests: Some(Digests { unit_bytes: 64 << 10, streams: 0xFF, sums: (4..10).collect() }),
        ..all
    };
    let cut_one = SplitRule { streams: 2, ..rule(1, 1, 0) };
    let lengths: Lengths = lengths[2..].iter().map(|lengths| lengths.to_vec()).collect();
    let parts = cut(&rest, &cut_one, &lengths, 2, 4096).unwrap();
    let told: Vec<(Vec<Source>, Vec<u32>)> = parts
        .into_iter()
        .map(|part| (part.execution.sources, part.execution.digests.unwrap().sums))
        .collect();
    let with = |data: SourceData| vec![data.on(0), memory(9, 7).on(1), values(9, 1).on(1)];
    let expected = [
        (with(blocks(90, 0, 128 * KIB)), vec![4, 5, 9]),
        (with(blocks(122, 0, 172 * KIB - 1)), vec![6, 7, 8, 9]),
    ];
    assert_eq!(told, expected);
}

/// Values and steps that meet at the beginning only: the search for an end goes down to it.
#[test]
fn a_cut_takes_little_work_whatever_the_lengths_are() {
    let all = execution(vec![values(0, 256).into()], Output::Completion);
    let lengths = vec![vec![(1 << 20) - 4; 256]];
    let before = csd_reactor::work();
    assert_eq!(cut(&all, &rule(1, (1 << 18) + 4, 0), &lengths, 128, 4096), None);
    let worked = csd_reactor::work() - before;
    assert!(worked < 1 << 20, "{worked} units");
}
