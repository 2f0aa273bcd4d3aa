//! Objects to files and back: no file is overwritten without `--force`, and `get` undoes `put`.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Command, Stdio};

use crate::support::data::{npy, small_i32};
use crate::support::harness::{Array, finish};

/// Makes an array with the objects `x` and `x.bin`; returns their bytes too.
fn with_x() -> (Array, Vec<u8>) {
    let (bytes, _) = small_i32(51, 500_000);
    let array = Array::up(1, "256M");
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin"]).expect(0, &[]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    (array, bytes)
}

#[test]
fn a_file_is_overwritten_only_with_force() {
    let (array, bytes) = with_x();
    array.file("x.bin", b"dear");
    for command in [&["get", "x.bin"][..], &["get", "x", "x.bin"]] {
        array.csd(command).expect(1, &["x.bin exists", "--force"]);
        assert_eq!(fs::read(array.path("x.bin")).unwrap(), b"dear");
    }
    let before = fs::File::open(array.path("x.bin")).unwrap();
    array.csd(&["get", "x.bin", "--force"]).expect(0, &[]);
    assert!(fs::read(array.path("x.bin")).unwrap() == bytes);
    let old = std::io::read_to_string(before).unwrap();
    assert_eq!(old, "dear", "the old file was replaced, and not written into");
    // A get that fails keeps the file that it would have replaced.
    array.file("y", b"dear");
    array.csd(&["get", "none", "y", "--force"]).expect(2, &["there is no object"]);
    assert_eq!(fs::read(array.path("y")).unwrap(), b"dear");
    let parts = fs::read_dir(array.folder.path()).unwrap();
    let parts: Vec<_> = parts.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!parts.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{parts:?}");
}

