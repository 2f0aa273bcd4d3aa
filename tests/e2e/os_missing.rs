//! `csd os` on machines that lack something: one sentence, exit code 2, and nothing is started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::drive::Drive;
use crate::support::harness::{Done, binary, finish};
use crate::support::os::{Guest, skipped};
use crate::support::tunnel::TUNNEL_HOST;

/// Asserts that a command says one sentence of its mistake.
#[track_caller]
fn says(done: Done, words: &[&str]) {
    let done = done.expect(2, words);
    assert_eq!(done.stderr.trim().lines().count(), 1, "{}", done.stderr);
}

#[test]
fn what_the_machine_lacks_is_said_in_one_sentence() {
    if skipped() {
        return;
    }
    let guest = Guest::drive("memory");
    let up = ["os", "up", &guest.url, "--root", "/"];
    let array = ["array", "up", "--drives", "1", "--size", "256M", "--kv", "20%", "--os", "/"];
    let run = |program: &[&str], arguments: &[&str]| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(binary());
        finish(guest.drive.array.spawn_as(command, arguments, Stdio::null()))
    };
    // Each tool is hidden by a device in its place, which is no program.
    for tool in ["runc", "losetup", "mke2fs", "setpriv", "unshare"] {
        let mut paths = ["/usr/sbin", "/usr/bin"].iter().map(|folder| format!("{folder}/{tool}"));
        let path = paths.find(|path| Path::new(path).exists()).unwrap();
        let hide = format!("mount --bind /dev/null $(readlink -f {path}) && exec \"$@\"");
        let without = ["unshare", "--mount", "sh", "-c", &hide, "sh"];
        for command in [&up[..], &array] {
            says(run(&without, command), &[&format!("csd os needs {tool}"), "apt-get install"]);
        }
    }
    let nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"];
    let done = run(&nobody, &up);
    // Where the folders of the program are closed to others, that cannot be tried.
    if matches!(done.code, 126 | 127) {
        eprintln!("SKIPPED: another user cannot run {}", binary().display());
    } else {
        says(done, &["csd os needs root"]);
    }
    assert!(!guest.is_inside_only() && !guest.drive.array.path("csd-array").exists());
    assert!(!guest.drive.array.path("d0.inside.os").exists());
}

#[test]
fn a_machine_without_tun_devices_has_no_openssh_inside() {
    if skipped() {
        return;
    }
    if !Path::new("/dev/net").is_dir() {
        return eprintln!("SKIPPED: this machine has none: tests/e2e/tunnel.rs sees it refused");
    }
    let drive = Drive::serve("memory", &["--inside", "d0.inside", "--tunnel-host", TUNNEL_HOST]);
    let url = drive.inside_url("d0.inside");
    let key = drive.array.file("key.pub", b"ssh-ed25519 AAAA test\n");
    let up = ["os", "up", &url, "--root", "/", "--key", key];
    let array = ["array", "up", "--drives", "1", "--size", "256M", "--os", "/", "--os-key", key];
    for command in [&up[..], &array] {
        let hide = "mount -t tmpfs none /dev/net && exec \"$@\"";
        let mut without = Command::new("unshare");
        without.args(["--mount", "sh", "-c", hide, "sh"]).arg(binary());
        let done = finish(drive.array.spawn_as(without, command, Stdio::null()));
        says(done, &["/dev/net/tun is not there"]);
    }
    assert!(!drive.array.path("d0.inside.os").exists() && !drive.array.path("csd-array").exists());
}

#[test]
fn a_kernel_without_ocfs2_is_told_from_one_without_a_cluster() {
    if skipped() {
        return;
    }
    let drive = Drive::serve("memory", &["--inside", "d0.inside"]);
    let url = drive.inside_url("d0.inside");
    let up = ["os", "up", &url, "--root", "/", "--fs", "ocfs2"];
    let array = ["array", "up", "--drives", "1", "--size", "256M", "--os", "/", "--fs", "ocfs2"];
    drive.array.csd(&[&up[..5], &["--fs", "xfs"]].concat()).expect(2, &["say ext4 or ocfs2"]);
    let key = drive.array.file("key.pub", b"ssh-ed25519 AAAA test\n");
    let both = [&up[..], &["--key", key]].concat();
    says(drive.array.csd(&both), &["OpenSSH", "OCFS2", "both take the inside"]);
    // The kernel that the tests run on has it in few places, and a cluster in none.
    let has = fs::read_to_string("/proc/filesystems").unwrap().contains("ocfs2");
    let why = if has { "--fs ocfs2" } else { "this machine's kernel has no OCFS2" };
    for command in [&up[..], &array] {
        says(drive.array.csd(command), &[why]);
    }
    assert!(!drive.array.path("d0.inside.os").exists() && !drive.array.path("csd-array").exists());
}
