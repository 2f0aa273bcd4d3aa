//! A new medium whose formatting fails: it is one that can be formatted or started again.

use std::sync::Arc;

use csd_kvlog::format::{self, HEAD_BYTES};
use csd_kvlog::media::{Fault, Faulty, Media};
use csd_reactor::Buffer;

use super::{Told, fault_of};
use crate::lives::{Lives, SMALL, find, keys_of, stop, store};

/// Returns a new disk behind a medium that can fail.
fn new() -> (Lives, Arc<Faulty>) {
    let lives = Lives::new(11, 1, SMALL);
    let faulty = Arc::new(Faulty::new(Media::Volatile(Arc::clone(&lives.disk)), 11));
    let medium = Arc::clone(&faulty);
    (lives.on(move |_| Media::Faulty(medium)), faulty)
}

/// Starts a drive on what a failed start has left, as it starts on what it finds.
fn start_again(mut lives: Lives) -> Result<(), String> {
    lives.cut(|| 0);
    let disk = Media::Volatile(Arc::clone(&lives.disk));
    lives = lives.on(move |_| disk);
    let (is_drive, is_blank) = lives.inspect(|media| async move {
        let is_drive = format::open(&media).await.is_ok();
        let head = Buffer::zeroed(usize::try_from(HEAD_BYTES).unwrap());
        let (read, head) = media.read(0, head).await;
        read.expect("the disk is sound");
        (is_drive, head.iter().all(|byte| *byte == 0))
    });
    if !is_drive {
        if !is_blank {
            return Err("it is neither a drive's medium nor blank".to_owned());
        }
        lives.is_blank();
    }
    let stored = lives.live(|core| async move {
        let key = keys_of(0).next().expect("endless");
        store(&core, key, b"value").await.map_err(|status| status.to_string())?;
        let found = find(&core, key).await.map_err(|status| status.to_string())?;
        assert_eq!(found.as_deref(), Some(&b"value"[..]));
        stop(&core).await;
        Ok::<(), String>(())
    });
    stored.and_then(|stored| stored)
}

#[test]
fn a_medium_whose_format_has_failed_can_be_formatted_or_started() {
    let (mut lives, faulty) = new();
    let accesses = lives.live(move |_| async move { faulty.begun() }).expect("opens");
    let mut refused = 0;
    for (number, access) in accesses.iter().enumerate() {
        for turn in 0..4 {
            let fault = fault_of(access.operation, turn);
            if turn > 0 && fault == Fault::Io {
                continue;
            }
            let told = Told(format!("access {number}, {access:?}, fails with {fault:?}"));
            let (mut lives, faulty) = new();
            faulty.fail_once(number, fault);
            refused += u64::from(lives.live(|_| async {}).is_err());
            if let Err(text) = start_again(lives) {
                panic!("{text}");
            }
            drop(told);
        }
    }
    println!("formats: {} accesses, {refused} starts refused", accesses.len());
    assert!(refused > 0, "no format has failed");
}
