//! Retrieve: a value on its way from the log to its host.
//!
//! It does not know where a value lies. Invariants: what a host is sent is one version of the
//! value, whole and with the right checksum, or the command fails; a host that does not take what
//! it asked for keeps a version from being cleaned for at most [`PIN_TIME_MAX`] and one piece.

use std::pin::pin;
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::Permit;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{now, timeout};

use super::PDU_DATA_BYTES_MAX;
use super::command::{Done, check_buffer};
use super::link::{HEADROOM, Link, TAILROOM};
use crate::drive::Core;
use crate::namespace::kv::{Progress, Value};

/// A version that is being sent is held in the log for so long. After that it is let go whenever
/// its host is waited for, and looked up again: it may have been moved, which changes nothing, or
/// replaced, which ends the command.
const PIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs the command.
pub(super) async fn run(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    (nsid, key): (u16, Key),
    size: u32,
) -> Result<Done, Status> {
    check_buffer(core, sqe, u64::from(size))?;
    let value = core.kv.open(nsid, key).await?;
    let mut value = value.ok_or(Status::KEY_DOES_NOT_EXIST)?;
    let mut opened = now();
    let (whole, wanted) = (value.bytes(), value.bytes().min(size));
    let mut sent = 0;
    while sent < wanted {
        let length = u64::from((wanted - sent).min(PDU_DATA_BYTES_MAX));
        let room = async {
            let held = link.answer(length).await;
            link.room().await;
            (held, link.reserve(length).await)
        };
        let mut room = pin!(room);
        let left = PIN_TIME_MAX.saturating_sub(opened.elapsed());
        let _room = match timeout(left, room.as_mut()).await {
            Ok(room) => room,
            Err(_) => {
                let progress = value.progress();
                drop(value);
                let room = room.await;
                value = again(core, (nsid, key), progress).await?;
                opened = now();
                room
            }
        };
        let most = PDU_DATA_BYTES_MAX as usize;
        let piece = value.next(most, HEADROOM, TAILROOM).await?;
        let mut piece = piece.expect("a value is as long as it says");
        piece.truncate((wanted - sent) as usize);
        let at = sent;
        sent += u32::try_from(piece.len()).expect("at most 128 KiB");
        // The value's size is the result: the response capsule is always sent.
        link.send_data(permit, at, piece, sent == wanted, false);
    }
    // A host that wants a part is told whether it is right, which takes the whole.
    while wanted > 0 && value.next(PDU_DATA_BYTES_MAX as usize, 0, 0).await?.is_some() {}
    core.count_read(u64::from(wanted));
    Ok(if wanted == 0 { Done::Result(u64::from(whole)) } else { Done::Data(u64::from(whole)) })
}

/// The same version again, wherever it lies now.
async fn again(core: &Core, (nsid, key): (u16, Key), progress: Progress) -> Result<Value, Status> {
    let value = core.kv.open(nsid, key).await?;
    value.and_then(|value| value.resumed(progress)).ok_or(Status::COMMAND_INTERRUPTED)
}
