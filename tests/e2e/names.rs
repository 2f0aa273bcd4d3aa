//! Names of a drive and of its files: addresses of a name, zones, paths that are no UTF-8; and what
//! the machine denies a drive.

use std::ffi::OsStr;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use csd_tests::wire::{Command as NvmeCommand, Wire};
use rustix::process::Signal;

use crate::support::drive::{Drive, NQN};
use crate::support::harness::{Array, address_of, binary, finish, signal, wait_until};
use crate::support::metrics::{free_address, scrape};

/// Starts a drive that listens at `listen` by a shell that runs `before` first.
fn serve(
    array: &Array,
    listen: &str,
    before: &str,
    options: &[&str],
) -> crate::support::harness::Running {
    let script = format!("{before} exec \"$0\" \"$@\"");
    let first = ["-c", &script, binary().to_str().unwrap(), "drive", "serve", "--media", "memory"];
    let more = ["--size", "128M", "--nqn", NQN, "--listen", listen, "--ready-file", "ready"];
    let words = [&first[..], &more[..], options].concat();
    array.spawn_as(Command::new("sh"), &words, Stdio::null())
}

#[test]
fn a_drive_listens_at_all_addresses_of_a_name_and_hosts_try_all() {
    let array = Array::without_drives();
    let mut all = serve(&array, "localhost:0", "", &["--log", "json"]);
    let port = address_of(&all.serves(&array.path("ready"))).port();
    // One address of the name is enough for a host, whichever the resolver gives first.
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("nvme+tcp://{host}:{port}/{NQN}");
        array.csd(&["kv", "ls", "--drive", &url]).expect(0, &[]);
    }
    signal(all.child.id(), Signal::HUP);
    let done = finish(all).expect(0, &["every command was answered"]);
    let line = done.stderr.lines().find(|line| line.contains("\"serving\"")).unwrap().to_owned();
    let serving: serde_json::Value = serde_json::from_str(&line).unwrap();
    let v6 = line.contains("[::1]");
    let count = serving["address"].as_str().unwrap().split(' ').count();
    assert_eq!(count, 1 + usize::from(v6), "{line}");

    std::fs::remove_file(array.path("ready")).unwrap();
    let mut one = serve(&array, "127.0.0.1:0", "", &[]);
    let port = address_of(&one.serves(&array.path("ready"))).port();
    let url = format!("nvme+tcp://localhost:{port}/{NQN}");
    array.csd(&["kv", "ls", "--drive", &url]).expect(0, &[]);
    signal(one.child.id(), Signal::TERM);
    finish(one).expect(0, &[]);

    let no_port = ["drive", "serve", "--media", "memory", "--listen", "::1"];
    array.csd(&no_port).expect(2, &["there is no port; say HOST:PORT"]);
}

