//! Memory of a drive, as the kernel counts it, while hosts try to exceed the limits that the guide
//! gives.

use std::fs;
use std::io::Write;

use csd_initiator::{Address, Block, Compute, Controller, Error, Options};
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{self, Piece, Target, Task};
use csd_nvme::vendor::execute::Output;
use csd_nvme::vendor::location::Location;
use csd_reactor::{Buffer, Class, block_on, spawn};

use csd_tests::drive::LIMIT;
use csd_tests::wire::{Command, Wire, data_pdu};

use crate::support::drive::{Drive, NQN, kv};
use crate::support::harness::wait_until;
use crate::support::metrics::{free_address, scrape};

const MIB: usize = 1 << 20;
const PIECE: usize = 128 << 10;
/// Size of the values that sources name: the longest on media of 1 GiB.
const VALUE: usize = 4 * MIB;
const INVALID_PROGRAM_DATA: u16 = 0x18E;

/// Returns the drive's peak memory in MiB.
fn peak_mib(drive: &Drive) -> usize {
    let pid = drive.running.as_ref().unwrap().child.id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 10
}

/// Sends the part of `data` that the drive grants with its next R2T; returns false if it sent an
/// answer to a command instead.
fn send_granted(io: &mut Wire, data: &[u8]) -> bool {
    let pdu = io.receive();
    if pdu.header[0] != 0x09 {
        assert_eq!(pdu.header[0], 0x05, "a response");
        return false;
    }
    let half = |at: usize| u16::from_le_bytes([pdu.header[at], pdu.header[at + 1]]);
    let dword = |at: usize| u32::from_le_bytes(pdu.header[at..at + 4].try_into().unwrap());
    let (start, bytes) = (dword(12) as usize, dword(16) as usize);
    for at in (start..start + bytes).step_by(PIECE) {
        let length = PIECE.min(start + bytes - at);
        let last = at + length == start + bytes;
        let offset = u32::try_from(at).unwrap();
        let pdu = data_pdu(half(8), half(10), offset, &data[at..at + length], last);
        io.stream.write_all(&pdu).unwrap();
    }
    true
}

/// Returns the header of an execution of program `pid` over so many sources, on one core.
fn header(pid: u8, sources: u16, serial: bool, parameters: u32) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(b"CSDX");
    header[4] = 1;
    header[6..8].copy_from_slice(&sources.to_le_bytes());
    header[8] = pid;
    header[16] = serial.into();
    header[24..28].copy_from_slice(&parameters.to_le_bytes());
    header
}

/// Returns a source of bytes of the memory namespace.
fn memory_source(bytes: u32) -> Vec<u8> {
    let mut source = vec![0; 32];
    (source[0], source[4]) = (3, 4);
    source[24..28].copy_from_slice(&bytes.to_le_bytes());
    source
}

fn execute(index: u32, data: &[u8]) -> Command {
    Command::new(0x01, 5).dword(2, index).dword(4, u32::try_from(data.len()).unwrap())
}

