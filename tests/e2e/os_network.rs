//! OpenSSH in the operating systems of drives, reached through NVMe alone.
//!
//! The host's ends are in network namespaces of the tests, which have nothing else. Skipped, in
//! words, without root, runc, FUSE, /dev/net/tun, OpenSSH's client, or an image with its server.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use csd_tests::proxy::Door;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::data::bytes;
use crate::support::drive::Drive;
use crate::support::harness::{Array, Done, binary, finish, signal, wait_until};
use crate::support::json_page::Page;
use crate::support::netns::Namespaces;
use crate::support::os::{Guest, id, image, kill_drive, nothing_left, processes};
use crate::support::os_ssh::{Reached, SSH_OPTIONS, client, namespace, new_key, said};

/// Tunnel Send of the compute namespace.
const SEND: (u32, u8) = (5, 0xC1);
/// Bytes of a part of what is copied.
const PART: usize = 20_000_000;

#[test]
fn ssh_reaches_every_drive_and_drives_reach_each_other() {
    let Some(namespaces) = namespace("o") else { return };
    let array = Array::without_drives();
    new_key(array.folder.path());
    let csd = |arguments: &[&str]| -> Done {
        let program = namespaces.program(0, binary());
        finish(array.spawn_as(program, arguments, Stdio::null()))
    };
    let image = image();
    let first = ["array", "up", "--drives", "2", "--size", "256M", "--kv", "20%", "--os", &image];
    let with = |options: &[&str]| csd(&[&first[..], options].concat());
    with(&["--os-key", "key"]).expect(2, &["is a private key", "in .pub"]);
    with(&["--os-key", "none.pub"]).expect(2, &["none.pub"]);
    with(&["--os-key", array.file("text", b"hello\n")]).expect(2, &["no public key"]);
    let small = ["--os-key", "key.pub", "--os-network", "10.79.0.1/30"];
    with(&small).expect(2, &["--os-network 10.79.0.1/30", "the host and 2 drives"]);
    with(&["--os-network", "10.79.0.1/24"]).expect(2, &["--os-key"]);
    // Nothing was started by any of them.
    assert!(!array.path("csd-array").exists());
    with(&["--os-key", "key.pub", "--os-network", "10.79.0.1/24"]).expect(0, &[]);
    let folder = array.path("csd-array").canonicalize().unwrap();
    let config = folder.join("ssh_config");
    let ssh = |drive: &str, command: &str| {
        client(&namespaces, "ssh", &config).args([drive, command]).output().unwrap()
    };
    // `ssh -F csd-array/ssh_config d0` takes no more: the key of --os-key is in it.
    assert_eq!(said(&ssh("d0", "hostname; id -u; pwd")), "d0\n0\n/root\n");
    assert_eq!(said(&ssh("d1", "echo x > /data/x; hostname")), "d1\n");
    let x = array.csd(&["os", "exec", "d1", "--", "cat", "/data/x"]).expect(0, &[]);
    assert_eq!(x.text(), "x\n");
    // OpenSSH of d1 greets d0, by its name.
    let greeting = |at: &str| {
        format!("python3 -c \"import socket; print(socket.create_connection({at}).recv(4))\"")
    };
    assert_eq!(said(&ssh("d0", &greeting("('d1', 22)"))), "b'SSH-'\n");
    copies(&array, &namespaces, &config);
    let status = csd(&["os", "status", "--json"]).expect(0, &[]).json();
    let wrong = Page::read().wrong("os status", "csd os status", &status["result"]);
    let tunnel = &status["result"]["drives"][0]["tunnel"];
    assert!(wrong.is_empty() && tunnel["inside"] == true, "{wrong:?} {status}");
    assert!(tunnel["received_bytes"].as_u64().unwrap() > 0 && tunnel["host"].is_string());
    // The drives listen at the host's loopback, which the tunnel does not reach.
    for drive in array.drives() {
        let url = drive["url"].as_str().unwrap().to_owned();
        let port = url.split(['/', ':']).nth(4).unwrap().to_owned();
        for host in ["host", "127.0.0.1"] {
            let done = ssh("d0", &greeting(&format!("('{host}', {port})")));
            let error = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!done.status.success() && error.contains("refused"), "{host} {port}: {error}");
        }
    }
    let known = fs::read_to_string(folder.join("known_hosts")).unwrap();
    let ids = ["d0", "d1"].map(|name| id(&folder.join("os").join(name)));
    csd(&["array", "down"]).expect(0, &[]);
    ids.iter().for_each(|id| nothing_left(&folder.join("os"), id));
    assert!(!namespaces.ip(0, "link show").unwrap().contains("csd"), "a device is left");
    csd(&["array", "up"]).expect(0, &[]);
    assert_eq!(fs::read_to_string(folder.join("known_hosts")).unwrap(), known, "keys are kept");
    assert_eq!(said(&ssh("d1", "cat /data/x")), "x\n");
    // A drive that was killed comes back at another port, and its operating system goes on.
    let before = said(&ssh("d0", "cat /proc/sys/kernel/random/boot_id; stat -c %Y /proc/1"));
    let drive = array.drives()[0].clone();
    array.kill(0);
    csd(&["array", "up"]).expect(0, &[]);
    assert_ne!(array.drives()[0]["url"], drive["url"], "another port");
    assert_eq!(said(&ssh("d0", "cat /proc/sys/kernel/random/boot_id; stat -c %Y /proc/1")), before);
    nothing_is_left_of_killed_ones(&array, &namespaces, csd);
    csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    assert!(!folder.exists(), "with the files of OpenSSH");
}

