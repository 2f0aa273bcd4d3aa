//! One end of a tunnel: its holder, its queue, and the commands that wait at it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Waker;

use csd_nvme::vendor::tunnel::LogEntry;

use super::{Caller, RECEIVES_MAX, Refused, take_front};
use crate::controller::Association;

/// One end; see the module's text.
#[derive(Debug, Default)]
pub(super) struct End {
    holder: Option<Holder>,
    /// Controllers of the holder's host that have lost the end to a later one.
    former: Vec<Weak<Association>>,
    /// Lists of frames for this end, oldest first.
    pub(super) queue: VecDeque<Vec<u8>>,
    /// Bytes of them.
    pub(super) queued: usize,
    /// Sends of this end that have not ended, in the order of their beginnings.
    pub(super) senders: VecDeque<Sender>,
    /// Receives of this end that wait, likewise.
    pub(super) receivers: VecDeque<Receiver>,
    pub(super) counters: Counters,
}

#[derive(Debug)]
struct Holder {
    controller: Weak<Association>,
    cntlid: u16,
    host: String,
}

impl Holder {
    fn is_there(&self) -> bool {
        self.controller.upgrade().is_some_and(|controller| controller.ready.load(Relaxed))
    }
}

/// A Send that has not ended.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) number: u64,
    /// Bytes of the other end's queue that it was promised; 0 if its frames are dropped.
    pub(super) room: Option<usize>,
    pub(super) waker: Option<Waker>,
}

/// A Receive that waits.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) number: u64,
    caller: Caller,
    pub(super) waker: Option<Waker>,
}

/// Counts of one end.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    pub(super) dropped_packets: u64,
    takeovers: u64,
    pub(super) refused: u64,
}

impl End {
    /// Returns true if a host holds the end.
    pub(super) fn is_held(&self) -> bool {
        self.holder.as_ref().is_some_and(Holder::is_there)
    }

    /// Gives the end to a controller; returns the wakers of commands that have lost it.
    pub(super) fn join(&mut self, new: &Arc<Association>) -> Result<Vec<Waker>, Refused> {
        let is_new = |one: &Weak<Association>| std::ptr::eq(one.as_ptr(), Arc::as_ptr(new));
        self.former.retain(|one| one.strong_count() > 0);
        match &self.holder {
            Some(holder) if is_new(&holder.controller) => return Ok(Vec::new()),
            Some(holder) if holder.is_there() && holder.host != new.host_nqn() => {
                return Err(Refused("another host has this end of the tunnel"));
            }
            _ if self.former.iter().any(is_new) => {
                return Err(Refused("a later connection of this host has taken over"));
            }
            _ => {}
        }
        let holder = Holder {
            controller: Arc::downgrade(new),
            cntlid: new.cntlid,
            host: new.host_nqn().to_owned(),
        };
        let Some(old) = self.holder.replace(holder) else { return Ok(Vec::new()) };
        if old.host == new.host_nqn() {
            self.counters.takeovers += 1;
            self.former.push(old.controller);
        } else {
            self.former.clear();
            self.queue.clear();
            self.queued = 0;
        }
        // Commands that find themselves gone from these end with Abort Requested.
        let woken = self.take_wakers();
        self.senders.clear();
        self.receivers.clear();
        Ok(woken)
    }

    /// Adds a Receive.
    pub(super) fn wait(&mut self, number: u64, caller: Caller) -> Result<(), Refused> {
        if self.receivers.len() >= RECEIVES_MAX {
            self.counters.refused += 1;
            return Err(Refused("as many Receives wait as may"));
        }
        self.receivers.push_back(Receiver { number, caller, waker: None });
        Ok(())
    }

    /// Aborts the Receive of this command, if it waits; returns its waker.
    pub(super) fn abort(&mut self, caller: Caller) -> Option<Option<Waker>> {
        let at = self.receivers.iter().position(|receiver| receiver.caller == caller)?;
        self.receivers.remove(at).map(|receiver| receiver.waker)
    }

    /// Returns the place in the line of a Send; `None` if its controller has lost the end.
    pub(super) fn position(&self, number: u64) -> Option<usize> {
        self.senders.iter().position(|sender| sender.number == number)
    }

    /// Returns the waker of the Receive that is served next, if there is something for it.
    pub(super) fn first_receiver(&mut self) -> Option<Waker> {
        let first = self.receivers.front_mut().filter(|_| self.queued > 0)?;
        first.waker.take()
    }

    /// Returns the wakers of all commands that wait.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        let senders = self.senders.iter_mut().filter_map(|sender| sender.waker.take());
        let receivers = self.receivers.iter_mut().filter_map(|receiver| receiver.waker.take());
        senders.chain(receivers).collect()
    }

    /// Takes the first frames that fit into `room` bytes.
    pub(super) fn take(&mut self, room: usize) -> Vec<u8> {
        let frames = take_front(&mut self.queue, room);
        self.queued -= frames.len();
        self.counters.received_bytes += frames.len() as u64;
        self.counters.received_packets += csd_nvme::vendor::tunnel::count(&frames);
        frames
    }

    /// Returns the end's entry of the log page, without its address.
    pub(super) fn entry(&self) -> LogEntry {
        let mut entry = LogEntry::zeroed();
        if let Some(holder) = self.holder.as_ref().filter(|holder| holder.is_there()) {
            entry.set_present(1).set_cntlid(holder.cntlid).name_host(&holder.host);
        }
        let waiting = self.receivers.len();
        entry.set_waiting(u16::try_from(waiting).unwrap_or(u16::MAX));
        let counters = &self.counters;
        entry
            .set_queued(self.queued as u64)
            .set_sent_packets(counters.sent_packets)
            .set_sent_bytes(counters.sent_bytes)
            .set_received_packets(counters.received_packets)
            .set_received_bytes(counters.received_bytes)
            .set_dropped_packets(counters.dropped_packets)
            .set_takeovers(counters.takeovers)
            .set_refused(counters.refused);
        entry
    }
}
