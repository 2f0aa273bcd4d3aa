//! `csd completions` and `csd man`: files for packages, generated from the command line's
//! declaration.
//!
//! Invariant: every command that is not hidden has a man page.

use serde_json::{Value, json};

use crate::cli::{self, Completions, Man};
use crate::report::{Failure, Report};
use crate::{complete, man};

/// Returns the completion script of a shell.
pub(crate) fn completions(options: &Completions) -> Report {
    Report::new(complete::script(options.shell), Value::Null)
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
    use crate::cli::tests::shown;

    #[test]
    fn every_command_has_a_page() {
        let all = shown(&cli::command(), &[]);
        assert!(all.contains(&vec!["drive".to_owned(), "serve".to_owned()]), "{all:?}");
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
