//! The first half of a BVH file: joints, their offsets and channels, End Sites.

use inbetween::glam::DVec3;
use inbetween::{AxisName, Joint, NodeKind, Transform};

use super::text::{Text, decode_name, quote};
use crate::{FormatError, Note, Severity};

/// Most shared names that are listed; the rest is counted.
const NAMES_LISTED: usize = 8;

/// The hierarchy: joints and, in the order of the motion rows, whose channel is which.
#[derive(Default)]
pub(super) struct Hierarchy {
    pub(super) joints: Vec<Joint>,
    pub(super) channels: Vec<(usize, Channel)>,
}

/// What a joint's channel moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
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

    pub(super) fn name(self) -> String {
        match self {
            Self::Position(i) => format!("{}position", ['X', 'Y', 'Z'][i]),
            Self::Rotation(a) => format!("{}rotation", a.letter().to_ascii_uppercase()),
            Self::Scale(i) => format!("{}scale", ['X', 'Y', 'Z'][i]),
        }
    }
}

/// What a brace that is open belongs to; beside it stands the line that opened it.
enum Open {
    Joint(usize),
    EndSite { of: usize, offset: DVec3 },
}

pub(super) fn read_hierarchy(text: &mut Text<'_>, notes: &mut Vec<Note>) -> Result<Hierarchy, FormatError> {
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
        let more = shared.len().saturating_sub(NAMES_LISTED);
        let list: Vec<String> = shared.iter().take(NAMES_LISTED).map(|n| format!("{n:?}")).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what =
            format!("several joints share a name: {}{more}; they stay apart by index", list.join(", "));
        notes.push(Note::new(Severity::Info, "HIERARCHY", what));
    }
}
