//! Admin commands of the discovery controller.
//!
//! It has no I/O queues. Invariant: its answers depend on the drive and on the address that the
//! host connected to, so that the host can reach the addresses in the records.

use super::admin::{Answer, fit};
use super::{Backing, Controller, EVENT_REQUESTS_MAX, Subsystem};
use crate::capsule::Sqe;
use crate::discovery::DISCOVERY_NQN;
use crate::feature::{self, FeatureId};
use crate::identify::{self, Cns, IdentifyController, SglSupport};
use crate::opcode::Admin;
use crate::property::VERSION;
use crate::status::Status;
use crate::wire::fixed_text;

/// Discovery controller activity timeout of the standard, in milliseconds: a host without a
/// keep-alive is disconnected after this long a silence.
pub(super) const ACTIVITY_TIMEOUT_MS: u32 = 120_000;

impl Controller {
    pub(super) fn discovery_admin(
        &mut self,
        sqe: &Sqe,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Answer {
        let feature_view = feature::Features::from_bytes(*sqe.as_bytes());
        let known_feature = matches!(
            FeatureId(feature_view.fid()),
            FeatureId::ASYNC_EVENT_CONFIGURATION | FeatureId::KEEP_ALIVE_TIMER
        );
        let answer = match Admin(sqe.opcode()) {
            Admin::IDENTIFY => match Cns(identify::Identify::from_bytes(*sqe.as_bytes()).cns()) {
                Cns::CONTROLLER => Ok(Answer::data(identity(self.cntlid, subsystem))),
                _ => Err(Status::INVALID_FIELD),
            },
            Admin::GET_LOG_PAGE => self.get_log_page(sqe, subsystem, backing).map(Answer::data),
            Admin::SET_FEATURES if known_feature => self.set_features(sqe, &[], subsystem, backing),
            Admin::GET_FEATURES if known_feature => self.get_features(sqe, subsystem, backing),
            Admin::SET_FEATURES | Admin::GET_FEATURES => Err(Status::INVALID_FIELD),
            Admin::KEEP_ALIVE => Ok(Answer::result(0)),
            Admin::ABORT => Ok(self.abort(sqe, backing)),
            Admin::ASYNC_EVENT_REQUEST => return self.hold(sqe),
            _ => Err(Status::INVALID_OPCODE),
        };
        answer.and_then(|answer| fit(answer, sqe.sgl().length())).unwrap_or_else(Answer::from)
    }
}

fn identity(cntlid: u16, subsystem: &Subsystem) -> Vec<u8> {
    let mut data = IdentifyController::zeroed();
    data.set_sn(&fixed_text(&subsystem.serial, b' '))
        .set_mn(&fixed_text(&subsystem.model, b' '))
        .set_fr(&fixed_text(&subsystem.firmware, b' '));
    data.set_mdts(subsystem.mdts).set_cntlid(cntlid).set_ver(VERSION).set_cntrltype(2);
    data.set_acl(3).set_aerl(EVENT_REQUESTS_MAX - 1).set_lpa(1 << 5 | 1 << 2).set_kas(10);
    data.set_elpe(super::ERROR_ENTRIES_MAX - 1).set_maxcmd(subsystem.queue_entries_max);
    data.set_sgls(SglSupport::default().with_supported(1).with_offset(1).with_transport(1).0);
    data.set_subnqn(&fixed_text(DISCOVERY_NQN, 0));
    data.set_ioccsz((64 + subsystem.in_capsule_bytes_max) / 16).set_iorcsz(1).set_msdbd(1);
    data.as_bytes().to_vec()
}
