//! The project's own readable text for clips, `.inb`: everything the model has, a line a thing.
//!
//! It is made to be read, compared line by line and written by hand: tracks for lights, colours,
//! cameras and switches need a few lines each. Numbers are written in the shortest form that
//! reads back as the same bits, so a file that is written and read again gives an equal import.
//! `docs/clip-text-format.md` describes the format with examples.
//!
//! Reading is in `read.rs` over the words of `words.rs`, writing in `write.rs`; this file holds
//! the names both use.

mod read;
mod words;
mod write;

pub(crate) use words::write_number;
pub use write::write;

use std::collections::HashMap;

use inbetween::{Joint, NodeKind, Property, ScaleInherit, Skeleton, SpanKind, ValueKind, Wrap};

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The first word of every file, followed by the version.
const MAGIC: &str = "inbetween-clips";

/// The version that is written, and the highest that is read.
const VERSION: u32 = 1;

/// The project's own text format. See the [module](self).
pub struct Native;

impl Format for Native {
    fn name(&self) -> &'static str {
        "inb"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["inb"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        head.starts_with(MAGIC.as_bytes())
    }

    fn read(&self, input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
        read::read(input, options)
    }
}

const NODE_KINDS: [(&str, NodeKind); 5] = [
    ("node", NodeKind::Node),
    ("joint", NodeKind::Joint),
    ("mesh", NodeKind::Mesh),
    ("camera", NodeKind::Camera),
    ("light", NodeKind::Light),
];

const INHERIT: [(&str, ScaleInherit); 3] = [
    ("full", ScaleInherit::Full),
    ("ignore", ScaleInherit::Ignore),
    ("componentwise", ScaleInherit::Componentwise),
];

const WRAPS: [(&str, Wrap); 4] = [
    ("hold", Wrap::Hold),
    ("loop", Wrap::Loop),
    ("ping-pong", Wrap::PingPong),
    ("loop-offset", Wrap::LoopOffset),
];

pub(crate) const SPANS: [(&str, SpanKind); 5] = [
    ("step", SpanKind::Step),
    ("step-next", SpanKind::StepNext),
    ("linear", SpanKind::Linear),
    ("hermite", SpanKind::Hermite),
    ("bezier", SpanKind::Bezier),
];

const PIVOTS: [&str; 4] = ["rotation-offset", "rotation-pivot", "scaling-offset", "scaling-pivot"];

fn by_name<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

pub(crate) fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, v)| *v == value).map_or("", |(name, _)| name)
}

/// `scalar`, `vector3`, `color4`, `weights12`, …
pub(crate) fn kind_name(kind: ValueKind) -> String {
    match kind {
        ValueKind::Switch => "switch".to_owned(),
        ValueKind::Scalar => "scalar".to_owned(),
        ValueKind::Vector(n) => format!("vector{n}"),
        ValueKind::Color(n) => format!("color{n}"),
        ValueKind::Rotation => "rotation".to_owned(),
        ValueKind::Weights(n) => format!("weights{n}"),
    }
}

fn kind_from_name(word: &str) -> Option<ValueKind> {
    let sized = |prefix: &str| word.strip_prefix(prefix).filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    match word {
        "switch" => Some(ValueKind::Switch),
        "scalar" => Some(ValueKind::Scalar),
        "rotation" => Some(ValueKind::Rotation),
        _ => {
            let color = sized("color").or_else(|| sized("colour"));
            let vector = sized("vector").and_then(|n| n.parse().ok()).map(ValueKind::Vector);
            let color = color.and_then(|n| n.parse().ok()).map(ValueKind::Color);
            let weights = sized("weights").and_then(|n| n.parse().ok()).map(ValueKind::Weights);
            vector.or(color).or(weights)
        }
    }
}

/// What a property holds where a track does not say; `None` for weights, whose number differs.
fn default_kind(property: &Property) -> Option<ValueKind> {
    match property {
        Property::Translation | Property::Scale => Some(ValueKind::Vector(3)),
        Property::Rotation => Some(ValueKind::Rotation),
        Property::Visible => Some(ValueKind::Switch),
        Property::Weights => None,
        Property::Other(_) => Some(ValueKind::Scalar),
    }
}

/// How spans are filled where a track does not say.
fn default_span(kind: ValueKind) -> SpanKind {
    if kind == ValueKind::Switch { SpanKind::Step } else { SpanKind::Linear }
}

/// A property's value where nothing drives it and the file does not say: the node's own, else
/// shown, unscaled, unturned, zero.
fn default_rest(property: &Property, kind: ValueKind, node: Option<usize>, skeleton: &Skeleton) -> Vec<f64> {
    let joint = node.and_then(|n| skeleton.joints().get(n));
    let rest = joint.map_or(inbetween::Transform::IDENTITY, |j| j.rest);
    match (property, kind) {
        (Property::Translation, ValueKind::Vector(3)) => rest.translation.to_array().to_vec(),
        (Property::Rotation, ValueKind::Rotation) => rest.rotation.to_array().to_vec(),
        (Property::Scale, ValueKind::Vector(3)) => rest.scale.to_array().to_vec(),
        (Property::Visible, ValueKind::Switch) => vec![1.0],
        (_, ValueKind::Rotation) => vec![0.0, 0.0, 0.0, 1.0],
        _ => vec![0.0; kind.width()],
    }
}

/// Name of component `index`: x y z w, r g b a, else its number.
pub(crate) fn component_name(kind: ValueKind, index: usize) -> String {
    let letters = match kind {
        ValueKind::Vector(n) if n <= 4 => "xyzw",
        ValueKind::Color(n) if n <= 4 => "rgba",
        ValueKind::Rotation => "xyzw",
        _ => "",
    };
    letters.get(index..=index).map_or_else(|| index.to_string(), str::to_owned)
}

fn component_index(word: &str) -> Option<usize> {
    match word {
        "x" | "r" => Some(0),
        "y" | "g" => Some(1),
        "z" | "b" => Some(2),
        "w" | "a" => Some(3),
        _ => word.parse().ok(),
    }
}

/// Which node a name means.
struct Names<'a> {
    /// Index and how many nodes share the name.
    of: HashMap<&'a str, (usize, usize)>,
}

impl<'a> Names<'a> {
    fn of(joints: &'a [Joint]) -> Self {
        let mut of = HashMap::with_capacity(joints.len());
        for (i, joint) in joints.iter().enumerate() {
            of.entry(joint.name.as_str()).and_modify(|(_, n)| *n += 1).or_insert((i, 1));
        }
        Self { of }
    }

    /// The one node of that name; `None` if there is none or more than one.
    fn unique(&self, name: &str) -> Option<usize> {
        self.of.get(name).filter(|(_, n)| *n == 1).map(|(i, _)| *i)
    }

    /// How many nodes have the name.
    fn count(&self, name: &str) -> usize {
        self.of.get(name).map_or(0, |(_, n)| *n)
    }
}
