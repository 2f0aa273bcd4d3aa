//! Queries on the host: SQL over tables, with the parts of it that drives do.
//!
//! DataFusion plans a query. A [`TableScan`] stands for each table; filters and columns go into it,
//! and [`pushdown`] adds the steps that follow it if a drive has them. A [`Runner`] then runs each
//! scan's plan over the table's row groups, in drives or here, and the host does the rest.
//! Invariant: the rows of a scan come in the order of its row groups, and everything above runs in
//! one partition, so an answer does not depend on where or when its parts were computed.

mod provider;
mod pushdown;
mod runner;
mod scan;
mod session;
mod zeros;

pub use provider::TableSource;
pub use pushdown::PushToDrives;
pub use runner::{Answers, Runner, ScanJob, Sender, answers};
pub use scan::TableScan;
pub use session::{QueryError, Session, TableName, mended};
