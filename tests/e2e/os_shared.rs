//! Resources that all users of the machine share: root inside takes them until it is refused or
//! killed, and they are still there outside. Each test has rows of the table in docs/guide/os.md.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::harness::{finish, wait_until};
use crate::support::os::{Guest, id, skipped};
use crate::support::os_load::{groups, hosts_go_on};

/// Takes instances of inotify, message queues and queued signals: as many as its argument says, or
/// until it is refused. Prints the numbers, and what another user then gets of inotify. Waits.
const ACCOUNTS: &str = "\
import ctypes, os, resource, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
_, files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
takes = [
    lambda _: libc.inotify_init1(0) >= 0,
    lambda n: libc.mq_open(b'/csd-%d-%d' % (os.getpid(), n), os.O_CREAT, 0o600, None) >= 0,
    lambda _: libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0,
]
most = int(sys.argv[1]) if sys.argv[1:] else 1 << 20
taken = []
for take in takes:
    number = 0
    while number < most and take(number): number += 1
    taken.append(number)
if sys.argv[1:]:
    libc.mq_unlink(b'/csd-%d-0' % os.getpid())
    sys.exit(print(*taken))
if not os.fork():
    os.setuid(1000)
    print(*taken, libc.inotify_init1(0), flush=True)
    os._exit(0)
time.sleep(1 << 20)
";

#[test]
fn users_inside_have_accounts_of_their_own() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&["--memory", "96M"]);
    let other = Guest::up(&["--memory", "96M"]);
    let watches = guest.exec(&["python3", "-c", WATCH]).expect(0, &[]);
    assert_eq!(watches.text(), "b'seen'\n", "inotify works");
    let outside = |program: &mut Command| {
        let done = program.args(["-c", ACCOUNTS, "1"]).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let before = outside(&mut Command::new("python3"));
    let mut taking = guest.spawn(&["python3", "-c", ACCOUNTS]);
    let out = taking.output.path().join("out");
    wait_until("all is taken", || fs::read_to_string(&out).unwrap().ends_with('\n'));
    let said = fs::read_to_string(&out).unwrap();
    let taken: Vec<i64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [instances, queues, signals, of_another] = taken[..] else { panic!("{said}") };
    assert!(instances > 1 && queues > 1 && signals > 1, "{said}");
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
    if instances < most.trim().parse().unwrap() {
        eprintln!("SKIPPED: limits of files end instances of inotify first ({said})");
    } else {
        assert_eq!(of_another, -1, "another user inside has what this one left");
    }
    let other_guest = other.exec(&["python3", "-c", ACCOUNTS, "1"]).expect(0, &[]);
    assert_eq!(other_guest.text(), "1 1 1\n");
    if before == "1 1 1\n" {
        assert_eq!(outside(&mut Command::new("python3")), before, "root of this machine");
    } else {
        eprintln!("SKIPPED: this machine has none of these left, or no Python: {before:?}");
    }
    hosts_go_on(&guest, &other);
    taking.child.kill().unwrap();
    taking.child.wait().unwrap();
}

/// Sees by inotify that a file is made.
const WATCH: &str = "\
import ctypes, os
libc = ctypes.CDLL(None)
events = libc.inotify_init1(0)
assert libc.inotify_add_watch(events, b'/data', 0x100) >= 0
open('/data/seen', 'w').close()
print(os.read(events, 4096)[16:].rstrip(b'\\0'))
";

/// Takes kernel memory of a kind, at least twice 64 MiB of it, and ends well then.
const FILL: &str = "\
import ctypes, os, resource, select, socket, sys
libc = ctypes.CDLL(None)
_, files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
full, kept = bytes(1 << 16), []
def epoll():
    events = [os.eventfd(0) for _ in range(1000)]
    for _ in range(1000):
        kept.append(select.epoll())
        for event in events: kept[-1].register(event)
def sockets():
    for _ in range(1500):
        near, far = socket.socketpair()
        near.setblocking(False)
        try:
            while near.send(full): pass
        except BlockingIOError: kept.extend([near, far])
def pipes():
    for _ in range(10000):
        kept.append(os.pipe())
        os.set_blocking(kept[-1][1], False)
        try:
            while os.write(kept[-1][1], full): pass
        except BlockingIOError: pass
def memfd():
    kept.append(os.memfd_create('memfd'))
    for _ in range(2048): os.write(kept[0], full)
def shm():
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, 128 << 20, 0o1600)
    address = libc.shmat(segment, None, 0)
    libc.shmctl(segment, 0, None)
    ctypes.memset(address, 1, 128 << 20)
def mlock():
    import mmap
    kept.append(mmap.mmap(-1, 128 << 20))
    libc.mlockall(3)
    for page in range(0, 128 << 20, 4096): kept[0][page] = 1
