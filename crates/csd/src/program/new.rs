//! `csd program new`: a folder with a program that builds, and the SDK that it needs.
//!
//! The files are part of this binary, so that they match its interface and need no clone.

use std::path::{Component, Path};

use serde_json::json;

use crate::cli::program::{Lang, New};
use crate::report::{Failure, Report};

/// A file of the folder, and its text. Both may have the words [`NAME`] and [`MODULE`].
type Template = (&'static str, &'static str);

/// Stands for the folder's name.
const NAME: &str = "NAME";
/// Stands for the name of the module without its ending.
const MODULE: &str = "MODULE";

/// Includes a file of `sdk/`.
macro_rules! sdk {
    ($path:literal) => {
        include_str!(concat!("../../../../sdk/", $path))
    };
}

const RUST: [Template; 7] = [
    ("README.md", sdk!("new/rust/README.md")),
    ("Cargo.toml", sdk!("new/rust/Cargo.toml")),
    (".cargo/config.toml", sdk!("rust/.cargo/config.toml")),
    (".gitignore", sdk!("new/rust/gitignore")),
    ("src/lib.rs", sdk!("new/rust/src/lib.rs")),
    ("csd-sdk/Cargo.toml", sdk!("new/rust/csd-sdk/Cargo.toml")),
    ("csd-sdk/src/lib.rs", sdk!("rust/src/lib.rs")),
];

const C: [Template; 5] = [
    ("README.md", sdk!("new/c/README.md")),
    ("Makefile", sdk!("new/c/Makefile")),
    (".gitignore", sdk!("new/c/gitignore")),
    ("MODULE.c", sdk!("new/c/program.c")),
    ("csd.h", sdk!("c/csd.h")),
];

/// Makes the folder; leaves nothing if that fails.
pub(super) fn new(options: &New) -> Result<Report, Failure> {
    let folder = &options.folder;
    let name = name_of(folder)?;
    let (templates, build) = match options.lang {
        Lang::Rust => (&RUST[..], "cargo build --release"),
        Lang::C => (&C[..], "make"),
    };
    let module = match options.lang {
        Lang::Rust => name.replace('-', "_"),
        Lang::C => name.to_owned(),
    };
    let fill = |text: &str| text.replace(MODULE, &module).replace(NAME, name);
    let files: Vec<_> = templates.iter().map(|(path, text)| (fill(path), fill(text))).collect();
    let shown = folder.display();
    std::fs::create_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::usage(format!(
            "{shown} exists, and nothing is overwritten: name another folder"
        )),
        _ => Failure::os(format!("making the folder {shown}"), &error),
    })?;
    let written = files.iter().try_for_each(|(path, text)| write(&folder.join(path), text));
    if let Err(failure) = written {
        let _kept = std::fs::remove_dir_all(folder);
        return Err(failure);
    }
    let paths: Vec<&String> = files.iter().map(|(path, _)| path).collect();
    let text = format!(
        "made {shown}, a program that counts lines\n\
         next: cd {shown} && {build}; its README.md has the commands that run it\n"
    );
    Ok(Report::new(text, json!({ "folder": folder, "files": paths })))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    let done = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
    done.map_err(|error| Failure::os(format!("writing {}", path.display()), &error))
}

/// Returns the folder's name, which becomes the program's.
fn name_of(folder: &Path) -> Result<&str, Failure> {
    let last = match folder.components().next_back() {
        Some(Component::Normal(last)) => last.to_str().unwrap_or(""),
        _ => "",
    };
    let takes = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = last.starts_with(|c: char| c.is_ascii_alphabetic()) && last.chars().all(takes);
    // Two packages of one name would collide.
    match is_name && !last.eq_ignore_ascii_case("csd-sdk") {
        true => Ok(last),
        false => Err(Failure::usage(format!(
            "{}: a program's name begins with a letter, has ASCII letters, digits, - and _, and is \
             not csd-sdk: name the folder so",
            folder.display()
        ))),
    }
}

#[test]
fn names_are_those_that_cargo_takes() {
    for (folder, name) in [("lines", "lines"), ("a/b-2", "b-2"), ("./x_y/", "x_y")] {
        assert_eq!(name_of(Path::new(folder)).unwrap(), name);
    }
    for wrong in ["", ".", "..", "/", "2x", "a.b", "ä", "a b", "csd-sdk", "-x"] {
        assert!(name_of(Path::new(wrong)).is_err(), "{wrong}");
    }
}
