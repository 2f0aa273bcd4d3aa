//! An array over several machines: three network namespaces with an address each, and a switch
//! between them. Needs root and `ip`; without them it prints that and passes.

use std::fs;
use std::io::Write;

use crate::support::data::small_i32;
use crate::support::harness::{Array, Done, Running, finish, wait_until};
use crate::support::netns::{Namespaces, ip};
use crate::support::secrets::{new_secret, secrets_file};

const HOST: &str = "nqn.2026-11.io.csdstore:lab";

/// Number of the namespace with the switch.
const SWITCH: usize = 3;

/// Three machines, removed on drop.
struct Machines {
    namespaces: Namespaces,
    array: Array,
    drives: Vec<Running>,
}

fn address(machine: usize) -> String {
    format!("10.77.0.{}", machine + 1)
}

impl Machines {
    fn new() -> Result<Self, String> {
        let namespaces = Namespaces::new("m", 4)?;
        let switch = namespaces.name(SWITCH);
        namespaces.ip(SWITCH, "link add switch type bridge")?;
        namespaces.ip(SWITCH, "link set switch up")?;
        for machine in 0..3 {
            let name = namespaces.name(machine);
            ip(&format!(
                "link add net netns {name} type veth peer name p{machine} netns {switch}"
            ))?;
            namespaces.ip(SWITCH, &format!("link set p{machine} master switch up"))?;
            namespaces.ip(machine, &format!("address add {}/24 dev net", address(machine)))?;
            namespaces.ip(machine, "link set net up")?;
            namespaces.ip(machine, "link set lo up")?;
        }
        Ok(Self { namespaces, array: Array::without_drives(), drives: Vec::new() })
    }

    fn spawn(&self, machine: usize, arguments: &[&str]) -> Running {
        self.namespaces.csd(machine, &self.array, arguments)
    }

    #[track_caller]
    fn csd(&self, machine: usize, arguments: &[&str]) -> Done {
        let secrets = ["--secrets", "host.secrets"];
        finish(self.spawn(machine, &[arguments, &secrets].concat()))
    }

    /// Follows the guide's steps for a machine that serves a drive.
    fn serve(&mut self, machine: usize) {
        let (listen, nqn) = (format!("{}:4420", address(machine)), nqn(machine));
        let (media, ready) = (format!("d{machine}.media"), format!("ready{machine}"));
        let mut running = self.spawn(
            machine,
            &[
                "drive",
                "serve",
                "--media",
                &media,
                "--size",
                "128M",
                "--listen",
                &listen,
                "--nqn",
                &nqn,
                "--secrets",
                "drive.secrets",
                "--ready-file",
                &ready,
            ],
        );
        assert_eq!(running.serves(&self.array.path(&ready)), url(machine));
        self.drives.push(running);
    }

    fn write_secrets(&self) {
        let host = new_secret(&self.array, &["--nqn", HOST]);
        for name in ["drive.secrets", "host.secrets"] {
            secrets_file(&self.array, name, std::slice::from_ref(&host));
        }
    }

    /// Disconnects a machine, or connects it.
    fn link(&self, machine: usize, state: &str) {
        self.namespaces.ip(SWITCH, &format!("link set p{machine} {state}")).unwrap();
        // Otherwise machines wait for one whose hardware address they still know.
        for other in 0..3 {
            self.namespaces.ip(other, "neigh flush all").unwrap();
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for drive in &mut self.drives {
            let _gone = drive.child.kill();
            let _reaped = drive.child.wait();
        }
    }
}

fn nqn(machine: usize) -> String {
    format!("nqn.2026-11.io.csdstore:d{machine}")
}

fn url(machine: usize) -> String {
    format!("nvme+tcp://{}:4420/{}", address(machine), nqn(machine))
}

/// Returns the guide's array file, with one drive.
fn array_file() -> String {
    let head = "schema = 1\nname = \"rack\"\nuuid = \"5f0c1d2e3a4b5c6d7e8f901122334455\"\n";
    format!("{head}\n[[drives]]\nname = \"d0\"\nurl = \"{}\"\n", url(0))
}

#[test]
fn drives_of_several_machines_are_an_array_for_each_of_them() {
    let mut machines = match Machines::new() {
        Ok(machines) => machines,
        Err(why) => {
            // Macros do not show their output in tests that pass.
            let _gone = writeln!(std::io::stderr(), "several machines: skipped: {why}");
            return;
        }
    };
    machines.write_secrets();
    (0..3).for_each(|machine| machines.serve(machine));
    machines.array.file("csd-array.toml", array_file().as_bytes());
    let (data, sevens) = small_i32(9, 2_000_000);
    machines.array.file("old.bin", &data);
    machines.csd(0, &["put", "old.bin", "old", "--type", "i32"]).expect(0, &[]);
    let stranger = finish(machines.spawn(0, &["array", "add", &url(1)]));
    assert_eq!(stranger.code, 1, "it has no secret: {}", stranger.stderr);
    machines.csd(0, &["array", "add", &url(1), &url(2)]).expect(0, &[]);
    machines.csd(0, &["put", "old.bin", "new", "--type", "i32"]).expect(0, &[]);

    // Another machine uses the array with a copy of the file.
    let file = fs::read_to_string(machines.array.path("csd-array.toml")).unwrap();
    fs::create_dir(machines.array.path("copy")).unwrap();
    machines.array.file("copy/csd-array.toml", file.as_bytes());
    let copy = ["--array", "copy/csd-array.toml"];
    let count = ["run", "count", "new", "--equal", "7", "--on", "all", "--json"];
    for machine in 0..3 {
        let counted = machines.csd(machine, &[&count[..], &copy].concat()).expect(0, &[]).json();
        assert_eq!(counted["result"]["count"], sevens);
        assert!(machines.csd(machine, &["get", "old", "-"]).expect(0, &[]).stdout == data);
    }
    let status = machines.csd(1, &["drive", "status", "--json"]).expect(0, &[]).json();
    assert_eq!(status["result"]["drives"].as_array().unwrap().len(), 3);
    machines.csd(2, &["array", "down"]).expect(0, &[]);
    machines.csd(2, &["array", "up"]).expect(0, &[]);

    // A machine is cut off, and comes back.
    machines.link(2, "down");
    let listed = machines.csd(0, &["ls"]).expect(4, &["d2", "is down"]).text();
    assert!(listed.contains("old") && listed.contains("new"), "{listed}");
    assert!(machines.csd(1, &["get", "old", "-"]).expect(0, &[]).stdout == data);
    machines.csd(0, &["get", "new", "-"]).expect(1, &["d2"]);
    machines.csd(2, &["ls"]).expect(1, &["of 3 drives are up"]);
    machines.link(2, "up");
    wait_until("the machine is back", || machines.csd(0, &["ls"]).code == 0);
    assert!(machines.csd(2, &["get", "new", "-"]).expect(0, &[]).stdout == data);
}
