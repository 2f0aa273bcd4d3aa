//! The words of a command, as JSON output names it.

use super::bench::Bench;
use super::{Array, Command, Drive, SecretCommand, tunnel};

impl Command {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> String {
        let words = match self {
            Self::Drive(Drive::Serve(_)) => "drive serve",
            Self::Drive(Drive::Check(_)) => "drive check",
            Self::Drive(Drive::Log(_)) => "drive log",
            Self::Drive(Drive::Status(_)) => "drive status",
            Self::Drive(Drive::Service(options)) => options.words(),
            Self::Drive(Drive::Trace(_)) => "drive trace",
            Self::Secret(SecretCommand::New(_)) => "secret new",
            Self::Array(Array::Up(_)) => "array up",
            Self::Array(Array::Add(_)) => "array add",
            Self::Array(Array::Replace(_)) => "array replace",
            Self::Array(Array::Status) => "array status",
            Self::Array(Array::Rebalance(_)) => "array rebalance",
            Self::Array(Array::Remove(_)) => "array remove",
            Self::Array(Array::Reclaim) => "array reclaim",
            Self::Array(Array::Rebuild(_)) => "array rebuild",
            Self::Array(Array::Down(_)) => "array down",
            Self::Attach(_) => "attach",
            Self::Mount(_) => "mount",
            Self::Tunnel(tunnel::Tunnel::Up(_)) => "tunnel up",
            Self::Os(command) => command.words(),
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::Cat(_) => "cat",
            Self::Ls(_) => "ls",
            Self::Du(_) => "du",
            Self::Stat(_) => "stat",
            Self::Sum(_) => "sum",
            Self::Sync(_) => "sync",
            Self::Export(_) => "export",
            Self::Import(_) => "import",
            Self::Cp(_) => "cp",
            Self::Mv(_) => "mv",
            Self::Grep(_) => "grep",
            Self::Wc(_) => "wc",
            Self::TopK(_) => "top-k",
            Self::Histogram(_) => "histogram",
            Self::Protect(_) => "protect",
            Self::Rm(_) => "rm",
            Self::Scrub(_) => "scrub",
            Self::Repair(_) => "repair",
            Self::Kv(command) => return command.words(),
            Self::Characterize(_) => "characterize",
            Self::Run(run) => return run.words(),
            Self::Program(command) => command.words(),
            #[cfg(feature = "query")]
            Self::Query(_) => "query",
            Self::Bench(Bench::Block(_)) => "bench block",
            Self::Bench(Bench::Kv(_)) => "bench kv",
            Self::Bench(Bench::Verify(_)) => "bench verify",
            Self::Bench(Bench::Ec(_)) => "bench ec",
            Self::Bench(Bench::Sched(_)) => "bench sched",
            Self::Bench(Bench::Serve(_)) => "bench serve",
            Self::Meter(_) => "meter",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        };
        words.to_owned()
    }
}
