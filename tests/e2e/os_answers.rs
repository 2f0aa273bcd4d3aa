//! OpenSSH of an operating system answers while its programs take all that their limits allow.
//!
//! Programs of a session stay within the limit of sessions, so that OpenSSH starts others. A shell
//! that cannot start processes has its own commands: that is what a user types against a bomb.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::harness::wait_until;
use crate::support::os::{Guest, id};
use crate::support::os_load::{BOMB, hosts_go_on, is_full, memory_runs_out, outside_sessions};
use crate::support::os_ssh::{Reached, namespace};

#[test]
fn ssh_answers_whatever_programs_take() {
    let Some(namespaces) = namespace("l") else { return };
    let limits = ["--cpus", "0.5", "--memory", "128M", "--pids", "48"];
    let reached = Reached::up(namespaces, &limits);
    let other = Guest::drive("memory");
    let answers = || assert_eq!(reached.says("echo ok"), "ok\n");
    no_neighbours_for_addresses(&reached);
    let loops = "(while :; do :; done) & (while :; do :; done) & echo begun; wait";
    let mut loops = reached.guest.spawn(&["sh", "-c", loops]);
    let said = loops.output.path().join("out");
    wait_until("they loop", || fs::read_to_string(&said).unwrap().contains("begun"));
    answers();
    loops.child.kill().unwrap();
    loops.child.wait().unwrap();
    memory_runs_out(&reached.guest, || {
        answers();
        hosts_go_on(&reached.guest, &other);
    });
    let own = reached.says("cat /proc/self/cgroup");
    assert!(own.lines().any(|line| line.ends_with(":/sessions")), "{own}");
    a_bomb_stays(&reached, &other);
    let full = reached.ssh("dd if=/dev/zero of=/data/big bs=1M").output().unwrap();
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"), "{full:?}");
    answers();
    hosts_go_on(&reached.guest, &other);
}

/// Sends to all addresses of the tunnel's network. The table of neighbours is one of the whole
/// machine.
fn no_neighbours_for_addresses(reached: &Reached) {
    let entries = || {
        let text = fs::read_to_string("/proc/net/stat/arp_cache").unwrap();
        let number = text.lines().nth(1).unwrap().split_whitespace().next().unwrap();
        u32::from_str_radix(number, 16).unwrap()
    };
    let before = entries();
    let send = "import socket; udp = socket.socket(2, 2); \
                [udp.sendto(b'x', (f'10.77.0.{n}', 9)) for n in range(3, 254)]";
    reached.says(&format!("python3 -c \"{send}\""));
    // Other tests have a few at the same time.
    assert!(entries() < before + 100, "{} after {before}", entries());
}

/// A session starts processes until no session can, and goes on trying. It ends by another one.
fn a_bomb_stays(reached: &Reached, other: &Guest) {
    let container = id(&reached.guest.folder());
    let are_few = || reached.guest.status()["pids"].as_u64().unwrap() < 8;
    wait_until("no session is open", are_few);
    let mut bomb = reached.ssh(&format!("python3 -c '{BOMB}'"));
    let mut bomb = bomb.stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the bomb is at its limit", || is_full(&container));
    let outside = outside_sessions(&container);
    for _ in 0..3 {
        assert_eq!(reached.says("echo ok"), "ok\n");
    }
    // Few may be open at once, and those that have ended count until the system has collected them.
    wait_until("these have ended", || outside_sessions(&container) <= outside);
    // More than one at once, none of which starts a process. Each has begun before the next one
    // does: while it begins it takes more processes than afterwards.
    let mut open: Vec<_> = (0..3)
        .map(|_| {
            let mut ssh = reached.ssh("echo ok; read -r line; echo $line");
            let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(ssh.stdout.take().unwrap());
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert_eq!(line, "ok\n");
            (ssh, output)
        })
        .collect();
    hosts_go_on(&reached.guest, other);
    let refused = reached.ssh("sh -c 'sleep 0 & wait'").output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("fork"), "a session can start processes: {error}");
    assert!(is_full(&container), "the bomb holds its limit");
    for (ssh, output) in &mut open {
        ssh.stdin.take().unwrap().write_all(b"end\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "end\n");
    }
    for (mut ssh, _) in open {
        assert!(ssh.wait().unwrap().success());
    }
    let group = {
        let mut line = String::new();
        BufReader::new(bomb.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    reached.says(&format!("kill -KILL -- -{group}"));
    assert!(!bomb.wait().unwrap().success());
    wait_until("they have ended", are_few);
    assert_eq!(reached.says("uname"), "Linux\n");
}
