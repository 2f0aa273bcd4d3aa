//! Random queries over random tables, and over the files of other writers: the answers of drives
//! and host have the same bits, and are those of DataFusion over the local file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csd_query::host::Runner;
use csd_query::table::Table;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use fastrand::Rng;

use crate::answers::{self, Answered};
use crate::data;
use crate::memory::{self, InMemory, Side};
use crate::queries::Columns;

/// Queries of a table.
const QUERIES: u64 = 20;
/// Rows whose values queries name.
const SAMPLED: usize = 1000;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect(name))
}

/// Numbers of queries.
#[derive(Debug, Default)]
struct Tally {
    answered: u64,
    failed: u64,
    rows: usize,
    /// Scans whose plan drives have, and others.
    scans: Arc<[AtomicU64; 2]>,
}

/// Answers one query in three ways.
fn compare(sql: &str, file: &Path, (table, bytes): (&Arc<Table>, &Arc<[u8]>), tally: &mut Tally) {
    let on = |side| -> Answered {
        let (bytes, scans) = (Arc::clone(bytes), Arc::clone(&tally.scans));
        let runner: Arc<dyn Runner> = Arc::new(InMemory { bytes, side, scans });
        answers::ours(sql, table, &runner)
    };
    let (drives, host) = (on(Side::Drives), on(Side::Host));
    let expected = answers::datafusion(sql, file);
    let (drives, host, expected) = match (drives, host, expected) {
        (Ok(drives), Ok(host), Ok(expected)) => (drives, host, expected),
        (Err(_), Err(_), Err(_)) => {
            tally.failed += 1;
            return;
        }
        (drives, host, expected) => {
            let words = |answer: Answered| answer.map_or_else(|why| why, |_| "rows".to_owned());
            let all = [words(drives), words(host), words(expected)];
            panic!("some fail, of drives, host and DataFusion: {all:#?}\n{sql}")
        }
    };
    assert!(answers::bits(&drives) == answers::bits(&host), "drives and host differ\n{sql}");
    tally.answered += 1;
    tally.rows += drives.num_rows();
    let types = drives.schema();
    let (mut ours, mut theirs) =
        (answers::rows_in_words(&drives, &types), answers::rows_in_words(&expected, &types));
    if !sql.contains("order by") {
        ours.sort_unstable();
        theirs.sort_unstable();
    }
    let differs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    assert_eq!(differs, None, "ours and DataFusion's\n{sql}");
    assert_eq!(ours.len(), theirs.len(), "{sql}");
}

/// Asks queries about a file; returns false if it cannot be a table.
fn ask(rng: &mut Rng, file: &Path, batch: &RecordBatch, queries: u64, tally: &mut Tally) -> bool {
    let place = (4096 << rng.u8(0..5), rng.u16(1..7));
    let Some((table, bytes)) = memory::table(file, place) else { return false };
    let (table, columns) = (Arc::new(table), Columns::new(rng, batch));
    for _ in 0..queries {
        compare(&columns.query(rng), file, (&table, &bytes), tally);
    }
    true
}

#[test]
fn answers_about_random_tables_are_those_of_datafusion() {
    let (rounds, first) =
        (from_environment("CSD_QUERY_ROUNDS", 400), from_environment("CSD_QUERY_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let (file, mut tally) = (folder.path().join("t.parquet"), Tally::default());
    for seed in first..first + rounds.div_ceil(QUERIES) {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let batch = data::batch(&mut rng);
        data::write(&mut rng, &file, &batch);
        if !ask(&mut rng, &file, &batch, QUERIES, &mut tally) {
            assert_eq!(batch.num_rows(), 0, "a file with rows is cut by its row groups");
        }
    }
    println!("{tally:?}");
    assert!(tally.answered > 20 * tally.failed, "queries that have an answer prevail");
    let [drives, others] = &*tally.scans;
    let (drives, others) = (drives.load(Ordering::Relaxed), others.load(Ordering::Relaxed));
    assert!(drives > 20 * others, "drives can do most scans: {drives}, and not {others}");
}

/// Returns the first rows of a file, or why it cannot be read.
fn sample(file: &Path) -> Result<Option<RecordBatch>, ArrowError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file)?)?;
    reader.with_batch_size(SAMPLED).build()?.next().transpose()
}

/// Files of other writers lie in the folder that the environment names: see `tests/query/files.py`.
#[test]
fn answers_about_files_of_other_writers_are_those_of_datafusion() {
    let Some(folder) = std::env::var_os("CSD_QUERY_FILES") else {
        println!("skipped: CSD_QUERY_FILES names no folder");
        return;
    };
    let rounds = from_environment("CSD_QUERY_ROUNDS", 100);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_parquet = |path: &PathBuf| path.extension().is_some_and(|it| it == "parquet");
    let mut files: Vec<PathBuf> = files.filter(is_parquet).collect();
    files.sort();
    assert!(!files.is_empty(), "the folder has Parquet files");
    let each = rounds.div_ceil(files.len() as u64);
    let first = from_environment("CSD_QUERY_SEED", 1);
    for (seed, file) in (first..).zip(&files) {
        let mut rng = Rng::with_seed(seed);
        let (name, mut tally) = (file.file_name().unwrap().to_string_lossy(), Tally::default());
        let sample = match sample(file) {
            Ok(sample) => sample,
            Err(why) => {
                println!("{name}: {why}");
                continue;
            }
        };
        let asked = sample.is_some_and(|sample| ask(&mut rng, file, &sample, each, &mut tally));
        println!("{name}: {}", if asked { format!("{tally:?}") } else { "no table".to_owned() });
    }
}
