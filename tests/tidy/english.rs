//! English of documentation: doc comments, docstrings and documents in direct sentences.
//!
//! Counts patterns that read as translated, by group of files, against a list of allowed numbers
//! that only fall. Inline code, code blocks and headings are exempt.

use std::collections::BTreeMap;

use crate::tree::Tree;

const LIST: &str = "tests/tidy/english.txt";

/// Documents in the root that are checked; all of `docs/` is.
const DOCUMENTS: [&str; 4] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SPECIFICATION.md"];

/// Words that open a clause without an antecedent, if the doc comment is no question.
const OPENINGS: [&str; 8] =
    ["What", "Whether", "How", "Who", "Whoever", "Where", "Which", "That which"];

/// Openings that are forbidden at the start of every sentence of a document.
const SENTENCE_OPENINGS: [&str; 3] = ["What", "Who", "Whoever"];

/// Words and phrases to replace, in small letters.
const PHRASES: [&str; 14] = [
    "anew",
    "nobody",
    "whoever",
    "told",
    "beside",
    "came of",
    "comes of",
    "come of",
    "never:",
    "is to be",
    "are to be",
    "was to be",
    "were to be",
    "it is to",
];

/// One paragraph of prose.
pub(crate) struct Paragraph {
    /// Its first line, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// True if it opens a doc comment or docstring.
    opens: bool,
}

/// Checks that the number of violations of each group is the listed one, or 0.
pub(crate) fn english(tree: &Tree) -> Vec<String> {
    let listed = listed(tree);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in tree.ending(".rs").chain(tree.ending(".py")).chain(tree.ending(".md")) {
        for (line, what) in violations(path, text) {
            found.entry(group(path)).or_default().push(format!("{path}:{line}: {what}"));
        }
    }
    let mut messages = Vec::new();
    for (group, here) in &found {
        let allowed = listed.get(group).copied().unwrap_or(0);
        if here.len() > allowed {
            messages.extend(here.iter().cloned());
            messages.push(format!("{group}: {} in place of {allowed}, see above", here.len()));
        }
    }
    for (group, allowed) in listed {
        let count = found.get(&group).map_or(0, Vec::len);
        if count < allowed {
            messages.push(format!("{LIST}: {group} has {count} now, lower the number"));
        }
    }
    messages
}

fn listed(tree: &Tree) -> BTreeMap<String, usize> {
    let lines = tree.text(LIST).unwrap_or("").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(group, count)| (group.trim().to_owned(), count.parse().unwrap_or(0)))
        .collect()
}

/// Returns the file's group: a crate, a folder of documents, another upper folder, or the file.
fn group(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 1 {
        parts.pop();
    }
    let depth = if matches!(parts[0], "crates" | "docs") { 2 } else { 1 };
    parts.truncate(depth);
    parts.join("/")
}

/// Returns line and description of each violation in a file.
fn violations(path: &str, text: &str) -> Vec<(usize, String)> {
    let paragraphs = if path.ends_with(".rs") {
        doc_comments(text)
    } else if path.ends_with(".py") {
        docstrings(text)
    } else if path.starts_with("docs/") || DOCUMENTS.contains(&path) {
        document(text)
    } else {
        return Vec::new();
    };
    let of = |paragraph: &Paragraph| {
        judge(paragraph).into_iter().map(|what| (paragraph.line, what)).collect::<Vec<_>>()
    };
    paragraphs.iter().flat_map(of).collect()
}

fn judge(paragraph: &Paragraph) -> Vec<String> {
    let text = without_code(&paragraph.text);
    let mut found = Vec::new();
    for (index, sentence) in sentences(&text).into_iter().enumerate() {
        let openings =
            if paragraph.opens && index == 0 { &OPENINGS[..] } else { &SENTENCE_OPENINGS[..] };
        let begins = |word: &&&str| {
            sentence.strip_prefix(**word).is_some_and(|rest| rest.starts_with([' ', ',', ':']))
        };
        if let Some(word) = openings.iter().find(begins).filter(|_| !sentence.ends_with('?')) {
            found.push(format!("begins with \"{word}\""));
        }
    }
    let small = text.to_lowercase();
    for phrase in PHRASES {
        let count = occurrences(&small, phrase);
        found.extend((0..count).map(|_| format!("\"{phrase}\"")));
    }
    found
}

