//! The program `pages`: compares the pages of a piece with the checksums of a page list.

use csd_nvme::status::Status;
use csd_nvme::vendor::execute::Execution;
use csd_nvme::vendor::pages::{List, PROGRAM_ID, Task, list_key};

use super::execute::Meter;
use super::{CancelToken, Compute, Failure, Report, values_of};
use crate::page_check::compare;

/// Bytes of a list that are read at once.
const READ_BYTES: usize = 256 << 10;

impl Compute {
    /// Compares the pages that a task names.
    pub(super) async fn pages(&self, execution: &Execution, cancel: &CancelToken) -> Report {
        let mut meter = Meter::default();
        let compared = self.compared(execution, &mut meter);
        let result = cancel.unless_cancelled(compared).await.and_then(|result| result);
        Report { result, meter, program: PROGRAM_ID, cores: 1 }
    }

    async fn compared(&self, execution: &Execution, meter: &mut Meter) -> Result<u64, Failure> {
        let task = Task::of(execution).map_err(Failure::misuse)?;
        let nsid = values_of(task.nsid)?;
        let _turn = self.capacity.acquire(execution, 0).await;
        let missing = || {
            let reason = format!("there is no page list {}", task.number);
            Failure::new(Status::SOURCE_MISSING, reason)
        };
        let key = list_key(&task.object, task.number);
        let mut value = self.kv.open(nsid, key).await?.ok_or_else(missing)?;
        let mut list = Vec::with_capacity(value.bytes() as usize);
        while let Some(part) = value.next(READ_BYTES, 0, 0).await? {
            list.extend_from_slice(&part);
        }
        let list = List::parse(&list).map_err(Failure::misuse)?;
        let piece = usize::try_from(task.piece).unwrap_or(usize::MAX);
        let found = compare(&self.kv, &self.block, &list, piece, task.from).await?;
        meter.read_bytes = found.bytes;
        meter.used_bytes = found.bytes;
        meter.work = found.bytes;
        Ok(u64::from(found.first) | u64::from(found.count) << 32)
    }
}
