//! One drive and its media: what it says, how it stops, what a look at its media finds.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::harness::{Array, Done, Running, finish, signal};
use crate::wire::{Command, Wire, data_pdu};

const NQN: &str = "nqn.2026-11.io.csdstore:operations";

/// A served drive in a folder of its own.
struct Drive {
    array: Array,
    running: Option<Running>,
}

impl Drive {
    /// Serves `media` with more options.
    fn serve(media: &str, options: &[&str]) -> Self {
        let mut drive = Self { array: Array { folder: TempDir::new().unwrap() }, running: None };
        drive.start(media, options);
        drive
    }

    fn start(&mut self, media: &str, options: &[&str]) {
        let _ = fs::remove_file(self.array.path("ready"));
        let serve = ["drive", "serve", "--media", media, "--size", "128M", "--nqn", NQN];
        let listen = ["--listen", "127.0.0.1:0", "--ready-file", "ready"];
        let arguments = [&serve[..], &listen[..], options].concat();
        self.running = Some(self.array.spawn(&arguments, Stdio::null()));
        wait_until("the drive serves", || self.array.path("ready").exists());
    }

    fn address(&self) -> SocketAddr {
        let url = fs::read_to_string(self.array.path("ready")).unwrap();
        url.strip_prefix("nvme+tcp://").unwrap().split('/').next().unwrap().parse().unwrap()
    }

    fn ask_to_stop(&self) {
        signal(self.running.as_ref().unwrap().child.id(), Signal::TERM);
    }

    fn stop(&mut self) -> Done {
        self.ask_to_stop();
        finish(self.running.take().unwrap())
    }

    /// The admin queue of a controller, and an I/O queue of it.
    fn connect(&self) -> (Wire, Wire) {
        let mut admin = Wire::open(self.address());
        let cntlid = admin.admin(NQN);
        let mut io = Wire::open(self.address());
        io.initialise();
        assert_eq!(io.connect(NQN, 1, cntlid, false).status, 0);
        (admin, io)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _gone = running.child.kill();
            let _reaped = running.child.wait();
        }
    }
}

