//! Reads BVH, also as it is found in the wild.
//!
//! The hierarchy is read word by word, so line breaks and indentation do not matter. The numbers
//! are read in one pass straight into the arrays of the curves, frame after frame, so a long take
//! takes no more memory than its numbers. What the header claims is only believed as far as there
//! are bytes to hold it. Sure repairs become notes; a number that cannot be read is an error.

use std::borrow::Cow;
use std::sync::Arc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, AxisName, Binding, Clip, Curve, CurveError, EulerBetween, EulerCurve, FrameRate, Joint, NodeKind,
    Property, Skeleton, Track, TrackData, Transform, ValueKind,
};

use super::DEFAULT_UNIT;
use crate::convention::AxisMap;
use crate::{Convention, FormatError, Import, Input, Note, ReadOptions, Severity, Source};

/// Most notes of one sort that are given one by one; the rest is counted.
const NOTES_EACH: usize = 8;

/// What a joint's channel moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Position(usize),
    Rotation(AxisName),
    Scale(usize),
}

impl Channel {
    fn from_word(word: &[u8]) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        let (axis, what) = lower.split_first()?;
        let index = match axis {
            b'x' => 0,
            b'y' => 1,
            b'z' => 2,
            _ => return None,
        };
        match what {
            b"position" | b"pos" | b"translation" => Some(Self::Position(index)),
            b"rotation" | b"rot" => Some(Self::Rotation([AxisName::X, AxisName::Y, AxisName::Z][index])),
            b"scale" | b"scaling" => Some(Self::Scale(index)),
            _ => None,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Position(i) => format!("{}position", ['X', 'Y', 'Z'][i]),
            Self::Rotation(a) => format!("{}rotation", a.letter().to_ascii_uppercase()),
            Self::Scale(i) => format!("{}scale", ['X', 'Y', 'Z'][i]),
        }
    }
}

/// The text, where we are in it, and on which line (from 1).
struct Text<'a> {
    bytes: &'a [u8],
    pos: usize,
    line: usize,
    file: &'a str,
}

impl<'a> Text<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Steps over one byte and counts lines; CR, LF and CR LF all end one.
    fn step(&mut self) {
        let b = self.bytes[self.pos];
        self.pos += 1;
        if b == b'\n' || (b == b'\r' && self.peek() != Some(b'\n')) {
            self.line += 1;
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.step();
        }
    }

    /// The next word; a brace is a word of its own. Empty at the end of the file.
    fn word(&mut self) -> &'a [u8] {
        self.skip_space();
        let start = self.pos;
        if matches!(self.peek(), Some(b'{' | b'}')) {
            self.pos += 1;
        } else {
            while self.peek().is_some_and(|b| !is_space(b) && b != b'{' && b != b'}') {
                self.pos += 1;
            }
        }
        &self.bytes[start..self.pos]
    }

    fn peek_word(&mut self) -> &'a [u8] {
        self.skip_space();
        let (pos, line) = (self.pos, self.line);
        let word = self.word();
        (self.pos, self.line) = (pos, line);
        word
    }

    /// What is left of the line up to an opening brace, without blanks around it.
    fn rest_of_line(&mut self) -> &'a [u8] {
        let start = self.pos;
        while self.peek().is_some_and(|b| !matches!(b, b'\n' | b'\r' | b'{')) {
            self.pos += 1;
        }
        trim(&self.bytes[start..self.pos])
    }

    fn broken(
        &self,
        line: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> FormatError {
        FormatError::Broken {
            file: self.file.to_owned(),
            place: format!("line {line}"),
            expected: expected.into(),
            found: found.into(),
            advice: advice.into(),
        }
    }

    /// Reads a number of the hierarchy.
    fn number(&mut self, expected: &str) -> Result<f64, FormatError> {
        let word = self.word();
        match number(word) {
            Some(v) if v.is_finite() => Ok(v),
            _ => Err(self.broken(
                self.line,
                format!("{expected}, a finite number"),
                quote(word),
                "write three numbers with a decimal point, apart by blanks",
            )),
        }
    }

    fn offset(&mut self) -> Result<DVec3, FormatError> {
        let x = self.number("the x of OFFSET")?;
        let y = self.number("the y of OFFSET")?;
        let z = self.number("the z of OFFSET")?;
        Ok(DVec3::new(x, y, z))
    }
}

fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b || b == 0
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_space(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_space(*last)
    {
        bytes = rest;
    }
    bytes
}

fn number(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A word as it is shown in a message.
fn quote(word: &[u8]) -> String {
    if word.is_empty() {
        return "the end of the file".to_owned();
    }
    let text = String::from_utf8_lossy(&word[..word.len().min(60)]);
    format!("{text:?}{}", if word.len() > 60 { " …" } else { "" })
}

/// Text in UTF-8 or, where it is not that, as it would read in Latin-1.
fn decode_name(bytes: &[u8], latin: &mut bool) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            *latin = true;
            bytes.iter().map(|&b| char::from(b)).collect()
        }
    }
}

/// The bytes as UTF-8: without a byte order mark, and from UTF-16 where the mark says so.
fn plain_text<'a>(bytes: &'a [u8], notes: &mut Vec<Note>) -> Cow<'a, [u8]> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return Cow::Borrowed(rest);
    }
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(bytes),
    };
    notes.push(Note::new(Severity::Info, "", "the file is UTF-16 text and was read as that"));
    let units = bytes[2..].chunks_exact(2).map(|c| unit([c[0], c[1]]));
    Cow::Owned(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect::<String>().into_bytes())
}

/// The hierarchy: joints and, in the order of the motion rows, whose channel is which.
#[derive(Default)]
struct Hierarchy {
    joints: Vec<Joint>,
    channels: Vec<(usize, Channel)>,
}

/// Reads a whole file.
pub(super) fn read(input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
    let mut notes = Vec::new();
    let bytes = plain_text(input.bytes, &mut notes);
    let mut text = Text { bytes: &bytes, pos: 0, line: 1, file: input.name };
    let hierarchy = read_hierarchy(&mut text, &mut notes)?;
    let clips = read_motion(&mut text, &hierarchy, options, &mut notes)?;
    let skeleton = Skeleton::new(hierarchy.joints).expect("a parent is read before its children");
    Ok(Import {
        format: "bvh",
        skeleton,
        clips,
        notes,
        convention: Convention { metres_per_unit: DEFAULT_UNIT, axes: AxisMap::SAME },
        in_house_units: false,
        source: Source::None,
    })
}

/// What a brace that is open belongs to; beside it stands the line that opened it.
enum Open {
    Joint(usize),
    EndSite { of: usize, offset: DVec3 },
}

fn read_hierarchy(text: &mut Text<'_>, notes: &mut Vec<Note>) -> Result<Hierarchy, FormatError> {
    let first = text.peek_word();
    if first.eq_ignore_ascii_case(b"HIERARCHY") {
        text.word();
    } else if first.eq_ignore_ascii_case(b"ROOT") {
        notes.push(Note::new(Severity::Repaired, "line 1", "the word HIERARCHY is missing"));
    } else {
        let advice = "check that this is a BVH file; it begins with HIERARCHY and a ROOT";
        return Err(text.broken(text.line, "the word HIERARCHY", quote(first), advice));
    }
    let mut h = Hierarchy::default();
    let mut latin = false;
    let mut open: Vec<(Open, usize)> = Vec::new();
    loop {
        let (parent, in_end_site) = match open.last() {
            Some((Open::Joint(j), _)) => (Some(*j), false),
            Some((Open::EndSite { .. }, _)) => (None, true),
            None => (None, false),
        };
        let word = text.word();
        let line = text.line;
        let is = |what: &str| word.eq_ignore_ascii_case(what.as_bytes());
        if (is("ROOT") && open.is_empty()) || ((is("JOINT") || is("ROOT")) && parent.is_some()) {
            let name = decode_name(text.rest_of_line(), &mut latin);
            if is("ROOT") && parent.is_some() {
                let what = format!("ROOT {name:?} stands inside another joint and was read as a JOINT");
                notes.push(Note::new(Severity::Repaired, format!("line {line}"), what));
            }
            expect_brace(text, &format!("the joint {name:?}"))?;
            let mut joint = Joint::new(name, parent, Transform::IDENTITY);
            joint.kind = NodeKind::Joint;
            open.push((Open::Joint(h.joints.len()), line));
            h.joints.push(joint);
        } else if is("END") && parent.is_some() {
            // "End Site", "End site", with or without a name after it.
            text.rest_of_line();
            expect_brace(text, "the End Site")?;
            let of = parent.expect("just seen");
            open.push((Open::EndSite { of, offset: DVec3::ZERO }, line));
        } else if is("OFFSET") && !open.is_empty() {
            let v = text.offset()?;
            match open.last_mut() {
                Some((Open::Joint(j), _)) => h.joints[*j].rest.translation = v,
                Some((Open::EndSite { offset, .. }, _)) => *offset = v,
                None => {}
            }
        } else if is("CHANNELS") && (parent.is_some() || in_end_site) {
            read_channels(text, parent, &mut h)?;
        } else if word == b"}" && !open.is_empty() {
            if let Some((Open::EndSite { of, offset }, _)) = open.pop() {
                h.joints[of].tips.push(offset);
            }
        } else if open.is_empty() && (is("MOTION") || (word.is_empty() && !h.joints.is_empty())) {
            break;
        } else {
            return Err(unexpected(text, word, line, &open, &h));
        }
    }
    if h.joints.is_empty() {
        let advice = "a BVH file describes at least one ROOT before its motion";
        return Err(text.broken(text.line, "ROOT and a name", "MOTION", advice));
    }
    if latin {
        let what = "names of joints are not UTF-8 and were read as Latin-1";
        notes.push(Note::new(Severity::Repaired, "HIERARCHY", what));
    }
    note_shared_names(&h.joints, notes);
    Ok(h)
}

