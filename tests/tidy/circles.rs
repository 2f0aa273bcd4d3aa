//! Circles between the modules of a crate: a module that needs itself through others can be read
//! and tested only together with all of them.
//!
//! An edge is a `use`, or a path in code, that begins with `crate`, `super`, `self` or a child
//! module. It leads to the module that defines the item: re-exports are followed; methods are not.
//! Modules of tests do not count. A folder's own module and its children may need each other,
//! because they are read together; two children may not, be it through a third or through modules
//! inside of them. `circles.txt` lists the remaining circles; the list only shrinks.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Tree, UNIT_TESTS, code_of};

/// List of the remaining circles, one per line: the crate, then the modules.
const LISTED: &str = "tests/tidy/circles.txt";

/// Modules of one crate by path from its root, such as `kv::shard`, with their code.
type Modules = BTreeMap<String, String>;

/// Checks that every circle is listed, and that everything listed is still a circle.
pub(crate) fn circles(tree: &Tree) -> Vec<String> {
    let listed: BTreeSet<String> = tree
        .text(LISTED)
        .unwrap_or("")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let mut found = BTreeSet::new();
    for (name, modules) in crates(tree) {
        for circle in circles_of(&edges(&modules)) {
            found.insert(format!("{name}: {}", circle.join(" ")));
        }
    }
    let new = found.difference(&listed).map(|circle| format!("a circle: {circle}"));
    let gone = listed.difference(&found).map(|circle| format!("{LISTED}: no longer so: {circle}"));
    new.chain(gone).collect()
}

fn crates(tree: &Tree) -> BTreeMap<String, Modules> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|p| p.split_once("/src/"))
        else {
            continue;
        };
        let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = if matches!(file, "lib" | "main") { "" } else { file };
        if module.ends_with("tests") {
            continue;
        }
        let code = code_of(text);
        // Tests stand at the end of a file.
        let code = code.split(UNIT_TESTS).next().unwrap_or("").to_owned();
        crates.entry(name.to_owned()).or_default().insert(module.replace('/', "::"), code);
    }
    crates
}

/// Paths that a module names, from the crate's root on.
struct Named {
    /// Paths of its `use` statements.
    used: Vec<Vec<String>>,
    /// Paths in its code.
    others: Vec<Vec<String>>,
}

/// Returns the modules that each module needs.
fn edges(modules: &Modules) -> BTreeMap<&str, BTreeSet<&str>> {
    let named: BTreeMap<&str, Named> = modules
        .iter()
        .map(|(module, code)| (module.as_str(), named(modules, module, code)))
        .collect();
    let targets = |module: &str| {
        let paths = named[module].used.iter().chain(&named[module].others);
        let targets = paths.filter_map(|path| defined_in(modules, &named, path, 4));
        targets.filter(|target| *target != module).collect()
    };
    modules.keys().map(|module| (module.as_str(), targets(module))).collect()
}

fn named(modules: &Modules, module: &str, code: &str) -> Named {
    let (mut used, mut others) = (Vec::new(), Vec::new());
    for statement in code.split(';') {
        // The last `use` before the semicolon: attributes and visibilities stand before it.
        let Some(at) = statement.rfind("use ") else { continue };
        if statement[at..].contains('(') || statement[at..].contains('=') {
            continue;
        }
        expand(&statement[at + 4..], &mut Vec::new(), &mut used);
    }
    for word in code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        // A word that ends with colons begins a group, which is read above.
        if word.contains("::") && !word.ends_with(':') {
            others.push(word.split("::").map(str::to_owned).collect());
        }
    }
    let known = |paths: Vec<Vec<String>>| {
        paths.iter().filter_map(|path| from_root(modules, module, path)).collect()
    };
    Named { used: known(used), others: known(others) }
}

/// Expands a tree of uses into its paths.
fn expand(tree: &str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let known = before.len();
        before.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
        let group = group.trim_end();
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&group[start..at], before, paths);
                    start = at + 1;
                }
                _ => {}
            }
        }
        before.truncate(known);
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or(tree);
        let own = name.split("::").map(|part| part.trim().to_owned());
        paths.push(before.iter().cloned().chain(own).filter(|part| part != "self").collect());
    }
}

/// Returns a path of `module` as one from the root; `None` if it leads out of the crate.
fn from_root(modules: &Modules, module: &str, path: &[String]) -> Option<Vec<String>> {
    let mut base: Vec<String> =
        module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => base.clear(),
        "super" => {}
        first => {
            let child = join(&[&base[..], &[first.to_owned()]].concat());
            return modules.contains_key(&child).then(|| [&base[..], path].concat());
        }
    }
    while let Some(first) = rest.first().filter(|first| matches!(first.as_str(), "crate" | "super"))
    {
        if first == "super" {
            base.pop()?;
        }
        rest = &rest[1..];
    }
    let path = [&base[..], rest].concat();
    (!path.is_empty()).then_some(path)
}

fn join(parts: &[String]) -> String {
    parts.join("::")
}

