//! Completion in shells: of commands, options and files by what [`cli`] declares, and of names of
//! objects, drives and programs by asking the array.
//!
//! The script of `csd completions` runs `csd` at each TAB, with [`VARIABLE`] set and the words that
//! are typed as arguments; their global options name the array. Invariant: completing changes
//! nothing and says nothing but candidates; if the array does not answer there are none.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ValueHint;
use clap::{Arg, ArgMatches, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use csd_store::array::{Array, ArrayFile};
use csd_store::object;

use crate::cli;
use crate::context::Context;
use crate::program;
use crate::report::{Failure, Style};

/// Set, to the shell's name, when a shell asks for candidates.
const VARIABLE: &str = "CSD_COMPLETE";
/// Longest wait for an answer of a drive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Ends the file of a function of zsh, which at its first call defines the function.
const ZSH_CALL: &str = "[[ ${funcstack[1]} != _csd ]] || _clap_dynamic_completer_csd \"$@\"\n";

/// Arguments, each by the words of its command and its own name.
type Where = [(&'static [&'static str], &'static str)];

/// Arguments that are names of objects; so are all words after a kernel's name.
const OBJECTS: &Where = &[
    (&["get"], "name"),
    (&["cat"], "names"),
    (&["ls"], "prefix"),
    (&["du"], "prefix"),
    (&["stat"], "name"),
    (&["sum"], "names"),
    (&["sum"], "prefix"),
    (&["export"], "prefix"),
    (&["mount"], "prefix"),
    (&["cp"], "old"),
    (&["cp"], "new"),
    (&["mv"], "old"),
    (&["mv"], "new"),
    (&["grep"], "names"),
    (&["wc"], "names"),
    (&["top-k"], "names"),
    (&["histogram"], "names"),
    (&["protect"], "name"),
    (&["rm"], "names"),
    (&["scrub"], "names"),
    (&["repair"], "names"),
    (&["array", "rebalance"], "names"),
    (&["program", "run"], "object"),
];
/// Arguments that are names of drives.
const DRIVES: &Where = &[
    (&["array", "replace"], "drive"),
    (&["array", "remove"], "drive"),
    (&["array", "rebuild"], "drives"),
    (&["attach"], "drive"),
    (&["tunnel", "up"], "drive"),
    (&["os", "up"], "drive"),
    (&["os", "status"], "drive"),
    (&["os", "exec"], "drive"),
    (&["os", "down"], "drive"),
    (&["os", "service", "start"], "drive"),
    (&["os", "service", "stop"], "drive"),
    (&["drive", "status"], "drive"),
    (&["drive", "log"], "drive"),
    (&["drive", "service", "pause"], "drive"),
    (&["drive", "service", "resume"], "drive"),
    (&["drive", "service", "rate"], "drive"),
    (&["drive", "service", "share"], "drive"),
];
/// Arguments that are indexes of programs in drives.
const PROGRAMS: &Where = &[
    (&["program", "unload"], "index"),
    (&["program", "activate"], "index"),
    (&["program", "deactivate"], "index"),
    (&["program", "run"], "program"),
];
/// Arguments that are files or folders, where their type does not say so.
const FILES: &Where = &[
    (&["put"], "words"),
    (&["get"], "file"),
    (&["sum"], "check"),
    (&["sync"], "from"),
    (&["sync"], "to"),
    (&["export"], "file"),
    (&["import"], "file"),
];

/// Answers a shell that asks for candidates, and ends; returns if none does.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Returns the script that makes a shell ask.
pub(crate) fn script(shell: Shell) -> String {
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string()).expect("each shell of the option is one");
    let mut script = Vec::new();
    let written = shell.write_registration(VARIABLE, "csd", "csd", "csd", &mut script);
    written.expect("memory takes all");
    let call = if shell.name() == "zsh" { ZSH_CALL } else { "" };
    String::from_utf8_lossy(&script).into_owned() + call
}

/// Returns the command line with what completes its arguments.
pub(crate) fn command() -> Command {
    let by_asking = |ask: fn(&str) -> Vec<String>| {
        ArgValueCompleter::new(move |typed: &OsStr| candidates(typed, ask))
    };
    let (objects, drives) = (by_asking(objects), by_asking(drives));
    let whole = each(cli::command(), OBJECTS, |arg| arg.add(objects.clone()));
    let whole = each(whole, DRIVES, |arg| arg.add(drives.clone()));
    let whole = each(whole, PROGRAMS, |arg| arg.add(by_asking(programs)));
    let whole = each(whole, FILES, |arg| arg.value_hint(ValueHint::AnyPath));
    let input = |arg: Arg| if arg.is_positional() { arg.add(objects.clone()) } else { arg };
    whole.mut_subcommand("run", |run| run.mut_subcommands(|kernel| kernel.mut_args(&input)))
}

/// Changes arguments. Their order, which `mut_arg` would change, is that of the words.
fn each(command: Command, wheres: &Where, change: impl Fn(Arg) -> Arg) -> Command {
    wheres.iter().fold(command, |command, &(path, name)| {
        let change = |arg: Arg| if arg.get_id() == name { change(arg) } else { arg };
        cli::at(command, path, &|inner| inner.mut_args(change))
    })
}

/// Returns the names that begin as the typed word. Those that a shell would take apart are left
/// out, because only some shells quote what they insert.
fn candidates(typed: &OsStr, ask: fn(&str) -> Vec<String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let is_one_word =
        |name: &str| name.chars().all(|c| c.is_alphanumeric() || "/._-+@%=,".contains(c));
    let fits = |name: &String| name.starts_with(typed) && is_one_word(name);
    ask(typed).into_iter().filter(fits).map(CompletionCandidate::new).collect()
}

/// Returns what lies in the folder that is typed: folders end in `/`.
fn objects(typed: &str) -> Vec<String> {
    let folder = typed.rfind('/').map_or("", |end| &typed[..=end]).to_owned();
    let listed = context().with_array(async move |array: &Array| {
        object::children(array, &folder).await.map_err(Failure::from)
    });
    let names = listed.map(|found| found.folders.into_iter().chain(found.objects.into_keys()));
    names.map_or_else(|_| Vec::new(), Iterator::collect)
}

fn drives(_: &str) -> Vec<String> {
    let file = ArrayFile::load(context().array_path());
    file.map_or_else(|_| Vec::new(), |file| file.drives.into_iter().map(|one| one.name).collect())
}

fn programs(_: &str) -> Vec<String> {
    let loaded = program::loaded(&context());
    loaded.map_or_else(|_| Vec::new(), |all| all.iter().map(u16::to_string).collect())
}

/// Returns the context by the global options that are typed.
fn context() -> Context {
    let words: Vec<OsString> =
        std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let typed = cli::command().ignore_errors(true).try_get_matches_from(words).ok();
    let of = |name| typed.as_ref().and_then(|typed| path(typed, name));
    let nqn = typed.as_ref().and_then(|typed| typed.get_one::<String>("host_nqn").cloned());
    let style = Style { json: false, quiet: true, verbose: false };
    Context::new(of("array"), of("secrets"), nqn, PATIENCE, style)
}

fn path(typed: &ArgMatches, name: &str) -> Option<PathBuf> {
    typed.get_one::<PathBuf>(name).cloned()
}

#[cfg(test)]
mod tests {
    use clap_complete::engine::complete;

    use super::*;
    use crate::cli::tests::shown;

    /// Returns the candidates for the last of some words.
    fn candidates(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = ["csd"].iter().chain(words).map(OsString::from).collect();
        let last = words.len() - 1;
        let found = complete(&mut command(), words, last, None).unwrap();
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_command_is_completed() {
        for words in shown(&cli::command(), &[]) {
            let mut typed: Vec<&str> = words.iter().map(String::as_str).collect();
            let last = typed.pop().unwrap();
            typed.push(&last[..1]);
            assert!(candidates(&typed).iter().any(|one| one == last), "{words:?}");
        }
        let options = candidates(&["drive", "serve", "--allow"]);
        assert!(options.contains(&"--allow-any-host".to_owned()), "{options:?}");
    }

    #[test]
    fn every_argument_that_is_completed_exists() {
        for (path, name) in [OBJECTS, DRIVES, PROGRAMS, FILES].concat() {
            let whole = cli::command();
            let inner = path.iter().try_fold(&whole, |at, word| at.find_subcommand(word));
            let found = inner.and_then(|at| at.get_arguments().find(|arg| arg.get_id() == name));
            assert!(found.is_some(), "{path:?} {name}");
        }
        command().debug_assert();
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            assert!(script(shell).contains(VARIABLE), "{shell}");
        }
    }

    /// A name that a shell would take apart is not inserted.
    #[test]
    fn candidates_are_single_words() {
        let ask = |_: &str| ["a", "a b", "a$b", "a/b-2.npy", "b", "ä"].map(str::to_owned).to_vec();
        let found = super::candidates(OsStr::new("a"), ask);
        let found: Vec<_> = found.iter().map(|one| one.get_value().to_str().unwrap()).collect();
        assert_eq!(found, ["a", "a/b-2.npy"]);
    }
}