fn kv(opcode: u8, key: &[u8], size: u32) -> Command {
    let mut command = Command::new(opcode, 2).dword(10, size);
    command.0[44] = u8::try_from(key.len()).unwrap();
    let mut padded = [0; 16];
    padded[..key.len()].copy_from_slice(key);
    command.0[8..16].copy_from_slice(&padded[..8]);
    command.0[56..64].copy_from_slice(&padded[8..]);
    command
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Fills a drive with values of 3,000 bytes, and stops it.
fn filled() -> Drive {
    let mut drive = Drive::serve("m", &[]);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u32 {
        let value = vec![u8::try_from(number).unwrap(); 3000];
        let store = kv(0x01, &number.to_be_bytes(), 3000);
        assert_eq!(io.command_in_capsule(store, &value).status, 0);
    }
    assert_eq!(io.command(kv(0x10, &5u32.to_be_bytes(), 0), &[], 0).status, 0, "Delete");
    drop(io);
    drive.stop().expect(0, &[]);
    drive
}

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
    // The connection may hear of it a moment later than the listener.
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
fn a_host_that_never_ends_its_command_does_not_keep_a_drive_from_stopping() {
    let mut drive = Drive::serve("memory", &["--drain", "1"]);
    let (_admin, mut io) = drive.connect();
    let (_, capsule) = io.capsule_bytes(kv(0x01, b"k", 100_000), 100_000);
    io.stream.write_all(&capsule).unwrap();
    assert_eq!(io.receive().header[0], 0x09, "R2T");
    drive.stop().expect(0, &[]);
}

#[test]
fn a_look_at_media_counts_what_is_there_and_changes_nothing() {
    let drive = filled();
    let before = fs::read(drive.array.path("m")).unwrap();
    let done = drive.array.csd(&["drive", "check", "m", "--json"]).expect(0, &[]);
    let found = &done.json()["result"];
    let sum = |name: &str| -> u64 {
        found["shards"].as_array().unwrap().iter().map(|s| s[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("keys"), sum("value_bytes")), (99, 99 * 3000), "{found}");
    assert_eq!((sum("records"), sum("damage")), (101, 0), "{found}");
    assert_eq!(found["damage"], serde_json::json!([]));
    let text = drive.array.csd(&["drive", "check", "m"]).expect(0, &[]).text();
    assert!(text.starts_with("no damage; format version 1"), "{text}");
    assert!(fs::read(drive.array.path("m")).unwrap() == before);
    drive.array.csd(&["drive", "check", "gone"]).expect(1, &["gone"]);
    drive.array.file("other", &[7; 1 << 20]);
    drive.array.csd(&["drive", "check", "other"]).expect(1, &["no CSDStore superblock"]);
}

#[test]
fn damage_is_found_wherever_it_is() {
    let mut drive = filled();
    // Recovery seals what the first life left open: from then on all of it must be whole.
    drive.start("m", &[]);
    drive.array.csd(&["drive", "check", "m"]).expect(1, &["in use"]);
    drive.stop().expect(0, &[]);
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
    let path = drive.array.path("m");
    let bytes = fs::read(&path).unwrap();
    let find = |needle: &[u8]| {
        let at = bytes[1 << 20..].windows(needle.len()).position(|window| window == needle);
        (1 << 20) + at.expect("it is there")
    };
    // A copy of the superblock, a segment's header, a record's header, a value.
    for (at, words) in [
        (60, "superblock at 0"),
        ((512 << 10) + 20, "superblock at 524288"),
        (find(b"CSEG") + 33, "header (checksum)"),
        (find(b"CREC") + 30, "no record at"),
        (find(&[42; 3000]) + 1500, "its value (checksum)"),
    ] {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[bytes[at] ^ 0x10], at as u64).unwrap();
        let done = drive.array.csd(&["drive", "check", "m", "--json"]).expect(1, &[]);
        let error = &done.json()["error"];
        let damage = error["detail"]["damage"].to_string();
        assert!(damage.contains(words), "{words:?} is not in {error}");
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
}

#[test]
fn a_damaged_value_is_an_error_to_a_host_and_the_others_are_there() {
    let mut drive = filled();
    let path = drive.array.path("m");
    drive.start("m", &[]);
    drive.stop().expect(0, &[]);
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(3000).position(|window| window == [42; 3000]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[43], at as u64 + 2999).unwrap();
    drive.start("m", &[]);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u32 {
        // The first bytes are right, but nobody can promise that without the rest.
        let size = if number % 2 == 0 { 100 } else { 3000 };
        let reply = io.command(kv(0x02, &number.to_be_bytes(), size), &[], size as usize);
        match number {
            5 => assert_eq!(reply.status, 0x87),
            42 => assert_eq!(reply.status, 0x88, "unrecovered error"),
            _ => assert!(
                reply.status == 0 && reply.data == vec![number.to_le_bytes()[0]; size as usize]
            ),
        }
    }
}

#[test]
fn another_format_version_is_refused_in_words_and_left_alone() {
    let drive = filled();
    let path = drive.array.path("m");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for copy in [0, 512 << 10] {
        file.write_all_at(&2u32.to_le_bytes(), copy + 8).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let words = ["its format version is 2, this program reads version 1"];
    let serve = ["drive", "serve", "--media", "m", "--size", "128M", "--listen", "127.0.0.1:0"];
    drive.array.csd(&serve).expect(1, &words);
    drive.array.csd(&["drive", "check", "m"]).expect(1, &words);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_drive_says_whether_it_uses_direct_io_and_works_either_way() {
    for (mode, said) in [("off", "direct I/O off, as asked for"), ("auto", "direct I/O ")] {
        let mut drive = Drive::serve("m", &["--direct", mode, "--block", "512"]);
        let (_admin, mut io) = drive.connect();
        let block = [0xA5; 512];
        let write = Command::new(0x01, 1).dword(10, 3);
        assert_eq!(io.command_in_capsule(write, &block).status, 0);
        let value: Vec<u8> = (0..700_001u32).map(|i| i.to_le_bytes()[0]).collect();
        assert_eq!(io.command(kv(0x01, b"v", 700_001), &value, 0).status, 0);
        assert!(io.command(Command::new(0x02, 1).dword(10, 3), &[], 512).data == block);
        assert!(io.command(kv(0x02, b"v", 1 << 20), &[], 1 << 20).data == value);
        drop(io);
        let done = drive.stop().expect(0, &[]);
        assert!(done.text().contains(said), "{}", done.text());
    }
    let array = Array { folder: TempDir::new().unwrap() };
    let serve = ["drive", "serve", "--media", "memory", "--listen", "127.0.0.1:0"];
    array.csd(&serve).expect(2, &["use --size"]);
}

fn scrape(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A port that was free a moment ago.
fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
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
    // Every name is declared before its numbers.
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let of = |end| name.strip_suffix(end).unwrap_or(name);
        let declared = ["_bucket", "_sum", "_count"]
            .iter()
            .any(|end| page.contains(&format!("# TYPE {} ", of(end))));
        assert!(declared, "{line}");
    }
    assert!(scrape(metrics, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let mut babbler = TcpStream::connect(metrics).unwrap();
    babbler.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _let_go = babbler.write_all(&[b'x'; 64 << 10]);
    // Closed or reset, but not answered, and not kept.
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
