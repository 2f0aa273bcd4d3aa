//! `csd os`: a Linux root folder that runs on a drive's own blocks.
//!
//! The tests are skipped, in words, without root, runc or FUSE.

use std::fs;
use std::path::Path;
use std::process::Command;

use csd_tests::wire::Command as Sqe;

use crate::support::drive::{Drive, NQN};
use crate::support::harness::{Array, wait_until};
use crate::support::json_page::Page;
use crate::support::os::{Guest, id, image, nothing_left, skipped};

/// Programs whose output is compared with that of this machine: each writes the file `out`.
const PROGRAMS: [(&str, &str); 3] = [
    ("sh", "seq 1 50000 | sort -r | awk '{s = s * 31 + $1; s %= 1000003; print s}' > out"),
    (
        "python3",
        "import hashlib; h = hashlib.sha256(); f = open('out', 'wb')\n\
         for i in range(2000): h.update(b'%d' % i); f.write(h.digest())",
    ),
    (
        "c",
        "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"out\", \"wb\"); unsigned s = 1;\n\
         for (int i = 0; i < 100000; i++) {\n\
             s = s * 1664525u + 1013904223u; fwrite(&s, 4, 1, f); }\n\
         return fclose(f); }\n",
    ),
];

#[test]
fn programs_write_the_same_bytes_on_data_and_on_the_host() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    let host = guest.drive.array.path("host");
    fs::create_dir(&host).unwrap();
    for (kind, text) in PROGRAMS {
        let on_host: Vec<String> = match kind {
            "c" => {
                let source = guest.drive.array.path("p.c");
                fs::write(&source, text).unwrap();
                let mut cc = Command::new("cc");
                cc.args(["-static", "-o"]).arg(host.join("p")).arg(&source);
                if !cc.status().is_ok_and(|status| status.success()) {
                    eprintln!("SKIPPED: no C compiler for static programs");
                    continue;
                }
                compiled_inside(&guest, &source, &host);
                // Compiled outside, run on both sides.
                fs::copy(host.join("p"), guest.folder().join("volume/data/p")).unwrap();
                vec!["./p".to_owned()]
            }
            kind => vec![kind.to_owned(), "-c".to_owned(), text.to_owned()],
        };
        let program: Vec<&str> = on_host.iter().map(String::as_str).collect();
        let mut command = Command::new(program[0]);
        assert!(command.args(&program[1..]).current_dir(&host).status().unwrap().success());
        guest.exec(&program).expect(0, &[]);
        let inside = guest.exec(&["cat", "/data/out"]).expect(0, &[]).stdout;
        assert!(inside == fs::read(host.join("out")).unwrap(), "{kind}");
        assert!(inside.len() > 10_000);
    }
}

/// Compiles a program inside, if the image has a compiler: it writes what that of the host writes.
fn compiled_inside(guest: &Guest, source: &Path, host: &Path) {
    if guest.sh("command -v cc").code != 0 {
        return eprintln!("SKIPPED: the image has no C compiler (that of `make os-image` has)");
    }
    let data = guest.folder().join("volume/data");
    fs::copy(source, data.join("p.c")).unwrap();
    guest.sh("cc -o own p.c && ./own && mv out own-out").expect(0, &[]);
    assert!(Command::new(host.join("p")).current_dir(host).status().unwrap().success());
    assert!(fs::read(data.join("own-out")).unwrap() == fs::read(host.join("out")).unwrap());
}

#[test]
fn java_and_mpi_run_in_the_full_image() {
    // Links that lead to other links below the image.
    let has = |path: &str| Path::new(&image()).join(path).symlink_metadata().is_ok();
    if skipped() {
        return;
    }
    if !has("usr/bin/java") || !has("usr/bin/mpirun") {
        return eprintln!("SKIPPED: the image has no Java and MPI (that of `make os-image` has)");
    }
    let guest = Guest::up(&["--cpus", "1", "--memory", "256M"]);
    let java = guest.exec(&["java", "-XshowSettings:system", "-version"]).expect(0, &[]);
    // It knows the limits.
    let said = java.text() + &java.stderr;
    assert!(said.contains("Memory Limit: 256.00M"), "{said}");
    let ranks = ["sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"];
    let mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"];
    let done = guest.exec(&[&mpirun[..], &ranks].concat()).expect(0, &[]);
    let mut lines: Vec<String> = done.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["rank 0 of 2", "rank 1 of 2"]);
}

