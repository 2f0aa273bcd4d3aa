//! The task of a connection: in each turn it receives all that has arrived, then sends all that is
//! due.
//!
//! It does not block, and yields to other tasks after a bounded amount of work. Invariant: it ends
//! when the controller is closed, and closes the controller when the connection ends.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use csd_nvme::host::queue::{Event, Queue};
use csd_nvme::pdu::{FatalStatus, HEADER_BYTES_MAX, Kind};
use csd_nvme::tcp::Fatal;
use csd_reactor::{Sleep, Stream, now, sleep_until};

use super::outgoing::SLICES;
use super::{Connection, State, Stop};
use crate::Error;
use crate::association::Association;

/// Transfers of one turn before the task yields.
const TRANSFERS: usize = 32;
/// Minimum bytes of data that are received straight into their command's buffer.
const DIRECT_BYTES: usize = 4 << 10;
/// Bytes received at once into the scratch buffer.
const SCRATCH_BYTES: usize = 64 << 10;
/// The same during long data, so that little of the next PDU's data has to be copied.
const SCRATCH_BYTES_AMID_DATA: usize = 4 << 10;

thread_local! {
    /// Scratch buffer for received bytes: one for all connections of a core.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Waits for the drive's ICResp; returns the maximum bytes of one H2CData PDU.
pub(super) async fn initialise(
    association: &Association,
    stream: &Stream,
    queue: &mut Queue,
) -> Result<u32, Error> {
    let protocol = |reason| Error::Protocol { drive: Arc::clone(&association.drive), reason };
    let lost =
        |cause| Error::Lost { drive: Arc::clone(&association.drive), cause: Arc::new(cause) };
    let mut response = [0; HEADER_BYTES_MAX];
    let mut left = HEADER_BYTES_MAX; // exactly an ICResp: nothing lawful follows it yet
    while left > 0 {
        let received = match stream.try_recv(&mut response[..left]).map_err(lost)? {
            Some(0) => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
            Some(count) => {
                association.hear();
                &response[..count]
            }
            None => {
                stream.readable().await.map_err(lost)?;
                continue;
            }
        };
        left -= received.len();
        let mut input = received;
        match queue.next(&mut input).map_err(|fatal| protocol(fatal.to_string()))? {
            Some(Event::Connected { h2c_data_bytes_max }) => return Ok(h2c_data_bytes_max),
            Some(Event::Terminated(request)) => {
                let status = FatalStatus(request.fes());
                return Err(protocol(format!("it refused the connection: {status}")));
            }
            Some(_) => return Err(protocol("it answered before it initialised".to_owned())),
            None => {}
        }
    }
    Err(protocol("its ICResp is not one".to_owned()))
}

/// The task of one connection.
pub(super) struct Driver {
    connection: Rc<Connection>,
    stream: Stream,
    /// Deadline of the oldest command in flight.
    deadline: Option<Sleep>,
    amid_data: bool,
}

impl Driver {
    pub(super) fn new(connection: &Rc<Connection>, stream: Stream) -> Self {
        let connection = Rc::clone(connection);
        Self { connection, stream, deadline: None, amid_data: false }
    }

    fn lost(&self, cause: io::Error) -> Stop {
        let drive = Arc::clone(&self.connection.association.drive);
        Error::Lost { drive, cause: Arc::new(cause) }.into()
    }

    /// Receives what has arrived; returns the number of transfers.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<usize, Stop> {
        for transfers in 0..TRANSFERS {
            match self.stream.poll_readable(cx) {
                Poll::Pending => return Ok(transfers),
                Poll::Ready(ready) => ready.map_err(|cause| self.lost(cause))?,
            }
            let received = match self.receive_direct()? {
                None => self.receive_scratch()?,
                Some(received) => received,
            };
            match received {
                Some(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
                Some(count) => {
                    let count = count as u64;
                    self.connection.association.hear();
                    self.connection.association.count(|traffic| traffic.wire_to_host += count);
                }
                None => {}
            }
        }
        Ok(TRANSFERS)
    }

    /// Receives into the buffer of the command whose data comes next, if enough of it does.
    fn receive_direct(&mut self) -> Result<Option<Option<usize>>, Stop> {
        let mut state = self.connection.state.borrow_mut();
        let State { queue, commands, .. } = &mut *state;
        let wanted = queue.data_wanted().filter(|(_, _, left)| *left >= DIRECT_BYTES);
        let Some((cid, offset, left)) = wanted else { return Ok(None) };
        self.amid_data = true;
        let start = offset as usize;
        // The queue has checked that all of the PDU's data lies within the buffer.
        let into = &mut commands.get(cid).data[start..start + left];
        let received = self.stream.try_recv(into).map_err(|cause| self.lost(cause))?;
        if let Some(count) = received {
            queue.data_received(&into[..count]);
            self.connection.association.count(|traffic| traffic.payload_to_host += count as u64);
            // The end of data without a digest takes no further byte: it must be asked for.
            state.receive(&self.connection, &[])?;
        }
        Ok(Some(received))
    }

    /// Receives into the scratch buffer, and distributes the bytes.
    fn receive_scratch(&mut self) -> Result<Option<usize>, Stop> {
        let amid_data = std::mem::take(&mut self.amid_data);
        let most = if amid_data { SCRATCH_BYTES_AMID_DATA } else { SCRATCH_BYTES };
        SCRATCH.with_borrow_mut(|scratch| {
            let received = self.stream.try_recv(&mut scratch[..most]);
            let received = received.map_err(|cause| self.lost(cause))?;
            if let Some(count) = received {
                let mut state = self.connection.state.borrow_mut();
                state.receive(&self.connection, &scratch[..count])?;
            }
            Ok(received)
        })
    }

    /// Sends all that is due; returns the number of transfers.
    fn send(&mut self, cx: &mut Context<'_>) -> Result<usize, Stop> {
        for transfers in 0..TRANSFERS {
            let mut state = self.connection.state.borrow_mut();
            let State { queue, commands, outgoing, .. } = &mut *state;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = outgoing.slices(queue, commands, &mut slices);
            if count == 0 {
                return Ok(transfers);
            }
            match self.stream.poll_writable(cx) {
                Poll::Pending => return Ok(transfers),
                Poll::Ready(ready) => ready.map_err(|cause| self.lost(cause))?,
            }
            let sent = self.stream.try_send(&slices[..count]);
            if let Some(count) = sent.map_err(|cause| self.lost(cause))? {
                let payload = outgoing.consume(count, commands);
                self.connection.association.count(|traffic| {
                    traffic.wire_to_drive += count as u64;
                    traffic.payload_to_drive += payload;
                });
            }
        }
        Ok(TRANSFERS)
    }

    /// Fails if the oldest command in flight has timed out; else waits for its deadline.
    ///
    /// The timer is moved only when it fires, so commands answered in time do not touch it.
    fn watch(&mut self, cx: &mut Context<'_>) -> Result<(), Stop> {
        let association = &self.connection.association;
        loop {
            if let Some(deadline) = &mut self.deadline
                && Pin::new(deadline).poll(cx).is_pending()
            {
                return Ok(());
            }
            let state = self.connection.state.borrow();
            let Some(oldest) = state.commands.oldest() else {
                self.deadline = None;
                return Ok(());
            };
            let after = association.command_timeout;
            let at = oldest.started + after;
            if now() >= at {
                let drive = Arc::clone(&association.drive);
                return Err(Error::Timeout { drive, what: oldest.what, after }.into());
            }
            self.deadline = Some(sleep_until(at));
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool, Stop> {
        let received = self.receive(cx)?;
        let sent = self.send(cx)?;
        self.watch(cx)?;
        Ok(received == TRANSFERS || sent == TRANSFERS)
    }

    /// Sends the drive a terminate request with the rule it broke, if that needs no waiting.
    fn terminate(&self, fatal: &Fatal) {
        if self.connection.state.borrow().outgoing.at_boundary() {
            let request = fatal.encode(Kind::H2C_TERM_REQ);
            // The connection closes either way.
            let _sent = self.stream.try_send(&[IoSlice::new(&request)]);
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.connection.driver.replace(Some(cx.waker().clone()));
        if this.connection.association.is_sealed() {
            return Poll::Ready(());
        }
        match this.turn(cx) {
            Ok(more) => {
                if more {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
            Err(Stop::Fatal(fatal)) => {
                this.terminate(&fatal);
                this.connection.association.fail(&this.connection.protocol(fatal.to_string()));
            }
            Err(Stop::Error(error)) => this.connection.association.fail(&error),
        }
        Poll::Ready(())
    }
}
