//! `csd`: drives, arrays, objects and runs on the command line.
//!
//! This crate parses options, calls the libraries and prints. It has no protocol, media, layout or
//! policy of its own. Invariants: results go to standard output and everything else to standard
//! error; with `--json` exactly one object is printed; the exit code is the documented one.
//!
//! Modules:
//!
//! - [`cli`] declares the command line; [`report`] and [`output`] print; [`table`], [`units`] and
//!   [`mod@escape`] format
//! - [`mod@complete`] completes words in shells; [`mounted`] mounts file systems
//! - [`context`] opens the array; [`ask_drives`] asks each drive something
//! - [`log`] writes a drive's log, [`log_file`] to files; [`clock`] tells the time; [`progress`]
//!   draws bars; [`mod@confirm`] asks before something is deleted
//! - [`silences`] watches drives that are measured
//! - [`pace`] reads profiles; [`peers`] reads files of peers; [`mod@account`] computes model time
//! - [`mod@room`], [`protection`] and [`namespace`] describe free space, parity and namespaces;
//!   [`put_input`] opens files that are stored, [`edges`] graphs; [`taken`] says what
//!   they were taken for
//! - [`grep`], [`wc`] and [`frequencies`] search and count text, by [`over_text`]
//! - [`drive`], [`mod@drive_log`], [`drive_status`], [`check`], [`mod@array`], [`mod@attach`],
//!   [`mod@mount`], [`tunnel`], [`mod@os`], [`object`], [`files`], [`mod@get`], [`mod@protect`],
//!   [`mod@repair`], [`mod@kv`], [`program`], [`run`], [`mod@meter`], [`mod@characterize`],
//!   [`mod@bench`], [`secret`] and [`generate`] are the commands
//! - [`mod@each_item`] runs a command for several objects or keys; [`tally`] counts what failed;
//!   [`interruptible`] ends reading and writing at a signal
//! - [`target`] and [`long_file`] write output files

mod account;
mod array;
mod ask_drives;
mod attach;
mod bench;
mod characterize;
mod check;
mod cli;
mod clock;
mod columns;
mod complete;
mod confirm;
mod context;
mod drive;
mod drive_log;
mod drive_service;
mod drive_status;
mod drive_trace;
mod each_item;
mod edges;
mod escape;
mod files;
mod frequencies;
mod generate;
mod get;
mod grep;
mod group_shares;
mod interruptible;
mod kv;
mod log;
mod log_file;
mod long_file;
mod man;
mod meter;
mod mount;
mod mounted;
mod namespace;
mod object;
mod os;
mod output;
mod over_text;
mod pace;
mod peers;
mod program;
mod progress;
mod protect;
mod protection;
mod put_input;
#[cfg(feature = "query")]
mod query;
mod repair;
mod report;
mod room;
mod run;
mod runtime;
mod scrub;
mod secret;
mod silences;
mod table;
mod taken;
mod tally;
mod target;
mod tunnel;
mod units;
mod wc;

use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use report::{Failure, Report, Style};

fn main() -> ExitCode {
    complete::answer();
    let parsed = cli::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let (command, style) = (cli.command.words(), style(&cli));
    let done = dispatch(cli).map(|mut report| {
        context::damage_met().into_iter().for_each(|warning| report.warn(warning));
        report
    });
    report::finish(&command, done, style)
}

fn style(cli: &Cli) -> Style {
    Style { json: cli.json, quiet: cli.quiet, verbose: cli.verbose }
}

