//! From bytes to a document (JSON and buffers) and back: GLB chunks, data URIs, side files.
//!
//! Sizes in headers are compared with the bytes that are there before anything is copied. A
//! buffer that cannot be found is an error only once something needs it.

use serde_json::Value;

use super::Place;
use crate::{FormatError, Input, Note, Severity};

const JSON_CHUNK: u32 = 0x4E4F_534A;
const BIN_CHUNK: u32 = 0x004E_4942;

/// A glTF document and its buffers, kept so that a writer changes nothing but animations.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The whole JSON.
    pub(super) json: Value,
    /// As many as the JSON lists.
    pub(super) buffers: Vec<Buffer>,
    /// True if it came as one binary file.
    pub(super) is_glb: bool,
    /// GLB chunks that are neither JSON nor the first BIN: type and bytes.
    pub(super) chunks: Vec<(u32, Vec<u8>)>,
}

/// A buffer and where it came from.
#[derive(Clone, Debug)]
pub(super) enum Buffer {
    /// The GLB's own chunk.
    Chunk(Vec<u8>),
    /// Base64 within the JSON.
    Inline(Vec<u8>),
    /// A side file.
    Side(Vec<u8>),
    /// A stand-in for compressed views, without bytes by design.
    Fallback,
    /// Not to be had, and why.
    Missing(String),
}

impl Buffer {
    /// Its bytes, if there are any.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Chunk(b) | Self::Inline(b) | Self::Side(b) => Some(b),
            Self::Fallback | Self::Missing(_) => None,
        }
    }
}

