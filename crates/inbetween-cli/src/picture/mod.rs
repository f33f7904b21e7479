//! Pictures: curves with their keys and the error beneath, as SVG for pages and as PNG.
//!
//! A drawing is written once against [`Canvas`]; [`svg`] and [`png`] carry it out. Colours are
//! named by what they stand for ([`Ink`]), so that a page can turn dark without drawing anew.

pub mod figure;
pub mod page;
pub mod panel;
pub mod png;
pub mod svg;

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Words and numbers.
    Text,
    /// Quieter words.
    Quiet,
    /// The frame of a panel.
    Frame,
    /// Lines behind the curves.
    Grid,
    /// The background of a panel.
    Paper,
    /// The curve as it was.
    Source,
    /// One of the curves, by component.
    Series(u8),
    /// How far two curves lie apart.
    Error,
    /// The bound, and the place where the error is largest.
    Mark,
}

impl Ink {
    /// Red, green and blue on light paper and on dark.
    pub fn colours(self) -> [(u8, u8, u8); 2] {
        match self {
            Self::Text => [(28, 32, 38), (230, 233, 238)],
            Self::Quiet => [(98, 106, 118), (150, 158, 170)],
            Self::Frame => [(190, 196, 206), (74, 82, 94)],
            Self::Grid => [(228, 231, 236), (44, 50, 60)],
            Self::Paper => [(255, 255, 255), (24, 27, 33)],
            Self::Source => [(150, 157, 168), (120, 128, 140)],
            // Told apart also by those who do not see red and green (after Okabe and Ito).
            Self::Series(0) => [(0, 114, 178), (86, 180, 233)],
            Self::Series(1) => [(213, 94, 0), (240, 140, 60)],
            Self::Series(2) => [(0, 138, 102), (60, 200, 160)],
            Self::Series(3) => [(170, 80, 140), (220, 140, 190)],
            Self::Series(_) => [(120, 110, 20), (210, 200, 90)],
            Self::Error => [(196, 60, 72), (240, 110, 120)],
            Self::Mark => [(196, 60, 72), (240, 110, 120)],
        }
    }

    /// The name of its class in a page.
    pub fn class(self) -> String {
        match self {
            Self::Series(i) => format!("s{}", i.min(4)),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Every ink there is.
    pub const ALL: [Self; 13] = [
        Self::Text,
        Self::Quiet,
        Self::Frame,
        Self::Grid,
        Self::Paper,
        Self::Source,
        Self::Series(0),
        Self::Series(1),
        Self::Series(2),
        Self::Series(3),
        Self::Series(4),
        Self::Error,
        Self::Mark,
    ];
}

/// Which end of a text stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Pen {
    /// Its colour.
    pub ink: Ink,
    /// Its width in pixels.
    pub width: f64,
    /// Broken into dashes.
    pub dashed: bool,
}

impl Pen {
    /// An unbroken line.
    pub fn solid(ink: Ink, width: f64) -> Self {
        Self { ink, width, dashed: false }
    }
}

/// Something to draw on. Pixels; x to the right, y down.
pub trait Canvas {
    /// A filled rectangle.
    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, ink: Ink);
    /// A line through points.
    fn line(&mut self, points: &[(f64, f64)], pen: Pen);
    /// A filled shape, half transparent.
    fn area(&mut self, points: &[(f64, f64)], ink: Ink);
    /// A filled disc.
    fn dot(&mut self, x: f64, y: f64, radius: f64, ink: Ink);
    /// A line of words.
    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, ink: Ink, words: &str);
}

/// A step of 1, 2 or 5 times a power of ten that divides `span` into about `parts`.
pub fn nice_step(span: f64, parts: usize) -> f64 {
    if !(span.is_finite() && span > 0.0) {
        return 1.0;
    }
    let raw = span / parts.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let mantissa = raw / power;
    let nice = if mantissa <= 1.0 {
        1.0
    } else if mantissa <= 2.0 {
        2.0
    } else if mantissa <= 5.0 {
        5.0
    } else {
        10.0
    };
    nice * power
}

/// Multiples of [`nice_step`] inside `low`..=`high`, with their labels.
pub fn ticks(low: f64, high: f64, parts: usize) -> Vec<(f64, String)> {
    let step = nice_step(high - low, parts);
    let digits = usize::try_from((-step.log10().floor()) as i64).unwrap_or(0).min(9);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last.min(first + 100))
        .map(|i| {
            let value = i as f64 * step;
            let value = if value == 0.0 { 0.0 } else { value };
            (value, format!("{value:.digits$}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        let labels: Vec<String> = ticks(-0.31, 0.92, 5).into_iter().map(|(_, l)| l).collect();
        assert_eq!(labels, ["0.0", "0.5"]);
        let labels: Vec<String> = ticks(0.0, 3.4, 6).into_iter().map(|(_, l)| l).collect();
        assert_eq!(labels, ["0", "1", "2", "3"]);
        assert_eq!(ticks(5.0, 5.0, 4).len(), 1);
    }
}
