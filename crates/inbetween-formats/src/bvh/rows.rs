//! The second half of a BVH file: its rows of numbers.

use super::hierarchy::Hierarchy;
use super::read::{Sink, What};
use super::text::{Text, is_space, number, quote};
use crate::{FormatError, Note, Severity};

/// Most repaired numbers that are noted one by one; the rest is counted.
const NOTES_EACH: usize = 8;

/// Reads the numbers of the motion.
///
/// A frame normally is a line. It may be wrapped over several, or several may share one, as long
/// as frames and lines end together, or the numbers are exactly as many as the header's count
/// needs. A line with a number too many or too few is an error that names it: guessing would move
/// every value after it to another joint.
pub(super) struct Rows<'t, 'a> {
    text: &'t mut Text<'a>,
    h: &'t Hierarchy,
    declared: u64,
    notes: &'t mut Vec<Note>,
    repairs: usize,
    row: Vec<f64>,
    frames: u64,
    /// First line whose numbers do not fill whole frames, with how many it has.
    odd: Option<(usize, usize)>,
    misaligned: bool,
}

impl<'t, 'a> Rows<'t, 'a> {
    pub(super) fn new(
        text: &'t mut Text<'a>,
        h: &'t Hierarchy,
        declared: u64,
        notes: &'t mut Vec<Note>,
    ) -> Self {
        let row = Vec::with_capacity(h.channels.len());
        Self { text, h, declared, notes, repairs: 0, row, frames: 0, odd: None, misaligned: false }
    }

