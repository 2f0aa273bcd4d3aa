//! [`Tunnel`]: frames between a host and the drive's own operating system, over Send and Receive.
//!
//! Each side has one end, which one host holds. Send appends frames to the queue of the other end,
//! Receive waits for frames of its own. Ends may be on any cores, so the state is behind a lock,
//! which is held for copying pointers only. Invariants: frames of one end arrive in the order of
//! its Sends, each at most once; a Receive that waits holds no memory for data; frames for an end
//! that no host holds are dropped and counted; a queue never has more than [`QUEUE_BYTES`].

mod end;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use csd_nvme::status::Status;
use csd_nvme::vendor::tunnel::{LogEntry, fitting};
use csd_reactor::{timeout, worked};

use crate::controller::Association;
use crate::side::Side;
use end::{End, Sender};

/// Most bytes of frames that wait for one end.
pub const QUEUE_BYTES: usize = 1 << 20;
/// Most Receives of one end that wait.
pub const RECEIVES_MAX: usize = 64;
/// Longest wait of a Receive.
const RECEIVE_MAX: Duration = Duration::from_secs(5);
/// Time between two looks if the far end of a Send that waits is still there.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Options of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// NVMe Qualified Names of the hosts that may hold the outside.
    pub hosts: Vec<String>,
    /// Addresses of the ends with the lengths of their networks' prefixes, by side.
    pub networks: [(IpAddr, u8); 2],
    /// MTU of both ends in bytes.
    pub mtu: u32,
}

/// Queue, controller and identifier of a command.
pub type Caller = (u16, u16, u16);

/// A tunnel; see the module's text.
#[derive(Debug)]
pub struct Tunnel {
    options: Options,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By side.
    ends: [End; 2],
    /// True once the drive stops: nothing waits any more.
    closed: bool,
    /// Number of the last command.
    commands: u64,
}

/// Reason why a command was refused, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

impl Tunnel {
    /// Makes a tunnel whose ends are free.
    pub fn new(options: Options) -> Self {
        Self { options, state: Mutex::default() }
    }

    /// Gives the end of a side to a host's controller if it does not have it. The host's former
    /// controller loses it: its commands that wait end with Abort Requested.
    ///
    /// # Errors
    /// [`Refused`] if the host may not hold the end, another one does, or a later controller of the
    /// same host took it over.
    pub fn join(&self, side: Side, association: &Arc<Association>) -> Result<(), Refused> {
        let host = association.host_nqn();
        let is_allowed = side == Side::Inside || self.options.hosts.iter().any(|one| one == host);
        let mut state = self.state();
        let end = &mut state.ends[side as usize];
        let joined = match is_allowed {
            true => end.join(association),
            false => Err(Refused("this host may not use the tunnel")),
        };
        match joined {
            Ok(woken) => {
                drop(state);
                wake(woken);
                Ok(())
            }
            Err(refused) => {
                end.counters.refused += 1;
                Err(refused)
            }
        }
    }

