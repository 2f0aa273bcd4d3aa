//! The whole controller as state machines: bytes in, PDUs, queue, Connect, admin commands, and a
//! block namespace in memory.

#![no_main]

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::admin::{self, Answer};
use csd_nvme::controller::connect::Request;
use csd_nvme::controller::queue::{Permit, Queue, Refusal};
use csd_nvme::controller::{Backing, Controller, Namespace, NamespaceKind, Subsystem};
use csd_nvme::log::Smart;
use csd_nvme::opcode::{Admin, Fabrics};
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::{Connection, Event, Limits, Target};
use csd_nvme::tcp::{Digests, Fatal};
use csd_nvme::{fabrics, kv, nvm};
use libfuzzer_sys::fuzz_target;

const BLOCKS: u64 = 64;
const LIMITS: Limits = Limits {
    h2c_data_bytes_max: 128 << 10,
    in_capsule_bytes_max: 8 << 10,
    digests: Digests { header: true, data: true },
};

struct Nothing;

impl Backing for Nothing {
    fn used(&self, _nsid: u32) -> u64 {
        0
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
    let kinds = [
        (1, NamespaceKind::Block { blocks: BLOCKS, block_bytes_log2: 12 }),
        (2, NamespaceKind::Kv { bytes: 1 << 20, value_bytes_max: 1 << 16 }),
        (5, NamespaceKind::Compute { programs: Vec::new() }),
    ];
    Subsystem {
        nqn: csd_fuzz::NQN.into(),
        serial: "fuzz".into(),
        model: "fuzz".into(),
        firmware: "1".into(),
        namespaces: kinds.map(|(nsid, kind)| Namespace { nsid, nguid: [1; 16], kind }).into(),
        volatile_cache: true,
        io_queues_max: 8,
        queue_entries_max: 128,
        mdts: 5,
        in_capsule_bytes_max: 8 << 10,
        life: 1,
    }
}

struct Drive {
    subsystem: Subsystem,
    wire: Connection,
    queue: Queue,
    controller: Option<Controller>,
    blocks: Vec<u8>,
    held: Vec<Permit>,
    // The command whose data comes, in the capsule or by a transfer.
    capsule: Option<(Permit, Sqe, Vec<u8>)>,
    transfers: Vec<Option<(Permit, Sqe, Vec<u8>)>>,
}

impl Drive {
    fn command(&mut self, sqe: Sqe, data: u32) -> bool {
        let permit = match self.queue.begin(sqe.cid()) {
            Ok(permit) => permit,
            Err(Refusal::Conflict) => {
                let _ = self.queue.conflict(sqe.cid());
                return true;
            }
            Err(Refusal::Overflow) => return false,
        };
        if data > 0 {
            self.capsule = Some((permit, sqe, vec![0; data as usize]));
            return true;
        }
        let wanted = admin::data_to_controller(&sqe);
        if (1..=64 << 10).contains(&wanted) {
            let (ttag, _) = self.wire.grant(sqe.cid(), 0, wanted);
            let slot = usize::from(ttag);
            self.transfers.resize_with(self.transfers.len().max(slot + 1), || None);
            self.transfers[slot] = Some((permit, sqe, vec![0; wanted as usize]));
            return true;
        }
        self.run(permit, &sqe, &[]);
        true
    }

