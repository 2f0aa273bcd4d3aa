//! Network of operating systems: the ends of their drives' tunnels, the keys that may log in, and
//! what OpenSSH's client on this machine has to know.
//!
//! `ssh_config` and `known_hosts` are in the folder of the array, or of the operating system; each
//! operating system has its own lines in both.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use csd_initiator::{Controller, Error};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_COMPUTE;
use csd_nvme::vendor::tunnel::{LogEntry, LogHeader, parse_log};
use csd_os::network::Tunnel;
use serde_json::{Value, json};

use super::target::{OsTarget, program};
use crate::report::Failure;
use crate::target;
use crate::units::size;

/// Name of the tunnel's host inside.
pub(super) const HOST: &str = "host";

/// The ends of a drive's tunnel: the host's, and that of the operating system.
pub(super) struct Ends([LogEntry; 2]);

impl Ends {
    /// Returns the ends of a drive's tunnel; `None` if it has no tunnel.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub(super) fn of(target: &OsTarget<'_>) -> Result<Option<Self>, Failure> {
        Ok(target.ask(tunnel_ends)?.map(Self))
    }

    /// Returns the bytes that the operating system has sent and received.
    pub(super) fn shown(&self) -> String {
        let inside = &self.0[1];
        match inside.network() {
            Some((address, _)) if inside.present() == 1 => {
                let (sent, received) = (size(inside.sent_bytes()), size(inside.received_bytes()));
                format!("{address}, {sent} sent, {received} received")
            }
            _ => "no device inside".to_owned(),
        }
    }

    /// Returns the addresses of the host and of the operating system.
    pub(super) fn addresses(&self) -> Option<[IpAddr; 2]> {
        let [outside, inside] = &self.0;
        Some([outside.network()?.0, inside.network()?.0])
    }

    /// Describes the ends for programs.
    pub(super) fn describe(&self) -> Value {
        let [outside, inside] = &self.0;
        json!({
            "address": inside.network().map(|(address, _)| address.to_string()),
            "host": (outside.present() == 1).then(|| outside.host_nqn()),
            "inside": inside.present() == 1,
            "sent_bytes": inside.sent_bytes(),
            "received_bytes": inside.received_bytes(),
            "dropped_packets": outside.dropped_packets() + inside.dropped_packets(),
        })
    }
}

/// Asks a drive for the ends of its tunnel: the host's, and that of the operating system. `None` if
/// it has no tunnel.
pub(crate) async fn tunnel_ends(controller: &Controller) -> Result<Option<[LogEntry; 2]>, Error> {
    let bytes = u32::try_from(LogHeader::SIZE + 2 * LogEntry::SIZE).expect("832");
    let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, bytes);
    let data = match controller.admin(sqe, &[], bytes).await {
        Err(error) if error.status() == Some(Status::INVALID_LOG_PAGE) => return Ok(None),
        reply => reply?.data,
    };
    Ok(parse_log(&data).and_then(|(_, ends)| ends.try_into().ok()))
}

/// Returns the command lines of a drive's tunnel; `None` if it has none. `ends` are its addresses.
pub(super) fn tunnel(
    target: &OsTarget<'_>,
    ends: Option<[IpAddr; 2]>,
    keys: Option<&str>,
) -> Result<Option<Tunnel>, Failure> {
    let Some([_, address]) = ends else {
        return match keys {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "OpenSSH takes a network, and the drive has no tunnel (`csd drive serve \
                 --tunnel-host`, or `csd array up --os-key`)",
            )),
        };
    };
    crate::tunnel::check()?;
    let connection = target.connection()?;
    let up = |url: &str, more: &[&str]| -> Result<Vec<String>, Failure> {
        let words = ["tunnel", "up", "--drive", url].map(str::to_owned);
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        Ok([&[program()?], &words[..], &connection, &more].concat())
    };
    let inside = up(&target.inside.to_string(), &["--netns"])?;
    let outside = target.outside.as_deref().map(|url| up(url, &[])).transpose()?;
    Ok(Some(Tunnel { inside, outside, address, keys: keys.map(str::to_owned), cluster: None }))
}

