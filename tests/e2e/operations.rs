//! One drive: its stop, its metrics and its log.

use std::io::{Read, Write};
use std::net::TcpStream;

use csd_tests::drive::LIMIT;
use csd_tests::wire::{Command, Wire, data_pdu};

use crate::support::drive::{Drive, kv};
use crate::support::harness::{finish, wait_until};
use crate::support::metrics::{free_address, scrape};

#[test]
fn a_stop_request_lets_a_store_in_flight_end_and_takes_no_new_command() {
    let mut drive = Drive::serve("m", &["--cores", "2", "--drain", "30"]);
    let (_admin, mut io) = drive.connect();
    let value: Vec<u8> = (0..100_000u32).map(|i| i.to_le_bytes()[0] ^ 0x5A).collect();
    let (cid, capsule) = io.capsule_bytes(kv(0x01, b"in flight", 100_000), value.len());
    io.stream.write_all(&capsule).unwrap();
    let grant = io.receive();
    assert_eq!(grant.header[0], 0x09, "R2T");
    let ttag = u16::from_le_bytes(grant.header[10..12].try_into().unwrap());

    let address = drive.address();
    drive.ask_to_stop();
    wait_until("the drive stops listening", || TcpStream::connect(address).is_err());
    // The connection may notice it a moment later than the listener.
    wait_until("new commands are refused", || {
        match io.command(kv(0x14, b"in flight", 0), &[], 0).status {
            0x82 => true,
            0x87 => false,
            other => panic!("Exist: {other:#x}"),
        }
    });
    io.stream.write_all(&data_pdu(cid, ttag, 0, &value, true)).unwrap();
    let response = io.receive();
    assert_eq!(response.header[0], 0x05);
    assert_eq!(u16::from_le_bytes(response.header[20..22].try_into().unwrap()), cid);
    assert_eq!(u16::from_le_bytes(response.header[22..24].try_into().unwrap()) >> 1, 0, "stored");
    let mut rest = Vec::new();
    assert_eq!(io.stream.read_to_end(&mut rest).unwrap(), 0, "then the drive closes");
    finish(drive.running.take().unwrap()).expect(0, &[]);

    drive.start("m", &[]);
    let (_admin, mut io) = drive.connect();
    assert!(io.command(kv(0x02, b"in flight", 100_000), &[], 100_000).data == value);
}

#[test]
fn a_killed_drive_starts_again_at_once_where_it_was() {
    let metrics = free_address().to_string();
    let options = ["--inside", "inside", "--metrics", &metrics];
    let mut drive = Drive::serve("m", &options);
    // The kernel closes the sockets and the medium of a killed process when it comes to it.
    for _ in 0..8 {
        drive.kill();
        drive.start("m", &options);
    }
    drive.stop().expect(0, &[]);
}

#[test]
fn a_host_that_never_ends_its_command_does_not_keep_a_drive_from_stopping() {
    let mut drive = Drive::serve("memory", &["--drain", "1"]);
    let (_admin, mut io) = drive.connect();
    let (_, capsule) = io.capsule_bytes(kv(0x01, b"k", 100_000), 100_000);
    io.stream.write_all(&capsule).unwrap();
    assert_eq!(io.receive().header[0], 0x09, "R2T");
    drive.stop().expect(0, &[]);
}

#[test]
fn metrics_take_parameters_and_give_their_head_alone() {
    let metrics = free_address();
    let _drive = Drive::serve("m", &["--metrics", &metrics.to_string()]);
    let answers = |line: &str| {
        let answer = scrape(metrics, &format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    };
    for line in ["GET /metrics?x=1", "GET /?", "GET /metrics?name[]=a&b=/metrics"] {
        let (head, page) = answers(line);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{line}: {head}");
        assert!(page.contains("csd_commands_total"), "{line}: {page}");
    }
    let (head, body) = answers("HEAD /metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK") && body.is_empty(), "{head}: {body}");
    assert!(head.contains("Content-Length: ") && !head.contains("Length: 0"), "{head}");
    for line in ["GET /other", "GET /metricsx", "GET /other?/metrics", "POST /metrics", "PUT /?"] {
        assert!(answers(line).0.starts_with("HTTP/1.1 404"), "{line}");
    }
}

