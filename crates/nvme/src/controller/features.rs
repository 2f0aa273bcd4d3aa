//! Get Features and Set Features.

use super::admin::Answer;
use super::{Backing, Controller, Event, Kind, NamespaceKind, Subsystem};
use crate::NSID_ALL;
use crate::capsule::Sqe;
use crate::feature::{
    self, CAPABILITY_CHANGEABLE, CAPABILITY_NAMESPACE, CAPABILITY_SAVEABLE, DULBE, EDNEK,
    FeatureId, HOST_BEHAVIOR_BYTES, NumberOfQueues, PROTECT, PROTECT_UNTIL_POWER_CYCLE, SAVE,
    Select, TemperatureThreshold,
};
use crate::status::Status;
use crate::vendor::services::{Order, OrderData};

/// Values of one controller's features, and their defaults.
#[derive(Debug)]
pub(super) struct Features {
    values: Vec<(FeatureId, u32)>,
    host_behavior: Vec<u8>,
    queues_granted: NumberOfQueues,
}

/// Features of one dword each, without restrictions on their value.
const PLAIN: [(FeatureId, u32); 5] = [
    (FeatureId::ARBITRATION, 0),
    // The over temperature threshold; above it, in the upper half, that of under temperature.
    (FeatureId::TEMPERATURE_THRESHOLD, 343),
    (FeatureId::ERROR_RECOVERY, 0),
    (FeatureId::WRITE_ATOMICITY, 0),
    // Read-only media, and changed namespaces.
    (FeatureId::ASYNC_EVENT_CONFIGURATION, 1 << 8 | 1 << 3),
];

/// Every feature, with true for namespace specific ones; only a drive with an inside has the last.
const SUPPORTED: [(FeatureId, bool); 15] = [
    (FeatureId::ARBITRATION, false),
    (FeatureId::POWER_MANAGEMENT, false),
    (FeatureId::TEMPERATURE_THRESHOLD, false),
    (FeatureId::ERROR_RECOVERY, false),
    (FeatureId::VOLATILE_WRITE_CACHE, false),
    (FeatureId::NUMBER_OF_QUEUES, false),
    (FeatureId::WRITE_ATOMICITY, false),
    (FeatureId::ASYNC_EVENT_CONFIGURATION, false),
    (FeatureId::KEEP_ALIVE_TIMER, false),
    (FeatureId::HOST_BEHAVIOR, false),
    (FeatureId::COMMAND_SET_PROFILE, false),
    (FeatureId::KEY_VALUE_CONFIGURATION, true),
    (FeatureId::WRITE_PROTECTION, true),
    (FeatureId::SERVICES, false),
    (FeatureId::INSIDE_ONLY, true),
];

/// Returns every feature of a drive, with true for namespace specific ones.
pub(super) fn supported(backing: &dyn Backing) -> &'static [(FeatureId, bool)] {
    let all = if backing.inside().is_some() { SUPPORTED.len() } else { SUPPORTED.len() - 1 };
    &SUPPORTED[..all]
}

fn saveable(id: FeatureId) -> bool {
    id == FeatureId::KEY_VALUE_CONFIGURATION || PLAIN.iter().any(|(known, _)| *known == id)
}

/// Keep-alive granularity in milliseconds; timeouts are rounded up to it.
const KEEP_ALIVE_STEP_MS: u32 = 1000;

impl Features {
    pub(super) fn new(kato_ms: u32) -> Self {
        let mut values = PLAIN.to_vec();
        values.push((FeatureId::KEEP_ALIVE_TIMER, rounded(kato_ms)));
        let host_behavior = vec![0; HOST_BEHAVIOR_BYTES];
        Self { values, host_behavior, queues_granted: NumberOfQueues::default() }
    }

    pub(super) fn keep_alive_ms(&self) -> u32 {
        self.value(FeatureId::KEEP_ALIVE_TIMER).unwrap_or(0)
    }

    /// Returns true if any of these bits of Asynchronous Event Configuration is set.
    pub(super) fn event_enabled(&self, bits: u32) -> bool {
        self.value(FeatureId::ASYNC_EVENT_CONFIGURATION).is_some_and(|value| value & bits != 0)
    }

    /// Loads the saved values when a controller is enabled.
    pub(super) fn load(&mut self, backing: &dyn Backing) {
        for (id, _) in PLAIN {
            if let Some(value) = backing.saved(id, 0) {
                self.set(id, value);
            }
        }
    }

