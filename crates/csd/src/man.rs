//! Man pages: [`write_all`] writes one for every command that help shows.
//!
//! The order is that of a reader: a name, the form of the command, examples, and then the rest; a
//! command's own options come before those that all commands take. Examples and notes are those of
//! `--help`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Opens the examples in the text after a command's help; an empty line ends them.
const EXAMPLES: &str = "Examples:\n";

/// Writes the pages of a command and of all below it.
pub(crate) fn write_all(command: Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_below(&command, folder)
}

fn write_below(command: &Command, folder: &Path) -> io::Result<()> {
    let mut shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.try_for_each(|inner| write_below(inner, folder))?;
    let man = Man::new(command.clone()).source(concat!("csd ", env!("CARGO_PKG_VERSION")));
    let mut file = File::create(folder.join(man.get_filename()))?;
    page(command, &man, &mut file)?;
    file.flush()
}

/// Writes one page.
fn page(command: &Command, man: &Man, to: &mut dyn Write) -> io::Result<()> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, notes) = parts(&after);
    man.render_title(to)?;
    man.render_name_section(to)?;
    synopsis(command, to)?;
    section("EXAMPLES", examples, to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(to)?;
    }
    section("NOTES", notes, to)?;
    match command.get_version() {
        Some(_) => man.render_version_section(to),
        None => Ok(()),
    }
}

/// Divides the text after a command's help into its examples and the rest.
fn parts(after: &str) -> (&str, &str) {
    let Some(at) = after.find(EXAMPLES) else { return ("", after.trim()) };
    let examples = &after[at + EXAMPLES.len()..];
    match (after[..at].trim(), examples.split_once("\n\n")) {
        ("", Some((examples, notes))) => (examples, notes.trim()),
        ("", None) => (examples, ""),
        (notes, _) => (examples, notes),
    }
}

/// Writes the form of a command as its usage has it: the command's own words, then `[OPTIONS]`,
/// which stands for its own and the global ones, then what it takes.
fn synopsis(command: &Command, to: &mut dyn Write) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let rest = usage.strip_prefix(name).unwrap_or(usage);
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(name), roman(rest)]);
    roff.to_writer(to)
}

/// Writes a section with its lines as they are; nothing without any.
fn section(heading: &str, text: &str, to: &mut dyn Write) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(to)
}

#[test]
fn examples_and_notes_are_told_apart_in_any_order() {
    let both = ("  csd ls", "Folders are no objects.");
    assert_eq!(parts("Examples:\n  csd ls\n\nFolders are no objects."), both);
    assert_eq!(parts("Folders are no objects.\n\nExamples:\n  csd ls"), both);
    assert_eq!(parts("Examples:\n  csd ls"), ("  csd ls", ""));
    assert_eq!(parts("Folders are no objects.\n"), ("", "Folders are no objects."));
    assert_eq!(parts(""), ("", ""));
}

#[test]
fn a_page_begins_with_form_and_examples_and_ends_with_what_all_commands_take() {
    let folder = tempfile::tempdir().unwrap();
    write_all(crate::cli::command(), folder.path()).unwrap();
    let page = std::fs::read_to_string(folder.path().join("csd-put.1")).unwrap();
    let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    let expected = ["NAME", "SYNOPSIS", "EXAMPLES", "DESCRIPTION", "OPTIONS", "\"GLOBAL OPTIONS\""];
    assert_eq!(headings, expected);
    let main = "array-up array-down array-status put get ls rm sync export grep wc run-count \
                program-new program-run kv-put kv-get drive-serve drive-status scrub repair";
    for words in main.split_whitespace() {
        let page = folder.path().join(format!("csd-{words}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH EXAMPLES"), "{} has no examples", page.display());
    }
    let form = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap();
    assert!(form.starts_with("\\fBcsd put\\fR [OPTIONS]"), "{form}");
}