/// Kills all that serves an operating system: its door, both ends of its tunnel, the drive.
fn nothing_is_left_of_killed_ones(
    array: &Array,
    namespaces: &Namespaces,
    csd: impl Fn(&[&str]) -> Done,
) {
    let place = array.path("csd-array").canonicalize().unwrap().join("os/d0");
    let container = id(&place);
    processes(&place).into_iter().for_each(|pid| signal(pid, Signal::KILL));
    array.kill(0);
    csd(&["array", "down"]).expect(4, &["hosts still cannot write its blocks"]);
    nothing_left(&place, &container);
    assert!(!namespaces.ip(0, "link show").unwrap().contains("csd"), "a device is left");
}

/// Copies a file to a drive and back by `scp` and `sftp`.
fn copies(array: &Array, namespaces: &Namespaces, config: &Path) {
    let bytes = bytes(7, 8 << 19);
    let path = |name: &str| array.path(name).to_string_lossy().into_owned();
    fs::write(array.path("big"), &bytes).unwrap();
    let scp = |from: &str, to: &str| {
        said(&client(namespaces, "scp", config).args(["-q", from, to]).output().unwrap())
    };
    scp(&path("big"), "d0:/data/big");
    let sum = client(namespaces, "ssh", config).args(["d0", "sha256sum < /data/big"]).output();
    let own = Command::new("sha256sum").stdin(fs::File::open(path("big")).unwrap()).output();
    assert_eq!(said(&sum.unwrap()), said(&own.unwrap()));
    scp("d0:/data/big", &path("back"));
    assert!(fs::read(array.path("back")).unwrap() == bytes);
    // `sshfs` speaks the same protocol.
    let batch = array.file("batch", b"get /data/big back2\n");
    let mut sftp = client(namespaces, "sftp", config);
    sftp.current_dir(array.folder.path()).args(["-q", "-b", batch, "d0"]);
    said(&sftp.output().unwrap());
    assert!(fs::read(array.path("back2")).unwrap() == bytes);
    shared_by_sshfs(array, namespaces, config, &bytes);
}

/// Mounts `/data` of a drive on the host: each side reads what the other writes.
fn shared_by_sshfs(array: &Array, namespaces: &Namespaces, config: &Path, big: &[u8]) {
    if !Path::new("/usr/bin/sshfs").exists() {
        return eprintln!("SKIPPED: no sshfs");
    }
    let folder = array.path("data0");
    fs::create_dir(&folder).unwrap();
    let mut sshfs = namespaces.program(0, "sshfs");
    // Without a cache of attributes, so that the host sees changes at once.
    sshfs.args(["-o", "dir_cache=no,attr_timeout=0,entry_timeout=0", "-F"]).arg(config);
    said(&sshfs.arg("d0:/data").arg(&folder).output().unwrap());
    let seen = fs::read(folder.join("big")).unwrap() == big;
    fs::write(folder.join("of-host"), "written by the host\n").unwrap();
    let command = "cat /data/of-host && echo written inside > /data/of-drive";
    let inside = client(namespaces, "ssh", config).args(["d0", command]).output().unwrap();
    let outside = fs::read_to_string(folder.join("of-drive"));
    said(&Command::new("umount").arg(&folder).output().unwrap());
    assert!(seen);
    assert_eq!(said(&inside), "written by the host\n");
    assert_eq!(outside.unwrap(), "written inside\n");
}

