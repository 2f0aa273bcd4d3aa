//! `config.json` of the bundle, by the OCI runtime specification 1.0.2.

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::os_folder::OsFolder;
use crate::seccomp::{self, CAPABILITIES};
use crate::users::USERS;

/// Least memory, bytes.
pub const MEMORY_MIN: u64 = 32 << 20;
/// Fewest processes and threads.
pub const PIDS_MIN: u32 = 8;
/// Period of the CPU's quota, microseconds.
const PERIOD_US: u64 = 100_000;
/// Paths under /proc and /sys that show or change the whole machine, as `runc spec` hides them.
const MASKED: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/sys/firmware",
    "/proc/scsi",
];
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Namespaces that runc makes.
const NAMESPACES: [&str; 6] = ["mount", "pid", "network", "uts", "ipc", "cgroup"];
/// Most pseudo-terminals of one operating system. The machine has kernel.pty.max of them.
pub const TERMINALS: u32 = 256;
/// Path of the public keys inside.
const KEYS: &str = "/run/csd/authorized_keys";
/// File inside that moves the process whose number is written there into the group of sessions.
const SESSIONS: &str = "/run/csd/sessions";
/// List of the processors of the machine, and what it tells of them.
const ONLINE: &str = "/sys/devices/system/cpu/online";
pub(crate) const INFO: &str = "/proc/cpuinfo";
/// Folder inside that has the output of services.
pub const LOGS: &str = "/var/log/csd";
/// Folder inside that has the key with which operating systems log in to each other, and the file
/// of OpenSSH's client that names it.
pub const CLUSTER: &str = "/run/csd/cluster";
const CLIENT: &str = "/etc/ssh/ssh_config.d/csd.conf";
/// Script of the image's OpenSSH (sshd(8)), which each session runs before its program.
const SESSION: &str = "/etc/ssh/sshrc";
/// Moves a session into the group of sessions, without a process of its own. Where the shell that
/// sshd starts it with goes on, the session is the parent of that.
pub(crate) const SESSION_SCRIPT: &str = "\
{
session=$PPID
read -r name < /proc/$session/comm
case $name in sshd*) ;; *) read -r _ _ _ session _ < /proc/$session/stat ;; esac
echo $session > /run/csd/sessions
} 2> /dev/null
";

/// Limits of an operating system, held by control groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU time per time, cores.
    pub cpus: f64,
    /// Memory with the page cache, bytes. There is no swap.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
}

impl Limits {
    /// Checks that programs can run within the limits.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self) -> Result<(), Error> {
        let wrong = if !(0.01..=1024.0).contains(&self.cpus) {
            "CPUs: from 0.01 to 1024".to_owned()
        } else if self.memory_bytes < MEMORY_MIN || i64::try_from(self.memory_bytes).is_err() {
            format!("memory: at least {}M", MEMORY_MIN >> 20)
        } else if self.pids < PIDS_MIN {
            format!("processes: at least {PIDS_MIN}")
        } else {
            return Ok(());
        };
        Err(Error::Usage(wrong))
    }

    /// Returns the CPU's quota in each period, microseconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    fn quota_us(&self) -> u64 {
        // The kernel takes no less than a millisecond.
        ((self.cpus * PERIOD_US as f64).round() as u64).max(1000)
    }
}

/// Version of the machine's control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cgroups {
    /// A hierarchy for each controller, also next to version 2 (hybrid).
    V1 {
        /// True if the kernel accounts for swap (memory.memsw).
        swap: bool,
    },
    /// One hierarchy.
    V2,
}

/// An operating system to run.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    /// Its host name.
    pub name: &'a str,
    /// Its limits.
    pub limits: Limits,
    /// Path of its control group, from the root of each hierarchy.
    pub cgroup: &'a str,
    /// Version of the control groups.
    pub cgroups: Cgroups,
    /// Address at which OpenSSH listens; none without OpenSSH.
    pub address: Option<IpAddr>,
    /// File by which a process moves itself into the group of sessions.
    pub sessions: &'a Path,
    /// Processors that its programs see; none if these are all.
    pub processors: Option<&'a str>,
    /// Folder with which operating systems log in to each other.
    pub cluster: Option<&'a Path>,
    /// Path of its user namespace.
    pub users: &'a Path,
    /// Processor, as `std::env::consts::ARCH` names it.
    pub processor: &'a str,
}

/// Returns `config.json`.
#[must_use]
pub fn config(spec: &Spec<'_>, os_folder: &OsFolder) -> Value {
    let mut namespaces = NAMESPACES.map(|kind| json!({ "type": kind })).to_vec();
    namespaces.push(json!({ "type": "user", "path": spec.users }));
    // runc wants to know the users of a namespace that it joins.
    let users = json!([{ "containerID": 0, "hostID": 0, "size": USERS }]);
    json!({
        "ociVersion": "1.0.2",
        "hostname": spec.name,
        "root": { "path": os_folder.root(), "readonly": false },
        "process": process(spec),
        "mounts": mounts(spec, os_folder),
        "linux": {
            "namespaces": namespaces,
            "uidMappings": users,
            "gidMappings": users,
            "cgroupsPath": spec.cgroup,
            "resources": resources(spec),
            "rootfsPropagation": "private",
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
            "seccomp": seccomp::filter(spec.processor, &CAPABILITIES),
        },
    })
}

