//! Samples that break the rule of [`clocks`], and samples that keep it.

use super::*;

/// Returns the places of all violations.
fn places(files: &[(&str, &str)]) -> Vec<String> {
    let found = clocks(&Tree::made_up(files));
    found.iter().map(|text| text.split(": ").next().unwrap_or("").to_owned()).collect()
}

const THROUGH_NAMES: &str = r#"
use std::time::Instant;
fn timed(f: impl Fn()) -> (u8, Duration) {
    let begun = Instant::now();
    f();
    (7, begun.elapsed())
}
fn a() {
    let mut longest = Duration::ZERO;
    for _ in 0..3 {
        let (_, took) = timed(|| ());
        longest = longest.max(took);
    }
    assert!(longest < Duration::from_secs(1), "took {longest:?}");
    let ticks = run(|| {
        let stat = read("/proc/thread-self/stat");
        stat.len()
    });
    assert!(
        x && 2 >= ticks,
        "many"
    );
}
"#;

const REACTORS_CLOCK: &str = r"
use csd_reactor::{block_on, now};
fn b() {
    let began = now();
    block_on(f);
    assert!((1..5).contains(&began.elapsed().as_secs()));
}
";

const UNIT_TEST: &str = r"
use std::time::Instant;
fn c() {}
#[cfg(test)]
mod tests {
    fn d() {
        assert!(Instant::now() < x);
    }
}
";

const PYTHON_TEST: &str = r#"
def took(f):
    """Return the time."""
    begun = time.perf_counter()
    f()
    return time.perf_counter() - begun

def test_a():
    found = took(f)
    assert found < 5
    assert 0 < time.process_time() - y < x
"#;

#[test]
fn limits_of_real_times_are_found_through_names_and_functions() {
    let files = [
        ("crates/a/src/c.rs", UNIT_TEST),
        ("crates/a/tests/a.rs", THROUGH_NAMES),
        ("python/tests/test_a.py", PYTHON_TEST),
        ("tests/b/main.rs", REACTORS_CLOCK),
    ];
    let expected = [
        "crates/a/src/c.rs:7",
        "crates/a/tests/a.rs:14",
        "crates/a/tests/a.rs:19",
        "python/tests/test_a.py:10",
        "python/tests/test_a.py:11",
        "tests/b/main.rs:6",
    ];
    assert_eq!(places(&files), expected);
}

const LEAST_TIMES_AND_HANGS: &str = r#"
use std::time::Instant;
fn until(f: impl Fn() -> bool) {
    let start = Instant::now();
    while !f() {
        assert!(start.elapsed() < LIMIT, "never");
        sleep(LOOK_EVERY);
    }
    assert!(start.elapsed() >= least);
    assert!(count < 3, "{:?}", start.elapsed());
    assert!(receive.recv_timeout(LIMIT).is_ok());
}
"#;

const PYTHON_HANGS: &str = r"
def test_a():
    end = time.monotonic() + 5  # assert x < time.monotonic()
    while not f():
        assert time.monotonic() < end
        time.sleep(1)
    assert result.time_s < 5
    subprocess.run(x, timeout=600)
";

/// Not a test.
const EXAMPLE: &str = r"
use std::time::Instant;
fn main() {
    assert!(Instant::now() < x);
}
";

#[test]
fn least_times_and_limits_of_hangs_pass() {
    let files = [
        ("crates/a/tests/a.rs", LEAST_TIMES_AND_HANGS),
        ("python/tests/test_a.py", PYTHON_HANGS),
        ("crates/a/examples/d.rs", EXAMPLE),
    ];
    assert_eq!(places(&files), [""; 0]);
}

const HELPERS: &str = r"
use csd_reactor::block_on;
use csd_reactor::sim::{World, WorldConfig};
pub fn in_world(f: fn()) {
    World::new(1);
}
pub fn really(f: fn()) {
    block_on(f);
}
";

const IN_WORLD: &str = r"
use csd_reactor::now;
fn a() {
    in_world(|| {
        let begun = now();
        assert!(begun.elapsed() < x);
    });
}
";

#[test]
fn the_time_of_a_simulated_world_passes_and_no_other_of_the_reactor() {
    let real = IN_WORLD.replace("in_world", "really");
    let (helpers, simulation) = ("crates/a/tests/common/mod.rs", "tests/simulation/a.rs");
    assert_eq!(places(&[("crates/a/tests/b.rs", IN_WORLD), (helpers, HELPERS)]), [""; 0]);
    assert_eq!(places(&[(simulation, &real)]), [""; 0], "nothing there runs on a real reactor");
    let files = [("crates/a/tests/b.rs", &real[..]), (helpers, HELPERS)];
    assert_eq!(places(&files), ["crates/a/tests/b.rs:6"]);
}
