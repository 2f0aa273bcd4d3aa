//! Results of `csd bench`. Asserts no speed.

use serde_json::Value;

use crate::support::harness::Done;
use crate::support::json_page::Page;

/// Asserts success, with a warning if the machine is slow, and returns the result.
#[track_caller]
pub(crate) fn measured(done: Done) -> Value {
    let said = done.json();
    let warned = said["warnings"].as_array().unwrap_or_else(|| panic!("{}", done.stderr)).len();
    let valid = said["result"]["valid"] == true;
    let rows = said["result"]["workloads"].as_array().unwrap();
    let conclusive = rows.iter().all(|row| row["inconclusive"] == false);
    assert_eq!(done.code, if valid && conclusive { 0 } else { 4 }, "{said}");
    assert!(valid && conclusive || warned > 0, "{said}");
    said["result"].clone()
}

/// Returns the names of the workloads, and asserts that their figures are positive.
pub(crate) fn workloads(result: &Value) -> Vec<&str> {
    let rows = result["workloads"].as_array().unwrap();
    let positive = |row: &Value, field: &str| row[field].as_f64().unwrap() > 0.0;
    for row in rows {
        assert!(positive(row, "floor_per_s") && positive(row, "drive_per_s"), "{row}");
        assert_eq!(row["ratio_quartiles"].as_array().unwrap().len(), 3);
    }
    rows.iter().map(|row| row["workload"].as_str().unwrap()).collect()
}

/// Arguments of the shortest measurement of values.
pub(crate) const SHORT_KV: [&str; 9] =
    ["bench", "kv", "--pairs", "1", "--keys", "40", "--value-bytes", "1000", "--json"];

/// Asserts the documented fields of a measurement of values, and returns its rows' names.
#[track_caller]
pub(crate) fn kv_workloads(done: Done) -> Vec<String> {
    let result = measured(done);
    let wrong = Page::read().wrong("bench kv", "csd bench kv", &result);
    assert!(wrong.is_empty(), "{wrong:#?}\n{result}");
    let rows = result["workloads"].as_array().unwrap();
    for row in rows {
        let [p50, p99] = ["p50", "p99"].map(|name| row["latency_us"][name].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99 && row["drive_bytes_per_s"].as_f64().unwrap() > 0.0);
    }
    let named = workloads(&result).into_iter().zip(rows);
    named.map(|(name, row)| format!("{name}, {}", row["floor"].as_str().unwrap())).collect()
}
