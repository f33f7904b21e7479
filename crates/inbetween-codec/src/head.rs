//! What a clip says about itself apart from its lanes, and how a skeleton is kept: the fields of
//! the `CLIP` and `SKEL` heads in their order.

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, Binding, Curve, CurveParts, Extrapolation, FrameRate, Joint, Marker, NodeKind, Property,
    ScaleInherit, Skeleton, SpanKind, Spans, Tangents, TrackData, Transform, ValueKind, Wrap,
};

use crate::content::{Constant, Group, NodeConstants};
use crate::format::{ConstantModels, DecodeError, Ends, Fields, Widths, code_group, invalid};
use crate::range_coder::{Bit, Coder, Number};

/// How a property of a node is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// As the skeleton's rest pose has it (the identity, where the file has no skeleton).
    #[default]
    Rest,
    /// In the clip's constants (for some axes, lanes may stand above them).
    Constant,
    /// In lanes.
    Lanes,
    /// In a track of keys, exactly.
    Keys,
}

/// A node as the clip has it: rotation, translation, scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub kept: [Kept; 3],
    /// True if the clip the file was made of drove the property.
    pub driven: [bool; 3],
}

/// A track that is no lane of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrackHead {
    pub binding: Binding,
    pub kind: ValueKind,
    pub rest: Vec<f64>,
    /// Its keys; `None` if it is kept in lanes.
    pub keys: Option<TrackData>,
}

/// Everything of a clip but its lanes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClipHead {
    pub name: String,
    pub start: f64,
    pub end: f64,
    pub rate: Option<FrameRate>,
    pub wrap: Wrap,
    pub additive: bool,
    /// World bound in metres, shell in metres, largest error measured on the bytes.
    pub bound: f32,
    pub shell: f32,
    pub measured: f32,
    /// Node from which root motion is to be taken.
    pub root: Option<u32>,
    pub nodes: Vec<NodeState>,
    pub constants: Vec<NodeConstants>,
    pub tracks: Vec<TrackHead>,
    pub markers: Vec<Marker>,
}

impl Default for ClipHead {
    fn default() -> Self {
        Self {
            name: String::new(),
            start: 0.0,
            end: 0.0,
            rate: None,
            wrap: Wrap::Hold,
            additive: false,
            bound: 0.0,
            shell: 0.0,
            measured: 0.0,
            root: None,
            nodes: Vec::new(),
            constants: Vec::new(),
            tracks: Vec::new(),
            markers: Vec::new(),
        }
    }
}

impl Default for TrackHead {
    fn default() -> Self {
        Self {
            binding: Binding { target: String::new(), node: None, property: Property::Visible, path: None },
            kind: ValueKind::Scalar,
            rest: Vec::new(),
            keys: None,
        }
    }
}

fn code_enum<C: Coder + Ends, T: Copy + PartialEq>(
    f: &mut Fields<C>,
    model: &mut Number,
    all: &[T],
    v: &mut T,
) {
    let mut n = all.iter().position(|a| a == v).unwrap_or(0) as u32;
    f.with_model(model, &mut n);
    f.require((n as usize) < all.len(), "a choice", || format!("number {n} of {}", all.len()));
    *v = all.get(n as usize).copied().unwrap_or(all[0]);
}

fn code_option<C: Coder + Ends, T: Default>(
    f: &mut Fields<C>,
    v: &mut Option<T>,
    each: impl FnOnce(&mut Fields<C>, &mut T),
) {
    let mut some = v.is_some();
    f.flag(&mut some);
    if some {
        each(f, v.get_or_insert_with(T::default));
    } else {
        *v = None;
    }
}

