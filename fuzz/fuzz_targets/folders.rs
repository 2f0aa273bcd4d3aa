//! The data of a List Folder answer: children that parse can be answered again.

#![no_main]

use csd_nvme::vendor::folders::{Answer, Answered, sealed_name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(answered) = Answered::parse(data) else { return };
    let size = u32::try_from(data.len()).expect("short");
    let mut answer = Answer::new(size).expect("parsed");
    for (key, child) in &answered.children {
        assert!(answer.push(key, *child));
        if let csd_nvme::vendor::folders::Child::Object(entry) = child {
            let _is_entry = sealed_name(entry, key);
        }
    }
    let again = answer.finish(answered.next, answered.unreadable).expect("it fits");
    assert_eq!(Answered::parse(&again), Some(answered));
});
