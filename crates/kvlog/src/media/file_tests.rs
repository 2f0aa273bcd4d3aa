//! Aligned and unaligned transfers with and without direct I/O, and exclusive opening of a medium.

use csd_reactor::{Config, block_on};

use super::*;

const BYTES: u64 = 4 << 20;

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251 + seed).to_le_bytes()[0]).collect()
}

fn on_core<F: Future<Output = ()> + 'static>(body: impl FnOnce() -> F + Send + 'static) {
    block_on(&Config::default(), body).expect("a core");
}

/// Makes a folder on the disk of the build, because `/tmp` may be memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

#[test]
fn any_read_of_any_write_is_right_with_and_without_direct_io() {
    for direct in [Direct::Auto, Direct::Off] {
        on_core(move || async move {
            let folder = folder();
            let (media, is_new) =
                FileMedia::open(&folder.path().join("m"), BYTES, direct, &|_| ()).await.unwrap();
            assert!(is_new && media.bytes() == BYTES);
            if direct == Direct::Auto && media.write_unit() == 1 {
                eprintln!("SKIPPED: no direct I/O here: {}", media.note());
            }
            // As a group of records is written: odd pieces, pages in all.
            let expected = pattern(3 << 20, 7);
            let mut pieces = Vec::new();
            let mut at = 0;
            for length in [64, 128 << 10, 100, 1, 4096, 1 << 20].into_iter().cycle() {
                let end = (at + length).min(expected.len());
                pieces.push(Buffer::from_slice(&expected[at..end]));
                at = end;
                if at == expected.len() {
                    break;
                }
            }
            media.write(8192, pieces).await.0.unwrap();
            media.sync().await.unwrap();
            for (offset, length) in
                [(0, 4096), (0, 1), (64, 128 << 10), (4096, 4096), (5000, 70_001), (1, 2 << 20)]
            {
                let (result, back) =
                    media.read(8192 + offset as u64, Buffer::with_room(256, length, 4)).await;
                result.unwrap();
                assert!(back[..] == expected[offset..offset + length], "{offset} {length}");
                assert!(back.headroom() >= 256 && back.tailroom() >= 4, "room for a PDU");
            }
        });
    }
}

#[test]
fn the_end_of_an_odd_file_can_be_read() {
    on_core(|| async {
        let folder = folder();
        let path = folder.path().join("odd");
        let content = pattern(10_000, 3);
        std::fs::write(&path, &content).unwrap();
        let media = FileMedia::open_read_only(&path).await.unwrap();
        let (result, back) = media.read(9_000, Buffer::zeroed(1_000)).await;
        result.unwrap();
        assert!(back[..] == content[9_000..]);
        let (result, _) = media.read(9_001, Buffer::zeroed(1_000)).await;
        assert!(matches!(result, Err(MediaError::Io(_))));
        let written = media.write(0, vec![Buffer::zeroed(4096)]).await.0;
        assert_eq!(written, Err(MediaError::ReadOnly));
        assert!(std::fs::read(&path).unwrap() == content, "looking changes nothing");
    });
}

#[test]
fn a_part_of_a_block_is_never_written_past_the_cache() {
    on_core(|| async {
        let folder = folder();
        let (media, _) =
            FileMedia::open(&folder.path().join("m"), BYTES, Direct::Auto, &|_| ()).await.unwrap();
        if media.write_unit() == 1 {
            return eprintln!("SKIPPED: no direct I/O here: {}", media.note());
        }
        let refused = media.write(100, vec![Buffer::zeroed(4096)]).await.0;
        assert_eq!(refused, Err(MediaError::OutOfRange));
    });
}

#[test]
fn a_medium_has_one_user() {
    on_core(|| async {
        let folder = folder();
        let path = folder.path().join("m");
        let (first, _) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        let busy =
            FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap_err().to_string();
        assert!(busy.contains("in use"), "{busy}");
        let busy = FileMedia::open_read_only(&path).await.unwrap_err().to_string();
        assert!(busy.contains("in use"), "{busy}");
        drop(first);
        assert!(!FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap().1);
    });
}

#[test]
fn where_direct_io_is_refused_it_is_said() {
    // The one file system in memory that every Linux box has.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("SKIPPED: no /dev/shm");
    };
    let path = folder.path().join("m");
    on_core(move || async move {
        let refused =
            FileMedia::open(&path, BYTES, Direct::On, &|_| ()).await.unwrap_err().to_string();
        assert!(refused.contains("refuses direct I/O") && refused.contains("--direct auto"));
        let (media, _) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        assert_eq!(media.note(), "direct I/O off: the file system refuses it");
        media.write(100, vec![Buffer::from_slice(b"any")]).await.0.unwrap();
    });
}