    pub(super) fn read(mut self, sinks: &mut [Sink]) -> Result<u64, FormatError> {
        let width = self.h.channels.len();
        // A recorder that was cut off leaves 0 in the header: then every row counts.
        let wanted = if self.declared == 0 { u64::MAX } else { self.declared };
        // Numbers beyond the last frame that is taken.
        let mut extra = 0u64;
        let mut junk: Option<usize> = None;
        'lines: while self.text.pos < self.text.bytes.len() {
            let line = self.text.line;
            let mut on_line = 0usize;
            let mut ended_inside = false;
            let started_here = self.row.is_empty();
            loop {
                while self.text.peek().is_some_and(|b| is_space(b) && b != b'\n' && b != b'\r') {
                    self.text.pos += 1;
                }
                match self.text.peek() {
                    None => break,
                    Some(b'\n' | b'\r') => {
                        self.text.step();
                        break;
                    }
                    Some(_) => {}
                }
                let start = self.text.pos;
                while self.text.peek().is_some_and(|b| !is_space(b)) {
                    self.text.pos += 1;
                }
                let word = &self.text.bytes[start..self.text.pos];
                if self.frames >= wanted {
                    if number(word).is_none() && split_numbers(word).is_none() {
                        junk = Some(line);
                        break 'lines;
                    }
                    extra += 1;
                    on_line += 1;
                    continue;
                }
                match number(word) {
                    Some(v) if v.is_finite() => self.push(v, sinks),
                    _ => {
                        let parts = self.repair(word, line)?;
                        on_line += parts.len() - 1;
                        for v in parts {
                            self.push(v, sinks);
                        }
                    }
                }
                on_line += 1;
                ended_inside |= self.row.is_empty();
            }
            // Frames and lines end together unless this line closes one frame and opens another,
            // or closes one that began above and goes on.
            let closes_and_goes_on =
                ended_inside && (!self.row.is_empty() || (!started_here && on_line > width));
            let whole = on_line.is_multiple_of(width);
            if !whole && !self.misaligned && self.odd.is_none() {
                self.odd = Some((line, on_line));
            }
            if closes_and_goes_on || (extra > 0 && !whole) {
                self.misaligned = true;
            } else if self.row.is_empty() && !self.misaligned && extra == 0 {
                self.odd = None;
            }
        }
        self.finish(extra, junk)
    }

    fn push(&mut self, value: f64, sinks: &mut [Sink]) {
        self.row.push(value);
        if self.row.len() == self.h.channels.len() {
            self.frames += 1;
            for s in sinks {
                match s.what {
                    What::Turn(_) => s.values.push(self.row[s.columns[0]].to_radians()),
                    _ => s.values.extend(s.columns.iter().map(|&c| self.row[c])),
                }
            }
            self.row.clear();
        }
    }

    /// Where a number stands, in words.
    fn place(&self, line: usize) -> String {
        let column = self.row.len().min(self.h.channels.len() - 1);
        let (joint, channel) = self.h.channels[column];
        format!(
            "line {line}, number {} of frame {} ({:?} {})",
            column + 1,
            self.frames + 1,
            self.h.joints[joint].name,
            channel.name()
        )
    }

    /// Numbers that lost the blank between them, or an error.
    fn repair(&mut self, word: &[u8], line: usize) -> Result<Vec<f64>, FormatError> {
        let place = self.place(line);
        let Some(parts) = split_numbers(word) else {
            let advice = if word.contains(&b',') {
                "write numbers with a decimal point and blanks between them, without commas"
            } else {
                "correct or remove the frame; captured values must be finite numbers"
            };
            return Err(FormatError::Broken {
                file: self.text.file.to_owned(),
                place,
                expected: "a finite number".to_owned(),
                found: quote(word),
                advice: advice.to_owned(),
            });
        };
        self.repairs += 1;
        if self.repairs <= NOTES_EACH {
            let what = format!("{} was read as {} numbers with a missing space", quote(word), parts.len());
            self.notes.push(Note::new(Severity::Repaired, place, what));
        }
        Ok(parts)
    }

    fn finish(self, mut extra: u64, junk: Option<usize>) -> Result<u64, FormatError> {
        let width = self.h.channels.len() as u64;
        let partial = self.row.len() as u64;
        if self.repairs > NOTES_EACH {
            let what = format!("{} more such repairs", self.repairs - NOTES_EACH);
            self.notes.push(Note::new(Severity::Repaired, "MOTION", what));
        }
        let exact = extra == 0 && partial == 0 && self.frames == self.declared;
        if self.misaligned && !exact {
            let (line, count) = self.odd.unwrap_or((self.text.line, 0));
            return Err(self.text.broken(
                line,
                format!("{width} numbers for a frame, one for each channel"),
                format!("{count}"),
                "a number is missing or too many; correct the line or remove the frame",
            ));
        }
        if self.misaligned {
            let (line, count) = self.odd.unwrap_or((self.text.line, 0));
            let what = format!(
                "{count} numbers where a frame has {width}; all numbers together are exactly the {} frames \
                 of the header, so they were read one after another",
                self.declared
            );
            self.notes.push(Note::new(Severity::Repaired, format!("line {line}"), what));
        }
        let more_to_come = self.declared > self.frames + 1;
        if partial > 0 && !more_to_come {
            let (line, _) = self.odd.unwrap_or((self.text.line, 0));
            return Err(self.text.broken(
                line,
                format!("{width} numbers for frame {}, one for each channel", self.frames + 1),
                format!("{partial} before the end of the file"),
                "the file is truncated or a number is missing; complete the frame or remove it",
            ));
        }
        if partial > 0 {
            let (line, _) = self.odd.unwrap_or((self.text.line, 0));
            let what = format!(
                "the file breaks off (truncated) in frame {}, which has {partial} of {width} numbers and was left out",
                self.frames + 1
            );
            self.notes.push(Note::new(Severity::Lost, format!("line {line}"), what));
        }
        extra /= width;
        let found = self.frames + extra;
        if found != self.declared {
            let taken = if self.declared == 0 {
                "all rows were taken"
            } else if extra > 0 {
                "the header's count was taken"
            } else {
                "the rows that are there were taken"
            };
            let what =
                format!("the header says {} frames but the file holds {found} rows; {taken}", self.declared);
            let severity = if extra > 0 { Severity::Lost } else { Severity::Repaired };
            self.notes.push(Note::new(severity, "MOTION", what));
        }
        if let Some(line) = junk {
            let what = "what follows the last frame is not numbers and was ignored";
            self.notes.push(Note::new(Severity::Repaired, format!("line {line}"), what));
        }
        Ok(self.frames)
    }
}

/// Splits `0.0-7.5` before each sign that cannot belong to an exponent; `None` if that does not
/// make every part a finite number.
fn split_numbers(word: &[u8]) -> Option<Vec<f64>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for i in 1..word.len() {
        if matches!(word[i], b'-' | b'+') && !matches!(word[i - 1], b'e' | b'E') {
            parts.push(number(&word[start..i]).filter(|v| v.is_finite())?);
            start = i;
        }
    }
    parts.push(number(&word[start..]).filter(|v| v.is_finite())?);
    (parts.len() > 1).then_some(parts)
}
