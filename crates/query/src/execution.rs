//! [`Execution`]: a plan over one part of a table, in bounded steps.
//!
//! It gathers the part's bytes, which are few enough for its memory, then takes its rows through
//! the plan, a batch a step. The answer is a stream of Arrow IPC. Invariants: its operators start
//! no thread, open no file and spill nothing; what they hold is bounded by the execution's memory.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use csd_kernels::program::{Cause, Failure, Inputs, Limits, Output, Program, Step};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatchOptions,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{ByteViewType, DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::SessionConfig;
use futures_util::StreamExt;
use prost::Message;

use crate::part::{BATCH_ROWS, Batches, Part};
use crate::plan::Plan;
use crate::refusal::Refusal;

/// Stream of an execution that has the part's bytes.
const STREAM: usize = 0;

/// A plan over one part of a table.
pub(crate) struct Execution {
    plan: Arc<Plan>,
    part: Part,
    memory_bytes: u64,
    state: State,
}

enum State {
    /// The part's bytes come in.
    Gathering(Vec<u8>),
    /// Its rows go through the plan.
    Running(Box<Running>),
}

struct Running {
    rows: SendableRecordBatchStream,
    answer: StreamWriter<Vec<u8>>,
    written_rows: u64,
}

impl Execution {
    /// Returns an execution of a plan over the part that the parameters say.
    ///
    /// # Errors
    /// [`Failure`] of cause parameters.
    pub(crate) fn new(
        plan: &Arc<Plan>,
        parameters: &[u8],
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let part = Part::decode(parameters).map_err(Failure::parameters)?;
        let bytes = part.bytes().map_err(Failure::parameters)?;
        let room = usize::try_from(bytes).ok().filter(|_| bytes < limits.memory_bytes);
        let room = room.ok_or_else(|| too_large(bytes, limits.memory_bytes))?;
        let state = State::Gathering(Vec::with_capacity(room));
        Ok(Self { plan: Arc::clone(plan), part, memory_bytes: limits.memory_bytes, state })
    }

    fn begin(&self, bytes: Vec<u8>) -> Result<Running, Refusal> {
        let expected = self.part.bytes()?;
        if bytes.len() as u64 != expected {
            let found = bytes.len();
            return Err(Refusal::new(format!("{found} bytes of a part that has {expected}")));
        }
        let left = self.memory_bytes - expected;
        let rows = self.part.rows(bytes, &self.plan.columns)?;
        let source =
            PartRows { columns: Arc::clone(&self.plan.columns), rows: Mutex::new(Some(rows)) };
        let columns = Arc::clone(&self.plan.columns);
        let source =
            StreamingTableExec::try_new(columns, vec![Arc::new(source)], None, [], false, None)?;
        let operators = self.plan.over(Arc::new(source))?;
        let answer = StreamWriter::try_new(Vec::new(), &operators.schema())?;
        let rows = operators.execute(0, context(left)?)?;
        Ok(Running { rows, answer, written_rows: 0 })
    }
}

fn too_large(bytes: u64, memory_bytes: u64) -> Failure {
    Failure::parameters(format!(
        "the part has {bytes} bytes, which do not fit into the {memory_bytes} of an execution"
    ))
}

/// Returns the surroundings of operators that may hold this many bytes.
fn context(memory_bytes: u64) -> DataFusionResult<Arc<TaskContext>> {
    let memory = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let nowhere = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
        .with_disk_manager_builder(nowhere)
        .build_arc()?;
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH_ROWS);
    let task = TaskContext::default().with_session_config(config).with_runtime(runtime);
    Ok(Arc::new(task))
}

impl Program for Execution {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let gathered = match &mut self.state {
            State::Running(running) => return running.step(output),
            State::Gathering(gathered) => gathered,
        };
        let bytes = inputs.peek(STREAM);
        let count = bytes.len();
        gathered.extend_from_slice(bytes);
        inputs.consume(STREAM, count);
        if !inputs.is_over(STREAM) {
            return Ok(Step::after(inputs, STREAM));
        }
        let gathered = std::mem::take(gathered);
        let wrong = |refusal: Refusal| Failure::new(Cause::InputType, refusal);
        let mut running = self.begin(gathered).map_err(wrong)?;
        running.drain(output);
        self.state = State::Running(Box::new(running));
        Ok(Step::More)
    }
}

impl Running {
    /// Takes the next batch of the answer, or lets the operators work on the next batch of rows.
    fn step(&mut self, output: &mut Output) -> Result<Step, Failure> {
        match self.rows.poll_next_unpin(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => return Ok(Step::More),
            Poll::Ready(Some(batch)) => {
                let batch = batch.map_err(|error| failure(&error))?;
                self.written_rows += batch.num_rows() as u64;
                let batch = compact(&batch).map_err(in_words)?;
                self.answer.write(&batch).map_err(in_words)?;
            }
            Poll::Ready(None) => {
                self.answer.finish().map_err(in_words)?;
                self.drain(output);
                return Ok(Step::Done { result: self.written_rows });
            }
        }
        self.drain(output);
        Ok(if output.is_full() { Step::Full } else { Step::More })
    }

    fn drain(&mut self, output: &mut Output) {
        let bytes = self.answer.get_mut();
        output.append(bytes);
        bytes.clear();
    }
}

/// Returns rows without bytes that only other rows have: views of text share their bytes with all
/// rows of a page, and a stream would have all of them in each batch.
fn compact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let own = |column: &ArrayRef| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => own_bytes(column, column.as_string_view()),
            DataType::BinaryView => own_bytes(column, column.as_binary_view()),
            _ => Arc::clone(column),
        }
    };
    let columns = batch.columns().iter().map(own).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

fn own_bytes<T: ByteViewType>(column: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(Buffer::len).sum();
    match held > views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => Arc::clone(column),
    }
}

fn in_words(error: impl fmt::Display) -> Failure {
    Failure::new(Cause::Program, error)
}

/// Returns the failure of operators: the program's if memory was short or a value had no place in
/// its type, the input's if rows could not be read.
fn failure(error: &DataFusionError) -> Failure {
    let root = error.find_root();
    let cause = match root {
        DataFusionError::ParquetError(_) => Cause::InputType,
        DataFusionError::External(inner) if inner.is::<Refusal>() => Cause::InputType,
        _ => Cause::Program,
    };
    Failure::new(cause, root.strip_backtrace())
}

/// Rows of a part, as a table of DataFusion. After each batch it gives way, so that a step works on
/// one.
struct PartRows {
    columns: SchemaRef,
    rows: Mutex<Option<Batches>>,
}

impl fmt::Debug for PartRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartRows")
    }
}

impl PartitionStream for PartRows {
    fn schema(&self) -> &SchemaRef {
        &self.columns
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (mut rows, mut gives_way) = (rows.into_iter().flatten(), false);
        let next = move |_: &mut Context<'_>| -> Poll<Option<DataFusionResult<RecordBatch>>> {
            gives_way = !gives_way;
            if !gives_way {
                return Poll::Pending;
            }
            let batch = rows.next();
            Poll::Ready(
                batch.map(|batch| batch.map_err(|why| DataFusionError::External(Box::new(why)))),
            )
        };
        let stream = futures_util::stream::poll_fn(next);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.columns), stream))
    }
}
