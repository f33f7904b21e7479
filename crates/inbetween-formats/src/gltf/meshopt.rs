//! Buffer views compressed by `EXT_meshopt_compression` and `KHR_meshopt_compression`.
//!
//! Three codecs (vertex attributes in versions 0 and 1, triangle lists, index sequences) and four
//! filters that turn what they give into normals, quaternions, floats and colours. Written after
//! the bit streams described in appendices A and B of the extension,
//! <https://github.com/KhronosGroup/glTF/tree/main/extensions/2.0/Khronos/KHR_meshopt_compression>.
//! Every read is checked; damaged data is an error that says what ended too early.

use serde_json::Value;

/// What the extension says of a compressed view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    pub(super) filter: Filter,
    /// Elements.
    pub(super) count: usize,
    /// Bytes of an element once decoded.
    pub(super) stride: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Attributes,
    Triangles,
    Indices,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    None,
    Octahedral,
    Quaternion,
    Exponential,
    Color,
}

impl Options {
    /// Reads the extension's JSON. The error is what was expected and what was found.
    pub(super) fn from_json(json: &Value) -> Result<Self, (String, String)> {
        let number = |key: &str, most: u64| {
            let value = json.get(key);
            let found = || value.map_or("nothing".to_owned(), Value::to_string);
            let number = value.and_then(Value::as_u64).filter(|&n| n <= most);
            number.map(|n| n as usize).ok_or_else(|| (format!("{key}, a number up to {most}"), found()))
        };
        let (count, stride) = (number("count", 1 << 32)?, number("byteStride", 256)?);
        let mode = match json.get("mode").and_then(Value::as_str) {
            Some("ATTRIBUTES") => Mode::Attributes,
            Some("TRIANGLES") => Mode::Triangles,
            Some("INDICES") => Mode::Indices,
            other => return Err(("mode ATTRIBUTES, TRIANGLES or INDICES".to_owned(), format!("{other:?}"))),
        };
        let filter = match json.get("filter").map(|f| f.as_str().unwrap_or("?")) {
            None | Some("NONE") => Filter::None,
            Some("OCTAHEDRAL") => Filter::Octahedral,
            Some("QUATERNION") => Filter::Quaternion,
            Some("EXPONENTIAL") => Filter::Exponential,
            Some("COLOR") => Filter::Color,
            Some(other) => return Err(("a filter this program knows".to_owned(), format!("{other:?}"))),
        };
        let fits = match (mode, filter) {
            (Mode::Attributes, Filter::None | Filter::Exponential) => stride > 0 && stride % 4 == 0,
            (Mode::Attributes, Filter::Octahedral | Filter::Color) => stride == 4 || stride == 8,
            (Mode::Attributes, Filter::Quaternion) => stride == 8,
            (Mode::Triangles, Filter::None) => (stride == 2 || stride == 4) && count % 3 == 0,
            (Mode::Indices, Filter::None) => stride == 2 || stride == 4,
            _ => false,
        };
        if !fits {
            let found = format!("{mode:?} with filter {filter:?}, byteStride {stride}, count {count}");
            return Err(("a byteStride and count that go with the mode and filter".to_owned(), found));
        }
        Ok(Self { mode, filter, count, stride })
    }

    /// Bytes that [`decode`] will give.
    pub(super) fn decoded_bytes(&self) -> u64 {
        self.count as u64 * self.stride as u64
    }
}

