//! Typed arrays out of buffers: strides, sparse values, normalised integers, compressed views.
//!
//! Nothing is allocated because a number in the JSON says so: an accessor's range is compared
//! with its buffer first, an accessor without data may be only as large as the file warrants, and
//! what compressed views and shared arrays unfold to is drawn from one budget for the file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::container::{Buffer, Document};
use super::{Place, meshopt};
use crate::FormatError;

/// How the numbers of an accessor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Component {
    I8,
    U8,
    I16,
    U16,
    U32,
    F32,
}

impl Component {
    pub(super) fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            5120 => Self::I8,
            5121 => Self::U8,
            5122 => Self::I16,
            5123 => Self::U16,
            5125 => Self::U32,
            5126 => Self::F32,
            _ => return None,
        })
    }

    pub(super) fn code(self) -> u64 {
        match self {
            Self::I8 => 5120,
            Self::U8 => 5121,
            Self::I16 => 5122,
            Self::U16 => 5123,
            Self::U32 => 5125,
            Self::F32 => 5126,
        }
    }

    /// Bytes of one number.
    pub(super) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
        }
    }

    /// What a normalised integer is divided by, and the least result.
    pub(super) fn scale(self) -> Option<(f64, f64)> {
        Some(match self {
            Self::I8 => (127.0, -1.0),
            Self::U8 => (255.0, 0.0),
            Self::I16 => (32767.0, -1.0),
            Self::U16 => (65535.0, 0.0),
            Self::U32 | Self::F32 => return None,
        })
    }

    fn read(self, b: &[u8]) -> f64 {
        match self {
            Self::I8 => f64::from(b[0].cast_signed()),
            Self::U8 => f64::from(b[0]),
            Self::I16 => f64::from(i16::from_le_bytes([b[0], b[1]])),
            Self::U16 => f64::from(u16::from_le_bytes([b[0], b[1]])),
            Self::U32 => f64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            Self::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        }
    }
}

/// What an accessor says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) component: Component,
    /// `SCALAR`, `VEC3`, …
    pub(super) kind: &'static str,
    /// Numbers of one element.
    pub(super) width: usize,
    pub(super) count: usize,
    pub(super) normalized: bool,
}

impl Shape {
    /// Bytes of one element without a stride. (Matrices of bytes and shorts pad their columns.)
    pub(super) fn element_bytes(&self) -> usize {
        let (columns, rows) = self.columns();
        if columns == 1 { rows * self.component.size() } else { columns * self.column_bytes() }
    }

    fn columns(&self) -> (usize, usize) {
        match self.kind {
            "MAT2" => (2, 2),
            "MAT3" => (3, 3),
            "MAT4" => (4, 4),
            _ => (1, self.width),
        }
    }

    fn column_bytes(&self) -> usize {
        (self.columns().1 * self.component.size()).next_multiple_of(4)
    }
}

const KINDS: [(&str, usize); 7] =
    [("SCALAR", 1), ("VEC2", 2), ("VEC3", 3), ("VEC4", 4), ("MAT2", 4), ("MAT3", 9), ("MAT4", 16)];

/// The accessors of a document.
pub(super) struct Accessors<'a> {
    document: &'a Document,
    at: Place<'a>,
    views: RefCell<BTreeMap<usize, Rc<[u8]>>>,
    /// Bytes that decoding and unfolding may still make.
    budget: Cell<u64>,
}

/// The bytes of a buffer view, borrowed or decoded.
enum View<'a> {
    Plain(&'a [u8]),
    Decoded(Rc<[u8]>),
}

impl View<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(b) => b,
            Self::Decoded(b) => b,
        }
    }
}

impl<'a> Accessors<'a> {
    pub(super) fn new(document: &'a Document, at: Place<'a>) -> Self {
        // Honest files share arrays between channels, and compress to a tenth at best; a file
        // that unfolds to hundreds of times its size is made to do harm.
        let budget = Cell::new((64 << 20) + 128 * document.byte_count());
        Self { document, at, views: RefCell::default(), budget }
    }

    /// Draws `bytes` from what the file may unfold to.
    pub(super) fn spend(&self, place: &str, bytes: u64) -> Result<(), FormatError> {
        match self.budget.get().checked_sub(bytes) {
            Some(rest) => {
                self.budget.set(rest);
                Ok(())
            }
            None => Err(FormatError::Limit {
                file: self.at.file.to_owned(),
                place: place.to_owned(),
                what: "bytes that a file of this size unfolds to".to_owned(),
                found: bytes,
                limit: self.budget.get(),
                advice: "its counts are wrong or made to exhaust memory; check the accessor's count"
                    .to_owned(),
            }),
        }
    }

