//! Properties of the controller's state machine and of the block commands, over any input.

#![allow(clippy::unwrap_used)] // sizes here are small

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use csd_nvme::capsule::{Sgl, Sqe};
use csd_nvme::controller::admin::Answer;
use csd_nvme::controller::{
    Backing, Controller, EVENT_REQUESTS_MAX, Event, Namespace, NamespaceKind, Subsystem,
};
use csd_nvme::feature::FeatureId;
use csd_nvme::log::{LogId, Smart, get_log_page};
use csd_nvme::nvm::{self, Command, Extent, Fused};
use csd_nvme::opcode::{Admin, Csi};
use csd_nvme::status::Status;
use csd_nvme::{fabrics, property};
use proptest::prelude::*;

#[derive(Default)]
struct Kept {
    saved: RefCell<BTreeMap<(u8, u32), u32>>,
    protection: RefCell<BTreeMap<u32, u32>>,
    io_queues: Cell<usize>,
}

impl Backing for Kept {
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
    fn saved(&self, id: FeatureId, nsid: u32) -> Option<u32> {
        self.saved.borrow().get(&(id.0, nsid)).copied()
    }
    fn save(&self, id: FeatureId, nsid: u32, value: u32) {
        self.saved.borrow_mut().insert((id.0, nsid), value);
    }
    fn protection(&self, nsid: u32) -> u32 {
        self.protection.borrow().get(&nsid).copied().unwrap_or(0)
    }
    fn set_protection(&self, nsid: u32, value: u32) {
        self.protection.borrow_mut().insert(nsid, value);
    }
    fn io_queues(&self) -> usize {
        self.io_queues.get()
    }
}

fn subsystem() -> Subsystem {
    let kind = NamespaceKind::Block { blocks: 64, block_bytes_log2: 9 };
    Subsystem {
        nqn: "nqn.2026-11.io.csdstore:properties".into(),
        serial: "S".into(),
        model: "M".into(),
        firmware: "1".into(),
        namespaces: vec![Namespace { nsid: 1, nguid: [1; 16], kind }],
        volatile_cache: true,
        io_queues_max: 4,
        queue_entries_max: 64,
        mdts: 5,
        in_capsule_bytes_max: 8192,
        tunnel: false,
        life: 1,
    }
}

fn enabled(mut controller: Controller, backing: &Kept) -> Controller {
    let enable = property::Configuration::default().with_enable(1).with_iosqes(6).with_iocqes(4);
    let set = fabrics::property_set(property::CC, enable.0);
    let answer = controller.admin(&set, &[], &subsystem(), backing);
    assert_eq!(answer, Answer::result(0));
    controller
}

