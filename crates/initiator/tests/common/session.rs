//! One connection of the drive in memory: the controller's state machines of `csd_nvme` on a
//! stream, commands one after another, and the faults on demand.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::controller::Controller;
use csd_nvme::controller::admin::{self, Answer};
use csd_nvme::controller::connect::Request;
use csd_nvme::controller::queue::{Permit, Queue};
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin, Fabrics, Nvm};
use csd_nvme::pdu::{FatalStatus, Flags, Kind, R2t};
use csd_nvme::status::Status;
use csd_nvme::tcp::Fatal;
use csd_nvme::tcp::controller::{Connection, Event, Limits, Target};
use csd_reactor::{Class, Listener, Stream, sleep, spawn};

use super::drive::{BLOCK_NSID, Drive, Fault};

pub async fn serve(drive: Rc<Drive>, listener: Listener) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        drop(spawn(Class::Foreground, Session::new(&drive, stream).run()));
    }
}

/// A command whose data is not complete.
struct Waiting {
    permit: Permit,
    sqe: Sqe,
    payload: Vec<u8>,
    granted: u32,
    damaged: bool,
}

struct Session {
    drive: Rc<Drive>,
    stream: Stream,
    wire: Connection,
    queue: Queue,
    controller: Option<Rc<RefCell<Controller>>>,
    waiting: BTreeMap<u16, Waiting>,
    /// Identifier behind each transfer tag, and of the latest capsule.
    tags: BTreeMap<u16, u16>,
    latest: u16,
    out: Vec<u8>,
    over: bool,
}

impl Session {
    fn new(drive: &Rc<Drive>, stream: Stream) -> Self {
        let behaviour = &drive.behaviour;
        let wire = Connection::new(Limits {
            h2c_data_bytes_max: behaviour.h2c_data_bytes_max,
            in_capsule_bytes_max: behaviour.in_capsule_bytes_max.max(8192),
            digests: behaviour.digests,
        });
        Self {
            drive: Rc::clone(drive),
            stream,
            wire,
            queue: Queue::unconnected(),
            controller: None,
            waiting: BTreeMap::new(),
            tags: BTreeMap::new(),
            latest: 0,
            out: Vec::new(),
            over: false,
        }
    }

    fn fault(&self, fault: Fault) -> bool {
        self.drive.behaviour.fault == Some(fault)
    }