#[test]
fn metrics_are_at_all_addresses_of_a_name() {
    let array = Array::without_drives();
    // A port that is free at both addresses of the name, where this machine has both.
    let port = free_address().port();
    let v6 = TcpListener::bind(("::1", port)).is_ok();
    let options = ["--metrics", &format!("localhost:{port}")];
    let mut drive = serve(&array, "127.0.0.1:0", "", &options);
    drive.serves(&array.path("ready"));
    let named: Vec<SocketAddr> = ("localhost", port).to_socket_addrs().unwrap().collect();
    assert!(!named.is_empty());
    for address in named.into_iter().filter(|address| v6 || address.is_ipv4()) {
        let page = scrape(address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200"), "{address}: {page}");
    }
    signal(drive.child.id(), Signal::TERM);
    finish(drive).expect(0, &[]);
}

#[test]
fn a_hang_up_drains_a_drive_unless_it_is_ignored() {
    let array = Array::without_drives();
    let mut drive = serve(&array, "127.0.0.1:0", "trap '' HUP;", &[]);
    let url = drive.serves(&array.path("ready"));
    signal(drive.child.id(), Signal::HUP);
    array.csd(&["kv", "ls", "--drive", &url]).expect(0, &[]);
    signal(drive.child.id(), Signal::TERM);
    finish(drive).expect(0, &["asked to stop"]);
}

#[test]
fn a_path_that_is_no_utf8_works_or_is_named() {
    let array = Array::without_drives();
    let name = OsStr::from_bytes(b"m\xFFm");
    let mut command = Command::new(binary());
    command.args(["drive", "serve", "--media"]).arg(name);
    let options = ["--size", "128M", "--listen", "127.0.0.1:0", "--ready-file", "ready"];
    let mut drive = array.spawn_as(command, &options, Stdio::null());
    let url = drive.serves(&array.path("ready"));
    assert!(array.folder.path().join(name).exists());
    array.csd(&["kv", "ls", "--drive", &url]).expect(0, &[]);
    signal(drive.child.id(), Signal::TERM);
    finish(drive).expect(0, &[]);
    let mut command = Command::new(binary());
    command.arg("stat").arg(name);
    let done = finish(array.spawn_as(command, &[], Stdio::null()));
    done.expect(2, &["argument \"m\\xFFm\" is no UTF-8"]);

    // An array in such a folder is refused, because options of drives are text, and nothing is
    // made. Hosts use an array's file there.
    let folder = array.folder.path().join(OsStr::from_bytes(b"d\xFF"));
    std::fs::create_dir(&folder).unwrap();
    let mut command = Command::new(binary());
    command.arg("--array").arg(folder.join("a.toml"));
    let up = ["array", "up", "--drives", "1", "--size", "128M"];
    finish(array.spawn_as(command, &up, Stdio::null())).expect(2, &["the path is no UTF-8"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let served = Array::up(1, "128M");
    std::fs::copy(served.path("csd-array.toml"), folder.join("a.toml")).unwrap();
    let mut command = Command::new(binary());
    command.arg("--array").arg(folder.join("a.toml"));
    finish(served.spawn_as(command, &["ls"], Stdio::null())).expect(0, &[]);
}

#[test]
fn fewer_files_than_connections_are_said_and_hosts_beyond_are_answered() {
    let array = Array::without_drives();
    let before = "ulimit -n 136;";
    let mut drive = serve(&array, "127.0.0.1:0", before, &["--connections", "500"]);
    let address = address_of(&drive.serves(&array.path("ready")));
    let mut hosts = Vec::new();
    for number in 0..30 {
        let mut wire = Wire::open(address);
        wire.initialise();
        let status = wire.connect(NQN, 0, 0xFFFF, true).status;
        assert_eq!(status, if number < 8 { 0 } else { 0x181 }, "host {number}");
        hosts.push(wire);
    }
    drop(hosts);
    signal(drive.child.id(), Signal::TERM);
    let words = "may open 136 files (RLIMIT_NOFILE): 8 connections at most, not 500";
    finish(drive).expect(0, &[words]);
}

#[test]
fn the_log_and_the_metrics_say_why_a_queue_closed() {
    let metrics = free_address();
    let text = metrics.to_string();
    let mut drive = Drive::serve("memory", &["--log", "json", "--metrics", &text]);
    let count = |cause: &str| {
        let page = scrape(metrics, "GET /metrics HTTP/1.0\r\n\r\n");
        let start = format!("csd_connections_closed_total{{cause=\"{cause}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {start}")).parse::<u64>().unwrap()
    };
    // A host that hangs up, and takes its I/O queue with it.
    drop(drive.connect());
    wait_until("both queues are over", || count("hung_up") + count("admin_queue_ended") == 2);
    // One that breaks a rule, one that gives a reason, and one that disconnects its queue.
    let (_admin, mut io) = drive.connect();
    io.stream.write_all(&[9; 8]).unwrap();
    wait_until("a violation", || count("violation") == 1);
    let (_admin, mut io) = drive.connect();
    let mut reason = vec![2, 0, 24, 0, 24, 0, 0, 0, 5, 0, 7];
    reason.resize(24, 0);
    io.stream.write_all(&reason).unwrap();
    wait_until("a reason", || count("terminated") == 1);
    let (_admin, mut io) = drive.connect();
    let disconnect = NvmeCommand::new(0x7F, 0).byte(4, 0x08);
    assert_eq!(io.command(disconnect, &[], 0).status, 0);
    wait_until("a Disconnect", || count("disconnected") == 1);
    // A host with a keep-alive timeout that is silent.
    let mut silent = Wire::open(drive.address());
    silent.initialise();
    let (mut command, data) = csd_tests::wire::connect_command(NQN, 0, 0xFFFF, 32, true);
    command.0[48..52].copy_from_slice(&1000u32.to_le_bytes());
    assert_eq!(silent.command_in_capsule(command, &data).status, 0);
    wait_until("the keep-alive timeout", || count("keep_alive") == 1);
    let done = drive.stop().expect(0, &[]);
    for words in [
        "the host closed the connection",
        "the host broke the transport's rules: Invalid PDU Header Field (0x01), information 0x0",
        "the host ended it (H2CTermReq): Data Transfer Limit Exceeded or R2T Limit Exceeded \
         (0x05), information 0x7",
        "the host disconnected the queue",
        "keep-alive timeout of 1 s",
    ] {
        let line = format!("\"cause\":\"{words}\"");
        assert!(done.stderr.contains(&line), "{line} is not in {}", done.stderr);
    }
}
