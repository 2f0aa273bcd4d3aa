//! Array files that were copied, moved, made by others or used by several at once: only the array's
//! own drives and files are changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::harness::{Array, Done, Running, alive, binary, finish};

/// Runs `csd` in another folder than an array's.
fn csd_in(folder: &Path, arguments: &[&str]) -> Done {
    finish(spawn_in(folder, arguments))
}

fn spawn_in(folder: &Path, arguments: &[&str]) -> Running {
    let output = TempDir::new().unwrap();
    let file = |name: &str| fs::File::create(output.path().join(name)).unwrap();
    let mut command = Command::new(binary());
    command.current_dir(folder).env_remove("CSD_ARRAY").env_remove("CSD_HOST_NQN").args(arguments);
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    Running { child: command.spawn().unwrap(), output }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

const DELETE: [&str; 4] = ["array", "down", "--delete", "--yes"];

fn with_one_object(drives: usize) -> Array {
    let array = Array::up_on_files(drives, "128M");
    array.file("x.bin", &[7; 100_000]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    array
}

fn still_there(array: &Array) {
    assert!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout == [7; 100_000]);
}

#[test]
fn a_copy_of_an_array_file_deletes_stops_and_starts_nothing_of_the_array() {
    let array = with_one_object(2);
    let other = TempDir::new().unwrap();
    let copy = other.path().join("csd-array.toml");
    let original = array.path("csd-array.toml");
    let before = array.drives();
    // With paths as they are written now, and with the absolute paths of earlier versions.
    let text = fs::read_to_string(&original).unwrap();
    let folder = array.folder.path().canonicalize().unwrap();
    let absolute = text.replace("\"csd-array", &format!("\"{}/csd-array", folder.display()));
    assert_ne!(text, absolute);
    for copied in [&text, &absolute] {
        fs::write(&copy, copied).unwrap();
        // It still has the addresses of the drives.
        csd_in(other.path(), &["ls"]).expect(0, &[]);
        let up = csd_in(other.path(), &["array", "up"]).expect(1, &[]);
        assert!(up.stderr.contains("gone") || up.stderr.contains("outside of"), "{}", up.stderr);
        let _refused_or_nothing_to_do = csd_in(other.path(), &DELETE);
        let _refused_or_nothing_to_do = csd_in(other.path(), &["array", "down"]);
        assert_eq!(before, array.drives());
        still_there(&array);
    }
    array.csd(&["array", "down"]).expect(0, &[]);
    fs::write(&copy, &absolute).unwrap();
    csd_in(other.path(), &DELETE).expect(1, &["outside of"]);
    array.csd(&["array", "up"]).expect(0, &[]);
    still_there(&array);
}

#[test]
fn a_copy_of_a_stopped_array_s_folder_is_an_array_of_its_own() {
    let array = with_one_object(2);
    array.csd(&["array", "down"]).expect(0, &[]);
    let backup = TempDir::new().unwrap();
    copy_folder(array.folder.path(), backup.path());
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["rm", "x"]).expect(0, &[]);
    csd_in(backup.path(), &["array", "up"]).expect(0, &[]);
    let got = csd_in(backup.path(), &["get", "x", "-"]).expect(0, &[]);
    assert!(got.stdout == [7; 100_000]);
    csd_in(backup.path(), &DELETE).expect(0, &[]);
    assert!(!backup.path().join("csd-array").exists());
    assert_eq!(array.csd(&["ls", "--json"]).expect(0, &[]).json()["warnings"], json!([]));
    assert!(array.path("csd-array/d0.media").exists());
}

#[test]
fn media_of_another_array_under_the_same_names_are_not_deleted_or_served() {
    let (array, other) = (with_one_object(2), with_one_object(2));
    array.csd(&["array", "down"]).expect(0, &[]);
    let own = fs::read(array.path("csd-array.toml")).unwrap();
    let foreign = other.path("csd-array.toml");
    fs::copy(&foreign, array.path("csd-array.toml")).unwrap();
    let words = ["not the medium that this array was made with"];
    array.csd(&["array", "up"]).expect(1, &words);
    array.csd(&["array", "up", "--recreate"]).expect(1, &words);
    array.csd(&DELETE).expect(1, &["nothing was deleted", words[0]]);
    // An array file that has recorded no medium, as those of earlier versions.
    let text = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let is_old = |line: &&str| !line.starts_with("media_uuid");
    let old: Vec<&str> = text.lines().filter(is_old).collect();
    array.file("csd-array.toml", old.join("\n").as_bytes());
    array.csd(&DELETE).expect(1, &["nothing was deleted", "has not recorded"]);
    array.file("csd-array.toml", &own);
    array.csd(&["array", "up"]).expect(0, &[]);
    still_there(&array);
    still_there(&other);
}

