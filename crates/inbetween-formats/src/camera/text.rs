//! Where in a file something is, for messages, and numbers out of text and JSON.

use std::fmt::Display;

use serde_json::Value;

use crate::FormatError;

/// The file being read.
pub(super) struct Place<'a> {
    pub file: &'a str,
}

impl<'a> Place<'a> {
    pub fn new(file: &'a str) -> Self {
        Self { file }
    }

    pub fn broken(&self, place: impl Display, expected: impl Display, found: impl Display) -> FormatError {
        self.broken_with(place, expected, found, "correct the file or export it again")
    }

    pub fn broken_with(
        &self,
        place: impl Display,
        expected: impl Display,
        found: impl Display,
        advice: &str,
    ) -> FormatError {
        FormatError::Broken {
            file: self.file.to_owned(),
            place: place.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
            advice: advice.to_owned(),
        }
    }

    /// A finite number written as text.
    pub fn number(&self, text: &str, place: impl Display) -> Result<f64, FormatError> {
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.broken(place, "a finite number", format!("{:?}", shortened(text)))),
        }
    }

    /// A document of JSON.
    pub fn json(&self, text: &str) -> Result<Value, FormatError> {
        serde_json::from_str(text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            self.broken(place, "JSON", error)
        })
    }

    /// A finite number in JSON.
    pub fn json_number(&self, value: &Value, place: impl Display) -> Result<f64, FormatError> {
        match value.as_f64() {
            Some(number) if number.is_finite() => Ok(number),
            _ => Err(self.broken(place, "a finite number", described(value))),
        }
    }

    /// A list of `N` finite numbers in JSON.
    pub fn json_numbers<const N: usize>(
        &self,
        value: &Value,
        place: impl Display,
    ) -> Result<[f64; N], FormatError> {
        let list = value.as_array().filter(|list| list.len() == N);
        let list =
            list.ok_or_else(|| self.broken(&place, format!("a list of {N} numbers"), described(value)))?;
        let mut numbers = [0.0; N];
        for (i, item) in list.iter().enumerate() {
            numbers[i] = self.json_number(item, format!("{place}[{i}]"))?;
        }
        Ok(numbers)
    }
}

/// A JSON value in a few words.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "an object".to_owned(),
        other => shortened(&other.to_string()),
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}
