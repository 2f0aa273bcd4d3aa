//! Executions with wrong sources, sent to a drive directly: each fails with its status, and the
//! drive goes on counting.

use csd_initiator::{Address, Block, Compute, Controller, Kv, Memory, Options};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Digests, Execution, Output, Source, SourceData};
use csd_reactor::{Buffer, block_on};

use crate::support::drive::Drive;

const COUNT: u64 = 1;
const VECTOR_ADD: u64 = 2;
const ARRAY_MERGE: u64 = 3;
/// Element types in parameters.
const I32: u8 = 1;
const F32: u8 = 3;

fn blocks(slba: u64, bytes: u32) -> SourceData {
    SourceData::Blocks { nsid: 1, slba, skip: 0, bytes }
}

fn memory(start: u64, bytes: u32) -> SourceData {
    SourceData::Memory { nsid: 4, start, bytes }
}

fn values(nsid: u32) -> SourceData {
    SourceData::KvChunks { nsid, prefix: [0x99; 12], first: 0, count: 1, stride: 1 }
}

/// Returns the part after the first `skip` bytes of the only value: 7, 7 and 1 as i32.
fn tail(skip: u32) -> SourceData {
    SourceData::KvTail { nsid: 3, prefix: [0x55; 12], number: 6, skip }
}

/// A value without bytes.
const EMPTY: SourceData =
    SourceData::KvChunks { nsid: 3, prefix: [0x56; 12], first: 0, count: 1, stride: 1 };

/// Returns the keys of a namespace.
fn keys(nsid: u32) -> SourceData {
    SourceData::Keys { nsid, from: None }
}

/// Returns an execution over these streams, with elements of this type.
fn execution(program: u64, element: u8, streams: &[SourceData], output: Output) -> Execution {
    let sources = (0u8..).zip(streams).map(|(stream, data)| data.on(stream));
    let mut parameters = vec![0; 16];
    (parameters[0], parameters[8]) = (element, if program == COUNT { 7 } else { 0 });
    let sources: Vec<Source> = sources.collect();
    Execution {
        program,
        output,
        sources,
        inline: vec![],
        digests: None,
        parameters,
        serial: false,
        cores: 1,
    }
}

/// Returns an execution over one source with digests of so many bytes of blocks.
fn with_digests(data: SourceData, unit_bytes: u32, sums: &[u32]) -> Execution {
    let digests = Some(Digests { unit_bytes, streams: 1, sums: sums.to_vec() });
    Execution { digests, ..execution(COUNT, I32, &[data], Output::Completion) }
}

/// Returns the executions that a drive refuses, each with its status.
fn refused() -> Vec<(&'static str, Execution, Status)> {
    let count = |data| execution(COUNT, I32, &[data], Output::Completion);
    let two = |program, element, left, right| {
        let output = Output::Memory { nsid: 4, start: 1 << 20, bytes: 1 << 20 };
        execution(program, element, &[left, right], output)
    };
    let over = Output::Memory { nsid: 4, start: 4096, bytes: 8192 };
    vec![
        ("a namespace that is not there", count(values(9)), Status::INVALID_NAMESPACE),
        ("values among blocks", count(values(1)), Status::INVALID_NAMESPACE),
        ("a value that is not there", count(values(3)), Status::SOURCE_MISSING),
        (
            "a tail of a value that is not there",
            count(SourceData::KvTail { nsid: 3, prefix: [0x99; 12], number: 0, skip: 4 }),
            Status::SOURCE_MISSING,
        ),
        ("a tail that begins at the value's end", count(tail(12)), Status::SOURCE_MISSING),
        ("a tail that is no whole element", count(tail(3)), Status::SOURCE_TYPE),
        (
            "blocks with another digest",
            with_digests(blocks(0, 4100), 4096, &[crc32c::crc32c(&data()[..4096]), 1]),
            Status::UNRECOVERED_ERROR,
        ),
        (
            "a tail of a value with another digest",
            with_digests(tail(4), 0, &[1]),
            Status::UNRECOVERED_ERROR,
        ),
        ("an empty value with a digest", with_digests(EMPTY, 0, &[1]), Status::UNRECOVERED_ERROR),
        (
            "digests of no whole blocks",
            with_digests(blocks(0, 4096), 4100, &[1]),
            Status::INVALID_PROGRAM_DATA,
        ),
        ("keys of blocks", count(keys(1)), Status::INVALID_NAMESPACE),
        ("keys in the order of a hash", count(keys(2)), Status::SOURCE_ORDER),
        ("blocks beyond the end", count(blocks(1 << 40, 4096)), Status::LBA_OUT_OF_RANGE),
        ("no whole elements", count(blocks(0, 4098)), Status::SOURCE_TYPE),
        (
            "streams of two lengths",
            two(VECTOR_ADD, I32, blocks(0, 4096), blocks(1, 8192)),
            Status::SOURCE_TYPE,
        ),
        (
            "a stream that is not sorted",
            two(ARRAY_MERGE, I32, blocks(0, 4096), blocks(1, 4096)),
            Status::SOURCE_ORDER,
        ),
        (
            "a stream with NaN",
            two(ARRAY_MERGE, F32, blocks(2, 4096), blocks(2, 4096)),
            Status::SOURCE_ORDER,
        ),
        (
            "a source where the output goes",
            execution(VECTOR_ADD, I32, &[memory(0, 8192), memory(1 << 21, 8192)], over),
            Status::OVERLAPPING_RANGES,
        ),
    ]
}

