//! Options of `csd run KERNEL`, generated from the kernel's declaration ([`Usage`]).

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use csd_kernels::kernel::{Arguments, Choice, Kernel, Kind, OutputUse, Usage};

use crate::cli::ways::Ways;
use crate::units::parse_size;

/// A kernel to run, and its options.
#[derive(Debug)]
pub(crate) struct KernelRun {
    pub(crate) kernel: &'static dyn Kernel,
    /// Names of the objects that it reads.
    pub(crate) inputs: Vec<String>,
    /// Values of its options.
    pub(crate) arguments: Arguments,
    /// Name of the object that it writes.
    pub(crate) output: Option<String>,
    /// True to search for the fastest of the kernel's alternatives.
    pub(crate) tune: bool,
    pub(crate) ways: Ways,
}

/// Name of the option that searches for the fastest alternative.
const TUNE: &str = "auto";
/// Name of the option that names the object to write.
const OUTPUT: &str = "output";

impl KernelRun {
    /// Returns the command of a kernel.
    pub(crate) fn command(name: &'static str, usage: &'static Usage) -> Command {
        let examples: Vec<_> = usage.examples.lines().map(|line| format!("  {line}")).collect();
        let examples = format!("Examples:\n{}", examples.join("\n"));
        let mut command = Command::new(name).after_help(examples);
        for input in usage.inputs {
            command = command.arg(Arg::new(input.name).required(true).help(input.help));
        }
        for choice in usage.options {
            command = command.arg(option(choice));
        }
        if usage.can_tune {
            let help = "Let drives change units and unrolling while they work, by the rate they \
                        see and the cores that hosts leave them; with --on host, try plans on a \
                        sample of the chunks and take the fastest";
            let tune = Arg::new(TUNE).long(TUNE).action(ArgAction::SetTrue);
            command = command.arg(tune.help(help));
        }
        let output = Arg::new(OUTPUT).long(OUTPUT).short('o').value_name("NAME");
        command = match usage.output {
            OutputUse::Never => command,
            OutputUse::Optional(help) => command.arg(output.help(help)),
            OutputUse::Required(help) => command.arg(output.help(help).required(true)),
        };
        // `Ways` sets a description too; the last one set counts.
        let command = Ways::augment_args(command).about(usage.about);
        match usage.details {
            "" => command.long_about(None),
            details => command.long_about(format!("{}\n\n{details}", usage.about)),
        }
    }

    /// Returns the run that the parsed options describe.
    pub(crate) fn from_matches(
        kernel: &'static dyn Kernel,
        usage: &'static Usage,
        matches: &ArgMatches,
    ) -> Result<Self, clap::Error> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let mut arguments = Arguments::default();
        for choice in usage.options {
            let value = match choice.kind {
                Kind::Text => text(choice.name),
                Kind::Size | Kind::Number(..) => {
                    matches.get_one::<u64>(choice.name).map(u64::to_string)
                }
            };
            if let Some(value) = value {
                arguments = arguments.with(choice.name, value);
            }
        }
        Ok(Self {
            kernel,
            inputs: usage.inputs.iter().filter_map(|input| text(input.name)).collect(),
            arguments,
            output: match usage.output {
                OutputUse::Never => None,
                OutputUse::Optional(_) | OutputUse::Required(_) => text(OUTPUT),
            },
            tune: usage.can_tune && matches.get_flag(TUNE),
            ways: Ways::from_arg_matches(matches)?,
        })
    }
}

fn option(choice: &'static Choice) -> Arg {
    let arg = Arg::new(choice.name).long(choice.name).value_name(choice.value_name);
    let arg = arg.help(choice.help).required(choice.is_required);
    let arg = match choice.default {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    let arg = if choice.is_tuned { arg.conflicts_with(TUNE) } else { arg };
    match choice.kind {
        Kind::Text => arg.allow_hyphen_values(true),
        Kind::Size => arg.value_parser(parse_size),
        Kind::Number(least, most) => arg.value_parser(value_parser!(u64).range(least..=most)),
    }
}