    async fn run(mut self) {
        let (begun, ended) = self.drive.sessions.get();
        self.drive.sessions.set((begun + 1, ended));
        if self.fault(Fault::Mute) {
            return sleep(Duration::from_secs(3600)).await;
        }
        let mut buffer = vec![0; 40_000];
        while !self.over {
            match self.stream.try_recv(&mut buffer) {
                Ok(Some(0)) | Err(_) => break,
                Ok(None) if self.stream.readable().await.is_err() => break,
                Ok(None) => {}
                Ok(Some(count)) => {
                    if self.receive(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
            }
        }
    }

    async fn receive(&mut self, mut input: &[u8]) -> std::io::Result<()> {
        while let Some(event) = self.wire.next(&mut input).expect("the host is lawful") {
            match event {
                Event::Connected(_) if self.fault(Fault::NoIcResp) => {
                    self.out.extend_from_slice(&self.wire.response(&Cqe::zeroed()));
                }
                Event::Connected(reply) => self.out.extend_from_slice(&reply),
                Event::Command { sqe, data } => self.command(sqe, data).await,
                Event::Data { target, offset, bytes } => {
                    let cid = self.cid_of(target);
                    if let Some(waiting) = self.waiting.get_mut(&cid) {
                        let offset = offset as usize;
                        waiting.payload[offset..offset + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Event::DataEnd { target, complete, digest_matches } => {
                    self.data_end(self.cid_of(target), complete, digest_matches).await;
                }
                Event::Terminated(_) => self.over = true,
            }
            let out = std::mem::take(&mut self.out);
            self.stream.send_all(&out).await?;
        }
        Ok(())
    }

    fn cid_of(&self, target: Target) -> u16 {
        match target {
            Target::Capsule => self.latest,
            Target::Transfer(tag) => self.tags[&tag],
        }
    }

    fn is_admin(&self) -> bool {
        self.queue.qid() == 0
    }

    async fn command(&mut self, sqe: Sqe, in_capsule: u32) {
        let cid = sqe.cid();
        let permit = self.queue.begin(cid).expect("the host keeps to its queue");
        self.latest = cid;
        let wanted = if self.is_admin() {
            admin::data_to_controller(&sqe)
        } else {
            self.drive.data_to_controller(&sqe)
        };
        let payload = vec![0; wanted as usize];
        let waiting = Waiting { permit, sqe, payload, granted: in_capsule, damaged: false };
        self.waiting.insert(cid, waiting);
        if wanted == 0 {
            self.start(cid).await;
        } else if in_capsule == 0 {
            self.grant(cid);
        } else {
            assert_eq!(in_capsule, wanted, "in-capsule data is whole");
        }
    }

    fn grant(&mut self, cid: u16) {
        let is_admin = self.is_admin();
        let waiting = self.waiting.get_mut(&cid).expect("waits");
        let left = waiting.payload.len() as u32 - waiting.granted;
        let mut length = left.min(self.drive.behaviour.grant_bytes_max);
        let offset = waiting.granted;
        let is_write = !is_admin && waiting.sqe.nsid() == BLOCK_NSID;
        if is_write && self.drive.behaviour.fault == Some(Fault::R2tBeyond) {
            length = left + 4;
        }
        waiting.granted += length;
        let (tag, r2t) = self.wire.grant(cid, offset, length);
        self.tags.insert(tag, cid);
        self.out.extend_from_slice(&r2t);
        if is_write && self.fault(Fault::R2tTwice) {
            let mut r2t = R2t::zeroed();
            r2t.set_cccid(cid).set_ttag(9).set_r2to(offset + length).set_r2tl(4);
            let encoder = self.wire.encoder();
            let prefix = encoder.prefix(Kind::R2T, Flags::default(), r2t.as_bytes(), 0);
            self.out.extend_from_slice(&prefix);
        }
    }

    async fn data_end(&mut self, cid: u16, complete: bool, digest_matches: bool) {
        let early = self.fault(Fault::AnswerEarly) && !self.is_admin();
        let Some(waiting) = self.waiting.get_mut(&cid) else { return };
        waiting.damaged |= !digest_matches;
        if early && waiting.sqe.nsid() == BLOCK_NSID {
            let waiting = self.waiting.remove(&cid).expect("waits");
            return self.answer(waiting.permit, Err(Status::WRITE_FAULT));
        }
        if !complete {
            return;
        }
        if waiting.granted < waiting.payload.len() as u32 {
            self.grant(cid);
        } else {
            self.start(cid).await;
        }
    }

    async fn start(&mut self, cid: u16) {
        let Waiting { permit, sqe, payload, damaged, .. } =
            self.waiting.remove(&cid).expect("waits");
        assert!(!damaged, "the host's digests are right");
        if Admin(sqe.opcode()) == Admin::FABRICS && fabrics::fctype(&sqe) == Fabrics::CONNECT {
            return self.connect(permit, &sqe, &payload);
        }
        if self.is_admin() {
            if Admin(sqe.opcode()) == Admin::KEEP_ALIVE {
                self.drive.keep_alives.set(self.drive.keep_alives.get() + 1);
            }
            let controller = self.controller.as_ref().expect("connected");
            let drive = &*self.drive;
            let answer = controller.borrow_mut().admin(&sqe, &payload, &drive.subsystem, drive);
            let Answer::Complete { status, result, data } = answer else { panic!("held") };
            let answer = if status.is_success() { Ok((result, data)) } else { Err(status) };
            return self.answer(permit, answer);
        }
        *self.drive.commands.borrow_mut().entry(self.queue.qid()).or_default() += 1;
        if self.drive.behaviour.delay > Duration::ZERO {
            sleep(self.drive.behaviour.delay).await;
        }
        let answer = self.drive.execute(&sqe, &payload);
        let is_read = sqe.nsid() == BLOCK_NSID && Nvm(sqe.opcode()) == Nvm::READ;
        match self.drive.behaviour.fault {
            Some(fault) if is_read => self.misbehave(fault, permit, &sqe, answer),
            _ => self.answer(permit, answer),
        }
    }

    fn connect(&mut self, permit: Permit, sqe: &Sqe, payload: &[u8]) {
        let drive = Rc::clone(&self.drive);
        if self.fault(Fault::Refuse) {
            return self.answer(permit, Err(Status::CONNECT_INVALID_HOST));
        }
        let request = match Request::parse(sqe, payload, &drive.subsystem) {
            Ok(request) => request,
            Err(refused) => return self.answer(permit, Err(refused.status)),
        };
        let mut controllers = drive.controllers.borrow_mut();
        let cntlid = if request.is_admin() {
            let cntlid = controllers.len() as u16 + 1;
            let controller = Controller::new(cntlid, request.connect.kato());
            controllers.insert(cntlid, Rc::new(RefCell::new(controller)));
            cntlid
        } else {
            request.cntlid
        };
        let controller = Rc::clone(&controllers[&cntlid]);
        assert!(request.is_admin() || controller.borrow().io_allowed());
        self.controller = Some(controller);
        let cqe = permit.complete(Status::SUCCESS, cntlid.into());
        self.queue = Queue::of(&request.connect);
        self.out.extend_from_slice(&self.wire.response(&cqe));
    }

    fn answer(&mut self, permit: Permit, answer: Result<(u64, Vec<u8>), Status>) {
        let (status, result, data) = match answer {
            Ok((result, data)) => (Status::SUCCESS, result, data),
            Err(status) => (status, 0, Vec::new()),
        };
        let skip = permit.queue().may_skip_response() && status.is_success() && result == 0;
        self.data(permit.cid(), &data, skip);
        let cqe = permit.complete(status, result);
        if data.is_empty() || !skip {
            self.out.extend_from_slice(&self.wire.response(&cqe));
        }
    }

    fn data(&mut self, cid: u16, data: &[u8], success: bool) {
        let most = self.drive.behaviour.data_bytes_max;
        for (index, piece) in data.chunks(most).enumerate() {
            let offset = index * most;
            let last = offset + piece.len() == data.len();
            let (offset, length) = (offset as u32, piece.len() as u32);
            let prefix = self.wire.data_prefix(cid, offset, length, last, last && success);
            self.out.extend_from_slice(&prefix);
            self.out.extend_from_slice(piece);
            self.out.extend(self.wire.encoder().data_digest([piece]).into_iter().flatten());
        }
    }

    fn misbehave(
        &mut self,
        fault: Fault,
        permit: Permit,
        sqe: &Sqe,
        answer: Result<(u64, Vec<u8>), Status>,
    ) {
        let cid = permit.cid();
        let (_, mut data) = answer.clone().expect("reads within the namespace");
        match fault {
            Fault::WrongCid => {
                let mut cqe = permit.complete(Status::SUCCESS, 0);
                cqe.set_cid(cid ^ 32); // within the queue, and idle
                self.out.extend_from_slice(&self.wire.response(&cqe));
            }
            Fault::TooMuchData => {
                data.resize(sqe.sgl().length() as usize + 4, 0);
                self.answer(permit, Ok((0, data)));
            }
            Fault::WrongOffset => {
                let prefix = self.wire.data_prefix(cid, 4, data.len() as u32 - 4, true, true);
                self.out.extend_from_slice(&prefix);
                self.out.extend_from_slice(&data[4..]);
                let _cqe = permit.complete(Status::SUCCESS, 0);
            }
            Fault::ShortData => {
                data.pop();
                self.answer(permit, Ok((0, data)));
            }
            Fault::AnswerTwice => {
                self.answer(permit, Ok((1, data)));
                let mut cqe = Cqe::zeroed();
                cqe.set_cid(cid);
                self.out.extend_from_slice(&self.wire.response(&cqe));
            }
            Fault::Silence => drop(permit.complete(Status::SUCCESS, 0)),
            Fault::Close => {
                self.over = true;
                let _cqe = permit.complete(Status::SUCCESS, 0);
            }
            Fault::Terminate => {
                let status = FatalStatus::LIMIT_EXCEEDED;
                let fatal = Fatal { status, information: 0, header: vec![7; 64] };
                self.out.extend(fatal.encode(Kind::C2H_TERM_REQ));
                let _cqe = permit.complete(Status::SUCCESS, 0);
            }
            Fault::Garbage => {
                self.out.extend([0xEE; 100]);
                let _cqe = permit.complete(Status::SUCCESS, 0);
            }
            Fault::BadDigest => {
                self.answer(permit, Ok((0, data)));
                let last = self.out.len() - 1;
                self.out[last] ^= 1;
            }
            _ => self.answer(permit, answer),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Commands of a connection that is gone need no answer.
        self.queue.close();
        let (begun, ended) = self.drive.sessions.get();
        self.drive.sessions.set((begun, ended + 1));
    }
}
