//! The operating system of a drive within its bounds: calls that root inside is refused, and
//! programs that take all they can get, while hosts use its drive and another one.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use crate::support::harness::{finish, wait_until};
use crate::support::os::{Guest, id, skipped};
use crate::support::os_load::{BOMB, groups, hosts_go_on, is_full, memory_runs_out};

/// Calls a system call by its number on x86-64 and aarch64, and prints errno.
const CALL: &str = "\
import ctypes, os, platform, sys
call = dict(bpf=(321, 280), keyctl=(250, 219), unshare=(272, 97), mount=(165, 40), setns=(308, 268),
            fsopen=(430, 430), clone3=(435, 435), io_uring_setup=(425, 425), syslog=(103, 116),
            io_setup=(206, 0), open_tree=(428, 428),
            perf_event_open=(298, 241), kexec_load=(246, 104), userfaultfd=(323, 282),
            fanotify_init=(300, 262), init_module=(175, 105), swapoff=(168, 225),
            settimeofday=(164, 170), sethostname=(170, 161))[sys.argv[1]]
number = call[platform.machine() == 'aarch64']
libc = ctypes.CDLL(None, use_errno=True)
numbers = [int(word, 0) for word in sys.argv[2:]] + [0] * 5
done = libc.syscall(number, *[ctypes.c_long(n) for n in numbers[:5]])
print('done' if done >= 0 else os.strerror(ctypes.get_errno()))
";

#[test]
fn what_root_must_not_do_is_refused_inside() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    let call = |words: &[&str]| {
        guest.exec(&[&["python3", "-c", CALL], words].concat()).expect(0, &[]).text()
    };
    let denied = "Operation not permitted\n";
    for words in [
        &["bpf"][..],
        &["keyctl", "0", "-3", "0"],
        &["unshare", "0x10000000"],
        &["unshare", "0x20000"],
        &["unshare", "0x40000000"],
        &["setns", "0", "0"],
        &["mount"],
        &["fsopen"],
        &["open_tree"],
        &["perf_event_open"],
        &["kexec_load"],
        &["syslog", "3"],
        &["userfaultfd"],
        &["fanotify_init"],
        &["init_module"],
        &["swapoff"],
        &["settimeofday"],
        &["sethostname"],
    ] {
        assert_eq!(call(words), denied, "{words:?}");
    }
    for words in ["clone3", "io_setup", "io_uring_setup"] {
        assert_eq!(call(&[words]), "Function not implemented\n", "{words}");
    }
    let refused = |script: &str, word: &str| {
        let done = guest.sh(script);
        assert!(done.code != 0 && done.stderr.contains(word), "{script}: {done:?}");
    };
    refused("mount -t tmpfs none /mnt", "");
    refused("mknod /data/disk b 7 0", "not permitted");
    refused("mknod /data/null c 1 3", "not permitted");
    refused("unshare -U true", "not permitted");
    refused("echo 1 > /proc/sysrq-trigger", "");
    refused("echo 1 > /proc/sys/vm/drop_caches", "Read-only");
    refused("chroot / sh -c 'echo 1 > /sys/kernel/mm/ksm/run'", "");
    // Its own control groups. With version 1 they lie below a tmpfs of its own.
    let group = "f=$(find /sys/fs/cgroup -name cgroup.procs | head -n 1); test -n \"$f\" && ";
    refused(&format!("{group} echo $$ > \"$f\""), "Read-only");
    refused(&format!("{group} mkdir \"${{f%/*}}/x\""), "Read-only");
    // Also the inner one, in which exec puts it.
    let inner = "f=$(find /sys/fs/cgroup -path '*/sessions/cgroup.procs') && test -n \"$f\" && ";
    refused(&format!("{inner} echo $$ > \"$f\""), "Read-only");
    refused(&format!("{inner} echo 1000 > \"${{f%/*}}/pids.max\""), "Read-only");
    let own = guest.sh("cat /proc/self/cgroup").expect(0, &[]).text();
    assert!(own.lines().any(|line| line.ends_with(":/sessions")), "{own}");
    let rights = guest.sh("grep -E 'NoNewPrivs|CapBnd|Seccomp:' /proc/self/status").expect(0, &[]);
    let rights = rights.text();
    assert!(rights.contains("NoNewPrivs:\t1") && rights.contains("Seccomp:\t2"), "{rights}");
    // chown dac_override fowner fsetid kill setgid setuid net_bind_service sys_chroot
    assert!(rights.contains("CapBnd:\t00000000000404fb"), "{rights}");
}