fn dispatch(cli: Cli) -> Result<Report, Failure> {
    let style = style(&cli);
    let context = context::Context::new(cli.array, cli.secrets, cli.host_nqn, cli.timeout, style);
    match cli.command {
        Command::Drive(cli::Drive::Serve(options)) => drive::serve(&options, &context),
        Command::Drive(cli::Drive::Check(options)) => check::check(&options),
        Command::Drive(cli::Drive::Log(options)) => drive_log::log(&options, &context),
        Command::Drive(cli::Drive::Status(options)) => drive_status::status(&options, &context),
        Command::Drive(cli::Drive::Service(options)) => drive_service::service(&options, &context),
        Command::Drive(cli::Drive::Trace(options)) => drive_trace::trace(&options, &context),
        Command::Secret(cli::SecretCommand::New(options)) => secret::new(&options),
        Command::Array(cli::Array::Up(options)) => array::up(&options, &context),
        Command::Array(cli::Array::Add(options)) => array::add(&options, &context),
        Command::Array(cli::Array::Replace(options)) => {
            array::replace(&options, &context, repair::repair)
        }
        Command::Array(cli::Array::Rebalance(options)) => array::rebalance(&options, &context),
        Command::Array(cli::Array::Remove(options)) => array::remove(&options, &context),
        Command::Array(cli::Array::Status) => array::status(&context),
        Command::Array(cli::Array::Reclaim) => array::reclaim(&context),
        Command::Array(cli::Array::Rebuild(options)) => array::rebuild(&options, &context),
        Command::Array(cli::Array::Down(options)) => array::down(&options, &context),
        Command::Attach(options) => attach::attach(&options, &context),
        Command::Mount(options) => mount::mount(&options, &context),
        Command::Tunnel(cli::tunnel::Tunnel::Up(options)) => tunnel::up(&options, &context),
        Command::Os(command) => os::os(&command, &context),
        Command::Put(options) if options.recursive => files::put_folder(options, &context),
        Command::Put(options) if options.each => files::put_each(options, &context),
        Command::Put(options) => object::put(&options, &context),
        Command::Get(options) if options.recursive => files::get_folder(options, &context),
        Command::Get(options) => get::get(options, &context),
        Command::Cat(options) => files::cat(options, &context),
        Command::Ls(options) => files::ls(&options, &context),
        Command::Du(options) => files::du(options, &context),
        Command::Stat(options) => object::stat(options, &context),
        Command::Sum(options) => files::sum(options, &context),
        Command::Sync(options) => files::sync(&options, &context),
        Command::Export(options) => files::export(&options, &context),
        Command::Import(options) => files::import(options, &context),
        Command::Cp(options) => files::cp(options, &context),
        Command::Mv(options) => files::mv(options, &context),
        Command::Grep(options) => grep::grep(&options, &context),
        Command::Wc(options) => wc::wc(&options, &context),
        Command::TopK(options) => frequencies::top_k::top_k(&options, &context),
        Command::Histogram(options) => frequencies::histogram::histogram(&options, &context),
        Command::Protect(options) => protect::protect(options, &context),
        Command::Rm(options) if options.recursive => files::remove_folder(&options, &context),
        Command::Rm(options) => object::rm(&options, &context),
        Command::Scrub(options) => scrub::scrub(&options, &context),
        Command::Repair(options) => repair::repair(&options, &context),
        Command::Kv(command) => kv::kv(command, &context),
        Command::Meter(options) => meter::meter(&options, &context, style),
        Command::Characterize(options) => characterize::characterize(&options, &context),
        Command::Run(options) => run::run(&options, &context),
        Command::Program(command) => program::program(command, &context),
        #[cfg(feature = "query")]
        Command::Query(options) => query::query(&options, &context),
        Command::Bench(command) => bench::bench(&command, &context),
        Command::Completions(options) => Ok(generate::completions(&options)),
        Command::Man(options) => generate::man(&options),
    }
}

/// Prints help and version as results. Anything else is wrong use, reported as JSON if `--json` is
/// given.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        report::print(&error.render().to_string());
        return report::ended(0);
    }
    let wrong = (error.kind() == ErrorKind::InvalidUtf8)
        .then(|| std::env::args_os().find(|argument| argument.to_str().is_none()))
        .flatten();
    let json = std::env::args_os().any(|argument| argument == "--json");
    let words = std::env::args_os().skip(1);
    let words = cli::words_of(words.map(|word| word.to_string_lossy().into_owned()));
    // The code of the command that it would run may be 2.
    let exit_code = words.starts_with("meter").then_some(meter::FAILED);
    if json || wrong.is_some() {
        let text = error.render().to_string();
        let rendered = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
        // The parser does not say which one it is.
        let message = wrong.map_or(rendered, |wrong| {
            format!("argument {wrong:?} is no UTF-8, and only paths may be so")
        });
        let style = Style { json, ..Style::default() };
        let failure = Failure { exit_code, ..Failure::usage(message) };
        return report::finish(&words, Err(failure), style);
    }
    let _gone = error.print();
    ExitCode::from(exit_code.unwrap_or(2))
}
