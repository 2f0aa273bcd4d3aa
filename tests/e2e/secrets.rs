//! Drives that authenticate their hosts by secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::harness::{Array, small_i32};

pub(crate) const HOST: &str = "nqn.2026-11.io.csdstore:host";

/// Writes a secrets file that only its owner may read.
pub(crate) fn write(array: &Array, name: &'static str, lines: &[String]) -> &'static str {
    fs::write(array.path(name), lines.concat()).unwrap();
    fs::set_permissions(array.path(name), Permissions::from_mode(0o600)).unwrap();
    name
}

pub(crate) fn secret(array: &Array, arguments: &[&str]) -> String {
    array.csd(&[&["secret", "new"], arguments].concat()).expect(0, &[]).text()
}

#[test]
fn hosts_and_drives_prove_who_they_are() {
    let array = Array { folder: TempDir::new().unwrap() };
    let host = secret(&array, &["--nqn", HOST]);
    let controller = format!("controller {}", secret(&array, &["--hash", "512"]));
    let good = write(&array, "good", &[host.clone(), controller.clone()]);
    let up = ["array", "up", "--drives", "2", "--size", "256M", "--media", "memory"];
    array.csd(&[&up[..], &["--secrets", good]].concat()).expect(0, &[]);
    let (data, sevens) = small_i32(3, 300_000);
    let file = array.file("numbers", &data);
    array.csd(&["put", file, "--type", "i32", "--secrets", good]).expect(0, &[]);
    let count = ["run", "count", file, "--equal", "7", "--on", "all", "--json"];
    let counted = array.csd(&[&count[..], &["--secrets", good]].concat()).expect(0, &[]).json();
    assert_eq!(counted["result"]["count"], sevens);
    // One way: a host need not ask for the drive's proof.
    let one_way = write(&array, "one-way", std::slice::from_ref(&host));
    array.csd(&["ls", "--secrets", one_way]).expect(0, &[]);
    array.csd(&["kv", "put", file, "--drive", "d0", "--secrets", good]).expect(0, &[]);
    let got = array.csd(&["kv", "get", file, "--drive", "d0", "--secrets", one_way]);
    assert!(got.expect(0, &[]).stdout == data);
    array.csd(&["kv", "ls", "--drive", "d0"]).expect(1, &["connect: invalid host"]);

    // Without the file this machine is an unknown host, or one without proof.
    array.csd(&["ls"]).expect(1, &["connect: invalid host"]);
    let words = ["it wants a secret of nqn.2026-11.io.csdstore:host"];
    array.csd(&["ls", "--host-nqn", HOST]).expect(1, &words);
    // The option selects one of several hosts in a file.
    let other = secret(&array, &["--nqn", "nqn.2026-11.io.csdstore:other"]);
    let both = write(&array, "both", &[other, host.clone()]);
    array.csd(&["ls", "--secrets", both]).expect(1, &["connect: invalid host"]);
    array.csd(&["ls", "--secrets", both, "--host-nqn", HOST]).expect(0, &[]);
    let wrong = secret(&array, &["--nqn", HOST]);
    let wrong = write(&array, "wrong", &[wrong]);
    let words = ["it refused this host: authentication failed"];
    array.csd(&["ls", "--secrets", wrong]).expect(1, &words);
    let impostor = format!("controller {}", secret(&array, &[]));
    let impostor = write(&array, "impostor", &[host.clone(), impostor]);
    array.csd(&["ls", "--secrets", impostor]).expect(1, &["its proof does not hold"]);
    let stranger = secret(&array, &["--nqn", "nqn.2026-11.io.csdstore:stranger"]);
    let stranger = write(&array, "stranger", &[stranger]);
    array.csd(&["ls", "--secrets", stranger]).expect(1, &["connect: invalid host"]);
}

#[test]
fn a_host_that_expects_a_proof_takes_no_drive_without() {
    let array = Array::up(1, "256M");
    let host = secret(&array, &["--nqn", HOST]);
    let controller = format!("controller {}", secret(&array, &["--hash", "384"]));
    let file = write(&array, "secrets", &[host, controller]);
    array.csd(&["ls", "--secrets", file]).expect(1, &["it does not prove who it is"]);
}

#[test]
fn unusable_secrets_files_are_refused_in_words() {
    let array = Array { folder: TempDir::new().unwrap() };
    let host = secret(&array, &["--nqn", HOST]);
    let serve = |file: &str| {
        let serve = ["drive", "serve", "--media", "memory", "--size", "256M", "--secrets", file];
        array.csd(&serve)
    };
    serve("none").expect(1, &["secrets file none"]);
    let file = write(&array, "open", std::slice::from_ref(&host));
    fs::set_permissions(array.path(file), Permissions::from_mode(0o640)).unwrap();
    serve(file).expect(2, &["mode 640", "chmod 600"]);
    let cut = host.trim_end().trim_end_matches(':').to_owned();
    let refused = serve(write(&array, "cut", &[cut])).expect(2, &["line 1: a secret is DHHC-1"]);
    let key = host.rsplit(':').nth(1).unwrap();
    assert!(!refused.stderr.contains(key), "a secret was printed");
    serve(write(&array, "empty", &[])).expect(2, &["no line `host NQN SECRET`"]);
    let beyond = ["drive", "serve", "--media", "memory", "--size", "256M", "--listen", "0.0.0.0:0"];
    array.csd(&beyond).expect(2, &["not a loopback address", "--allow"]);
    let list = array.file("hosts", b"# ours\nnot-a-name\n");
    let allow = [&beyond[..], &["--allow-file", list]].concat();
    array.csd(&allow).expect(2, &["hosts: line 2: an NQN begins with"]);
}
