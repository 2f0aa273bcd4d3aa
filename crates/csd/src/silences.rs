//! [`Silences`]: watches drives during a measurement, whose figures a silent drive spoils.
//!
//! A connection of its own sends each drive a Keep Alive command a few times a second, which a
//! drive answers whatever it computes. It ends nothing: a silent drive is waited for as the
//! measurement's own commands wait, for the time-out at most. Invariant: a drive that takes no such
//! connection is measured all the same.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Options};
use csd_nvme::capsule::Sqe;
use csd_nvme::opcode::Admin;
use csd_reactor::{
    Class, Config, CoreId, Hosted, Instant, core_local, now, set_core_local, sleep, spawn, timeout,
};

use crate::report::{self, Failure};
use crate::runtime::runtime;

/// Pause between two questions: their cost is not seen in any figure.
const EVERY: Duration = Duration::from_millis(250);
/// A drive that takes longer for an answer is silent.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// A watch over drives; see the module's text.
pub(crate) struct Silences(Hosted);

impl Silences {
    /// Watches drives, each with the name that people know it by.
    pub(crate) fn watch(
        drives: Vec<(String, Address)>,
        options: &Options,
    ) -> Result<Self, Failure> {
        let hosted = Hosted::start(&Config { spin_us: 0, ..runtime() }, 1);
        let hosted = hosted.map_err(Failure::run)?;
        let options = Options { io_queues: 1, keep_alive: Duration::ZERO, ..options.clone() };
        let begun = hosted.door().call(CoreId(0), move || async move {
            let watch = |(name, address): (String, Address)| {
                let watched = Rc::new(Watched { name, ..Watched::default() });
                drop(spawn(Class::System, ask(Rc::clone(&watched), address, options.clone())));
                watched
            };
            set_core_local(Rc::new(drives.into_iter().map(watch).collect::<Vec<_>>()));
        });
        begun.map_err(Failure::run)?;
        Ok(Self(hosted))
    }

    /// Ends the watch; returns a sentence about each drive that was silent.
    pub(crate) fn end(self) -> Result<Vec<String>, Failure> {
        let found = self.0.door().call(CoreId(0), || async {
            let all: Rc<Vec<Rc<Watched>>> = core_local().expect("the watch has begun");
            let mut words = Vec::new();
            for watched in all.iter() {
                words.extend(watched.words());
                let controller = watched.controller.take();
                // A drive that is silent now does not answer this, either.
                if let (Some(controller), None) = (controller, watched.since.get()) {
                    controller.disconnect().await;
                }
            }
            words
        });
        found.map_err(Failure::run)
    }
}

/// A drive under watch.
#[derive(Default)]
struct Watched {
    name: String,
    controller: RefCell<Option<Controller>>,
    /// Begin of the silence that has not ended.
    since: Cell<Option<Instant>>,
    /// Longest silence that has ended.
    longest: Cell<Duration>,
}

impl Watched {
    /// Notes the end of a silence.
    fn heard(&self) {
        self.longest.set(self.longest());
        self.since.set(None);
    }

    /// Returns the longest silence, with the one that has not ended.
    fn longest(&self) -> Duration {
        let current = self.since.get().map_or(Duration::ZERO, |since| now().since(since));
        self.longest.get().max(current)
    }

    fn words(&self) -> Option<String> {
        let longest = self.longest();
        (longest > Duration::ZERO).then(|| {
            format!(
                "drive {} did not answer for {:.1} s while it was measured: the figures contain \
                 that time; measure again",
                self.name,
                longest.as_secs_f64()
            )
        })
    }
}

/// Asks a drive for a sign of life, until its connection ends.
async fn ask(watched: Rc<Watched>, address: Address, options: Options) {
    let Ok(controller) = Controller::connect(&address, &options).await else { return };
    watched.controller.replace(Some(controller.clone()));
    loop {
        sleep(EVERY).await;
        let asked = now();
        let mut answer = pin!(controller.admin(Sqe::new(Admin::KEEP_ALIVE.0, 0), &[], 0));
        let answered = match timeout(SILENT_AFTER, answer.as_mut()).await {
            Ok(answered) => answered,
            Err(_) => {
                watched.since.set(Some(asked));
                report::print_error(&format!(
                    "drive {} does not answer: waiting, at most {} s",
                    watched.name,
                    options.command_timeout.as_secs_f64()
                ));
                let answered = answer.await;
                watched.heard();
                answered
            }
        };
        // An error status is an answer. Any other error ends the measurement's commands as well.
        if answered.is_err_and(|error| error.status().is_none()) {
            return;
        }
    }
}
