//! More hosts than the drive accepts, and hosts that together ask for more memory than it has.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use csd_drive::{Access, Config, HostLimits};
use csd_initiator::Secrets;
use csd_tests::wire::{Command, Wire, data_pdu};

use crate::harness::{Host, NQN, assert_closed, assert_serves, serve, status_of, u16_at};

const BUSY: u16 = 0x181;
/// Number of connections beyond the limit that get an answer; more are closed at once.
const TOLD: usize = 32;

/// Returns a free port for the metrics page.
fn metrics_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns the value of a metric.
fn metric(address: SocketAddr, name: &str) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let lines = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let values: Vec<usize> = lines.map(|value| value.parse().unwrap()).collect();
    assert_eq!(values.len(), 1, "{name} in {page}");
    values[0]
}

#[test]
fn one_connection_too_many_is_told_so_and_others_are_closed() {
    let metrics = metrics_address();
    let limits = HostLimits { connections: 6, ..HostLimits::default() };
    let address = serve(Config {
        cores: 2,
        metrics: vec![metrics],
        host_limits: limits,
        ..Config::default()
    });
    let mut hosts: Vec<(Host, Wire)> = Vec::new();
    for _ in 0..3 {
        let mut host = Host::new(address);
        let io = host.queue(1, 32, true);
        hosts.push((host, io));
    }
    let mut told = Vec::new();
    for count in 1..=3 {
        let mut wire = Wire::open(address);
        wire.initialise();
        assert_eq!(wire.connect(NQN, 0, 0xFFFF, true).status, BUSY, "an admin queue");
        let cntlid = hosts[0].0.cntlid;
        assert_eq!(wire.connect(NQN, 2, cntlid, true).status, BUSY, "an I/O queue");
        assert_eq!(metric(metrics, "csd_connections_refused_total"), 2 * count);
        told.push(wire);
    }
    told.extend((0..TOLD - told.len()).map(|_| Wire::open(address)));
    for _ in 0..3 {
        assert_closed(&mut Wire::open(address));
    }
    assert_eq!(metric(metrics, "csd_connections_max"), 6);
    assert!(metric(metrics, "csd_connections_refused_total") >= 6 + 3);
    // The hosts within the limit were not affected.
    for (host, io) in &mut hosts {
        assert_eq!(host.admin.command(Command::new(0x18, 0), &[], 0).status, 0, "Keep Alive");
        let write = Command::new(0x01, 1).dword(10, 9);
        assert_eq!(io.command_in_capsule(write, &[1; 4096]).status, 0);
    }
    drop((told, hosts));
    // Room again, as soon as the drive has seen them go.
    let admitted = |_: &usize| {
        let mut wire = Wire::open(address);
        wire.initialise();
        wire.connect(NQN, 0, 0xFFFF, true).status == 0
    };
    assert!((0..1000).any(|round| admitted(&round)), "no connection was let go of");
}

/// On a drive with secrets strangers give way to other hosts, including strangers that broke a rule
/// and only still have to read the drive's last message.
#[test]
fn strangers_who_break_rules_and_stay_do_not_pile_up() {
    let metrics = metrics_address();
    let text = "host nqn.a:h DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    let access = Access { secrets: Secrets::parse(text).unwrap(), ..Access::default() };
    let host_limits = HostLimits { connections: 16, ..HostLimits::default() };
    let address =
        serve(Config { metrics: vec![metrics], access, host_limits, ..Config::default() });
    let mut wires = Vec::new();
    for round in 0..10 {
        for _ in 0..30 {
            let mut wire = Wire::open(address);
            crate::harness::send(&mut wire, &[0xFF; 128]);
            wires.push(wire);
        }
        let open = metric(metrics, "csd_connections{core=\"0\"}");
        assert!(open <= 16 + 2 * TOLD + 30, "{open} connections after {round} rounds");
    }
}

