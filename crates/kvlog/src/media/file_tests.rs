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
        // A first start that was killed before it wrote anything is begun again.
        let (second, is_new) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        assert!(is_new);
        second.write(0, vec![Buffer::from_slice(&[7; 4096])]).await.0.unwrap();
        drop(second);
        assert!(!FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap().1);
        std::fs::write(&path, [0; 1 << 20]).unwrap();
        let (_, is_new) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        assert!(!is_new, "another length: it is not what a first start leaves");
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

/// Serves a medium whose file someone else changes so; returns the error of the next sync.
fn after(change: impl FnOnce(&std::path::Path) + Send + 'static) -> MediaError {
    let (tell, told) = std::sync::mpsc::channel();
    on_core(move || async move {
        let folder = folder();
        let path = folder.path().join("m");
        let (file, _) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        let media = crate::media::Media::File(file);
        let syncer = crate::media::Syncer::new(media.clone());
        syncer.sync().await.unwrap();
        change(&path);
        let written = media.write(8192, vec![Buffer::zeroed(4096)]).await.0;
        assert_eq!(written, Ok(()), "the file is still open");
        let error = syncer.sync().await.unwrap_err();
        assert!(media.is_read_only());
        assert_eq!(media.failures().last().unwrap().reason, error.to_string());
        let refused = media.write(8192, vec![Buffer::zeroed(4096)]).await.0;
        assert_eq!(refused, Err(MediaError::ReadOnly));
        assert!(syncer.sync().await.is_err());
        tell.send(error).unwrap();
    });
    told.recv().unwrap()
}

#[test]
fn a_file_that_is_deleted_replaced_or_cut_takes_no_more_writes() {
    let gone = |why: &str| MediaError::Gone(why.to_owned());
    let deleted = gone("its file was deleted or replaced");
    assert_eq!(after(|path| std::fs::remove_file(path).unwrap()), deleted);
    let replaced = after(|path| {
        let other = path.with_extension("other");
        std::fs::write(&other, vec![7; 4 << 20]).unwrap();
        std::fs::rename(other, path).unwrap();
    });
    assert_eq!(replaced, deleted);
    let cut = after(|path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(4096).unwrap();
    });
    assert_eq!(cut, gone("its file was cut from 4194304 to 12288 bytes"));
}

#[test]
fn a_file_with_another_name_is_served_on() {
    on_core(|| async {
        let folder = folder();
        let path = folder.path().join("m");
        let (file, _) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        assert_eq!(file.check_presence(), Ok(()), "its values are found under the other name");
    });
}

#[test]
fn a_superblock_that_is_overwritten_is_noticed_by_a_later_sync() {
    on_core(|| async {
        let folder = folder();
        let path = folder.path().join("m");
        let (file, _) = FileMedia::open(&path, BYTES, Direct::Auto, &|_| ()).await.unwrap();
        let media = crate::media::Media::File(file);
        let syncer = crate::media::Syncer::new(media.clone());
        syncer.expect(16, [0; 16]);
        csd_reactor::sleep(std::time::Duration::from_millis(1_050)).await;
        assert_eq!(syncer.sync().await, Ok(()));
        std::fs::write(&path, vec![7; 4 << 20]).unwrap();
        csd_reactor::sleep(std::time::Duration::from_millis(1_050)).await;
        let error = syncer.sync().await.unwrap_err();
        assert!(matches!(error, MediaError::Gone(_)), "{error}");
        assert!(media.is_read_only());
    });
}
