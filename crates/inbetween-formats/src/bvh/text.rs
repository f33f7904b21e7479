//! The words and numbers of a BVH file, with the line they stand on.

use std::borrow::Cow;

use inbetween::glam::DVec3;

use crate::{FormatError, Note, Severity};

/// The text, where we are in it, and on which line (from 1).
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
    pub(super) line: usize,
    pub(super) file: &'a str,
}

impl<'a> Text<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Steps over one byte and counts lines; CR, LF and CR LF all end one.
    pub(super) fn step(&mut self) {
        let b = self.bytes[self.pos];
        self.pos += 1;
        if b == b'\n' || (b == b'\r' && self.peek() != Some(b'\n')) {
            self.line += 1;
        }
    }

    pub(super) fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.step();
        }
    }

    /// The next word; a brace is a word of its own. Empty at the end of the file.
    pub(super) fn word(&mut self) -> &'a [u8] {
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

    pub(super) fn peek_word(&mut self) -> &'a [u8] {
        self.skip_space();
        let (pos, line) = (self.pos, self.line);
        let word = self.word();
        (self.pos, self.line) = (pos, line);
        word
    }

    /// What is left of the line up to an opening brace, without blanks around it.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let start = self.pos;
        while self.peek().is_some_and(|b| !matches!(b, b'\n' | b'\r' | b'{')) {
            self.pos += 1;
        }
        trim(&self.bytes[start..self.pos])
    }

    pub(super) fn broken(
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

    pub(super) fn offset(&mut self) -> Result<DVec3, FormatError> {
        let x = self.number("the x of OFFSET")?;
        let y = self.number("the y of OFFSET")?;
        let z = self.number("the z of OFFSET")?;
        Ok(DVec3::new(x, y, z))
    }
}

pub(super) fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b || b == 0
}

pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
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

pub(super) fn number(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A word as it is shown in a message.
pub(super) fn quote(word: &[u8]) -> String {
    if word.is_empty() {
        return "the end of the file".to_owned();
    }
    let text = String::from_utf8_lossy(&word[..word.len().min(60)]);
    format!("{text:?}{}", if word.len() > 60 { " …" } else { "" })
}

/// Text in UTF-8 or, where it is not that, as it would read in Latin-1.
pub(super) fn decode_name(bytes: &[u8], latin: &mut bool) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            *latin = true;
            bytes.iter().map(|&b| char::from(b)).collect()
        }
    }
}

/// The bytes as UTF-8: without a byte order mark, and from UTF-16 where the mark says so.
pub(super) fn plain_text<'a>(bytes: &'a [u8], notes: &mut Vec<Note>) -> Cow<'a, [u8]> {
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
