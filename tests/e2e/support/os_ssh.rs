//! OpenSSH in the operating system of a drive, reached from a network namespace through NVMe alone.
//!
//! Skipped, in words, without root, runc, FUSE, /dev/net/tun, OpenSSH's client, or an image with
//! its server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use csd_tests::proxy::Proxy;

use crate::support::drive::{Drive, NQN};
use crate::support::netns::Namespaces;
use crate::support::os::{Guest, image, skipped};
use crate::support::tunnel::{Ends, TUNNEL_HOST, up};

/// Options of a drive with an inside and a tunnel.
pub(crate) const SSH_OPTIONS: [&str; 8] =
    ["--inside", "d0.inside", "--kv", "20%", "--size", "256M", "--tunnel-host", TUNNEL_HOST];

/// Returns a network namespace of the test with its loopback up; says why, if there is none.
pub(crate) fn namespace(test: &str) -> Option<Namespaces> {
    if skipped() {
        return None;
    }
    let has = |path: &str| Path::new(path).exists();
    let why = match () {
        () if !has("/usr/bin/ssh") => "no OpenSSH client",
        () if !Path::new(&image()).join("usr/sbin/sshd").exists() => {
            "the image has no OpenSSH server (`make os` makes one that has)"
        }
        () => {
            let namespaces = Namespaces::for_tunnels(test, 1)?;
            namespaces.ip(0, "link set lo up").unwrap();
            return Some(namespaces);
        }
    };
    eprintln!("SKIPPED: {why}");
    None
}

/// Makes a pair of keys in a folder; returns the private one.
pub(crate) fn new_key(folder: &Path) -> PathBuf {
    let key = folder.join("key");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
    assert!(keygen.status().unwrap().success());
    key
}

/// Returns a program of OpenSSH's client in the namespace, with this configuration.
pub(crate) fn client(namespaces: &Namespaces, program: &str, config: &Path) -> Command {
    let mut command = namespaces.program(0, program);
    command.arg("-F").arg(config).args(["-o", "BatchMode=yes", "-o", "IdentityAgent=none"]);
    command
}

/// Asserts that a program ends well, and returns what it prints.
#[track_caller]
pub(crate) fn said(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A drive whose operating system has OpenSSH, and the host's end, which goes through a proxy.
pub(crate) struct Reached {
    pub(crate) host: Ends,
    pub(crate) guest: Guest,
    pub(crate) proxy: Proxy,
    pub(crate) namespaces: Namespaces,
}

impl Reached {
    pub(crate) fn up(namespaces: Namespaces, options: &[&str]) -> Self {
        let drive = Drive::serve("media", &SSH_OPTIONS);
        let guest = Guest { url: drive.inside_url("d0.inside"), drive };
        let proxy = Proxy::before(guest.drive.address());
        let url = outside(&proxy);
        let host = up(&namespaces, 0, &guest.drive.array, (&url, "csd0"));
        let key = new_key(guest.drive.array.folder.path());
        let key = key.with_extension("pub").to_string_lossy().into_owned();
        guest.start(&[&["--retry", "10m", "--key", &key], options].concat()).expect(0, &[]);
        Self { host, guest, proxy, namespaces }
    }

    pub(crate) fn ssh(&self, command: &str) -> Command {
        let config = self.guest.folder().join("ssh_config");
        let mut ssh = client(&self.namespaces, "ssh", &config);
        ssh.args(["d0", command]);
        ssh
    }

    pub(crate) fn says(&self, command: &str) -> String {
        said(&self.ssh(command).output().unwrap())
    }

    /// Starts the host's end again.
    pub(crate) fn host_up(&mut self) {
        let url = outside(&self.proxy);
        self.host = up(&self.namespaces, 0, &self.guest.drive.array, (&url, "csd0"));
    }
}

fn outside(proxy: &Proxy) -> String {
    format!("nvme+tcp://{}/{NQN}", proxy.address)
}