/// Codes a clip's head, its groups and, for each, the length of its payload.
pub(crate) fn code_clip<C: Coder + Ends>(
    f: &mut Fields<C>,
    h: &mut ClipHead,
    groups: &mut Vec<(Group, Vec<Widths>, usize)>,
    with_widths: bool,
) {
    f.text(&mut h.name);
    f.f64(&mut h.start);
    f.f64(&mut h.end);
    f.require(h.start <= h.end, "clip, range", || format!("{} to {} s", h.start, h.end));
    let mut rate = h.rate.map(|r| (r.num(), r.den()));
    code_option(f, &mut rate, |f, r| {
        f.number(&mut r.0);
        f.number(&mut r.1);
    });
    h.rate = rate.and_then(|(n, d)| FrameRate::new(n, d));
    let mut plain = Number::default();
    code_enum(f, &mut plain, &[Wrap::Hold, Wrap::Loop, Wrap::PingPong, Wrap::LoopOffset], &mut h.wrap);
    f.flag(&mut h.additive);
    f.f32(&mut h.bound);
    f.f32(&mut h.shell);
    f.f32(&mut h.measured);
    code_option(f, &mut h.root, |f, n| f.number(n));
    let mut models: [[Number; 4]; 3] = Default::default();
    let mut driven: [[Bit; 4]; 3] = Default::default();
    let mut before = NodeState::default();
    f.list(&mut h.nodes, |f, n| {
        for p in 0..3 {
            let all = [Kept::Rest, Kept::Constant, Kept::Lanes, Kept::Keys];
            code_enum(f, &mut models[p][before.kept[p] as usize], &all, &mut n.kept[p]);
            f.learned(&mut driven[p][n.kept[p] as usize], &mut n.driven[p]);
        }
        before = *n;
    });
    if f.reading() {
        h.constants = vec![NodeConstants::default(); h.nodes.len()];
    }
    let mut turns = ConstantModels::default();
    let mut places = ConstantModels::default();
    let mut shown: [Bit; 3] = Default::default();
    for (n, c) in h.nodes.iter().zip(&mut h.constants) {
        if !f.fine() {
            break;
        }
        let holds = |p: usize| matches!(n.kept[p], Kept::Constant | Kept::Lanes);
        if n.kept[0] == Kept::Constant {
            maybe(f, &mut shown[0], &mut c.rotation, |f, v: &mut Constant| turns.code(f, v));
        }
        if holds(1) {
            maybe(f, &mut shown[1], &mut c.translation, |f, v: &mut Constant| places.code(f, v));
        }
        if holds(2) {
            maybe(f, &mut shown[2], &mut c.scale, |f, v: &mut [f32; 3]| v.iter_mut().for_each(|v| f.f32(v)));
        }
    }
    let nodes = h.nodes.len();
    f.list(&mut h.tracks, |f, t| code_track(f, t, nodes));
    let mut markers: Vec<DefaultMarker> =
        std::mem::take(&mut h.markers).into_iter().map(DefaultMarker).collect();
    f.list(&mut markers, |f, m| {
        f.f64(&mut m.0.time);
        f.text(&mut m.0.name);
    });
    h.markers = markers.into_iter().map(|m| m.0).collect();
    let widths: Vec<usize> =
        h.tracks.iter().map(|t| if t.keys.is_none() { t.kind.width() } else { 0 }).collect();
    f.list(groups, |f, g| {
        let payload_widths = with_widths.then_some(&mut g.1);
        code_group(f, &mut g.0, payload_widths, nodes, &widths);
        f.size(&mut g.2);
    });
}

fn maybe<C: Coder + Ends, T: Default>(
    f: &mut Fields<C>,
    model: &mut Bit,
    v: &mut Option<T>,
    each: impl FnOnce(&mut Fields<C>, &mut T),
) {
    let mut some = v.is_some();
    f.learned(model, &mut some);
    if some {
        each(f, v.get_or_insert_with(T::default));
    } else {
        *v = None;
    }
}

/// A marker with a default, for lists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefaultMarker(pub Marker);

impl Default for DefaultMarker {
    fn default() -> Self {
        Self(Marker { time: 0.0, name: String::new() })
    }
}

fn code_kind<C: Coder + Ends>(f: &mut Fields<C>, v: &mut ValueKind) {
    let (mut tag, mut wide) = match *v {
        ValueKind::Switch => (0u32, 1usize),
        ValueKind::Scalar => (1, 1),
        ValueKind::Vector(n) => (2, usize::from(n)),
        ValueKind::Color(n) => (3, usize::from(n)),
        ValueKind::Rotation => (4, 4),
        ValueKind::Weights(n) => (5, n as usize),
    };
    f.number(&mut tag);
    f.size(&mut wide);
    f.require(
        match tag {
            2 => (2..=4).contains(&wide),
            3 => (3..=4).contains(&wide),
            0 | 1 | 4 => true,
            5 => wide <= 4096,
            _ => false,
        },
        "track, kind",
        || format!("kind {tag} of width {wide}"),
    );
    *v = match tag {
        0 => ValueKind::Switch,
        2 => ValueKind::Vector(wide.clamp(2, 4) as u8),
        3 => ValueKind::Color(wide.clamp(3, 4) as u8),
        4 => ValueKind::Rotation,
        5 => ValueKind::Weights(wide.min(4096) as _),
        _ => ValueKind::Scalar,
    };
}

