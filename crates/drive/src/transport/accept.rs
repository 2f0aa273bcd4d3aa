//! Accepts connections and distributes them: each goes to the core with the fewest. A drive may
//! accept on both of its sides.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use csd_reactor::{
    Class, CoreId, Listener, Stream, core_id, core_local, post, sleep, spawn, yield_now,
};

use super::auth_scheduler::origin;
use super::cause::Cause;
use super::connection;
use super::connections;
use super::link::Arrival;
use crate::drive::{Core, Shared};
use crate::log::Level;
use crate::side::Side;

/// Pause before another try when accepting fails, such as for lack of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Pause between two summaries of events that were held back.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Connections beyond the limit that are kept until Connect refuses them. More are closed at once.
const SURPLUS_MAX: usize = 32;

/// Accepts hosts until the future is dropped, and logs summaries of events.
pub async fn accept(listener: Listener, shared: Arc<Shared>) {
    let log = shared.log().clone();
    drop(spawn(Class::System, async move {
        loop {
            sleep(SUMMARY_EVERY).await;
            log.summarise(false);
        }
    }));
    accept_on(Side::Outside, listener, shared).await;
}

/// Accepts connections of one side until the future is dropped.
pub async fn accept_on(side: Side, listener: Listener, shared: Arc<Shared>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                let fields = [("error", error.to_string())];
                shared.log().write_rated(Level::Warn, "no connection can be accepted", &fields);
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let loads = || shared.connections.iter().map(|count| count.load(Relaxed));
        let most = shared.host_limits.connections;
        let open = || shared.unauthenticated.count(loads().sum());
        if let Some((core, number)) = shared.unauthenticated.give_way(open(), most) {
            connections::end(core, number, Cause::GaveWay);
            yield_now().await;
        }
        let all = open();
        let surplus = all >= most;
        if all >= most + SURPLUS_MAX {
            shared.surplus.fetch_add(1, Relaxed);
            let fields = [("connections", all.to_string())];
            shared.log().write_rated(Level::Warn, "connection refused: too many", &fields);
            continue;
        }
        let least = loads().enumerate().min_by_key(|(_, load)| *load).map_or(0, |(core, _)| core);
        shared.connections[least].fetch_add(1, Relaxed);
        let number = shared.accepted.fetch_add(1, Relaxed) + 1;
        let leaving = Leaving { shared: Arc::clone(&shared), core: CoreId(least), number };
        if !shared.access.secrets.is_empty() && !surplus {
            let peer = peer.ip().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
            shared.unauthenticated.enter((CoreId(least), number), origin(peer));
        }
        if CoreId(least) == core_id() {
            begin(stream, side, surplus, leaving);
            continue;
        }
        let detached = stream.detach();
        // A core that is gone takes nothing: the drive is stopping.
        let _ = post(CoreId(least), Class::System, move || {
            if let Ok(stream) = detached.attach() {
                begin(stream, side, surplus, leaving);
            }
        });
    }
}

fn begin(stream: Stream, side: Side, surplus: bool, leaving: Leaving) {
    let core = core_local::<Core>().expect("a drive's core keeps itself");
    drop(spawn(Class::Foreground, async move {
        let arrival = Arrival { number: leaving.number, side, surplus };
        connection::serve(stream, core, arrival).await;
        drop(leaving);
    }));
}

/// A guard that counts a connection until it is dropped.
struct Leaving {
    shared: Arc<Shared>,
    core: CoreId,
    number: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let count: &AtomicUsize = &self.shared.connections[self.core.0];
        count.fetch_sub(1, Relaxed);
        self.shared.unauthenticated.remove(self.number);
    }
}
