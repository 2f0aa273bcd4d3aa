//! Crates: dependencies between them, and that every module file is part of its crate.

use crate::tree::Tree;

/// Allowed edges; a crate without an entry may depend on none of ours.
const EDGES: [(&str, &[&str]); 15] = [
    ("crates/nvme", &["buffer"]),
    ("crates/kernels", &["buffer"]),
    ("crates/reactor", &["buffer"]),
    ("crates/kvlog", &["nvme", "reactor"]),
    ("crates/drive", &["initiator", "kernels", "kvlog", "nvme", "reactor", "sched"]),
    ("crates/initiator", &["nvme", "reactor"]),
    ("crates/client", &["initiator", "nvme", "reactor"]),
    ("clients/c", &["client", "initiator", "nvme"]),
    ("crates/store", &["initiator", "kernels", "nvme", "reactor"]),
    ("crates/run", &["initiator", "kernels", "nvme", "reactor", "store"]),
    ("crates/measure", &["initiator", "kernels", "nvme", "reactor"]),
    ("crates/wasm", &["kernels", "nvme"]),
    ("crates/query", &["kernels", "nvme", "run", "store"]),
    (
        "bench",
        &[
            "client",
            "drive",
            "initiator",
            "kernels",
            "kvlog",
            "measure",
            "nvme",
            "reactor",
            "sched",
            "wasm",
        ],
    ),
    (
        "crates/csd",
        &[
            "bench",
            "drive",
            "kvlog",
            "store",
            "run",
            "measure",
            "client",
            "reactor",
            "nvme",
            "kernels",
            "initiator",
            "os",
            "query",
            "sched",
            "wasm",
        ],
    ),
];

/// Checks that every crate depends on allowed ones only. Dependencies of tests alone are free.
pub(crate) fn edges(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.ending("/Cargo.toml") {
        let Some(name) = path.strip_suffix("/Cargo.toml").filter(|path| is_ours(path)) else {
            continue;
        };
        let allowed = EDGES.iter().find(|(from, _)| *from == name).map_or(&[][..], |edge| edge.1);
        let wrong = ours(text).filter(|to| !allowed.contains(to));
        violations.extend(wrong.map(|to| format!("{name} may not depend on {to}")));
    }
    violations
}

/// Checks that every allowed edge is there, and is in the map of ARCHITECTURE.md.
pub(crate) fn edges_exist(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    let map = tree.text("ARCHITECTURE.md").unwrap_or("");
    for (name, allowed) in EDGES {
        let manifest = tree.text(&format!("{name}/Cargo.toml")).unwrap_or("");
        let used: Vec<&str> = ours(manifest).collect();
        let unused = allowed.iter().filter(|to| !used.contains(to));
        violations.extend(unused.map(|to| format!("{name} does not use {to}")));
        let row = map.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let cell = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
        let mut drawn: Vec<&str> = cell.unwrap_or("").split(',').map(str::trim).collect();
        let mut allowed = allowed.to_vec();
        drawn.sort_unstable();
        allowed.sort_unstable();
        if drawn != allowed {
            violations.push(format!("ARCHITECTURE.md: {name} uses {}", allowed.join(", ")));
        }
    }
    violations
}

/// Returns true for a folder of a crate of the workspace whose edges are listed.
fn is_ours(folder: &str) -> bool {
    folder.starts_with("crates/") || EDGES.iter().any(|(name, _)| *name == folder)
}

/// Returns the names of our crates that a manifest depends on for more than its tests.
fn ours(manifest: &str) -> impl Iterator<Item = &str> {
    let mut counts = false;
    manifest.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            counts = header.contains("dependencies") && !header.contains("dev-dependencies");
            // A dependency may have a table of its own.
            let own = header.split_once("dependencies.csd-").filter(|_| counts);
            return own.map(|(_, name)| name.trim_end_matches(']'));
        }
        let name = line.strip_prefix("csd-").filter(|_| counts)?;
        name.split(['.', ' ', '=']).next()
    })
}

