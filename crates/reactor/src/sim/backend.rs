//! Back end of the simulation: a core's view of its [`super::World`].
//!
//! It does not wait and has no files. Invariant: once the world or the core's life is over, every
//! operation fails or has no effect.

use std::cell::RefMut;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use super::Inner;
use super::state::{Life, State};
use crate::backend::{Backend, Detached, Direction, SocketKey};
use crate::class::Class;
use crate::compute_thread::{ComputeLoad, ErasedJob};
use crate::endpoint::Endpoint;
use crate::file::{FileDone, FileOp};
use crate::instant::Instant;
use crate::oneshot::Sender;

pub(crate) struct SimBackend {
    world: Weak<Inner>,
    at: Life,
}

impl SimBackend {
    pub(crate) fn new(world: Weak<Inner>, at: Life) -> Self {
        Self { world, at }
    }

    /// Calls `act` with the world's state; `None` while the world is being dropped.
    fn look<T>(&self, act: impl FnOnce(RefMut<'_, State>) -> T) -> Option<T> {
        let world: Rc<Inner> = self.world.upgrade()?;
        Some(act(world.state.borrow_mut()))
    }

    /// Calls `act` as `look` does, for operations of a live core.
    fn act<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let acted = self.look(
            |mut state| {
                if state.is_alive(self.at) { act(&mut state) } else { Err(over()) }
            },
        );
        acted.unwrap_or_else(|| Err(over()))
    }
}

/// Time of day at which a world begins: 2026-01-01.
const BEGINS_UNIX_MS: u64 = 1_767_225_600_000;

fn over() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the simulated machine is gone")
}

impl Backend for SimBackend {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn now(&self) -> Instant {
        Instant::from_ns(self.look(|state| state.now_ns).unwrap_or(0))
    }

    fn unix_ms(&self) -> u64 {
        BEGINS_UNIX_MS + self.now().us() / 1000
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let _filled = self.look(|mut state| {
            for chunk in bytes.chunks_mut(8) {
                let word = state.random().to_le_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
            }
        });
    }

    fn bind(&self, at: &Endpoint) -> io::Result<SocketKey> {
        self.act(|state| state.bind(self.at.machine, at))
    }

    fn accept(&self, key: SocketKey) -> io::Result<Option<(SocketKey, Endpoint)>> {
        self.act(|state| state.resolve(key).and_then(|key| state.accept(key)))
    }

    fn connect(&self, to: &Endpoint) -> io::Result<SocketKey> {
        self.act(|state| state.connect(self.at.machine, to))
    }

    fn connected(&self, key: SocketKey) -> io::Result<()> {
        self.act(|state| state.resolve(key).and_then(|key| state.connected(key)))
    }

    fn try_recv(&self, key: SocketKey, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.act(|state| state.resolve(key).and_then(|key| state.try_recv(key, into)))
    }

    fn try_send(&self, key: SocketKey, from: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        self.act(|state| state.resolve(key).and_then(|key| state.try_send(key, from)))
    }

    fn poll_ready(
        &self,
        key: SocketKey,
        direction: Direction,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let polled = self.look(|mut state| match state.resolve(key) {
            Ok(key) => state.poll_ready(key, direction, waker),
            Err(error) => Poll::Ready(Err(error)),
        });
        polled.unwrap_or_else(|| Poll::Ready(Err(over())))
    }

    fn shutdown(&self, key: SocketKey, how: Shutdown) -> io::Result<()> {
        if let Some(waker) =
            self.act(|state| state.resolve(key).and_then(|key| state.shutdown(key, how)))?
        {
            waker.wake();
        }
        Ok(())
    }

    fn local_addr(&self, key: SocketKey) -> io::Result<SocketAddr> {
        self.act(|state| state.resolve(key).and_then(|key| state.local_addr(key)))
    }

    fn peer_addr(&self, key: SocketKey) -> io::Result<SocketAddr> {
        self.act(|state| state.resolve(key).and_then(|key| state.peer_addr(key)))
    }

    fn close(&self, key: SocketKey) {
        // The wakers are dropped after the world has been let go of.
        let _wakers = self.look(|mut state| {
            let number = state.resolve(key).ok()?;
            Some(state.close_socket(number))
        });
    }

    fn detach(&self, key: SocketKey) -> io::Result<Detached> {
        self.act(|state| state.detach(key)).map(Detached::Sim)
    }

    fn attach(&self, stream: Detached) -> io::Result<SocketKey> {
        match stream {
            Detached::Sim(key) => self.act(|state| state.resolve(key)).map(|_| key),
            Detached::Os(_) => Err(over()),
        }
    }

    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>) {
        let error = io::Error::new(io::ErrorKind::Unsupported, "a simulated machine has no files");
        reply.send(op.finish(Err(error)));
    }

    fn compute(&self, class: Class, job: Box<dyn ErasedJob>) {
        // A job that is refused is dropped here, which tells its waiter.
        let _refused = self.look(|mut state| state.compute_push(self.at, class, job));
    }

    fn compute_long(&self, job: Box<dyn ErasedJob>) {
        self.compute(Class::Execution, job);
    }

    fn compute_load(&self) -> ComputeLoad {
        let load = self.look(|state| {
            let core = state.machines[self.at.machine].cores.get(self.at.core);
            core.map(|core| ComputeLoad {
                works: core.compute_running,
                cpu_ns: core.compute_ns,
                boosts: 0,
            })
        });
        load.flatten().unwrap_or_default()
    }

    /// Does nothing: the simulation has no other processes that could starve a job.
    fn guard_compute(&self, _foreground_ns: u64) -> Option<u64> {
        None
    }

    fn poll_stop(&self, waker: &Waker) -> Poll<()> {
        let polled = self.look(|mut state| {
            let machine = &mut state.machines[self.at.machine];
            if machine.stop {
                return Poll::Ready(());
            }
            if !machine.stop_wakers.iter().any(|known| known.will_wake(waker)) {
                machine.stop_wakers.push(waker.clone());
            }
            Poll::Pending
        });
        polled.unwrap_or(Poll::Pending)
    }

    fn poll(&self, _wait_ns: Option<u64>) -> io::Result<()> {
        Ok(())
    }
}