#[test]
fn many_slow_hosts_share_a_bounded_memory() {
    const HOSTS: u16 = 256;
    const PIECE: usize = 128 << 10;
    let metrics = metrics_address();
    // The least memory of a core: 24 MiB of it are for answers.
    let limits = HostLimits { transfer_memory_bytes: 64 << 20, ..HostLimits::default() };
    let address =
        serve(Config { metrics: vec![metrics], host_limits: limits, ..Config::default() });
    let mut slow: Vec<(Host, Wire)> = Vec::new();
    for _ in 0..HOSTS {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 64, true);
        let mut capsules = Vec::new();
        for _ in 0..60 {
            let read = Command::new(0x02, 1).dword(12, (4 << 20) / 4096 - 1);
            capsules.extend(io.capsule_bytes(read, 4 << 20).1);
        }
        io.stream.write_all(&capsules).unwrap();
        slow.push((host, io));
    }
    // Every one of them alone would have 256 KiB queued; the socket takes some more.
    for _ in 0..5 {
        assert_serves(address);
        let queued = metric(metrics, "csd_transfer_memory_bytes{core=\"0\",for=\"answers\"}");
        let most = (24 << 20) + usize::from(HOSTS) * PIECE;
        assert!(queued <= most, "{queued} bytes are queued");
        assert!(queued >= 24 << 20, "the memory is not used: {queued}");
    }
    assert_eq!(metric(metrics, "csd_transfer_memory_max_bytes"), 64 << 20);
    // A host that reads at last gets all of its data.
    let (_, io) = &mut slow[7];
    let mut bytes = 0;
    while bytes < 60 * (4 << 20) {
        bytes += io.receive().data.len();
    }
    drop(slow);
    assert_serves(address);
}

#[test]
fn capsules_of_many_hosts_are_bounded_and_all_are_answered() {
    // 40 hosts, each with 1,000 writes of 8 KiB in the capsule on their way at once.
    const HOSTS: usize = 40;
    const WRITES: usize = 1000;
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics_address();
    let limits = HostLimits { transfer_memory_bytes: 64 << 20, ..HostLimits::default() };
    let media = csd_drive::MediaKind::File(folder.path().join("media"));
    let address =
        serve(Config { metrics: vec![metrics], host_limits: limits, media, ..Config::default() });
    let write = move |host: usize| {
        let mut other = Host::new(address);
        let mut io = other.queue(1, 1024, true);
        let mut sending = io.stream.try_clone().unwrap();
        let capsules: Vec<u8> = (0..WRITES)
            .flat_map(|_| {
                let mut command = Command::new(0x01, 1).dword(10, host as u32 * 2).dword(12, 1);
                io.stamp(&mut command);
                command.sgl(8192, 0x01);
                Wire::capsule(&command, &[host as u8; 8192])
            })
            .collect();
        let sender = std::thread::spawn(move || sending.write_all(&capsules).unwrap());
        for _ in 0..WRITES {
            assert_eq!(crate::harness::status_of(&io.receive()), 0);
        }
        sender.join().unwrap();
    };
    let hosts: Vec<_> = (0..HOSTS).map(|at| std::thread::spawn(move || write(at))).collect();
    let mut most = 0;
    while !hosts.iter().all(|host| host.is_finished()) {
        most = most.max(metric(metrics, "csd_transfer_memory_bytes{core=\"0\",for=\"capsules\"}"));
    }
    hosts.into_iter().for_each(|host| host.join().unwrap());
    // An eighth of the memory, and of every host what one receive may bring.
    assert!(most <= (8 << 20) + HOSTS * (256 << 10), "{most} bytes of capsules");
    assert_eq!(metric(metrics, "csd_transfer_memory_bytes{core=\"0\",for=\"capsules\"}"), 0);
}

