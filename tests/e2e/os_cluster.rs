//! Operating systems for programs over several drives: names for this host, logins
//! from drive to drive, as many processors as the quota gives, and services.
//!
//! Skipped, in words, without root, runc, FUSE, /dev/net/tun, OpenSSH's client, or an image with
//! its server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::harness::{Array, Done, binary, finish, signal, wait_until};
use crate::support::json_page::documented;
use crate::support::netns::Namespaces;
use crate::support::os::{Guest, image, skipped};
use crate::support::os_ssh::{client, namespace, new_key, said};

/// Runs `csd` of an array in the namespace of the test.
fn csd_in(namespaces: &Namespaces, array: &Array, arguments: &[&str]) -> Done {
    let program = namespaces.program(0, binary());
    finish(array.spawn_as(program, arguments, Stdio::null()))
}

#[test]
fn drives_log_in_to_each_other_where_it_was_asked_for() {
    let Some(namespaces) = namespace("c") else { return };
    let array = Array::without_drives();
    new_key(array.folder.path());
    let csd = |arguments: &[&str]| csd_in(&namespaces, &array, arguments);
    let image = image();
    let up = ["array", "up", "--drives", "2", "--size", "256M", "--kv", "20%", "--os", &image];
    csd(&[&up[..], &["--os-cluster"]].concat()).expect(2, &["--os-key"]);
    let keys = ["--os-key", "key.pub", "--os-network", "10.80.0.1/24"];
    csd(&[&up[..], &keys].concat()).expect(0, &[]);
    let folder = array.path("csd-array").canonicalize().unwrap();
    let config = folder.join("ssh_config");
    let ssh = |drive: &str, command: &str| {
        client(&namespaces, "ssh", &config).args([drive, command]).output().unwrap()
    };
    let next = "ssh -o BatchMode=yes d1 hostname";
    let refused = ssh("d0", next);
    assert!(!refused.status.success() && !folder.join("cluster").exists(), "{refused:?}");
    csd(&["array", "down"]).expect(0, &[]);
    csd(&[&up[..], &keys, &["--os-cluster"]].concat()).expect(0, &[]);
    assert_eq!(said(&ssh("d0", next)), "d1\n");
    assert_eq!(
        said(&ssh("d1", "ssh -o BatchMode=yes d0 'ssh -o BatchMode=yes d1 hostname'")),
        "d1\n"
    );
    // The key belongs to root of this machine, and nothing inside changes it.
    let mode = fs::metadata(folder.join("cluster/key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let write = ssh("d0", "echo x >> /run/csd/cluster/known_hosts");
    assert!(
        !write.status.success() && String::from_utf8_lossy(&write.stderr).contains("Read-only")
    );
    // Java of this host finds the drives by this file.
    let hosts = fs::read_to_string(folder.join("hosts")).unwrap();
    for line in ["127.0.0.1 localhost", "10.80.0.1 host", "10.80.0.2 d0", "10.80.0.3 d1"] {
        assert!(hosts.lines().any(|found| found == line), "{line}: {hosts}");
    }
    // The keys outlast a restart, and the array takes them with it.
    let key = fs::read(folder.join("cluster/key")).unwrap();
    csd(&["array", "down"]).expect(0, &[]);
    csd(&["array", "up"]).expect(0, &[]);
    assert!(fs::read(folder.join("cluster/key")).unwrap() == key);
    assert_eq!(said(&ssh("d1", "ssh -o BatchMode=yes d0 hostname")), "d0\n");
    csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    assert!(!folder.exists());
}

#[test]
fn programs_see_as_many_processors_as_the_quota_gives() {
    if skipped() {
        return;
    }
    let usable = std::thread::available_parallelism().unwrap().get();
    if usable < 2 {
        return eprintln!("SKIPPED: this process may use one processor");
    }
    let guest = Guest::up(&["--cpus", "0.5"]);
    let counts = "nproc; grep -c '^processor' /proc/cpuinfo; getconf _NPROCESSORS_ONLN";
    assert_eq!(guest.sh(counts).expect(0, &[]).text(), "1\n1\n1\n");
    assert_eq!(guest.status()["processors"], 1);
    let cpus = usable.to_string();
    let whole = Guest::up(&["--cpus", &cpus]);
    assert_eq!(whole.sh("nproc").expect(0, &[]).text(), format!("{usable}\n"));
    assert_eq!(whole.status()["processors"], usable);
}

#[test]
fn a_service_outlives_its_command_and_is_listed() {
    if skipped() {
        return;
    }
    let guest = Guest::drive("memory");
    let array = &guest.drive.array;
    let url = &guest.url;
    let start = |name: &str, program: &[&str]| {
        array.csd(&[&["os", "service", "start", url, name, "--"], program].concat())
    };
    start("web", &["true"]).expect(2, &["does not run", "csd os up"]);
    guest.start(&[]).expect(0, &[]);
    start("../web", &["true"]).expect(2, &["no name of a service"]);
    start("none", &["no-such-program"]).expect(2, &["no-such-program: not found"]);
    assert_eq!(guest.status()["services"], serde_json::json!([]), "it never began");
    let script = "echo begun; sleep 1000 & echo $! > child; wait";
    let more = [url, "loop", "--", "sh", "-c", script];
    let begun = documented(array, "os service start", &more, 0);
    let log =
        guest.folder().join("root").join(begun["log"].as_str().unwrap().trim_start_matches('/'));
    wait_until("it logs", || fs::read_to_string(&log).is_ok_and(|text| text == "begun\n"));
    let child = guest.folder().join("volume/data/child");
    wait_until("it has a child", || {
        fs::read_to_string(&child).is_ok_and(|text| text.ends_with('\n'))
    });
    start("loop", &["true"]).expect(2, &["service loop runs already"]);
    let status = documented(array, "os status", &[url], 0);
    let listed = &status["drives"][0]["services"][0];
    assert_eq!((&listed["name"], &listed["running"]), (&"loop".into(), &true.into()), "{status}");
    // It is in the group of sessions, so that OpenSSH goes on whatever it takes.
    let pid = u32::try_from(listed["pid"].as_u64().unwrap()).unwrap();
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(groups.lines().any(|line| line.ends_with("/sessions")), "{groups}");
    array.csd(&["os", "service", "stop", url, "other"]).expect(2, &["no service other"]);
    let ended = documented(array, "os service stop", &[url, "loop"], 0);
    assert_eq!(ended["was_running"], true);
    let left = guest.sh("kill -0 $(cat child)");
    assert_ne!(left.code, 0, "its child went with it");
    // One that ends by itself is a fault, until it is stopped or started again.
    start("loop", &["sleep", "1000"]).expect(0, &[]);
    let pid = guest.status()["services"][0]["pid"].as_u64().unwrap();
    signal(u32::try_from(pid).unwrap(), Signal::KILL);
    wait_until("status tells", || {
        let status = array.csd(&["os", "status", url]);
        status.code == 4 && status.stderr.contains("service loop has ended: /var/log/csd/loop.log")
    });
    start("loop", &["sleep", "1000"]).expect(0, &[]);
    array.csd(&["os", "status", url]).expect(0, &[]);
    guest.down().expect(0, &[]);
    guest.start(&[]).expect(0, &[]);
    assert_eq!(guest.status()["services"], serde_json::json!([]), "they end with it");
}
