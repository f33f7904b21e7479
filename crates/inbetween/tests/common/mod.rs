//! Reading the files of numbers worked out elsewhere.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;

pub fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../testdata/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let document: Value = serde_json::from_str(&text).unwrap();
    let cases = document["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

pub fn rows(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().flat_map(numbers).collect()
}

pub fn vectors<const N: usize>(value: &Value) -> Vec<[f64; N]> {
    value.as_array().unwrap().iter().map(|row| numbers(row).try_into().unwrap()).collect()
}

pub fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap_or_else(|| panic!("no number {key}"))
}

pub fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

pub fn assert_close(found: f64, expected: f64, tolerance: f64, place: &str) {
    let error = (found - expected).abs();
    assert!(
        error <= tolerance,
        "{place}: {found} instead of {expected}, {error:e} off where {tolerance:e} is allowed"
    );
}