impl Document {
    /// The list of that name at the top of the JSON; empty where there is none.
    pub(super) fn list(&self, name: &str) -> &[Value] {
        self.json.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Vertical field of view, radians, of the camera on node `node` while nothing drives it.
    pub(crate) fn fov(&self, node: usize) -> Option<f64> {
        let camera = self.list("nodes").get(node)?.get("camera")?.as_u64()?;
        let fov = self.list("cameras").get(usize::try_from(camera).ok()?)?.get("perspective")?.get("yfov")?;
        fov.as_f64().filter(|v| *v > 0.0 && *v < std::f64::consts::PI)
    }

    /// Bytes of the JSON's buffers in all.
    pub(super) fn byte_count(&self) -> u64 {
        self.buffers.iter().filter_map(Buffer::bytes).map(|b| b.len() as u64).sum()
    }
}

/// Reads the container, not yet what it means.
pub(super) fn open(input: &Input<'_>, notes: &mut Vec<Note>) -> Result<Document, FormatError> {
    let at = Place { file: input.name };
    let mut document = Document { is_glb: input.bytes.starts_with(b"glTF"), ..Document::default() };
    let mut chunk = None;
    let text = if document.is_glb {
        let (json, bin) = split_glb(input.bytes, at, &mut document.chunks, notes)?;
        chunk = bin;
        json
    } else {
        input.bytes
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if !document.is_glb {
        looks_like_json(text, at)?;
    }
    document.json = serde_json::from_slice(text).map_err(|e| {
        let place = format!("JSON line {} column {}", e.line(), e.column());
        at.broken(place, "valid JSON", e.to_string(), "the file is damaged or cut off; export it again")
    })?;
    check_version(&document.json, at)?;
    document.buffers = buffers(&document, input, chunk)?;
    for (index, json) in document.list("buffers").iter().enumerate() {
        let stated = json.get("byteLength").and_then(Value::as_u64);
        let there = document.buffers.get(index).and_then(Buffer::bytes).map(|b| b.len() as u64);
        if let (Some(stated), Some(there)) = (stated, there)
            && there < stated
        {
            let text = format!("its byteLength is {stated}, but only {there} bytes are there (truncated)");
            notes.push(Note::new(Severity::Info, format!("buffer {index}"), text));
        }
    }
    for name in document.list("extensionsRequired").iter().filter(|e| !super::rebuild::is_known(e)) {
        let text =
            format!("the file requires the extension {name}, which is not read; what it adds is left out");
        notes.push(Note::new(Severity::Info, "extensionsRequired", text));
    }
    Ok(document)
}

/// Bytes that are neither GLB nor the start of a JSON object are told what they are, not where a
/// parser stumbled.
fn looks_like_json(text: &[u8], at: Place<'_>) -> Result<(), FormatError> {
    let found = match text.trim_ascii_start() {
        [] => format!("an empty file ({} bytes)", text.len()),
        [b'{', ..] => return Ok(()),
        [first, ..] if first.is_ascii_graphic() => {
            let head: String = text.iter().take(12).map(|b| char::from(*b)).collect();
            format!("{:?}", head.escape_default().to_string())
        }
        other => format!("the bytes {:02x?}", &other[..other.len().min(8)]),
    };
    let expected = "the magic \"glTF\" of a GLB file, or a JSON object";
    Err(at.broken("the start of the file", expected, found, "the file is damaged or of another format"))
}

fn check_version(json: &Value, at: Place<'_>) -> Result<(), FormatError> {
    let asset = json.get("asset");
    let text = |key| asset.and_then(|a| a.get(key)).and_then(Value::as_str);
    let (version, least) = (text("version").unwrap_or(""), text("minVersion").unwrap_or("2.0"));
    if !version.starts_with("2.") || least != "2.0" {
        let found = match (asset, version) {
            (None, _) => "no asset".to_owned(),
            (_, "") => "an asset without a version".to_owned(),
            _ => format!("version {version:?}, minVersion {least:?}"),
        };
        return Err(at.broken("asset.version", "glTF 2.0", found, "convert the file to glTF 2.0 first"));
    }
    Ok(())
}

type Parts<'a> = (&'a [u8], Option<&'a [u8]>);

fn split_glb<'a>(
    bytes: &'a [u8],
    at: Place<'_>,
    others: &mut Vec<(u32, Vec<u8>)>,
    notes: &mut Vec<Note>,
) -> Result<Parts<'a>, FormatError> {
    let cut = "the file is truncated; download or export it again";
    let word = |offset: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
    };
    let (Some(version), Some(length)) = (word(4), word(8)) else {
        let found = format!("{} bytes", bytes.len());
        return Err(at.broken("GLB header", "12 bytes", found, cut));
    };
    if version != 2 {
        let found = format!("version {version}");
        return Err(at.broken("GLB header", "version 2", found, "convert the file to glTF 2.0 first"));
    }
    let length = length as usize;
    if length > bytes.len() {
        let found = format!("only {} bytes (truncated)", bytes.len());
        return Err(at.broken("GLB header", format!("a length of {length} bytes, as it states"), found, cut));
    }
    if length < bytes.len() {
        let more = bytes.len() - length;
        let text = format!("{more} bytes follow the length the header states; they are not read");
        notes.push(Note::new(Severity::Info, "GLB header", text));
    }
    let bytes = &bytes[..length];
    let (mut offset, mut json, mut bin) = (12, None, None);
    while offset < length {
        let header = bytes.get(offset..offset + 8);
        let Some(header) = header else {
            // Less than a chunk's header is left: padding that some writers add.
            break;
        };
        let size = u32::from_le_bytes(header[..4].try_into().expect("4 bytes")) as usize;
        let kind = u32::from_le_bytes(header[4..].try_into().expect("4 bytes"));
        let Some(chunk) = bytes.get(offset + 8..).and_then(|rest| rest.get(..size)) else {
            let found = format!("{} bytes before the end of the file", length - offset - 8);
            let place = format!("GLB chunk at byte {offset}");
            return Err(at.broken(place, format!("a chunk of {size} bytes, as it states"), found, cut));
        };
        match kind {
            JSON_CHUNK if json.is_none() => json = Some(chunk),
            BIN_CHUNK if bin.is_none() && json.is_some() => bin = Some(chunk),
            _ => others.push((kind, chunk.to_vec())),
        }
        offset += 8 + size.next_multiple_of(4);
    }
    match json {
        Some(json) => Ok((json, bin)),
        None => Err(at.broken("GLB", "a JSON chunk", "none", cut)),
    }
}