def semaphores():
    for _ in range(100): libc.semget(0, 32000, 0o1600)
globals()[sys.argv[1]]()
";

#[test]
fn memory_of_the_kernel_counts_as_memory_of_the_operating_system() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&["--memory", "64M"]);
    let other = Guest::up(&["--memory", "64M"]);
    let container = id(&guest.folder());
    let kills = || guest.status()["oom_kills"].as_u64().unwrap();
    // Semaphores stay when their process ends: last.
    for kind in ["epoll", "sockets", "pipes", "memfd", "shm", "mlock", "semaphores"] {
        let before = kills();
        let done = guest.exec(&["python3", "-c", FILL, kind]);
        assert!(done.code == 137 && kills() > before, "{kind} is not counted: {done:?}");
    }
    hosts_go_on(&guest, &other);
    assert_eq!(other.status()["oom_kills"], 0);
    guest.down().expect(0, &[]);
    assert_eq!(groups(&container).filter(|group| group.exists()).count(), 0);
}

#[test]
fn names_and_dirty_pages_stay_within_the_memory() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&["--memory", "64M"]);
    let other = Guest::up(&[]);
    let used = || guest.status()["memory_bytes"].as_u64().unwrap();
    let before = used();
    // The kernel keeps names that are not there, of 192 bytes at least.
    let names = "import os\nfor n in range(150000): os.path.exists('/data/%d' % n)";
    guest.exec(&["python3", "-c", names]).expect(0, &[]);
    assert!(used() > before + (20 << 20), "{} after {before}", used());
    // More pages than the memory has, of which nothing asks to be durable.
    guest.sh("dd if=/dev/zero of=/data/pages bs=1M count=72 2>&1").expect(0, &[]);
    assert!(used() <= 64 << 20);
    hosts_go_on(&guest, &other);
    assert_eq!(guest.status()["oom_kills"], 0);
}

/// Tries what would load a module of the machine's kernel, or change the machine, and prints the
/// outcomes.
const TRIES: &str = "\
import fcntl, os, resource, socket, struct
def say(name, act):
    try: act(); print(name, 'done')
    except OSError as error: print(name, error.strerror)
near, far = os.openpty()
say('sctp', lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132))
say('sctp stream', lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 132))
say('pair', lambda: socket.socketpair(40, socket.SOCK_STREAM))
say('netfilter', lambda: socket.socket(16, socket.SOCK_RAW, 12))
say('netlink of users', lambda: socket.socket(16, socket.SOCK_RAW, 2))
say('discipline', lambda: fcntl.ioctl(far, 0x5423, struct.pack('i', 13)))
say('priority', lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
say('real time', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
say('victim', lambda: open('/proc/self/oom_score_adj', 'w', buffering=1).write('-1000\\n'))
say('route', lambda: socket.socket(16, socket.SOCK_RAW, 0))
say('tcp', lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 6))
say('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
say('unix', lambda: socket.socketpair())
say('interfaces', lambda: socket.if_nameindex())
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print('core', *resource.getrlimit(resource.RLIMIT_CORE))
terminals = 1
try:
    while True: os.openpty(); terminals += 1
except OSError: print('terminals', terminals)
";

const TRIED: &str = "\
sctp Function not implemented
sctp stream Function not implemented
pair Function not implemented
netfilter Function not implemented
netlink of users Function not implemented
discipline Operation not permitted
priority Permission denied
real time Operation not permitted
victim Permission denied
route done
tcp done
udp done
unix done
interfaces done
core 1 1
terminals 256
";

#[test]
fn modules_devices_and_priorities_of_the_machine_stay() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    let modules = || {
        let text = fs::read_to_string("/proc/modules").unwrap_or_default();
        let names = text.lines().filter_map(|line| line.split(' ').next());
        names.filter(|name| matches!(*name, "sctp" | "vsock" | "n_hdlc")).count()
    };
    let before = modules();
    assert_eq!(guest.exec(&["python3", "-c", TRIES]).expect(0, &[]).text(), TRIED);
    assert_eq!(modules(), before);
    // Its null device, and the one that a program gets from this machine.
    let mode = || fs::metadata("/dev/null").unwrap().permissions().mode();
    let machine = mode();
    guest.sh("chmod 1666 /dev/null /proc/self/fd/0 /proc/1/fd/0").expect(0, &[]);
    let after = mode();
    if after != machine {
        fs::set_permissions("/dev/null", Permissions::from_mode(machine)).unwrap();
    }
    assert_eq!(after, machine, "root inside changed the machine's null device");
    assert_eq!(guest.sh("stat -c %a /dev/null").expect(0, &[]).text(), "1666\n");
    let done =
        finish(guest.spawn(&["sh", "-c", "echo to > /dev/null; head -c 3 /dev/zero | wc -c"]));
    assert_eq!(done.expect(0, &[]).text(), "3\n");
}
