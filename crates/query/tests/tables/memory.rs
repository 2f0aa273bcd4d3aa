//! Tables in memory: a Parquet file as an object on some drives, and who runs plans over it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csd_buffer::Buffer;
use csd_kernels::ElementType;
use csd_kernels::program::{Compiled, Failure, Limits, run};
use csd_query::host::{Answers, Runner, ScanJob, answers};
use csd_query::table::{File, Piece, Starts, Table, starts};
use csd_query::{CompiledPlan, Substrait};
use csd_store::array::DriveIndex;
use csd_store::catalogue::{Entry, ObjectId, State};
use csd_store::layout::{Kind, Part, Parts};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

/// Returns a file as an object on `drives` drives, cut by its row groups.
fn entry(bytes: u64, starts: &Starts, (chunk_bytes, drives): (u32, u16)) -> Entry {
    let mut ends: Vec<u64> = starts.iter().skip(1).map(|(start, _)| *start).collect();
    ends.push(bytes);
    let (mut number, mut parts) = (0, Vec::new());
    for ((member, (start, mark)), end) in (0u16..).zip(starts).zip(ends) {
        let part = Part { member: member % drives, number, bytes: end - start, mark: *mark };
        number += u32::try_from(part.bytes.div_ceil(u64::from(chunk_bytes))).unwrap();
        parts.push(part);
    }
    Entry {
        element: ElementType::Bytes,
        shape: vec![bytes],
        chunk_bytes,
        bytes,
        members: (0..usize::from(drives)).map(DriveIndex::new).collect(),
        parts: Parts::new(Kind::Table, chunk_bytes, drives, parts).unwrap(),
        ..Entry::empty("t", ObjectId([0x81; 12]), State::Sealed)
    }
}

/// Returns the table of a file, on drives with chunks of this many bytes; `None` if its row groups
/// do not follow one another.
pub(crate) fn table(path: &Path, place: (u32, u16)) -> Option<(Table, Arc<[u8]>)> {
    let bytes: Arc<[u8]> = std::fs::read(path).unwrap().into();
    let starts = starts(&std::fs::File::open(path).unwrap())?;
    let file = File::new(entry(bytes.len() as u64, &starts, place), bytes.to_vec()).unwrap();
    Some((Table::new("t", vec![file]).unwrap(), bytes))
}

/// Returns a table of these columns, in row groups of so many rows, and its bytes.
pub(crate) fn table_in_groups(
    columns: Vec<(&str, ArrayRef)>,
    group_rows: usize,
) -> (Table, Arc<[u8]>) {
    let of =
        |(name, values): &(&str, ArrayRef)| Field::new(*name, values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(of).collect::<Vec<_>>()));
    let values = columns.into_iter().map(|(_, values)| values).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), values).unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = ArrowWriter::try_new(file.reopen().unwrap(), schema, Some(properties));
    let mut writer = writer.unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    table(file.path(), (4096, 3)).unwrap()
}

/// Runs a plan over a row group; returns its number of rows, and the stream of Arrow IPC.
pub(crate) fn execute(
    (table, bytes): (&Table, &[u8]),
    plan: &CompiledPlan,
    piece: &Piece,
) -> Result<(u64, Vec<u8>), Failure> {
    let layout = table.files[0].entry.layout();
    let chunks = piece.group.chunks.iter().cloned().flatten();
    let chunks = chunks.map(|chunk| {
        let range = layout.bytes_of(chunk);
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        Buffer::from_slice(&bytes[range])
    });
    run(plan.start(&piece.group.parameters, &Limits::default())?, vec![chunks.collect()])
}

/// Side that runs the plans of scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Drives: they have the plan from its bytes.
    Drives,
    /// The host, with its own plan.
    Host,
}

/// Runs plans of scans over a file in memory.
#[derive(Debug)]
pub(crate) struct InMemory {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) side: Side,
    /// Number of scans whose plan drives have, and of others.
    pub(crate) scans: Arc<[AtomicU64; 2]>,
}

impl Runner for InMemory {
    fn start(&self, job: ScanJob) -> Answers {
        let (sender, receiver) = answers();
        let (bytes, side) = (Arc::clone(&self.bytes), self.side);
        self.scans[usize::from(job.bytes.is_err())].fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let plan = match (side, &job.bytes) {
                (Side::Drives, Ok(bytes)) => Substrait::plan(bytes).expect("the host's own plan"),
                _ => CompiledPlan::from(Arc::clone(&job.plan)),
            };
            for piece in &job.reading.pieces {
                let ran = execute((&job.table, &bytes), &plan, piece);
                let answer = ran.map(|(_, answer)| answer).map_err(|failure| failure.reason);
                let failed = answer.is_err();
                if sender.send(answer).await.is_err() || failed {
                    break;
                }
            }
        });
        receiver
    }
}
