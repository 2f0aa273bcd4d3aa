//! The program `pages`: compares the pages of a piece with the checksums of a page list.

use csd_nvme::status::Status;
use csd_nvme::vendor::execute::Execution;
use csd_nvme::vendor::pages::{List, Malformed, NONE, PROGRAM_ID, Task, list_key};
use csd_reactor::{Class, compute_fn, worked};

use super::execute::Meter;
use super::{CancelToken, Compute, Failure, Report, values_of};
use crate::page_check::{Differing, Pages, compare};

/// Bytes of a list that are read at once.
const READ_BYTES: usize = 128 << 10;

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
            worked(part.len() as u64);
            list.extend_from_slice(&part);
        }
        let found = self.compared_with(list, &task).await?;
        meter.read_bytes = found.bytes;
        meter.used_bytes = found.bytes;
        meter.work = found.bytes;
        Ok(u64::from(found.first) | u64::from(found.count) << 32)
    }

    /// Compares the pages that a task names with a list. A piece that the list does not have has
    /// none.
    async fn compared_with(&self, list: Vec<u8>, task: &Task) -> Result<Differing, Failure> {
        let (cost_ns, number) = (list.len() as u64 / 10, task.piece as usize);
        let found = compute_fn(Class::Execution, cost_ns, move || {
            let mut list = List::parse(&list)?;
            let found = list.piece(number).map(|(piece, sums)| (piece, sums.to_vec()));
            // The others are freed here, too.
            (list.pieces, list.sums) = (Vec::new(), Vec::new());
            Ok::<_, Malformed>((list, found))
        });
        let (list, found) =
            found.await.map_err(|_| Status::INTERNAL_ERROR)?.map_err(Failure::misuse)?;
        let Some((piece, sums)) = found else {
            return Ok(Differing { first: NONE, count: 0, bytes: 0 });
        };
        let pages = Pages { piece, sums: &sums, from: task.from };
        Ok(compare(&self.kv, &self.block, &list, &pages).await?)
    }
}
