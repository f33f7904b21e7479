//! What smoothing changes, in numbers and in pictures, before anything is rendered.
//!
//! The page stands alone (no script, nothing loaded): the path from above and from
//! the side with its keys and the line of sight at each, then speed, acceleration and
//! turning over time, before (grey) and after, then field of view, roll and whatever
//! else runs past its keys. Where a curve overshoots is drawn in the warning colour.

use inbetween::camera::{CameraPath, Overshot, PathSpan, PathStatus, Retimed, Role};
use inbetween::spline::{Derivative, quat_rotate};
use serde_json::{Value, json};

use super::status_document;
use crate::picture::panel::{Line, Panel, stack, thinned};
use crate::picture::svg::{Svg, escape, style};
use crate::picture::{Anchor, Canvas, Ink, Pen, nice_step};
use crate::units::short;

/// Samples of each curve.
const SAMPLES: usize = 1200;
const WIDTH: f64 = 900.0;
const MAP: f64 = 430.0;

/// Largest values of one way of flying.
#[derive(Clone, Debug, Default)]
struct Peaks {
    speed: f64,
    acceleration: f64,
    /// Largest jump of the acceleration at a key.
    jump: f64,
    turning: f64,
}

impl Peaks {
    fn of(path: &CameraPath) -> Self {
        let mut peaks = Self::default();
        for t in times(path) {
            peaks.speed = peaks.speed.max(path.speed(t));
            peaks.acceleration = peaks.acceleration.max(size(path.acceleration(t)));
            peaks.turning = peaks.turning.max(path.turning_rate(t));
        }
        let cut = |i: usize| path.span_kind(i) == PathSpan::Cut;
        let places: Vec<usize> =
            [Role::X, Role::Y, Role::Z].into_iter().filter_map(|r| path.role(r)).collect();
        for i in 1..path.spans() {
            if !cut(i - 1) && !cut(i) {
                // From the polynomials themselves: times far from 0 are too coarse to
                // look at either side of a key.
                let (start, end) = path.curve().span_times(i - 1);
                let jump = |&k: &usize| {
                    let before = path.curve().cubic(i - 1, k).acceleration(end - start);
                    let off = path.curve().cubic(i, k).acceleration(0.0) - before;
                    off * off
                };
                peaks.jump = peaks.jump.max(places.iter().map(jump).sum::<f64>().sqrt());
            }
        }
        peaks
    }

    fn document(&self) -> Value {
        json!({
            "max_speed_m_s": self.speed,
            "max_acceleration_m_s2": self.acceleration,
            "max_acceleration_jump_m_s2": self.jump,
            "max_turning_deg_s": self.turning.to_degrees(),
        })
    }
}

/// What there is to say about a path before and after.
pub struct Facts {
    before: Peaks,
    after: Peaks,
    status: PathStatus,
    overshoot: Vec<Overshot>,
    retimed: Option<(f64, bool)>,
}

impl Facts {
    /// Looks at the path as it was (`before`) and as it is flown.
    pub fn of(before: &CameraPath, after: &CameraPath, clock: Option<&Retimed<'_>>) -> Self {
        Self {
            before: Peaks::of(before),
            after: Peaks::of(after),
            status: after.status(),
            overshoot: after.overshoot(),
            retimed: clock.map(|c| (c.duration(), c.turning_held_back())),
        }
    }

    /// As a document.
    pub fn document(&self, path: &CameraPath) -> Value {
        let overshoot: Vec<Value> = self
            .overshoot
            .iter()
            .map(|o| {
                json!({"channel": o.channel, "segment": o.span, "start": o.times.0, "end": o.times.1,
                       "past": o.past, "value": o.value, "at": o.at})
            })
            .collect();
        let mut document = status_document(&self.status, path.smoothing());
        document["start"] = json!(path.start());
        document["end"] = json!(path.end());
        document["before"] = self.before.document();
        document["after"] = self.after.document();
        document["overshoot"] = Value::Array(overshoot);
        document["retimed"] =
            json!(self.retimed.map(|(duration, held_back)| {
                json!({"duration": duration, "turning_held_back": held_back})
            }));
        document
    }