#[derive(Clone, Debug)]
enum Step {
    Request(u16),
    Abort(u16),
    Raise(u32),
    ReadLog,
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u16..12).prop_map(Step::Request),
        (0u16..12).prop_map(Step::Abort),
        (1u32..6).prop_map(Step::Raise),
        Just(Step::ReadLog),
        Just(Step::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    /// A held request ends once, by an event, an abort or a reset; never more are held than were
    /// announced; a notice is not repeated until its log was read.
    #[test]
    fn held_requests_end_once(steps in prop::collection::vec(step(), 1..60)) {
        let (backing, subsystem) = (Kept::default(), subsystem());
        let mut controller = enabled(Controller::new(1, 0), &backing);
        let (mut held, mut told) = (Vec::<u16>::new(), false);
        for step in steps {
            match step {
                Step::Request(cid) if held.contains(&cid) => {}
                Step::Request(cid) => {
                    let mut sqe = Sqe::new(Admin::ASYNC_EVENT_REQUEST.0, 0);
                    sqe.set_cid(cid);
                    let answer = controller.admin(&sqe, &[], &subsystem, &backing);
                    if held.len() < usize::from(EVENT_REQUESTS_MAX) {
                        prop_assert_eq!(answer, Answer::Hold);
                        held.push(cid);
                    } else {
                        prop_assert_eq!(answer, Answer::from(Status::ASYNC_EVENT_LIMIT));
                    }
                }
                Step::Abort(cid) => {
                    let mut sqe = Sqe::new(Admin::ABORT.0, 0);
                    sqe.set_cdw10(u32::from(cid) << 16);
                    let answer = controller.admin(&sqe, &[], &subsystem, &backing);
                    match held.iter().position(|known| *known == cid) {
                        Some(at) => {
                            held.remove(at);
                            prop_assert_eq!(answer, Answer::Abort(vec![cid]));
                        }
                        None => prop_assert_eq!(answer, Answer::result(1)),
                    }
                }
                Step::Reset => {
                    let disable = fabrics::property_set(property::CC, 0);
                    let answer = controller.admin(&disable, &[], &subsystem, &backing);
                    let ended = std::mem::take(&mut held);
                    if ended.is_empty() {
                        prop_assert_eq!(answer, Answer::result(0));
                    } else {
                        prop_assert_eq!(answer, Answer::Abort(ended));
                    }
                    controller = enabled(controller, &backing);
                    told = false;
                }
                Step::Raise(nsid) => controller.raise(Event::NamespaceChanged(nsid)),
                Step::ReadLog => {
                    let sqe = get_log_page(LogId::CHANGED_NAMESPACES, 0, Csi::NVM, 0, 64);
                    let mut sqe = sqe;
                    sqe.set_sgl(csd_nvme::capsule::Sgl::transport(64));
                    let answer = controller.admin(&sqe, &[], &subsystem, &backing);
                    let Answer::Complete { status, data, .. } = answer else { panic!("held") };
                    prop_assert_eq!(status, Status::SUCCESS);
                    let ids = csd_nvme::identify::parse_namespace_list(&data);
                    prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ids);
                    told = false;
                }
            }
            if let Some((cid, dword)) = controller.take_event() {
                prop_assert_eq!(held.remove(0), cid, "the oldest first");
                prop_assert_eq!(dword, 0x0004_0002);
                prop_assert!(!std::mem::replace(&mut told, true), "told twice");
            }
        }
    }

    /// No queue entry makes a controller of either kind panic, or answer with more than was asked
    /// for.
    #[test]
    fn any_admin_command_is_answered(
        bytes in prop::collection::vec(any::<u8>(), 64),
        opcode in prop_oneof![any::<u8>(), Just(0x02), Just(0x06), Just(0x09), Just(0x0A)],
        id in any::<u8>(), discovery in any::<bool>(),
    ) {
        let (backing, subsystem) = (Kept::default(), subsystem());
        let controller = match discovery {
            true => Controller::discovery(1, 0),
            false => Controller::new(1, 0),
        };
        let mut controller = enabled(controller, &backing);
        let mut bytes: [u8; 64] = bytes.try_into().unwrap();
        (bytes[0], bytes[40]) = (opcode, id);
        let mut sqe = Sqe::from_bytes(bytes);
        sqe.set_sgl(csd_nvme::capsule::Sgl::transport(4096)).set_nsid(u32::from(id & 1));
        let answer = controller.admin(&sqe, &[0; 512], &subsystem, &backing);
        if let Answer::Complete { status, data, .. } = answer {
            prop_assert!(data.len() <= 4096);
            prop_assert!(status.is_success() || data.is_empty());
        }
    }

    /// Block commands parse back to what they were built from, and only as what they are.
    #[test]
    fn block_commands_round_trip(
        slba in any::<u64>(), blocks in 1u32..=65_536, deallocate in any::<bool>(),
        sources in prop::collection::vec((any::<u64>(), 1u32..=65_536), 1..=128),
        fuse in 0u8..4,
    ) {
        let extent = Extent { slba, blocks };
        let zeroes = Command::parse(&nvm::write_zeroes(1, extent, deallocate));
        prop_assert_eq!(zeroes, Ok(Command::WriteZeroes { extent, fua: false, deallocate }));
        let mut compare = nvm::compare(1, extent);
        prop_assert_eq!(Command::parse(&compare), Ok(Command::Compare(extent)));
        compare.set_flags(compare.flags() | fuse);
        prop_assert_eq!(Command::parse(&compare).is_ok(), Fused::of(&compare) == Fused::Single);
        let write = nvm::write(1, extent, true);
        prop_assert_eq!(nvm::compare_and_write(&compare, &write), Ok((extent, true)));
        let other = nvm::write(1, Extent { slba: slba ^ 1, blocks }, true);
        let refused = nvm::compare_and_write(&compare, &other);
        prop_assert_eq!(refused, Err(Status::INVALID_FIELD));
        let sources: Vec<Extent> =
            sources.into_iter().map(|(slba, blocks)| Extent { slba, blocks }).collect();
        let (sqe, data) = nvm::copy(1, &sources, slba);
        let ranges = u16::try_from(sources.len()).unwrap();
        prop_assert_eq!(Command::parse(&sqe), Ok(Command::Copy { slba, ranges, fua: false }));
        prop_assert_eq!(nvm::copy_ranges(&data), sources.clone());
        let (sqe, data) = nvm::deallocate(1, &sources);
        prop_assert_eq!(Command::parse(&sqe), Ok(Command::Dataset { ranges, deallocate: true }));
        prop_assert_eq!(nvm::dataset_ranges(&data), sources);
    }
}