    /// Returns true if this composite temperature, in kelvin, is beyond a threshold.
    pub(super) fn is_beyond(&self, kelvin: u16) -> bool {
        let both = self.value(FeatureId::TEMPERATURE_THRESHOLD).unwrap_or(0);
        u32::from(kelvin) >= both & 0xFFFF || u32::from(kelvin) <= both >> 16
    }

    fn value(&self, id: FeatureId) -> Option<u32> {
        self.values.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    fn set(&mut self, id: FeatureId, value: u32) -> bool {
        let slot = self.values.iter_mut().find(|(known, _)| *known == id);
        slot.map(|(_, old)| *old = value).is_some()
    }
}

fn rounded(kato_ms: u32) -> u32 {
    kato_ms.checked_next_multiple_of(KEEP_ALIVE_STEP_MS).unwrap_or(u32::MAX)
}

fn kv_namespace(subsystem: &Subsystem, nsid: u32) -> Result<(), Status> {
    match subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
        Some(NamespaceKind::Kv { .. }) => Ok(()),
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

impl Controller {
    /// Returns true if this controller saves values of the feature. A discovery controller saves
    /// nothing, because any host gets one without authentication.
    fn saves(&self, id: FeatureId) -> bool {
        self.kind == Kind::Io && saveable(id)
    }

    pub(super) fn set_features(
        &mut self,
        sqe: &Sqe,
        data: &[u8],
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<Answer, Status> {
        let view = feature::Features::from_bytes(*sqe.as_bytes());
        let (id, mut value) = (FeatureId(view.fid()), view.value());
        let save = view.save() & SAVE != 0;
        if save && !self.saves(id) {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        match id {
            FeatureId::NUMBER_OF_QUEUES if backing.io_queues() > 0 => {
                return Err(Status::COMMAND_SEQUENCE_ERROR);
            }
            FeatureId::NUMBER_OF_QUEUES => {
                let wanted = NumberOfQueues(value);
                if wanted.submission() == 0xFFFF || wanted.completion() == 0xFFFF {
                    return Err(Status::INVALID_FIELD);
                }
                let most = u32::from(subsystem.io_queues_max) - 1;
                let granted = NumberOfQueues::default()
                    .with_submission(wanted.submission().min(most))
                    .with_completion(wanted.completion().min(most));
                self.features.queues_granted = granted;
                return Ok(Answer::result(u64::from(granted.0)));
            }
            FeatureId::KEEP_ALIVE_TIMER => {
                self.features.set(id, rounded(value));
            }
            FeatureId::HOST_BEHAVIOR => {
                let data = data.get(..HOST_BEHAVIOR_BYTES).ok_or(Status::SGL_LENGTH_INVALID)?;
                // Three flags of a byte each: retry delay, extended telemetry, extended formats.
                if data[..3].iter().any(|flag| *flag > 1) {
                    return Err(Status::INVALID_FIELD);
                }
                self.features.host_behavior.copy_from_slice(data);
            }
            FeatureId::COMMAND_SET_PROFILE if value & 0x1FF == 0 => {}
            FeatureId::COMMAND_SET_PROFILE => return Err(Status::COMBINATION_REJECTED),
            FeatureId::KEY_VALUE_CONFIGURATION => {
                kv_namespace(subsystem, sqe.nsid())?;
                backing.set_absent_delete_is_error(sqe.nsid(), value & EDNEK != 0);
            }
            FeatureId::WRITE_PROTECTION => set_protection(sqe.nsid(), value, subsystem, backing)?,
            FeatureId::INSIDE_ONLY => set_inside_only(sqe.nsid(), value, subsystem, backing)?,
            FeatureId::SERVICES => set_service(data, backing)?,
            FeatureId::POWER_MANAGEMENT if value & 0x1F == 0 => {}
            FeatureId::VOLATILE_WRITE_CACHE if subsystem.volatile_cache && value & 1 == 1 => {}
            FeatureId::VOLATILE_WRITE_CACHE if subsystem.volatile_cache => {
                return Err(Status::FEATURE_NOT_CHANGEABLE);
            }
            FeatureId::TEMPERATURE_THRESHOLD => {
                value = self.set_threshold(value, backing.smart().temperature())?;
            }
            // No namespace can tell deallocated blocks by an error (NSFEAT bit 2 is 0).
            FeatureId::ERROR_RECOVERY if value & DULBE != 0 => return Err(Status::INVALID_FIELD),
            _ if self.features.set(id, value) => {}
            _ => return Err(Status::INVALID_FIELD),
        }
        if save {
            let of_namespace = id == FeatureId::KEY_VALUE_CONFIGURATION;
            backing.save(id, if of_namespace { sqe.nsid() } else { 0 }, value);
        }
        Ok(Answer::result(0))
    }

    /// Sets a temperature threshold, and raises the event if the temperature is now beyond it;
    /// returns both thresholds as stored.
    fn set_threshold(&mut self, given: u32, kelvin: u16) -> Result<u32, Status> {
        let id = FeatureId::TEMPERATURE_THRESHOLD;
        let both = with_threshold(self.features.value(id).unwrap_or(0), given)?;
        let was_beyond = self.features.is_beyond(kelvin);
        self.features.set(id, both);
        if !was_beyond && self.features.is_beyond(kelvin) {
            self.raise(Event::Temperature);
        }
        Ok(both)
    }

    pub(super) fn get_features(
        &self,
        sqe: &Sqe,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<Answer, Status> {
        let view = feature::Features::from_bytes(*sqe.as_bytes());
        let (id, select) = (FeatureId(view.fid()), Select(view.sel() & 7));
        let current = self.current_feature(id, sqe.nsid(), subsystem, backing)?;
        let value = match select {
            Select::CURRENT => current,
            // Protection is kept by itself: what was saved is what is, unless that will pass.
            Select::SAVED if id == FeatureId::WRITE_PROTECTION => match current {
                PROTECT_UNTIL_POWER_CYCLE => 0,
                kept => kept,
            },
            Select::SAVED if id == FeatureId::INSIDE_ONLY => current,
            Select::SAVED if id == FeatureId::KEY_VALUE_CONFIGURATION => {
                backing.saved(id, sqe.nsid()).unwrap_or(0)
            }
            Select::SAVED if self.saves(id) => {
                backing.saved(id, 0).unwrap_or_else(|| default_feature(id, subsystem))
            }
            Select::SAVED | Select::DEFAULT => default_feature(id, subsystem),
            Select::CAPABILITIES => capabilities(id, self.saves(id)),
            _ => return Err(Status::INVALID_FIELD),
        };
        let value = match id {
            FeatureId::TEMPERATURE_THRESHOLD if select != Select::CAPABILITIES => {
                threshold(value, view.value())?
            }
            _ => value,
        };
        let mut data = Vec::new();
        if id == FeatureId::HOST_BEHAVIOR && select == Select::CURRENT {
            data.clone_from(&self.features.host_behavior);
        }
        Ok(Answer::Complete { status: Status::SUCCESS, result: u64::from(value), data })
    }

    fn current_feature(
        &self,
        id: FeatureId,
        nsid: u32,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<u32, Status> {
        match id {
            FeatureId::NUMBER_OF_QUEUES => {
                let most = u32::from(subsystem.io_queues_max) - 1;
                let granted = self.features.queues_granted;
                let unset = NumberOfQueues::default().with_submission(most).with_completion(most);
                Ok(if granted.0 == 0 { unset.0 } else { granted.0 })
            }
            FeatureId::KEY_VALUE_CONFIGURATION => {
                kv_namespace(subsystem, nsid)?;
                Ok(u32::from(backing.absent_delete_is_error(nsid)))
            }
            FeatureId::WRITE_PROTECTION => match subsystem.namespace(nsid) {
                Some(_) => Ok(backing.protection(nsid)),
                None => Err(Status::INVALID_NAMESPACE),
            },
            FeatureId::INSIDE_ONLY => {
                exclusive_namespace(nsid, subsystem, backing)?;
                Ok(backing.is_inside_only(nsid).into())
            }
            FeatureId::VOLATILE_WRITE_CACHE if subsystem.volatile_cache => Ok(1),
            // What a service is set to is in its log page.
            FeatureId::HOST_BEHAVIOR
            | FeatureId::COMMAND_SET_PROFILE
            | FeatureId::POWER_MANAGEMENT
            | FeatureId::SERVICES => Ok(0),
            _ if nsid == 0 || nsid == NSID_ALL || subsystem.namespace(nsid).is_some() => {
                self.features.value(id).ok_or(Status::INVALID_FIELD)
            }
            _ => Err(Status::INVALID_NAMESPACE),
        }
    }
}

/// Returns that one of both stored thresholds which a Get Features command names.
fn threshold(both: u32, named: u32) -> Result<u32, Status> {
    let named = TemperatureThreshold(named);
    match (named.sensor(), named.under()) {
        (0, 0) => Ok(both & 0xFFFF),
        (0, 1) => Ok(both >> 16),
        // There are no sensors besides.
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Returns both thresholds, with the one of a Set Features command replaced.
fn with_threshold(both: u32, given: u32) -> Result<u32, Status> {
    let given = TemperatureThreshold(given);
    match (given.sensor(), given.under()) {
        (0 | 0xF, 0) => Ok(both & 0xFFFF_0000 | given.kelvin()),
        (0 | 0xF, 1) => Ok(both & 0xFFFF | given.kelvin() << 16),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Sets Namespace Write Protection Config; a compute namespace does not support it.
fn set_protection(
    nsid: u32,
    value: u32,
    subsystem: &Subsystem,
    backing: &dyn Backing,
) -> Result<(), Status> {
    match subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
        None => return Err(Status::INVALID_NAMESPACE),
        Some(NamespaceKind::Compute { .. }) => return Err(Status::FEATURE_NOT_CHANGEABLE),
        Some(_) => {}
    }
    let state = value & 7;
    if state > PROTECT_UNTIL_POWER_CYCLE {
        return Err(Status::INVALID_FIELD);
    }
    let current = backing.protection(nsid);
    if current == PROTECT_UNTIL_POWER_CYCLE && state != current {
        return Err(Status::FEATURE_NOT_CHANGEABLE);
    }
    debug_assert!(matches!(current, 0 | PROTECT | PROTECT_UNTIL_POWER_CYCLE));
    if state != current {
        backing.set_protection(nsid, state);
    }
    Ok(())
}

/// Checks that a drive has an inside, and that a namespace can be for its inside only: blocks can.
fn exclusive_namespace(
    nsid: u32,
    subsystem: &Subsystem,
    backing: &dyn Backing,
) -> Result<(), Status> {
    if backing.inside().is_none() {
        return Err(Status::INVALID_FIELD);
    }
    match subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
        Some(NamespaceKind::Block { .. }) => Ok(()),
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

/// Sets that only the inside changes a namespace, or both sides. Only the inside may do that.
fn set_inside_only(
    nsid: u32,
    value: u32,
    subsystem: &Subsystem,
    backing: &dyn Backing,
) -> Result<(), Status> {
    exclusive_namespace(nsid, subsystem, backing)?;
    match backing.inside() {
        Some(true) if value > 1 => Err(Status::INVALID_FIELD),
        Some(true) => {
            backing.set_inside_only(nsid, value == 1);
            Ok(())
        }
        _ => Err(Status::FEATURE_NOT_CHANGEABLE),
    }
}

/// Gives an order to one of the drive's services.
fn set_service(data: &[u8], backing: &dyn Backing) -> Result<(), Status> {
    let data = data.get(..OrderData::SIZE).ok_or(Status::SGL_LENGTH_INVALID)?;
    let order = Order::parse(data).ok_or(Status::INVALID_FIELD)?;
    if backing.order(&order) { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

fn capabilities(id: FeatureId, saveable: bool) -> u32 {
    let of_namespace = SUPPORTED.iter().any(|(known, namespace)| *known == id && *namespace);
    let changeable = !matches!(id, FeatureId::POWER_MANAGEMENT | FeatureId::VOLATILE_WRITE_CACHE);
    let bit = |condition: bool, bit: u32| if condition { bit } else { 0 };
    bit(changeable, CAPABILITY_CHANGEABLE)
        | bit(of_namespace, CAPABILITY_NAMESPACE)
        | bit(saveable, CAPABILITY_SAVEABLE)
}

fn default_feature(id: FeatureId, subsystem: &Subsystem) -> u32 {
    match id {
        FeatureId::NUMBER_OF_QUEUES => {
            let most = u32::from(subsystem.io_queues_max) - 1;
            NumberOfQueues::default().with_submission(most).with_completion(most).0
        }
        FeatureId::VOLATILE_WRITE_CACHE => u32::from(subsystem.volatile_cache),
        _ => PLAIN.iter().find(|(known, _)| *known == id).map_or(0, |(_, value)| *value),
    }
}
