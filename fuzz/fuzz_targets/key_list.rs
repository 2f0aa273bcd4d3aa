//! The data of a List answer: keys that parse can be listed again.

#![no_main]

use csd_nvme::kv::KeyList;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(keys) = KeyList::parse(data) else { return };
    let mut list = KeyList::new(u32::try_from(data.len()).expect("short")).expect("parsed");
    assert!(keys.iter().all(|key| list.push(key)));
    assert_eq!(KeyList::parse(&list.finish()), Some(keys));
});
