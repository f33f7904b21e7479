//! A document's arrays with those of its animations exchanged for others.
//!
//! Buffer views that something other than the old animations uses keep their bytes, copied range
//! by range; the rest go. New arrays share one buffer view. All buffers that have bytes become one.
//! Indices are renumbered where all that refer to them are known; a document with an extension
//! unknown here keeps its numbers, with stand-ins where something went.

use std::collections::{BTreeMap, BTreeSet};

use inbetween::Transform;
use serde_json::{Value, json};

use super::Place;
use super::accessor::{Accessors, Component, compression};
use super::container::{Buffer, Document};
use crate::FormatError;

/// An array to be stored, elements close together.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) component: Component,
    pub(super) kind: &'static str,
    pub(super) normalized: bool,
    pub(super) count: usize,
    pub(super) bytes: Vec<u8>,
}

/// An accessor of the output, before it has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ref {
    /// One of the source's that stays where it is.
    Old(usize),
    /// One of the [`Arrays`].
    New(usize),
}

/// Arrays to be stored, equal ones once.
#[derive(Default)]
pub(super) struct Arrays {
    list: Vec<Array>,
    /// The source's accessor whose JSON an array takes over.
    json: Vec<Option<usize>>,
    placed: BTreeMap<(Component, &'static str, bool, Vec<u8>), usize>,
    old: BTreeSet<usize>,
}

impl Arrays {
    /// Adds an array, or finds the one that is equal.
    pub(super) fn add(&mut self, array: Array) -> Ref {
        let key = (array.component, array.kind, array.normalized, array.bytes.clone());
        let index = *self.placed.entry(key).or_insert_with(|| {
            self.list.push(array);
            self.json.push(None);
            self.list.len() - 1
        });
        Ref::New(index)
    }

    /// Keeps an accessor of the source: as an array where its bytes lie plainly in a buffer, else
    /// where it is.
    pub(super) fn keep(&mut self, document: &Document, index: usize) -> Result<Ref, FormatError> {
        let accessors = Accessors::new(document, Place { file: "the source" });
        let Some(bytes) = accessors.packed(index)? else {
            self.old.insert(index);
            return Ok(Ref::Old(index));
        };
        let shape = accessors.shape(index)?;
        let array = Array {
            component: shape.component,
            kind: shape.kind,
            normalized: shape.normalized,
            count: shape.count,
            bytes,
        };
        let added = self.add(array);
        if let Ref::New(i) = added {
            self.json[i].get_or_insert(index);
        }
        Ok(added)
    }
}

/// Where accessors went.
pub(super) struct Places {
    old: Vec<Option<usize>>,
    new: Vec<usize>,
}

impl Places {
    /// The accessor's number in the output.
    pub(super) fn of(&self, accessor: Ref) -> usize {
        match accessor {
            Ref::Old(i) => self.old.get(i).copied().flatten().unwrap_or(i),
            Ref::New(i) => self.new[i],
        }
    }
}

/// Extensions that refer to no accessor or buffer view, or whose references are looked after here.
const KNOWN: &[&str] = &[
    "KHR_animation_pointer",
    "KHR_draco_mesh_compression",
    "KHR_lights_punctual",
    "KHR_mesh_quantization",
    "KHR_meshopt_compression",
    "KHR_node_visibility",
    "KHR_texture_basisu",
    "KHR_texture_transform",
    "KHR_xmp_json_ld",
    "EXT_mesh_gpu_instancing",
    "EXT_meshopt_compression",
    "EXT_texture_avif",
    "EXT_texture_webp",
    "MSFT_lod",
    "MSFT_texture_dds",
];

/// True for an extension named in the JSON that is looked after here or does not touch animation.
pub(super) fn is_known(extension: &Value) -> bool {
    let name = extension.as_str().unwrap_or("");
    KNOWN.contains(&name) || name.starts_with("KHR_materials_")
}

/// Lists an extension as used.
pub(super) fn use_extension(json: &mut Value, name: &str) {
    let Some(json) = json.as_object_mut() else { return };
    let used = json.entry("extensionsUsed").or_insert_with(|| json!([]));
    if let Some(used) = used.as_array_mut()
        && !used.iter().any(|u| u == name)
    {
        used.push(name.into());
    }
}

/// Gives a node a translation, rotation and scale in place of a matrix.
pub(super) fn set_transform(node: &mut Value, transform: &Transform) {
    let Some(node) = node.as_object_mut() else { return };
    node.remove("matrix");
    let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a == b);
    let parts: [(&str, Vec<f64>, &[f64]); 3] = [
        ("translation", transform.translation.to_array().to_vec(), &[0.0; 3]),
        ("rotation", transform.rotation.to_array().to_vec(), &[0.0, 0.0, 0.0, 1.0]),
        ("scale", transform.scale.to_array().to_vec(), &[1.0; 3]),
    ];
    for (key, value, default) in parts {
        if !same(&value, default) {
            node.insert(key.to_owned(), value.into());
        }
    }
}

