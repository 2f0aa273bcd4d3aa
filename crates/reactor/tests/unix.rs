//! Files of Unix sockets, which the simulation does not have.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use csd_reactor::{Config, Listener, Stream, block_on};

/// Runs `body` on a core, with the path of a socket in a new folder.
fn with_path(body: impl AsyncFnOnce(&Path) + Send + 'static) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    block_on(&Config::default(), move || async move { body(&path).await }).unwrap();
}

#[test]
fn the_file_is_for_its_owner_and_goes_with_its_listener() {
    with_path(async |path| {
        let listener = Listener::bind(path).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(listener);
        assert!(!path.exists());
        // A listener whose place another one has taken leaves that one's file.
        let first = Listener::bind(path).unwrap();
        fs::remove_file(path).unwrap();
        let _second = Listener::bind(path).unwrap();
        drop(first);
        Stream::connect(path).await.expect("the second one listens");
    });
}

#[test]
fn a_socket_replaces_one_that_died_and_nothing_else() {
    with_path(async |path| {
        // As a killed process leaves it.
        drop(UnixListener::bind(path).unwrap());
        assert!(path.exists());
        drop(Listener::bind(path).expect("no process listens there"));
        fs::write(path, b"bytes").unwrap();
        assert_eq!(Listener::bind(path).err().map(|e| e.kind()), Some(ErrorKind::AddrInUse));
        assert_eq!(fs::read(path).unwrap(), b"bytes");
        let long = path.with_file_name("x".repeat(200));
        for wrong in [&*long, Path::new("")] {
            let error = Listener::bind(wrong).err().map(|error| error.kind());
            assert_eq!(error, Some(ErrorKind::InvalidInput), "{}", wrong.display());
        }
    });
}
