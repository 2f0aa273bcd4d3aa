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
            "resources": resources(&spec.limits, spec.cgroups),
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
    mounts
}

fn resources(limits: &Limits, cgroups: Cgroups) -> Value {
    let mut memory = json!({ "limit": limits.memory_bytes });
    // The limit of memory and swap together: no swap. Without accounting for swap, version 1 has no
    // such file, and runc fails.
    if !matches!(cgroups, Cgroups::V1 { swap: false }) {
        memory["swap"] = limits.memory_bytes.into();
    }
    json!({
        "cpu": { "quota": limits.quota_us(), "period": PERIOD_US },
        "memory": memory,
        "pids": { "limit": limits.pids },
        // runc adds null, zero, full, random, urandom, tty and pseudo-terminals.
        "devices": [{ "allow": false, "access": "rwm" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { cpus: 0.5, memory_bytes: 2 << 30, pids: 512 };

    fn made(address: Option<IpAddr>, cgroups: Cgroups) -> Value {
        let (cgroup, processor) = ("/csd-os-1", "x86_64");
        let users = Path::new("/proc/7/ns/user");
        let sessions = Path::new("/c/csd-os-1/sessions/cgroup.procs");
        let spec = Spec {
            name: "d0",
            limits: LIMITS,
            cgroup,
            cgroups,
            address,
            sessions,
            users,
            processor,
        };
        config(&spec, &OsFolder::new(Path::new("/f/d0")))
    }

    fn mount<'a>(config: &'a Value, at: &str) -> Option<&'a Value> {
        let all = config["mounts"].as_array().unwrap();
        all.iter().find(|mount| mount["destination"] == at)
    }

    #[test]
    fn limits_become_those_of_control_groups() {
        for cgroups in [Cgroups::V1 { swap: true }, Cgroups::V1 { swap: false }, Cgroups::V2] {
            let config = made(None, cgroups);
            let resources = &config["linux"]["resources"];
            assert_eq!(resources["cpu"], json!({ "quota": 50_000, "period": 100_000 }));
            assert_eq!(resources["memory"]["limit"], 2_147_483_648_u64);
            let swap = resources["memory"].get("swap");
            assert_eq!(swap.is_some(), cgroups != Cgroups::V1 { swap: false }, "{cgroups:?}");
            assert_eq!(resources["pids"]["limit"], 512);
            assert_eq!(resources["devices"], json!([{ "allow": false, "access": "rwm" }]));
            assert_eq!(config["linux"]["cgroupsPath"], "/csd-os-1");
        }
        assert_eq!(Limits { cpus: 0.001, ..LIMITS }.quota_us(), 1000);
        assert_eq!(Limits { cpus: 1.5, ..LIMITS }.quota_us(), 150_000);
    }

    #[test]
    fn limits_in_which_nothing_runs_are_refused() {
        assert!(LIMITS.check().is_ok());
        for (wrong, word) in [
            (Limits { cpus: 0.0, ..LIMITS }, "CPUs"),
            (Limits { cpus: f64::NAN, ..LIMITS }, "CPUs"),
            (Limits { cpus: 2000.0, ..LIMITS }, "CPUs"),
            (Limits { memory_bytes: 1 << 20, ..LIMITS }, "memory: at least 32M"),
            (Limits { memory_bytes: u64::MAX, ..LIMITS }, "memory"),
            (Limits { pids: 1, ..LIMITS }, "processes: at least 8"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(word), "{wrong:?}");
        }
    }

    #[test]
    fn root_has_few_rights_and_no_way_to_more() {
        let config = made(None, Cgroups::V2);
        let process = &config["process"];
        assert_eq!(process["noNewPrivileges"], true);
        for set in ["bounding", "effective", "permitted"] {
            assert_eq!(process["capabilities"][set], json!(CAPABILITIES));
        }
        for absent in ["inheritable", "ambient"] {
            assert!(process["capabilities"].get(absent).is_none());
        }
        for cap in ["SYS_ADMIN", "MKNOD", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "SYS_RESOURCE"] {
            assert!(!CAPABILITIES.contains(&&*format!("CAP_{cap}")), "{cap}");
        }
        let kinds = config["linux"]["namespaces"].as_array().unwrap();
        for kind in NAMESPACES {
            // Without a path: each is a new one.
            assert!(kinds.contains(&json!({ "type": kind })), "{kind}");
        }
        let users = json!({ "type": "user", "path": "/proc/7/ns/user" });
        assert!(kinds.contains(&users) && kinds.len() == NAMESPACES.len() + 1);
        // runc brings none of the machine's nodes where /dev is a mount of this kind.
        assert!(config["linux"].get("devices").is_none());
        assert_eq!(mount(&config, "/dev").unwrap()["type"], "bind");
        for at in ["/sys", "/sys/fs/cgroup", "/etc/hosts"] {
            let options = mount(&config, at).unwrap()["options"].as_array().unwrap();
            assert!(options.contains(&json!("ro")), "{at}");
        }
        for mount in config["mounts"].as_array().unwrap() {
            let options = mount["options"].as_array().unwrap();
            assert!(options.contains(&json!("nosuid")), "{mount}");
        }
    }

    #[test]
    fn openssh_is_there_with_a_network_alone() {
        let quiet = made(None, Cgroups::V2);
        assert!(mount(&quiet, KEYS).is_none() && mount(&quiet, SESSIONS).is_none());
        assert!(!quiet["process"]["args"][2].as_str().unwrap().contains("sshd"));
        let config = made(Some([10, 77, 0, 2].into()), Cgroups::V2);
        let script = config["process"]["args"][2].as_str().unwrap();
        assert!(script.contains(" -o 'ListenAddress=10.77.0.2'"), "{script}");
        assert!(script.contains("PasswordAuthentication=no"));
        assert_eq!(mount(&config, KEYS).unwrap()["source"], "/f/d0/authorized_keys");
        assert!(script.contains(" -o 'PermitUserRC=no'"));
        let (session, sessions) = (mount(&config, SESSION), mount(&config, SESSIONS));
        assert_eq!(session.unwrap()["source"], "/f/d0/sshrc");
        assert_eq!(sessions.unwrap()["source"], "/c/csd-os-1/sessions/cgroup.procs");
        assert!(SESSION_SCRIPT.contains(SESSIONS));
    }
}
