//! Execute Program: an execution's data, its run, and its entry in the log of executions.

use std::future::ready;

use csd_nvme::compute::Command;
use csd_nvme::status::Status;
use csd_reactor::now;

use super::super::request::{Done, Request};
use crate::compute::Call;
use crate::controller::executions;

/// Runs a command of the compute namespace.
pub(super) async fn run(request: &mut Request) -> Result<Done, Status> {
    let (core, link) = (request.core.clone(), request.link.clone());
    if link.is_of_peer() {
        // Drives whose executions wait for each other could wait in a circle.
        return Err(Status::OPERATION_DENIED);
    }
    let command = Command::parse(&request.sqe)?;
    let Command::Execute { program: index, length, ranges, controls } = command;
    let association = link.association().ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
    let (queue, cid) = request.id();
    let caller = (association.cntlid, queue, cid);
    let host = association.host_nqn();
    let under_way = core.compute.begin(caller, controls);
    // Executions are long: their data has memory of its own, not that of all transfers. While an
    // execution waits for that memory, its host sends no data.
    let grant =
        async { (link.grants.acquire_own(length).await, core.budget.execution(length).await) };
    let grant = under_way.wait(grant);
    let mut data = request.payload_in(grant, length).await?;
    let _held = data.held.take();
    let begun = now();
    // An execution whose host has left does not begin. One that runs is aborted instead.
    link.host.there(ready(())).await;
    let call = Call { caller, host, index, ranges, controls };
    let report = core.compute.execute(&under_way, &call, data.joined().await).await;
    let mut entry = executions::entry(&report, index, begun);
    entry.set_cid(cid);
    entry.set_cntlid(association.cntlid).name_host(host);
    core.shared.execution_log.note(entry);
    let (program, read_bytes) = (report.program, report.meter.read_bytes);
    link.host.there(core.shared.throttle.execution(program, read_bytes, begun)).await;
    report.result.map(Done::Result).map_err(|failure| failure.status)
}
