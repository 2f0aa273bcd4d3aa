//! Rules of the project that a machine can check, over the repository's own files.
//!
//! A rule is a function from the files to its violations, so tests can run it on files made up to
//! break it. Rules write nothing. To see all violations of a rule, run its test: the message lists
//! them, one per line.

mod circles;
mod clocks;
mod crates;
mod docs;
mod english;
mod long_sentences;
mod size;
mod tree;
mod words;

use tree::Tree;

/// Fails with every violation of a rule.
fn hold(rule: fn(&Tree) -> Vec<String>) {
    let tree = Tree::of_repository();
    assert!(tree.paths().count() > 50, "the repository's files were not found");
    let violations = rule(&tree);
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn modules_say_what_they_are() {
    hold(size::module_docs);
}

#[test]
fn files_are_short_and_large_ones_only_shrink() {
    hold(size::files);
}

#[test]
fn functions_are_short() {
    hold(size::functions);
}

#[test]
fn sentences_are_short() {
    hold(long_sentences::long_sentences);
}

#[test]
fn lines_are_short() {
    hold(size::lines);
}

#[test]
fn nothing_is_left_undone() {
    hold(words::undone);
}

#[test]
fn unsafe_stands_where_it_may() {
    hold(words::unsafe_code);
}

#[test]
fn the_operating_system_is_named_by_the_reactor_alone() {
    hold(words::operating_system);
}

#[test]
fn modules_need_each_other_in_no_new_circle() {
    hold(circles::circles);
}

#[test]
fn tests_do_not_depend_on_speed() {
    hold(clocks::clocks);
}

#[test]
fn rules_name_edges_and_paths_that_exist() {
    hold(crates::edges_exist);
    hold(words::leave_of_missing_paths);
}

#[test]
fn crates_depend_as_designed() {
    hold(crates::edges);
}

#[test]
fn every_module_file_belongs_to_its_crate() {
    hold(crates::dead_modules);
}

#[test]
fn links_of_documents_resolve() {
    hold(docs::links);
}

#[test]
fn the_map_in_the_readme_is_true() {
    hold(docs::map);
}

#[test]
fn documentation_is_in_direct_sentences() {
    hold(english::english);
}

#[test]
fn decisions_follow_their_template() {
    hold(docs::decisions);
}

#[test]
fn every_document_is_named_by_another_file() {
    hold(docs::orphans);
}