/// Exchanges the arrays of animations. Returns where accessors went and the bytes of buffer 0.
///
/// - `pinned`: accessors of the source that stay where they are, beside those of `arrays`.
/// - `inputs`: accessors that are key times, which need bounds.
pub(super) fn rebuild(
    json: &mut Value,
    document: &Document,
    arrays: &Arrays,
    pinned: &BTreeSet<usize>,
    inputs: &BTreeSet<Ref>,
) -> Result<(Places, Vec<u8>), FormatError> {
    let stays = json["extensionsUsed"].as_array().is_some_and(|used| !used.iter().all(is_known));
    let accessors = document.list("accessors");
    let views = document.list("bufferViews");

    // Which of the old accessors and views go.
    let mut used: BTreeSet<usize> = pinned | &arrays.old;
    each_accessor(json, &mut |v| used.extend(v.as_u64().map(|v| v as usize)));
    let animated = animated(document);
    let goes = |a: &usize| animated.contains(a) && !used.contains(a);
    let gone: BTreeSet<usize> = (0..accessors.len()).filter(goes).collect();
    let (mut needed, mut loose) = (BTreeSet::new(), BTreeSet::new());
    for (i, accessor) in accessors.iter().enumerate() {
        let list = if gone.contains(&i) { &mut loose } else { &mut needed };
        each_view(&mut accessor.clone(), &mut |v| list.extend(v.as_u64().map(|v| v as usize)));
    }
    each_other_view(json, &mut |v| needed.extend(v.as_u64().map(|v| v as usize)));
    let gone_views: BTreeSet<usize> = loose.difference(&needed).copied().collect();

    // Bytes of what stays, in one buffer, then the new arrays.
    let mut data = Vec::new();
    let moves = copy_ranges(document, &gone_views, &mut data);
    data.resize(data.len().next_multiple_of(4), 0);
    let start = data.len();
    let mut offsets = vec![0; arrays.list.len()];
    let mut order: Vec<usize> = (0..arrays.list.len()).collect();
    // Larger components first: then none needs padding.
    order.sort_by_key(|&i| std::cmp::Reverse(arrays.list[i].component.size()));
    for &i in &order {
        offsets[i] = data.len() - start;
        data.extend_from_slice(&arrays.list[i].bytes);
    }
    let length = data.len() - start;
    if stays && data.is_empty() && !gone_views.is_empty() {
        data.extend([0; 4]);
    }

    // Buffers.
    let has_data = !data.is_empty();
    let (mut buffers, mut first) = (Vec::new(), None);
    let mut buffer_places = vec![0; document.buffers.len()];
    for (i, buffer) in document.buffers.iter().enumerate() {
        let old = &document.list("buffers")[i];
        if buffer.bytes().is_some() {
            first.get_or_insert(old);
        } else {
            buffer_places[i] = buffers.len() + usize::from(has_data);
            buffers.push(old.clone());
        }
    }
    if has_data {
        let mut merged = first.cloned().unwrap_or_else(|| json!({}));
        if let Some(merged) = merged.as_object_mut() {
            merged.remove("uri");
            merged.insert("byteLength".to_owned(), data.len().into());
        }
        buffers.insert(0, merged);
    }

    // Views.
    let mut new_views = Vec::new();
    let mut free_views = Vec::new();
    let mut view_places = vec![None; views.len()];
    for (i, view) in views.iter().enumerate() {
        if gone_views.contains(&i) {
            if stays {
                free_views.push(new_views.len());
                new_views.push(json!({"buffer": 0, "byteLength": 1}));
            }
            continue;
        }
        let mut view = view.clone();
        each_buffer(&mut view, &mut |part| {
            let buffer = part["buffer"].as_u64().unwrap_or(0) as usize;
            let offset = part["byteOffset"].as_u64().unwrap_or(0);
            part["buffer"] = buffer_places.get(buffer).copied().unwrap_or(buffer).into();
            if let Some(moved) = moves.get(&(buffer, offset)) {
                set_offset(part, *moved);
            }
        });
        view_places[i] = Some(new_views.len());
        new_views.push(view);
    }
    let array_view = place(
        &mut new_views,
        &mut free_views,
        (length > 0).then(|| {
            let mut view = json!({"buffer": 0, "byteLength": length});
            set_offset(&mut view, start as u64);
            view
        }),
    );

    // Accessors.
    let mut new_accessors = Vec::new();
    let mut free = Vec::new();
    let mut places = Places { old: vec![None; accessors.len()], new: Vec::new() };
    for (i, accessor) in accessors.iter().enumerate() {
        if gone.contains(&i) {
            if stays {
                free.push(new_accessors.len());
                new_accessors.push(json!({"componentType": 5126, "type": "SCALAR", "count": 1}));
            }
            continue;
        }
        let mut accessor = accessor.clone();
        each_view(&mut accessor, &mut |v| renumber(v, &view_places));
        places.old[i] = Some(new_accessors.len());
        new_accessors.push(accessor);
    }
    for (i, array) in arrays.list.iter().enumerate() {
        let accessor = array_json(array, arrays.json[i].map(|a| &accessors[a]), array_view, offsets[i]);
        places.new.push(place(&mut new_accessors, &mut free, Some(accessor)).expect("it was given"));
    }
    for &input in inputs {
        if let Ref::New(i) = input {
            bounds(&mut new_accessors[places.new[i]], &arrays.list[i].bytes);
        }
    }

    each_accessor(json, &mut |v| renumber(v, &places.old));
    each_other_view(json, &mut |v| renumber(v, &view_places));
    let object = json.as_object_mut().expect("a document is an object");
    for (key, list) in [("accessors", new_accessors), ("bufferViews", new_views), ("buffers", buffers)] {
        if list.is_empty() {
            object.remove(key);
        } else {
            object.insert(key.to_owned(), list.into());
        }
    }
    Ok((places, data))
}