#[test]
fn neither_reset_nor_shutdown_is_complete_while_commands_go_on() {
    let (backing, subsystem) = (Kept::default(), subsystem());
    let on = property::Configuration::default().with_enable(1).with_iosqes(6).with_iocqes(4);
    let status = |controller: &mut Controller| {
        let get = fabrics::property_get(property::CSTS, false);
        controller.admin(&get, &[], &subsystem, &backing)
    };
    let off = property::Configuration(on.0).with_enable(0);
    for (value, meanwhile, then) in [(off, 1, 0), (on.with_shn(1), 0b0101, 0b1001)] {
        let mut controller = enabled(Controller::new(1, 0), &backing);
        backing.io_queues.set(2);
        let set = fabrics::property_set(property::CC, value.0);
        assert_eq!(controller.admin(&set, &[], &subsystem, &backing), Answer::result(0));
        assert!(!controller.io_allowed());
        assert_eq!(status(&mut controller), Answer::result(meanwhile));
        backing.io_queues.set(0);
        assert_eq!(status(&mut controller), Answer::result(then));
    }
}

#[test]
fn an_admin_command_is_no_part_of_a_fused_pair() {
    let backing = Kept::default();
    let mut controller = enabled(Controller::new(1, 0), &backing);
    for (fuse, status) in [(1, Status::INVALID_FIELD), (2, Status::INVALID_FIELD), (0, Status(0))] {
        for opcode in [Admin::KEEP_ALIVE, Admin::ABORT, Admin::ASYNC_EVENT_REQUEST] {
            let mut sqe = Sqe::new(opcode.0, 0);
            sqe.set_flags(sqe.flags() | fuse);
            let answer = controller.admin(&sqe, &[], &subsystem(), &backing);
            match answer {
                Answer::Complete { status: said, .. } => assert_eq!(said, status, "FUSE {fuse}"),
                other => assert!(fuse == 0, "{other:?}"),
            }
        }
    }
}

#[test]
fn all_preferred_sizes_of_blocks_are_given() {
    let backing = Kept::default();
    let mut controller = enabled(Controller::new(1, 0), &backing);
    let mut sqe = Sqe::new(Admin::IDENTIFY.0, 1);
    sqe.set_sgl(Sgl::transport(4096));
    let answer = controller.admin(&sqe, &[], &subsystem(), &backing);
    let Answer::Complete { data, .. } = answer else { panic!("{answer:?}") };
    let at = |offset: usize| u16::from_le_bytes([data[offset], data[offset + 1]]);
    assert_eq!(data[24] & 1 << 4, 1 << 4, "OPTPERF");
    for (offset, name) in [(64, "NPWG"), (66, "NPWA"), (68, "NPDG"), (70, "NPDA"), (72, "NOWS")] {
        assert_eq!(at(offset), 7, "{name}: 8 blocks of 512 bytes are a page");
    }
}
