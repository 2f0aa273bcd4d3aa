//! Queries of tables: plans of Substrait that drives and hosts run alike, with DataFusion.
//!
//! A [`plan::Plan`] says what is done with the rows of a table: filter, columns, groups, first
//! rows. A drive that has [`Substrait`] as one of its engines runs it over a [`part::Part`] of the
//! table, such as a row group of a Parquet file, and answers in Arrow IPC. A host runs the same
//! plan over the same part where that is better. So answers are equal bit for bit, sums of floats
//! too.
//!
//! This crate starts no threads, opens no files and reads no clock (DataFusion's own counters do).
//! Invariant: a plan and a part are bytes of strangers; any are refused with a reason, or run
//! within the limits of their execution.
//!
//! Modules: `substrait` are the messages, `data_type`, `literal`, `declarations`, `functions` and
//! `expression` what they say in terms of DataFusion, `extremes` two functions of our own, `plan` a
//! whole plan, `part` the rows that it reads, `execution` its program, `engine` the drive's
//! interface; `table` are Parquet objects, `host` queries over them.

mod data_type;
mod declarations;
mod engine;
mod execution;
mod expression;
mod extremes;
mod functions;
pub mod host;
mod literal;
pub mod part;
pub mod plan;
mod refusal;
pub mod substrait;
pub mod table;

pub use engine::{CompiledPlan, Substrait};
pub use expression::NODES_MAX;
pub use refusal::Refusal;