fn unexpected(
    text: &Text<'_>,
    word: &[u8],
    line: usize,
    open: &[(Open, usize)],
    h: &Hierarchy,
) -> FormatError {
    let (expected, advice) = match open.last() {
        None if h.joints.is_empty() => {
            ("ROOT and a name".to_owned(), "the hierarchy begins with a ROOT".to_owned())
        }
        None => ("MOTION or another ROOT".to_owned(), "look for a } too many above this line".to_owned()),
        Some((Open::Joint(j), at)) => (
            "OFFSET, CHANNELS, JOINT, End Site or }".to_owned(),
            format!(
                "the joint {:?} opened on line {at} is not closed yet; look for a missing }}",
                h.joints[*j].name
            ),
        ),
        Some((Open::EndSite { .. }, at)) => (
            "OFFSET or }".to_owned(),
            format!("the End Site opened on line {at} is not closed yet; look for a missing }}"),
        ),
    };
    text.broken(line, expected, quote(word), advice)
}

fn expect_brace(text: &mut Text<'_>, of: &str) -> Result<(), FormatError> {
    let word = text.word();
    if word == b"{" {
        return Ok(());
    }
    Err(text.broken(text.line, format!("an opening {{ for {of}"), quote(word), "put a { after the name"))
}

/// `CHANNELS n` and n names; on an End Site only `CHANNELS 0` makes sense.
fn read_channels(text: &mut Text<'_>, joint: Option<usize>, h: &mut Hierarchy) -> Result<(), FormatError> {
    let word = text.word();
    let line = text.line;
    let count: u64 = std::str::from_utf8(word).ok().and_then(|w| w.parse().ok()).ok_or_else(|| {
        text.broken(line, "the number of channels", quote(word), "write CHANNELS, how many, then their names")
    })?;
    let Some(joint) = joint else {
        if count == 0 {
            return Ok(());
        }
        let advice = "an End Site does not move; make it a JOINT or remove its channels";
        return Err(text.broken(line, "no channels on an End Site", format!("{count}"), advice));
    };
    for i in 0..count {
        let word = text.peek_word();
        let Some(channel) = Channel::from_word(word) else {
            return Err(text.broken(
                text.line,
                format!("{count} channels as line {line} says, each like Xposition or Zrotation"),
                format!("{} after {i}", quote(word)),
                "correct the number of channels or their names",
            ));
        };
        text.word();
        let twice = |c: &(usize, Channel)| *c == (joint, channel);
        if !matches!(channel, Channel::Rotation(_)) && h.channels.iter().rev().take(i as usize).any(twice) {
            let advice = "a position can have one channel an axis; remove one of the two";
            return Err(text.broken(text.line, "each position once", quote(word), advice));
        }
        h.channels.push((joint, channel));
    }
    if let word = text.peek_word()
        && Channel::from_word(word).is_some()
    {
        return Err(text.broken(
            text.line,
            format!("{count} channels as line {line} says"),
            format!("also {}", quote(word)),
            "correct the number of channels",
        ));
    }
    Ok(())
}

