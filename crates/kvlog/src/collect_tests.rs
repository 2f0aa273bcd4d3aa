//! Tests of the deletion of shared chunks, and of values that share them.

use csd_reactor::{Buffer, Config, block_on};

use super::*;
use crate::near::Read;
use crate::parts::encode;
use crate::sharing::Conversion;
use crate::test_log::{key, kv, read, store};

const CHUNK: usize = 4096;

fn chunk(number: u8) -> Vec<u8> {
    (0..CHUNK).map(|at| number ^ u8::try_from(at % 251).unwrap()).collect()
}

/// Returns the key of a chunk's bytes: a test may have two chunks with one key.
fn chunk_key(number: u8) -> Key {
    Key::new(&[number % 100 + 1; 16]).unwrap()
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap()
}

/// A value of two chunks and a short end.
fn value(chunks: [u8; 2], end: &[u8]) -> Vec<u8> {
    [&chunk(chunks[0])[..], &chunk(chunks[1])[..], end].concat()
}

/// Shares both chunks of a value.
async fn convert(kv: &Rc<Kv>, sharing: &Arc<Sharing>, of: Key, chunks: [u8; 2]) -> usize {
    let conversion = Conversion::begin(sharing);
    let Some((version, bytes)) = kv.version((2, of)).await.unwrap() else { return 0 };
    let (mut parts, mut here, mut shared) = (Vec::new(), Vec::new(), 0);
    for (number, piece) in chunks.iter().zip(bytes.chunks(CHUNK)) {
        let key = chunk_key(*number);
        let pooled = kv.share(&conversion, 2, (key, Buffer::from_slice(piece))).await.unwrap();
        here.extend_from_slice(if pooled { &[] } else { piece });
        parts.push((pooled.then_some(key), length(piece)));
        shared += usize::from(pooled);
    }
    let end = &bytes[2 * CHUNK..];
    parts.push((None, length(end)));
    here.extend_from_slice(end);
    let mut list = encode(length(&bytes), crc32c::crc32c(&bytes), &parts);
    list.extend_from_slice(&here);
    kv.put_list(&conversion, (2, of), version, vec![Buffer::from_slice(&list)]).await.unwrap();
    shared
}

/// Takes steps until nothing is left to do.
async fn collect(collector: &mut Collector) -> u64 {
    let mut all = 0;
    loop {
        match collector.step().await.unwrap() {
            Collected::Worked { bytes } => all += bytes,
            Collected::Nothing => return all,
            Collected::Waits => panic!("nothing converts"),
        }
    }
}

fn chunks_left(kv: &Kv) -> u64 {
    kv.segments.pools[0].keys.load(Relaxed)
}

#[test]
fn a_chunk_that_64_keys_share_stays_until_the_last_of_them_is_deleted() {
    block_on(&Config::default(), || async {
        const KEYS: u32 = 64;
        let (kv, sharing) = (kv().0, Arc::new(Sharing::default()));
        let whole = value([1, 2], b"end");
        for number in 0..KEYS {
            store(&kv, key(number), &whole).await;
        }
        let before = kv.segments.used_bytes(2);
        for number in 0..KEYS {
            assert_eq!(convert(&kv, &sharing, key(number), [1, 2]).await, 2);
            assert_eq!(convert(&kv, &sharing, key(number), [1, 2]).await, 2, "of a list");
        }
        assert!(kv.segments.used_bytes(2) * 20 < before, "{}", kv.segments.used_bytes(2));
        let mut collector = Collector::new(&kv, &sharing);
        for number in 0..KEYS {
            collect(&mut collector).await;
            assert_eq!(chunks_left(&kv), 2);
            assert_eq!(read(&kv, 2, key(KEYS - 1)).await.as_ref(), Some(&whole));
            kv.delete(2, key(number)).await.unwrap();
        }
        assert!(collect(&mut collector).await >= 2 * CHUNK as u64);
        assert_eq!((chunks_left(&kv), kv.segments.used_bytes(2)), (0, 0));
        assert_eq!(collector.step().await, Ok(Collected::Nothing));
    })
    .unwrap();
}

#[test]
fn chunks_of_one_key_with_other_bytes_are_not_shared() {
    block_on(&Config::default(), || async {
        let (kv, sharing) = (kv().0, Arc::new(Sharing::default()));
        let (one, other) = (value([1, 2], b""), value([101, 2], b"x"));
        store(&kv, key(1), &[&one[..], b"y"].concat()).await;
        store(&kv, key(2), &other).await;
        assert_eq!(convert(&kv, &sharing, key(1), [1, 2]).await, 2);
        assert_eq!(convert(&kv, &sharing, key(2), [101, 2]).await, 1);
        assert_eq!(read(&kv, 2, key(1)).await, Some([&one[..], b"y"].concat()));
        assert_eq!(read(&kv, 2, key(2)).await, Some(other));
    })
    .unwrap();
}