/// Decodes a view; the error says what is wrong with the data.
pub(super) fn decode(data: &[u8], options: &Options) -> Result<Vec<u8>, String> {
    let mut out = match options.mode {
        Mode::Attributes => attributes(data, options.count, options.stride)?,
        Mode::Triangles => indices_as_bytes(triangles(data, options.count)?, options.stride),
        Mode::Indices => indices_as_bytes(sequence(data, options.count)?, options.stride),
    };
    match (options.filter, options.stride) {
        (Filter::None, _) => {}
        (Filter::Octahedral, 4) => {
            for n in out.chunks_exact_mut(4) {
                let v = octahedral([n[0], n[1], n[2]].map(|b| f32::from(b.cast_signed())), 127.0);
                n[..3].copy_from_slice(&v.map(|v| v as u8));
            }
        }
        (Filter::Octahedral, _) => each_i16(&mut out, |n| {
            let v = octahedral([n[0], n[1], n[2]].map(f32::from), 32767.0);
            n[..3].copy_from_slice(&v.map(|v| v as i16));
        }),
        (Filter::Quaternion, _) => each_i16(&mut out, quaternion),
        (Filter::Exponential, _) => {
            for n in out.chunks_exact_mut(4) {
                let v = i32::from_le_bytes([n[0], n[1], n[2], n[3]]);
                let power = f32::from_bits(((v >> 24).wrapping_add(127) as u32) << 23);
                n.copy_from_slice(&(power * ((v << 8) >> 8) as f32).to_le_bytes());
            }
        }
        (Filter::Color, 4) => {
            for n in out.chunks_exact_mut(4) {
                let signed = |b: u8| i32::from(b.cast_signed());
                let c = color([i32::from(n[0]), signed(n[1]), signed(n[2]), i32::from(n[3])], 255.0);
                n.copy_from_slice(&c.map(|v| v as u8));
            }
        }
        (Filter::Color, _) => each_i16(&mut out, |n| {
            let unsigned = |v: i16| i32::from(v.cast_unsigned());
            let c = color([unsigned(n[0]), i32::from(n[1]), i32::from(n[2]), unsigned(n[3])], 65535.0);
            *n = c.map(|v| (v as u16).cast_signed());
        }),
    }
    Ok(out)
}

/// Bytes taken from the front of the data, each read checked.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], String> {
        let Some((head, tail)) = self.rest.split_at_checked(n) else {
            return Err(format!("data that ends within {what}"));
        };
        self.rest = tail;
        Ok(head)
    }

    fn byte(&mut self, what: &str) -> Result<u8, String> {
        Ok(self.take(1, what)?[0])
    }

    /// A number in groups of seven bits, low group first.
    fn varint(&mut self, what: &str) -> Result<u32, String> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte(what)?;
            value |= u32::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        Ok(value)
    }
}

fn header(data: &[u8], kind: u8, name: &str) -> Result<u8, String> {
    let first = data.first().copied().ok_or("no data")?;
    let version = first & 15;
    if first & 0xf0 != kind || version > 1 {
        return Err(format!("a first byte of {first:#04x}, where {name} start with {kind:#04x} or the next"));
    }
    Ok(version)
}

/// Values of a group.
const GROUP: usize = 16;

fn attributes(data: &[u8], count: usize, stride: usize) -> Result<Vec<u8>, String> {
    let version = header(data, 0xa0, "attributes")?;
    // The tail holds what the first element is a difference to and, from version 1 on, how
    // each four bytes are put together; it is padded to a least size.
    let words = if version == 0 { 0 } else { stride / 4 };
    let tail = stride + words;
    let padded = tail.max(if version == 0 { 32 } else { 24 });
    let body = data.len().checked_sub(1 + padded).ok_or("fewer bytes than its tail has")?;
    let mut reader = Reader { rest: &data[1..1 + body] };
    let tail = &data[data.len() - tail..];
    let mut last: Vec<u8> = tail[..stride].to_vec();
    let channels = &tail[stride..];

    let block = ((8192 / stride) & !(GROUP - 1)).min(256);
    let mut out = Vec::new();
    let mut planes = vec![0u8; 4 * block];
    let mut done = 0;
    while done < count {
        let n = block.min(count - done);
        out.resize((done + n) * stride, 0);
        let elements = &mut out[done * stride..];
        let control = reader.take(words, "a block's control bytes")?;
        for word in 0..stride / 4 {
            for j in 0..4 {
                let plane = &mut planes[j * block..(j + 1) * block];
                match (version, control.get(word).map_or(0, |c| c >> (2 * j) & 3)) {
                    (0, _) => byte_groups(&mut reader, plane, n, [0, 2, 4, 8])?,
                    (_, 0) => byte_groups(&mut reader, plane, n, [0, 1, 2, 4])?,
                    (_, 1) => byte_groups(&mut reader, plane, n, [1, 2, 4, 8])?,
                    (_, 2) => plane[..n].fill(0),
                    _ => plane[..n].copy_from_slice(reader.take(n, "a block's plain bytes")?),
                }
            }
            let channel = channels.get(word).copied().unwrap_or(0);
            let before = &last[4 * word..4 * word + 4];
            deltas(&planes, block, n, channel, before, &mut elements[4 * word..], stride)?;
        }
        last.copy_from_slice(&elements[(n - 1) * stride..]);
        done += n;
    }
    if !reader.rest.is_empty() {
        return Err(format!("{} bytes more than its elements take", reader.rest.len()));
    }
    Ok(out)
}

