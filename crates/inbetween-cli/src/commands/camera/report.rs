//! What smoothing changes, in numbers and in pictures, before anything is rendered.
//!
//! The page stands alone (no script, nothing loaded): the path from above and from
//! the side with its keys and the line of sight at each, then speed, acceleration and
//! turning over time, before (grey) and after, then every channel. Where a curve runs
//! past its keys far enough to be seen it is drawn in the warning colour, on the maps and
//! over time; the list names them all.

use inbetween::camera::{CameraPath, Overshot, PathSpan, PathStatus, Retimed, Role};
use inbetween::spline::{Derivative, quat_rotate};
use serde_json::{Value, json};

use super::status_document;
use crate::output::Failure;
use crate::picture::page::page;
use crate::picture::panel::{CURVES, Line, Panel, entry, stack, thinned};
use crate::picture::png::Png;
use crate::picture::svg::{Svg, escape};
use crate::picture::{Anchor, Canvas, Ink, Pen, nice_step};
use crate::units::short;

/// Samples of each curve.
const SAMPLES: usize = 1200;
const WIDTH: f64 = 900.0;
const MAP: f64 = 430.0;
/// Left margin of maps and headings.
const MARGIN: f64 = 10.0;
/// Height of the heading with its legend.
const HEAD: f64 = 58.0;

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
        let worst = self.worst();
        for o in worst.iter().take(10) {
            out.push_str(&format!("{}\n", sentence(path, o)));
        }
        if worst.len() > 10 {
            out.push_str(&format!("and {} smaller overshoots\n", worst.len() - 10));
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

    /// Overshoot that anyone could see, worst first: from a millionth of a metre or radian. What is
    /// less comes from rounding in files of 32 bits; the JSON has it too.
    fn worst(&self) -> Vec<&Overshot> {
        let mut sorted: Vec<&Overshot> = self.overshoot.iter().filter(|o| o.past >= 1e-6).collect();
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

/// What a channel is shown in: the factor to it, and its unit.
fn shown(path: &CameraPath, k: usize) -> (f64, &'static str) {
    let channel = &path.channels()[k];
    match channel.role {
        Role::Yaw | Role::Pitch | Role::Roll => (channel.radians_per_unit().to_degrees(), "deg"),
        Role::Fov => (1_f64.to_degrees(), "deg"),
        Role::Other => (1.0, ""),
        _ => (1.0, "m"),
    }
}

/// How far past its keys, in words.
fn past(path: &CameraPath, o: &Overshot) -> String {
    let (factor, unit) = shown(path, path.channel(&o.channel).unwrap_or(0));
    let far = o.past * factor;
    if unit == "m" {
        crate::units::show_length(far)
    } else {
        format!("{} {unit}", short(far)).trim_end().to_owned()
    }
}

/// One overshoot in words, in the unit people read.
fn sentence(path: &CameraPath, o: &Overshot) -> String {
    format!(
        "{} runs {} past its keys at {} s (segment {}, {} to {} s)",
        o.channel,
        past(path, o),
        moment(o.at),
        o.span,
        moment(o.times.0),
        moment(o.times.1)
    )
}

/// Acceleration on another clock, from velocities a little apart.
fn retimed_acceleration(clock: &Retimed<'_>, time: f64) -> f64 {
    let step = 1e-5 * clock.duration();
    let (a, b) = ((time - step).max(0.0), (time + step).min(clock.duration()));
    let (before, after) = (clock.velocity(a), clock.velocity(b));
    if b > a { size([0, 1, 2].map(|k| (after[k] - before[k]) / (b - a))) } else { 0.0 }
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

/// A path to be drawn, with what it is compared to.
pub struct Drawing<'a> {
    /// What the pictures are headed by.
    pub heading: String,
    /// The path as it was, in grey, and what the legend calls it.
    pub before: Option<(&'a CameraPath, String)>,
    /// The path as it is flown.
    pub after: &'a CameraPath,
    /// What the legend calls it.
    pub after_name: String,
    /// The path on another clock.
    pub clock: Option<&'a Retimed<'a>>,
    /// What there is to say about it.
    pub facts: &'a Facts,
}

impl<'a> Drawing<'a> {
    /// A path as it is flown, over its replay curve where that is another.
    pub fn of(
        heading: String,
        [before, after]: [&'a CameraPath; 2],
        clock: Option<&'a Retimed<'a>>,
        facts: &'a Facts,
    ) -> Self {
        let smoothing = after.smoothing();
        let after_name = if smoothing.on {
            format!("smoothed, amount {}", short(smoothing.amount))
        } else {
            "replay curve (smoothing is off)".to_owned()
        };
        let before = smoothing.on.then(|| (before, "replay curve, as it was".to_owned()));
        Self { heading, before, after, after_name, clock, facts }
    }

    /// The picture as a file, .svg or .png by its extension.
    ///
    /// # Errors
    /// If it is neither, or too large.
    pub fn file(&self, extension: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(Some(match extension {
            "svg" => {
                let mut svg = Svg::new(WIDTH, self.picture(None));
                self.picture(Some(&mut svg));
                svg.document(&self.heading).into_bytes()
            }
            "png" => {
                let mut png = Png::new(WIDTH, self.picture(None)).map_err(Failure::wrong)?;
                self.picture(Some(&mut png));
                png.bytes().map_err(Failure::wrong)?
            }
            _ => return Ok(None),
        }))
    }

    /// Maps and all graphs in one picture; its height if `canvas` is none.
    fn picture(&self, canvas: Option<&mut dyn Canvas>) -> f64 {
        let panels = self.panels();
        let mut top = HEAD + MAP + 20.0;
        let Some(canvas) = canvas else {
            return top + panels.iter().map(|p| p.height() + 8.0).sum::<f64>();
        };
        canvas.text(MARGIN, 24.0, 16.0, Anchor::Start, Ink::Text, &self.heading);
        self.legend(canvas, 30.0);
        self.maps(canvas, HEAD);
        for panel in &panels {
            panel.draw(canvas, top, WIDTH);
            top += panel.height() + 8.0;
        }
        top
    }

    /// What the colours mean, in one line.
    fn legend(&self, canvas: &mut dyn Canvas, top: f64) {
        let mut left = MARGIN;
        if let Some((_, name)) = &self.before {
            entry(canvas, &mut left, top, Pen::solid(Ink::Source, 3.0), name);
        }
        entry(canvas, &mut left, top, Pen::solid(Ink::Series(0), 2.0), &self.after_name);
        if self.clock.is_some() {
            entry(canvas, &mut left, top, Pen::solid(Ink::Series(1), 2.0), "on the new clock");
        }
        if !self.facts.overshoot.is_empty() {
            entry(canvas, &mut left, top, Pen::solid(Ink::Mark, 3.0), "past its keys, by a pixel or more");
        }
        canvas.dot(left + 7.0, top + 12.0, 3.2, Ink::Series(1));
        let words = match self.after.len().div_ceil(60) {
            1 => "key, with the line of sight".to_owned(),
            every => format!("one key in {every}, with the line of sight"),
        };
        if origin(self.after) != 0.0 {
            let from = format!("times are seconds after {}", moment(self.after.start()));
            canvas.text(WIDTH - MARGIN, top + 36.0, 10.0, Anchor::End, Ink::Quiet, &from);
        }
        canvas.text(left + 19.0, top + 16.0, 10.0, Anchor::Start, Ink::Text, &words);
    }

    /// The path from above and from its wider side.
    fn maps(&self, canvas: &mut dyn Canvas, top: f64) {
        let half = (WIDTH - 2.0 * MARGIN - 20.0) / 2.0;
        self.map(canvas, "from above: x to the right, z down", (MARGIN, top, half), |p| (p[0], p[2]));
        let wide = |axis: usize| {
            let places = times(self.after).into_iter().map(|t| self.after.pose(t).position[axis]);
            let (low, high) =
                places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            high - low
        };
        let (axis, title) = if wide(2) > wide(0) {
            (2, "from the side: z to the right, y up")
        } else {
            (0, "from the side: x to the right, y up")
        };
        self.map(canvas, title, (MARGIN + half + 20.0, top, half), |p| (p[axis], -p[1]));
    }

    /// The page.
    pub fn page(&self) -> String {
        let after = self.after;
        let mut maps = Svg::new(WIDTH, MAP + 36.0);
        self.legend(&mut maps, 0.0);
        self.maps(&mut maps, 26.0);
        let panels = self.panels();
        let mut graphs = Svg::new(WIDTH, stack(&panels, "", WIDTH, None));
        stack(&panels, "", WIDTH, Some(&mut graphs));
        let mut rows = String::new();
        for (what, b, a, unit) in self.facts.rows() {
            rows.push_str(&format!("<tr><td>{what}<td>{}<td>{}<td>{unit}", short(b), short(a)));
        }
        let mut words = String::new();
        for line in super::status_text(&self.facts.status, after).lines() {
            words.push_str(&format!("<li>{}", escape(line)));
        }
        if let Some((duration, held_back)) = self.facts.retimed {
            let why = if held_back { ", held back where it turns" } else { "" };
            words.push_str(&format!("<li>on another clock: {} s{why}", short(duration)));
        }
        let mut overshoot = String::new();
        let worst = self.facts.worst();
        for o in worst.iter().take(40) {
            overshoot.push_str(&format!("<li>{}", escape(&sentence(after, o))));
        }
        if overshoot.is_empty() {
            overshoot.push_str("<li>no channel runs past its keys");
        } else if worst.len() > 40 {
            overshoot.push_str(&format!("<li>and {} smaller ones", worst.len() - 40));
        }
        page(
            &self.heading,
            &format!(
                "{maps}<table><tr><th><th>before<th>after<th>{rows}</table><ul>{words}</ul>\
                 <h2>Overshoot</h2><ul>{overshoot}</ul><h2>Over time</h2>{graphs}",
                maps = maps.element("the path from above and from the side"),
                graphs = graphs.element("speed, acceleration, turning and channels over time"),
            ),
        )
    }

    fn panels(&self) -> Vec<Panel> {
        let (after, clock) = (self.after, self.clock);
        let from = origin(after);
        let (mut all, start) = (Vec::new(), after.start() - from);
        let few_keys = |value: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
            if after.len() > 400 {
                Vec::new()
            } else {
                after.times().iter().map(|&t| (t - from, value(t))).collect()
            }
        };
        let grey = |value: &dyn Fn(&CameraPath, f64) -> f64| -> Vec<Line> {
            self.before
                .iter()
                .map(|(path, _)| Line { points: pieces(path, from, |t| value(path, t)), ..Line::default() })
                .collect()
        };
        let short_name = |name: &str| name.split(',').next().unwrap_or_default().to_owned();
        let before_name = self.before.as_ref().map_or(String::new(), |(_, name)| short_name(name));
        let mut moving = |title: &str, unit: &str, of: Own, retimed: Other| {
            let mut lines = vec![Line {
                name: if self.before.is_some() { short_name(&self.after_name) } else { String::new() },
                points: pieces(after, from, |t| of(after, t)),
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
                before: grey(of),
                before_name: before_name.clone(),
                lines,
                ..Panel::default()
            });
        };
        moving("speed", "m/s", &|p, t| p.speed(t), Some(&|c, t| c.speed(t)));
        moving("acceleration", "m/s²", &|p, t| size(p.acceleration(t)), Some(&retimed_acceleration));
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
        // Field of view and roll first: they are what shows.
        let mut order: Vec<usize> = (0..after.channels().len()).collect();
        order.sort_by_key(|&k| match after.channels()[k].role {
            Role::Fov => 0,
            Role::Roll => 1,
            _ => 2,
        });
        for k in order {
            let channel = &after.channels()[k];
            let past_keys: Vec<&Overshot> =
                self.facts.overshoot.iter().filter(|o| o.channel == channel.name).collect();
            let (factor, unit) = shown(after, k);
            let range = after.curve().extrema(k);
            let pixel = (range.max - range.min) / CURVES;
            let worst = past_keys.iter().max_by(|a, b| a.past.total_cmp(&b.past));
            let value = |p: &CameraPath, t: f64| {
                p.channel(&channel.name)
                    .map_or(f64::NAN, |k| p.curve().derivative(k, t, Derivative::Value) * factor)
            };
            all.push(Panel {
                title: channel.name.clone(),
                note: worst.map_or(String::new(), |o| {
                    format!("up to {} past its keys, at {} s", past(after, o), moment(o.at - from))
                }),
                unit: unit.to_owned(),
                before: grey(&value),
                lines: vec![Line {
                    name: String::new(),
                    points: pieces(after, from, |t| value(after, t)),
                    keys: few_keys(&|t| value(after, t)),
                }],
                marked: past_keys
                    .iter()
                    .flat_map(|o| outside(after, o.span, &[k], pixel))
                    .map(|piece| piece.into_iter().map(|t| (t - from, value(after, t))).collect())
                    .collect(),
                ..Panel::default()
            });
        }
        all
    }
}

/// A value over time on the path's own clock, and on another.
type Own<'a> = &'a dyn Fn(&CameraPath, f64) -> f64;
type Other<'a> = Option<&'a dyn Fn(&Retimed<'_>, f64) -> f64>;

/// A value over time, at enough times for a smooth line; times count from `from`.
fn pieces(path: &CameraPath, from: f64, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    times(path).into_iter().map(|t| (t - from, value(t))).collect()
}

/// The pieces of span `i` on which one of `channels` is further outside the range of its two
/// keys than `least`, each as a list of times.
fn outside(path: &CameraPath, i: usize, channels: &[usize], least: f64) -> Vec<Vec<f64>> {
    let (start, end) = path.curve().span_times(i);
    let beyond = |k: usize, t: f64| {
        let cubic = path.curve().cubic(i, k);
        let (from, to, here) = (cubic.a, cubic.value(end - start), cubic.value(t - start));
        (from.min(to) - here).max(here - from.max(to)) - 1e-9 * (from.abs() + to.abs())
    };
    let (mut found, mut piece, mut largest) = (Vec::new(), Vec::new(), 0.0_f64);
    for s in 0..=60 {
        let t = start + (end - start) * f64::from(s) / 60.0;
        let far = channels.iter().map(|&k| beyond(k, t)).fold(0.0, f64::max);
        if s < 60 && far > 0.0 {
            piece.push(t);
            largest = largest.max(far);
        } else if !piece.is_empty() {
            let whole = std::mem::take(&mut piece);
            if largest > least {
                found.push(whole);
            }
            largest = 0.0;
        }
    }
    found
}

impl Drawing<'_> {
    /// The path on a map, in the frame from `left` on, `width` wide.
    fn map(
        &self,
        canvas: &mut dyn Canvas,
        title: &str,
        (left, top, width): (f64, f64, f64),
        project: impl Fn([f64; 3]) -> (f64, f64),
    ) {
        let after = self.after;
        let (title_at, top, height) = (top + 16.0, top + 24.0, MAP - 44.0);
        let place = |path: &CameraPath, t: f64| project(path.pose(t).position);
        let drawn = |path: &CameraPath| times(path).into_iter().map(|t| place(path, t)).collect::<Vec<_>>();
        let points: Vec<(f64, f64)> = self
            .before
            .iter()
            .flat_map(|(before, _)| drawn(before))
            .chain(drawn(after))
            .filter(|p| p.0.is_finite() && p.1.is_finite())
            .collect();
        let bounds = |pick: fn(&(f64, f64)) -> f64| {
            let values = points.iter().map(pick);
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            if low <= high { (low, high) } else { (0.0, 1.0) }
        };
        let ((x0, x1), (y0, y1)) = (bounds(|p| p.0), bounds(|p| p.1));
        // The same scale both ways: a map must not be stretched.
        let span = ((x1 - x0) / width).max((y1 - y0) / height).max(1e-9) * 1.16;
        let (cx, cy) = (0.5 * (x0 + x1), 0.5 * (y0 + y1));
        let at =
            |p: (f64, f64)| (left + 0.5 * width + (p.0 - cx) / span, top + 0.5 * height + (p.1 - cy) / span);
        canvas.text(left, title_at, 13.0, Anchor::Start, Ink::Text, title);
        let frame = [
            (left, top),
            (left + width, top),
            (left + width, top + height),
            (left, top + height),
            (left, top),
        ];
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
        let grey = self.before.iter().map(|(path, _)| (*path, Pen::solid(Ink::Source, 2.5)));
        for (path, pen) in grey.chain([(after, Pen::solid(Ink::Series(0), 1.8))]) {
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
        let places: Vec<usize> =
            [Role::X, Role::Y, Role::Z].into_iter().filter_map(|r| after.role(r)).collect();
        let mut marked: Vec<usize> = self
            .facts
            .overshoot
            .iter()
            .filter(|o| after.channel(&o.channel).is_ok_and(|k| places.contains(&k)))
            .map(|o| o.span)
            .collect();
        marked.dedup();
        for piece in marked.into_iter().flat_map(|i| outside(after, i, &places, span)) {
            let piece: Vec<_> = piece.into_iter().map(|t| at(place(after, t))).collect();
            canvas.line(&thinned(&piece), Pen::solid(Ink::Mark, 3.0));
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
                // Outward from the middle of the map, where fewer lines run.
                let (mx, my) = (left + 0.5 * width, top + 0.5 * height);
                let far = (x - mx).hypot(y - my).max(1e-9);
                let (dx, dy) = (11.0 * (x - mx) / far, 11.0 * (y - my) / far);
                canvas.text(x + dx, y + dy + 3.5, 10.0, Anchor::Middle, Ink::Text, &i.to_string());
            }
        }
    }
}