    /// As a few lines of text.
    pub fn text(&self, path: &CameraPath) -> String {
        let mut out = super::status_text(&self.status, path);
        for (name, before, after, unit) in self.rows() {
            out.push_str(&format!("{name}: {} -> {} {unit}\n", short(before), short(after)));
        }
        if let Some((duration, held_back)) = self.retimed {
            let why = if held_back { ", held back where it turns" } else { "" };
            out.push_str(&format!("on another clock: {} s{why}\n", short(duration)));
        }
        for o in self.worst().iter().take(10) {
            out.push_str(&format!("{}\n", sentence(path, o)));
        }
        if self.overshoot.len() > 10 {
            out.push_str(&format!("and {} smaller overshoots\n", self.overshoot.len() - 10));
        }
        out
    }

    fn rows(&self) -> [(&'static str, f64, f64, &'static str); 4] {
        let (b, a) = (&self.before, &self.after);
        [
            ("largest speed", b.speed, a.speed, "m/s"),
            ("largest acceleration", b.acceleration, a.acceleration, "m/s²"),
            ("largest jump of the acceleration at a key", b.jump, a.jump, "m/s²"),
            ("fastest turning", b.turning.to_degrees(), a.turning.to_degrees(), "deg/s"),
        ]
    }

    /// Overshoot, worst first, each measured against the range of its channel.
    fn worst(&self) -> Vec<&Overshot> {
        let mut sorted: Vec<&Overshot> = self.overshoot.iter().collect();
        sorted.sort_by(|a, b| b.past.total_cmp(&a.past));
        sorted
    }
}

/// A time as it is shown: to the millisecond where it is far from 0.
pub fn moment(time: f64) -> String {
    if time.abs() < 1e5 { short(time) } else { format!("{time:.3}") }
}

/// What is taken off the times in pictures: the start of a path far from 0.
fn origin(path: &CameraPath) -> f64 {
    if path.start().abs() < 1e5 { 0.0 } else { path.start() }
}

/// One overshoot in words, in the unit people read.
fn sentence(path: &CameraPath, o: &Overshot) -> String {
    let k = path.channel(&o.channel).unwrap_or(0);
    let role = path.channels()[k].role;
    let (factor, unit) = match role {
        Role::Yaw | Role::Pitch | Role::Roll | Role::Fov => (1_f64.to_degrees(), " deg"),
        Role::Other => (1.0, ""),
        _ => (1.0, " m"),
    };
    format!(
        "{} runs {}{unit} past its keys at {} s (segment {}, {} to {} s)",
        o.channel,
        short(o.past * factor),
        moment(o.at),
        o.span,
        moment(o.times.0),
        moment(o.times.1)
    )
}

