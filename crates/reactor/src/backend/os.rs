//! System calls that the standard library does not offer, each wrapped to be safe.
//!
//! This module is stateless but for the stop signal. Invariant: every descriptor made here is
//! close-on-exec and, where the kind of descriptor allows it, non-blocking.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{self, IoSlice};
use std::mem;
use std::net::{
    Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener, TcpStream,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use libc::{c_int, c_void, socklen_t};

use super::notifier::Notifier;

/// Maximum number of connections that wait for accept.
pub(super) const BACKLOG: c_int = 1024;

/// Turns a result of -1 into the error in `errno`.
pub(crate) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Does the same as [`check`] for calls that return a count of bytes.
fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// An eventfd that wakes its waiter.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor returned is new and ours alone.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl EventFd {
    /// Makes it unreadable until the next notification.
    pub(crate) fn clear(&self) {
        let mut count = 0_u64;
        let fd = self.0.as_raw_fd();
        // SAFETY: eight writable bytes, as an eventfd wants; it does not block, and has nothing to
        // read if it was clear.
        let _read = unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Notifier for EventFd {
    fn notify(&self) {
        notify(self.0.as_raw_fd());
    }
}

/// Adds one to an eventfd. Fails only by overflow, after 2^64 - 2 calls.
fn notify(fd: RawFd) {
    let one = 1_u64;
    // SAFETY: eight readable bytes, as an eventfd wants; async-signal-safe.
    let _written = unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
}

/// Binds a listening, non-blocking socket (`SO_REUSEADDR` is set by the standard library).
pub(crate) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    // SAFETY: a live descriptor; a second listen only changes the backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts a connection as a non-blocking socket; `None` if none is pending.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        // SAFETY: both pointers are to live, writable values of the sizes given; the descriptor
        // returned is new and ours alone.
        let accepted = unsafe {
            let mut storage: libc::sockaddr_storage = mem::zeroed();
            let mut size = socklen_of::<libc::sockaddr_storage>();
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let to = (&raw mut storage).cast();
            check(libc::accept4(listener.as_raw_fd(), to, &raw mut size, flags))
                .map(|fd| (TcpStream::from_raw_fd(fd), storage))
        };
        match accepted {
            Ok((stream, storage)) => return Ok(Some((stream, parse_addr(&storage)?))),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                _ => return Err(error),
            },
        }
    }
}

/// Starts to connect a non-blocking socket.
pub(crate) fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let family = if addr.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the descriptor returned is new and ours alone.
    let stream = unsafe { TcpStream::from_raw_fd(check(libc::socket(family, kind, 0))?) };
    let fd = stream.as_raw_fd();
    let result = match addr {
        SocketAddr::V4(addr) => {
            let raw = libc::sockaddr_in {
                sin_family: family_of(family),
                sin_port: addr.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*addr.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the pointer is to a live address of the size given.
            check(unsafe { libc::connect(fd, (&raw const raw).cast(), socklen_of_val(&raw)) })
        }
        SocketAddr::V6(addr) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: family_of(family),
                sin6_port: addr.port().to_be(),
                sin6_flowinfo: addr.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: addr.ip().octets() },
                sin6_scope_id: addr.scope_id(),
            };
            // SAFETY: the pointer is to a live address of the size given.
            check(unsafe { libc::connect(fd, (&raw const raw).cast(), socklen_of_val(&raw)) })
        }
    };
    match result {
        Ok(_) => Ok(stream),
        // Interrupted: connecting goes on in the background all the same.
        Err(error) => match error.raw_os_error() {
            Some(libc::EINPROGRESS | libc::EINTR) => Ok(stream),
            _ => Err(error),
        },
    }
}

/// Sends up to `IOV_MAX` slices with one `sendmsg`. A dead peer gives an error, no signal.
#[allow(clippy::useless_conversion, reason = "the width of the number differs by platform")]
pub(crate) fn send(stream: RawFd, from: &[IoSlice<'_>]) -> io::Result<usize> {
    let from = &from[..from.len().min(libc::UIO_MAXIOV as usize)];
    // SAFETY: an IoSlice has the layout of an iovec by its documentation; `sendmsg` only reads.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = from.as_ptr().cast_mut().cast();
        message.msg_iovlen = from.len().try_into().expect("not more than UIO_MAXIOV");
        check_size(libc::sendmsg(stream, &raw const message, libc::MSG_NOSIGNAL))
    }
}

