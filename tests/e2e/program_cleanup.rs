//! `csd program run` over objects that is killed or interrupted: its program does not stay in the
//! drives.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::harness::{Array, Done, Running, finish, signal, wait_until};

/// Without a machine id every command is another host, which does not see the programs of others.
const HOST: &str = "nqn.2026-11.io.csdstore:host";

/// Programs without output: one that ends, and one that runs until its time limit.
const MODULES: [(&str, &str); 2] =
    [("short.wasm", "(i64.const 7)"), ("long.wasm", "(loop $l (br $l)) (i64.const 0)")];

struct Owned(Array);

impl Owned {
    fn up() -> Self {
        let array = Array::up(2, "256M");
        for (name, body) in MODULES {
            let text = format!(
                r#"(module (memory (export "memory") 1)
                    (func (export "csd_run") (result i64) {body}))"#
            );
            array.file(name, &wat::parse_str(text).unwrap());
        }
        array.file("x", &[1; 40_000]);
        array.csd(&["put", "x", "--chunk", "4K"]).expect(0, &[]);
        Self(array)
    }

    fn run(&self, module: &str) -> Done {
        let run = ["program", "run", module, "--object", "x", "--host-nqn", HOST];
        self.0.csd(&run)
    }

    /// Starts a long run, and waits until both drives have its program.
    fn start(&self) -> Running {
        let run = ["program", "run", "long.wasm", "--object", "x", "--time", "20000"];
        let running = self.0.spawn(&[&run[..], &["--host-nqn", HOST]].concat(), Stdio::null());
        wait_until("both drives run the program", || self.loaded() == [1, 1]);
        running
    }

    /// Returns the number of loaded programs of each drive.
    fn loaded(&self) -> Vec<usize> {
        let list = ["program", "list", "--json", "--host-nqn", HOST];
        let listed = self.0.csd(&list).expect(0, &[]).json();
        let loaded = |drive: &Value| {
            let programs = drive["programs"].as_array().unwrap();
            programs.iter().filter(|one| one["own"] == false && one["active"] == true).count()
        };
        listed["result"]["drives"].as_array().unwrap().iter().map(loaded).collect()
    }
}

#[test]
fn a_program_whose_run_was_killed_is_unloaded_by_a_later_run() {
    let owned = Owned::up();
    let mut running = owned.start();
    owned.run("short.wasm").expect(0, &[]);
    assert_eq!(owned.loaded(), [1, 1], "a run that goes on keeps its program");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_eq!(owned.loaded(), [1, 1]);
    owned.run("short.wasm").expect(0, &[]);
    assert_eq!(owned.loaded(), [0, 0]);

    // Programs that users load have no run, and stay.
    let load = ["program", "load", "short.wasm", "--activate", "--host-nqn", HOST];
    owned.0.csd(&load).expect(0, &[]);
    owned.run("short.wasm").expect(0, &[]);
    assert_eq!(owned.loaded(), [1, 1]);
}

#[test]
fn a_run_that_is_interrupted_unloads_its_program() {
    let owned = Owned::up();
    for stop in [Signal::INT, Signal::TERM] {
        let running = owned.start();
        signal(running.child.id(), stop);
        finish(running).expect(1, &["interrupted", "unloaded"]);
        assert_eq!(owned.loaded(), [0, 0], "{stop:?}");
    }
}