    fn run(&mut self, permit: Permit, sqe: &Sqe, data: &[u8]) {
        let is_connect =
            Admin(sqe.opcode()) == Admin::FABRICS && fabrics::fctype(sqe) == Fabrics::CONNECT;
        let Some(controller) = &mut self.controller else {
            let request = Request::parse(sqe, data, &self.subsystem);
            let request = request.ok().filter(|_| is_connect);
            let status = if request.is_some() { Status::SUCCESS } else { Status::INVALID_FIELD };
            let _ = self.wire.response(&permit.complete(status, 0));
            if let Some(request) = request {
                self.queue.close();
                self.queue = Queue::of(&request.connect);
                self.controller = Some(Controller::new(1, request.connect.kato()));
            }
            return;
        };
        if self.queue.qid() > 0 {
            let status = block(&mut self.blocks, sqe, data).err().unwrap_or(Status::SUCCESS);
            let _ = kv::Command::parse(sqe);
            let _ = permit.complete(status, 0);
            return;
        }
        match controller.admin(sqe, data, &self.subsystem, &Nothing) {
            Answer::Hold => self.held.push(permit),
            Answer::Abort(cids) => {
                for cid in cids {
                    let at = self.held.iter().position(|held| held.cid() == cid);
                    let held = self.held.remove(at.expect("the controller knows what is held"));
                    let _ = self.wire.response(&held.complete(Status::ABORT_REQUESTED, 0));
                }
                let _ = self.wire.response(&permit.complete(Status::SUCCESS, 0));
            }
            Answer::Compute(_) => {
                let _ = self.wire.response(&permit.complete(Status::SUCCESS, 0));
            }
            Answer::Complete { status, result, data } => {
                assert!(data.len() <= sqe.sgl().length() as usize, "more than the host has room");
                let _ = self.wire.response(&permit.complete(status, result));
            }
        }
    }

    fn next(&mut self, input: &mut &[u8]) -> Result<bool, Fatal> {
        let Some(event) = self.wire.next(input)? else { return Ok(false) };
        match event {
            Event::Command { sqe, data } => return Ok(self.command(sqe, data)),
            Event::Data { target, offset, bytes } => {
                let place = match target {
                    Target::Capsule => self.capsule.as_mut(),
                    Target::Transfer(ttag) => self.transfers[usize::from(ttag)].as_mut(),
                };
                if let Some((_, _, buffer)) = place {
                    let start = offset as usize;
                    buffer[start..start + bytes.len()].copy_from_slice(bytes);
                }
            }
            Event::DataEnd { target, complete, .. } => {
                let ended = match target {
                    Target::Capsule => self.capsule.take(),
                    Target::Transfer(ttag) if complete => self.transfers[usize::from(ttag)].take(),
                    Target::Transfer(_) => None,
                };
                if let Some((permit, sqe, data)) = ended {
                    self.run(permit, &sqe, &data);
                }
            }
            Event::Connected(_) => {}
            Event::Terminated(_) => return Ok(false),
        }
        Ok(true)
    }
}

fn block(blocks: &mut [u8], sqe: &Sqe, data: &[u8]) -> Result<(), Status> {
    let command = nvm::Command::parse(sqe)?;
    if let nvm::Command::Write { extent, .. } = command {
        let end = extent.slba.checked_add(u64::from(extent.blocks));
        let end = end.filter(|end| *end <= BLOCKS).ok_or(Status::LBA_OUT_OF_RANGE)?;
        let place = &mut blocks[extent.slba as usize * 4096..end as usize * 4096];
        if place.len() != data.len() {
            return Err(Status::SGL_LENGTH_INVALID);
        }
        place.copy_from_slice(data);
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let Some((part, rest)) = data.split_first() else { return };
    let stream = [csd_fuzz::initialise(), csd_fuzz::stream(rest)].concat();
    let mut drive = Drive {
        subsystem: subsystem(),
        wire: Connection::new(LIMITS),
        queue: Queue::unconnected(),
        controller: None,
        blocks: vec![0; 4096 * BLOCKS as usize],
        held: Vec::new(),
        capsule: None,
        transfers: Vec::new(),
    };
    'stream: for mut input in stream.chunks(usize::from(*part) * 7 + 1) {
        loop {
            match drive.next(&mut input) {
                Ok(true) => {}
                Ok(false) if input.is_empty() => break,
                Ok(false) | Err(_) => break 'stream,
            }
        }
    }
    drive.queue.close();
});
