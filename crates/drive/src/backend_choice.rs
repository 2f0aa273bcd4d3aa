//! The back end for a drive's medium: [`choose`].
//!
//! io_uring resumes a short write by itself. On a FUSE file system Linux 6.18 does so with the
//! bytes from the beginning, so the rest of a write lies in the wrong place, and no error says so.
//! There a drive uses epoll, whose short writes it resumes itself.

use csd_reactor::{BackendKind, is_on_fuse};

use crate::config::MediaKind;
use crate::log::{Level, Log};

/// Returns the back end for a medium, which a user has asked for as `asked`, and logs why it is
/// another one, or a dangerous one.
pub(crate) fn choose(asked: BackendKind, media: &MediaKind, log: &Log) -> BackendKind {
    let MediaKind::File(path) = media else { return asked };
    // A medium that cannot be asked cannot be opened either, which says why.
    let (chosen, said) = of_medium(asked, is_on_fuse(path).unwrap_or(false));
    if let Some((level, event)) = said {
        log.write(level, event, &[("medium", path.display().to_string())]);
    }
    chosen
}

/// Returns the back end, and an event for the log.
fn of_medium(asked: BackendKind, on_fuse: bool) -> (BackendKind, Option<(Level, &'static str)>) {
    match asked {
        BackendKind::Auto if on_fuse => {
            let event = "the medium is on a FUSE file system: epoll, not io_uring";
            (BackendKind::Epoll, Some((Level::Info, event)))
        }
        BackendKind::Uring if on_fuse => {
            let event = "the medium is on a FUSE file system, where Linux may put the rest of a \
                         short write of io_uring in the wrong place: use --backend auto or epoll";
            (asked, Some((Level::Warn, event)))
        }
        _ => (asked, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_on_fuse_is_not_written_by_io_uring_unless_asked_for() {
        use BackendKind::{Auto, Epoll, Uring};
        let level = |asked, on_fuse| {
            let (chosen, said) = of_medium(asked, on_fuse);
            (chosen, said.map(|(level, _)| level))
        };
        assert_eq!(level(Auto, true), (Epoll, Some(Level::Info)));
        assert_eq!(level(Uring, true), (Uring, Some(Level::Warn)));
        assert_eq!(level(Epoll, true), (Epoll, None));
        for asked in [Auto, Uring, Epoll] {
            assert_eq!(level(asked, false), (asked, None));
        }
    }

    #[test]
    fn folders_stand_for_files_that_are_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let of_folder = is_on_fuse(folder.path()).unwrap();
        assert_eq!(is_on_fuse(&folder.path().join("new.media")).unwrap(), of_folder);
        assert!(is_on_fuse(&folder.path().join("none/new.media")).is_err());
        assert!(!is_on_fuse("/proc/self/stat".as_ref()).unwrap());
    }
}
