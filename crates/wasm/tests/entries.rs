//! Exports that a module may have, and arithmetic that does not depend on the machine.

#![allow(clippy::unwrap_used, missing_docs)]

use csd_kernels::program::{Compiled, Limits, run};
use csd_wasm::{Entry, Wasm};

fn module(body: &str) -> Vec<u8> {
    wat::parse_str(format!(r#"(module (memory (export "memory") 1) {body})"#)).unwrap()
}

const RUN: &str = r#"(func (export "csd_run") (result i64) (i64.const 1))"#;

#[test]
fn fold_and_records_are_optional_and_of_the_programs_type() {
    let wasm = Wasm::new().unwrap();
    let plain = wasm.module(&module(RUN)).unwrap();
    let has = |entry| plain.has(entry);
    assert!(has(Entry::Run) && !has(Entry::Fold) && !has(Entry::Records) && !plain.emits());
    for name in ["csd_fold", "csd_records"] {
        let with = |export: &str| wasm.module(&module(&format!("{RUN} {export}")));
        let good = format!(r#"(func (export "{name}") (result i64) (i64.const 7))"#);
        let good = with(&good).unwrap();
        let entry = if name == "csd_fold" { Entry::Fold } else { Entry::Records };
        assert!(good.has(entry));
        let limits = Limits::default();
        assert_eq!(run(good.begin(entry, &[], &limits), vec![]), Ok((7, vec![])));
        assert_eq!(run(good.start(&[], &limits).unwrap(), vec![]), Ok((1, vec![])));
        let wrong = format!(r#"(func (export "{name}") (result i32) (i32.const 7))"#);
        assert!(with(&wrong).unwrap_err().contains("is not of type () -> i64"));
        let wrong = format!(r#"(global (export "{name}") i64 (i64.const 7))"#);
        assert!(with(&wrong).unwrap_err().contains("is no function"));
    }
    let emit = r#"(module (import "csd" "emit" (func (param i32 i32)))
        (memory (export "memory") 1) (func (export "csd_run") (result i64) (i64.const 1)))"#;
    assert!(wasm.module(&wat::parse_str(emit).unwrap()).unwrap().emits());
}

/// x86 gives a negative NaN for 0/0, ARM a positive one; an answer has the same bytes on both.
#[test]
fn nan_has_the_same_bits_everywhere() {
    let body = r#"(func (export "csd_run") (result i64)
        (i64.reinterpret_f64 (f64.div (f64.load (i32.const 0)) (f64.load (i32.const 8)))))"#;
    let wasm = Wasm::new().unwrap();
    let nan = wasm.module(&module(body)).unwrap();
    let bits = run(nan.start(&[], &Limits::default()).unwrap(), vec![]).unwrap().0;
    assert_eq!(bits, 0x7FF8_0000_0000_0000);
}