/// Puts an entry into the first free place, else at the end.
fn place(list: &mut Vec<Value>, free: &mut Vec<usize>, entry: Option<Value>) -> Option<usize> {
    let entry = entry?;
    if free.is_empty() {
        list.push(entry);
        return Some(list.len() - 1);
    }
    let index = free.remove(0);
    list[index] = entry;
    Some(index)
}

fn set_offset(json: &mut Value, offset: u64) {
    if offset == 0 {
        if let Some(json) = json.as_object_mut() {
            json.remove("byteOffset");
        }
    } else {
        json["byteOffset"] = offset.into();
    }
}

fn renumber(value: &mut Value, places: &[Option<usize>]) {
    if let Some(Some(place)) = value.as_u64().and_then(|v| places.get(v as usize)) {
        *value = (*place).into();
    }
}

fn array_json(array: &Array, old: Option<&Value>, view: Option<usize>, offset: usize) -> Value {
    let mut json = old.cloned().unwrap_or_else(|| {
        let mut json =
            json!({"componentType": array.component.code(), "count": array.count, "type": array.kind});
        if array.normalized {
            json["normalized"] = true.into();
        }
        json
    });
    match view.filter(|_| !array.bytes.is_empty()) {
        Some(view) => {
            json["bufferView"] = view.into();
            set_offset(&mut json, offset as u64);
        }
        None => {
            if let Some(json) = json.as_object_mut() {
                json.remove("bufferView");
                json.remove("byteOffset");
            }
        }
    }
    json
}

/// Least and largest of key times, as the shortest numbers that stand for the same f32.
fn bounds(json: &mut Value, bytes: &[u8]) {
    let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let (low, high) = numbers.fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low <= high {
        let short = |v: f32| v.to_string().parse::<f64>().unwrap_or(f64::from(v));
        json["min"] = json!([short(low)]);
        json["max"] = json!([short(high)]);
    }
}

/// Accessors that the source's animations use.
fn animated(document: &Document) -> BTreeSet<usize> {
    let samplers = document.list("animations").iter().filter_map(|a| a.get("samplers")?.as_array()).flatten();
    let ends = samplers.flat_map(|s| ["input", "output"].map(|k| s.get(k).and_then(Value::as_u64)));
    ends.flatten().map(|i| i as usize).collect()
}