fn code_track<C: Coder + Ends>(f: &mut Fields<C>, t: &mut TrackHead, nodes: usize) {
    f.text(&mut t.binding.target);
    let mut node = t.binding.node.map(|n| n as u32);
    code_option(f, &mut node, |f, n| f.number(n));
    f.require(node.is_none_or(|n| (n as usize) < nodes), "track, node", || {
        format!("node {node:?} of {nodes}")
    });
    t.binding.node = node.map(|n| n as usize);
    let mut property = t.binding.property.name().to_owned();
    f.text(&mut property);
    t.binding.property = Property::from_name(&property);
    code_option(f, &mut t.binding.path, |f, p| f.text(p));
    code_kind(f, &mut t.kind);
    f.list(&mut t.rest, |f, v| f.f64(v));
    let wide = t.kind.width();
    f.require(t.rest.len() == wide, "track, rest value", || format!("{} numbers for {wide}", t.rest.len()));
    let mut keyed = t.keys.is_some();
    f.flag(&mut keyed);
    if !keyed {
        t.keys = None;
        return;
    }
    let mut axes = matches!(t.keys, Some(TrackData::Axes { .. }));
    f.flag(&mut axes);
    if axes {
        let mut list = match t.keys.take() {
            Some(TrackData::Axes { axes, .. }) => axes.into_iter().map(DefaultAxis).collect(),
            _ => Vec::new(),
        };
        f.list(&mut list, |f, a: &mut DefaultAxis| code_axis(f, &mut a.0));
        f.require(list.len() == wide, "track, axes", || format!("{} axes for {wide} components", list.len()));
        t.keys = Some(TrackData::Axes { kind: t.kind, axes: list.into_iter().map(|a| a.0).collect() });
    } else {
        let curve = match t.keys.take() {
            Some(TrackData::Curve(c)) => Some(c),
            _ => None,
        };
        t.keys = code_curve(f, curve, t.kind).map(TrackData::Curve);
    }
}

struct DefaultAxis(Axis);

impl Default for DefaultAxis {
    fn default() -> Self {
        Self(Axis::Constant(0.0))
    }
}

fn code_axis<C: Coder + Ends>(f: &mut Fields<C>, a: &mut Axis) {
    let mut curve = matches!(a, Axis::Curve(_));
    f.flag(&mut curve);
    if !curve {
        let mut v = match a {
            Axis::Constant(v) => *v,
            Axis::Curve(_) => 0.0,
        };
        f.f64(&mut v);
        *a = Axis::Constant(v);
        return;
    }
    let old = match std::mem::replace(a, Axis::Constant(0.0)) {
        Axis::Curve(c) => Some(c),
        Axis::Constant(_) => None,
    };
    if let Some(c) = code_curve(f, old, ValueKind::Scalar) {
        *a = Axis::Curve(c);
    }
}

const SPANS: [SpanKind; 5] =
    [SpanKind::Step, SpanKind::StepNext, SpanKind::Linear, SpanKind::Hermite, SpanKind::Bezier];

fn code_extrapolation<C: Coder + Ends>(f: &mut Fields<C>, e: &mut Extrapolation) {
    let (mut tag, mut repeats) = match *e {
        Extrapolation::Hold => (0u32, None),
        Extrapolation::Linear => (1, None),
        Extrapolation::Cycle { repeats } => (2, repeats),
        Extrapolation::CycleOffset { repeats } => (3, repeats),
        Extrapolation::Mirror { repeats } => (4, repeats),
    };
    f.number(&mut tag);
    if tag >= 2 {
        code_option(f, &mut repeats, |f, n| f.number(n));
    }
    f.require(tag <= 4, "track, extrapolation", || format!("kind {tag} of 5"));
    *e = match tag {
        1 => Extrapolation::Linear,
        2 => Extrapolation::Cycle { repeats },
        3 => Extrapolation::CycleOffset { repeats },
        4 => Extrapolation::Mirror { repeats },
        _ => Extrapolation::Hold,
    };
}

