//! Options of `csd query`.

use clap::{Args, ValueEnum};

use crate::units::parse_size;

/// Options of `csd query`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd put lineitem/*.parquet --each
  csd query \"select count(*) from 'lineitem*.parquet'\"
  csd query \"select l_returnflag, sum(l_quantity) from lineitem.parquet group by 1\" --check
  csd query --explain \"select * from lineitem.parquet where l_quantity > 49\"
  csd query \"select * from orders.parquet\" --csv orders.csv")]
pub(crate) struct Query {
    /// The query, in SQL
    pub(crate) sql: String,
    /// Side that filters and groups the rows of tables: the drives, this host, or both, compared
    #[arg(long, value_enum, default_value_t = On::Drives)]
    pub(crate) on: On,
    /// Also compute on the drives and on the host, compare the answers bit for bit, and fail when
    /// they differ (exit code 3)
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what drives do, what the host does and why, and what crosses, with the answer's size
    /// instead of the answer
    #[arg(long)]
    pub(crate) explain: bool,
    /// Write the answer as CSV to a file, or to `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "parquet")]
    pub(crate) csv: Option<String>,
    /// Write the answer as Parquet to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<String>,
    /// Overwrite the file if it exists
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Most memory of one execution over a row group, in a drive and here alike
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64M")]
    pub(crate) memory: u64,
    /// Most time of one execution over a row group, ms
    #[arg(long, value_name = "MS", default_value_t = 20_000)]
    pub(crate) time: u32,
}

/// Side that filters and groups the rows of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The drives, where the rows are
    Drives,
    /// This host; chunks cross the wire
    Host,
    /// Both, one after the other, side by side and compared
    All,
}
