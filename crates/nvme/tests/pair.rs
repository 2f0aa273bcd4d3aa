//! Host and controller state machines driven against each other in memory, over a pipe that cuts
//! the stream anywhere: initialise, connect, identify, write and read blocks, with and without
//! digests, in the capsule and by transfer.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // sizes here are small

use std::collections::VecDeque;

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::admin::{self, Answer};
use csd_nvme::controller::connect::Request;
use csd_nvme::controller::queue::{Permit, Queue as ControllerQueue};
use csd_nvme::controller::{Backing, Controller, Namespace, NamespaceKind, Subsystem};
use csd_nvme::host::{self, queue};
use csd_nvme::log::Smart;
use csd_nvme::opcode::{Admin, Csi, Fabrics};
use csd_nvme::status::Status;
use csd_nvme::tcp::Digests;
use csd_nvme::tcp::controller::{Connection, Event, Limits, Target};
use csd_nvme::{fabrics, identify, nvm, property};
use proptest::prelude::*;

const NQN: &str = "nqn.2026-11.io.csdstore:pair";
const BLOCK: usize = 512;

struct Counters;

impl Backing for Counters {
    fn used(&self, _nsid: u32) -> u64 {
        42
    }
    fn smart(&self) -> Smart {
        Smart::zeroed()
    }
    fn absent_delete_is_error(&self, _nsid: u32) -> bool {
        false
    }
    fn set_absent_delete_is_error(&self, _nsid: u32, _error: bool) {}
}

fn subsystem() -> Subsystem {
    let kind = NamespaceKind::Block { blocks: 64, block_bytes_log2: 9 };
    Subsystem {
        nqn: NQN.into(),
        serial: "PAIR".into(),
        model: "pair".into(),
        firmware: "1".into(),
        namespaces: vec![Namespace { nsid: 1, nguid: [1; 16], kind }],
        volatile_cache: false,
        io_queues_max: 4,
        queue_entries_max: 64,
        mdts: 5,
        in_capsule_bytes_max: 8192,
        life: 1,
    }
}

/// A drive in memory: one connection, admin and block commands on the same queue for brevity.
struct Drive {
    subsystem: Subsystem,
    connection: Connection,
    queue: ControllerQueue,
    controller: Option<Controller>,
    blocks: Vec<u8>,
    waiting: Option<(Permit, Sqe, Vec<u8>)>,
    out: Vec<u8>,
}

impl Drive {
    fn new(digests: Digests) -> Self {
        let limits = Limits { h2c_data_bytes_max: 4096, in_capsule_bytes_max: 8192, digests };
        Self {
            subsystem: subsystem(),
            connection: Connection::new(limits),
            queue: ControllerQueue::unconnected(),
            controller: None,
            blocks: vec![0; 64 * BLOCK],
            waiting: None,
            out: Vec::new(),
        }
    }

