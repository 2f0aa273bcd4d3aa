//! `csd`: drives, arrays, objects and runs on the command line.
//!
//! Parses, calls the libraries, prints. Never: protocol, media, layout or policy. Invariants:
//! results go to standard output and everything else to standard error; with `--json` exactly one
//! object is printed; the exit code is the documented one.
//!
//! Modules: [`cli`] declares the command line, [`report`] prints, [`table`] and [`units`] format,
//! [`log`] writes a drive's log, [`context`] opens the array, [`pace`] reads profiles,
//! [`mod@account`] gives model time; [`drive`], [`mod@drive_log`], [`check`], [`mod@array`],
//! [`object`], [`program`], [`run`], [`mod@characterize`] and [`secret`] are the commands.

mod account;
mod array;
mod characterize;
mod check;
mod cli;
mod clock;
mod context;
mod drive;
mod drive_log;
mod edges;
mod host;
mod log;
mod object;
mod pace;
mod plain;
mod program;
mod progress;
mod report;
mod run;
mod secret;
mod table;
mod units;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use report::{Failure, Report};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let (command, style) = (cli.command.words(), (cli.json, cli.quiet));
    report::finish(command, dispatch(cli), style)
}

fn dispatch(cli: Cli) -> Result<Report, Failure> {
    let context =
        context::Context::new(cli.array, cli.secrets, cli.host_nqn, (cli.json, cli.quiet));
    match cli.command {
        Command::Drive(cli::Drive::Serve(options)) => drive::serve(&options, &context),
        Command::Drive(cli::Drive::Check(options)) => check::check(&options),
        Command::Drive(cli::Drive::Log(options)) => drive_log::log(&options, &context),
        Command::Secret(cli::SecretCommand::New(options)) => secret::new(&options),
        Command::Array(cli::Array::Up(options)) => array::up(&options, &context),
        Command::Array(cli::Array::Add(options)) => array::add(&options, &context),
        Command::Array(cli::Array::Status) => array::status(&context),
        Command::Array(cli::Array::Reclaim) => array::reclaim(&context),
        Command::Array(cli::Array::Down(options)) => array::down(&options, &context),
        Command::Put(options) => object::put(options, &context),
        Command::Get(options) => object::get(options, &context),
        Command::Ls(options) => object::ls(&options, &context),
        Command::Stat(options) => object::stat(options, &context),
        Command::Rm(options) => object::rm(options, &context),
        Command::Characterize(options) => characterize::characterize(&options, &context),
        Command::Run(options) => run::run(&options, &context),
        Command::Program(command) => program::program(command, &context),
    }
}

/// Help and version are answers; anything else is wrong use, also for a reader of JSON.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        report::print(&error.render().to_string());
        return ExitCode::SUCCESS;
    }
    let json = std::env::args_os().any(|argument| argument == "--json");
    if json {
        let text = error.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
        return report::finish("", Err(Failure::usage(message)), (true, true));
    }
    let _gone = error.print();
    ExitCode::from(2)
}
