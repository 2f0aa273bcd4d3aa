//! `libcsd_kv` from C: programs compiled by `cc` against the installed header and library, which
//! run against a drive in this process.
//!
//! The library is installed as `make install-kv` does it. Without `cc` the tests say that they are
//! skipped.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};

use csd_drive::{Access, Config};
use csd_initiator::Secrets;
use csd_tests::drive::{LIMIT, serve};
use csd_tests::proxy::Proxy;
use tempfile::TempDir;

const NQN: &str = "nqn.2026-11.io.csdstore:capi";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The library, installed with its header once for all tests; `None` without `cc`.
struct Installed {
    folder: TempDir,
}

fn installed() -> Option<&'static Installed> {
    static INSTALLED: OnceLock<Option<Installed>> = OnceLock::new();
    let install = || {
        if Command::new("cc").arg("--version").output().is_err() {
            println!("skipped: there is no cc");
            return None;
        }
        let folder = TempDir::new().unwrap();
        // This test program is in target/PROFILE/deps, as the library is.
        let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let install = Command::new("sh")
            .arg(root("packaging/install-kv.sh"))
            .args([&built, folder.path()])
            .output()
            .unwrap();
        assert!(install.status.success(), "{}", String::from_utf8_lossy(&install.stderr));
        Some(Installed { folder })
    };
    INSTALLED.get_or_init(install).as_ref()
}

impl Installed {
    /// Compiles a C program, with the flags of the pkg-config file.
    fn compile(&self, source: &str, name: &str, more: &[&str]) -> PathBuf {
        let program = self.folder.path().join(name);
        let pc = self.folder.path().join("lib/pkgconfig/csd_kv.pc");
        let flags = |kind: &str| {
            let text = fs::read_to_string(&pc).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
            let prefix = self.folder.path().to_str().unwrap();
            let line = line.replace("${libdir}", "${prefix}/lib");
            let line = line.replace("${includedir}", "${prefix}/include");
            let line = line.replace("${prefix}", prefix);
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        cc.args(flags("Cflags:")).arg(root(source));
        match more.contains(&"-static-kv") {
            true => cc.arg(self.folder.path().join("lib/libcsd_kv.a")).args(flags("Libs.private:")),
            false => cc.args(flags("Libs:")).arg("-pthread"),
        };
        let compiled = cc.output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("LD_LIBRARY_PATH", self.folder.path().join("lib"));
        command.env_remove("CSD_SECRETS").env_remove("CSD_HOST_NQN");
        command
    }

    /// Returns the compiled checks.
    fn checks(&self) -> &'static Path {
        static CHECKS: OnceLock<PathBuf> = OnceLock::new();
        CHECKS.get_or_init(|| self.compile("tests/capi/checks.c", "checks", &[]))
    }
}

/// Serves a drive on memory in this process, until the test ends.
fn drive(access: Access) -> SocketAddr {
    serve(Config { nqn: NQN.into(), size_bytes: 256 << 20, access, ..Config::default() })
}

fn url(address: SocketAddr) -> String {
    format!("nvme+tcp://{address}/{NQN}")
}

