//! One queue: its commands in flight, and the task that moves its bytes.
//!
//! The controller chooses the queue of a command. Invariants: a slot keeps its command's buffers
//! until the drive has answered, even if the command's future was dropped; such an answer is
//! discarded.
//!
//! - `commands`: commands in flight and the tickets of waiting tasks
//! - `outgoing`: PDUs to send, interleaved fairly
//! - `driver`: the task

mod commands;
mod driver;
mod outgoing;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use csd_nvme::capsule::Sqe;
use csd_nvme::host::queue::{Completion, Event, Queue, Transfer};
use csd_nvme::pdu::FatalStatus;
use csd_nvme::tcp::{Digests, Fatal};
use csd_reactor::{Buffer, SemaphorePermit, Stream, now, spawn};

use crate::Error;
use crate::association::{Association, Member};
use commands::{Commands, InFlight, Tickets};
use driver::Driver;
use outgoing::Outgoing;

/// The answer to a command.
#[derive(Debug)]
pub struct Reply {
    /// Result dwords 0 and 1, dword 0 low.
    pub result: u64,
    /// The received bytes.
    pub data: Buffer,
}

/// End of a command: the answer; and its payload, if the connection was lost before an answer came.
pub(crate) type Ended = (Result<Reply, Error>, Vec<Buffer>);

/// A command to start.
pub(crate) struct Request {
    pub(crate) sqe: Sqe,
    /// Its name, for errors.
    pub(crate) what: &'static str,
    /// Data for the drive.
    pub(crate) payload: Vec<Buffer>,
    /// True to send that data in the capsule.
    pub(crate) in_capsule: bool,
    /// Size of the receive buffer in bytes.
    pub(crate) to_host: u32,
    /// Reserved queue entry, held until the answer has come.
    pub(crate) permit: Option<SemaphorePermit>,
}

/// One queue of a controller.
pub(crate) struct Connection {
    association: Rc<Association>,
    state: RefCell<State>,
    driver: RefCell<Option<Waker>>,
}

struct State {
    queue: Queue,
    commands: Commands,
    tickets: Tickets,
    outgoing: Outgoing,
}

impl Member for Connection {
    fn fail(&self, error: &Error) {
        let mut state = self.state.borrow_mut();
        let State { commands, tickets, .. } = &mut *state;
        let mut ended = commands.drain();
        for command in &mut ended {
            if let Some(ticket) = command.ticket {
                tickets.give(ticket, Err(error.clone()), std::mem::take(&mut command.payload));
            }
        }
        drop(state);
        drop(ended); // their permits wake those who wait for room
        self.wake();
    }
}

impl Connection {
    /// Initialises `stream` for a queue of `entries`, and starts the queue's task.
    pub(crate) async fn open(
        association: &Rc<Association>,
        stream: Stream,
        entries: u16,
        digests: Digests,
    ) -> Result<Rc<Self>, Error> {
        let (mut queue, request) = Queue::new(entries, digests);
        let lost =
            |cause| Error::Lost { drive: Arc::clone(&association.drive), cause: Arc::new(cause) };
        stream.send_all(&request).await.map_err(lost)?;
        let h2c_data_bytes_max = driver::initialise(association, &stream, &mut queue).await?;
        let connection = Rc::new(Self {
            association: Rc::clone(association),
            state: RefCell::new(State {
                queue,
                commands: Commands::new(entries),
                tickets: Tickets::default(),
                outgoing: Outgoing::new(h2c_data_bytes_max),
            }),
            driver: RefCell::default(),
        });
        let member = Rc::downgrade(&connection);
        association.join(member);
        drop(spawn(association.class, Driver::new(&connection, stream)));
        Ok(connection)
    }

    /// Returns the number of commands that may still be started.
    pub(crate) fn room(&self) -> usize {
        self.state.borrow().queue.room()
    }

    /// Starts a command; the future gives its answer. Dropping it leaves the command in flight.
    ///
    /// # Panics
    /// If the queue is full: the caller must hold a permit.
    pub(crate) fn start(self: &Rc<Self>, request: Request) -> Result<Answer, Error> {
        if let Some(error) = self.association.error() {
            return Err(error);
        }
        let Request { mut sqe, what, payload, in_capsule, to_host, permit } = request;
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let bytes = u32::try_from(bytes).map_err(|_| Error::TooLarge {
            drive: Arc::clone(&self.association.drive),
            bytes: bytes as u64,
            bytes_max: u32::MAX.into(),
        })?;
        let mut state = self.state.borrow_mut();
        let in_capsule = in_capsule && bytes > 0;
        let transfer = Transfer { to_host, to_controller: bytes, in_capsule };
        let head = state.queue.begin(&mut sqe, transfer).expect("a permit is room in the queue");
        let cid = sqe.cid();
        let ticket = state.tickets.take(cid);
        let carried = if in_capsule { bytes } else { 0 };
        state.commands.insert(
            cid,
            InFlight {
                what,
                ticket: Some(ticket),
                payload,
                data: Buffer::with_room(0, to_host as usize, 0),
                unsent: carried,
                sent: false,
                started: now(),
                permit,
            },
        );
        state.outgoing.capsule(cid, head, carried);
        drop(state);
        self.wake();
        Ok(Answer { connection: Rc::clone(self), ticket: Some(ticket) })
    }