#[test]
fn a_drive_counts_what_it_does_for_prometheus() {
    let metrics = free_address();
    let drive = Drive::serve("m", &["--metrics", &metrics.to_string(), "--cores", "2"]);
    let (_admin, mut io) = drive.connect();
    let value = vec![7; 5000];
    assert_eq!(io.command_in_capsule(kv(0x01, b"a", 5000), &value).status, 0);
    for _ in 0..3 {
        assert_eq!(io.command(kv(0x02, b"a", 1000), &[], 1000).status, 0);
    }
    assert_eq!(io.command(kv(0x02, b"none", 1000), &[], 1000).status, 0x87);
    let write = Command::new(0x01, 1).dword(10, 3);
    assert_eq!(io.command_in_capsule(write, &[1; 4096]).status, 0);
    let answer = scrape(metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    // A drive without `--inside` counts one side alone.
    assert!(page.contains("op=\"flush\",side=\"outside\"}") && !page.contains("inside"), "{page}");
    let page = page.replace(",side=\"outside\"", "");
    let number = |name: &str| -> f64 {
        let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let expected = [
        ("csd_commands_total{namespace=\"kv\",op=\"store\"}", 1.0),
        ("csd_commands_total{namespace=\"kv\",op=\"retrieve\"}", 4.0),
        ("csd_commands_total{namespace=\"block\",op=\"write\"}", 1.0),
        ("csd_commands_total{namespace=\"objects\",op=\"store\"}", 0.0),
        ("csd_bytes_total{namespace=\"kv\",op=\"store\"}", 5000.0),
        ("csd_bytes_total{namespace=\"kv\",op=\"retrieve\"}", 3000.0),
        ("csd_bytes_total{namespace=\"block\",op=\"write\"}", 4096.0),
        ("csd_command_errors_total{code=\"087h\",status=\"key does not exist\"}", 1.0),
        ("csd_command_seconds_count{namespace=\"kv\",op=\"retrieve\"}", 4.0),
        ("csd_command_seconds_bucket{namespace=\"kv\",op=\"retrieve\",le=\"+Inf\"}", 4.0),
        ("csd_core_compute_boosts_total{core=\"0\"}", 0.0),
        ("csd_core_lane_lifts_total{core=\"0\"}", 0.0),
        ("csd_media_read_only", 0.0),
    ];
    for (name, value) in expected {
        assert!((number(name) - value).abs() < 0.5, "{name} is {}", number(name));
    }
    assert!(number("csd_command_seconds_sum{namespace=\"kv\",op=\"store\"}") > 0.0);
    let foreground =
        |core| number(&format!("csd_core_seconds_total{{core=\"{core}\",class=\"foreground\"}}"));
    assert!(foreground(0) + foreground(1) > 0.0);
    let connections = number("csd_connections{core=\"0\"}") + number("csd_connections{core=\"1\"}");
    assert!((connections - 2.0).abs() < 0.5);
    assert!(number("csd_kv_segments_free") < number("csd_kv_segments"));
    // Every name is declared before its values.
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let of = |end| name.strip_suffix(end).unwrap_or(name);
        let declared = ["_bucket", "_sum", "_count"]
            .iter()
            .any(|end| page.contains(&format!("# TYPE {} ", of(end))));
        assert!(declared, "{line}");
    }
    let mut babbler = TcpStream::connect(metrics).unwrap();
    babbler.set_read_timeout(Some(LIMIT)).unwrap();
    let _let_go = babbler.write_all(&[b'x'; 64 << 10]);
    // Closed or reset, but neither answered nor kept.
    assert!(!matches!(babbler.read(&mut [0; 16]), Ok(1..)), "a babbler is let go");
    assert!(scrape(metrics, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_drive_logs_who_comes_and_goes() {
    let mut drive = Drive::serve("memory", &["--log", "json"]);
    let (admin, io) = drive.connect();
    drop((admin, io));
    let mut stranger = Wire::open(drive.address());
    stranger.stream.write_all(&[0xFF; 128]).unwrap();
    let mut word = Vec::new();
    stranger.stream.read_to_end(&mut word).unwrap();
    let done = drive.stop().expect(0, &[]);
    let events: Vec<serde_json::Value> =
        done.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| events.iter().filter(|e| e["event"] == event).collect::<Vec<_>>();
    assert_eq!(of("serving")[0]["media"], "in memory, lost when the drive stops");
    let connected = of("queue connected");
    assert_eq!(connected.len(), 2, "{events:?}");
    assert_eq!(connected[0]["host"], "nqn.2014-08.org.nvmexpress:uuid:stock-client");
    assert_eq!((&connected[0]["queue"], &connected[1]["queue"]), (&"0".into(), &"1".into()));
    assert_eq!(of("queue closed").len(), 2);
    assert_eq!(of("a host broke the transport's rules")[0]["level"], "warn");
    assert_eq!(of("every command was answered").len(), 1);
    assert!(events.iter().all(|event| event["time"].as_str().unwrap().ends_with('Z')));

    let mut drive = Drive::serve("memory", &["--log-level", "error"]);
    assert_eq!(drive.stop().expect(0, &[]).stderr, "");
}
