//! The drives' memory in a run: its size, its lease, and the vector in it.

use std::rc::Rc;

use csd_initiator::Memory;
use csd_reactor::Buffer;
use csd_store::array::Drive;

use crate::context::StepContext;
use crate::link::Link;
use crate::target::MEMORY_NSID;
use crate::{Error, InvalidJob, lease};

/// Checks that every drive has this much memory for programs.
pub(crate) fn check(links: &[Link], needed: u64) -> Result<(), Error> {
    for link in links {
        // Without the drive, the host takes over its work.
        let Some(drive) = link.connected() else { continue };
        let memory = Memory::open(&drive.controller, MEMORY_NSID);
        let bytes = memory.map_or(0, |memory| memory.bytes());
        if bytes < needed {
            return Err(Error::InvalidJob(InvalidJob(format!(
                "drive {} has {bytes} bytes of memory for programs, and {needed} are needed: start \
                 it with a larger --memory, or use --on host",
                drive.name
            ))));
        }
    }
    Ok(())
}

/// Prepares the memory of every member's drive; records a drive that is lost.
pub(crate) async fn prepare_all(context: &Rc<StepContext>) -> Result<(), Error> {
    for member in 0..context.common.links.len() {
        let link = &context.common.links[member];
        match link.run(async |drive| prepare(context, link, drive).await).await {
            Err(error) if error.is_lost() => context.common.lose(member, &error, None),
            written => written?,
        }
    }
    Ok(())
}

/// Prepares the memory of a reconnected drive. A restarted drive has lost the vector, and products
/// with zeros would look valid; it may also have lost its lease.
pub(crate) async fn renew(
    context: &StepContext,
    member: usize,
    drive: &Drive,
) -> Result<(), Error> {
    let link = &context.common.links[member];
    match context.holder == 0 || link.is_prepared() {
        true => Ok(()),
        false => prepare(context, link, drive).await,
    }
}

/// Confirms the lease of a drive's memory, and writes the vector there, if there is one.
async fn prepare(context: &StepContext, link: &Link, drive: &Drive) -> Result<(), Error> {
    let renewals = link.renewals();
    lease::hold(drive, context.holder).await?;
    if !context.vector.is_empty() {
        let failed = |error| Error::command(drive, error);
        let memory = Memory::open(&drive.controller, MEMORY_NSID).map_err(failed)?;
        memory.write(0, vec![Buffer::from_slice(&context.vector)]).await.map_err(failed)?;
    }
    link.note_prepared(renewals);
    Ok(())
}