#[test]
fn a_file_that_appears_during_a_get_is_not_overwritten() {
    let (array, _) = with_x();
    // The get waits for its array file, which is a FIFO, until the other file is there.
    let text = fs::read(array.path("csd-array.toml")).unwrap();
    fifo(&array, "late.toml");
    let mut get = array.spawn(&["--array", "late.toml", "get", "x", "out"], Stdio::null());
    let started = || {
        let entries = fs::read_dir(array.folder.path()).unwrap();
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().ends_with(".part"))
    };
    while !started() {
        assert!(get.child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    array.file("out", b"dear");
    fs::write(array.path("late.toml"), text).unwrap();
    finish(get).expect(1, &["out exists"]);
    assert_eq!(fs::read(array.path("out")).unwrap(), b"dear");
}

#[test]
fn devices_and_fifos_are_written_through_and_stay() {
    let (array, bytes) = with_x();
    fifo(&array, "pipe");
    let reader = Command::new("cat").arg(array.path("pipe")).stdout(Stdio::piped()).spawn();
    let reader = reader.unwrap();
    let get = array.spawn(&["get", "x", "pipe"], Stdio::null());
    assert!(reader.wait_with_output().unwrap().stdout == bytes);
    finish(get).expect(0, &[]);
    assert!(fs::symlink_metadata(array.path("pipe")).unwrap().file_type().is_fifo());
    // Processes see their own open files as links of this kind.
    symlink("/proc/self/fd/1", array.path("out")).unwrap();
    assert!(array.csd(&["get", "x", "out"]).expect(0, &[]).stdout == bytes);
    assert!(fs::symlink_metadata(array.path("out")).unwrap().is_symlink());
    let refused = array.csd(&["get", "x", "out", "--json"]).expect(2, &[]).text();
    assert!(refused.contains("cannot both go to standard output"), "{refused}");
    let _listens = std::os::unix::net::UnixListener::bind(array.path("socket")).unwrap();
    array.csd(&["get", "x", "socket", "--force"]).expect(1, &["socket is a socket"]);
    assert!(fs::symlink_metadata(array.path("socket")).unwrap().file_type().is_socket());
    // A device node of the test's own, if it may make one: a faulty `get` must not harm the
    // machine.
    for (name, minor, code) in [("null", "3", 0), ("full", "7", 1)] {
        let made = Command::new("mknod").arg(array.path(name)).args(["c", "1", minor]).output();
        if !made.unwrap().status.success() || fs::write(array.path("null"), b"x").is_err() {
            return;
        }
        symlink(name, array.path("link")).unwrap();
        for target in [name, "link"] {
            let said = array.csd(&["get", "x", target]).expect(code, &[]).stderr;
            assert_eq!(said.contains("No space left"), code == 1, "{said}");
            let metadata = fs::metadata(array.path(target)).unwrap();
            assert!(metadata.file_type().is_char_device(), "{target}");
        }
        fs::remove_file(array.path("link")).unwrap();
    }
}

#[test]
fn a_link_is_never_replaced() {
    let (array, bytes) = with_x();
    array.file("target", b"dear");
    symlink("target", array.path("link")).unwrap();
    array.csd(&["get", "x", "link"]).expect(1, &["link exists", "--force"]);
    assert_eq!(fs::read(array.path("target")).unwrap(), b"dear");
    array.csd(&["get", "x", "link", "--force"]).expect(0, &[]);
    assert!(fs::read(array.path("target")).unwrap() == bytes);
    assert!(fs::symlink_metadata(array.path("link")).unwrap().is_symlink());
    symlink("nowhere", array.path("dangling")).unwrap();
    for force in [&[][..], &["--force"]] {
        let get = [&["get", "x", "dangling"][..], force].concat();
        array.csd(&get).expect(1, &["dangling is a link to nothing"]);
        assert!(fs::symlink_metadata(array.path("dangling")).unwrap().is_symlink());
        assert!(!array.path("nowhere").exists());
    }
}

/// Files of 64 MiB and more are written past the page cache, except for their last bytes and data
/// after a header.
#[test]
fn a_long_file_comes_back_as_it_was() {
    let (mut bytes, _) = small_i32(52, 17_000_000);
    let array = Array::up(2, "512M");
    array.file("n.bin", &bytes);
    array.csd(&["put", "n.bin", "n", "--type", "i32"]).expect(0, &[]);
    array.csd(&["get", "n", "n.npy"]).expect(0, &[]);
    let array_file = npy("<i4", "(17000000,)", &bytes);
    assert!(fs::read(array.path("n.npy")).unwrap() == array_file);
    array.csd(&["get", "n", "n.npy", "--raw", "--force"]).expect(0, &[]);
    assert!(fs::read(array.path("n.npy")).unwrap() == bytes);
    bytes.truncate((64 << 20) + 4099);
    array.file("odd.bin", &bytes);
    array.csd(&["put", "odd.bin", "odd", "--on", "block"]).expect(0, &[]);
    array.csd(&["get", "odd", "back"]).expect(0, &[]);
    assert!(fs::read(array.path("back")).unwrap() == bytes);
}

fn fifo(array: &Array, name: &str) {
    let made = Command::new("mkfifo").arg(array.path(name)).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_numpy_array_comes_back_as_it_was() {
    let array = Array::up(2, "512M");
    let (data, _) = small_i32(52, 600_000);
    for (index, (descr, shape, bytes)) in [
        ("<i4", "(600, 1000)", 2_400_000),
        ("<f8", "(300000,)", 2_400_000),
        ("<c16", "(2, 3, 5)", 480),
        ("<f4", "(0, 7)", 0),
        ("<i8", "()", 8),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("a{index}.npy");
        let file = npy(descr, shape, &data[..bytes]);
        array.file(&name, &file);
        array.csd(&["put", &name]).expect(0, &[]);
        fs::remove_file(array.path(&name)).unwrap();
        let said = array.csd(&["get", &name]).expect(0, &[]).text();
        assert!(said.contains("as .npy, digest is right"), "{said}");
        assert!(fs::read(array.path(&name)).unwrap() == file, "{shape}");
        assert!(array.csd(&["get", &name, "-"]).expect(0, &[]).stdout == file, "{shape}");
        // Without the header if that is requested, or if the file is no array.
        for get in [vec![&*name, "-", "--raw"], vec![&name, "raw.npy", "--raw", "--force"]] {
            let got = array.csd(&[vec!["get"], get.clone()].concat()).expect(0, &[]);
            let got =
                if get[1] == "-" { got.stdout } else { fs::read(array.path("raw.npy")).unwrap() };
            assert!(got == data[..bytes], "{get:?}");
        }
        let got =
            array.csd(&["get", &name, "numbers.bin", "--force", "--json"]).expect(0, &[]).json();
        assert_eq!(got["result"]["form"], "raw");
        assert!(fs::read(array.path("numbers.bin")).unwrap() == data[..bytes]);
    }
}

#[test]
fn what_runs_write_can_be_got_as_numpy_arrays() {
    let array = Array::up(2, "256M");
    let bytes = |values: &[i32]| -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    };
    let sorted: Vec<i32> = (0..3000).collect();
    let doubled: Vec<i32> = sorted.iter().map(|value| 2 * value).collect();
    array.file("a.npy", &npy("<i4", "(3, 1000)", &bytes(&sorted)));
    array.csd(&["put", "a.npy"]).expect(0, &[]);
    array.csd(&["run", "vector-add", "a.npy", "a.npy", "-o", "sums"]).expect(0, &[]);
    array.csd(&["get", "sums", "sums.npy"]).expect(0, &[]);
    let sums = fs::read(array.path("sums.npy")).unwrap();
    assert!(sums == npy("<i4", "(3, 1000)", &bytes(&doubled)));
    array.file("b.npy", &npy("<i4", "(3000,)", &bytes(&sorted)));
    array.csd(&["put", "b.npy", "--layout", "range"]).expect(0, &[]);
    array.csd(&["run", "array-merge", "b.npy", "b.npy", "-o", "merged.npy"]).expect(0, &[]);
    array.csd(&["get", "merged.npy"]).expect(0, &[]);
    let merged = fs::read(array.path("merged.npy")).unwrap();
    assert!(merged == npy("<i4", "(3000,)", &bytes(&sorted)));
}

#[test]
fn any_file_can_be_stored_as_it_is() {
    let array = Array::up(1, "256M");
    let pixels = npy("|u1", "(16, 16)", &[200; 256]);
    for (name, file) in [
        ("u8.npy", pixels),
        ("f8.npy", npy("<f8", "(1,)", &[0; 8])),
        ("t.csv", b"a,b\n1,2\n".to_vec()),
        ("broken.npy", b"text".to_vec()),
    ] {
        array.file(name, &file);
        array.csd(&["put", name, "--type", "bytes"]).expect(0, &[]);
        let got = array.csd(&["get", name, "--force"]).expect(0, &[]).text();
        assert!(got.contains(", bytes, digest is right"), "{got}");
        assert_eq!(fs::read(array.path(name)).unwrap(), file);
    }
    array.csd(&["put", "u8.npy", "again"]).expect(2, &["not supported", "--type bytes"]);
}

#[test]
fn csv_text_is_not_taken_for_numbers() {
    let array = Array::up(1, "256M");
    array.file("t.csv", b"a\n1\n");
    array.file("T.CSV", b"a\n1\n");
    for (file, element) in [("t.csv", "i32"), ("T.CSV", "f32")] {
        let words = ["is CSV text", "--csv --column", "--type bytes"];
        array.csd(&["put", file, "x", "--type", element]).expect(2, &words);
    }
    assert_eq!(array.csd(&["ls", "--all"]).expect(0, &[]).text(), "no objects\n");
    array.csd(&["put", "t.csv", "x", "--csv", "--header", "yes", "--type", "i32"]).expect(0, &[]);
    assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, 1i32.to_le_bytes());
}