    fn receive(&mut self, mut input: &[u8]) {
        while let Some(event) = self.connection.next(&mut input).expect("a lawful host") {
            match event {
                Event::Connected(reply) => self.out.extend_from_slice(&reply),
                Event::Command { sqe, data } => self.command(sqe, data),
                Event::Data { offset, bytes, .. } => {
                    let (_, _, payload) = self.waiting.as_mut().expect("data has a command");
                    payload[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
                }
                Event::DataEnd { complete, digest_matches, target } => {
                    assert!(digest_matches);
                    assert!(matches!(target, Target::Capsule | Target::Transfer(0)));
                    if complete {
                        self.start();
                    }
                }
                Event::Terminated(request) => panic!("terminated: {request:?}"),
            }
        }
    }

    fn command(&mut self, sqe: Sqe, in_capsule: u32) {
        let permit = self.queue.begin(sqe.cid()).expect("a lawful host");
        let admin = self.controller.is_none() || sqe.nsid() != 1 || is_admin(&sqe);
        let wanted = if admin { admin::data_to_controller(&sqe) } else { block_data(&sqe) };
        self.waiting = Some((permit, sqe, vec![0; wanted as usize]));
        if wanted == 0 {
            self.start();
        } else if in_capsule == 0 {
            let (ttag, r2t) = self.connection.grant(sqe.cid(), 0, wanted);
            assert_eq!(ttag, 0);
            self.out.extend_from_slice(&r2t);
        }
    }

    fn start(&mut self) {
        let (permit, sqe, payload) = self.waiting.take().expect("a command waits");
        if Admin(sqe.opcode()) == Admin::FABRICS && fabrics::fctype(&sqe) == Fabrics::CONNECT {
            let request = Request::parse(&sqe, &payload, &self.subsystem).expect("a lawful host");
            assert!(request.is_admin());
            self.controller = Some(Controller::new(1, request.connect.kato()));
            // The admin queue goes on with its real size; its Connect is answered here.
            let cqe = permit.complete(Status::SUCCESS, 1);
            self.queue = ControllerQueue::of(&request.connect);
            return self.out.extend_from_slice(&self.connection.response(&cqe));
        }
        let controller = self.controller.as_mut().expect("connected");
        if is_admin(&sqe) {
            let answer = controller.admin(&sqe, &payload, &self.subsystem, &Counters);
            let Answer::Complete { status, result, data } = answer else { panic!("held") };
            return self.answer(permit, status, result, &data);
        }
        match nvm::Command::parse(&sqe).expect("a lawful host") {
            nvm::Command::Flush => self.answer(permit, Status::SUCCESS, 0, &[]),
            nvm::Command::Read(extent) => {
                let start = extent.slba as usize * BLOCK;
                let data = self.blocks[start..start + extent.blocks as usize * BLOCK].to_vec();
                self.answer(permit, Status::SUCCESS, 0, &data);
            }
            nvm::Command::Compare(extent) => {
                let start = extent.slba as usize * BLOCK;
                let same = self.blocks[start..start + payload.len()] == payload;
                let status = if same { Status::SUCCESS } else { Status::COMPARE_FAILURE };
                self.answer(permit, status, 0, &[]);
            }
            nvm::Command::Write { extent, .. } => {
                let start = extent.slba as usize * BLOCK;
                self.blocks[start..start + payload.len()].copy_from_slice(&payload);
                self.answer(permit, Status::SUCCESS, 0, &[]);
            }
            other => panic!("{other:?} is not in this story"),
        }
    }

    fn answer(&mut self, permit: Permit, status: Status, result: u64, data: &[u8]) {
        let cid = permit.cid();
        let skip = permit.queue().may_skip_response() && status.is_success() && result == 0;
        let pieces: Vec<&[u8]> = data.chunks(1000).collect();
        let mut offset = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let last = index + 1 == pieces.len();
            let length = u32::try_from(piece.len()).unwrap();
            let prefix = self.connection.data_prefix(cid, offset, length, last, last && skip);
            self.out.extend_from_slice(&prefix);
            self.out.extend_from_slice(piece);
            let digest = self.connection.encoder().data_digest([*piece]);
            self.out.extend(digest.into_iter().flatten());
            offset += length;
        }
        let cqe = permit.complete(status, result);
        if pieces.is_empty() || !skip {
            self.out.extend_from_slice(&self.connection.response(&cqe));
        }
    }
}

fn is_admin(sqe: &Sqe) -> bool {
    sqe.opcode() == Admin::FABRICS.0 || sqe.cdw15() == 0xAD // the test marks its admin commands
}

fn block_data(sqe: &Sqe) -> u32 {
    match nvm::Command::parse(sqe) {
        Ok(nvm::Command::Write { extent, .. } | nvm::Command::Compare(extent)) => {
            extent.blocks * BLOCK as u32
        }
        _ => 0,
    }
}

/// The pair: a host queue, a drive, and a pipe that delivers in pieces of the given sizes.
struct Pair {
    host: queue::Queue,
    drive: Drive,
    cuts: VecDeque<usize>,
    to_drive: Vec<u8>,
    h2c_data_bytes_max: u32,
}

