//! The Computational Programs command set: programs loaded in parts, activated, run over memory
//! ranges, aborted and unloaded, with every status that a host can provoke. The engine here is a
//! toy; WebAssembly has its own tests.

use std::net::SocketAddr;
use std::sync::Arc;

use csd_drive::Resources;
use csd_drive::compute::Admission;
use csd_kernels::program::{
    Cause, Compiled, Engine, Failure, Inputs, Limits, Output, Program, Step,
};
use csd_tests::wire::{Command, Reply, Wire};

use crate::{NQN, config, io_queue, serve, u32_at, u64_at};

/// Program type of the toy.
const TOY: u32 = 0xC7;
pub(super) const INDEX: u32 = 16;

/// Engine whose programs are a word: `copy` copies its first stream to its output, and its result
/// is the number of bytes; `spin` does not end; `fail` fails.
#[derive(Debug)]
struct Toy;

struct Word(Vec<u8>);

struct Run {
    word: Vec<u8>,
    copied: u64,
}

impl Engine for Toy {
    fn ptype(&self) -> u8 {
        TOY as u8
    }

    fn name(&self) -> &'static str {
        "toy"
    }

    fn compile(&self, bytes: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        match bytes.split(|byte| *byte == b' ').next() {
            Some(b"copy" | b"spin" | b"fail") => Ok(Arc::new(Word(bytes[..4].to_vec()))),
            _ => Err("no word of ours".to_owned()),
        }
    }
}

impl Compiled for Word {
    fn start(&self, parameters: &[u8], _: &Limits) -> Result<Box<dyn Program>, Failure> {
        if parameters == b"wrong" {
            return Err(Failure::parameters("that is wrong"));
        }
        Ok(Box::new(Run { word: self.0.clone(), copied: 0 }))
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Program for Run {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        match &self.word[..] {
            b"spin" => Ok(Step::More),
            b"fail" => Err(Failure::new(Cause::Program, "it fails")),
            _ if inputs.is_over(0) => Ok(Step::Done { result: self.copied }),
            _ => {
                let count = inputs.peek(0).len();
                output.append(inputs.peek(0));
                inputs.consume(0, count);
                self.copied += count as u64;
                Ok(if count > 0 { Step::More } else { Step::Starved { stream: 0 } })
            }
        }
    }
}

fn drive(admission: Admission) -> SocketAddr {
    let resources = Resources { admission, ..toys() };
    serve(csd_drive::Config { resources, ..config() })
}

/// Returns the resources of a drive that runs toys, for all hosts.
pub(super) fn toys() -> Resources {
    let admission = Admission::Any;
    Resources { engines: vec![Arc::new(Toy)], admission, ..Resources::default() }
}

fn hosts(address: SocketAddr) -> (Wire, Wire) {
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let io = io_queue(address, cntlid, 1, true);
    (admin, io)
}

/// Returns Load Program: index, type and kind of identifier in dword 10, whole size in 11,
/// identifier in 12 and 13, bytes of this part in 14, offset in 15.
pub(super) fn part(index: u32, whole: usize, offset: usize, bytes: usize) -> Command {
    let command = Command::new(0x85, 5).dword(10, index | TOY << 16 | 1 << 25);
    let command = command.dword(11, whole as u32).dword(12, 0xABCD).dword(13, index);
    command.dword(14, bytes as u32).dword(15, offset as u32)
}

pub(super) fn load(admin: &mut Wire, index: u32, program: &[u8]) -> u16 {
    let command = part(index, program.len(), 0, program.len());
    admin.command_in_capsule(command, program).status
}

pub(super) fn unload(admin: &mut Wire, index: u32) -> u16 {
    admin.command(Command::new(0x85, 5).dword(10, index | 1 << 24), &[], 0).status
}

pub(super) fn activate(admin: &mut Wire, index: u32, active: bool) -> u16 {
    let select = u32::from(active) << 16;
    admin.command(Command::new(0x88, 5).dword(10, index | select), &[], 0).status
}

/// Returns a range: namespace, length at 4, start at 8.
pub(super) fn range(nsid: u32, start: u64, length: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&nsid.to_le_bytes());
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&start.to_le_bytes());
    bytes
}

pub(super) fn create_set(admin: &mut Wire, ranges: &[[u8; 32]]) -> Reply {
    let command = Command::new(0x89, 5).dword(10, 0).dword(11, ranges.len() as u32);
    admin.command_in_capsule(command, &ranges.concat())
}