fn buffers(document: &Document, input: &Input<'_>, chunk: Option<&[u8]>) -> Result<Vec<Buffer>, FormatError> {
    let at = Place { file: input.name };
    let mut buffers = Vec::new();
    for (index, json) in document.list("buffers").iter().enumerate() {
        let buffer = match json.get("uri").and_then(Value::as_str) {
            None if index == 0 && chunk.is_some() => Buffer::Chunk(chunk.expect("just seen").to_vec()),
            None => Buffer::Fallback,
            Some(uri) if uri.starts_with("data:") => match decode_data_uri(uri) {
                Some(bytes) => Buffer::Inline(bytes),
                None => {
                    let place = format!("buffer {index}");
                    let advice = "the data URI is damaged; export the file again";
                    return Err(at.broken(place, "base64 data", "text that is not base64", advice));
                }
            },
            Some(uri) => match (input.side_file)(&percent_decoded(uri)) {
                Ok(bytes) => Buffer::Side(bytes),
                Err(error) => Buffer::Missing(error.to_string()),
            },
        };
        buffers.push(buffer);
    }
    Ok(buffers)
}

/// `%20` and its kin as the bytes they stand for; anything that is not UTF-8 stays as it is.
fn percent_decoded(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| uri.to_owned())
}

/// The bytes of a `data:` URI in base64, `None` if it is not one.
fn decode_data_uri(uri: &str) -> Option<Vec<u8>> {
    let (head, data) = uri.split_once(',')?;
    if !head.ends_with(";base64") {
        return None;
    }
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for c in data.bytes() {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

/// A `data:` URI of the bytes, in base64.
pub(super) fn encode_data_uri(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("data:application/octet-stream;base64,");
    text.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let b = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let bits = u32::from(b[0]) << 16 | u32::from(b[1]) << 8 | u32::from(b[2]);
        for i in 0..4 {
            if i <= group.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// One GLB of a JSON text, the first buffer's bytes and other chunks.
pub(super) fn join_glb(json: &[u8], bin: &[u8], others: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"glTF\x02\0\0\0\0\0\0\0".to_vec();
    let mut chunk = |kind: u32, bytes: &[u8], padding: u8| {
        let padded = bytes.len().next_multiple_of(4);
        out.extend_from_slice(&(padded as u32).to_le_bytes());
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(bytes);
        out.resize(out.len() + padded - bytes.len(), padding);
    };
    chunk(JSON_CHUNK, json, b' ');
    if !bin.is_empty() {
        chunk(BIN_CHUNK, bin, 0);
    }
    for (kind, bytes) in others {
        chunk(*kind, bytes, 0);
    }
    let length = (out.len() as u32).to_le_bytes();
    out[8..12].copy_from_slice(&length);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_back_whatever_its_length() {
        for n in 0..20u8 {
            let bytes: Vec<u8> = (0..n).map(|i| i.wrapping_mul(91).wrapping_add(200)).collect();
            assert_eq!(decode_data_uri(&encode_data_uri(&bytes)).unwrap(), bytes);
        }
        assert_eq!(encode_data_uri(b"Man"), "data:application/octet-stream;base64,TWFu");
        assert_eq!(decode_data_uri("data:;base64,TW Fu\n").unwrap(), b"Man");
        assert!(decode_data_uri("data:;base64,T?Fu").is_none());
        assert!(decode_data_uri("data:text/plain,hello").is_none());
    }

    #[test]
    fn percent_signs_in_names_become_what_they_stand_for() {
        assert_eq!(percent_decoded("a%20b.bin"), "a b.bin");
        assert_eq!(percent_decoded("100%.bin"), "100%.bin");
        assert_eq!(percent_decoded("%E6%AD%A9.bin"), "歩.bin");
    }
}
