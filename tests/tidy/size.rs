//! Sizes: module documentation, files, functions, lines.

use crate::tree::{Tree, code_of};

/// Limit of every file, lines.
const FILE_LINES_MAX: usize = 700;
/// Limit of files that are not in [`LARGE`], lines. Those listed there only shrink.
const FILE_LINES: usize = 400;
const LARGE: &str = "tests/tidy/large.txt";
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Checks that every Rust file begins with module documentation.
pub(crate) fn module_docs(tree: &Tree) -> Vec<String> {
    let without = tree.ending(".rs").filter(|(_, text)| !text.starts_with("//!"));
    without.map(|(path, _)| format!("{path}: does not open with //!")).collect()
}

/// Checks that no file is too long, and that the list of long ones is true.
pub(crate) fn files(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    let listed: Vec<(&str, usize)> = tree
        .text(LARGE)
        .unwrap_or("")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap_or((line, "0")))
        .map(|(path, lines)| (path.trim(), lines.parse().unwrap_or(0)))
        .collect();
    for (path, text) in tree.ending(".rs").chain(tree.ending(".py")) {
        let lines = text.lines().count();
        let allowed = listed.iter().find(|(large, _)| *large == path).map(|(_, lines)| *lines);
        match allowed {
            _ if lines > FILE_LINES_MAX => {
                violations.push(format!("{path}: {lines} lines, more than {FILE_LINES_MAX}"));
            }
            None if lines > FILE_LINES => {
                violations.push(format!("{path}: {lines} lines, and not in {LARGE}"));
            }
            Some(allowed) if lines > allowed => {
                violations.push(format!("{path}: grew from {allowed} to {lines} lines"));
            }
            Some(_) if lines <= FILE_LINES => {
                violations.push(format!("{path}: short enough now, take it off {LARGE}"));
            }
            _ => {}
        }
    }
    let gone = listed.iter().filter(|(path, _)| tree.text(path).is_none());
    violations.extend(gone.map(|(path, _)| format!("{LARGE}: {path} does not exist")));
    violations
}

/// Checks that no function is too long. Relies on rustfmt's layout: the closing brace has the
/// indentation of the function's first line.
pub(crate) fn functions(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let code = code_of(text);
        let lines: Vec<&str> = code.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            let length = function_lines(&lines[start..]);
            if length > FUNCTION_LINES_MAX {
                let number = start + 1;
                violations.push(format!("{path}:{number}: {name} has {length} lines"));
            }
        }
    }
    violations
}

/// Returns the name of the function that begins on this line.
pub(crate) fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let qualifier = |word: &&str| {
        word.starts_with("pub")
            || matches!(*word, "const" | "async" | "unsafe" | "extern")
            || *word == "crate)"
    };
    let word = words.by_ref().find(|word| !qualifier(word) && !word.is_empty())?;
    if word != "fn" {
        return None;
    }
    words.next()?.split(['(', '<']).next()
}

/// Returns the number of lines from a function's first to its last.
pub(crate) fn function_lines(lines: &[&str]) -> usize {
    let indent = &lines[0][..lines[0].len() - lines[0].trim_start().len()];
    let closing = format!("{indent}}}");
    let opens = lines.iter().position(|line| {
        let line = line.trim_end();
        line.ends_with('{') || line.ends_with('}') || line.ends_with(';')
    });
    let Some(opens) = opens.filter(|at| lines[*at].trim_end().ends_with('{')) else { return 1 };
    let closes = lines[opens + 1..].iter().position(|line| line.trim_end() == closing);
    closes.map_or(lines.len(), |at| opens + at + 2)
}

/// Checks that no line is too wide, except for lines with a link.
pub(crate) fn lines(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.ending(".rs").chain(tree.ending(".py")) {
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !line.contains("https://") {
                violations.push(format!("{path}:{}: {columns} columns", index + 1));
            }
        }
    }
    violations
}

#[test]
fn a_file_without_documentation_is_found() {
    let tree = Tree::made_up(&[("a.rs", "//! Is.\n"), ("b.rs", "use x;\n//! Late.\n")]);
    assert_eq!(module_docs(&tree), ["b.rs: does not open with //!"]);
}

#[test]
fn long_files_are_found_and_the_list_is_held_to_the_truth() {
    let lines = |count: usize| "x\n".repeat(count);
    let (fits, long, longer, longest) = (lines(400), lines(401), lines(450), lines(701));
    let list = "# why\ngrew.rs 449\nsame.rs 450\nfits.rs 500\nlongest.rs 701\ngone.rs 500\n";
    let files_ = [
        (LARGE, list),
        ("fits.rs", &fits),
        ("unlisted.py", &long),
        ("grew.rs", &longer),
        ("same.rs", &longer),
        ("longest.rs", &longest),
    ];
    let violations = files(&Tree::made_up(&files_)).join("\n");
    for words in ["grew from 449 to 450", "fits.rs: short enough", "unlisted.py: 401 lines"] {
        assert!(violations.contains(words), "{violations}");
    }
    assert!(violations.contains("longest.rs: 701 lines") && violations.contains("gone.rs does"));
    assert_eq!(violations.lines().count(), 5);
}

#[test]
fn long_functions_are_found_wherever_they_stand() {
    let body = |count: usize| "        a();\n".repeat(count);
    let signature = "    pub(crate) async fn method<T>(\n        a: T,\n    ) -> X\n    where\n";
    let text = format!(
        "//! Is.\nfn short() {{}}\nfn declared(a: u8);\nimpl X {{\n{signature}        T: Y,\n    \
         {{\n{}    }}\n    fn fits() {{\n{}    }}\n}}\n",
        body(65),
        body(68)
    );
    // 6 lines of signature, 65 of body, 1 brace: 72; and 70.
    assert_eq!(functions(&Tree::made_up(&[("a.rs", &text)])), ["a.rs:5: method has 72 lines"]);
}

#[test]
fn wide_lines_are_found_in_characters() {
    let fits = "é".repeat(100);
    let wide = "x".repeat(101);
    let tree = Tree::made_up(&[("a.rs", &fits), ("b.py", &wide), ("c.md", &wide)]);
    assert_eq!(lines(&tree), ["b.py:1: 101 columns"]);
}