/// 24 connections with 16 executions each, all with 1 MiB of data, wait for four long ones.
#[test]
fn executions_that_wait_hold_a_part_of_the_transfer_memory_and_no_more() {
    const HOSTS: u16 = 24;
    let address = free_address();
    let metrics = address.to_string();
    let limits = ["--transfer-memory", "64M", "--cores", "1", "--program-time", "100"];
    let drive = Drive::serve("memory", &[&limits[..], &["--metrics", &metrics]].concat());
    let mut admin = Wire::open(drive.address());
    let cntlid = admin.admin(NQN);
    let queue = |qid: u16| {
        let mut io = Wire::open(drive.address());
        io.initialise();
        assert_eq!(io.connect(NQN, qid, cntlid, false).status, 0);
        io
    };
    let mut running = queue(1);
    let before = peak_mib(&drive);
    // Work for the compute thread: a checksum for every byte of 16 MiB.
    let mut long = header(5, 1, false, 16);
    long.extend(memory_source(16 << 20));
    long.extend([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    for _ in 0..4 {
        running.post(execute(4, &long), &long);
    }
    running.stream.set_read_timeout(Some(LIMIT)).unwrap();
    // A program sees its parameters only when its turn comes: these are refused then.
    let parameters = MIB - 64 - 32;
    let mut data = header(1, 1, false, u32::try_from(parameters).unwrap());
    data.extend(memory_source(4096));
    data.resize(MIB, 0x5A);
    let crowd: Vec<_> = (2..2 + HOSTS)
        .map(|qid| {
            let mut io = queue(qid);
            for _ in 0..16 {
                let (_, capsule) = io.capsule_bytes(execute(0, &data), MIB);
                io.stream.write_all(&capsule).unwrap();
            }
            io.stream.set_read_timeout(Some(LIMIT)).unwrap();
            let data = data.clone();
            // A grant and an answer for each.
            std::thread::spawn(move || (0..32).filter(|_| !send_granted(&mut io, &data)).count())
        })
        .collect();
    let held = "csd_transfer_memory_bytes{core=\"0\",for=\"executions\"} ";
    wait_until("all room for executions is taken", || {
        let page = scrape(address, "GET /metrics HTTP/1.1\r\n\r\n");
        let line = page.lines().find_map(|line| line.strip_prefix(held)).unwrap();
        line.parse::<usize>().unwrap() >= 3 * MIB
    });
    for _ in 0..4 {
        let (_, status, _) = running.response();
        assert_eq!(status, 0, "a long execution");
    }
    let answered: usize = crowd.into_iter().map(|host| host.join().unwrap()).sum();
    assert_eq!(answered, usize::from(HOSTS) * 16, "every one of them was answered");
    let grown = peak_mib(&drive) - before;
    println!("384 executions with 1 MiB each that waited: {grown} MiB");
    // Read-ahead of four executions, the transfer memory for executions, and memory that the
    // allocator keeps.
    assert!(grown <= 4 * 18 + 4 + 24, "{grown} MiB");
}

/// 256 sources that all name one value of 4 MiB: 1 GiB.
#[test]
fn an_execution_streams_long_values_and_a_serial_one_has_a_limit() {
    let drive = Drive::serve("memory", &["--size", "8G", "--cores", "1"]);
    let (_admin, mut io) = drive.connect();
    let key = [7u8; 16];
    let (_, capsule) = io.capsule_bytes(kv(0x01, &key, u32::try_from(VALUE).unwrap()), VALUE);
    io.stream.write_all(&capsule).unwrap();
    while send_granted(&mut io, &[1; VALUE]) {}
    let before = peak_mib(&drive);
    let mut source = vec![0; 32];
    (source[0], source[4], source[24], source[28]) = (1, 2, 1, 1);
    source[8..20].copy_from_slice(&key[..12]);
    source[20..24].copy_from_slice(&u32::from_be_bytes([7; 4]).to_le_bytes());
    let mut run = |serial: bool, sources: u16| {
        let mut data = header(1, sources, serial, 16);
        (0..sources).for_each(|_| data.extend(&source));
        // Elements that are 01010101h.
        data.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]);
        let (_, capsule) = io.capsule_bytes(execute(0, &data), data.len());
        io.stream.write_all(&capsule).unwrap();
        let r2t = io.receive();
        let half = |at: usize| u16::from_le_bytes([r2t.header[at], r2t.header[at + 1]]);
        io.stream.write_all(&data_pdu(half(8), half(10), 0, &data, true)).unwrap();
        let (_, status, result) = io.response();
        (status, result as usize)
    };
    assert_eq!(run(false, 256), (0, 256 * VALUE / 4));
    let streamed = peak_mib(&drive) - before;
    assert_eq!(run(true, 8), (0, 8 * VALUE / 4));
    assert_eq!(run(true, 256).0, INVALID_PROGRAM_DATA);
    let serial = peak_mib(&drive) - before;
    println!("1 GiB of sources: streamed {streamed} MiB, serial {serial} MiB");
    assert!(streamed <= 18 + 6, "{streamed} MiB streamed");
    assert!(serial <= 256 + 24, "{serial} MiB serial");
}

/// 1,000 writes of 16 MiB on one queue, of which the drive asks for one.
#[test]
fn a_command_that_waits_takes_little() {
    let drive = Drive::serve("memory", &["--cores", "1"]);
    let (_admin, mut io) = drive.connect_sized(1024);
    let before = peak_mib(&drive);
    for _ in 0..1000 {
        let write = Command::new(0x01, 1).dword(12, 16 * 256 - 1);
        let (_, capsule) = io.capsule_bytes(write, 16 * MIB);
        io.stream.write_all(&capsule).unwrap();
    }
    assert_eq!(io.receive().header[0], 0x09, "R2T");
    // An admin command that comes later is answered after all of them have been received.
    let (_admin, mut other) = drive.connect_sized(32);
    assert_eq!(other.command_in_capsule(Command::new(0x01, 1), &[1; 4096]).status, 0);
    let grown = peak_mib(&drive) - before;
    println!("1,000 writes that wait: {grown} MiB");
    assert!(grown <= 16 + 20, "{grown} MiB");
}