/// Returns the number of places where `phrase` stands as whole words.
fn occurrences(text: &str, phrase: &str) -> usize {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let whole = |at: usize| {
        let before = text[..at].chars().next_back().is_none_or(|c| !part(c));
        let after = text[at + phrase.len()..].chars().next().is_none_or(|c| !part(c));
        before && (after || phrase.ends_with(':'))
    };
    text.match_indices(phrase).filter(|(at, _)| whole(*at)).count()
}

/// Replaces inline code, and the targets of links, by a placeholder.
pub(crate) fn without_code(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        plain.push_str(if index % 2 == 0 { part } else { "CODE" });
    }
    let mut kept = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// Splits prose where a mark and a space are followed by a capital letter, and at table cells.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        let mark = text[..at].ends_with(['.', '?', '!', '|']);
        if mark && text[at + 1..].starts_with(|c: char| c.is_uppercase()) {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Collects paragraphs of lines that `prose` gives the text of; `None` ends one.
fn paragraphs<'a>(lines: impl Iterator<Item = (usize, Option<(&'a str, bool)>)>) -> Vec<Paragraph> {
    let mut all: Vec<Paragraph> = Vec::new();
    let mut open = false;
    for (line, prose) in lines {
        let Some((text, opens)) = prose else {
            open = false;
            continue;
        };
        let item = text.starts_with(['-', '*', '|']) || text.starts_with(|c: char| c.is_numeric());
        match all.last_mut().filter(|_| open && !opens && !item) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            None => {
                let text = text.trim_start_matches(['-', '*', '|', ' ']).to_owned();
                all.push(Paragraph { line, text, opens });
            }
        }
        open = true;
    }
    all
}

/// Returns a prose line of Markdown; `None` for headings, code blocks and empty lines.
fn prose(line: &str, in_code: &mut bool) -> Option<String> {
    let line = line.trim();
    if line.starts_with("```") {
        *in_code = !*in_code;
        return None;
    }
    let skipped = *in_code || line.is_empty() || line.starts_with('#') || line.starts_with("<!--");
    (!skipped).then(|| line.to_owned())
}

fn doc_comments(text: &str) -> Vec<Paragraph> {
    let (mut in_code, mut previous) = (false, "");
    let lines: Vec<_> = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let trimmed = line.trim_start();
            let mark = ["///", "//!"].into_iter().find(|mark| trimmed.starts_with(mark));
            let Some(mark) = mark else {
                (in_code, previous) = (false, "");
                return (index + 1, None);
            };
            let opens = previous != mark;
            previous = mark;
            (index + 1, prose(&trimmed[3..], &mut in_code).map(|text| (text, opens)))
        })
        .collect();
    paragraphs(
        lines.iter().map(|(line, prose)| {
            (*line, prose.as_ref().map(|(text, opens)| (text.as_str(), *opens)))
        }),
    )
}

fn docstrings(text: &str) -> Vec<Paragraph> {
    let (mut inside, mut in_code) = (false, false);
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut body = line.trim();
        let opens = !inside && body.trim_start_matches('r').starts_with("\"\"\"");
        if opens {
            body = body.trim_start_matches('r').trim_start_matches('"');
            (inside, in_code) = (true, false);
        } else if !inside {
            continue;
        }
        if body.ends_with("\"\"\"") {
            (inside, body) = (false, body.trim_end_matches('"'));
        }
        // Doctest lines are code.
        let text = Some(body).filter(|body| !body.starts_with(">>>"));
        let text = text.and_then(|body| prose(body, &mut in_code));
        lines.push((index + 1, text.map(|text| (text, opens))));
        if !inside {
            lines.push((index + 1, None));
        }
    }
    paragraphs(
        lines.iter().map(|(line, prose)| {
            (*line, prose.as_ref().map(|(text, opens)| (text.as_str(), *opens)))
        }),
    )
}

