//! Plans of queries, and parameters of their executions: what is accepted has operators, and is
//! written and read as itself. The rows are not read: readers of Parquet may panic, and a drive
//! then fails the execution.

#![no_main]

use csd_kernels::program::{Compiled, Limits};
use csd_query::Substrait;
use csd_query::plan::Plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (bytes, parameters) = rest.split_at(length);
    let Ok(plan) = Plan::decode(bytes) else { return };
    if let Ok(written) = plan.encode() {
        let read = Plan::decode(&written).expect("what was written is read");
        assert_eq!(read.columns, plan.columns);
    }
    let compiled = Substrait::plan(bytes).expect("it was read before");
    let _program = compiled.start(parameters, &Limits::default());
});