/// Returns the module that defines a path's item, through at most so many re-exports.
fn defined_in<'a>(
    modules: &'a Modules,
    named: &BTreeMap<&str, Named>,
    path: &[String],
    most: usize,
) -> Option<&'a str> {
    let length = (0..=path.len()).rev().find(|n| modules.contains_key(&join(&path[..*n])))?;
    let (module, code) = modules.get_key_value(&join(&path[..length]))?;
    let Some(item) = path.get(length).filter(|_| most > 0) else { return Some(module) };
    let mut used = named[module.as_str()].used.iter();
    let passed_on = used.find(|of| of.last() == Some(item) && *of != path);
    match passed_on {
        Some(of) => defined_in(modules, named, of, most - 1),
        // An item neither defined nor re-exported here belongs to another crate.
        None => defines(code, item).then_some(module),
    }
}

/// Returns true if a module's code defines an item of this name.
fn defines(code: &str, item: &str) -> bool {
    const KINDS: [&str; 9] =
        ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules!"];
    KINDS.iter().any(|kind| {
        code.match_indices(&format!("{kind} {item}")).any(|(at, found)| {
            let after = code[at + found.len()..].chars().next();
            after.is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
        })
    })
}

/// Returns sets of modules that all need each other: of each folder, those that lie in two or more
/// of its modules. Its own module does not count, but that of the crate does.
fn circles_of<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut circles = BTreeSet::new();
    for folder in edges.keys() {
        let children = if folder.is_empty() { String::new() } else { format!("{folder}::") };
        let child_of = |module: &'a str| module.strip_prefix(&children)?.split("::").next();
        let inside = |modules: &BTreeSet<&'a str>| {
            modules.iter().copied().filter(|module| child_of(module).is_some()).collect()
        };
        let edges: BTreeMap<&str, BTreeSet<&str>> = edges
            .iter()
            .filter(|(from, _)| child_of(from).is_some())
            .map(|(from, to)| (*from, inside(to)))
            .collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            edges.keys().map(|from| (*from, reach(&edges, from))).collect();
        for (from, all) in &reached {
            let circle: Vec<&str> =
                all.iter().copied().filter(|to| reached[to].contains(from)).collect();
            let touched: BTreeSet<_> =
                circle.iter().filter_map(|module| child_of(module)).collect();
            if touched.len() > 1 {
                circles.insert(circle);
            }
        }
    }
    circles.into_iter().collect()
}

fn reach<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), edges[from].iter().copied().collect::<Vec<_>>());
    while let Some(module) = next.pop() {
        if seen.insert(module) {
            next.extend(&edges[module]);
        }
    }
    seen
}

#[test]
fn circles_are_found_through_re_exports_and_paths_in_code() {
    let files = |back: &'static str| {
        Tree::made_up(&[
            ("crates/a/src/lib.rs", "mod b;\nmod c;\nmod d;\npub use d::{\n    Item,\n};\n"),
            (
                "crates/a/src/b.rs",
                "use std::fmt;\nuse super::c::{self, deep::{X, Y as Z}};\npub struct B;",
            ),
            ("crates/a/src/c/mod.rs", "pub mod deep;\n#[cfg(test)]\nmod tests {\nuse crate::b;\n}"),
            ("crates/a/src/c/deep.rs", "// crate::b::B\npub struct X(crate::Item);\n"),
            ("crates/a/src/d.rs", back),
        ])
    };
    assert!(circles(&files("pub struct Item;")).is_empty());
    let circle = "a circle: a: b c::deep d";
    assert_eq!(circles(&files("pub struct Item(crate::b::B);")), [circle]);
    assert_eq!(circles(&files("use crate::b;\npub struct Item;")), [circle]);
}

#[test]
fn circles_between_siblings_are_found_and_those_with_their_folder_are_not() {
    let files = |d: &'static str, f: &'static str| {
        Tree::made_up(&[
            ("crates/a/src/lib.rs", "mod b;"),
            ("crates/a/src/b/mod.rs", "mod c;\nmod d;\nmod e;\nuse c::C;\npub struct B;"),
            ("crates/a/src/b/c.rs", "use super::B;\nuse super::d::D;\npub struct C(D);"),
            ("crates/a/src/b/d.rs", d),
            ("crates/a/src/b/e/mod.rs", "mod f;\npub use f::F;\npub fn e() {\n    f::f();\n}"),
            ("crates/a/src/b/e/f.rs", f),
        ])
    };
    let (d, f) = ("use super::B;\npub struct D;", "pub struct F;\npub fn f() {}");
    assert!(circles(&files(d, f)).is_empty());
    let siblings = "a circle: a: b::c b::d";
    assert_eq!(circles(&files("use super::c::C;\npub struct D;", f)), [siblings]);
    // `d` needs the folder `e`, whose module needs `f` inside, which needs `d`.
    let (d, f) = ("use super::e::e;\npub struct D;", "use crate::b::d::D;\npub fn f() {}");
    assert_eq!(circles(&files(d, f)), ["a circle: a: b::d b::e b::e::f"]);
}