#[test]
fn the_machines_processes_devices_and_ports_are_out_of_reach() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    let own = std::process::id();
    let seen =
        guest.sh("for p in /proc/[0-9]*; do cat $p/cmdline; done | tr '\\0' ' '").expect(0, &[]);
    assert!(!seen.text().contains("drive serve") && !seen.text().contains("attach"), "{seen:?}");
    let kill = guest.sh(&format!(
        "kill -0 {own} || kill -0 {}",
        guest.drive.running.as_ref().unwrap().child.id()
    ));
    assert_ne!(kill.code, 0);
    let devices = guest.sh("ls /dev").expect(0, &[]).text();
    for device in ["vda", "sda", "loop-control", "fuse", "kmsg", "mem", "kvm", "net"] {
        assert!(!devices.lines().any(|line| line == device), "{device} in {devices}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [listener.local_addr().unwrap().port(), guest.drive.address().port()];
    for port in ports {
        let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)");
        let done = guest.exec(&["python3", "-c", &connect]);
        assert!(done.code != 0 && done.stderr.contains("refused"), "{done:?}");
    }
    let vsock = guest.exec(&["python3", "-c", "import socket; socket.socket(40, 1)"]);
    assert!(vsock.code != 0, "{vsock:?}");
    let raw = guest.exec(&["python3", "-c", "import socket; socket.socket(17, 3)"]);
    assert!(raw.code != 0, "{raw:?}");
    // Loopback of its own is there.
    let own = "import socket; s = socket.create_server(('127.0.0.1', 0)); \
               socket.create_connection(s.getsockname()); print('ok')";
    assert_eq!(guest.exec(&["python3", "-c", own]).expect(0, &[]).text(), "ok\n");
}

#[test]
fn programs_that_take_everything_stay_within_their_limits() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&["--cpus", "0.5", "--memory", "96M", "--pids", "48"]);
    let other = Guest::up(&["--memory", "96M"]);
    let container = id(&guest.folder());
    memory_runs_out(&guest, || hosts_go_on(&guest, &other));
    assert_eq!(guest.status()["state"], "up");
    let stop = guest.folder().join("volume/data/stop");
    let bomb = guest.spawn(&["python3", "-c", BOMB]);
    wait_until("the bomb is at its limit", || is_full(&container));
    hosts_go_on(&guest, &other);
    let pids = || guest.status()["pids"].as_u64().unwrap();
    assert!(is_full(&container) && pids() <= 48);
    fs::write(&stop, "").unwrap();
    finish(bomb).expect(0, &[]);
    wait_until("they have ended", || pids() < 8);
    let full = guest.sh("dd if=/dev/zero of=/data/big bs=1M");
    assert!(full.stderr.contains("No space left"), "{full:?}");
    hosts_go_on(&guest, &other);
    guest.sh("rm /data/big && echo fits > /data/small && cat /data/small").expect(0, &[]);
    // Two endless loops together take no more than the quota, by the kernel's own count.
    let mut loops = guest.spawn(&["sh", "-c", "(while :; do :; done) & while :; do :; done"]);
    let cpu = || guest.status()["cpu_s"].as_f64().unwrap();
    // The periods are read around the time, so that they are no fewer than those of the time.
    let (first, before) = (periods(&container), cpu());
    // On a busy machine they may not get their quota, so that nothing ever stops them: a hundred
    // periods without more than it show the limit as well.
    wait_until("they were stopped in ten periods, or ran in a hundred", || {
        let (number, stopped) = periods(&container);
        stopped >= first.1 + 10 || number >= first.0 + 100
    });
    let taken = cpu() - before;
    let number = periods(&container).0 - first.0;
    // Each CPU may keep a slice of 5 ms.
    assert!(taken <= 0.05 * f64::from(number) + 0.1, "{taken} s in {number} periods of 100 ms");
    hosts_go_on(&guest, &other);
    // Another operating system as well.
    other.sh("echo fits > /data/small && sync /data/small").expect(0, &[]);
    let apart = other.status();
    assert_eq!((&apart["state"], &apart["oom_kills"]), (&"up".into(), &0.into()), "{apart}");
    loops.child.kill().unwrap();
    loops.child.wait().unwrap();
}

