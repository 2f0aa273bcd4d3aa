//! Programs in the operating system of a drive that take all they can get, and hosts meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::harness::{finish, wait_until};
use crate::support::os::Guest;

/// Starts processes that stay, at its limit also, until it is killed or the file `stop` is there.
/// Prints the number of its group of processes first.
pub(crate) const BOMB: &str = "\
import os, time
try: os.setsid()
except PermissionError: pass
print(os.getpid(), flush=True)
while not os.path.exists(\"/data/stop\"):
    try:
        if not os.fork():
            while not os.path.exists(\"/data/stop\"): time.sleep(0.1)
            os._exit(0)
    except OSError: time.sleep(0.01)
";

/// Runs one program after another that is killed for memory, and calls `act` meanwhile.
pub(crate) fn memory_runs_out(guest: &Guest, act: impl FnOnce()) {
    let stop = guest.folder().join("volume/data/stop");
    let hogs = "until [ -e /data/stop ]; do python3 -c 'b = bytearray(1 << 30)' 2>&-; done; true";
    let hogs = guest.spawn(&["sh", "-c", hogs]);
    let kills = || guest.status()["oom_kills"].as_u64().unwrap();
    wait_until("one is killed", || kills() >= 1);
    act();
    let killed = kills();
    wait_until("others are killed after it", || kills() > killed);
    fs::write(&stop, "").unwrap();
    finish(hogs).expect(0, &[]);
    fs::remove_file(&stop).unwrap();
}

/// Returns true if no session of an operating system can start a process.
pub(crate) fn is_full(container: &str) -> bool {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut sessions = groups(container).map(|group| group.join("sessions"));
    let found = sessions.find_map(|group| {
        Some((number(group.join("pids.current"))?, number(group.join("pids.max"))?))
    });
    found.is_some_and(|(current, most)| current >= most)
}

/// Returns the number of processes of an operating system that are in no session: OpenSSH's, which
/// has one for each connection, and those that the system has not collected yet.
pub(crate) fn outside_sessions(container: &str) -> u64 {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut found = groups(container).filter_map(|group| {
        let all = number(group.join("pids.current"))?;
        Some(all.saturating_sub(number(group.join("sessions/pids.current"))?))
    });
    found.next().unwrap()
}

/// A host goes on with both drives: it writes a value, and reads it.
pub(crate) fn hosts_go_on(guest: &Guest, other: &Guest) {
    for one in [guest, other] {
        let array = &one.drive.array;
        let url = fs::read_to_string(array.path("ready")).unwrap();
        array.file("v", one.url.as_bytes());
        array.csd(&["kv", "put", "v", "--drive", url.trim()]).expect(0, &[]);
        let got = array.csd(&["kv", "get", "v", "--drive", url.trim()]).expect(0, &[]);
        assert_eq!(got.text(), one.url);
    }
}

/// Returns the folders that the control group of an operating system may have.
pub(crate) fn groups(container: &str) -> impl Iterator<Item = PathBuf> {
    let groups = Path::new("/sys/fs/cgroup");
    let inner = fs::read_dir(groups).unwrap().flatten().map(|entry| entry.path());
    inner.chain([groups.to_owned()]).map(move |group| group.join(container))
}
