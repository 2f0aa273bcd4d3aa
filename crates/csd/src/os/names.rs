//! The names of an array's operating systems for programs of this host.
//!
//! They are in a file of the array's folder, in the form of `/etc/hosts`, which stays as it is.
//! Java reads the file by its property `jdk.net.hosts.file`.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::network::HOST;
use super::target::OsTarget;
use crate::report::Failure;
use crate::target;

/// Returns the file in the folder of an array.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("hosts")
}

/// Writes the names for the host of an array. A drive without an array has them in its own folder.
pub(super) fn write(target: &OsTarget<'_>, hosts: &[(IpAddr, String)]) -> Result<(), Failure> {
    if target.hosts.is_empty() {
        return Ok(());
    }
    // Java asks for this host by its own name as well.
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    target::replace(&file(&target.ssh), &text(hosts, own.trim()))
}

fn text(hosts: &[(IpAddr, String)], own: &str) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (address, name) in hosts {
        text.push_str(&format!("{address} {name}\n"));
        let is_new = !own.is_empty() && hosts.iter().all(|(_, name)| name != own);
        if name == HOST && is_new {
            text.push_str(&format!("{address} {own}\n"));
        }
    }
    text
}

#[test]
fn this_host_has_both_of_its_names() {
    let hosts =
        [([10, 77, 0, 1].into(), "host".to_owned()), ([10, 77, 0, 2].into(), "d0".to_owned())];
    let lines = |own| text(&hosts, own).lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines("lab"), ["10.77.0.1 host", "10.77.0.1 lab", "10.77.0.2 d0"]);
    // A machine whose name is that of a drive has its own by that of the tunnel's host.
    assert_eq!(lines("d0"), ["10.77.0.1 host", "10.77.0.2 d0"]);
    assert_eq!(lines(""), lines("host"));
}