fn size(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Even times over the path, and both sides of every key.
fn times(path: &CameraPath) -> Vec<f64> {
    let (start, end) = (path.start(), path.end());
    let mut all: Vec<f64> =
        (0..=SAMPLES).map(|i| start + (end - start) * i as f64 / SAMPLES as f64).collect();
    // A path of thousands of keys is dense enough as it is.
    if path.len() <= SAMPLES {
        all.extend(path.times().iter().flat_map(|&t| [t.next_down().max(start), t]));
        all.sort_unstable_by(f64::total_cmp);
        all.dedup();
    }
    all
}

/// The maps and all graphs in one picture; its height if `canvas` is none.
pub fn picture(
    ways: [&CameraPath; 2],
    clock: Option<&Retimed<'_>>,
    facts: &Facts,
    canvas: Option<&mut dyn Canvas>,
) -> f64 {
    let panels = panels(ways[0], ways[1], clock, facts);
    let mut top = MAP + 20.0;
    if let Some(canvas) = canvas {
        maps(canvas, ways, facts);
        for panel in &panels {
            panel.draw(canvas, top, WIDTH);
            top += panel.height() + 8.0;
        }
        return top;
    }
    top + panels.iter().map(|p| p.height() + 8.0).sum::<f64>()
}

/// Width of all pictures, pixels.
pub const fn width() -> f64 {
    WIDTH
}

/// The path from above and from its wider side.
fn maps(canvas: &mut dyn Canvas, [before, after]: [&CameraPath; 2], facts: &Facts) {
    let half = (WIDTH - 20.0) / 2.0;
    map(canvas, "from above", (0.0, half), [before, after], &facts.overshoot, |p| (p[0], p[2]));
    let wide = |axis: usize| {
        let places = times(after).into_iter().map(|t| after.pose(t).position[axis]);
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        high - low
    };
    let axis = if wide(2) > wide(0) { 2 } else { 0 };
    let title = if axis == 2 { "from the side (along x)" } else { "from the side (along z)" };
    map(canvas, title, (half + 20.0, half), [before, after], &facts.overshoot, |p| (p[axis], -p[1]));
}

/// The page.
pub fn page(
    name: &str,
    before: &CameraPath,
    after: &CameraPath,
    clock: Option<&Retimed<'_>>,
    facts: &Facts,
) -> String {
    let mut maps_svg = Svg::new(WIDTH, MAP + 10.0);
    maps(&mut maps_svg, [before, after], facts);
    let panels = panels(before, after, clock, facts);
    let height = stack(&panels, "", WIDTH, None);
    let mut graphs = Svg::new(WIDTH, height);
    stack(&panels, "", WIDTH, Some(&mut graphs));
    let mut rows = String::new();
    for (what, b, a, unit) in facts.rows() {
        rows.push_str(&format!("<tr><td>{what}<td>{}<td>{}<td>{unit}", short(b), short(a)));
    }
    let mut words = String::new();
    for line in super::status_text(&facts.status, after).lines() {
        words.push_str(&format!("<li>{}", escape(line)));
    }
    if let Some((duration, held_back)) = facts.retimed {
        let why = if held_back { ", held back where it turns" } else { "" };
        words.push_str(&format!("<li>on another clock: {} s{why}", short(duration)));
    }
    let mut overshoot = String::new();
    for o in facts.worst().iter().take(40) {
        overshoot.push_str(&format!("<li>{}", escape(&sentence(after, o))));
    }
    if overshoot.is_empty() {
        overshoot.push_str("<li>no channel runs past its keys");
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title} — camera path</title><style>{css}\
         body{{font:14px system-ui,sans-serif;max-width:920px;margin:2em auto;padding:0 1em;\
         background:var(--paper);color:var(--text)}}td,th{{padding:.15em .9em .15em 0;text-align:left}}\
         svg{{width:100%;height:auto}}li{{margin:.15em 0}}</style>\
         <h1>{title}</h1><p>Grey: the replay curve, as it was. Colour: as it is flown. Dots are keys, with the line \
         of sight; red marks what runs past its keys.</p>{maps}\
         <table><tr><th><th>before<th>after<th>{rows}</table><ul>{words}</ul>\
         <h2>Overshoot</h2><ul>{overshoot}</ul><h2>Over time</h2>{shift}{graphs}</html>\n",
        shift = match origin(after) {
            0.0 => String::new(),
            from => format!("<p>Times in the pictures are seconds after {}.</p>", moment(from)),
        },
        title = escape(name),
        css = style(),
        maps = maps_svg.element("the path from above and from the side"),
        graphs = graphs.element("speed, acceleration, turning and channels over time"),
    )
}