/// Checks that every Rust file under a crate's `src` is named by a `mod` of its parent.
pub(crate) fn dead_modules(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, _) in tree.ending(".rs") {
        let Some((folder, _)) = path.split_once("/src/") else { continue };
        if !is_ours(folder) {
            continue;
        }
        if path.ends_with("/src/lib.rs") || path.ends_with("/main.rs") {
            continue;
        }
        // Programs of the crate other than its main one.
        if path.rsplit_once('/').is_some_and(|(folder, _)| folder.ends_with("/src/bin")) {
            continue;
        }
        let module = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let Some((folder, name)) = module.rsplit_once('/') else { continue };
        let parents = [
            format!("{folder}/mod.rs"),
            format!("{folder}.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
        ];
        let wanted = format!("mod {name};");
        let declares = |parent: &String| {
            let lines = tree.text(parent).unwrap_or("").lines();
            lines.map(str::trim).any(|line| {
                line == wanted || line.starts_with("pub") && line.ends_with(&format!(" {wanted}"))
            })
        };
        let by_path = format!("#[path = \"{name}.rs\"]");
        let mut siblings = tree.ending(".rs").filter(|(other, _)| {
            other.rsplit_once('/').is_some_and(|(beside, _)| beside == folder)
        });
        if !parents.iter().any(declares) && !siblings.any(|(_, text)| text.contains(&by_path)) {
            violations.push(format!("{path}: no parent declares `{wanted}`"));
        }
    }
    violations
}

#[test]
fn forbidden_edges_are_found() {
    let tree = Tree::made_up(&[
        ("crates/nvme/Cargo.toml", "[dependencies]\ncsd-reactor.workspace = true\n"),
        ("crates/store/Cargo.toml", "[dependencies]\ncsd-nvme = { path = \"../nvme\" }\n"),
        (
            "crates/initiator/Cargo.toml",
            "[package]\nname = \"csd-initiator\"\n[dev-dependencies]\ncsd-drive = 1\n\
             [dependencies]\ncsd-nvme.workspace = true\n[dependencies.csd-store]\npath = 1\n",
        ),
    ]);
    assert_eq!(
        edges(&tree),
        ["crates/initiator may not depend on store", "crates/nvme may not depend on reactor",]
    );
}

#[test]
fn files_that_no_module_declares_are_found() {
    let tree = Tree::made_up(&[
        ("crates/a/src/lib.rs", "mod b;\npub(crate) mod c;\n// mod dead;\n"),
        ("crates/a/src/b.rs", "#[path = \"b_tests.rs\"]\nmod tests;\n"),
        ("crates/a/src/b_tests.rs", ""),
        ("crates/a/src/bin/one.rs", ""),
        ("crates/a/src/bin/two/main.rs", "mod e;\n"),
        ("crates/a/src/bin/two/e.rs", ""),
        ("crates/a/src/bin/two/dead.rs", ""),
        ("crates/a/src/c/mod.rs", "    mod d;\n"),
        ("crates/a/src/c/d.rs", ""),
        ("crates/a/src/c/dead.rs", ""),
        ("crates/a/src/dead.rs", ""),
        ("crates/a/tests/free.rs", ""),
    ]);
    assert_eq!(
        dead_modules(&tree),
        [
            "crates/a/src/bin/two/dead.rs: no parent declares `mod dead;`",
            "crates/a/src/c/dead.rs: no parent declares `mod dead;`",
            "crates/a/src/dead.rs: no parent declares `mod dead;`",
        ]
    );
}

#[test]
fn edges_that_are_not_there_or_not_drawn_are_found() {
    let crates = |map: &'static str| {
        let used = "[dependencies]\ncsd-nvme = 1\ncsd-reactor = 1\n";
        let tree = Tree::made_up(&[
            ("crates/initiator/Cargo.toml", used),
            ("crates/wasm/Cargo.toml", "[dependencies]\ncsd-nvme = 1\n"),
            ("ARCHITECTURE.md", map),
        ]);
        let found = edges_exist(&tree);
        let of = |name: &str| found.iter().filter(|found| found.contains(name)).count();
        (of("initiator uses"), of("wasm does not use"))
    };
    assert_eq!(crates("| `crates/initiator` | x | nvme, reactor |\n"), (0, 1));
    assert_eq!(crates("| `crates/initiator` | x | nvme |\n"), (1, 1));
}
