//! Documents: links, the map in the read-me, decision records, orphans.

use crate::tree::Tree;

/// Headings of a decision record, in this order.
const HEADINGS: [&str; 5] = ["Summary", "Motivation", "Non-goals", "Alternatives", "Done when"];
const DECISIONS: &str = "docs/decisions/";
const TEMPLATE: &str = "docs/decisions/template.md";
const INDEX: &str = "docs/decisions/README.md";

/// Checks that every relative link leads to a file or folder.
pub(crate) fn links(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.ending(".md") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in targets(text) {
            let file = target.split('#').next().unwrap_or("");
            let elsewhere = file.contains("://") || file.starts_with("mailto:");
            if file.is_empty() || elsewhere || resolve(folder, file).is_some_and(|p| tree.has(&p)) {
                continue;
            }
            violations.push(format!("{path}: {target} leads nowhere"));
        }
    }
    violations
}

/// Returns the targets of a document's links, except those in blocks and spans of code.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let quoted = line[..at].matches('`').count() % 2 == 1;
            let target = &line[at + 2..];
            let end = target.find([')', ' ']).unwrap_or(target.len());
            if !quoted {
                targets.push(&target[..end]);
            }
        }
    }
    targets
}

/// Resolves `target` from `folder`; `None` if it leaves the repository.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => folder.split('/').filter(|part| !part.is_empty()).collect(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Checks that every folder in the first column of a table of the read-me exists.
pub(crate) fn map(tree: &Tree) -> Vec<String> {
    let rows = tree.text("README.md").unwrap_or("").lines().filter(|line| line.starts_with('|'));
    let firsts = rows.filter_map(|row| row.trim_matches('|').split('|').next());
    let folders = firsts.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    folders
        .filter(|folder| folder.ends_with('/') && !tree.has(folder.trim_end_matches('/')))
        .map(|folder| format!("README.md: the map names {folder}, which is not there"))
        .collect()
}

/// Checks that decision records are named by their date, have the template's headings and are in
/// the index.
pub(crate) fn decisions(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    let index = tree.text(INDEX).unwrap_or("");
    for (path, text) in tree.ending(".md").filter(|(path, _)| path.starts_with(DECISIONS)) {
        let name = &path[DECISIONS.len()..];
        if path == INDEX {
            continue;
        }
        let found = text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim);
        if !HEADINGS.iter().copied().eq(found) {
            violations.push(format!("{path}: headings are not {}", HEADINGS.join(", ")));
        }
        if path == TEMPLATE {
            continue;
        }
        if day(name).is_none() {
            violations.push(format!("{path}: not named YYYY-MM-DD-slug.md"));
        } else if !index.contains(&format!("]({name})")) {
            violations.push(format!("{path}: not in {INDEX}"));
        }
    }
    violations
}

/// Returns the date in a record's name, if the name has its form.
fn day(name: &str) -> Option<&str> {
    let (day, slug) = (name.get(..10)?, name.get(10..)?.strip_prefix('-')?.strip_suffix(".md")?);
    let mut numbers = day.split('-').map(|part| (part.len(), part.parse::<u16>().ok()));
    let year = numbers.next()?.0 == 4;
    let month = matches!(numbers.next()?, (2, Some(1..=12)));
    let date = matches!(numbers.next()?, (2, Some(1..=31)));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (year && month && date && !slug.is_empty() && slug.chars().all(plain)).then_some(day)
}

/// Checks that another file names every document under `docs/`; a folder's name stands for its
/// read-me.
pub(crate) fn orphans(tree: &Tree) -> Vec<String> {
    let documents = tree
        .ending(".md")
        .filter(|(path, _)| path.starts_with("docs/") && !path.starts_with(DECISIONS));
    let named = |path: &str| {
        let name = match path.strip_suffix("/README.md") {
            Some(folder) => folder.rsplit('/').next().unwrap_or(folder),
            None => path.rsplit('/').next().unwrap_or(path),
        };
        let others = [".md", ".rs", ".py", ".toml"].into_iter().flat_map(|end| tree.ending(end));
        others.filter(|(other, _)| *other != path).any(|(_, text)| text.contains(name))
    };
    documents
        .filter(|(path, _)| !named(path))
        .map(|(path, _)| format!("{path}: no other file names it"))
        .collect()
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "[a](../b.md#x) [b](c/) [c](https://x.y/z) [d](#here) `[e](no)` [f](/b.md)\n\
                [g](no.md \"title\") [h](../../up.md)\n```\n[i](code.md)\n```\n[j](gone/k.md)";
    let tree = Tree::made_up(&[("docs/a.md", text), ("b.md", ""), ("docs/c/d.txt", "")]);
    assert_eq!(
        links(&tree),
        [
            "docs/a.md: no.md leads nowhere",
            "docs/a.md: ../../up.md leads nowhere",
            "docs/a.md: gone/k.md leads nowhere",
        ]
    );
}

#[test]
fn a_map_that_names_missing_folders_is_found() {
    let readme = "`gone/` in text\n| folder | what |\n|---|---|\n| `crates/a/` | `other/` |\n\
                  | `crates/b/`, `crates/a` | x |\n";
    let tree = Tree::made_up(&[("README.md", readme), ("crates/a/x.rs", "")]);
    assert_eq!(map(&tree), ["README.md: the map names crates/b/, which is not there"]);
}

#[test]
fn decisions_with_a_wrong_name_day_or_heading_are_found() {
    let good = "# T\n## Summary\n## Motivation\n## Non-goals\n## Alternatives\n## Done when\n";
    let bad = good.replace("## Motivation\n", "");
    let tree = Tree::made_up(&[
        ("docs/decisions/2026-11-20-good.md", good),
        ("docs/decisions/2026-11-20-same-day.md", good),
        ("docs/decisions/2026-11-21-no-motivation.md", &bad),
        ("docs/decisions/2026-13-21-no-month.md", good),
        ("docs/decisions/2026-11-22-Capital.md", good),
        ("docs/decisions/slug.md", good),
        (TEMPLATE, good),
        (INDEX, "[good](2026-11-20-good.md) [bad](2026-11-21-no-motivation.md)"),
    ]);
    assert_eq!(
        decisions(&tree),
        [
            "docs/decisions/2026-11-20-same-day.md: not in docs/decisions/README.md",
            "docs/decisions/2026-11-21-no-motivation.md: headings are not Summary, Motivation, \
             Non-goals, Alternatives, Done when",
            "docs/decisions/2026-11-22-Capital.md: not named YYYY-MM-DD-slug.md",
            "docs/decisions/2026-13-21-no-month.md: not named YYYY-MM-DD-slug.md",
            "docs/decisions/slug.md: not named YYYY-MM-DD-slug.md",
        ]
    );
}

#[test]
fn documents_that_nobody_names_are_found() {
    let tree = Tree::made_up(&[
        ("docs/named.md", "orphan.md of its own"),
        ("docs/orphan.md", "orphan.md names itself"),
        ("docs/lonely.md", ""),
        ("docs/golden/README.md", ""),
        ("src/a.rs", "//! see docs/named.md and docs/golden"),
    ]);
    assert_eq!(orphans(&tree), ["docs/lonely.md: no other file names it"]);
}