/// A value over time on the path's own clock, and on another.
type Own<'a> = &'a dyn Fn(&CameraPath, f64) -> f64;
type Other<'a> = Option<&'a dyn Fn(&Retimed<'_>, f64) -> f64>;

/// A value over time, at enough times for a smooth line.
fn pieces(path: &CameraPath, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let from = origin(path);
    times(path).into_iter().map(|t| (t - from, value(t))).collect()
}

fn panels(before: &CameraPath, after: &CameraPath, clock: Option<&Retimed<'_>>, facts: &Facts) -> Vec<Panel> {
    let from = origin(after);
    let (mut all, start) = (Vec::new(), after.start() - from);
    let few_keys = |value: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        if after.len() > 400 {
            Vec::new()
        } else {
            after.times().iter().map(|&t| (t - from, value(t))).collect()
        }
    };
    let mut moving = |title: &str, unit: &str, of: Own, retimed: Other| {
        let mut lines = vec![Line {
            name: String::from("as flown"),
            points: pieces(after, |t| of(after, t)),
            keys: few_keys(&|t| of(after, t)),
        }];
        if let (Some(clock), Some(of)) = (clock, retimed) {
            let points = (0..=SAMPLES).map(|i| clock.duration() * i as f64 / SAMPLES as f64);
            lines.push(Line {
                name: String::from("on the new clock"),
                points: points.map(|t| (start + t, of(clock, t))).collect(),
                keys: Vec::new(),
            });
        }
        all.push(Panel {
            title: title.to_owned(),
            unit: unit.to_owned(),
            before: vec![Line {
                name: String::new(),
                points: pieces(before, |t| of(before, t)),
                keys: Vec::new(),
            }],
            lines,
            ..Panel::default()
        });
    };
    moving("speed", "m/s", &|p, t| p.speed(t), Some(&|c, t| c.speed(t)));
    moving("acceleration", "m/s²", &|p, t| size(p.acceleration(t)), None);
    moving(
        "turning",
        "deg/s",
        &|p, t| p.turning_rate(t).to_degrees(),
        Some(&|c, t| c.turning_rate(t).to_degrees()),
    );
    let rolls = after.role(Role::Roll).is_none() && (after.has_rotations() || after.look_at().is_some());
    if rolls {
        moving("roll", "deg", &|p, t| p.angles(t).roll.to_degrees(), None);
    }
    for (k, channel) in after.channels().iter().enumerate() {
        let past: Vec<&Overshot> = facts.overshoot.iter().filter(|o| o.channel == channel.name).collect();
        let factor = match channel.role {
            Role::Yaw | Role::Pitch | Role::Roll => channel.radians_per_unit().to_degrees(),
            Role::Fov => 1_f64.to_degrees(),
            _ => 1.0,
        };
        let worst = past.iter().max_by(|a, b| a.past.total_cmp(&b.past));
        let value = |p: &CameraPath, t: f64| p.curve().derivative(k, t, Derivative::Value) * factor;
        let unit = match channel.role {
            Role::Yaw | Role::Pitch | Role::Roll | Role::Fov => "deg",
            Role::Other => "",
            _ => "m",
        };
        all.push(Panel {
            title: channel.name.clone(),
            note: worst.map_or(String::new(), |o| {
                format!("{} past its keys at {} s", short(o.past * factor), moment(o.at))
            }),
            unit: unit.to_owned(),
            before: vec![Line {
                name: String::new(),
                points: pieces(before, |t| value(before, t)),
                keys: Vec::new(),
            }],
            lines: vec![Line {
                name: String::new(),
                points: pieces(after, |t| value(after, t)),
                keys: few_keys(&|t| value(after, t)),
            }],
            mark: worst.map(|o| o.at - from),
            ..Panel::default()
        });
    }
    all
}

