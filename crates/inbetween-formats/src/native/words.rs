//! Lines and words of the text format, with the line and column they stand at.

use crate::FormatError;

/// One word of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    /// Its text; of a quoted word what the quotes hold.
    pub(super) text: String,
    /// True if it stood in quotes and so is a name and nothing else.
    pub(super) quoted: bool,
    /// Column of its first character, from 1.
    pub(super) column: usize,
}

/// A line that holds something.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    pub(super) file: &'a str,
    pub(super) number: usize,
    pub(super) words: Vec<Word>,
    next: usize,
    /// Column just after the last word.
    end: usize,
}

/// Splits one line into words; `#` before a word begins a comment.
///
/// # Errors
/// For a quote that is not closed or an escape that is not known.
pub(super) fn split_line<'a>(file: &'a str, number: usize, text: &str) -> Result<Line<'a>, FormatError> {
    let mut line = Line { file, number, words: Vec::new(), next: 0, end: 1 };
    let mut chars = text.chars().enumerate().peekable();
    while let Some(&(at, c)) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        if c == '#' {
            break;
        }
        let mut word = Word { text: String::new(), quoted: c == '"', column: at + 1 };
        if word.quoted {
            chars.next();
            loop {
                match chars.next() {
                    Some((_, '"')) => break,
                    Some((at, '\\')) => {
                        let escaped = escape(&mut chars);
                        let Some(c) = escaped else {
                            let found = "a backslash before something else";
                            let expected = r#"\" \\ \n \r \t or \u{hex} in quotes"#;
                            return Err(line.broken_at(at + 1, expected, found, "write a backslash twice"));
                        };
                        word.text.push(c);
                    }
                    Some((_, c)) => word.text.push(c),
                    None => {
                        let advice = "close the name with a quote on the same line";
                        return Err(line.broken_at(at + 1, "a closing quote", "the end of the line", advice));
                    }
                }
            }
        } else {
            while let Some(&(_, c)) = chars.peek()
                && !c.is_whitespace()
            {
                word.text.push(c);
                chars.next();
            }
        }
        line.end = chars.peek().map_or_else(|| text.chars().count() + 1, |(at, _)| at + 1);
        line.words.push(word);
    }
    Ok(line)
}

fn escape(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    match chars.next()?.1 {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '"' => Some('"'),
        '\\' => Some('\\'),
        'u' => {
            if chars.next()?.1 != '{' {
                return None;
            }
            let mut code = 0u32;
            for _ in 0..7 {
                let c = chars.next()?.1;
                if c == '}' {
                    return char::from_u32(code);
                }
                code = code * 16 + c.to_digit(16)?;
            }
            None
        }
        _ => None,
    }
}

impl Line<'_> {
    pub(super) fn peek(&self) -> Option<&Word> {
        self.words.get(self.next)
    }

    /// The next word as a keyword, if it is one.
    pub(super) fn peek_keyword(&self) -> Option<&str> {
        self.peek().filter(|w| !w.quoted).map(|w| w.text.as_str())
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    /// Takes the next word if it is the keyword.
    pub(super) fn take(&mut self, keyword: &str) -> bool {
        let is = self.peek_keyword() == Some(keyword);
        self.next += usize::from(is);
        is
    }

    /// The next word, whatever it is.
    pub(super) fn word(&mut self, expected: &str) -> Result<Word, FormatError> {
        match self.peek().cloned() {
            Some(word) => {
                self.next += 1;
                Ok(word)
            }
            None => Err(self.broken(expected, "add it at the end of the line")),
        }
    }

    /// A finite number; `deg` after it makes radians of degrees.
    pub(super) fn number(&mut self, expected: &str) -> Result<f64, FormatError> {
        let value = self.peek_keyword().and_then(parse_number);
        match value {
            Some(v) => {
                self.next += 1;
                Ok(v)
            }
            None => Err(self.broken(
                &format!("{expected}, a finite number"),
                "write it with a decimal point, or with deg after it for an angle in degrees",
            )),
        }
    }

    /// Exactly `count` numbers.
    pub(super) fn numbers(&mut self, count: usize, what: &str) -> Result<Vec<f64>, FormatError> {
        let mut out = Vec::new();
        for i in 0..count {
            let which = if count == 1 { what.to_owned() } else { format!("{what} ({} of {count})", i + 1) };
            out.push(self.number(&which)?);
        }
        Ok(out)
    }

    /// Ends the line: nothing may follow.
    pub(super) fn done(&self) -> Result<(), FormatError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => {
                Err(self.broken("the end of the line", "remove what follows, or check the line's form"))
            }
        }
    }

    /// An error at the next word.
    pub(super) fn broken(&self, expected: &str, advice: &str) -> FormatError {
        match self.peek() {
            Some(word) => {
                let shown: String = word.text.chars().take(60).collect();
                self.broken_at(word.column, expected, &format!("{shown:?}"), advice)
            }
            None => self.broken_at(self.end, expected, "the end of the line", advice),
        }
    }

    /// An error at a column.
    pub(super) fn broken_at(&self, column: usize, expected: &str, found: &str, advice: &str) -> FormatError {
        FormatError::Broken {
            file: self.file.to_owned(),
            place: format!("line {}, column {column}", self.number),
            expected: expected.to_owned(),
            found: found.to_owned(),
            advice: advice.to_owned(),
        }
    }
}

fn parse_number(word: &str) -> Option<f64> {
    let (digits, degrees) = match word.strip_suffix("deg") {
        Some(digits) => (digits, true),
        None => (word, false),
    };
    // "inf" and "nan" parse as numbers but are none here.
    let v: f64 = digits.parse().ok()?;
    let v = if degrees { v.to_radians() } else { v };
    v.is_finite().then_some(v)
}

/// A name as it is written: bare where that is safe, else in quotes.
pub(super) fn write_name(out: &mut String, name: &str) {
    let safe = |c: char| c.is_alphanumeric() || "_-.:|/[]$+()'&,;!=~*".contains(c);
    if !name.is_empty() && name.chars().all(safe) {
        out.push_str(name);
        return;
    }
    out.push('"');
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The shortest decimal that reads back as the same bits.
pub(crate) fn write_number(out: &mut String, v: f64) {
    use std::fmt::Write;
    let size = v.abs();
    let plain = size == 0.0 || (1e-5..1e16).contains(&size);
    let _ = if plain { write!(out, "{v}") } else { write!(out, "{v:e}") };
}
