//! The commands of the page about backup and upgrade, as they are written there.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::harness::{Array, binary, finish, root};

/// Returns the commands of a page's `console` blocks.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root(page)).unwrap();
    let blocks = text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    lines.map(str::to_owned).collect()
}

#[test]
fn an_array_is_copied_checked_used_and_put_back_by_the_commands_of_the_page() {
    let array = Array::up_on_files(2, "128M");
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[1]).collect();
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    let path = format!("{}:/usr/bin:/bin", binary().parent().unwrap().display());
    let commands = commands("docs/guide/backup.md");
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        if command.starts_with("mkdir damaged") {
            // A change after the backup, and the loss of a medium.
            array.csd(&["array", "up"]).expect(0, &[]);
            array.csd(&["put", "x.bin", "later"]).expect(0, &[]);
            array.csd(&["array", "down"]).expect(0, &[]);
            fs::remove_file(array.path("csd-array/d1.media")).unwrap();
        }
        let mut shell = Command::new("sh");
        shell.env("PATH", &path);
        let done = finish(array.spawn_as(shell, &["-c", command], Stdio::null()));
        assert_eq!(done.code, 0, "{command}: {}{}", done.text(), done.stderr);
        if command == "csd ls" {
            let said = done.text();
            assert!(said.contains("x ") && !said.contains("later"), "{said}");
        }
    }
    assert!(fs::read(array.path("x.restored")).unwrap() == bytes, "from the copy");
    assert!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout == bytes, "put back");
}

/// The page says that such versions are refused with these words, and that nothing is written.
#[test]
fn versions_that_are_not_known_are_refused_as_the_page_says() {
    let page = fs::read_to_string(root("docs/guide/backup.md")).unwrap();
    let array = Array::up_on_files(1, "128M");
    array.csd(&["array", "down"]).expect(0, &[]);
    let (file, medium) = (array.path("csd-array.toml"), array.path("csd-array/d0.media"));
    let (old_file, old) = (fs::read(&file).unwrap(), fs::read(&medium).unwrap());
    let mut newer = old.clone();
    // Version, of both copies of the superblock.
    (newer[8], newer[(512 << 10) + 8]) = (3, 3);
    fs::write(&medium, &newer).unwrap();
    let words = "its format version is 3, this program reads versions 1 to 2";
    assert!(page.contains(words));
    array.csd(&["drive", "check", "csd-array/d0.media"]).expect(1, &[words]);
    let serve = ["drive", "serve", "--media", "csd-array/d0.media", "--listen", "127.0.0.1:0"];
    array.csd(&serve).expect(1, &[words]);
    array.csd(&["array", "up"]).expect(1, &["nothing was started"]);
    assert!(fs::read(&medium).unwrap() == newer, "nothing is written");
    fs::write(&medium, &old).unwrap();
    let text = String::from_utf8(old_file.clone()).unwrap();
    fs::write(&file, text.replace("schema = 1", "schema = 2")).unwrap();
    assert!(page.contains("schema must be 1"));
    for command in ["ls", "array up", "array status", "array down"] {
        let words: Vec<&str> = command.split(' ').collect();
        array.csd(&words).expect(2, &["schema must be 1"]);
    }
    fs::write(&file, old_file).unwrap();
}