/// The path on a map, in the frame from `left` on, `width` wide.
fn map(
    canvas: &mut dyn Canvas,
    title: &str,
    (left, width): (f64, f64),
    [before, after]: [&CameraPath; 2],
    overshoot: &[Overshot],
    project: impl Fn([f64; 3]) -> (f64, f64),
) {
    let (top, height) = (24.0, MAP - 44.0);
    let place = |path: &CameraPath, t: f64| project(path.pose(t).position);
    let all = times(after);
    let points: Vec<(f64, f64)> = all
        .iter()
        .flat_map(|&t| [place(before, t), place(after, t)])
        .filter(|p| p.0.is_finite() && p.1.is_finite())
        .collect();
    let bounds = |pick: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(pick);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low <= high { (low, high) } else { (0.0, 1.0) }
    };
    let ((x0, x1), (y0, y1)) = (bounds(|p| p.0), bounds(|p| p.1));
    // The same scale both ways: a map must not be stretched.
    let span = ((x1 - x0) / width).max((y1 - y0) / height).max(1e-9) * 1.16;
    let (cx, cy) = (0.5 * (x0 + x1), 0.5 * (y0 + y1));
    let at = |p: (f64, f64)| (left + 0.5 * width + (p.0 - cx) / span, top + 0.5 * height + (p.1 - cy) / span);
    canvas.text(left, 16.0, 13.0, Anchor::Start, Ink::Text, title);
    let frame =
        [(left, top), (left + width, top), (left + width, top + height), (left, top + height), (left, top)];
    canvas.line(&frame, Pen::solid(Ink::Frame, 1.0));
    let bar = nice_step(width * span, 4);
    let y = top + height + 12.0;
    canvas.line(&[(left, y), (left + bar / span, y)], Pen::solid(Ink::Text, 2.0));
    canvas.text(
        left + bar / span + 6.0,
        y + 4.0,
        11.0,
        Anchor::Start,
        Ink::Quiet,
        &format!("{} m", short(bar)),
    );
    for (path, pen) in [(before, Pen::solid(Ink::Source, 2.5)), (after, Pen::solid(Ink::Series(0), 1.8))] {
        for i in 0..path.spans() {
            if path.span_kind(i) == PathSpan::Cut {
                continue;
            }
            let (start, end) = path.curve().span_times(i);
            // Enough for a smooth line, no more than a long take needs in all.
            let steps = (3 * SAMPLES / path.spans()).clamp(2, 60);
            let along = |s: usize| at(place(path, start + (end - start) * s as f64 / steps as f64));
            let mut line: Vec<_> = (0..steps).map(along).collect();
            line.push(at(place(path, end.next_down().max(start))));
            canvas.line(&thinned(&line), pen);
        }
    }
    // Where a span runs past its keys, over the line.
    let places: Vec<usize> = [Role::X, Role::Y, Role::Z].into_iter().filter_map(|r| after.role(r)).collect();
    let mut marked: Vec<usize> = overshoot
        .iter()
        .filter(|o| after.channel(&o.channel).is_ok_and(|k| places.contains(&k)))
        .map(|o| o.span)
        .collect();
    marked.dedup();
    for i in marked {
        let (start, end) = after.curve().span_times(i);
        let outside = |t: f64| {
            places.iter().any(|&k| {
                let cubic = after.curve().cubic(i, k);
                let (from, to, here) = (cubic.a, cubic.value(end - start), cubic.value(t - start));
                here < from.min(to) - 1e-9 || here > from.max(to) + 1e-9
            })
        };
        let mut piece = Vec::new();
        for s in 0..=60 {
            let t = start + (end - start) * f64::from(s) / 60.0;
            if s < 60 && outside(t) {
                piece.push(at(place(after, t)));
            } else if !piece.is_empty() {
                canvas.line(&thinned(&piece), Pen::solid(Ink::Mark, 3.0));
                piece.clear();
            }
        }
    }
    let every = after.len().div_ceil(60);
    for i in (0..after.len()).step_by(every) {
        let t = after.times()[i];
        let pose = after.pose(t);
        let (x, y) = at(project(pose.position));
        let sight = quat_rotate(pose.rotation, [0.0, 0.0, -1.0]);
        let ahead = project([0, 1, 2].map(|k| pose.position[k] + sight[k]));
        let (here, (ax, ay)) = (project(pose.position), ahead);
        let arrow = 16.0;
        canvas.line(
            &[(x, y), (x + (ax - here.0) * arrow, y + (ay - here.1) * arrow)],
            Pen::solid(Ink::Quiet, 1.2),
        );
        canvas.dot(x, y, 3.2, Ink::Series(1));
        if after.len() <= 30 {
            canvas.text(x + 6.0, y - 5.0, 10.0, Anchor::Start, Ink::Text, &i.to_string());
        }
    }
}
