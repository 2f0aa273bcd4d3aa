//! Counters of the bytes that have moved through a drive.

use csd_initiator::{Address, Controller, Error};
use csd_nvme::NSID_ALL;
use csd_nvme::log::{LogId, Smart, get_log_page};
use csd_nvme::opcode::Csi;

use crate::context::Context;
use crate::drive_status::DATA_UNIT_BYTES;
use crate::os::tunnel_ends;
use crate::report::Failure;
use crate::runtime::runtime;

/// Counters of a drive since its start.
pub(super) struct Moved {
    /// Bytes that all sides read.
    pub(super) read_bytes: u64,
    /// Bytes that the operating system sent and received through the tunnel.
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
}

/// Asks the drive at this address.
pub(super) fn moved(url: &str, context: &Context) -> Result<Moved, Failure> {
    let address: Address = url.parse().map_err(|error: Error| Failure::usage(error))?;
    let options = context.options()?;
    let answered = csd_reactor::block_on(&runtime(), move || async move {
        let controller = Controller::connect(&address, &options).await?;
        let answer = ask(&controller).await;
        controller.disconnect().await;
        answer
    });
    answered.map_err(Failure::run)?.map_err(|error| csd_client::Error::Drive(error).into())
}

async fn ask(controller: &Controller) -> Result<Moved, Error> {
    let bytes = u32::try_from(Smart::SIZE).expect("512");
    let sqe = get_log_page(LogId::SMART, NSID_ALL, Csi::NVM, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    let units = Smart::parse(&data).map_or(0, |smart| smart.data_units_read());
    let inside = tunnel_ends(controller).await?.map(|[_, inside]| inside);
    Ok(Moved {
        read_bytes: units.saturating_mul(DATA_UNIT_BYTES),
        sent_bytes: inside.as_ref().map_or(0, |end| end.sent_bytes()),
        received_bytes: inside.as_ref().map_or(0, |end| end.received_bytes()),
    })
}