/// Groups of 16 bytes, each with a two-bit choice of how many bits a byte takes; a value of all
/// ones stands for a whole byte that follows the group.
fn byte_groups(reader: &mut Reader<'_>, plane: &mut [u8], n: usize, bits: [u32; 4]) -> Result<(), String> {
    let groups = n.div_ceil(GROUP);
    let choices = reader.take(groups.div_ceil(4), "a block's group headers")?;
    for g in 0..groups {
        let group = &mut plane[g * GROUP..(g + 1) * GROUP];
        let bits = bits[usize::from(choices[g / 4] >> (2 * (g % 4)) & 3)];
        match bits {
            0 => group.fill(0),
            8 => group.copy_from_slice(reader.take(GROUP, "a group of bytes")?),
            _ => {
                let packed = reader.take(2 * bits as usize, "a group of bits")?;
                let escape = (1u8 << bits) - 1;
                let per_byte = 8 / bits as usize;
                for (i, value) in group.iter_mut().enumerate() {
                    let within = (i % per_byte) as u32;
                    // Single bits run from the low end of their byte, the others from the high.
                    let shift = if bits == 1 { within } else { 8 - bits * (within + 1) };
                    *value = packed[i / per_byte] >> shift & escape;
                }
                for value in group.iter_mut().filter(|v| **v == escape) {
                    *value = reader.byte("a group's whole bytes")?;
                }
            }
        }
    }
    Ok(())
}

/// Undoes the differences of one four-byte column: as bytes, as shorts, or as exclusive ors of
/// rotated words.
fn deltas(
    planes: &[u8],
    block: usize,
    n: usize,
    channel: u8,
    before: &[u8],
    out: &mut [u8],
    stride: usize,
) -> Result<(), String> {
    match channel & 3 {
        0 => {
            for j in 0..4 {
                let mut last = before[j];
                for i in 0..n {
                    let v = planes[j * block + i];
                    last = last.wrapping_add(v >> 1 ^ (v & 1).wrapping_neg());
                    out[i * stride + j] = last;
                }
            }
        }
        1 => {
            for j in [0, 2] {
                let mut last = u16::from_le_bytes([before[j], before[j + 1]]);
                for i in 0..n {
                    let v = u16::from_le_bytes([planes[j * block + i], planes[(j + 1) * block + i]]);
                    last = last.wrapping_add(v >> 1 ^ (v & 1).wrapping_neg());
                    out[i * stride + j..i * stride + j + 2].copy_from_slice(&last.to_le_bytes());
                }
            }
        }
        2 => {
            let mut last = u32::from_le_bytes([before[0], before[1], before[2], before[3]]);
            for i in 0..n {
                let v = u32::from_le_bytes(std::array::from_fn(|j| planes[j * block + i]));
                last ^= v.rotate_right(u32::from(channel >> 4));
                out[i * stride..i * stride + 4].copy_from_slice(&last.to_le_bytes());
            }
        }
        other => return Err(format!("a channel of kind {other}, where there are kinds 0 to 2")),
    }
    Ok(())
}

/// The index that lies a signed difference, in zigzag, from `last`.
fn moved(last: u32, zigzag: u32) -> u32 {
    last.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg())
}