/// Returns the paragraphs of a Markdown page.
pub(crate) fn document(text: &str) -> Vec<Paragraph> {
    let mut in_code = false;
    let lines: Vec<_> = text.lines().map(|line| prose(line, &mut in_code)).collect();
    let lines = lines.iter().enumerate();
    paragraphs(lines.map(|(index, text)| (index + 1, text.as_deref().map(|text| (text, false)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let describe = |(line, what): (usize, String)| format!("{line}: {what}");
        violations(path, text).into_iter().map(describe).collect()
    }

    #[test]
    fn headless_openings_of_doc_comments_are_found_and_questions_are_not() {
        let lines = [
            "//! What it is.",
            "//!",
            "//! How it works: well.",
            "",
            "/// Whether it works.",
            "fn a() {}",
            "/// Is it? Who knows?",
            "fn b() {}",
            "/// Returns what is there. What else is not.",
        ];
        let expected =
            ["1: begins with \"What\"", "5: begins with \"Whether\"", "9: begins with \"What\""];
        assert_eq!(found("crates/a/src/b.rs", &lines.join("\n")), expected);
    }

    #[test]
    fn good_sentences_pass() {
        let lines = [
            "/// Returns the number of bytes, or `None` where none is left: `anew`.",
            "/// Whatever happens, besides this, retold or not, is fine.",
            "/// # Whoever",
            "/// ```",
            "/// nobody told it anew",
            "/// ```",
            "let told = 1; // told",
        ];
        assert_eq!(found("crates/a/src/b.rs", &lines.join("\n")), Vec::<String>::new());
    }

    #[test]
    fn phrases_are_found_as_whole_words_over_line_ends() {
        let text = "/// A drive is\n/// to be Told. Never: beside\n/// Nobody.\nfn a() {}\n";
        let expected =
            ["1: \"nobody\"", "1: \"told\"", "1: \"beside\"", "1: \"never:\"", "1: \"is to be\""];
        assert_eq!(found("tests/a.rs", text), expected);
    }

    #[test]
    fn docstrings_and_documents_are_read_and_other_text_is_not() {
        let python = [
            "\"\"\"What it is.\"\"\"",
            "x = 1  # nobody",
            "def f():",
            "    \"\"\"Does.",
            "",
            "    Told anew.",
            "",
            "    >>> nobody",
            "    \"\"\"",
        ];
        let expected = ["1: begins with \"What\"", "6: \"anew\"", "6: \"told\""];
        assert_eq!(found("python/a.py", &python.join("\n")), expected);
        let page = [
            "# What it is",
            "It runs. Who comes second waits.",
            "- What is left",
            "| a | nobody |",
            "```",
            "nobody",
            "```",
            "See [it](nobody.md), `anew`. What is it?",
        ];
        let page = page.join("\n");
        let expected = ["2: begins with \"Who\"", "3: begins with \"What\"", "4: \"nobody\""];
        assert_eq!(found("docs/guide/a.md", &page), expected);
        assert_eq!(found("sdk/README.md", &page), Vec::<String>::new());
    }

    #[test]
    fn numbers_of_groups_only_fall() {
        let list = "# why\ncrates/a 1\ncrates/b 2\ncrates/c 1\n";
        let bad = "/// Nobody.\n";
        let tree = Tree::made_up(&[
            (LIST, list),
            ("crates/a/src/a.rs", bad),
            ("crates/b/src/b.rs", bad),
            ("crates/d/src/d.rs", bad),
            ("README.md", "anew"),
        ]);
        let expected = [
            "README.md:1: \"anew\"",
            "README.md: 1 in place of 0, see above",
            "crates/d/src/d.rs:1: \"nobody\"",
            "crates/d: 1 in place of 0, see above",
            "tests/tidy/english.txt: crates/b has 1 now, lower the number",
            "tests/tidy/english.txt: crates/c has 0 now, lower the number",
        ];
        assert_eq!(english(&tree), expected);
    }
}