fn note_shared_names(joints: &[Joint], notes: &mut Vec<Note>) {
    let mut names: Vec<&str> = joints.iter().map(|j| j.name.as_str()).collect();
    names.sort_unstable();
    let mut shared: Vec<&str> = names.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    shared.dedup();
    if !shared.is_empty() {
        let more = shared.len().saturating_sub(NOTES_EACH);
        let list: Vec<String> = shared.iter().take(NOTES_EACH).map(|n| format!("{n:?}")).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what =
            format!("several joints share a name: {}{more}; they stay apart by index", list.join(", "));
        notes.push(Note::new(Severity::Info, "HIERARCHY", what));
    }
}

/// The curves of one joint and where each number of a row goes.
struct Sink {
    joint: usize,
    /// Columns of the row that make one value, by component; or one rotation term.
    columns: Vec<usize>,
    what: What,
    values: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// All three components of a position or scale: one curve of vectors.
    Vector { scale: bool },
    /// One component of a position or scale that has not all three.
    Component { scale: bool, axis: usize },
    /// One turn of a rotation.
    Turn(AxisName),
}

fn make_sinks(h: &Hierarchy) -> Vec<Sink> {
    let mut sinks = Vec::new();
    let mut column = 0;
    while column < h.channels.len() {
        let joint = h.channels[column].0;
        let count = h.channels[column..].iter().take_while(|(j, _)| *j == joint).count();
        let own: Vec<(usize, Channel)> = (column..column + count).map(|c| (c, h.channels[c].1)).collect();
        column += count;
        let mut push =
            |columns: Vec<usize>, what| sinks.push(Sink { joint, columns, what, values: Vec::new() });
        for scale in [false, true] {
            let of_axis = |axis| {
                let wanted = if scale { Channel::Scale(axis) } else { Channel::Position(axis) };
                own.iter().find(|(_, c)| *c == wanted).map(|(c, _)| *c)
            };
            let found: Vec<(usize, usize)> = (0..3).filter_map(|a| Some((a, of_axis(a)?))).collect();
            if found.len() == 3 {
                push(found.iter().map(|f| f.1).collect(), What::Vector { scale });
            } else {
                for (axis, c) in found {
                    push(vec![c], What::Component { scale, axis });
                }
            }
        }
        for (c, channel) in own {
            if let Channel::Rotation(axis) = channel {
                push(vec![c], What::Turn(axis));
            }
        }
    }
    sinks
}

fn read_motion(
    text: &mut Text<'_>,
    h: &Hierarchy,
    options: &ReadOptions,
    notes: &mut Vec<Note>,
) -> Result<Vec<Clip>, FormatError> {
    if text.peek_word().is_empty() && text.pos >= text.bytes.len() {
        notes.push(Note::new(
            Severity::Info,
            "",
            "the file has no motion, only a skeleton; it gives no clip",
        ));
        return Ok(Vec::new());
    }
    let declared = read_frame_count(text)?;
    let (frame_time, frame_time_text, frame_time_line) = read_frame_time(text)?;
    let width = h.channels.len();
    let mut sinks = make_sinks(h);
    let keys = u128::from(declared) * sinks.len() as u128;
    let rest = (text.bytes.len() - text.pos) as u64;
    // A number takes a digit and a blank, so the bytes bound what there can be.
    let room = if width == 0 { 0 } else { (rest / (2 * width as u64) + 1).min(declared) };
    if u128::from(room) * sinks.len() as u128 > u128::from(options.max_keys) {
        return Err(FormatError::Limit {
            file: text.file.to_owned(),
            place: "MOTION".to_owned(),
            what: "keys".to_owned(),
            found: u64::try_from(keys).unwrap_or(u64::MAX),
            limit: options.max_keys,
            advice: "raise the limit, or cut the take into parts".to_owned(),
        });
    }
    if width == 0 {
        let what = "no joint has a channel, so nothing moves";
        notes.push(Note::new(Severity::Info, "HIERARCHY", what));
        let end = declared.saturating_sub(1) as f64 * frame_time;
        return finish_clip(text, h, Vec::new(), 0, end, frame_time, &frame_time_text).map(|c| vec![c]);
    }
    for s in &mut sinks {
        s.values.reserve_exact(room as usize * s.columns.len());
    }
    let frames = Rows::new(text, h, declared, notes).read(&mut sinks)?;
    if frames > 1 && frame_time <= 0.0 {
        let advice = "write the length of a frame in seconds, such as 0.0333333 for 30 a second";
        return Err(text.broken(frame_time_line, "a frame time above zero", frame_time_text, advice));
    }
    let end = frames.saturating_sub(1) as f64 * frame_time;
    Ok(vec![finish_clip(text, h, sinks, frames, end, frame_time, &frame_time_text)?])
}