/// The last 16 edges or vertices, newest last.
struct Fifo<T> {
    entries: [T; 16],
    next: usize,
}

impl<T: Copy> Fifo<T> {
    fn new(fill: T) -> Self {
        Self { entries: [fill; 16], next: 0 }
    }

    /// The entry that was pushed `back` pushes ago, 0 = the newest.
    fn get(&self, back: u8) -> T {
        self.entries[self.next.wrapping_sub(1 + usize::from(back)) & 15]
    }

    /// Puts an entry in the next place, and moves on from it if `keep`.
    fn push(&mut self, entry: T, keep: bool) {
        self.entries[self.next] = entry;
        self.next = (self.next + usize::from(keep)) & 15;
    }
}

fn triangles(data: &[u8], count: usize) -> Result<Vec<u32>, String> {
    let version = header(data, 0xe0, "triangles")?;
    let short = "fewer bytes than its triangles need";
    let body = data.len().checked_sub(1 + count / 3 + 16).ok_or(short)?;
    let (codes, rest) = data[1..].split_at(count / 3);
    let (rest, table) = rest.split_at(body);
    let mut reader = Reader { rest };
    let mut edges = Fifo::new([u32::MAX; 2]);
    let mut vertices = Fifo::new(u32::MAX);
    let (mut next, mut last) = (0u32, 0u32);
    let recent = if version == 0 { 15 } else { 13 };
    let mut out = Vec::with_capacity(count);
    for &code in codes {
        if code < 0xf0 {
            let [a, b] = edges.get(code >> 4);
            let which = code & 15;
            let c = if which == 0 {
                next = next.wrapping_add(1);
                next.wrapping_sub(1)
            } else if which < recent {
                vertices.get(which)
            } else {
                last = match which {
                    13 => last.wrapping_sub(1),
                    14 => last.wrapping_add(1),
                    _ => moved(last, reader.varint("a free index")?),
                };
                last
            };
            vertices.push(c, which == 0 || which >= recent);
            edges.push([c, b], true);
            edges.push([a, c], true);
            out.extend([a, b, c]);
            continue;
        }
        let (first, pair) = match code {
            0xfe | 0xff => (15 * (code & 1), reader.byte("a triangle's code")?),
            _ => (0, table[usize::from(code & 15)]),
        };
        if code >= 0xfe && pair == 0 {
            // All new, though the table would say that shorter: the count starts over.
            next = 0;
        }
        let which = [first, pair >> 4, pair & 15];
        let mut corners = [0; 3];
        for (corner, &which) in corners.iter_mut().zip(&which) {
            *corner = match which {
                0 => {
                    next = next.wrapping_add(1);
                    next.wrapping_sub(1)
                }
                15 => {
                    last = moved(last, reader.varint("a free index")?);
                    last
                }
                _ => vertices.get(which - 1),
            };
        }
        let [a, b, c] = corners;
        for (corner, which) in corners.into_iter().zip(which) {
            vertices.push(corner, which == 0 || which == 15);
        }
        edges.push([b, a], true);
        edges.push([c, b], true);
        edges.push([a, c], true);
        out.extend([a, b, c]);
    }
    if !reader.rest.is_empty() {
        return Err(format!("{} bytes more than its triangles take", reader.rest.len()));
    }
    Ok(out)
}

fn sequence(data: &[u8], count: usize) -> Result<Vec<u32>, String> {
    header(data, 0xd0, "index sequences")?;
    let short = "fewer bytes than its indices need";
    let body = data.len().checked_sub(1 + 4).filter(|&b| b >= count).ok_or(short)?;
    let mut reader = Reader { rest: &data[1..1 + body] };
    let mut last = [0u32; 2];
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let code = reader.varint("an index")?;
        let last = &mut last[(code & 1) as usize];
        *last = moved(*last, code >> 1);
        out.push(*last);
    }
    if !reader.rest.is_empty() {
        return Err(format!("{} bytes more than its indices take", reader.rest.len()));
    }
    Ok(out)
}

