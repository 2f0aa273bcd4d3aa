//! OCFS2: a file system that the drive's operating system and hosts have mounted at once.
//!
//! Each kernel is a node of a cluster, whose messages are between kernels (o2cb). Its owner names
//! the nodes and registers it; this module makes and mounts the file system of this node.

use std::fs;
use std::path::Path;

use crate::filesystem::LABEL;
use crate::{Error, tools};

/// Folder of the clusters that are registered with the kernel.
const CLUSTERS: &str = "/sys/kernel/config/cluster";
/// Most nodes that mount the file system at once.
const NODES: &str = "4";
/// Part of the documentation that has all steps.
const GUIDE: &str = "docs/guide/shared.md";

/// Checks that this machine can mount OCFS2, and returns the name of its cluster.
///
/// # Errors
/// [`Error::Usage`] that says what is missing.
pub fn check() -> Result<String, Error> {
    if !kernel_has() {
        return Err(Error::Usage(format!(
            "this machine's kernel has no OCFS2, which --fs ocfs2 takes (Debian's \
             linux-image-amd64 has it; {GUIDE})"
        )));
    }
    if ["mkfs.ocfs2", "mount.ocfs2"].iter().any(|tool| !tools::has(tool)) {
        let why = "--fs ocfs2 needs mkfs.ocfs2, which is not here (Debian: apt-get install \
                   ocfs2-tools)";
        return Err(Error::Usage(why.to_owned()));
    }
    let registered = fs::read_dir(CLUSTERS).into_iter().flatten().flatten();
    let mut names = registered.map(|entry| entry.file_name().to_string_lossy().into_owned());
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        _ => Err(Error::Usage(format!(
            "--fs ocfs2 takes one cluster that is registered here: `o2cb register-cluster NAME` \
             ({GUIDE})"
        ))),
    }
}

/// Returns true if the kernel has the file system, or a module of it.
fn kernel_has() -> bool {
    let knows = || {
        let list = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        list.lines().any(|line| line.split_whitespace().last() == Some("ocfs2"))
    };
    // Where the module is missing, the second look says so.
    knows() || (tools::run("modprobe", &["ocfs2"]).is_ok() && knows())
}

/// Makes the file system on an empty block device.
pub(crate) fn make(device: &str) -> Result<(), Error> {
    let cluster = format!("--cluster-name={}", check()?);
    let base = ["-q", "-F", "-b", "4K", "-N", NODES, "-L", LABEL, "--cluster-stack=o2cb"];
    tools::run("mkfs.ocfs2", &[&base[..], &[&cluster, device]].concat()).map(drop)
}

/// Mounts the file system. Its own program does it, which starts the heartbeat of this node.
pub(crate) fn mount(device: &str, folder: &Path) -> Result<(), Error> {
    let options = "noatime,nodev,nosuid";
    let folder = folder.to_string_lossy();
    tools::run("mount", &["-t", "ocfs2", "-o", options, device, &folder]).map(drop)
}
