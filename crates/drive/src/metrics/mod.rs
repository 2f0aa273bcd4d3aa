//! Metrics: counts of commands by operation and status, and the page that Prometheus scrapes.

mod counts;
mod endpoint;

pub use counts::{Begun, CoreMetrics, Metrics};
pub use endpoint::{render, serve};