/// Connects sockets of its own, and fills their buffers until nothing fits in.
const TCP: &str = "\
import socket
server = socket.create_server(('127.0.0.1', 0), backlog=300)
ends = []
for number in range(200):
    near = socket.create_connection(server.getsockname())
    far, _ = server.accept()
    near.setblocking(False)
    try:
        while near.send(bytes(1 << 16)): pass
    except BlockingIOError: pass
    ends += [near, far]
print('full', flush=True)
import time
time.sleep(1000)
";

#[test]
fn buffers_of_tcp_stay_within_their_share() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&["--memory", "96M"]);
    let container = id(&guest.folder());
    let number = |file: &str| {
        let mut files = groups(&container).map(|group| fs::read_to_string(group.join(file)).ok());
        files.find_map(|text| text?.trim().parse::<u64>().ok())
    };
    let mut filling = guest.spawn(&["python3", "-c", TCP]);
    let out = filling.output.path().join("out");
    wait_until("all are full", || fs::read_to_string(&out).unwrap() == "full\n");
    match number("memory.kmem.tcp.usage_in_bytes") {
        // Version 2 counts them as memory, which is full here without a kill.
        None => assert!(number("memory.current").unwrap() <= 96 << 20),
        Some(used) => {
            let limit = number("memory.kmem.tcp.limit_in_bytes").unwrap();
            assert_eq!(limit, 12 << 20);
            // Each socket may always have a few pages.
            assert!(used <= limit + 400 * (64 << 10), "{used} of {limit}");
        }
    }
    filling.child.kill().unwrap();
    filling.child.wait().unwrap();
}

#[test]
fn the_log_is_bounded_and_no_program_changes_what_it_has() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    let path = guest.folder().join("os.log");
    let older = guest.folder().join("os.log.1");
    let has = |line: &str| fs::read_to_string(&path).is_ok_and(|text| text.contains(line));
    guest.sh("echo the first line > /proc/1/fd/1").expect(0, &[]);
    wait_until("the line is there", || has("the first line"));
    guest.sh("truncate -s 0 /proc/1/fd/1; : > /proc/1/fd/1; echo the second > /proc/1/fd/2");
    wait_until("the next line is there", || has("the second"));
    assert!(has("the first line"), "it is not cut");
    let flood = "yes 'a line of the flood' | head -c 24000000 > /proc/1/fd/1";
    guest.sh(&format!("{flood}; echo the last line > /proc/1/fd/1")).expect(0, &[]);
    wait_until("the last line is there", || has("the last line"));
    let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |about| about.len());
    assert!(bytes(&path) <= 4 << 20 && bytes(&older) <= 4 << 20);
    guest.down().expect(0, &[]);
    assert!(has("the last line"), "it stays when the operating system is down");
}

/// Returns the number of periods in which the quota of a control group was in use, and of those in
/// which it was used up.
fn periods(container: &str) -> (u32, u32) {
    let counts = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
        let number =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
        Some((number("nr_periods ")?, number("nr_throttled ")?))
    };
    groups(container).find_map(counts).expect("a control group with a quota")
}