/// Calls `visit` for every accessor index outside animations.
fn each_accessor(json: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let values = |map: Option<&mut Value>, visit: &mut dyn FnMut(&mut Value)| {
        map.and_then(Value::as_object_mut).into_iter().flatten().for_each(|(_, v)| visit(v));
    };
    for mesh in list(json, "meshes") {
        for primitive in list(mesh, "primitives") {
            values(primitive.get_mut("attributes"), visit);
            if let Some(indices) = primitive.get_mut("indices") {
                visit(indices);
            }
            for target in list(primitive, "targets") {
                values(Some(target), visit);
            }
        }
    }
    for skin in list(json, "skins") {
        if let Some(matrices) = skin.get_mut("inverseBindMatrices") {
            visit(matrices);
        }
    }
    for node in list(json, "nodes") {
        values(node.pointer_mut("/extensions/EXT_mesh_gpu_instancing/attributes"), visit);
    }
}

/// Calls `visit` for every buffer view index of an accessor.
fn each_view(accessor: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for pointer in ["/bufferView", "/sparse/indices/bufferView", "/sparse/values/bufferView"] {
        if let Some(view) = accessor.pointer_mut(pointer) {
            visit(view);
        }
    }
}

/// Calls `visit` for every buffer view index outside accessors.
fn each_other_view(json: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for image in list(json, "images") {
        if let Some(view) = image.get_mut("bufferView") {
            visit(view);
        }
    }
    for mesh in list(json, "meshes") {
        for primitive in list(mesh, "primitives") {
            if let Some(view) = primitive.pointer_mut("/extensions/KHR_draco_mesh_compression/bufferView") {
                visit(view);
            }
        }
    }
}

/// Calls `visit` for the view itself and for its compressed form: what names a range of a buffer.
fn each_buffer(view: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    visit(view);
    for name in ["KHR_meshopt_compression", "EXT_meshopt_compression"] {
        if let Some(part) = view.get_mut("extensions").and_then(|e| e.get_mut(name)) {
            visit(part);
        }
    }
}

fn list<'a>(json: &'a mut Value, key: &str) -> &'a mut [Value] {
    json.get_mut(key).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Copies the ranges that the remaining views name, those that touch or overlap as one. Returns
/// where each (buffer, offset) went.
fn copy_ranges(
    document: &Document,
    gone: &BTreeSet<usize>,
    data: &mut Vec<u8>,
) -> BTreeMap<(usize, u64), u64> {
    let mut ranges: BTreeSet<(usize, u64, u64)> = BTreeSet::new();
    for (i, view) in document.list("bufferViews").iter().enumerate() {
        if gone.contains(&i) {
            continue;
        }
        for part in [Some(view), compression(view)].into_iter().flatten() {
            let number = |key: &str| part.get(key).and_then(Value::as_u64).unwrap_or(0);
            let (buffer, start) = (number("buffer") as usize, number("byteOffset"));
            let bytes = document.buffers.get(buffer).and_then(Buffer::bytes);
            if let Some(bytes) = bytes.filter(|b| start <= b.len() as u64) {
                let end = start.saturating_add(number("byteLength")).min(bytes.len() as u64);
                ranges.insert((buffer, start, end));
            }
        }
    }
    let mut moves = BTreeMap::new();
    // The open range: its buffer, start and end, and where its start went.
    let mut open: Option<(usize, u64, u64, u64)> = None;
    let close = |open: Option<(usize, u64, u64, u64)>, data: &mut Vec<u8>| {
        if let Some((buffer, start, end, _)) = open {
            let bytes = document.buffers[buffer].bytes().expect("ranges lie in buffers with bytes");
            data.extend_from_slice(&bytes[start as usize..end as usize]);
        }
    };
    for &(buffer, start, end) in &ranges {
        match &mut open {
            Some((b, _, last, _)) if *b == buffer && start <= *last => *last = end.max(*last),
            _ => {
                close(open, data);
                // The same alignment as before, whatever it was for.
                while data.len() as u64 % 4 != start % 4 {
                    data.push(0);
                }
                open = Some((buffer, start, end, data.len() as u64));
            }
        }
        let (_, from, _, to) = open.expect("just opened");
        moves.insert((buffer, start), to + (start - from));
    }
    close(open, data);
    moves
}