    fn wake(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// Returns an error for the drive's violation of a rule.
    fn protocol(&self, reason: impl Into<String>) -> Error {
        Error::Protocol { drive: Arc::clone(&self.association.drive), reason: reason.into() }
    }
}

impl State {
    /// Processes all bytes of `input`.
    fn receive(&mut self, connection: &Connection, mut input: &[u8]) -> Result<(), Stop> {
        loop {
            match self.queue.next(&mut input)? {
                None => return Ok(()),
                Some(Event::Data { cid, offset, bytes }) => {
                    self.commands.store(cid, offset, bytes);
                    let count = bytes.len() as u64;
                    connection.association.count(|traffic| traffic.payload_to_host += count);
                }
                Some(Event::Send { cid, ttag, offset, length }) => {
                    self.grant(cid, ttag, offset, length)?;
                }
                Some(Event::Completed(completion)) => self.complete(connection, &completion)?,
                Some(Event::Connected { .. }) => {
                    return Err(connection.protocol("it initialised the connection twice").into());
                }
                Some(Event::Terminated(request)) => {
                    let status = FatalStatus(request.fes());
                    let reason = format!("it ended the connection: {status}");
                    return Err(connection.protocol(reason).into());
                }
            }
        }
    }

    /// Handles R2T: the drive is ready for a part of a command's data.
    fn grant(&mut self, cid: u16, ttag: u16, offset: u32, length: u32) -> Result<(), Stop> {
        let command = self.commands.get(cid);
        // We announced one outstanding R2T a command (MAXR2T 0).
        if command.unsent > 0 {
            let status = FatalStatus::LIMIT_EXCEEDED;
            return Err(Stop::Fatal(Fatal { status, information: 0, header: Vec::new() }));
        }
        command.unsent = length;
        self.outgoing.transfer(cid, ttag, offset, length);
        Ok(())
    }

    fn complete(&mut self, connection: &Connection, completion: &Completion) -> Result<(), Stop> {
        let cid = completion.cid;
        // It ends with the others when the connection fails.
        if !self.commands.get(cid).sent {
            return Err(connection.protocol("it answered a command that it had not got").into());
        }
        let mut command = self.commands.remove(cid);
        if command.unsent > 0 {
            // The drive failed the command early: PDUs under way must still be whole.
            self.outgoing.orphan(cid, &command.payload);
        }
        let drive = || Arc::clone(&connection.association.drive);
        let status = completion.cqe.status();
        let reply = if !status.is_success() {
            Err(Error::Status { drive: drive(), what: command.what, status, reason: None })
        } else if completion.damaged {
            Err(Error::Damaged { drive: drive(), what: command.what })
        } else {
            let mut data = std::mem::take(&mut command.data);
            data.truncate(completion.received as usize);
            Ok(Reply { result: completion.cqe.result(), data })
        };
        if let Some(ticket) = command.ticket {
            self.tickets.give(ticket, reply, Vec::new());
        }
        Ok(())
    }
}

/// Reason why the task of a connection stops.
enum Stop {
    /// The drive broke a rule of the transport; it gets a terminate request.
    Fatal(Fatal),
    /// Any other error.
    Error(Error),
}

impl From<Fatal> for Stop {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Future of a command's end.
#[must_use = "a future does nothing until awaited"]
pub(crate) struct Answer {
    connection: Rc<Connection>,
    ticket: Option<u32>,
}

impl Answer {
    /// Returns the command's identifier until the answer is there.
    pub(crate) fn cid(&self) -> Option<u16> {
        self.connection.state.borrow().tickets.cid(self.ticket?)
    }
}

impl Future for Answer {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = self.ticket.expect("an answer is awaited once");
        let reply = self.connection.state.borrow_mut().tickets.poll(ticket, cx.waker());
        if reply.is_ready() {
            self.ticket = None;
        }
        reply
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.connection.state.borrow_mut();
        let State { commands, tickets, .. } = &mut *state;
        if let Some(cid) = tickets.abandon(ticket) {
            commands.get(cid).ticket = None;
        }
    }
}