fn indices_as_bytes(indices: Vec<u32>, stride: usize) -> Vec<u8> {
    indices.iter().flat_map(|i| i.to_le_bytes().into_iter().take(stride)).collect()
}

fn each_i16(bytes: &mut [u8], change: impl Fn(&mut [i16; 4])) {
    for n in bytes.chunks_exact_mut(8) {
        let mut v = std::array::from_fn(|i| i16::from_le_bytes([n[2 * i], n[2 * i + 1]]));
        change(&mut v);
        for (i, v) in v.into_iter().enumerate() {
            n[2 * i..2 * i + 2].copy_from_slice(&v.to_le_bytes());
        }
    }
}

/// A unit vector, scaled to `max`, of its octahedral x and y and the size of 1 in third place.
fn octahedral([x, y, one]: [f32; 3], max: f32) -> [i32; 3] {
    let z = one - x.abs() - y.abs();
    let fold = z.min(0.0);
    let (x, y) = (x + if x >= 0.0 { fold } else { -fold }, y + if y >= 0.0 { fold } else { -fold });
    let scale = max / (x * x + y * y + z * z).sqrt();
    [x, y, z].map(|v| (v * scale + if v >= 0.0 { 0.5 } else { -0.5 }) as i32)
}

/// A quaternion of its three small components and, in the fourth place, their scale and the place
/// of the largest (its two low bits).
fn quaternion(n: &mut [i16; 4]) {
    let largest = (n[3] & 3) as usize;
    let scale = std::f32::consts::FRAC_1_SQRT_2 / f32::from(n[3] | 3);
    let [x, y, z] = [n[0], n[1], n[2]].map(|v| f32::from(v) * scale);
    let w = (1.0 - x * x - y * y - z * z).max(0.0).sqrt();
    for (i, v) in [x, y, z, w].into_iter().enumerate() {
        n[(largest + 1 + i) & 3] = (v * 32767.0 + if v >= 0.0 { 0.5 } else { -0.5 }) as i16;
    }
}

/// Red, green, blue and opacity of a luma, two chroma values and an opacity of one bit less.
fn color([y, co, cg, a]: [i32; 4], max: f32) -> [i32; 4] {
    let mut full = a;
    for shift in [1, 2, 4, 8] {
        full |= full >> shift;
    }
    let scale = max / full as f32;
    let rgba = [y + co - cg, y + cg, y - co - cg, (a << 1 & full) | (a & 1)];
    rgba.map(|v| (v as f32 * scale + 0.5) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &Value) -> Vec<u8> {
        let hex = hex.as_str().expect("hexadecimal digits");
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    /// Views compressed by the reference encoder, with what its decoder makes of them.
    fn vectors() -> Vec<(String, Options, Vec<u8>, Vec<u8>)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/meshopt/vectors.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let vector = |v: &Value| {
            let options = Options::from_json(v).unwrap();
            (v["name"].to_string(), options, bytes(&v["data"]), bytes(&v["decoded"]))
        };
        all["vectors"].as_array().unwrap().iter().map(vector).collect()
    }

    #[test]
    fn every_codec_and_filter_decodes_to_what_the_reference_decodes() {
        let vectors = vectors();
        assert!(vectors.len() >= 30);
        for (name, options, data, decoded) in vectors {
            assert!(decode(&data, &options).unwrap() == decoded, "{name} differs");
        }
    }

    #[test]
    fn data_cut_off_anywhere_is_refused() {
        for (name, options, data, _) in vectors() {
            for length in 0..data.len() {
                assert!(
                    decode(&data[..length], &options).is_err(),
                    "{name} cut to {length} bytes was decoded"
                );
            }
        }
    }

    #[test]
    fn a_count_that_the_data_does_not_bear_out_is_refused_without_the_memory_for_it() {
        for (name, mut options, data, _) in vectors() {
            options.count = 3_000_000_000;
            assert!(decode(&data, &options).is_err(), "{name} gave three billion elements");
        }
    }
}