/// `Frames: n`, also without the colon and in any case.
fn read_frame_count(text: &mut Text<'_>) -> Result<u64, FormatError> {
    text.skip_space();
    let line = text.line;
    let found = text.rest_of_line();
    let wrong = || {
        let advice = "after MOTION come \"Frames:\" with a whole number and \"Frame Time:\" with seconds";
        text.broken(line, "Frames: and how many", quote(found), advice)
    };
    let value = after_keyword(found, &[b"frames"]).ok_or_else(wrong)?;
    let value = std::str::from_utf8(value).map_err(|_| wrong())?;
    // Some write 120.0.
    let whole = value.strip_suffix('.').or_else(|| value.split_once('.').map(|(whole, _)| whole));
    let zeros = value.split_once('.').is_none_or(|(_, z)| z.bytes().all(|b| b == b'0'));
    if !zeros {
        return Err(wrong());
    }
    whole.unwrap_or(value).parse().map_err(|_| wrong())
}

/// `Frame Time: s`; the seconds, as written, and the line.
fn read_frame_time(text: &mut Text<'_>) -> Result<(f64, String, usize), FormatError> {
    text.skip_space();
    let line = text.line;
    let found = text.rest_of_line();
    let advice = "write \"Frame Time:\" and the length of a frame in seconds, such as 0.0333333";
    let wrong = || text.broken(line, "Frame Time: and seconds", quote(found), advice);
    let value = after_keyword(found, &[b"frame", b"time"]).ok_or_else(wrong)?;
    let seconds = number(value).ok_or_else(wrong)?;
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(text.broken(line, "a frame time of zero or more seconds", quote(value), advice));
    }
    Ok((seconds, String::from_utf8_lossy(value).into_owned(), line))
}

/// What follows the words and a colon, if the line begins with them.
fn after_keyword<'a>(line: &'a [u8], words: &[&[u8]]) -> Option<&'a [u8]> {
    let mut rest = line;
    for word in words {
        rest = trim(rest);
        let head = rest.get(..word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = &rest[word.len()..];
    }
    let rest = trim(rest);
    Some(trim(rest.strip_prefix(b":").unwrap_or(rest)))
}

/// Reads the numbers of the motion.
///
/// A frame normally is a line. It may be wrapped over several, or several may share one, as long
/// as frames and lines end together, or the numbers are exactly as many as the header's count
/// needs. A line with a number too many or too few is an error that names it: guessing would move
/// every value after it to another joint.
struct Rows<'t, 'a> {
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
    fn new(text: &'t mut Text<'a>, h: &'t Hierarchy, declared: u64, notes: &'t mut Vec<Note>) -> Self {
        let row = Vec::with_capacity(h.channels.len());
        Self { text, h, declared, notes, repairs: 0, row, frames: 0, odd: None, misaligned: false }
    }