pub(super) fn delete_set(admin: &mut Wire, rsid: u32) -> u16 {
    admin.command(Command::new(0x89, 5).dword(10, rsid << 16 | 1), &[], 0).status
}

/// Returns Execute Program: index and set in dword 2, number of ranges in 3, length of data in 4;
/// the written range in the low byte of the first parameter, limits above.
pub(super) fn execution(index: u32, rsid: u32, ranges: u32, data: usize, written: u32) -> Command {
    let command = Command::new(0x01, 5).dword(2, index | rsid << 16).dword(3, ranges);
    command.dword(4, data as u32).dword(10, written)
}

pub(super) fn execute(io: &mut Wire, command: Command, data: &[u8]) -> Reply {
    match data {
        [] => io.command(command, &[], 0),
        data => io.command_in_capsule(command, data),
    }
}

fn memory_write(io: &mut Wire, start: u32, data: &[u8]) {
    let command = Command::new(0x05, 4).dword(10, start).dword(12, data.len() as u32);
    assert_eq!(io.command(command, data, 0).status, 0);
}

fn memory_read(io: &mut Wire, start: u32, length: usize) -> Vec<u8> {
    let command = Command::new(0x02, 4).dword(10, start).dword(12, length as u32);
    io.command(command, &[], length).data
}

/// Reads a log page of the compute namespace.
pub(super) fn log(admin: &mut Wire, id: u32) -> Vec<u8> {
    let command = Command::new(0x02, 5).dword(10, 0x03FF << 16 | id);
    let reply = admin.command(command, &[], 4096);
    assert_eq!(reply.status, 0);
    reply.data
}

#[test]
fn a_program_is_loaded_run_and_unloaded() {
    let (mut admin, mut io) = hosts(drive(Admission::Any));
    let identify = Command::new(0x06, 5).dword(10, 0x05).dword(11, 4 << 24);
    let data = admin.command(identify, &[], 4096).data;
    assert_eq!((data[2], data[4], data[6]), (64, 0, 8), "MAXMEMRS, MRSG, MAXMEMR");
    assert_eq!((u64_at(&data, 8), data[16]), (4, 0), "MAXPB in MiB, LPG");
    let types = log(&mut admin, 0x83);
    assert_eq!((u32_at(&types, 0), types[64], &types[112..116]), (1, 0xC7, &b"toy\0"[..]));

    // In parts: in the capsule and by transfer.
    let program = [&b"copy "[..], &vec![b'x'; 300_000]].concat();
    let mut at = 0;
    for length in [3, 4096, 200_000, program.len()] {
        let bytes = &program[at..program.len().min(at + length)];
        let command = part(INDEX, program.len(), at, bytes.len());
        let reply = match bytes.len() {
            0..=8192 => admin.command_in_capsule(command, bytes),
            _ => admin.command(command, bytes, 0),
        };
        assert_eq!(reply.status, 0, "at {at}");
        at += bytes.len();
    }
    let list = log(&mut admin, 0x82);
    assert_eq!(u32_at(&list, 0), INDEX + 1, "by index");
    let entry = &list[64 + INDEX as usize * 64..][..64];
    assert_eq!((entry[0], entry[1]), (1 | 1 << 3, 0xC7), "downloaded, unique, not active");
    assert_eq!(u64_at(entry, 8), 0xABCD | u64::from(INDEX) << 32, "PID");

    let input: Vec<u8> = (0..3_000_000u32).map(|i| (i % 253) as u8).collect();
    memory_write(&mut io, 4096, &input);
    let ranges = [range(4, 4096, 3_000_000), range(4, 8 << 20, 3_000_000)];
    let rsid = create_set(&mut admin, &ranges);
    assert_eq!(rsid.status, 0);
    let rsid = rsid.result as u32;
    let sets = log(&mut admin, 0x84);
    assert_eq!((u32_at(&sets, 0), sets[64], sets[66], sets[67]), (1, rsid as u8, 2, 0));
    assert_eq!(sets[96..128], ranges[0]);

    let run = |io: &mut Wire| execute(io, execution(INDEX, rsid, 0, 0, 2), &[]);
    assert_eq!(run(&mut io).status, 0x198, "not activated");
    assert_eq!(activate(&mut admin, INDEX, true), 0);
    assert_eq!(log(&mut admin, 0x82)[64 + INDEX as usize * 64] & 4, 4, "active");
    let reply = run(&mut io);
    assert_eq!((reply.status, reply.result), (0, 3_000_000));
    assert!(memory_read(&mut io, 8 << 20, 3_000_000) == input);
    // The same with the ranges in the data, and parameters behind them.
    memory_write(&mut io, 8 << 20, &vec![0; 3_000_000]);
    let data = [&ranges.concat()[..], b"parameters"].concat();
    let reply = execute(&mut io, execution(INDEX, 0, 2, data.len(), 2), &data);
    assert_eq!((reply.status, reply.result), (0, 3_000_000));
    assert!(memory_read(&mut io, 8 << 20, 3_000_000) == input);

    // Counted: the number of bytes stands before them (bit 8).
    let data = [range(4, 4097, 77), range(4, 1 << 20, 1001)].concat();
    let reply = execute(&mut io, execution(INDEX, 0, 2, data.len(), 2 | 1 << 8), &data);
    assert_eq!((reply.status, reply.result), (0, 77));
    let found = memory_read(&mut io, 1 << 20, 88);
    assert_eq!((u64_at(&found, 0), &found[8..85]), (77, &input[1..78]));

    assert_eq!(delete_set(&mut admin, rsid), 0);
    assert_eq!(unload(&mut admin, INDEX), 0x199, "active");
    assert_eq!(activate(&mut admin, INDEX, false), 0);
    assert_eq!(unload(&mut admin, INDEX), 0);
    assert!(u32_at(&log(&mut admin, 0x82), 0) < INDEX);
}

