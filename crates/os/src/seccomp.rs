//! The filter of system calls: the profile of containers-common, without what it allows beyond this
//! operating system's capabilities.
//!
//! That profile lets containers make containers: it allows the calls that make namespaces and
//! mounts, and keys. A user namespace of its own would give root here every capability inside it,
//! so these calls are refused. Invariant: a rule of the profile is taken over whole or not at all.

use serde::Deserialize;
use serde_json::{Value, json};

/// The profile, as Debian packages it.
const PROFILE: &str = include_str!("../data/seccomp.json");

/// Capabilities of root in the operating system. They suffice for programs with users, and for
/// OpenSSH without PAM; none of them reaches beyond the namespaces.
pub const CAPABILITIES: [&str; 9] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];
/// Calls that the profile allows and this filter refuses (EPERM).
const REFUSED: [&str; 19] = [
    // Namespaces. Clone is below.
    "unshare",
    "setns",
    // Mounts, by the old and the new interface.
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "mount_setattr",
    // Keys are not divided by namespaces.
    "keyctl",
    "add_key",
    "request_key",
    // The kernel's log, and the machine.
    "syslog",
    "reboot",
    "fanotify_mark",
];
/// Flags of clone that make namespaces (CLONE_NEW*), of <linux/sched.h>.
const CLONE_NEW: u64 = 0x7E02_0000;
/// Families of sockets (AF_*, of <linux/socket.h>). Others reach parts of the machine that no
/// network namespace divides, such as its hypervisor (AF_VSOCK).
const AF_UNIX: u64 = 1;
const AF_INET: [u64; 2] = [2, 10];
const AF_NETLINK: u64 = 16;
/// Types of sockets (SOCK_STREAM, SOCK_DGRAM) and their protocols (default, TCP, UDP) for IPv4 and
/// IPv6. For others the kernel loads modules, also for users without rights.
const TYPES: [u64; 2] = [1, 2];
const TYPE_MASK: u64 = 0xF;
const PROTOCOLS: [u64; 3] = [0, 6, 17];
const NETLINK_ROUTE: u64 = 0;
const NETLINK_AUDIT: u64 = 9;
/// Limits of a process (RLIMIT_*, of <asm-generic/resource.h>), and that of core files.
const RLIMITS: u64 = 16;
const RLIMIT_CORE: u64 = 4;
/// Request of ioctl that sets the line discipline of a terminal; the kernel loads modules for it.
const TIOCSETD: u64 = 0x5423;
const EINVAL: u32 = 22;
const EPERM: u32 = 1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_errno_ret: u32,
    syscalls: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    names: Vec<String>,
    action: String,
    args: Option<Vec<Value>>,
    #[serde(default)]
    includes: Condition,
    #[serde(default)]
    excludes: Condition,
    errno_ret: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    caps: Vec<String>,
    arches: Vec<String>,
}

impl Rule {
    /// Returns true if the rule is for this processor (of Go's names) and these capabilities.
    fn applies(&self, arch: &str, caps: &[&str]) -> bool {
        let has = |cap: &String| caps.contains(&cap.as_str());
        let is_ours = |of: &String| of == arch;
        let (with, without) = (&self.includes, &self.excludes);
        with.caps.iter().all(has)
            && (with.arches.is_empty() || with.arches.iter().any(is_ours))
            && !without.caps.iter().any(has)
            && !without.arches.iter().any(is_ours)
    }
}

/// Returns the filter as `linux.seccomp` of an OCI configuration, for root with these capabilities
/// on this processor (`x86_64` or `aarch64`). Programs of other processors, such as those of 32
/// bits, are killed.
///
/// # Panics
/// If the profile in this program is malformed, which a test excludes.
#[must_use]
pub fn filter(processor: &str, caps: &[&str]) -> Value {
    let profile: Profile = serde_json::from_str(PROFILE).expect("a test parses it");
    let (arch, architecture) = match processor {
        "aarch64" => ("arm64", "SCMP_ARCH_AARCH64"),
        _ => ("amd64", "SCMP_ARCH_X86_64"),
    };
    let mut rules = Vec::new();
    for rule in profile.syscalls.iter().filter(|rule| rule.applies(arch, caps)) {
        let is_ours = |name: &String| [&REFUSED[..], &OWN].concat().contains(&name.as_str());
        let names: Vec<&String> = rule.names.iter().filter(|name| !is_ours(name)).collect();
        if names.is_empty() {
            continue;
        }
        let mut taken = json!({ "names": names, "action": rule.action });
        if let Some(args) = rule.args.as_ref().filter(|args| !args.is_empty()) {
            taken["args"] = args.clone().into();
        }
        if let Some(errno) = rule.errno_ret {
            taken["errnoRet"] = errno.into();
        }
        rules.push(taken);
    }
    rules.extend(own_rules());
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": profile.default_errno_ret,
        "architectures": [architecture],
        "syscalls": rules,
    })
}

