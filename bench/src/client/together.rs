//! Several connected clients, by turns.

use std::time::{Duration, Instant};

use super::{Client, Watch};
use crate::Error;

/// Completes this many operations on connected clients together, by turns, and returns the time
/// they took.
///
/// # Errors
/// Those of [`Client::run_count`].
pub fn run_together(clients: &mut [Client], count: u64) -> Result<Duration, Error> {
    let mut watch = Watch::start();
    let mut ended = 0;
    while ended < count {
        for client in &mut *clients {
            client.send()?;
            ended += client.receive()?;
            watch.turn(ended, client)?;
        }
    }
    Ok(watch.start.elapsed())
}

/// Result of [`times_next_to`].
#[derive(Debug)]
pub struct Timed {
    /// Time of each operation, ns.
    pub times_ns: Vec<u64>,
    /// Operations that the others completed meanwhile.
    pub others: u64,
    /// Time of all.
    pub elapsed: Duration,
}

/// Completes this many operations of `client`, of depth 1, while `others` keep theirs in flight, by
/// turns.
///
/// # Errors
/// Those of [`Client::run_count`].
pub fn times_next_to(
    client: &mut Client,
    others: &mut [Client],
    count: u64,
) -> Result<Timed, Error> {
    let mut watch = Watch::start();
    let (mut times_ns, mut ended) = (Vec::new(), 0);
    for number in 0..count {
        let start = Instant::now();
        client.send()?;
        while client.receive()? == 0 {
            for other in &mut *others {
                other.send()?;
                ended += other.receive()?;
            }
            watch.turn(number + ended, client)?;
        }
        times_ns.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(Timed { times_ns, others: ended, elapsed: watch.start.elapsed() })
}