#[test]
fn what_runs_can_be_aborted_and_is_not_pulled_away() {
    let (mut admin, mut io) = hosts(drive(Admission::Any));
    assert_eq!(load(&mut admin, INDEX, b"spin"), 0);
    assert_eq!(activate(&mut admin, INDEX, true), 0);
    let rsid = create_set(&mut admin, &[range(4, 0, 4096)]).result as u32;
    let cid = io.post(execution(INDEX, rsid, 0, 0, 0), &[]);
    // Wait until the list of programs shows that it has begun.
    while log(&mut admin, 0x84)[67] == 0 {}
    assert_eq!(unload(&mut admin, INDEX), 0x199);
    assert_eq!(activate(&mut admin, INDEX, false), 0x199);
    assert_eq!(load(&mut admin, INDEX, b"copy"), 0x199);
    assert_eq!(delete_set(&mut admin, rsid), 0x195);
    let second = io.post(execution(INDEX, rsid, 0, 0, 0), &[]);
    let (answered, status, _) = io.response();
    assert_eq!((answered, status), (second, 0x195), "two executions on one set");
    let abort = |qid: u32, cid: u32| Command::new(0x08, 0).dword(10, qid | cid << 16);
    let other = admin.command(abort(1, u32::from(cid) + 99), &[], 0);
    assert_eq!((other.status, other.result & 1), (0, 1), "no such command");
    let aborted = admin.command(abort(1, cid.into()), &[], 0);
    assert_eq!((aborted.status, aborted.result & 1), (0, 0));
    let (answered, status, _) = io.response();
    assert_eq!((answered, status), (cid, 0x007));
    assert_eq!(delete_set(&mut admin, rsid), 0);
    // It ends by its time limit: 30 ms in the upper half of the first parameter.
    let run = execution(INDEX, 0, 0, 96, 0).dword(11, 30);
    let reply = io.command(run, &payload(INDEX), 0);
    assert_eq!(reply.status, 0x7C0);
    assert_eq!(activate(&mut admin, INDEX, false), 0);
    assert_eq!(unload(&mut admin, INDEX), 0);
}

/// Returns a payload of our own: one source, a byte of block 0.
pub(super) fn payload(index: u32) -> Vec<u8> {
    let mut data = [&b"CSDX\x01\0\x01\0"[..], &[0; 56 + 32]].concat();
    data[8..16].copy_from_slice(&(0xABCD | u64::from(index) << 32).to_le_bytes());
    (data[64], data[68], data[88]) = (2, 1, 1);
    data
}