/// Calls whose rules are all in [`own_rules`]. Clone3 has none, and gets ENOSYS as unknown calls
/// do: its flags are in memory, where no filter looks, and libraries then take clone. Nor has
/// io_setup, whose requests all users of the machine share (fs.aio-max-nr): programs then take
/// other ways, as they do where a container has no such call.
const OWN: [&str; 9] = [
    "clone",
    "clone3",
    "io_setup",
    "ioctl",
    "prlimit64",
    "setrlimit",
    "socket",
    "socketcall",
    "socketpair",
];

fn own_rules() -> Vec<Value> {
    let no_namespaces = json!([masked(0, CLONE_NEW, 0)]);
    let mut rules = vec![
        json!({ "names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM }),
        allow("clone", no_namespaces),
    ];
    rules.extend(socket_rules());
    rules.extend(limit_rules());
    rules.extend(ioctl_rules());
    rules
}

fn socket_rules() -> Vec<Value> {
    // A pair of another family is refused by the kernel only after it has loaded a module.
    let mut rules = ["socket", "socketpair"].map(|c| allow(c, json!([is(0, AF_UNIX)]))).to_vec();
    for family in AF_INET {
        for kind in TYPES {
            rules.extend(PROTOCOLS.map(|protocol| {
                let args = json!([is(0, family), masked(1, TYPE_MASK, kind), is(2, protocol)]);
                allow("socket", args)
            }));
        }
    }
    rules.push(allow("socket", json!([is(0, AF_NETLINK), is(2, NETLINK_ROUTE)])));
    // Programs such as sshd take this for a kernel without audit.
    rules.push(errno("socket", EINVAL, json!([is(0, AF_NETLINK), is(2, NETLINK_AUDIT)])));
    rules
}

/// The limit of core files stays as [`crate::config`] sets it, and setting it seems to
/// succeed: many programs set it to zero, and end if they cannot. The kernel starts the machine's
/// program for crashes with a limit of zero as well, but not with that one.
fn limit_rules() -> Vec<Value> {
    let is_core = |index| is(index, RLIMIT_CORE);
    let mut rules = vec![
        errno("setrlimit", 0, json!([is_core(0)])),
        errno("prlimit64", 0, json!([is_core(1), condition(2, 0, "SCMP_CMP_NE")])),
        // It only asks.
        allow("prlimit64", json!([is_core(1), is(2, 0)])),
    ];
    for limit in (0..RLIMITS).filter(|limit| *limit != RLIMIT_CORE) {
        rules.push(allow("setrlimit", json!([is(0, limit)])));
        rules.push(allow("prlimit64", json!([is(1, limit)])));
    }
    rules
}

/// Refuses one request of ioctl, whatever the upper half of the argument is, which the kernel does
/// not read. Each other request differs from it in a bit of the lower half.
fn ioctl_rules() -> impl Iterator<Item = Value> {
    let refused = errno("ioctl", EPERM, json!([masked(1, u32::MAX.into(), TIOCSETD)]));
    let others = (0..u32::BITS).map(|bit| {
        let mask = 1 << bit;
        allow("ioctl", json!([masked(1, mask, !TIOCSETD & mask)]))
    });
    others.chain([refused])
}

fn allow(name: &str, args: Value) -> Value {
    json!({ "names": [name], "action": "SCMP_ACT_ALLOW", "args": args })
}

fn errno(name: &str, errno: u32, args: Value) -> Value {
    json!({ "names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": args })
}

/// Returns the condition that an argument has a value.
fn is(index: u32, value: u64) -> Value {
    condition(index, value, "SCMP_CMP_EQ")
}

/// Returns the condition that an argument has a value in the bits of a mask.
fn masked(index: u32, mask: u64, value: u64) -> Value {
    json!({ "index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" })
}

fn condition(index: u32, value: u64, op: &str) -> Value {
    json!({ "index": index, "value": value, "op": op })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(processor: &str, caps: &[&str]) -> Vec<Value> {
        filter(processor, caps)["syscalls"].as_array().unwrap().clone()
    }

    /// Returns the rules that name a call: action, number of conditions, errno.
    fn of(rules: &[Value], call: &str) -> Vec<(String, usize, u64)> {
        let names = |rule: &&Value| rule["names"].as_array().unwrap().iter().any(|n| n == call);
        let describe = |rule: &Value| {
            let action = rule["action"].as_str().unwrap().trim_start_matches("SCMP_ACT_");
            let args = rule["args"].as_array().map_or(0, Vec::len);
            (action.to_owned(), args, rule["errnoRet"].as_u64().unwrap_or(0))
        };
        rules.iter().filter(names).map(describe).collect()
    }

    #[test]
    fn what_root_must_not_do_is_refused_whole() {
        let rules = rules("x86_64", &CAPABILITIES);
        for call in REFUSED.iter().chain(&["bpf", "perf_event_open", "open_by_handle_at"]) {
            assert_eq!(of(&rules, call), [("ERRNO".to_owned(), 0, 1)], "{call}");
        }
        for call in ["init_module", "swapon", "kexec_load", "iopl", "clock_settime", "quotactl"] {
            assert_eq!(of(&rules, call), [("ERRNO".to_owned(), 0, 1)], "{call}");
        }
        // Not in any rule: ENOSYS by the default.
        for call in ["clone3", "io_setup", "io_uring_setup", "socketcall", "no_such_call"] {
            assert_eq!(of(&rules, call), [], "{call}");
        }
    }

    #[test]
    fn what_programs_need_is_allowed() {
        let rules = rules("x86_64", &CAPABILITIES);
        for call in ["read", "openat", "execve", "mmap", "fsync", "mknodat", "futex", "chroot"] {
            assert_eq!(of(&rules, call), [("ALLOW".to_owned(), 0, 0)], "{call}");
        }
        assert_eq!(of(&rules, "clone"), [("ALLOW".to_owned(), 1, 0)]);
        let sockets = of(&rules, "socket");
        assert!(sockets.iter().all(|rule| rule.1 > 0), "each of a family: {sockets:?}");
        assert_eq!(sockets.iter().filter(|rule| rule.0 == "ALLOW").count(), 14);
        assert_eq!(of(&rules, "socketpair"), [("ALLOW".to_owned(), 1, 0)]);
        assert_eq!(of(&rules, "getrlimit"), [("ALLOW".to_owned(), 0, 0)]);
    }

    #[test]
    fn every_request_of_ioctl_but_one_is_allowed() {
        let rules = rules("x86_64", &CAPABILITIES);
        let actions = |request: u64| {
            let named = rules.iter().filter(|rule| rule["names"][0] == "ioctl");
            let meets = |rule: &&Value| {
                let part = |name: &str| rule["args"][0][name].as_u64().unwrap();
                request & part("value") == part("valueTwo")
            };
            let mut actions: Vec<&Value> =
                named.filter(meets).map(|rule| &rule["action"]).collect();
            actions.dedup();
            actions
        };
        for request in [0, 0x5401, 0x5422, TIOCSETD + (1 << 31), u32::MAX.into(), u64::MAX] {
            assert_eq!(actions(request), ["SCMP_ACT_ALLOW"], "{request:x}");
        }
        for request in [TIOCSETD, TIOCSETD | 1 << 32, TIOCSETD | 1 << 63] {
            assert_eq!(actions(request), ["SCMP_ACT_ERRNO"], "{request:x}");
        }
    }

    #[test]
    fn rules_follow_capabilities_and_processors() {
        let with = rules("x86_64", &["CAP_SYS_TIME"]);
        assert_eq!(of(&with, "clock_settime"), [("ALLOW".to_owned(), 0, 0)]);
        assert_eq!(of(&with, "chroot"), [("ERRNO".to_owned(), 0, 1)]);
        let arm = rules("aarch64", &CAPABILITIES);
        assert_eq!(of(&arm, "arch_prctl"), []);
        assert_eq!(of(&arm, "cacheflush"), [("ALLOW".to_owned(), 0, 0)]);
        assert_eq!(filter("aarch64", &[])["architectures"], json!(["SCMP_ARCH_AARCH64"]));
    }
}