#[test]
fn an_array_of_an_earlier_version_goes_on_and_can_be_deleted() {
    let array = with_one_object(2);
    let folder = array.folder.path().canonicalize().unwrap();
    let text = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let is_old = |line: &&str| !line.starts_with("media_uuid");
    let old: Vec<&str> = text.lines().filter(is_old).collect();
    let absolute = format!("\"{}/csd-array", folder.display());
    array.file("csd-array.toml", old.join("\n").replace("\"csd-array", &absolute).as_bytes());
    still_there(&array);
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    still_there(&array);
    let saved = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    assert!(saved.contains("media = \"csd-array/d0.media\""), "{saved}");
    assert!(saved.contains("folder = \"csd-array\""), "{saved}");
    array.csd(&DELETE).expect(0, &[]);
    assert!(!array.path("csd-array").exists());
}

#[test]
fn deleting_wants_a_yes_and_refuses_media_that_somebody_has_open() {
    let array = with_one_object(2);
    array.csd(&["array", "down", "--delete"]).expect(2, &["--yes", "all objects"]);
    still_there(&array);
    // Another process than the array's serves one of its media.
    array.csd(&["array", "down"]).expect(0, &[]);
    let held = fs::File::open(array.path("csd-array/d1.media")).unwrap();
    held.lock_shared().unwrap();
    let words = ["nothing was deleted", "drive d1", "uses"];
    array.csd(&DELETE).expect(1, &words);
    drop(held);
    array.csd(&["array", "up"]).expect(0, &[]);
    still_there(&array);
    array.csd(&DELETE).expect(0, &[]);
    assert!(!array.path("csd-array").exists() && !array.path("csd-array.toml").exists());
    assert!(!array.path("csd-array.toml.lock").exists());
}

#[test]
fn missing_media_are_not_made_anew_unless_told() {
    let array = with_one_object(2);
    array.csd(&["array", "down"]).expect(0, &[]);
    let (media, away) = (array.path("csd-array/d1.media"), array.path("away"));
    fs::rename(&media, &away).unwrap();
    let words = ["d1.media is gone", "--recreate", "csd array replace d1"];
    array.csd(&["array", "up"]).expect(4, &words);
    assert!(!media.exists());
    let states: Vec<Value> = array.drives().iter().map(|drive| drive["state"].clone()).collect();
    assert_eq!(states, [json!("up"), json!("down")], "the other one is started");
    // An empty file in its place holds nothing either, nor do zeros.
    fs::write(&media, b"").unwrap();
    array.csd(&["array", "up"]).expect(4, &words);
    assert_eq!(fs::metadata(&media).unwrap().len(), 0);
    fs::File::options().write(true).open(&media).unwrap().set_len(128 << 20).unwrap();
    array.csd(&["array", "up"]).expect(4, &["nothing but zeros", "--recreate"]);
    array.csd(&["array", "down"]).expect(0, &[]);
    let away_too = array.path("away-too");
    fs::rename(array.path("csd-array/d0.media"), &away_too).unwrap();
    array.csd(&["array", "up"]).expect(1, &["nothing was started", "d0.media is gone"]);
    fs::rename(&away_too, array.path("csd-array/d0.media")).unwrap();
    fs::rename(&away, &media).unwrap();
    array.csd(&["array", "up"]).expect(0, &[]);
    still_there(&array);
    array.csd(&["array", "down"]).expect(0, &[]);
    fs::remove_file(&media).unwrap();
    array.csd(&["array", "up", "--recreate"]).expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    // Zeros give way to a new medium, other bytes do not.
    let bytes = vec![0; 128 << 20];
    fs::write(&media, &bytes).unwrap();
    array.csd(&["array", "up", "--recreate"]).expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    fs::write(&media, [&bytes[..], b"dear"].concat()).unwrap();
    array.csd(&["array", "up", "--recreate"]).expect(1, &["other bytes than zeros"]);
    assert!(fs::read(&media).unwrap().ends_with(b"dear"));
}

