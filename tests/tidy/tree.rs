//! The repository's text files by path, and Rust source without its comments and literals.
//!
//! Follows no links, and skips hidden folders and the output of builds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Text files by path from the repository's root, with `/`.
pub(crate) struct Tree(BTreeMap<String, String>);

/// Folders that builds and runs leave behind.
const SKIPPED: [&str; 7] =
    ["target", "build", "dist", "node_modules", "__pycache__", "csd-array", "demo-out"];
const ENDINGS: [&str; 6] = [".rs", ".py", ".md", ".toml", ".txt", ".sh"];

/// Opening of a Rust file's unit tests, which stand at its end.
pub(crate) const UNIT_TESTS: &str = "#[cfg(test)]\nmod tests {";

impl Tree {
    pub(crate) fn of_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the root");
        let mut files = BTreeMap::new();
        collect(root, &PathBuf::new(), &mut files);
        Self(files)
    }

    /// Returns made-up files, to test a rule.
    pub(crate) fn made_up(files: &[(&str, &str)]) -> Self {
        let pair = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self(files.iter().map(pair).collect())
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the files whose names end like this.
    pub(crate) fn ending(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns true if there is such a file, or a folder with any file.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty() || self.0.keys().any(|file| file == path || file.starts_with(&folder))
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(root.join(folder)).expect("a folder of the repository is readable");
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = folder.join(&name);
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || name.ends_with(".egg-info") {
            continue;
        }
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(root, &path, files);
        } else if kind.is_file() {
            let path = path.to_string_lossy().replace('\\', "/");
            let is_text = ENDINGS.iter().any(|ending| path.ends_with(ending));
            // Other files are listed without their contents.
            let read = if is_text { fs::read(root.join(&path)).ok() } else { None };
            let text = read.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            files.insert(path, text);
        }
    }
}

/// Returns Rust source with comments and the contents of literals blanked; lines keep their
/// numbers.
pub(crate) fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let length = literal_or_comment(rest, code.chars().last());
        if length == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let (blanked, after) = rest.split_at(length);
        code.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    code
}

/// Returns Python source with comments and the contents of strings blanked; lines keep their
/// numbers.
pub(crate) fn python_code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let triple = ["\"\"\"", "'''"].into_iter().find(|quotes| rest.starts_with(quotes));
        let length = match (next, triple) {
            ('#', _) => rest.find('\n').unwrap_or(rest.len()),
            (_, Some(quotes)) => rest[3..].find(quotes).map_or(rest.len(), |end| end + 6),
            ('"' | '\'', None) => 1 + quoted(&rest[1..], next),
            _ => 0,
        };
        let (blanked, after) = rest.split_at(if length == 0 { next.len_utf8() } else { length });
        code.extend(blanked.chars().map(|c| if length == 0 || c == '\n' { c } else { ' ' }));
        rest = after;
    }
    code
}

/// Returns the length of the comment or literal that `rest` begins with; 0 for none. `before` is
/// the character in front of it.
fn literal_or_comment(rest: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let end_of = |close: &str, from: usize| {
        rest[from..].find(close).map_or(rest.len(), |at| from + at + close.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return end_of("*/", 2);
    }
    if let Some(inner) = rest.strip_prefix('"') {
        return 1 + quoted(inner, '"');
    }
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !in_word) {
        let hashes = raw.chars().take_while(|c| *c == '#').count();
        if raw[hashes..].starts_with('"') {
            return end_of(&format!("\"{}", "#".repeat(hashes)), 2 + hashes);
        }
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        // A lifetime has no closing quote behind its first character.
        let mut chars = inner.chars();
        let first = chars.next();
        if first == Some('\\') || chars.next() == Some('\'') {
            return 1 + quoted(inner, '\'');
        }
    }
    0
}

/// Returns the length up to and with the closing quote, escapes respected.
fn quoted(inner: &str, close: char) -> usize {
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        if c == close && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    inner.len()
}

#[test]
fn comments_and_literals_are_blanked_and_lines_kept() {
    let source = "let a = \"un // safe\\\" \"; // x\n/* un\nsafe */ let b: &'a str = r#\"q\"w\"#;\n\
                  let c = ['\"', '\\'', 'x']; f(\"multi\nline\")";
    let code = code_of(source);
    assert_eq!(code.lines().count(), source.lines().count());
    let words: Vec<&str> = code.split_whitespace().collect();
    let joined = words.join(" ");
    assert_eq!(joined, "let a = ; let b: &'a str = ; let c = [ , , ]; f( )");
}

#[test]
fn comments_and_strings_of_python_are_blanked_and_lines_kept() {
    let source = "a = 'un # safe\\' ' + x  # y\n\"\"\"z 'un\nsafe\"\"\"\nb = \"c\" + 'd'";
    let code = python_code_of(source);
    assert_eq!(code.lines().count(), source.lines().count());
    let words: Vec<&str> = code.split_whitespace().collect();
    assert_eq!(words.join(" "), "a = + x b = +");
}