fn parse_addr(storage: &libc::sockaddr_storage) -> io::Result<SocketAddr> {
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is, and the storage is large enough for any.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Ok(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        family => Err(io::Error::other(format!("peer of unknown address family {family}"))),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "address families are below 2^16")]
pub(super) fn family_of(family: c_int) -> libc::sa_family_t {
    family.cast_unsigned() as libc::sa_family_t
}

#[expect(clippy::cast_possible_truncation, reason = "socket addresses are below 2^32 bytes")]
fn socklen_of<T>() -> socklen_t {
    mem::size_of::<T>() as socklen_t
}

fn socklen_of_val<T>(_value: &T) -> socklen_t {
    socklen_of::<T>()
}

/// Reserves or punches a range of a file. `mode` is that of `fallocate(2)`.
pub(crate) fn fallocate(fd: RawFd, mode: c_int, offset: u64, len: u64) -> io::Result<()> {
    let (offset, len) = (file_offset(offset)?, file_offset(len)?);
    loop {
        // SAFETY: no pointers.
        match check(unsafe { libc::fallocate(fd, mode, offset, len) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Writes with one `pwritev`.
pub(crate) fn write_vectored(fd: RawFd, from: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let count = c_int::try_from(from.len().min(libc::UIO_MAXIOV as usize)).unwrap_or(0);
    let offset = file_offset(offset)?;
    // SAFETY: an IoSlice has the layout of an iovec by its documentation; `pwritev` only reads.
    check_size(unsafe { libc::pwritev(fd, from.as_ptr().cast(), count, offset) })
}

/// Converts a file offset to the signed type of the system's interface.
fn file_offset(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "file offset beyond 2^63"))
}

/// Returns the alignment in bytes that direct I/O on a file needs, of memory and of offsets; 0
/// where the file system refuses direct I/O, `None` where the kernel (before 6.1) or the file
/// system does not report it.
pub(crate) fn direct_alignment(fd: RawFd) -> io::Result<Option<(u32, u32)>> {
    // SAFETY: an empty path with AT_EMPTY_PATH means the descriptor; the answer is a live,
    // writable value.
    let answer = unsafe {
        let mut answer: libc::statx = mem::zeroed();
        let (flags, mask) = (libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN);
        check(libc::statx(fd, c"".as_ptr(), flags, mask, &raw mut answer))?;
        answer
    };
    let said = answer.stx_mask & libc::STATX_DIOALIGN != 0;
    Ok(said.then_some((answer.stx_dio_mem_align, answer.stx_dio_offset_align)))
}

/// Returns the number of a file's names and its length in bytes, without waiting: of a network file
/// system as it is cached.
pub(crate) fn names_and_bytes(fd: RawFd) -> io::Result<(u32, u64)> {
    // SAFETY: as above.
    let answer = unsafe {
        let mut answer: libc::statx = mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        let mask = libc::STATX_NLINK | libc::STATX_SIZE;
        check(libc::statx(fd, c"".as_ptr(), flags, mask, &raw mut answer))?;
        answer
    };
    Ok((answer.stx_nlink, answer.stx_size))
}

/// Returns true if the file is on a file system that stores it in memory.
pub(crate) fn is_in_memory(fd: RawFd) -> bool {
    // SAFETY: the answer is a live, writable value.
    let (result, answer) = unsafe {
        let mut answer: libc::statfs = mem::zeroed();
        (libc::fstatfs(fd, &raw mut answer), answer)
    };
    /// Magic number of ramfs, which libc does not name.
    const RAMFS_MAGIC: i128 = 0x8584_58F6;
    // Width and sign of these numbers differ by platform.
    let kind = i128::from(answer.f_type);
    result == 0 && (kind == i128::from(libc::TMPFS_MAGIC) || kind == RAMFS_MAGIC)
}

/// Returns true if what a path names is on a file system of a process (FUSE).
pub(crate) fn is_on_fuse(path: &CStr) -> io::Result<bool> {
    // SAFETY: the path ends with a zero, the answer is a live, writable value.
    let answer = unsafe {
        let mut answer: libc::statfs = mem::zeroed();
        check(libc::statfs(path.as_ptr(), &raw mut answer))?;
        answer
    };
    Ok(i128::from(answer.f_type) == i128::from(libc::FUSE_SUPER_MAGIC))
}

/// Makes a write beyond the process's file size limit fail with `EFBIG`, where SIGXFSZ would end
/// the process.
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is no handler: nothing of ours runs when the signal comes. It exists and may
    // be ignored, so this cannot fail.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Signalled by the first SIGINT, SIGTERM or SIGHUP, and never reset: later waiters see it too.
static STOP: OnceLock<EventFd> = OnceLock::new();

/// Installs the handlers once per process; returns a copy of the descriptor that becomes readable.
pub(crate) fn stop_signal() -> io::Result<EventFd> {
    if let Some(stop) = STOP.get() {
        return stop.try_clone();
    }
    let stop = STOP.get_or_init(EventFd::new_or_die);
    // A second signal ends the process, but a terminal that goes may send several SIGHUP.
    for (signal, once) in
        [(libc::SIGINT, libc::SA_RESETHAND), (libc::SIGTERM, libc::SA_RESETHAND), (libc::SIGHUP, 0)]
    {
        // SAFETY: the actions are live values, the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            check(libc::sigaction(signal, std::ptr::null(), &raw mut action))?;
            if signal == libc::SIGHUP && action.sa_sigaction == libc::SIG_IGN {
                // nohup(1) asked for it.
                continue;
            }
            action.sa_sigaction = on_stop as extern "C" fn(c_int) as usize;
            action.sa_flags = libc::SA_RESTART | once;
            libc::sigemptyset(&raw mut action.sa_mask);
            check(libc::sigaction(signal, &raw const action, std::ptr::null_mut()))?;
        }
    }
    stop.try_clone()
}

impl EventFd {
    /// Makes the process's stop eventfd, which no caller could handle an error of.
    fn new_or_die() -> Self {
        Self::new().expect("a process that may open no descriptor cannot run")
    }
}

extern "C" fn on_stop(_signal: c_int) {
    // `get` only loads an atomic once the lock is initialised, which precedes installation.
    if let Some(stop) = STOP.get() {
        notify(stop.as_raw_fd());
    }
}

/// Waits on an epoll descriptor for up to `wait_ns`, without limit if `None`.
pub(crate) fn epoll_wait(
    epoll: RawFd,
    events: &mut [libc::epoll_event],
    wait_ns: Option<u64>,
) -> io::Result<usize> {
    let room = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
    let timeout = wait_ns.map(timespec);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `room` events may be written to the slice; the time is live or null, and has this
    // layout on every 64-bit platform. Not every C library has a function for this system call.
    let result = unsafe {
        let (number, events) = (libc::SYS_epoll_pwait2, events.as_mut_ptr());
        libc::syscall(number, epoll, events, room, timeout, std::ptr::null::<libc::sigset_t>(), 0)
    };
    match check(c_int::try_from(result).unwrap_or(c_int::MAX)) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            // Before Linux 5.11: whole milliseconds, rounded up so as not to spin.
            let wait_ms = wait_ns
                .map_or(-1, |ns| c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX));
            // SAFETY: as above.
            let result = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, wait_ms) };
            Ok(usize::try_from(check(result)?).unwrap_or(0))
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        result => Ok(usize::try_from(result?).unwrap_or(0)),
    }
}

/// Returns a relative time, cut to the longest that the type holds; the caller's loop then waits
/// again.
fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

/// Returns a new epoll descriptor.
pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor returned is new and ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)) }
}

/// Adds `fd` to an epoll set, or removes it.
pub(crate) fn epoll_change(
    epoll: RawFd,
    change: c_int,
    fd: RawFd,
    events: c_int,
    data: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: data };
    // SAFETY: the event is a live value, which the kernel only reads.
    check(unsafe { libc::epoll_ctl(epoll, change, fd, &raw mut event) }).map(drop)
}

// `stream` and `IoSlice` above rely on this.
const _: () = assert!(mem::size_of::<IoSlice<'_>>() == mem::size_of::<libc::iovec>());
const _: () = assert!(mem::size_of::<*mut c_void>() == mem::size_of::<usize>());