    /// Takes the turn of a Send of `bytes` bytes from this side, after all Sends that began before
    /// it, and waits until the queue of the other end has room for them.
    ///
    /// # Errors
    /// [`Status::ABORT_REQUESTED`] if another controller of the host takes the end over.
    pub async fn begin_send(&self, side: Side, bytes: usize) -> Result<Sending<'_>, Status> {
        let number = self.state().add_sender(side);
        let sending = Sending { tunnel: self, side, number };
        loop {
            let mut next = None;
            let room = poll_fn(|cx| self.state().poll_room(&sending, bytes, cx.waker(), &mut next));
            // After a while the far end may be gone, which makes no event.
            let waited = timeout(LOOK_EVERY, room).await;
            wake(next);
            if let Ok(ready) = waited {
                return ready.map(|()| sending);
            }
        }
    }

    /// Waits for frames for the end of this side, and returns as many as fit into `room` bytes;
    /// none after 5 s, and when the drive stops. Receives are served in the order of their calls.
    ///
    /// # Errors
    /// [`Refused`] for one Receive too many, and the status of one that was aborted.
    pub async fn receive(
        &self,
        side: Side,
        caller: Caller,
        room: usize,
    ) -> Result<Result<Vec<u8>, Status>, Refused> {
        let number = self.state().add_receiver(side, caller)?;
        let waiting = Waiting { tunnel: self, side, number };
        let parked = poll_fn(|cx| self.state().poll_frames(side, number, room, cx.waker()));
        let received = timeout(RECEIVE_MAX, parked).await.unwrap_or(Ok(Vec::new()));
        drop(waiting);
        Ok(received)
    }

    /// Ends a Receive that waits with Abort Requested; returns false if there is none.
    pub fn abort(&self, caller: Caller) -> bool {
        let mut state = self.state();
        let woken = state.ends.iter_mut().find_map(|end| end.abort(caller));
        drop(state);
        let is_aborted = woken.is_some();
        wake(woken.into_iter().flatten());
        is_aborted
    }

    /// Ends everything that waits; from now on nothing does.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let woken: Vec<Waker> = state.ends.iter_mut().flat_map(End::take_wakers).collect();
        drop(state);
        wake(woken);
    }

    /// Returns the MTU and the ends' entries of the log page.
    pub fn log(&self) -> (u32, Vec<LogEntry>) {
        let state = self.state();
        let entries = Side::ALL.map(|side| {
            let mut entry = state.ends[side as usize].entry();
            let (address, prefix) = self.options.networks[side as usize];
            entry.set_side(u8::from(side == Side::Inside)).set_network(address, prefix);
            entry
        });
        (self.options.mtu, entries.to_vec())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// Returns the other side.
fn across(side: Side) -> usize {
    1 - side as usize
}

/// A Send in its turn, with room in the queue. Dropping it gives both up.
#[derive(Debug)]
pub struct Sending<'a> {
    tunnel: &'a Tunnel,
    side: Side,
    number: u64,
}

impl Sending<'_> {
    /// Delivers sound frames, when all Sends before this one have ended.
    ///
    /// # Errors
    /// As [`Tunnel::begin_send`]; nothing is delivered then.
    pub async fn deliver(self, frames: Vec<u8>, packets: u64) -> Result<(), Status> {
        let mut frames = Some(frames);
        poll_fn(|cx| {
            let mut state = self.tunnel.state();
            let polled = state.poll_deliver(&self, &mut frames, packets, cx.waker());
            let woken = match polled {
                Poll::Ready(Ok(())) => state.ends[across(self.side)].first_receiver(),
                _ => None,
            };
            drop(state);
            wake(woken);
            polled
        })
        .await
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut state = self.tunnel.state();
        let end = &mut state.ends[self.side as usize];
        end.senders.retain(|sender| sender.number != self.number);
        // One of them is next, and others may have room now.
        let woken: Vec<Waker> = end.senders.iter_mut().filter_map(|one| one.waker.take()).collect();
        drop(state);
        wake(woken);
    }
}

/// A Receive that waits. Dropping it takes it out of the line.
struct Waiting<'a> {
    tunnel: &'a Tunnel,
    side: Side,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.tunnel.state();
        let end = &mut state.ends[self.side as usize];
        end.receivers.retain(|receiver| receiver.number != self.number);
        let mut woken: Vec<Waker> = end.first_receiver().into_iter().collect();
        // The queue may have room again.
        let senders = state.ends[across(self.side)].senders.iter_mut();
        woken.extend(senders.filter_map(|sender| sender.waker.take()));
        drop(state);
        wake(woken);
    }
}

impl State {
    fn add_sender(&mut self, side: Side) -> u64 {
        self.commands += 1;
        let end = &mut self.ends[side as usize];
        end.senders.push_back(Sender { number: self.commands, room: None, waker: None });
        self.commands
    }

    fn add_receiver(&mut self, side: Side, caller: Caller) -> Result<u64, Refused> {
        self.commands += 1;
        let number = self.commands;
        self.ends[side as usize].wait(number, caller)?;
        Ok(number)
    }