    fn json(&self, index: usize) -> Result<&'a Value, FormatError> {
        let list = self.document.list("accessors");
        list.get(index).ok_or_else(|| {
            let expected = format!("one of the file's {} accessors", list.len());
            let advice = "the file names an accessor it does not have; export it again";
            self.at.broken(format!("accessor {index}"), expected, "none of that number", advice)
        })
    }

    /// What accessor `index` says of itself, checked.
    pub(super) fn shape(&self, index: usize) -> Result<Shape, FormatError> {
        let json = self.json(index)?;
        let broken = |expected: &str, found: Option<&Value>| {
            let found = found.map_or("nothing".to_owned(), Value::to_string);
            let advice = "export the file again or correct its JSON";
            self.at.broken(format!("accessor {index}"), expected, found, advice)
        };
        let code = json.get("componentType");
        let component = code
            .and_then(Value::as_u64)
            .and_then(Component::from_code)
            .ok_or_else(|| broken("a componentType of 5120 to 5126 (5124 does not exist)", code))?;
        let name = json.get("type");
        let &(kind, width) = KINDS
            .iter()
            .find(|(kind, _)| name.and_then(Value::as_str) == Some(kind))
            .ok_or_else(|| broken("a type of SCALAR, VEC2, VEC3, VEC4, MAT2, MAT3 or MAT4", name))?;
        let count = json.get("count");
        let count = count
            .and_then(Value::as_u64)
            .filter(|&c| c < 1 << 40)
            .ok_or_else(|| broken("a count, a whole number from 0", count))? as usize;
        let normalized = json.get("normalized").and_then(Value::as_bool).unwrap_or(false);
        Ok(Shape { component, kind, width, count, normalized })
    }

    /// True if the accessor has data of its own, not only the zeros that stand for none.
    pub(super) fn has_data(&self, index: usize) -> bool {
        let json = self.document.list("accessors").get(index);
        json.is_some_and(|a| a.get("bufferView").is_some() || a.get("sparse").is_some())
    }

    /// All numbers of accessor `index`, element after element, normalised integers as what they
    /// stand for.
    pub(super) fn numbers(&self, index: usize) -> Result<Vec<f64>, FormatError> {
        let json = self.json(index)?;
        let shape = self.shape(index)?;
        let place = format!("accessor {index}");
        let numbers = (shape.count as u64).saturating_mul(shape.width as u64);
        let view = json.get("bufferView").map(|v| self.index(&place, v)).transpose()?;
        // Range first: a count that the buffer does not bear out allocates nothing.
        let strided = match view {
            Some(view) => Some(self.strided(index, view, &shape)?),
            None => None,
        };
        self.spend(&place, numbers.saturating_mul(8))?;
        let mut values = vec![0.0; numbers as usize];
        if let Some((view, offset, stride)) = strided {
            let bytes = &view.bytes()[offset.min(view.bytes().len())..];
            unpack(&shape, bytes, stride, &mut values);
        }
        if let Some(sparse) = json.get("sparse") {
            self.overlay(&place, sparse, &shape, &mut values)?;
        }
        if shape.normalized
            && let Some((divisor, least)) = shape.component.scale()
        {
            for v in &mut values {
                *v = (*v / divisor).max(least);
            }
        }
        Ok(values)
    }

    /// The accessor's bytes, elements close together, where they lie plainly in a buffer: not
    /// sparse, not compressed, not without data.
    pub(super) fn packed(&self, index: usize) -> Result<Option<Vec<u8>>, FormatError> {
        let json = self.json(index)?;
        let Some(view) = json.get("bufferView") else { return Ok(None) };
        if json.get("sparse").is_some() {
            return Ok(None);
        }
        let view = self.index(&format!("accessor {index}"), view)?;
        if compression(&self.document.list("bufferViews")[view]).is_some() {
            return Ok(None);
        }
        let shape = self.shape(index)?;
        let (view, offset, stride) = self.strided(index, view, &shape)?;
        let size = shape.element_bytes();
        if shape.count == 0 {
            return Ok(Some(Vec::new()));
        }
        let bytes = &view.bytes()[offset..];
        if stride == size {
            return Ok(Some(bytes[..shape.count * size].to_vec()));
        }
        let mut packed = Vec::with_capacity(shape.count * size);
        for i in 0..shape.count {
            packed.extend_from_slice(&bytes[i * stride..i * stride + size]);
        }
        Ok(Some(packed))
    }

    fn index(&self, place: &str, value: &Value) -> Result<usize, FormatError> {
        let count = self.document.list("bufferViews").len();
        let index = value.as_u64().map(|v| v as usize);
        index.filter(|&v| v < count).ok_or_else(|| {
            let expected = format!("one of the file's {count} buffer views");
            let advice = "the file names a buffer view it does not have; export it again";
            self.at.broken(place, expected, value.to_string(), advice)
        })
    }

    /// The view of an accessor, its offset in it and the distance of its elements, in range.
    fn strided(
        &self,
        index: usize,
        view: usize,
        shape: &Shape,
    ) -> Result<(View<'a>, usize, usize), FormatError> {
        let json = self.json(index)?;
        let view_json = &self.document.list("bufferViews")[view];
        let place = format!("accessor {index}");
        let offset = whole(self.at, &place, json, "byteOffset")?;
        let size = shape.element_bytes() as u64;
        let stride = match compression(view_json) {
            Some(c) => whole(self.at, &format!("buffer view {view}"), c, "byteStride")?,
            None => whole(self.at, &format!("buffer view {view}"), view_json, "byteStride")?,
        };
        let stride =
            if stride == 0 || compression(view_json).is_some() && stride < size { size } else { stride };
        if stride < size {
            let expected = format!("a byteStride of at least {size} for {} elements", shape.kind);
            let advice = "export the file again or correct its JSON";
            return Err(self.at.broken(format!("buffer view {view}"), expected, stride.to_string(), advice));
        }
        let needed = match shape.count as u64 {
            0 => 0,
            n => offset.saturating_add((n - 1).saturating_mul(stride)).saturating_add(size),
        };
        let view_bytes = self.view(view, needed)?;
        let available = view_bytes.bytes().len() as u64;
        if needed > available {
            let expected = format!("{needed} bytes for its count of {} {}", shape.count, shape.kind);
            let found = format!("buffer view {view} with {available} bytes");
            let advice = "the count is too large or the buffer is cut off; export the file again";
            return Err(self.at.broken(place, expected, found, advice));
        }
        Ok((view_bytes, offset as usize, stride as usize))
    }

    /// The bytes of a view; `needed` is how many the caller wants, for the message.
    fn view(&self, index: usize, needed: u64) -> Result<View<'a>, FormatError> {
        let json = &self.document.list("bufferViews")[index];
        let place = format!("buffer view {index}");
        if let Some(compression) = compression(json) {
            if let Some(done) = self.views.borrow().get(&index) {
                return Ok(View::Decoded(done.clone()));
            }
            let source = self.range(&place, compression, needed)?;
            let options = meshopt::Options::from_json(compression).map_err(|(expected, found)| {
                self.at.broken(&*place, expected, found, "export the file again, or without compression")
            })?;
            let size = options.decoded_bytes();
            self.spend(&place, size)?;
            let decoded: Rc<[u8]> = meshopt::decode(source, &options)
                .map_err(|found| {
                    let advice = "the compressed data is damaged; export the file again";
                    let expected = format!("{} elements of meshopt data", options.count);
                    self.at.broken(&*place, expected, found, advice)
                })?
                .into();
            self.views.borrow_mut().insert(index, decoded.clone());
            return Ok(View::Decoded(decoded));
        }
        Ok(View::Plain(self.range(&place, json, needed)?))
    }

    /// The range of a buffer that `json` (a view, or a compressed view's extension) names.
    fn range(&self, place: &str, json: &Value, needed: u64) -> Result<&'a [u8], FormatError> {
        let index = whole(self.at, place, json, "buffer")? as usize;
        let (offset, length) =
            (whole(self.at, place, json, "byteOffset")?, whole(self.at, place, json, "byteLength")?);
        let advice = "the file is cut off, or a file beside it is not the one it was exported with";
        let bytes = match self.document.buffers.get(index) {
            None => {
                let expected = format!("one of the file's {} buffers", self.document.buffers.len());
                return Err(self.at.broken(place, expected, format!("buffer {index}"), advice));
            }
            Some(Buffer::Missing(why)) => {
                let advice = "put the file that is named beside this one";
                return Err(self.at.broken(place, format!("buffer {index}"), why.clone(), advice));
            }
            Some(Buffer::Fallback) => {
                let found = format!("buffer {index}, which has neither a uri nor a GLB chunk");
                return Err(self.at.broken(place, format!("{needed} bytes of data"), found, advice));
            }
            Some(buffer) => buffer.bytes().expect("the others hold bytes"),
        };
        let end = offset.saturating_add(length);
        if end > bytes.len() as u64 {
            let expected = format!("bytes {offset} to {end} of buffer {index}");
            let found = format!("only {} bytes there (truncated)", bytes.len());
            return Err(self.at.broken(place, expected, found, advice));
        }
        Ok(&bytes[offset as usize..end as usize])
    }

    fn overlay(
        &self,
        place: &str,
        sparse: &Value,
        shape: &Shape,
        values: &mut [f64],
    ) -> Result<(), FormatError> {
        let place = format!("{place} sparse");
        let at = |expected: &str, found: String| {
            self.at.broken(&*place, expected, found, "export the file again or correct its JSON")
        };
        let count = whole(self.at, &place, sparse, "count")?;
        if count > shape.count as u64 {
            return Err(at(&format!("at most {} replaced elements", shape.count), count.to_string()));
        }
        let part = |name: &str, size: u64| -> Result<(View<'a>, usize), FormatError> {
            let json = sparse.get(name).ok_or_else(|| at(&format!("sparse.{name}"), "nothing".to_owned()))?;
            let view = self.index(&place, json.get("bufferView").unwrap_or(&Value::Null))?;
            let offset = whole(self.at, &place, json, "byteOffset")?;
            let needed = offset.saturating_add(count.saturating_mul(size));
            let bytes = self.view(view, needed)?;
            if needed > bytes.bytes().len() as u64 {
                let found = format!("buffer view {view} with {} bytes", bytes.bytes().len());
                return Err(at(&format!("{needed} bytes for its {name}"), found));
            }
            Ok((bytes, offset as usize))
        };
        let code = sparse.get("indices").and_then(|i| i.get("componentType")).and_then(Value::as_u64);
        let component = code
            .and_then(Component::from_code)
            .filter(|c| matches!(c, Component::U8 | Component::U16 | Component::U32))
            .ok_or_else(|| at("indices of unsigned bytes, shorts or ints", format!("{code:?}")))?;
        let (indices, from) = part("indices", component.size() as u64)?;
        let size = shape.element_bytes();
        let (replaced, start) = part("values", size as u64)?;
        let mut last = None;
        for i in 0..count as usize {
            let index = component.read(&indices.bytes()[from + i * component.size()..]) as usize;
            if index >= shape.count || last.is_some_and(|l| index <= l) {
                let expected = format!("increasing indices below {}", shape.count);
                return Err(at(&expected, format!("{index} after {last:?}")));
            }
            last = Some(index);
            let element = Shape { count: 1, ..shape.clone() };
            let bytes = &replaced.bytes()[start + i * size..];
            unpack(&element, bytes, size, &mut values[index * shape.width..(index + 1) * shape.width]);
        }
        Ok(())
    }
}

fn unpack(shape: &Shape, bytes: &[u8], stride: usize, values: &mut [f64]) {
    let (columns, rows) = shape.columns();
    let size = shape.component.size();
    for (i, element) in values.chunks_exact_mut(shape.width).enumerate() {
        let bytes = &bytes[i * stride..];
        for column in 0..columns {
            let start = column * if columns == 1 { 0 } else { shape.column_bytes() };
            for row in 0..rows {
                element[column * rows + row] = shape.component.read(&bytes[start + row * size..]);
            }
        }
    }
}

/// The compression extension of a buffer view, under either of its names.
pub(super) fn compression(view: &Value) -> Option<&Value> {
    let extensions = view.get("extensions")?;
    extensions.get("KHR_meshopt_compression").or_else(|| extensions.get("EXT_meshopt_compression"))
}

/// A whole number of `json`, 0 where it is not given.
pub(super) fn whole(at: Place<'_>, place: &str, json: &Value, key: &str) -> Result<u64, FormatError> {
    match json.get(key) {
        None => Ok(0),
        Some(v) => v.as_u64().ok_or_else(|| {
            let advice = "export the file again or correct its JSON";
            at.broken(place, format!("{key}, a whole number from 0"), v.to_string(), advice)
        }),
    }
}