#[test]
fn a_host_that_leaves_takes_its_execution_with_it() {
    let address = drive(Admission::Any);
    let (mut admin, mut io) = hosts(address);
    assert_eq!(load(&mut admin, INDEX, b"spin"), 0);
    assert_eq!(activate(&mut admin, INDEX, true), 0);
    let rsid = create_set(&mut admin, &[range(4, 0, 4096)]).result as u32;
    io.post(execution(INDEX, rsid, 0, 0, 0), &[]);
    while log(&mut admin, 0x84)[67] == 0 {}
    drop(io);
    while log(&mut admin, 0x84)[67] == 1 {}
    assert_eq!(delete_set(&mut admin, rsid), 0);
}

#[test]
fn what_is_wrong_with_loading_has_its_status() {
    let (mut admin, mut io) = hosts(drive(Admission::Any));
    assert_eq!(load(&mut admin, 0, b"copy"), 0x19A, "the drive's own");
    assert_eq!(load(&mut admin, 15, b"copy"), 0x19A);
    assert_eq!(load(&mut admin, 32, b"copy"), 0x18F);
    assert_eq!(load(&mut admin, INDEX, b"nonsense"), 0x18E, "not a program");
    assert_eq!(activate(&mut admin, INDEX, true), 0x196);
    let other = part(INDEX, 4, 0, 4).byte(42, 0xC8);
    assert_eq!(admin.command_in_capsule(other, b"copy").status, 0x190, "another type");
    let big = part(INDEX, (4 << 20) + 1, 0, 4);
    assert_eq!(admin.command_in_capsule(big, b"copy").status, 0x19B);
    // Wrong parts: of another length than announced, beyond the end, out of order, of another
    // program.
    let send = |admin: &mut Wire, whole, offset, said| {
        admin.command_in_capsule(part(INDEX, whole, offset, said), b"copy").status
    };
    assert_eq!(send(&mut admin, 8, 0, 3), 0x002);
    assert_eq!(send(&mut admin, 8, 6, 4), 0x002);
    assert_eq!(send(&mut admin, 8, 4, 4), 0x18E, "no beginning");
    assert_eq!(send(&mut admin, 9, 0, 4), 0);
    assert_eq!(send(&mut admin, 9, 5, 4), 0x18E, "a gap");
    assert_eq!(send(&mut admin, 12, 4, 4), 0x18E, "another length");
    assert_eq!(activate(&mut admin, INDEX, true), 0x196, "not whole");
    let run = execution(INDEX, 0, 0, 96, 0);
    assert_eq!(execute(&mut io, run, &payload(INDEX)).status, 0x196);
    assert_eq!(unload(&mut admin, INDEX), 0, "half a program");
    assert_eq!(unload(&mut admin, INDEX), 0x196);
    assert_eq!(unload(&mut admin, 3), 0x19A);
    // The number of active programs is limited, and so is the memory for a host's bytes.
    let long = [&b"copy "[..], &vec![0; 1_000_000 - 5]].concat();
    for index in INDEX..INDEX + 9 {
        let command = part(index, long.len(), 0, long.len());
        let expected = if index < INDEX + 8 { 0 } else { 0x194 };
        assert_eq!(admin.command(command, &long, 0).status, expected, "index {index}");
    }
    assert_eq!(load(&mut admin, INDEX + 8, b"copy"), 0);
    for index in INDEX..INDEX + 8 {
        assert_eq!(activate(&mut admin, index, true), 0);
    }
    assert_eq!(activate(&mut admin, INDEX, true), 0, "it is");
    assert_eq!(activate(&mut admin, INDEX + 8, true), 0x193);
    // Of no compute namespace; selections that there are not.
    assert_eq!(admin.command(Command::new(0x88, 1).dword(10, INDEX), &[], 0).status, 0x00B);
    assert_eq!(admin.command(Command::new(0x88, 5).dword(10, 2 << 16), &[], 0).status, 0x002);
    assert_eq!(admin.command(Command::new(0x89, 5).dword(10, 2), &[], 0).status, 0x002);
}