    /// Returns true if frames for the end opposite to `side` can be queued.
    fn is_joined(&self, side: Side) -> bool {
        !self.closed && self.ends[across(side)].is_held()
    }

    /// Polls for room in the queue of the other end. Room is given in the order of the Sends, so
    /// that a later one does not keep an earlier one waiting; `next` is then the waker of the one
    /// behind.
    fn poll_room(
        &mut self,
        sending: &Sending<'_>,
        bytes: usize,
        waker: &Waker,
        next: &mut Option<Waker>,
    ) -> Poll<Result<(), Status>> {
        let is_joined = self.is_joined(sending.side);
        let queued = self.ends[across(sending.side)].queued;
        let end = &mut self.ends[sending.side as usize];
        let Some(at) = end.position(sending.number) else { return Poll::Ready(aborted()) };
        if !is_joined {
            end.senders[at].room = Some(0);
            return Poll::Ready(Ok(()));
        }
        let is_next = end.senders.iter().take(at).all(|sender| sender.room.is_some());
        let promised: usize = end.senders.iter().filter_map(|sender| sender.room).sum();
        if is_next && queued + promised + bytes <= QUEUE_BYTES {
            end.senders[at].room = Some(bytes);
            *next = end.senders.get_mut(at + 1).and_then(|sender| sender.waker.take());
            return Poll::Ready(Ok(()));
        }
        end.senders[at].waker = Some(waker.clone());
        Poll::Pending
    }

    /// Delivers the frames of the first Send.
    fn poll_deliver(
        &mut self,
        sending: &Sending<'_>,
        frames: &mut Option<Vec<u8>>,
        packets: u64,
        waker: &Waker,
    ) -> Poll<Result<(), Status>> {
        let is_joined = self.is_joined(sending.side);
        let end = &mut self.ends[sending.side as usize];
        let Some(at) = end.position(sending.number) else { return Poll::Ready(aborted()) };
        if at > 0 {
            end.senders[at].waker = Some(waker.clone());
            return Poll::Pending;
        }
        let has_room = end.senders[0].room.is_some_and(|room| room > 0);
        // Its room is that of its frames from here on.
        end.senders[0].room = Some(0);
        let frames = frames.take().unwrap_or_default();
        end.counters.sent_packets += packets;
        end.counters.sent_bytes += frames.len() as u64;
        let other = &mut self.ends[across(sending.side)];
        if is_joined && has_room {
            other.queued += frames.len();
            other.queue.push_back(frames);
        } else {
            other.counters.dropped_packets += packets;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_frames(
        &mut self,
        side: Side,
        number: u64,
        room: usize,
        waker: &Waker,
    ) -> Poll<Result<Vec<u8>, Status>> {
        let closed = self.closed;
        let end = &mut self.ends[side as usize];
        let at = end.receivers.iter().position(|receiver| receiver.number == number);
        let Some(at) = at else { return Poll::Ready(aborted().map(|()| Vec::new())) };
        if closed {
            return Poll::Ready(Ok(Vec::new()));
        }
        if at == 0 && end.queued > 0 {
            return Poll::Ready(Ok(end.take(room)));
        }
        end.receivers[at].waker = Some(waker.clone());
        Poll::Pending
    }
}

fn aborted() -> Result<(), Status> {
    Err(Status::ABORT_REQUESTED)
}

/// Takes the first frames that fit into `room` bytes out of a queue of lists.
fn take_front(queue: &mut VecDeque<Vec<u8>>, room: usize) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Some(list) = queue.pop_front() {
        let fits = fitting(&list, room - taken.len());
        // Looked at, and copied.
        worked(2 * list.len() as u64);
        if taken.is_empty() && fits == list.len() {
            taken = list;
            continue;
        }
        taken.extend_from_slice(&list[..fits]);
        if fits < list.len() {
            queue.push_front(list[fits..].to_vec());
            break;
        }
    }
    taken
}