    fn read(mut self, sinks: &mut [Sink]) -> Result<u64, FormatError> {
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

fn finish_clip(
    text: &Text<'_>,
    h: &Hierarchy,
    sinks: Vec<Sink>,
    frames: u64,
    end: f64,
    frame_time: f64,
    frame_time_text: &str,
) -> Result<Clip, FormatError> {
    let out_of_range = |what: String| FormatError::Broken {
        file: text.file.to_owned(),
        place: "MOTION".to_owned(),
        expected: "frame times that are finite and increase".to_owned(),
        found: what,
        advice: "correct Frame Time".to_owned(),
    };
    let mut clip = Clip::new("", 0.0, end).map_err(|e| out_of_range(e.to_string()))?;
    clip.rate = frame_rate(frame_time, frame_time_text);
    if frames == 0 {
        return Ok(clip);
    }
    let times: Arc<[f64]> = (0..frames).map(|k| k as f64 * frame_time).collect();
    let refused = |e: CurveError| out_of_range(e.to_string());
    let mut sinks = sinks.into_iter().peekable();
    while let Some(first) = sinks.next() {
        let joint = first.joint;
        let rest = h.joints[joint].rest;
        let mut group = vec![first];
        let same = |a: What, b: What| match (a, b) {
            (What::Component { scale, .. }, What::Component { scale: other, .. }) => scale == other,
            (What::Turn(_), What::Turn(_)) => true,
            _ => false,
        };
        while let Some(next) = sinks.next_if(|s| s.joint == joint && same(group[0].what, s.what)) {
            group.push(next);
        }
        let scalar = |mut values: Vec<f64>| {
            values.shrink_to_fit();
            Curve::linear(ValueKind::Scalar, times.clone(), values).map(Axis::Curve).map_err(refused)
        };
        let (property, data, rest) = match group[0].what {
            What::Turn(_) => {
                let mut terms = Vec::with_capacity(group.len());
                for s in group {
                    let What::Turn(axis) = s.what else { continue };
                    terms.push((axis, scalar(s.values)?));
                }
                let (pre, post) = (DQuat::IDENTITY, DQuat::IDENTITY);
                let e = EulerCurve { terms, pre, post, between: EulerBetween::Slerp };
                (Property::Rotation, TrackData::Euler(e), rest.rotation.to_array().to_vec())
            }
            What::Vector { scale } => {
                let (property, rest) = vector_property(scale, &rest);
                let mut values = group.swap_remove(0).values;
                values.shrink_to_fit();
                let curve = Curve::linear(ValueKind::Vector(3), times.clone(), values).map_err(refused)?;
                (property, TrackData::Curve(curve), rest.to_vec())
            }
            What::Component { scale, .. } => {
                let (property, rest) = vector_property(scale, &rest);
                let mut axes = rest.map(Axis::Constant).to_vec();
                for s in group {
                    let What::Component { axis, .. } = s.what else { continue };
                    axes[axis] = scalar(s.values)?;
                }
                (property, TrackData::Axes { kind: ValueKind::Vector(3), axes }, rest.to_vec())
            }
        };
        clip.tracks.push(Track::new(
            Binding::node(joint, h.joints[joint].name.clone(), property),
            data,
            rest,
        ));
    }
    Ok(clip)
}

fn vector_property(scale: bool, rest: &Transform) -> (Property, [f64; 3]) {
    if scale {
        (Property::Scale, rest.scale.to_array())
    } else {
        (Property::Translation, rest.translation.to_array())
    }
}

/// The exact rate that a frame time, rounded to the digits it was written with, stands for.
///
/// `.0083333` is 120 a second and `0.0333667` 30000/1001. A time that stands for neither a whole
/// rate nor one of the 1000/1001 family keeps its own ratio.
fn frame_rate(seconds: f64, text: &str) -> Option<FrameRate> {
    if seconds <= 0.0 {
        return None;
    }
    // One unit of the last decimal: files round and cut alike. At least 2e-6, because 23.976 and
    // 29.97 are themselves rounded; never more than 0.2 %, or a rate
    // would no longer fit the frames' own times.
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let decimals = mantissa.split_once('.').map_or(0, |(_, d)| d.len());
    let exponent: i32 = text.split(['e', 'E']).nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    let power = (exponent - i32::try_from(decimals).unwrap_or(i32::MAX / 2)).clamp(-300, 300);
    let unit = format!("1e{power}").parse::<f64>().unwrap_or(0.0);
    let tolerance = (unit / seconds).clamp(2e-6, 2e-3);
    FrameRate::from_hz(1.0 / seconds, tolerance)
}