#[test]
fn a_first_start_that_fails_leaves_nothing_and_can_be_repeated() {
    let array = Array::without_drives();
    let up = |size: &str| array.csd(&["array", "up", "--drives", "3", "--size", size]);
    up("64M").expect(2, &["at least 128 MiB"]);
    assert!(!array.path("csd-array.toml").exists() && !array.path("csd-array").exists());
    // A drive in the middle cannot make its medium.
    fs::create_dir_all(array.path("csd-array")).unwrap();
    std::os::unix::fs::symlink("nowhere/d1", array.path("csd-array/d1.media")).unwrap();
    up("512M").expect(1, &["d1.media"]);
    fs::remove_file(array.path("csd-array/d1.media")).unwrap();
    // The drives' small files have no folder.
    let folder = array.path("csd-array");
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, b"mine").unwrap();
    up("512M").expect(1, &["csd-array"]);
    assert_eq!(fs::read(&folder).unwrap(), b"mine");
    fs::remove_file(&folder).unwrap();
    let left: Vec<_> = fs::read_dir(array.folder.path()).unwrap().collect();
    assert!(left.len() <= 1, "{left:?}");
    assert!(!folder.exists() || fs::read_dir(&folder).unwrap().count() == 0);
    up("128M").expect(0, &[]);
}

#[test]
fn drives_that_never_had_a_medium_take_another_size() {
    let array = Array::without_drives();
    array.csd(&["array", "up", "--size", "256M"]).expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    // As an interrupted first start leaves it.
    let text = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let is_kept = |line: &&str| !line.starts_with("media_uuid") && !line.starts_with("pid");
    let port = |line: &str| match line.split_once("127.0.0.1:") {
        Some((head, tail)) => format!("{head}127.0.0.1:0/{}", tail.split_once('/').unwrap().1),
        None => line.to_owned(),
    };
    let unborn: Vec<String> = text.lines().filter(is_kept).map(port).collect();
    array.file("csd-array.toml", unborn.join("\n").as_bytes());
    for name in ["d0", "d1"] {
        fs::remove_file(array.path(&format!("csd-array/{name}.media"))).unwrap();
    }
    array.csd(&["array", "up", "--size", "128M"]).expect(0, &[]);
    assert_eq!(fs::metadata(array.path("csd-array/d1.media")).unwrap().len(), 128 << 20);
    array.csd(&["array", "up", "--size", "256M"]).expect(2, &["its medium was made so"]);
}

#[test]
fn media_that_are_there_already_become_a_new_array_s_only_when_told() {
    let array = with_one_object(2);
    array.csd(&["array", "down"]).expect(0, &[]);
    // A second array in the same folder, and one whose array file was lost.
    let second = ["--array", "b.toml", "array", "up", "--size", "128M"];
    array.csd(&second).expect(1, &["nothing was started", "d0.media", "--adopt"]);
    fs::remove_file(array.path("csd-array.toml")).unwrap();
    array.csd(&["array", "up"]).expect(1, &["--adopt"]);
    array.csd(&["array", "up", "--adopt"]).expect(0, &[]);
    still_there(&array);
}