fn process(spec: &Spec<'_>) -> Value {
    let caps = CAPABILITIES;
    json!({
        "terminal": false,
        "user": { "uid": 0, "gid": 0 },
        "args": ["/bin/sh", "-c", init(spec.address)],
        "env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LANG=C.UTF-8",
            "TERM=xterm",
        ],
        "cwd": "/",
        "capabilities": { "bounding": caps, "effective": caps, "permitted": caps },
        "noNewPrivileges": true,
        // If the machine runs out of memory, its own programs stay.
        "oomScoreAdj": 500,
        // No core file is so small, and the kernel takes this number for a process whose crash
        // concerns no program of the machine (kernel.core_pattern).
        "rlimits": [{ "type": "RLIMIT_CORE", "soft": 1, "hard": 1 }],
    })
}

/// Returns the script of the first process. A shell that waits also reaps the processes that it
/// inherits. The private key of the host is made once, and named last.
fn init(address: Option<IpAddr>) -> String {
    let sleep = "while :; do sleep 3600 & wait $!; done";
    let Some(address) = address else { return format!("trap 'exit 0' TERM INT\n{sleep}\n") };
    let options = [
        "Port=22",
        &format!("ListenAddress={address}"),
        &format!("AuthorizedKeysFile={KEYS}"),
        // A session moves itself by the script of the system alone.
        "PermitUserRC=no",
        "PermitRootLogin=prohibit-password",
        "PasswordAuthentication=no",
        "KbdInteractiveAuthentication=no",
        "UsePAM=no",
        "PidFile=none",
        "Subsystem=sftp internal-sftp",
    ]
    .map(|option| format!(" -o '{option}'"))
    .concat();
    format!(
        "trap 'exit 0' TERM INT\n\
         mkdir -p /run/sshd /etc/ssh\n\
         key=/etc/ssh/csd_host_key\n\
         if ! [ -s $key ]; then\n\
         rm -f $key.new $key.new.pub\n\
         ssh-keygen -q -t ed25519 -N '' -C \"$(hostname)\" -f $key.new\n\
         mv $key.new.pub $key.pub; mv $key.new $key\n\
         fi\n\
         /usr/sbin/sshd -t -f /dev/null -h $key{options} || exit 1\n\
         while :; do\n\
         /usr/sbin/sshd -D -e -f /dev/null -h $key{options} & wait $!\n\
         sleep 1 & wait $!\n\
         done\n"
    )
}

/// Returns a mount of a kind of file system that the kernel makes.
fn special(kind: &str, at: &str, options: &[&str]) -> Value {
    json!({ "type": kind, "source": kind, "destination": at, "options": options })
}

/// Returns a mount of a file or folder of this machine.
fn bind(source: &Path, at: &str, options: &[&str]) -> Value {
    json!({ "type": "bind", "source": source, "destination": at, "options": options })
}

fn mounts(spec: &Spec<'_>, os_folder: &OsFolder) -> Vec<Value> {
    let none = ["nosuid", "noexec", "nodev"];
    let terminals = format!("max={TERMINALS}");
    let read_only = ["bind", "ro", "nosuid", "nodev", "noexec"];
    let mut mounts = vec![
        special("proc", "/proc", &none),
        bind(&os_folder.devices(), "/dev", &["bind", "rw", "nosuid"]),
        special(
            "devpts",
            "/dev/pts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", &terminals],
        ),
        special("tmpfs", "/dev/shm", &["nosuid", "noexec", "nodev", "mode=1777"]),
        special("mqueue", "/dev/mqueue", &none),
        special("sysfs", "/sys", &["nosuid", "noexec", "nodev", "ro"]),
        // Runtimes such as Java's read their limits there.
        special("cgroup", "/sys/fs/cgroup", &["nosuid", "noexec", "nodev", "relatime", "ro"]),
        special("tmpfs", "/run", &["nosuid", "nodev", "mode=755", "size=16m"]),
        bind(&os_folder.data(), "/data", &["bind", "rw", "nosuid", "nodev"]),
        bind(&os_folder.hosts(), "/etc/hosts", &read_only),
    ];
    if spec.address.is_some() {
        mounts.push(bind(&os_folder.keys(), KEYS, &read_only));
        mounts.push(bind(&os_folder.session(), SESSION, &read_only));
        // Its processes can only go in: no other file of the groups can be written.
        mounts.push(bind(spec.sessions, SESSIONS, &["bind", "rw", "nosuid", "nodev", "noexec"]));
    }
    if spec.processors.is_some() {
        mounts.push(bind(&os_folder.online(), ONLINE, &read_only));
        mounts.push(bind(&os_folder.processors(), INFO, &read_only));
    }
    if let Some(cluster) = spec.cluster {
        mounts.push(bind(cluster, CLUSTER, &read_only));
        mounts.push(bind(&os_folder.client(), CLIENT, &read_only));
    }
    mounts
}

fn resources(spec: &Spec<'_>) -> Value {
    let (limits, cgroups) = (&spec.limits, spec.cgroups);
    let mut cpu = json!({ "quota": limits.quota_us(), "period": PERIOD_US });
    if let Some(processors) = spec.processors {
        cpu["cpus"] = processors.into();
    }
    let mut memory = json!({ "limit": limits.memory_bytes });
    // The limit of memory and swap together: no swap. Without accounting for swap, version 1 has no
    // such file, and runc fails.
    if !matches!(cgroups, Cgroups::V1 { swap: false }) {
        memory["swap"] = limits.memory_bytes.into();
    }
    json!({
        "cpu": cpu,
        "memory": memory,
        "pids": { "limit": limits.pids },
        // runc adds null, zero, full, random, urandom, tty and pseudo-terminals.
        "devices": [{ "allow": false, "access": "rwm" }],
    })
}

#[cfg(test)]
mod tests;
