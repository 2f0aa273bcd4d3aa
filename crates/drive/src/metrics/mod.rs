//! Metrics: counts of commands by operation and status, and the page that Prometheus scrapes.

mod counts;
mod endpoint;
mod services;
mod text;

pub use counts::{Begun, CoreMetrics, Metrics};
pub use endpoint::{render, serve};