#[test]
fn an_array_file_of_somebody_else_reaches_nothing_outside_of_its_folder() {
    let folder = TempDir::new().unwrap();
    let (evil, victim) = (folder.path().join("evil"), folder.path().join("victim"));
    for folder in [&evil, &victim] {
        fs::create_dir(folder).unwrap();
    }
    let names = ["x.media", "x.log", "x.url", "x.new"];
    for name in names {
        fs::write(victim.join(name), "dear").unwrap();
    }
    symlink(&victim, evil.join("link")).unwrap();
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = bystander.id();
    let at = |path: &str| victim.join(path).display().to_string();
    let drive = |name: &str, url: &str, media: &str| {
        format!(
            "[[drives]]\nname = \"{name}\"\nurl = \"{url}\"\nmedia = \"{media}\"\npid = {pid}\n"
        )
    };
    let (empty, nqn) = ("nvme+tcp://127.0.0.1:1/", "nvme+tcp://127.0.0.1:0/nqn.2026-11.io.x:x");
    for (head, drive) in [
        ("", drive("x", empty, "memory")),
        ("", drive("x", nqn, &at("x.media"))),
        ("", drive("x", nqn, "../victim/x.media")),
        ("", drive("x", nqn, "link/x.media")),
        ("", drive("../victim/x", nqn, "memory")),
        ("folder = \"../victim\"\n", drive("x", nqn, "memory")),
        (&format!("folder = \"{}\"\n", victim.display()), drive("x", nqn, "memory")),
        ("folder = \"link\"\n", drive("x", nqn, "memory")),
    ] {
        let uuid = "uuid = \"0123456789abcdef0123456789abcdef\"\n";
        let text = format!("schema = 1\nname = \"evil\"\n{uuid}{head}{drive}");
        let file = evil.join("csd-array.toml");
        for command in [&["array", "down"][..], &DELETE, &["array", "up"], &DELETE] {
            fs::write(&file, &text).unwrap();
            let done = csd_in(&evil, command);
            assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
            assert!(alive(pid.into()), "{command:?} of {text}");
            for name in names {
                let left = fs::read_to_string(victim.join(name));
                assert_eq!(left.ok().as_deref(), Some("dear"), "{name}: {command:?} of {text}");
            }
            assert_eq!(fs::read_dir(&victim).unwrap().count(), names.len(), "{text}");
        }
    }
    assert_eq!(serving(&evil.canonicalize().unwrap()), 0, "what was started was found again");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn links_where_a_drive_writes_are_replaced_and_not_followed() {
    let array = Array::up(1, "128M");
    array.csd(&["array", "down"]).expect(0, &[]);
    array.file("victim", b"dear");
    for name in ["d0.log", "d0.log.1", "d0.url", "d0.new"] {
        let _old = fs::remove_file(array.path("csd-array").join(name));
        symlink("../victim", array.path("csd-array").join(name)).unwrap();
    }
    array.csd(&["array", "up"]).expect(0, &[]);
    assert_eq!(fs::read_to_string(array.path("victim")).unwrap(), "dear");
}

#[test]
fn several_ups_at_once_start_each_drive_once() {
    for media in ["memory", "file"] {
        let array = Array::without_drives();
        let up = ["array", "up", "--drives", "2", "--size", "128M", "--media", media];
        let running: Vec<_> = (0..3).map(|_| array.spawn(&up, Stdio::null())).collect();
        let mut started = 0;
        for running in running {
            let done = finish(running).expect(0, &[]);
            started += done.text().matches("  started  ").count();
        }
        assert_eq!(started, 2);
        let folder = array.folder.path().canonicalize().unwrap();
        assert_eq!(serving(&folder), array.drives().len());
        array.csd(&["array", "down"]).expect(0, &[]);
        assert_eq!(serving(&folder), 0);
    }
}

/// Returns the number of processes that serve drives of this folder, by their command lines.
fn serving(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let serves = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("\0drive\0serve\0") && line.contains(&folder)
    };
    fs::read_dir("/proc").unwrap().flatten().map(serves).filter(|serves| *serves).count()
}

#[test]
fn drives_that_up_did_not_start_are_left_alone() {
    let array = Array::up(1, "128M");
    let text = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let given = "[[drives]]\nname = \"far\"\nurl = \"nvme+tcp://127.0.0.1:1/nqn.2026-11.io.x:y\"\n";
    array.file("csd-array.toml", format!("{text}\n{given}").as_bytes());
    let said = array.csd(&["array", "down"]).expect(0, &[]).text();
    assert!(said.contains("far  not started by array up: left alone"), "{said}");
    assert!(said.contains("d0  stopped"), "{said}");
}

#[test]
fn a_mistyped_device_does_not_become_a_file() {
    let array = Array::without_drives();
    let missing = "/dev/csdstore-e2e-no-device";
    symlink(missing, array.path("link")).unwrap();
    for media in [missing, "link"] {
        for size in [&["--size", "200M"][..], &[]] {
            let serve = ["drive", "serve", "--listen", "127.0.0.1:0", "--media", media];
            let done = array.csd(&[&serve[..], size].concat());
            done.expect(2, &["there is no such device", missing]);
            assert!(!Path::new(missing).exists());
        }
    }
}
