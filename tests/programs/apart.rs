//! A program that takes long to compile delays no execution.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csd_kernels::program::{Compiled, Engine};
use csd_tests::wire::Command;

use crate::host::{Host, INDEX};

/// Limit of each wait on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);
const PTYPE: u8 = 0xC7;
/// Program in Use.
const IN_USE: u16 = 0x199;

/// Engine that compiles until the test releases it.
#[derive(Debug)]
struct Slow {
    begun: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl Engine for Slow {
    fn ptype(&self) -> u8 {
        PTYPE
    }

    fn name(&self) -> &'static str {
        "slow"
    }

    fn compile(&self, _: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Err("it took too long".to_owned())
    }
}

#[test]
fn programs_run_while_another_is_compiled() {
    let ((begun, has_begun), (let_go, go_on)) = (channel(), channel());
    let slow = Slow { begun: Mutex::new(begun), go_on: Mutex::new(go_on) };
    // One core, and so one lane.
    let mut host = Host::with(1, vec![Arc::new(slow)]);
    let trivial = r#"(module (memory (export "memory") 1)
        (func (export "csd_run") (result i64) (i64.const 42)))"#;
    assert_eq!(host.load(INDEX, &wat::parse_str(trivial).unwrap()), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    let select = (INDEX + 1) | u32::from(PTYPE) << 16 | 1 << 25;
    let load = || Command::new(0x85, 5).dword(10, select).dword(11, 4).dword(14, 4);
    let cid = host.admin.post(load(), b"long");
    has_begun.recv_timeout(LIMIT).expect("it is being compiled");

    let reply = host.execute(INDEX, [(0, 64), (8192, 64)], &[]);
    assert_eq!((reply.status, reply.result), (0, 42), "while the other is compiled");
    // Its index is taken until then, so that one host cannot queue work without end.
    assert_eq!(host.admin.command(load(), b"long", 0).status, IN_USE);
    assert_eq!(host.unload(INDEX + 1), IN_USE);

    let_go.send(()).unwrap();
    assert_eq!(host.admin.response(), (cid, 0x18E, 0));
    assert!(host.said().ends_with("program refused: it took too long"));
    assert_eq!(host.unload(INDEX + 1), 0x196, "the index is empty");
}
