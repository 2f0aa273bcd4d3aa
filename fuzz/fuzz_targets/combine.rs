//! A task of the program `combine`: bytes that parse encode to the same bytes, and its answers.

#![no_main]

use csd_nvme::vendor::combine::{Answers, Task};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(task) = Task::parse(data) {
        assert_eq!(task.encode(), data);
        assert!(task.sums().count() <= csd_nvme::vendor::combine::SUMS_MAX);
    }
    let (sources, targets) = (data.len() % 5, data.len() / 8);
    if let Some(answers) = Answers::parse(data, sources, targets) {
        assert_eq!(answers.encode(), data);
        let _ = answers.result();
    }
});
