//! The discovery subsystem, as a host uses it before it connects.

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, drive, each_backend, u32_at, u64_at};

const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

fn log(admin: &mut Wire, offset: u32, bytes: usize) -> Vec<u8> {
    let dwords = bytes as u32 / 4 - 1;
    let command = Command::new(0x02, 0).dword(10, dwords << 16 | 0x70).dword(12, offset);
    let reply = admin.command(command, &[], bytes);
    assert_eq!((reply.status, reply.data.len()), (0, bytes));
    reply.data
}

fn ascii(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap().trim_end_matches([' ', '\0'])
}

#[test]
fn the_log_says_what_the_host_may_connect_to() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        admin.admin(DISCOVERY);
        let identity = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data;
        assert_eq!(identity[111], 2, "CNTRLTYPE: discovery");
        assert_eq!(ascii(&identity[768..1024]), DISCOVERY);
        assert!(u32_at(&identity, 320) & 0xFFFF > 0, "KAS: it may be persistent");
        // As Linux does it: the header, the whole log, the generation again.
        let header = log(&mut admin, 0, 1024);
        let (generation, records) = (u64_at(&header, 0), u64_at(&header, 8));
        assert_eq!(records, 2);
        let whole = log(&mut admin, 0, 1024 * 3);
        assert_eq!(u64_at(&log(&mut admin, 0, 16), 0), generation);
        assert!(log(&mut admin, 2048, 1024) == whole[2048..], "from an offset");
        for (record, subtype, nqn) in [(1, 2, NQN), (2, 3, DISCOVERY)] {
            let record = &whole[record * 1024..(record + 1) * 1024];
            assert_eq!(record[..4], [3, 1, subtype, 2], "TCP, IPv4, subtype, TREQ");
            assert_eq!(u32_at(record, 4) >> 16, 0xFFFF, "CNTLID: dynamic");
            assert!(u32_at(record, 8) & 0xFFFF >= 32, "ASQSZ");
            assert_eq!(ascii(&record[32..64]), address.port().to_string());
            assert_eq!(ascii(&record[256..512]), nqn);
            assert_eq!(ascii(&record[512..768]), "127.0.0.1");
            let mut next = Wire::open(address);
            next.admin(nqn);
        }
    });
}

#[test]
fn a_discovery_controller_has_no_namespaces_and_no_io_queues() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(DISCOVERY);
    assert_eq!(admin.command(Command::new(0x18, 0), &[], 0).status, 0, "Keep Alive");
    for cns in [0u32, 2, 3, 5] {
        let status = admin.command(Command::new(0x06, 1).dword(10, cns), &[], 4096).status;
        assert_eq!(status, 0x002, "CNS {cns}");
    }
    let smart = Command::new(0x02, 0).dword(10, 127 << 16 | 0x02);
    assert_eq!(admin.command(smart, &[], 512).status, 0x109, "no health log");
    let queues = Command::new(0x09, 0).dword(10, 7);
    assert_eq!(admin.command(queues, &[], 0).status, 0x002, "no number of queues");
    assert_eq!(admin.command(Command::new(0xC7, 0), &[], 0).status, 0x001);
    for (nqn, status) in [(DISCOVERY, 0x182), (NQN, 0x182)] {
        let mut io = Wire::open(address);
        io.initialise();
        assert_eq!(io.connect(nqn, 1, cntlid, true).status, status, "{nqn}");
    }
    let mut host = Wire::open(address);
    host.admin(NQN);
    let log = Command::new(0x02, 0).dword(10, 255 << 16 | 0x70);
    assert_eq!(host.command(log, &[], 1024).status, 0x109, "and an I/O controller has no such log");
    let list = host.command(Command::new(0x06, 0).dword(10, 0x13), &[], 4096).data;
    assert_eq!(u32_at(&list, 0) & 0xFFFF, 1, "nor does it count the discovery controller");
}

#[test]
fn our_own_host_finds_the_drive() {
    let address = drive(1, BackendKind::Auto);
    let runtime = csd_reactor::Config::default();
    let found = csd_reactor::block_on(&runtime, move || async move {
        let options = csd_initiator::Options::default();
        let records = csd_initiator::discover(address, &options).await?;
        let named = records.iter().map(|record| (record.nqn(), record.address()));
        let named: Vec<_> = named.collect();
        let drive = csd_initiator::Address::new(address, NQN);
        let controller = csd_initiator::Controller::connect(&drive, &options).await?;
        assert_eq!(controller.namespaces().len(), 5);
        Ok::<_, csd_initiator::Error>(named)
    });
    let expected = [NQN, DISCOVERY].map(|nqn| (Some(nqn.to_owned()), Some(address)));
    assert_eq!(found.expect("the runtime starts").expect("the drive answers"), expected);
}
