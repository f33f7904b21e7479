//! Lengths, angles and shells as they are typed: a number and its unit, never a bare number.
//!
//! 0.001 of what? Tools that leave that open have flattened small models and kept every key of
//! large ones, so a unit must be said.

/// Metres in each unit of length that is understood.
const LENGTHS: &[(&str, f64)] = &[
    ("mm", 1e-3),
    ("cm", 1e-2),
    ("dm", 1e-1),
    ("km", 1e3),
    ("um", 1e-6),
    ("µm", 1e-6),
    ("m", 1.0),
    ("in", 0.0254),
    ("ft", 0.3048),
];

/// Radians in each unit of angle that is understood.
const ANGLES: &[(&str, f64)] = &[
    ("mrad", 1e-3),
    ("rad", 1.0),
    ("deg", std::f64::consts::PI / 180.0),
    ("°", std::f64::consts::PI / 180.0),
];

/// Splits `text` into a number and one of `units`; the value comes back in the base unit.
fn measure(text: &str, what: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let text = text.trim();
    let number_ends = text
        .char_indices()
        .find(|&(i, c)| !(c.is_ascii_digit() || "+-.".contains(c) || is_exponent(text, i, c)))
        .map_or(text.len(), |(i, _)| i);
    let (number, unit) = (&text[..number_ends], text[number_ends..].trim());
    let names = || units.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
    let Ok(number) = number.parse::<f64>() else {
        return Err(format!("{text:?} is not {what}; write a number and a unit, like {example}"));
    };
    if unit.is_empty() {
        return Err(format!("{text:?} has no unit; say {what} with one of {}, like {example}", names()));
    }
    let Some((_, factor)) = units.iter().find(|(n, _)| *n == unit) else {
        return Err(format!("{unit:?} is not a unit of {what}; it may be {}, like {example}", names()));
    };
    let value = number * factor;
    if !value.is_finite() {
        return Err(format!("{text:?} is too large for {what}"));
    }
    Ok(value)
}

/// True for the `e` of `1e-3` (and not for the one of `1em`).
fn is_exponent(text: &str, at: usize, c: char) -> bool {
    let mut rest = text[at..].chars().skip(1);
    (c == 'e' || c == 'E')
        && match rest.next() {
            Some('+' | '-') => rest.next().is_some_and(|d| d.is_ascii_digit()),
            Some(d) => d.is_ascii_digit(),
            None => false,
        }
}

/// Reads a length above zero, such as `1mm` or `5.6444cm`, in metres.
///
/// # Errors
/// A sentence that says what is missing.
pub fn length(text: &str) -> Result<f64, String> {
    let metres = measure(text, "a length", LENGTHS, "1mm or 0.01m")?;
    if metres > 0.0 { Ok(metres) } else { Err(format!("{text:?} is not above zero; a length must be")) }
}

/// Reads an angle above zero, such as `0.1deg`, in radians.
///
/// # Errors
/// A sentence that says what is missing.
pub fn angle(text: &str) -> Result<f64, String> {
    let radians = measure(text, "an angle", ANGLES, "0.1deg or 2mrad")?;
    if radians > 0.0 { Ok(radians) } else { Err(format!("{text:?} is not above zero; an angle must be")) }
}

/// A bound as it may be given: a length, or a share of the model's own size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Metres.
    Metres(f64),
    /// A share of the model's size, chosen by the reducer.
    Auto,
}

/// Reads a bound: `auto` or a length.
///
/// # Errors
/// As [`length`].
pub fn bound(text: &str) -> Result<Bound, String> {
    if text.trim() == "auto" { Ok(Bound::Auto) } else { length(text).map(Bound::Metres) }
}

/// How far from a node's origin the points lie whose error is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shell {
    /// Metres, the same for every node.
    Metres(f64),
    /// Each joint's own reach, from the skin that hangs on it.
    Skin,
}

/// Reads a shell: `auto`, `0` (origins only) or a length.
///
/// # Errors
/// As [`length`].
pub fn shell(text: &str) -> Result<Shell, String> {
    match text.trim() {
        "auto" => Ok(Shell::Skin),
        "0" => Ok(Shell::Metres(0.0)),
        other => length(other).map(Shell::Metres),
    }
}

/// Reads a number of seconds.
///
/// # Errors
/// If it is not a finite number.
pub fn seconds(text: &str) -> Result<f64, String> {
    let plain = text.trim().strip_suffix('s').unwrap_or(text.trim());
    match plain.trim().parse::<f64>() {
        Ok(t) if t.is_finite() => Ok(t),
        _ => Err(format!("{text:?} is not a time; write a finite number of seconds, like 1.25")),
    }
}

/// `metres` in the unit that reads best, such as `0.83 mm`.
pub fn show_length(metres: f64) -> String {
    let size = metres.abs();
    let (factor, unit) = match size {
        _ if size == 0.0 => return "0 mm".to_owned(),
        _ if size < 1e-5 => (1e6, "µm"),
        _ if size < 0.1 => (1e3, "mm"),
        _ if size < 1e4 => (1.0, "m"),
        _ => (1e-3, "km"),
    };
    format!("{} {unit}", short(metres * factor))
}

/// About four digits, without trailing zeros.
pub fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = value.abs().log10().floor() as i32;
    if !(-4..6).contains(&digits) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.*}", usize::try_from(3 - digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_number_and_a_unit() {
        for (text, metres) in [
            ("1mm", 0.001),
            ("0.5cm", 0.005),
            ("5.6444cm", 0.056444),
            (" 2 in ", 0.0508),
            ("1e-3m", 0.001),
            ("1E2mm", 0.1),
        ] {
            assert!((length(text).unwrap() - metres).abs() < 1e-15, "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_and_told_why() {
        let error = length("0.001").unwrap_err();
        assert!(error.contains("no unit") && error.contains("1mm"), "{error}");
        assert!(angle("3").is_err());
        for bad in ["", "mm", "1 parsec", "-1mm", "0mm", "nanmm", "1e999m", "infm"] {
            assert!(length(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn angles_come_in_degrees_and_radians() {
        assert!((angle("180deg").unwrap() - std::f64::consts::PI).abs() < 1e-15);
        assert_eq!(angle("2mrad").unwrap(), 0.002);
    }

    #[test]
    fn lengths_are_shown_in_the_unit_that_reads_best() {
        assert_eq!(show_length(0.00083), "0.83 mm");
        assert_eq!(show_length(2.5), "2.5 m");
        assert_eq!(show_length(0.0), "0 mm");
        assert_eq!(short(123.456), "123.5");
    }
}