/// Returns the addresses and names that an operating system knows.
pub(super) fn hosts(target: &OsTarget<'_>, ends: Option<&[IpAddr; 2]>) -> Vec<(IpAddr, String)> {
    let Some([host, own]) = ends else { return target.hosts.clone() };
    let mut hosts = vec![(*host, HOST.to_owned())];
    match &target.hosts[..] {
        [] => hosts.push((*own, target.name.clone())),
        drives => hosts.extend_from_slice(drives),
    }
    hosts
}

/// Reads a file of public keys.
pub(super) fn public_keys(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let path = path.display();
    if text.contains("PRIVATE KEY") {
        let why = "is a private key: name the public one, which ends in .pub";
        return Err(Failure::usage(format!("{path} {why}")));
    }
    let kinds = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
    let has_key = |line: &str| kinds.iter().any(|kind| line.starts_with(kind));
    match text.lines().any(has_key) {
        true => Ok(text),
        false => Err(Failure::usage(format!("{path} has no public key of OpenSSH"))),
    }
}

/// Returns the files of a folder for OpenSSH's client.
pub(super) fn ssh_files(folder: &Path) -> [PathBuf; 2] {
    ["known_hosts", "ssh_config"].map(|name| folder.join(name))
}

/// Writes the lines of an operating system for OpenSSH's client. `keys` is the file of the public
/// keys that may log in.
pub(super) fn know_host(
    target: &OsTarget<'_>,
    key: &str,
    address: IpAddr,
    keys: Option<&Path>,
) -> Result<(), Failure> {
    let name = &target.name;
    let [known, path] = ssh_files(&target.ssh);
    let mut config = format!(
        "Host {name}\n  HostName {address}\n  User root\n  HostKeyAlias {name}\n  \
         UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n",
        quoted(&known)
    );
    if let Some(identity) = keys.and_then(identity) {
        config.push_str(&format!("  IdentityFile {}\n", quoted(&identity)));
    }
    // Another command may do this for another drive of the array.
    let _lock = lock(&known).map_err(|error| Failure::os(known.display(), &error))?;
    let before = read(&path)?;
    let others = without_host(&before, name);
    // Without keys to tell, a block that is there names them.
    if keys.is_some() || others == before {
        target::replace(&path, &format!("{others}{config}"))?;
    }
    let is_own = |line: &&str| line.split(' ').next() == Some(name);
    let others = read(&known)?;
    let others = others.split_inclusive('\n').filter(|line| !is_own(line)).collect::<String>();
    // The last one: whoever opens this file from now on has the lock.
    target::replace(&known, &format!("{others}{name} {key}\n"))
}

/// Locks a file that its users replace while they hold the lock.
pub(super) fn lock(path: &Path) -> std::io::Result<File> {
    loop {
        let file = File::options().create(true).append(true).open(path)?;
        file.lock()?;
        let (held, named) = (file.metadata()?, fs::metadata(path));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
            return Ok(file);
        }
    }
}

/// Returns the private key of a public one, if it is next to it: OpenSSH's client tries only some
/// names by itself.
fn identity(public: &Path) -> Option<PathBuf> {
    let private = public.with_extension("");
    (public.extension()? == "pub" && private.is_file()).then_some(private)
}

/// Writes a path as OpenSSH's client reads it, which replaces what a percent sign begins.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

/// Removes the block of a host from a configuration of OpenSSH.
fn without_host(text: &str, name: &str) -> String {
    let mut own = false;
    let keeps = |line: &&str| {
        if let Some(host) = line.strip_prefix("Host ") {
            own = host.trim_end() == name;
        }
        !own
    };
    text.split_inclusive('\n').filter(keeps).collect()
}

pub(super) fn read(path: &Path) -> Result<String, Failure> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| Failure::os(path.display(), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_of_one_host_are_replaced() {
        let text = "Host d0\n  User root\nHost d1\n  User root\nHost d10\n  User x\n";
        let left = without_host(text, "d1");
        assert_eq!(left, "Host d0\n  User root\nHost d10\n  User x\n");
        assert_eq!(without_host("", "d1"), "");
    }
}
