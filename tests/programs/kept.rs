//! Compiled programs count towards the drive's memory while they are loaded.

use std::sync::Arc;

use csd_kernels::program::{Compiled, Engine, Failure, Limits, Program};
use csd_tests::wire::Command;

use crate::host::{Host, INDEX};

const PTYPE: u8 = 0xC7;
/// Memory of a program: two of them fit, three do not.
const LARGE_BYTES: u64 = 25 << 20;
const BYTES_EXCEEDED: u16 = 0x194;

/// Engine of small programs that report a large size.
#[derive(Debug)]
struct Large;

impl Engine for Large {
    fn ptype(&self) -> u8 {
        PTYPE
    }

    fn name(&self) -> &'static str {
        "large"
    }

    fn compile(&self, _: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        Ok(Arc::new(Self))
    }
}

impl Compiled for Large {
    fn start(&self, _: &[u8], _: &Limits) -> Result<Box<dyn Program>, Failure> {
        Err(Failure::parameters("it is only large"))
    }

    fn bytes(&self) -> u64 {
        LARGE_BYTES
    }
}

#[test]
fn loaded_programs_take_no_more_memory_than_is_said() {
    let mut host = Host::with(1, vec![Arc::new(Large)]);
    let load = |host: &mut Host, index: u32| {
        let select = index | u32::from(PTYPE) << 16 | 1 << 25;
        let command = Command::new(0x85, 5).dword(10, select).dword(11, 4).dword(14, 4);
        host.admin.command(command, b"long", 0).status
    };
    assert_eq!([0, 1, 2].map(|i| load(&mut host, INDEX + i)), [0, 0, BYTES_EXCEEDED]);
    assert_eq!(host.said(), "program refused: maximum program bytes exceeded (0x194)");
    assert_eq!(host.activate(INDEX + 2, true), 0x196, "its index is empty");
    assert_eq!(host.unload(INDEX), 0);
    assert_eq!(load(&mut host, INDEX + 2), 0, "there is room again");
}
