//! The choice of the core for background work that a host's command gave rise to. Time, loads and
//! random numbers are arguments, so that one seed reproduces every decision.
//!
//! A [`Monitor`] turns busy times into the utilisation of every core, once a window of requests. A
//! [`Scheduler`] names a core for each task by one of four [`Policy`]s: two keep it where it arose,
//! `bts` is the scheduler of Park et al., *BTS: Exploring Effects of Background Task-Aware
//! Scheduling for Key-Value CSDs*, section IV.A, and `adaptive` compares what moving costs with
//! what it saves. A [`Trace`] keeps the latest decisions with their reasons.
//!
//! Cores are numbered from 0. Utilisation is the share of a core's time that foreground work took,
//! from 0 to 1.

mod adaptive;
mod idle_group;
mod monitor;
mod policy;
mod scheduler;
mod threshold;
mod trace;

pub use adaptive::{Adaptive, Cost};
pub use idle_group::IdleGroup;
pub use monitor::{Monitor, Window};
pub use policy::{ParsePolicyError, Policy};
pub use scheduler::{Decision, Reason, Scheduler, Task};
pub use threshold::Threshold;
pub use trace::{Entry, Trace};
