//! The host's part of a run: the same chunks over the same wire, the same kernel on this core.
//!
//! The kernel runs on the core that received the chunk, not on a lane: `n` cores of a host are
//! `n` threads, which receive and compute.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use csd_kernels::count::Count;
use csd_reactor::{Buffer, Class, JoinHandle, busy, spawn};

use super::queue::Queue;
use super::{Error, Job, Share};
use crate::array::Array;
use crate::object::{Progress, read_chunk};

/// Chunks that a core has asked for at once.
const AHEAD: usize = 8;

/// What one core did.
pub(super) struct Part {
    pub(super) count: u64,
    pub(super) share: Share,
}

/// Takes chunks until none is left.
pub(super) async fn work(
    array: &Array,
    job: &Arc<Job>,
    queue: &Queue,
    progress: &Progress,
) -> Result<Part, Error> {
    let before = busy();
    let mut kernel = Count::new(job.parameters);
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let mut failed = None;
    loop {
        while failed.is_none() && pending.len() < AHEAD {
            let Some(taken) = queue.take_for_host() else { break };
            let member = job.entry.members[taken.member];
            let drive = Rc::clone(array.drive(member.into()).inspect_err(|_| queue.stop())?);
            let chunk = job.entry.spread().chunk(taken.member, taken.locals.start);
            let job = Arc::clone(job);
            pending.push_back(spawn(Class::Foreground, async move {
                read_chunk(&drive, &job.entry, chunk).await
            }));
        }
        let Some(chunk) = pending.pop_front() else { break };
        match chunk.await {
            Ok(chunk) => {
                kernel.feed(&chunk).expect("chunks hold whole elements");
                progress(chunk.len() as u64);
            }
            Err(error) => {
                queue.stop();
                failed = failed.or(Some(error));
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let busy_s = super::seconds(busy().since(&before).busy_ns());
    let who = format!("host core {}", csd_reactor::core_id());
    let share = Share { who, elements: kernel.elements(), busy_s };
    Ok(Part { count: kernel.result(), share })
}