#[test]
fn an_open_ssh_connection_outlives_cuts_kills_and_restarts() {
    let Some(namespaces) = namespace("s") else { return };
    let mut reached = Reached::up(namespaces, &[]);
    let copy = reached.guest.folder().join("volume/data/copy");
    let mut ssh = reached.ssh("cat > /data/copy; sync /data/copy; sha256sum < /data/copy");
    let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = ssh.stdin.take().unwrap();
    let bytes = bytes(3, 5 * PART);
    let mut parts = bytes.chunks(PART);
    let mut sent = 0;
    let mut arrives = |act: &mut dyn FnMut(&mut Reached), reached: &mut Reached| {
        let part = parts.next().unwrap();
        sent += part.len();
        std::thread::scope(|scope| {
            // Blocks while the connection does.
            scope.spawn(|| input.write_all(part).unwrap());
            act(reached);
        });
        let length = || fs::metadata(&copy).map_or(0, |file| file.len());
        wait_until("the part arrives", || length() == sent as u64);
    };
    arrives(
        &mut |reached| {
            reached.proxy.cut(SEND, &[20], Door::Held);
            wait_until("the link is cut", || reached.proxy.cuts() == 1);
            reached.proxy.open();
        },
        &mut reached,
    );
    arrives(
        &mut |reached| {
            kill_drive(&mut reached.guest);
            reached.guest.drive.start("media", &SSH_OPTIONS);
            reached.proxy.redirect(reached.guest.drive.address());
        },
        &mut reached,
    );
    arrives(
        &mut |reached| {
            reached.host.kill();
            wait_until("its device goes", || reached.namespaces.ip(0, "link show csd0").is_err());
            reached.host_up();
        },
        &mut reached,
    );
    arrives(
        &mut |reached| {
            let end = process(&reached.guest.folder(), "csd tunnel up");
            signal(end, Signal::KILL);
            wait_until("status tells", || {
                let status = reached.guest.drive.array.csd(&["os", "status", &reached.guest.url]);
                status.code == 4 && status.stderr.contains("`csd os up` starts it again")
            });
            let again = reached.guest.start(&["--retry", "10m"]).expect(0, &[]);
            assert!(again.text().contains("runs already"), "{}", again.text());
        },
        &mut reached,
    );
    arrives(&mut |_| {}, &mut reached);
    drop(input);
    let sum = said(&ssh.wait_with_output().unwrap());
    assert!(fs::read(&copy).unwrap() == bytes);
    assert_eq!(sum, reached.says("sha256sum < /data/copy"));
    let (folder, container) = (reached.guest.folder(), id(&reached.guest.folder()));
    reached.guest.down().expect(0, &[]);
    nothing_left(&folder, &container);
    reached.host.stop().expect(0, &[]);
}

/// Returns the number of a program's process in the record.
fn process(folder: &Path, program: &str) -> u32 {
    let record = fs::read(folder.join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let mut all = record["processes"].as_array().unwrap().iter();
    let found = all.find(|process| process["program"] == program).unwrap();
    u32::try_from(found["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn what_has_no_network_is_refused_in_words() {
    let Some(_namespaces) = namespace("b") else { return };
    let guest = Guest::drive("memory");
    let folder = guest.drive.array.folder.path();
    let key = new_key(folder).with_extension("pub").to_string_lossy().into_owned();
    guest.start(&["--key", &key]).expect(2, &["the drive has no tunnel", "--tunnel-host"]);
    let drive = Drive::serve("memory", &SSH_OPTIONS);
    let url = drive.inside_url("d0.inside");
    let guest = Guest { drive, url };
    // A root folder with a shell, and no OpenSSH.
    let root = guest.drive.array.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/sh"), "").unwrap();
    let up = ["os", "up", &guest.url, "--root", "root", "--key", &key];
    guest.drive.array.csd(&up).expect(2, &["no OpenSSH server (usr/sbin/sshd)", "os-image"]);
    assert!(!guest.is_inside_only(), "all is undone");
    // One that runs without it does not get it.
    guest.start(&[]).expect(0, &[]);
    guest.start(&["--key", &key]).expect(2, &["without OpenSSH", "csd os down"]);
    let hide = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let mut without = Command::new("unshare");
    without.args(["--mount", "sh", "-c", hide, "sh"]).arg(binary());
    guest.down().expect(0, &[]);
    let done = finish(guest.drive.array.spawn_as(without, &up, Stdio::null()));
    let done = done.expect(2, &["/dev/net/tun is not there"]);
    assert_eq!(done.stderr.trim().lines().count(), 1, "{}", done.stderr);
}
