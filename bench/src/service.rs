//! Services of a drive that a measurement has started: limits, pauses and counts.

use csd_client::{Address, Settings};
use csd_initiator::Controller;
use csd_nvme::NSID_ALL;
use csd_nvme::feature::{FeatureId, set_features};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::vendor::services::{LOG_BYTES_MAX, Order, Services, Setting};
use csd_reactor::{Config, block_on};

use crate::Error;
use crate::serve::Server;
use crate::wire::NQN;

/// Changes a setting of a service.
///
/// # Errors
/// If the drive has no such service.
pub fn set(drive: &Server, name: &str, setting: Setting) -> Result<(), Error> {
    let order = Order { name: name.to_owned(), setting };
    asked(drive, async move |controller| {
        let sqe = set_features(FeatureId::SERVICES, 0, 0);
        controller.admin(sqe, &order.encode(), 0).await.map(drop)
    })
}

/// Returns the services of a drive and what they have done.
///
/// # Errors
/// If it cannot say.
pub fn all(drive: &Server) -> Result<Services, Error> {
    let data = asked(drive, async |controller| {
        let bytes = u32::try_from(LOG_BYTES_MAX).expect("it is short");
        let sqe = get_log_page(LogId::SERVICES, NSID_ALL, Csi::NVM, 0, bytes);
        Ok(controller.admin(sqe, &[], bytes).await?.data)
    })?;
    let parsed = Services::parse(&data);
    parsed.ok_or_else(|| Error::Server("the drive's log of services is malformed".to_owned()))
}

/// Connects to the drive and asks something.
fn asked<T: Send + 'static>(
    drive: &Server,
    ask: impl AsyncFnOnce(&Controller) -> Result<T, csd_initiator::Error> + Send + 'static,
) -> Result<T, Error> {
    let address = Address::new(drive.address, NQN);
    let answer = block_on(&Config::default(), move || async move {
        let controller = Controller::connect(&address, &Settings::default().options).await?;
        ask(&controller).await
    });
    Ok(answer.map_err(csd_client::Error::from)??)
}