#[test]
fn data_and_root_outlive_the_operating_system_and_hosts_cannot_write_under_it() {
    if skipped() {
        return;
    }
    let guest = Guest::drive("media");
    assert_eq!(guest.write_outside(0), 0);
    // What a host wrote is no empty namespace.
    guest.start(&[]).expect(2, &["not empty (byte 0)", "an empty namespace only"]);
    assert_eq!(guest.write_outside(1), 0, "and it was given back");
    let (_admin, mut io) = guest.drive.connect();
    let zeroes = Sqe::new(0x08, 1).dword(10, 0).dword(12, 1 << 25 | 1);
    assert_eq!(io.command(zeroes, &[], 0).status, 0);
    let up = guest.start(&["--cpus", "0.5", "--memory", "256M", "--pids", "64"]).expect(0, &[]);
    assert!(up.text().contains("new file system"), "{}", up.text());
    let folder = guest.folder();
    let first = id(&folder);
    assert_eq!(guest.write_outside(1000), 0x020, "write protected");
    guest.sh("echo kept > /data/a && mkdir -p /opt && echo changed > /opt/csd-b").expect(0, &[]);
    assert!(!Path::new("/opt/csd-b").exists(), "the image is only read");
    assert_eq!(guest.exec(&["hostname"]).expect(0, &[]).text(), "d0\n");
    let status = guest.status();
    let wrong = Page::read().wrong("os status", "os", &status);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((&status["state"], &status["cpus"]), (&"up".into(), &0.5.into()), "{status}");
    assert_eq!(status["memory_limit_bytes"], 256 << 20);
    assert!(status["cpu_s"].as_f64().unwrap() > 0.0 && status["pids"].as_u64().unwrap() > 0);
    let again = guest.start(&[]).expect(0, &[]);
    assert!(again.text().contains("runs already"), "{}", again.text());
    assert_eq!(guest.exec(&["sh", "-c", "exit 7"]).code, 7, "the program's exit code");
    let down = guest.drive.array.csd(&["os", "down", &guest.url, "--json"]).expect(0, &[]);
    let wrong = Page::read().wrong("os down", "csd os down", &down.json()["result"]);
    assert!(wrong.is_empty(), "{wrong:?}");
    nothing_left(&folder, &first);
    assert_eq!(guest.status()["state"], "down");
    guest.sh("true").expect(2, &["does not run", "csd os up"]);
    let up = guest.drive.array.csd(&["os", "up", &guest.url, "--root", &image(), "--json"]);
    let up = up.expect(0, &[]).json();
    let wrong = Page::read().wrong("os up", "csd os up", &up["result"]);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(up["result"]["drives"][0]["formatted"], false);
    assert_eq!(guest.sh("cat /data/a /opt/csd-b").expect(0, &[]).text(), "kept\nchanged\n");
    assert_ne!(id(&folder), first);
    guest.down().expect(0, &[]);
    assert_eq!(guest.write_outside(0), 0, "hosts may write again");
}

#[test]
fn what_cannot_run_is_refused_in_words() {
    let mut drive = Drive::serve("memory", &[]);
    let outside = drive.url();
    let up = |url: &str, options: &[&str]| {
        drive.array.csd(&[&["os", "up", url, "--root", "/"], options].concat())
    };
    up(&outside, &[]).expect(2, &["csd os runs where the drive does", "--inside"]);
    up("d0", &[]).expect(2, &["csd-array.toml"]);
    let none = format!("nvme+unix:///none/d0.sock/{NQN}");
    up(&none, &[]).expect(1, &["/none"]);
    up(&none, &["--cpus", "0"]).expect(2, &["0.01 to 1024"]);
    let gone = drive.inside_url("gone");
    drive.array.csd(&["os", "up", &gone]).expect(2, &["--root"]);
    if !rustix::process::geteuid().is_root() {
        up(&gone, &[]).expect(2, &["csd os needs root"]);
    }
    if !skipped() {
        up(&gone, &["--memory", "1M"]).expect(2, &["memory: at least 32M"]);
        up(&gone, &["--pids", "1"]).expect(2, &["processes: at least 8"]);
        up(&gone, &[]).expect(1, &["cannot be reached"]);
        let folder = drive.array.path("empty");
        fs::create_dir(&folder).unwrap();
        let empty = ["os", "up", &gone, "--root", "empty"];
        drive.array.csd(&empty).expect(2, &["no root folder of Linux", "make os-image"]);
        drive.array.csd(&["os", "down", &gone]).expect(0, &[]);
    }
    drive.stop().expect(0, &[]);
}

#[test]
fn an_array_comes_up_with_operating_systems_and_goes_with_them() {
    if skipped() {
        return;
    }
    let array = Array::without_drives();
    let image = image();
    let drives = ["array", "up", "--drives", "2", "--size", "256M", "--kv", "20%"];
    let os = ["--os", &image, "--os-cpus", "0.5", "--os-memory", "128M", "--os-pids", "64"];
    let up = array.csd(&[&drives[..], &os].concat()).expect(0, &[]);
    assert_eq!(up.text().matches("new file system").count(), 2, "{}", up.text());
    let told =
        |name: &str| array.csd(&["os", "exec", name, "--", "hostname"]).expect(0, &[]).text();
    assert_eq!((&*told("d0"), &*told("d1")), ("d0\n", "d1\n"));
    array.csd(&["os", "exec", "d1", "--", "sh", "-c", "echo x > /data/x"]).expect(0, &[]);
    // Objects as values go on next to it.
    array.csd(&["put", array.file("o", &[3; 100_000])]).expect(0, &[]);
    let changed = [&drives[..2], &["--os", &image, "--os-pids", "65"]].concat();
    array.csd(&changed).expect(2, &["csd array down"]);
    array.csd(&["array", "down"]).expect(0, &[]);
    let folder = array.path("csd-array").canonicalize().unwrap();
    nothing_left(&folder.join("os"), "csd-os-none");
    let up = array.csd(&["array", "up"]).expect(0, &[]);
    assert_eq!(up.text().matches("os of d").count(), 2, "{}", up.text());
    let kept = array.csd(&["os", "exec", "d1", "--", "cat", "/data/x"]).expect(0, &[]);
    assert_eq!(kept.text(), "x\n");
    let table = array.csd(&["os", "status"]).expect(0, &[]).text();
    assert_eq!(table.matches(" up ").count(), 2, "{table}");
    array.csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    wait_until("the folder is gone", || !folder.exists());
}