impl Pair {
    fn new(wanted: Digests, willing: Digests, cuts: Vec<usize>) -> Self {
        let (host, request) = queue::Queue::new(8, wanted);
        let mut pair = Self {
            host,
            drive: Drive::new(willing),
            cuts: cuts.into(),
            to_drive: request.to_vec(),
            h2c_data_bytes_max: 0,
        };
        pair.turn(&[], &mut Vec::new());
        assert_eq!(pair.h2c_data_bytes_max, 4096);
        pair
    }

    fn cut(&mut self, length: usize) -> usize {
        let cut = self.cuts.pop_front().unwrap_or(usize::MAX);
        self.cuts.push_back(cut);
        cut.clamp(1, length)
    }

    /// Lets bytes flow until both sides are quiet; returns the completion seen, if any.
    fn turn(&mut self, send: &[u8], receive: &mut Vec<u8>) -> Option<queue::Completion> {
        let mut done = None;
        loop {
            while !self.to_drive.is_empty() {
                let cut = self.cut(self.to_drive.len());
                let piece: Vec<u8> = self.to_drive.drain(..cut).collect();
                self.drive.receive(&piece);
            }
            if self.drive.out.is_empty() {
                return done;
            }
            let cut = self.cut(self.drive.out.len());
            let piece: Vec<u8> = self.drive.out.drain(..cut).collect();
            let mut input = &piece[..];
            while let Some(event) = self.host.next(&mut input).expect("a lawful controller") {
                match event {
                    queue::Event::Connected { h2c_data_bytes_max } => {
                        self.h2c_data_bytes_max = h2c_data_bytes_max;
                    }
                    queue::Event::Data { offset, bytes, .. } => {
                        assert_eq!(offset as usize, receive.len());
                        receive.extend_from_slice(bytes);
                    }
                    queue::Event::Send { cid, ttag, offset, length } => {
                        let range = offset as usize..(offset + length) as usize;
                        let wire = self.host.connection();
                        let most = self.h2c_data_bytes_max as usize;
                        for (index, piece) in send[range].chunks(most).enumerate() {
                            let at = offset + (index * most) as u32;
                            let size = piece.len() as u32;
                            let last = at + size == offset + length;
                            let prefix = wire.data_prefix(cid, ttag, at, size, last);
                            self.to_drive.extend_from_slice(&prefix);
                            self.to_drive.extend_from_slice(piece);
                            let digest = wire.encoder().data_digest([piece]);
                            self.to_drive.extend(digest.into_iter().flatten());
                        }
                    }
                    queue::Event::Completed(completion) => {
                        assert!(done.replace(completion).is_none(), "answered twice");
                    }
                    queue::Event::Terminated(request) => panic!("terminated: {request:?}"),
                }
            }
        }
    }

    fn command(&mut self, mut sqe: Sqe, send: &[u8], in_capsule: bool, to_host: u32) -> Reply {
        let to_controller = send.len() as u32;
        let transfer = queue::Transfer { to_host, to_controller, in_capsule };
        let prefix = self.host.begin(&mut sqe, transfer).expect("room");
        self.to_drive.extend_from_slice(&prefix);
        if in_capsule && !send.is_empty() {
            self.to_drive.extend_from_slice(send);
            let digest = self.host.connection().encoder().data_digest([send]);
            self.to_drive.extend(digest.into_iter().flatten());
        }
        let mut data = Vec::new();
        let completion = self.turn(send, &mut data).expect("answered");
        assert!(!completion.damaged);
        assert_eq!(completion.received as usize, data.len());
        Reply { status: completion.cqe.status(), result: completion.cqe.result(), data }
    }