/// Returns the bytes of the first three blocks: falling numbers, then rising ones; a seven is in
/// the first block.
fn data() -> Vec<u8> {
    let falling = (0..1024i32).rev().flat_map(i32::to_le_bytes);
    let rising = (0..2048i32).flat_map(|i| (i + 5000).to_le_bytes());
    falling.chain(rising).collect()
}

#[test]
fn bad_sources_have_their_status_and_the_drive_counts_on() {
    let drive = Drive::serve("memory", &[]);
    let url = drive.url();
    let address: Address = url.trim().parse().unwrap();
    let done = block_on(&csd_reactor::Config::default(), move || async move {
        let controller = Controller::connect(&address, &Options::default()).await.unwrap();
        let block = Block::open(&controller, 1).unwrap();
        let data = data();
        block.write(0, vec![Buffer::from_slice(&data)], false).await.unwrap();
        let nan: Vec<u8> = [f32::NAN; 1024].iter().flat_map(|nan| nan.to_le_bytes()).collect();
        block.write(8192, vec![Buffer::from_slice(&nan)], false).await.unwrap();
        let memory = Memory::open(&controller, 4).unwrap();
        memory.write(0, vec![Buffer::from_slice(&data)]).await.unwrap();
        let objects = Kv::open(&controller, 3).unwrap();
        let value = [7i32, 7, 1].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        let key = csd_nvme::vendor::execute::chunk_key(&[0x55; 12], 6);
        objects.store(&key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
        let empty = csd_nvme::vendor::execute::chunk_key(&[0x56; 12], 0);
        objects.store(&empty, vec![], 0).await.unwrap();
        let compute = Compute::open(&controller, 5).unwrap();
        let index = |program: u64| u16::try_from(program - 1).unwrap();
        for (what, execution, expected) in refused() {
            let ended = compute.execute(index(execution.program), &execution).await;
            let error = ended.expect_err(what);
            assert_eq!(error.status(), Some(expected), "{what}");
            let is_of_program = [Status::INVALID_PROGRAM_DATA, Status::SOURCE_TYPE];
            let has_reason = is_of_program.contains(&expected) || expected == Status::SOURCE_ORDER;
            assert_eq!(error.reason().is_some(), has_reason, "{what}: {error}");
            let count = self::execution(COUNT, I32, &[blocks(0, 4096)], Output::Completion);
            assert_eq!(compute.execute(index(COUNT), &count).await.unwrap(), 1, "after {what}");
        }
        // The digests of all bytes, of which the first are not counted.
        let sums: Vec<u32> = data[..8000].chunks(4096).map(crc32c::crc32c).collect();
        let skipped = SourceData::Blocks { nsid: 1, slba: 0, skip: 4, bytes: 7996 };
        let known = with_digests(skipped, 4096, &sums);
        assert_eq!(compute.execute(index(COUNT), &known).await.unwrap(), 1);
        let known = with_digests(tail(4), 0, &[crc32c::crc32c(&value)]);
        assert_eq!(compute.execute(index(COUNT), &known).await.unwrap(), 1);
        let nothing = with_digests(EMPTY, 0, &[crc32c::crc32c(b"")]);
        assert_eq!(compute.execute(index(COUNT), &nothing).await.unwrap(), 0);
        objects.delete(&empty).await.unwrap();
        // Tail and bytes of the payload, one behind the other: 7, 1, 7, 7.
        let mut handed = execution(COUNT, I32, &[tail(4)], Output::Completion);
        handed.sources.push(SourceData::Inline { bytes: 4 }.on(0));
        handed.sources.push(SourceData::Inline { bytes: 4 }.on(0));
        handed.inline = [7i32, 7].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(compute.execute(index(COUNT), &handed).await.unwrap(), 3);
        // The only key: its length (u16), 55h twelve times, its number, two bytes of padding.
        let mut all = execution(COUNT, I32, &[keys(3)], Output::Completion);
        all.parameters[8..12].copy_from_slice(&[0x55; 4]);
        assert_eq!(compute.execute(index(COUNT), &all).await.unwrap(), 2);
        all.serial = true;
        let serial = compute.execute(index(COUNT), &all).await.err();
        assert_eq!(serial.and_then(|error| error.status()), Some(Status::INVALID_PROGRAM_DATA));
        controller.disconnect().await;
    });
    done.unwrap();
}
