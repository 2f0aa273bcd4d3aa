//! `csd bench sched`: the cores that a scheduler of background work chooses, by windows of a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use csd_bench::random;
use csd_sched::{Cost, Scheduler, Task, Threshold, Window};
use serde_json::{Value, json};

use crate::cli::bench::Sched;
use crate::report::{Failure, Report};

/// Most cores of a window: more than any machine has, and an input cannot ask for all memory.
const CORES_MAX: usize = 4096;

/// Most choices of one window.
const REQUESTS_MAX: u64 = 1_000_000;

/// A line of the file.
#[derive(Debug, PartialEq)]
struct Line {
    window: Window,
    requests: u64,
}

/// Replays the windows, and reports the idle group and the choices after each.
pub(super) fn sched(options: &Sched) -> Result<Report, Failure> {
    let name = options.replay.display().to_string();
    let input: Box<dyn BufRead> = if options.replay.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&options.replay);
        Box::new(BufReader::new(file.map_err(|error| Failure::os(format!("open {name}"), &error))?))
    };
    let mut random = random::numbers(options.seed);
    let mut scheduler: Option<Scheduler> = None;
    let mut text = String::new();
    let mut windows = Vec::new();
    for (number, line) in (1..).zip(input.lines()) {
        let line = line.map_err(|error| Failure::os(format!("read {name}"), &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |why: String| Failure::usage(format!("{name}, line {number}: {why}"));
        let Line { window, requests } = parse(&line).map_err(wrong)?;
        let cores = window.cores();
        let scheduler = scheduler.get_or_insert_with(|| {
            let threshold = options.threshold.map(|factor| Threshold { factor });
            Scheduler::new(options.policy, cores, threshold, Cost::default())
        });
        if scheduler.window().cores() != cores {
            let before = scheduler.window().cores();
            return Err(wrong(format!("{cores} cores, where the lines before have {before}")));
        }
        scheduler.observe(&window);
        let (lines, described) = choices(scheduler, &window, requests, &mut random);
        text += &lines;
        windows.push(described);
    }
    if windows.is_empty() {
        return Err(Failure::usage(format!("{name} has no windows")));
    }
    let policy = options.policy.name();
    let result = json!({ "policy": policy, "seed": options.seed.to_string(), "windows": windows });
    Ok(Report::new(text, result))
}

/// Makes the choices of a window. Tasks arise on its active cores in turns, each of one
/// microsecond; none waits.
fn choices(
    scheduler: &mut Scheduler,
    window: &Window,
    requests: u64,
    random: &mut impl Iterator<Item = u64>,
) -> (String, Value) {
    let group = scheduler.group().idle().to_vec();
    let active: Vec<usize> = (0..window.cores()).filter(|core| window.is_active[*core]).collect();
    let mut origins = active.iter().copied().cycle();
    let mut text = format!("G = {group:?}\n");
    let mut described = Vec::new();
    for random in random.take(usize::try_from(requests).unwrap_or(usize::MAX)) {
        let origin = origins.next().unwrap_or_default();
        let decision = scheduler.choose(Task { origin, work_ns: 1_000 }, |_| 0, random);
        let why = decision.reason.text();
        text += &format!("  core {origin} -> core {}: {why}\n", decision.core);
        described.push(json!({ "origin": origin, "core": decision.core, "reason": why }));
    }
    (text, json!({ "group": group, "choices": described }))
}

/// Parses a line: an object with `active`, the numbers of the active cores or true and false for
/// each core, `utilisation`, a share from 0 to 1 for each core, and `requests`.
fn parse(line: &str) -> Result<Line, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let shares = value["utilisation"].as_array().ok_or("\"utilisation\" is no list")?;
    if !(1..=CORES_MAX).contains(&shares.len()) {
        return Err(format!("{} cores; there are 1 to {CORES_MAX}", shares.len()));
    }
    let share = |share: &Value| {
        let number = share.as_f64().filter(|share| (0.0..=1.0).contains(share));
        number.ok_or_else(|| format!("a utilisation is from 0 to 1, not {share}"))
    };
    let utilisation = shares.iter().map(share).collect::<Result<Vec<f64>, _>>()?;
    let is_active = active(&value["active"], utilisation.len())?;
    let requests = value["requests"].as_u64().filter(|requests| *requests <= REQUESTS_MAX);
    let requests =
        requests.ok_or_else(|| format!("\"requests\" is a number from 0 to {REQUESTS_MAX}"))?;
    Ok(Line { window: Window { is_active, utilisation }, requests })
}

fn active(value: &Value, cores: usize) -> Result<Vec<bool>, String> {
    let list = value.as_array().ok_or("\"active\" is no list")?;
    if list.len() == cores && list.iter().all(Value::is_boolean) {
        return Ok(list.iter().filter_map(Value::as_bool).collect());
    }
    let mut is_active = vec![false; cores];
    for number in list {
        let core = number.as_u64().and_then(|core| usize::try_from(core).ok());
        let flag = core.and_then(|core| is_active.get_mut(core));
        *flag.ok_or_else(|| format!("{number} is none of the cores 0 to {}", cores - 1))? = true;
    }
    Ok(is_active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_cores_are_numbers_or_a_flag_each() {
        let by_number =
            parse(r#"{"active": [1, 3], "utilisation": [0, 0.5, 0, 1], "requests": 2}"#);
        let flags = r#""active": [false, true, false, true]"#;
        let by_flag =
            parse(&format!(r#"{{{flags}, "utilisation": [0, 0.5, 0, 1], "requests": 2}}"#));
        let window = Window {
            is_active: vec![false, true, false, true],
            utilisation: vec![0.0, 0.5, 0.0, 1.0],
        };
        assert_eq!(by_number, Ok(Line { window, requests: 2 }));
        assert_eq!(by_flag, by_number);
    }

    #[test]
    fn what_is_no_window_is_refused_in_words() {
        for (line, why) in [
            ("{", "EOF while parsing"),
            (r#"{"active": [], "requests": 1}"#, "\"utilisation\" is no list"),
            (r#"{"active": [], "utilisation": [], "requests": 1}"#, "0 cores"),
            (r#"{"active": [], "utilisation": [1.5], "requests": 1}"#, "from 0 to 1, not 1.5"),
            (r#"{"active": [1], "utilisation": [0], "requests": 1}"#, "1 is none of the cores"),
            (r#"{"active": [-1], "utilisation": [0], "requests": 1}"#, "-1 is none of the cores"),
            (r#"{"utilisation": [0], "requests": 1}"#, "\"active\" is no list"),
            (r#"{"active": [], "utilisation": [0]}"#, "\"requests\" is a number"),
            (r#"{"active": [], "utilisation": [0], "requests": 9999999}"#, "\"requests\""),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