    fn connect(&mut self, cattr: u8) {
        let data = host::connect_data(&[9; 16], "nqn.2014-08.org.nvmexpress:h", NQN, None);
        let sqe = fabrics::connect(0, 32, 5000, cattr);
        let reply = self.command(sqe, data.as_bytes(), true, 0);
        assert_eq!((reply.status, reply.result), (Status::SUCCESS, 1));
        let cap = self.command(fabrics::property_get(property::CAP, true), &[], false, 0);
        assert_eq!(property::Capabilities(cap.result).mqes(), 63);
        let early = self.command(admin_sqe(identify::Cns::CONTROLLER, 0), &[], false, 4096);
        assert_eq!(early.status, Status::COMMAND_SEQUENCE_ERROR);
        let enable = property::Configuration::default()
            .with_enable(1)
            .with_css(property::CSS_ALL)
            .with_iosqes(6)
            .with_iocqes(4);
        let set = self.command(fabrics::property_set(property::CC, enable.0), &[], false, 0);
        assert_eq!(set.status, Status::SUCCESS);
        let csts = self.command(fabrics::property_get(property::CSTS, false), &[], false, 0);
        assert_eq!(csts.result, 1);
    }
}

struct Reply {
    status: Status,
    result: u64,
    data: Vec<u8>,
}

fn admin_sqe(cns: identify::Cns, nsid: u32) -> Sqe {
    let mut sqe = identify::identify(cns, nsid, Csi::NVM);
    sqe.set_cdw15(0xAD);
    sqe
}

fn story(wanted: Digests, willing: Digests, cuts: Vec<usize>, cattr: u8, seed: u8) {
    let mut pair = Pair::new(wanted, willing, cuts);
    pair.connect(cattr);
    let controller = pair.command(admin_sqe(identify::Cns::CONTROLLER, 0), &[], false, 4096);
    let controller = identify::IdentifyController::parse(&controller.data).unwrap();
    assert_eq!(controller.ioccsz(), (64 + 8192) / 16);
    let list = pair.command(admin_sqe(identify::Cns::ACTIVE_LIST, 0), &[], false, 4096);
    assert_eq!(identify::parse_namespace_list(&list.data), [1]);
    let namespace = pair.command(admin_sqe(identify::Cns::NAMESPACE, 1), &[], false, 4096);
    let namespace = identify::IdentifyNamespace::parse(&namespace.data).unwrap();
    assert_eq!((namespace.nsze(), namespace.nuse()), (64, 42));
    let data: Vec<u8> = (0..40 * BLOCK).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
    let extent = nvm::Extent { slba: 3, blocks: 40 };
    let wrote = pair.command(nvm::write(1, extent, false), &data, false, 0);
    assert_eq!(wrote.status, Status::SUCCESS);
    let compared = pair.command(nvm::compare(1, extent), &data, false, 0);
    assert_eq!(compared.status, Status::SUCCESS);
    let small = nvm::Extent { slba: 4, blocks: 2 };
    let wrote = pair.command(nvm::write(1, small, true), &[seed; 2 * BLOCK], true, 0);
    assert_eq!(wrote.status, Status::SUCCESS);
    let read = pair.command(nvm::read(1, extent), &[], false, data.len() as u32);
    let mut expected = data;
    expected[BLOCK..3 * BLOCK].fill(seed);
    assert!(read.data == expected, "data read back differs");
    assert_eq!(pair.host.in_flight(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..Default::default() })]
    #[test]
    fn any_cut_of_the_stream_tells_the_same_story(
        cuts in prop::collection::vec(1usize..700, 1..12),
        header in any::<bool>(), data in any::<bool>(), willing in any::<bool>(),
        cattr in prop_oneof![Just(0u8), Just(fabrics::CATTR_NO_FLOW_CONTROL)],
        seed in any::<u8>(),
    ) {
        let wanted = Digests { header, data };
        let willing = Digests { header: willing, data: true };
        story(wanted, willing, cuts, cattr, seed);
    }

    #[test]
    fn no_bytes_panic_the_controller(noise in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut connection = Connection::new(Limits {
            h2c_data_bytes_max: 4096, in_capsule_bytes_max: 8192, digests: Digests::default(),
        });
        let mut input = &noise[..];
        while let Ok(Some(_)) = connection.next(&mut input) {}
    }
}

#[test]
fn every_byte_alone_tells_the_same_story() {
    let all = Digests { header: true, data: true };
    story(all, all, vec![1], 0, 0x5A);
}
