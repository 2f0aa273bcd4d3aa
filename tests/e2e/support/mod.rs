//! Helpers that several tests share, one subject a file. A helper of one test is in that test.

pub(crate) mod bench;
pub(crate) mod characterize;
pub(crate) mod damage;
pub(crate) mod data;
pub(crate) mod direct;
pub(crate) mod drive;
pub(crate) mod fuse;
pub(crate) mod harness;
pub(crate) mod json_page;
pub(crate) mod kernel_runs;
pub(crate) mod metrics;
pub(crate) mod netns;
pub(crate) mod os;
pub(crate) mod os_load;
pub(crate) mod os_ssh;
pub(crate) mod page_lists;
pub(crate) mod pieces;
pub(crate) mod placement;
pub(crate) mod proxied;
pub(crate) mod scrub;
pub(crate) mod secrets;
pub(crate) mod third_party;
pub(crate) mod tunnel;
