//! `csd completions` and `csd man`: files for packages, generated from the command line's
//! declaration.
//!
//! Invariant: every command that is not hidden has completions and a man page.

use clap_complete::generate;
use serde_json::{Value, json};

use crate::cli::{self, Completions, Man};
use crate::man;
use crate::report::{Failure, Report};

/// Returns the completion script of a shell.
pub(crate) fn completions(options: &Completions) -> Report {
    let mut script = Vec::new();
    generate(options.shell, &mut cli::command(), "csd", &mut script);
    Report::new(String::from_utf8_lossy(&script), Value::Null)
}

/// Writes the man pages.
pub(crate) fn man(options: &Man) -> Result<Report, Failure> {
    let folder = &options.folder;
    let failed = |error: std::io::Error| Failure::os(folder.display(), &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    man::write_all(cli::command(), folder).map_err(failed)?;
    Ok(Report::new(String::new(), json!({ "folder": folder })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every command that help shows, as its words.
    fn commands(at: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
        let shown = at.get_subcommands().filter(|inner| !inner.is_hide_set());
        let each = shown.flat_map(|inner| {
            let words = [path, &[inner.get_name().to_owned()]].concat();
            [vec![words.clone()], commands(inner, &words)].concat()
        });
        each.collect()
    }

    #[test]
    fn every_command_has_completions_and_a_page() {
        let all = commands(&cli::command(), &[]);
        assert!(all.contains(&vec!["drive".to_owned(), "serve".to_owned()]), "{all:?}");
        for shell in ["bash", "zsh", "fish"] {
            let shell = shell.parse().unwrap();
            let script = completions(&Completions { shell }).text;
            for words in &all {
                let word = words.last().expect("a name");
                assert!(script.contains(word.as_str()), "{shell}: {words:?}");
            }
            assert!(script.contains("allow-any-host"), "{shell} has no options");
        }
        let folder = tempfile::tempdir().unwrap();
        let options = Man { folder: folder.path().join("man1") };
        man(&options).unwrap();
        for words in all {
            let page = options.folder.join(format!("csd-{}.1", words.join("-")));
            let text = std::fs::read_to_string(&page).unwrap_or_default();
            let typed = words.join(" ").replace('-', "\\-");
            let synopsis = format!(".SH SYNOPSIS\n\\fBcsd {typed}\\fR");
            assert!(text.contains(&synopsis), "{} is no page:\n{text}", page.display());
        }
    }
}