#[test]
fn what_is_wrong_with_ranges_has_its_status() {
    let (mut admin, mut io) = hosts(drive(Admission::Any));
    let create = |admin: &mut Wire, ranges: &[[u8; 32]]| create_set(admin, ranges).status;
    assert_eq!(create(&mut admin, &[range(1, 0, 8)]), 0x18B);
    assert_eq!(create(&mut admin, &[range(4, 64 << 20, 8)]), 0x18C);
    assert_eq!(create(&mut admin, &[range(4, 0, 0)]), 0x18C);
    assert_eq!(create(&mut admin, &[range(4, 0, 8), range(4, 4, 8)]), 0x197);
    assert_eq!(create(&mut admin, &[range(4, 0, 8); 9]), 0x191);
    assert_eq!(create(&mut admin, &[]), 0x002);
    for _ in 0..64 {
        assert_eq!(create(&mut admin, &[range(4, 0, 8)]), 0);
    }
    assert_eq!(create(&mut admin, &[range(4, 0, 8)]), 0x192);
    assert_eq!(delete_set(&mut admin, 65), 0x18D);
    assert_eq!(delete_set(&mut admin, 64), 0);

    assert_eq!(load(&mut admin, INDEX, b"copy"), 0);
    assert_eq!(load(&mut admin, INDEX + 1, b"fail"), 0);
    for index in [INDEX, INDEX + 1] {
        assert_eq!(activate(&mut admin, index, true), 0);
    }
    let run = |io: &mut Wire, command, data: &[u8]| execute(io, command, data).status;
    assert_eq!(run(&mut io, execution(INDEX, 64, 0, 0, 0), &[]), 0x18D);
    assert_eq!(run(&mut io, execution(INDEX, 1, 1, 32, 0), &range(4, 0, 8)), 0x002, "both");
    assert_eq!(run(&mut io, execution(INDEX, 0, 9, 32, 0), &range(4, 0, 8)), 0x191);
    assert_eq!(run(&mut io, execution(INDEX, 0, 2, 32, 0), &range(4, 0, 8)), 0x18E, "too few");
    assert_eq!(run(&mut io, execution(INDEX, 0, 1, 32, 0), &range(4, 64 << 20, 8)), 0x18C);
    assert_eq!(run(&mut io, execution(INDEX, 0, 1, 32, 0), &range(2, 0, 8)), 0x18B);
    assert_eq!(run(&mut io, execution(INDEX, 1, 0, 0, 2), &[]), 0x002, "writes no range of it");
    assert_eq!(run(&mut io, execution(INDEX, 1, 0, 0, 1 << 8), &[]), 0x002, "counts nothing");
    assert_eq!(run(&mut io, execution(INDEX, 1, 0, 0, 1 | 1 << 8), &[]), 0x18C, "no room");
    assert_eq!(run(&mut io, execution(INDEX + 1, 1, 0, 0, 0), &[]), 0x7C0, "it fails");
    assert_eq!(run(&mut io, execution(INDEX, 1, 0, 5, 0), b"wrong"), 0x18E);
    assert_eq!(run(&mut io, execution(INDEX + 2, 1, 0, 0, 0), &[]), 0x196);
    assert_eq!(run(&mut io, execution(15, 1, 0, 0, 0), &[]), 0x18F);
    assert_eq!(run(&mut io, execution(INDEX, 1, 0, 0, 0).dword(11, 60_000), &[]), 0x18A, "time");
    let memory = execution(INDEX, 1, 0, 0, 0).dword(10, 65 << 16);
    assert_eq!(run(&mut io, memory, &[]), 0x18A, "memory");
    // More than its range holds; and a program of the drive's own over ranges.
    let ranges = [range(4, 0, 64), range(4, 64, 8)].concat();
    assert_eq!(run(&mut io, execution(INDEX, 0, 2, 64, 2), &ranges), 0x7C0);
    memory_write(&mut io, 0, &[7, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0]);
    let mut count = [0u8; 16];
    (count[0], count[8]) = (1, 7);
    let data = [&range(4, 0, 12)[..], &count].concat();
    let reply = execute(&mut io, execution(0, 0, 1, data.len(), 0), &data);
    assert_eq!((reply.status, reply.result), (0, 2));
}

#[test]
fn only_admitted_programs_are_taken() {
    let digest = csd_drive::compute::digest(b"copy that");
    let (mut admin, _io) = hosts(drive(Admission::Digests(vec![digest])));
    assert_eq!(load(&mut admin, INDEX, b"copy this"), 0x015);
    assert_eq!(activate(&mut admin, INDEX, true), 0x196);
    assert_eq!(load(&mut admin, INDEX, b"copy that"), 0);
    assert_eq!(activate(&mut admin, INDEX, true), 0);
}