/// Has a drive execute tasks of `combine` at once, each with so many sums of 16 MiB of its first
/// blocks; returns the answers. The sums have other digests than the tasks name, so none is stored.
fn combine(address: Address, tasks: usize, sums: u8) -> Vec<Result<u64, Error>> {
    let blocks = |slba| Piece {
        peer: 0,
        location: Location::Blocks { nsid: 1, slba },
        bytes: combine::PIECE_BYTES_MAX,
        crc32c: Some(0),
    };
    let source = Piece { crc32c: None, ..blocks(0) };
    let target = |sum| Target { piece: blocks(4096), factors: vec![2 + sum] };
    let targets = (0..sums).map(target).collect();
    let task = Task { sources: vec![source], targets, guards: Vec::new(), peers: Vec::new() };
    let run = move || async move {
        let options = Options { command_timeout: LIMIT, ..Options::default() };
        let controller = Controller::connect(&address, &options).await.unwrap();
        let block = Block::open(&controller, 1).unwrap();
        let data = Buffer::from_slice(&vec![7; combine::PIECE_BYTES_MAX as usize]);
        block.write(0, vec![data], false).await.unwrap();
        let programs = Compute::open(&controller, 5).unwrap().programs().await.unwrap();
        let index = programs.iter().position(|program| program.pid() == combine::PROGRAM_ID);
        let index = u16::try_from(index.unwrap()).unwrap();
        let begin = |_| {
            let compute = Compute::open(&controller, 5).unwrap();
            let execution = task.execution(Output::Completion);
            spawn(Class::Foreground, async move { compute.execute(index, &execution).await })
        };
        let running: Vec<_> = (0..tasks).map(begin).collect();
        let mut answers = Vec::new();
        for one in running {
            answers.push(one.await);
        }
        answers
    };
    block_on(&csd_reactor::Config::default(), run).unwrap()
}

/// Four tasks, each with sums of 224 MiB.
#[test]
fn tasks_wait_for_the_memory_of_their_sums() {
    const SUMS: u8 = 14;
    let drive = Drive::serve("memory", &["--size", "1G", "--cores", "1"]);
    let address = Address::new(drive.address(), NQN);
    // With the blocks themselves, and a task of one sum.
    combine(address.clone(), 1, 1);
    let before = peak_mib(&drive);
    for answer in combine(address, 4, SUMS) {
        let status = answer.unwrap_err().status();
        assert_eq!(status, Some(Status::UNRECOVERED_ERROR), "the digests differ");
    }
    let grown = peak_mib(&drive) - before;
    println!("four tasks of 224 MiB each: {grown} MiB");
    assert!(grown > 224 / 2, "{grown} MiB: the sums were not there");
    // With the pieces that are read ahead, two of them exceed the 512 MiB that the executions of a
    // core may hold.
    assert!(grown <= 224 + 64, "{grown} MiB");
}

/// Stores keys without values, as many at a time as a queue takes.
fn store_keys(io: &mut Wire, numbers: std::ops::Range<u128>) {
    let keys: Vec<[u8; 16]> = numbers.map(u128::to_be_bytes).collect();
    for some in keys.chunks(LISTS) {
        for key in some {
            io.post(kv(0x01, key, 0), &[]);
        }
        for _ in some {
            assert_eq!(io.response().1, 0, "Store");
        }
    }
}

/// Number of Lists at a time, and bytes that each may fill.
const LISTS: usize = 120;
const LIST: usize = 64 << 10;

/// 120 Lists at a time, first of a few keys more than one of them returns, then of twelve times as
/// many.
#[test]
fn lists_hold_no_more_where_there_are_more_keys() {
    let drive = Drive::serve("memory", &["--size", "256M", "--cores", "1"]);
    let (_admin, mut io) = drive.connect_sized(128);
    for keys in [0..5_000, 5_000..60_000] {
        let end = keys.end;
        store_keys(&mut io, keys);
        let before = peak_mib(&drive);
        for _ in 0..LISTS {
            let (_, capsule) = io.capsule_bytes(kv(0x06, &[], u32::try_from(LIST).unwrap()), LIST);
            io.stream.write_all(&capsule).unwrap();
        }
        let (mut ended, mut bytes) = (0, 0);
        while ended < LISTS {
            let pdu = io.receive();
            bytes += pdu.data.len();
            // A response, or data that stands for one.
            ended += usize::from(pdu.header[0] == 0x05 || pdu.header[1] & 0x08 != 0);
        }
        // An entry of a key of 16 bytes has 20.
        assert_eq!(bytes, LISTS * (4 + (LIST - 4) / 20 * 20), "a List was refused, or not full");
        let grown = peak_mib(&drive) - before;
        println!("{LISTS} Lists of {end} keys: {grown} MiB");
        // The answers, and for each 16 pages of 64 keys; all keys at once would take 460 MiB.
        assert!(grown <= 8 + 16 + 16, "{grown} MiB with {end} keys");
    }
}
