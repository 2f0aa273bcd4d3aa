//! Drives that authenticate their hosts by secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::data::small_i32;
use crate::support::harness::Array;
use crate::support::secrets::{HOST, new_secret, secrets_file};

#[test]
fn hosts_and_drives_prove_who_they_are() {
    let array = Array::without_drives();
    let host = new_secret(&array, &["--nqn", HOST]);
    let controller = format!("controller {}", new_secret(&array, &["--hash", "512"]));
    let good = secrets_file(&array, "good", &[host.clone(), controller.clone()]);
    let up = ["array", "up", "--drives", "2", "--size", "256M", "--media", "memory"];
    array.csd(&[&up[..], &["--secrets", good]].concat()).expect(0, &[]);
    let (data, sevens) = small_i32(3, 300_000);
    let file = array.file("numbers", &data);
    array.csd(&["put", file, "--type", "i32", "--secrets", good]).expect(0, &[]);
    let count = ["run", "count", file, "--equal", "7", "--on", "all", "--json"];
    let counted = array.csd(&[&count[..], &["--secrets", good]].concat()).expect(0, &[]).json();
    assert_eq!(counted["result"]["count"], sevens);
    // One way: a host need not ask for the drive's proof.
    let one_way = secrets_file(&array, "one-way", std::slice::from_ref(&host));
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
    let other = new_secret(&array, &["--nqn", "nqn.2026-11.io.csdstore:other"]);
    let both = secrets_file(&array, "both", &[other, host.clone()]);
    array.csd(&["ls", "--secrets", both]).expect(1, &["connect: invalid host"]);
    array.csd(&["ls", "--secrets", both, "--host-nqn", HOST]).expect(0, &[]);
    let wrong = new_secret(&array, &["--nqn", HOST]);
    let wrong = secrets_file(&array, "wrong", &[wrong]);
    let words = ["it refused this host: authentication failed"];
    array.csd(&["ls", "--secrets", wrong]).expect(1, &words);
    let impostor = format!("controller {}", new_secret(&array, &[]));
    let impostor = secrets_file(&array, "impostor", &[host.clone(), impostor]);
    array.csd(&["ls", "--secrets", impostor]).expect(1, &["its proof does not hold"]);
    let stranger = new_secret(&array, &["--nqn", "nqn.2026-11.io.csdstore:stranger"]);
    let stranger = secrets_file(&array, "stranger", &[stranger]);
    array.csd(&["ls", "--secrets", stranger]).expect(1, &["connect: invalid host"]);
}

#[test]
fn a_host_that_expects_a_proof_takes_no_drive_without() {
    let array = Array::up(1, "256M");
    let host = new_secret(&array, &["--nqn", HOST]);
    let controller = format!("controller {}", new_secret(&array, &["--hash", "384"]));
    let file = secrets_file(&array, "secrets", &[host, controller]);
    array.csd(&["ls", "--secrets", file]).expect(1, &["it does not prove who it is"]);
}

#[test]
fn unusable_secrets_files_are_refused_in_words() {
    let array = Array::without_drives();
    let host = new_secret(&array, &["--nqn", HOST]);
    let serve = |file: &str| {
        let serve = ["drive", "serve", "--media", "memory", "--size", "256M", "--secrets", file];
        array.csd(&serve)
    };
    serve("none").expect(1, &["secrets file none"]);
    let file = secrets_file(&array, "open", std::slice::from_ref(&host));
    fs::set_permissions(array.path(file), Permissions::from_mode(0o640)).unwrap();
    serve(file).expect(2, &["mode 640", "chmod 600"]);
    let cut = host.trim_end().trim_end_matches(':').to_owned();
    let refused =
        serve(secrets_file(&array, "cut", &[cut])).expect(2, &["line 1: a secret is DHHC-1"]);
    let key = host.rsplit(':').nth(1).unwrap();
    assert!(!refused.stderr.contains(key), "a secret was printed");
    serve(secrets_file(&array, "empty", &[])).expect(2, &["no line `host NQN SECRET`"]);
    let beyond = ["drive", "serve", "--media", "memory", "--size", "256M", "--listen", "0.0.0.0:0"];
    array.csd(&beyond).expect(2, &["not a loopback address", "--allow"]);
    let list = array.file("hosts", b"# ours\nnot-a-name\n");
    let allow = [&beyond[..], &["--allow-file", list]].concat();
    array.csd(&allow).expect(2, &["hosts: line 2: an NQN begins with"]);
}
