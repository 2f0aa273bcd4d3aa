//! Plans and queries over Parquet files whose row groups lie on drives in memory.

mod answers;
mod data;
mod golden;
mod memory;
mod mended;
mod queries;
mod random;
mod row_groups;