/// Waits for a program's end, and expects that it has nothing to complain of.
#[track_caller]
fn expect_success(child: Child) -> String {
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = ended.recv_timeout(LIMIT).expect("the program ends").unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    assert!(!errors.contains("panicked"), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn spawned(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs one of the checks against a drive of its own.
#[track_caller]
fn check(name: &str) {
    let Some(installed) = installed() else { return };
    let url = url(drive(Access::default()));
    expect_success(spawned(&mut installed.run(installed.checks(), &[name, &url])));
}

#[test]
fn the_example_compiles_and_runs_with_both_libraries() {
    let Some(installed) = installed() else { return };
    for (name, more) in [("shared", &[][..]), ("static", &["-static-kv"])] {
        let program = installed.compile("clients/c/examples/kv.c", name, more);
        let url = url(drive(Access::default()));
        let said = expect_success(spawned(&mut installed.run(&program, &[&url])));
        assert_eq!(said, "greeting: hello\nstored 100 values, 0 failed\n", "{name}");
    }
}

#[test]
fn the_example_of_objects_stores_fetches_and_deletes_a_file() {
    let Some(installed) = installed() else { return };
    let program = installed.compile("clients/c/examples/object.c", "object", &[]);
    let url = url(drive(Access::default()));
    let (source, copy) =
        (installed.folder.path().join("source"), installed.folder.path().join("copy"));
    // Longer than any value.
    let bytes: Vec<u8> = (0u32..5 << 20).flat_map(u32::to_le_bytes).skip(3).collect();
    fs::write(&source, &bytes).unwrap();
    let run =
        |words: &[&str]| spawned(&mut installed.run(&program, &[&[&url[..]], words].concat()));
    let (from, to) = (source.to_str().unwrap(), copy.to_str().unwrap());
    assert_eq!(expect_success(run(&["put", "weights", from])), "");
    let said = expect_success(run(&["get", "weights", to]));
    assert_eq!(said, format!("{to}: {} bytes\n", bytes.len()));
    assert!(fs::read(&copy).unwrap() == bytes);
    expect_success(run(&["rm", "weights"]));
    let gone = run(&["get", "weights", to]).wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(gone.status.code() == Some(1) && errors.contains("does not exist"), "{errors}");
}

#[test]
fn objects_of_any_length_are_stored_and_found() {
    check("objects");
}

#[test]
fn blocking_calls_store_and_find_values() {
    check("blocking");
}

#[test]
fn a_buffer_that_is_too_small_is_not_overrun() {
    check("small_buffer");
}

#[test]
fn the_options_of_retrieve_reach_the_drive_as_they_are() {
    const RETRIEVE: (u32, u8) = (2, 0x02);
    let Some(installed) = installed() else { return };
    let proxy = Proxy::before(drive(Access::default()));
    let url = url(proxy.address);
    expect_success(spawned(&mut installed.run(installed.checks(), &["raw", &url])));
    // The options are bits 15:8 of dword 11.
    let options = proxy.sent(RETRIEVE, 3).iter().map(|sqe| sqe[45]).collect::<Vec<_>>();
    assert_eq!(options, [0, 1, 0]);
}

#[test]
fn a_full_namespace_is_an_error_until_a_key_is_deleted() {
    check("full");
}

#[test]
fn keys_are_listed() {
    check("listing");
}

#[test]
fn submitted_commands_complete_once_and_their_number_is_bounded() {
    check("submitting");
}

#[test]
fn two_threads_share_a_namespace() {
    check("threads");
}

#[test]
fn a_closed_handle_is_an_error_and_ends_what_is_under_way() {
    check("closed");
}

#[test]
fn a_fork_is_found_and_may_open_its_own() {
    check("forked");
}

#[test]
fn a_program_may_exit_with_commands_under_way() {
    for _ in 0..5 {
        check("exiting");
    }
}

#[test]
fn a_wrong_secret_is_refused() {
    const HOST: &str = "nqn.2026-11.io.csdstore:host";
    const SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const OTHER: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    let Some(installed) = installed() else { return };
    let file = |name: &str, secret: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = installed.folder.path().join(name);
        fs::write(&path, format!("host {HOST} {secret}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let (right, wrong) = (file("right", SECRET), file("wrong", OTHER));
    let secrets = Secrets::parse(&fs::read_to_string(&right).unwrap()).unwrap();
    let url = url(drive(Access { secrets, ..Access::default() }));
    let mut command = installed.run(installed.checks(), &["wrong_secret", &url]);
    command.env("CSD_SECRETS", wrong).env("RIGHT_SECRETS", right);
    expect_success(spawned(&mut command));
}

#[test]
fn a_drive_that_is_gone_is_an_error_until_it_is_back() {
    let Some(installed) = installed() else { return };
    let proxy = Proxy::before(drive(Access::default()));
    let url = url(proxy.address);
    let mut child = spawned(&mut installed.run(installed.checks(), &["gone", &url]));
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut input = child.stdin.take().unwrap();
    for (step, act) in [("ready", Proxy::shut as fn(&Proxy)), ("gone", Proxy::open)] {
        match said.next() {
            Some(line) => assert_eq!(line.unwrap(), step),
            None => break,
        }
        act(&proxy);
        input.write_all(b"go\n").unwrap();
    }
    expect_success(child);
}
