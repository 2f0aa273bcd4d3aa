//! RocksDB in the process that puts and gets: one thread for each operation in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use csd_bench::Error;
use csd_bench::load::{Operation, Ran, histogram};
use csd_nvme::kv::Key;
use hdrhistogram::Histogram;

use crate::store::Store;

/// Executes the operation on each key in turn, by `depth` threads.
///
/// # Errors
/// The first error of an operation.
pub fn run(store: &Store, operation: &Operation, keys: &[Key], depth: u16) -> Result<Ran, Error> {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let ended: Vec<Result<Histogram<u64>, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..depth).map(|_| scope.spawn(|| one_by_one(store, operation, keys, &next))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let elapsed = start.elapsed();
    let mut latencies = histogram();
    for one in ended {
        latencies.add(one?).expect("the same bounds");
    }
    Ok(Ran { elapsed, latencies })
}

fn one_by_one(
    store: &Store,
    operation: &Operation,
    keys: &[Key],
    next: &AtomicUsize,
) -> Result<Histogram<u64>, Error> {
    let mut latencies = histogram();
    loop {
        let index = next.fetch_add(1, Relaxed);
        let Some(key) = keys.get(index) else { return Ok(latencies) };
        let start = Instant::now();
        match operation {
            Operation::Put(value) => put(store, key, value)?,
            Operation::Get(bytes) => get(store, key, bytes.unwrap_or(0))?,
            Operation::PutAndGet(value) => match index.is_multiple_of(2) {
                true => put(store, key, value)?,
                false => get(store, key, value.len() as u64)?,
            },
            Operation::PutEach(_) | Operation::Delete => {
                return Err(Error::Usage("no load of this measurement".to_owned()));
            }
        }
        latencies.saturating_record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}

fn put(store: &Store, key: &Key, value: &Arc<Vec<u8>>) -> Result<(), Error> {
    store.write([(key.as_bytes(), &[value.as_slice()][..])])
}

/// Gets a value into memory of its own, as one that a host retrieves.
fn get(store: &Store, key: &Key, bytes: u64) -> Result<(), Error> {
    let value = store.get(key.as_bytes())?.map(|value| value.as_ref().to_vec());
    match value.is_some_and(|value| value.len() as u64 == bytes) {
        true => Ok(()),
        false => Err(Error::Server("RocksDB: a value is not the one stored".to_owned())),
    }
}