/// A pass begins while a conversion has named its chunk and not put its list.
#[test]
fn a_chunk_that_is_about_to_be_named_is_not_deleted() {
    block_on(&Config::default(), || async {
        let (kv, sharing) = (kv().0, Arc::new(Sharing::default()));
        let mut collector = Collector::new(&kv, &sharing);
        let older = Conversion::begin(&sharing);
        let share = async |conversion: &Conversion, number: u8| {
            let chunk = Buffer::from_slice(&chunk(number));
            kv.share(conversion, 2, (chunk_key(number), chunk)).await.unwrap()
        };
        assert!(share(&older, 1).await);
        assert_eq!(collector.step().await, Ok(Collected::Waits));
        let newer = Conversion::begin(&sharing);
        assert!(share(&newer, 2).await);
        assert_eq!(collector.step().await, Ok(Collected::Waits));
        drop(older);
        collect(&mut collector).await;
        assert_eq!(chunks_left(&kv), 1, "that of the newer one, which still runs");
        assert!(share(&newer, 1).await, "it is stored again");
        drop(newer);
    })
    .unwrap();
}

/// A reader has the value of its command, whatever becomes of it meanwhile.
#[test]
fn a_value_that_is_read_keeps_its_chunks() {
    block_on(&Config::default(), || async {
        let (kv, sharing) = (kv().0, Arc::new(Sharing::default()));
        let whole = value([1, 2], b"end");
        store(&kv, key(1), &whole).await;
        convert(&kv, &sharing, key(1), [1, 2]).await;
        let mut open = kv.open(2, key(1)).await.unwrap().unwrap();
        assert_eq!(
            (open.bytes() as usize, open.checksum()),
            (whole.len(), Some(crc32c::crc32c(&whole)))
        );
        let [(_, Read::Long(value))] = &kv.read_each(2, vec![key(1)]).await.unwrap()[..] else {
            panic!("it does not lie in one place")
        };
        assert_eq!(value.bytes() as usize, whole.len());
        kv.delete(2, key(1)).await.unwrap();
        let mut collector = Collector::new(&kv, &sharing);
        collect(&mut collector).await;
        assert_eq!(chunks_left(&kv), 0);
        let middle = open.read_unchecked(4000, 200).await.unwrap();
        assert_eq!(middle[..], whole[4000..4200]);
        let read = open.next(whole.len(), 0, 0).await.unwrap().unwrap();
        assert_eq!(read[..], whole[..]);
    })
    .unwrap();
}

#[test]
fn a_list_that_cannot_be_read_keeps_all_chunks() {
    block_on(&Config::default(), || async {
        let ((kv, faulty), sharing) = (kv(), Arc::new(Sharing::default()));
        for number in 1..3u8 {
            store(&kv, key(number.into()), &value([number, 9], b"end")).await;
            convert(&kv, &sharing, key(number.into()), [number, 9]).await;
        }
        kv.delete(2, key(1)).await.unwrap();
        let mut collector = Collector::new(&kv, &sharing);
        let open = kv.open(2, key(2)).await.unwrap().unwrap();
        let at = kv.segments.at(open.record().location().segment, open.record().location().offset);
        drop(open);
        let before = faulty.inner().read(at + 64, Buffer::zeroed(1)).await.1;
        let wrong = Buffer::from_slice(&[before[0] ^ 1]);
        faulty.inner().write(at + 64, vec![wrong]).await.0.unwrap();
        let mut failed = 0;
        for _ in 0..100 {
            if let Err(CollectFailed { unreadable, .. }) = collector.step().await {
                assert_eq!(unreadable, Some((2, key(2))), "it is named");
                failed += 1;
            }
        }
        assert!(failed > 0 && chunks_left(&kv) == 3, "{failed}");
        assert!(kv.open(2, key(2)).await.is_err());
        faulty.inner().write(at + 64, vec![before]).await.0.unwrap();
        collect(&mut collector).await;
        assert_eq!(chunks_left(&kv), 2);
        assert_eq!(read(&kv, 2, key(2)).await, Some(value([2, 9], b"end")));
    })
    .unwrap();
}
