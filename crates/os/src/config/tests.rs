//! Tests of the bundle's configuration.

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
        processors: Some("1"),
        cluster: address.is_some().then_some(Path::new("/f/cluster")),
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
        assert_eq!(resources["cpu"], json!({ "quota": 50_000, "period": 100_000, "cpus": "1" }));
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