fn code_curve<C: Coder + Ends>(f: &mut Fields<C>, curve: Option<Curve>, kind: ValueKind) -> Option<Curve> {
    let (mut times, mut values, mut spans, mut tangents) =
        (Vec::new(), Vec::new(), Vec::new(), Tangents::default());
    let mut has_tangents = false;
    let mut ends = [Extrapolation::Hold; 2];
    if let Some(c) = curve {
        let n = c.len();
        let parts = c.into_parts();
        ends = [parts.before, parts.after];
        times = parts.times.to_vec();
        values = parts.values;
        spans = match parts.spans {
            Spans::Uniform(k) => vec![k],
            Spans::PerKey(k) => k.into_iter().take(n).collect(),
        };
        if let Some(t) = parts.tangents {
            tangents = *t;
            has_tangents = true;
        }
    }
    f.list(&mut times, |f, t| f.f64(t));
    f.list(&mut values, |f, v| f.f64(v));
    let mut model = Number::default();
    let mut list: Vec<DefaultSpan> = spans.into_iter().map(DefaultSpan).collect();
    f.list(&mut list, |f, s| code_enum(f, &mut model, &SPANS, &mut s.0));
    ends.iter_mut().for_each(|e| code_extrapolation(f, e));
    f.flag(&mut has_tangents);
    if has_tangents {
        for rows in
            [&mut tangents.leave, &mut tangents.arrive, &mut tangents.leave_dt, &mut tangents.arrive_dt]
        {
            f.list(rows, |f, v| f.f64(v));
        }
    }
    let spans = match list.as_slice() {
        [one] => Spans::Uniform(one.0),
        many => Spans::PerKey(many.iter().map(|s| s.0).collect()),
    };
    let parts = CurveParts {
        kind,
        times: times.into(),
        values,
        spans,
        tangents: has_tangents.then(|| Box::new(tangents)),
        before: ends[0],
        after: ends[1],
    };
    if f.reading() && !f.fine() {
        return None;
    }
    match Curve::new(parts) {
        Ok(c) => Some(c),
        Err(e) => {
            f.require(false, "track, keys", || e.to_string());
            None
        }
    }
}

struct DefaultSpan(SpanKind);

impl Default for DefaultSpan {
    fn default() -> Self {
        Self(SpanKind::Linear)
    }
}

// ---- skeletons ----

struct DefaultJoint(Joint);

impl Default for DefaultJoint {
    fn default() -> Self {
        Self(Joint::new("", None, Transform::IDENTITY))
    }
}

fn code_joint<C: Coder + Ends>(f: &mut Fields<C>, m: &mut Number, j: &mut Joint) {
    f.text(&mut j.name);
    let mut parent = j.parent.map_or(0, |p| p as u32 + 1);
    f.with_model(m, &mut parent);
    j.parent = parent.checked_sub(1).map(|p| p as usize);
    code_enum(f, m, &[ScaleInherit::Full, ScaleInherit::Ignore, ScaleInherit::Componentwise], &mut j.inherit);
    let kinds = [NodeKind::Node, NodeKind::Joint, NodeKind::Mesh, NodeKind::Camera, NodeKind::Light];
    code_enum(f, m, &kinds, &mut j.kind);
    let mut t = j.rest.translation.to_array();
    let mut r = j.rest.rotation.to_array();
    let mut s = j.rest.scale.to_array();
    t.iter_mut().chain(&mut r).chain(&mut s).for_each(|v| f.f64(v));
    j.rest = Transform {
        translation: DVec3::from_array(t),
        rotation: DQuat::from_array(r),
        scale: DVec3::from_array(s),
    };
    f.require((j.rest.rotation.length_squared() - 1.0).abs() < 1e-3, "skeleton, rest pose", || {
        format!("a rotation of length {}", j.rest.rotation.length())
    });
    let mut tips: Vec<[f64; 3]> = j.tips.iter().map(|t| t.to_array()).collect();
    f.list(&mut tips, |f, t| t.iter_mut().for_each(|v| f.f64(v)));
    j.tips = tips.into_iter().map(DVec3::from_array).collect();
    code_option(f, &mut j.reach, |f, v| f.f64(v));
}

/// A skeleton's chunk. Pivots are folded into the poses, so they are not kept.
pub(crate) fn write_skeleton(s: &Skeleton) -> Vec<u8> {
    let mut f = Fields::writer();
    let mut m = Number::default();
    let mut joints: Vec<DefaultJoint> = s.joints().iter().cloned().map(DefaultJoint).collect();
    f.list(&mut joints, |f, j| code_joint(f, &mut m, &mut j.0));
    f.finish()
}

/// Reads what [`write_skeleton`] wrote.
pub(crate) fn read_skeleton(bytes: &[u8]) -> Result<Skeleton, DecodeError> {
    let mut f = Fields::reader(bytes);
    let mut m = Number::default();
    let mut joints: Vec<DefaultJoint> = Vec::new();
    f.list(&mut joints, |f, j| code_joint(f, &mut m, &mut j.0));
    f.check("skeleton")?;
    Skeleton::new(joints.into_iter().map(|j| j.0).collect()).map_err(|e| invalid("skeleton", e.to_string()))
}