/// Six hosts hold all memory that the drive grants and send 8 KiB of it at a time; another host's
/// short writes, several at once, are answered in the meantime.
#[test]
fn short_writes_do_not_wait_for_hosts_that_hold_all_memory() {
    const MIB: [u32; 6] = [16, 4, 2, 2, 2, 2];
    let metrics = metrics_address();
    let limits = HostLimits { transfer_memory_bytes: 64 << 20, ..HostLimits::default() };
    let address =
        serve(Config { metrics: vec![metrics], host_limits: limits, ..Config::default() });
    let mut slow: Vec<(Host, Wire, [u16; 2])> = Vec::new();
    for mib in MIB {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        let write = Command::new(0x01, 1).dword(12, (mib << 20) / 4096 - 1);
        let (_, capsule) = io.capsule_bytes(write, (mib << 20) as usize);
        io.stream.write_all(&capsule).unwrap();
        let r2t = io.receive();
        slow.push((host, io, [u16_at(&r2t.header, 8), u16_at(&r2t.header, 10)]));
    }
    let granted = "csd_transfer_memory_bytes{core=\"0\",for=\"granted\"}";
    assert_eq!(metric(metrics, granted), 28 << 20, "all of it is lent");
    let mut host = Host::new(address);
    let mut io = host.queue(1, 32, true);
    let mut longest = Duration::ZERO;
    for round in 0..100u32 {
        for (_, slow, [cid, ttag]) in &mut slow {
            let pdu = data_pdu(*cid, *ttag, round * 8192, &[7; 8192], false);
            slow.stream.write_all(&pdu).unwrap();
        }
        let begun = Instant::now();
        let capsules: Vec<u8> = (0..4)
            .flat_map(|at| {
                let write = Command::new(0x01, 1).dword(10, 8192 + at * 16).dword(12, 15);
                io.capsule_bytes(write, 64 << 10).1
            })
            .collect();
        io.stream.write_all(&capsules).unwrap();
        let mut answered = 0;
        while answered < 4 {
            let pdu = io.receive();
            if pdu.header[0] == 0x05 {
                assert_eq!(status_of(&pdu), 0);
                answered += 1;
                continue;
            }
            let (cid, ttag) = (u16_at(&pdu.header, 8), u16_at(&pdu.header, 10));
            let data = data_pdu(cid, ttag, 0, &[1; 64 << 10], true);
            io.stream.write_all(&data).unwrap();
        }
        longest = longest.max(begun.elapsed());
    }
    println!("four writes of 64 KiB beside six hosts that trickle: at most {longest:?}");
    // They are still there, and what they hold is, too.
    assert_eq!(metric(metrics, granted), 28 << 20);
}

#[test]
fn scrapers_that_say_nothing_or_take_nothing_keep_nobody_waiting() {
    let metrics = metrics_address();
    let address = serve(Config { metrics: vec![metrics], ..Config::default() });
    let mut silent: Vec<TcpStream> = Vec::new();
    for count in 0..100 {
        silent.push(TcpStream::connect(metrics).unwrap());
        if count % 2 == 0 {
            silent.last_mut().unwrap().write_all(b"GET /metrics").unwrap();
        }
        // Before any of them runs out of time, 5 s, this is answered.
        assert_eq!(metric(metrics, "csd_media_read_only"), 0);
    }
    // The first ones have made way.
    for stream in &mut silent[..80] {
        let ended = stream.read(&mut [0; 16]);
        assert!(matches!(ended, Ok(0)) || ended.is_err(), "it was let go");
    }
    assert_serves(address);
}

#[test]
fn the_page_of_metrics_is_at_every_address_that_this_machine_has() {
    let first = metrics_address();
    // All of 127/8 is this machine's; the last one is an address of documentation, which is not.
    let at = |address: [u8; 4]| SocketAddr::from((address, first.port()));
    let all = vec![first, at([127, 0, 0, 2]), at([192, 0, 2, 1])];
    serve(Config { metrics: all.clone(), ..Config::default() });
    for address in &all[..2] {
        assert!(metric(*address, "csd_connections_max") > 0, "{address}");
    }
}
