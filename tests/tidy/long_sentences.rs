//! Long sentences on the pages for users: a reader in a hurry loses their thread.

use crate::english::{document, sentences, without_code};
use crate::tree::Tree;

/// Most words of a sentence; a span of code counts as one.
const WORDS_MAX: usize = 40;

/// Pages for users, or folders of them.
const PAGES: [&str; 4] = ["README.md", "docs/guide/", "docs/demo.md", "docs/how-it-works.md"];

/// Checks that no sentence of these pages has more words than that. A cell of a table is one.
pub(crate) fn long_sentences(tree: &Tree) -> Vec<String> {
    let pages = tree.ending(".md").filter(|(path, _)| PAGES.iter().any(|p| path.starts_with(p)));
    let mut violations = Vec::new();
    for (path, text) in pages {
        for paragraph in document(text) {
            let plain = without_code(&paragraph.text);
            for sentence in plain.split(" | ").flat_map(sentences) {
                let words = sentence.split_whitespace().count();
                if words > WORDS_MAX {
                    let begin: String = sentence.chars().take(40).collect();
                    let line = paragraph.line;
                    violations.push(format!("{path}:{line}: {words} words: {begin}..."));
                }
            }
        }
    }
    violations
}

#[test]
fn long_sentences_are_found_and_code_and_cells_count_for_themselves() {
    let long = format!("It {}.\n", "is ".repeat(WORDS_MAX).trim_end());
    let short = format!("It {} `a b`. So it is.\n", "is ".repeat(WORDS_MAX - 2).trim_end());
    let cells = format!("| {} | {} |\n", "a ".repeat(30), "b ".repeat(30));
    let tree = Tree::made_up(&[
        ("docs/guide/a.md", &format!("# Title\n\n{short}\n{long}")),
        ("docs/guide/b.md", &cells),
        ("docs/internals/c.md", &long),
    ]);
    let found = long_sentences(&tree);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("docs/guide/a.md:5: 41 words: It is is"), "{found:?}");
}
