//! The pages of `match explain` and `match run`: one HTML file each, pictures inside.

use std::fmt::Write as _;

use inbetween::glam::DVec3;
use inbetween_match::{Explanation, Judgement, MotionDatabase, Recording, RowCost, Schema, Script};

use crate::picture::page::page;
use crate::picture::panel::{Line, Panel, stack, thinned};
use crate::picture::svg::{Svg, escape};
use crate::picture::{Anchor, Canvas, Ink, Pen, nice_step};

const WIDTH: f64 = 900.0;

/// Lines on the ground seen from above, with one scale both ways.
struct Ground {
    lines: Vec<(Vec<(f64, f64)>, Pen)>,
    dots: Vec<(f64, f64, f64, Ink)>,
}

impl Ground {
    fn new() -> Self {
        Self { lines: Vec::new(), dots: Vec::new() }
    }

    /// +x to the left, +z up: the character looks up the page.
    fn at(place: DVec3) -> (f64, f64) {
        (-place.x, -place.z)
    }

    fn line(&mut self, places: &[DVec3], pen: Pen) {
        self.lines.push((places.iter().map(|p| Self::at(*p)).collect(), pen));
    }

    fn dot(&mut self, place: DVec3, radius: f64, ink: Ink) {
        let (x, y) = Self::at(place);
        self.dots.push((x, y, radius, ink));
    }

    fn svg(&self, height: f64, label: &str) -> String {
        let all = self
            .lines
            .iter()
            .flat_map(|(l, _)| l.iter().copied())
            .chain(self.dots.iter().map(|d| (d.0, d.1)));
        let (mut low, mut high) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        for (x, y) in all {
            low = (low.0.min(x), low.1.min(y));
            high = (high.0.max(x), high.1.max(y));
        }
        if low.0 > high.0 {
            return String::new();
        }
        let span = (high.0 - low.0).max(0.5).max((high.1 - low.1) * WIDTH / height);
        let scale = ((WIDTH - 60.0) / span).min((height - 60.0) / (high.1 - low.1).max(0.5));
        let middle = (0.5 * (low.0 + high.0), 0.5 * (low.1 + high.1));
        let to = |(x, y): (f64, f64)| {
            (WIDTH / 2.0 + (x - middle.0) * scale, height / 2.0 + (y - middle.1) * scale)
        };
        let mut svg = Svg::new(WIDTH, height);
        svg.rect(0.0, 0.0, WIDTH, height, Ink::Paper);
        let step = nice_step(span, 8);
        let metres = step * scale;
        svg.line(&[(20.0, height - 16.0), (20.0 + metres, height - 16.0)], Pen::solid(Ink::Quiet, 2.0));
        svg.text(26.0 + metres, height - 11.0, 12.0, Anchor::Start, Ink::Quiet, &format!("{step} m"));
        for (line, pen) in &self.lines {
            let points: Vec<(f64, f64)> = line.iter().map(|p| to(*p)).collect();
            svg.line(&points, *pen);
        }
        for (x, y, radius, ink) in &self.dots {
            let (x, y) = to((*x, *y));
            svg.dot(x, y, *radius, *ink);
        }
        svg.element(label)
    }
}

fn panels(panels: &[Panel], label: &str) -> String {
    let height = stack(panels, "", WIDTH, None);
    let mut svg = Svg::new(WIDTH, height);
    stack(panels, "", WIDTH, Some(&mut svg));
    svg.element(label)
}

/// The path columns of a row or query as places, by offset.
fn path(database: &MotionDatabase, value: &dyn Fn(usize) -> f32) -> Vec<DVec3> {
    let mut points: Vec<(f64, DVec3)> = vec![(0.0, DVec3::ZERO)];
    for channel in 0..database.channels().len() {
        let names = &database.channels()[channel].columns;
        let columns = database.columns_of(channel);
        let position = database.channels()[channel].name.contains("trajectory_position");
        for (k, name) in names.iter().enumerate() {
            let offset =
                name.strip_prefix("x ").and_then(|n| n.strip_suffix(" s")).and_then(|n| n.parse().ok());
            if let (true, Some(offset)) = (position, offset) {
                let at = columns.start + k;
                points.push((offset, DVec3::new(f64::from(value(at)), 0.0, f64::from(value(at + 1)))));
            }
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.into_iter().map(|(_, p)| p).collect()
}

/// The page of an explanation.
pub fn explanation(
    database: &MotionDatabase,
    schema: &Schema,
    features: &[f32],
    explanation: &Explanation,
    why: &[RowCost],
) -> String {
    let mut body = String::new();
    let winner = explanation.winner.as_ref();
    match winner {
        Some(w) => {
            let side = if w.mirrored { ", mirrored" } else { "" };
            let _ = write!(
                body,
                "<p><b>Row {}</b>, {} at {:.4} s{side}, costs {:.6}. {} rows were candidates, of {}.</p>",
                w.row,
                escape(&w.clip),
                w.time_s,
                w.total,
                explanation.candidates,
                database.len()
            );
        }
        None => body.push_str("<p class=\"worst\"><b>No pose is admitted.</b></p>"),
    }
    let mut ground = Ground::new();
    let stride = database.len().div_ceil(400).max(1);
    for row in (0..database.len() as u32).step_by(stride) {
        ground.line(&path(database, &|c| database.feature(row, c)), Pen::solid(Ink::Grid, 1.0));
    }
    for row in &explanation.next {
        ground.line(&path(database, &|c| database.feature(row.row, c)), Pen::solid(Ink::Source, 1.5));
    }
    if let Some(row) = &explanation.continuing {
        ground.line(&path(database, &|c| database.feature(row.row, c)), Pen::solid(Ink::Series(1), 2.0));
    }
    if let Some(row) = winner {
        ground.line(&path(database, &|c| database.feature(row.row, c)), Pen::solid(Ink::Series(0), 3.0));
    }
    ground.line(&path(database, &|c| features[c]), Pen { ink: Ink::Mark, width: 2.0, dashed: true });
    ground.dot(DVec3::ZERO, 4.0, Ink::Text);
    let _ = write!(
        body,
        "<h2>Paths over the ground</h2><p>Dashed: asked for. Blue: the winner. Orange: what plays. Grey: the next ones, and behind them paths of the whole database. The character stands at the dot and looks up.</p>{}",
        ground.svg(460.0, "paths over the ground")
    );

    body.push_str("<h2>Cost by channel</h2><table><tr><th>channel</th><th>weight</th>");
    let rows: Vec<(String, &RowCost)> = winner
        .map(|w| (format!("winner {}", w.row), w))
        .into_iter()
        .chain(explanation.continuing.as_ref().map(|c| (format!("plays {}", c.row), c)))
        .chain(explanation.next.iter().map(|n| (format!("next {}", n.row), n)))
        .chain(why.iter().map(|w| (format!("row {}", w.row), w)))
        .collect();
    for (name, _) in &rows {
        let _ = write!(body, "<th>{name}</th>");
    }
    body.push_str("</tr>");
    let largest = rows.iter().flat_map(|(_, r)| r.channels.iter().copied()).fold(f64::MIN_POSITIVE, f64::max);
    for (k, channel) in explanation.channels.iter().enumerate() {
        let _ = write!(body, "<tr><td>{}</td><td>{:.3}</td>", escape(channel), explanation.weights[k]);
        for (_, row) in &rows {
            let bar = 60.0 * row.channels[k] / largest;
            let _ = write!(
                body,
                "<td>{:.5} <span class=\"cost\" style=\"width:{bar:.0}px\"></span></td>",
                row.channels[k]
            );
        }
        body.push_str("</tr>");
    }
    for (name, value) in [
        ("extra", &(|r: &RowCost| format!("{:.5}", r.extra)) as &dyn Fn(&RowCost) -> String),
        ("bonus", &|r: &RowCost| format!("{:.5}", 0.0 - r.bonus)),
        ("total", &|r: &RowCost| format!("{:.5}", r.total)),
        ("clip", &|r: &RowCost| escape(&r.clip)),
        ("time (s)", &|r: &RowCost| format!("{:.3}", r.time_s)),
        ("verdict", &|r: &RowCost| escape(&r.verdict.to_string())),
    ] {
        let _ = write!(body, "<tr><td>{name}</td><td></td>");
        for (_, row) in &rows {
            let _ = write!(body, "<td>{}</td>", value(row));
        }
        body.push_str("</tr>");
    }
    body.push_str("</table>");
    let _ = write!(
        body,
        "<h2>Where the question lies among the poses</h2>{}",
        histograms(database, Some(features))
    );
    let _ = write!(body, "<details><summary>Schema</summary><pre>{}</pre></details>", escape(&schema.text));
    page("Why this pose", &body)
}

/// A histogram of every column, with the question marked.
fn histograms(database: &MotionDatabase, features: Option<&[f32]>) -> String {
    const EACH: f64 = 216.0;
    const HIGH: f64 = 96.0;
    let columns = database.columns();
    let across = 4;
    let height = columns.div_ceil(across) as f64 * HIGH;
    let mut svg = Svg::new(WIDTH, height);
    let mut column = 0;
    for channel in database.channels() {
        for name in &channel.columns {
            let (x, y) = ((column % across) as f64 * (EACH + 8.0), (column / across) as f64 * HIGH);
            let values: Vec<f64> =
                (0..database.len() as u32).map(|r| f64::from(database.feature(r, column))).collect();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(low + 1e-9);
            let mut bins = [0usize; 36];
            for v in &values {
                bins[(((v - low) / (high - low) * 36.0) as usize).min(35)] += 1;
            }
            let most = bins.iter().copied().max().unwrap_or(1).max(1) as f64;
            for (k, bin) in bins.iter().enumerate() {
                let h = 52.0 * *bin as f64 / most;
                svg.rect(x + k as f64 * 6.0, y + 72.0 - h, 5.0, h, Ink::Series(0));
            }
            if let Some(asked) = features {
                let at = (f64::from(asked[column]) - low) / (high - low);
                let at = x + EACH * at.clamp(0.0, 1.0);
                svg.line(&[(at, y + 18.0), (at, y + 74.0)], Pen::solid(Ink::Mark, 1.5));
            }
            let title: String = format!("{} {name}", channel.name).chars().take(36).collect();
            svg.text(x, y + 12.0, 11.0, Anchor::Start, Ink::Text, &title);
            svg.text(x, y + 85.0, 10.0, Anchor::Start, Ink::Quiet, &format!("{low:.2}"));
            svg.text(x + EACH, y + 85.0, 10.0, Anchor::End, Ink::Quiet, &format!("{high:.2}"));
            column += 1;
        }
    }
    svg.element("histograms of the features")
}

/// The page of a run.
pub fn run(
    database: &MotionDatabase,
    script: &Script,
    recording: &Recording,
    judgement: &Judgement,
    feet: &[String],
) -> String {
    let mut body = String::new();
    for warning in &judgement.warnings {
        let _ = write!(body, "<p class=\"worst\">{}</p>", escape(warning));
    }
    // The warnings stand above already.
    let text = judgement.text();
    let plain: Vec<&str> = text.lines().filter(|l| !l.starts_with("warning:")).collect();
    let _ = write!(body, "<pre>{}</pre>", escape(&plain.join("\n")));

    let frames = &recording.frames;
    let mut ground = Ground::new();
    // Where the script alone would lead: from where the character was at each step.
    for (number, step) in script.steps.iter().enumerate() {
        let until = script.steps.get(number + 1).map_or(script.duration_s, |s| s.at_s);
        let first = ((step.at_s / recording.dt) as usize).min(frames.len().saturating_sub(1));
        if let Some(frame) = frames.get(first) {
            let from = frame.root.translation;
            let to = from + step.input.velocity * (until - step.at_s);
            ground.line(&[from, to], Pen { ink: Ink::Mark, width: 1.0, dashed: true });
            ground.dot(from, 4.0, Ink::Mark);
        }
    }
    for (foot, ink) in
        recording.feet.iter().zip([Ink::Series(1), Ink::Series(2), Ink::Series(3), Ink::Series(4)])
    {
        let places: Vec<DVec3> = foot.iter().step_by(2).copied().collect();
        ground.line(&places, Pen::solid(ink, 0.7));
    }
    let places: Vec<DVec3> = frames.iter().map(|f| f.root.translation).collect();
    ground.line(&places, Pen::solid(Ink::Series(0), 2.0));
    for frame in frames.iter().filter(|f| f.jumped_from.is_some()) {
        ground.dot(frame.root.translation, 2.5, Ink::Text);
    }
    let _ = write!(
        body,
        "<h2>Over the ground</h2><p>Blue: the character. Dashed: what the script asks for from where it was. Black dots: jumps. Thin: {}.</p>{}",
        escape(&feet.join(", ")),
        ground.svg(620.0, "the path over the ground")
    );

    let time = |k: usize| k as f64 * recording.dt;
    let line = |name: &str, points: Vec<(f64, f64)>| Line {
        name: name.into(),
        points: thinned(&points),
        keys: Vec::new(),
    };
    let cost: Vec<(f64, f64)> = frames
        .iter()
        .enumerate()
        .filter(|(_, f)| f.asked.is_some())
        .map(|(k, f)| (time(k), f64::from(f.cost)))
        .collect();
    let back = ((0.2 / recording.dt) as usize).max(1);
    let speed: Vec<(f64, f64)> = (back..frames.len())
        .map(|k| {
            let moved = frames[k].root.translation - frames[k - back].root.translation;
            (time(k), moved.length() / (back as f64 * recording.dt))
        })
        .collect();
    let wanted: Vec<(f64, f64)> =
        (0..frames.len()).map(|k| (time(k), script.at(time(k)).velocity.length())).collect();
    let clip: Vec<(f64, f64)> = frames.iter().enumerate().map(|(k, f)| (time(k), f64::from(f.row))).collect();
    let all = [
        Panel {
            title: "Cost of what was found".into(),
            unit: "cost".into(),
            lines: vec![line("cost", cost)],
            ..Panel::default()
        },
        Panel {
            title: "Speed over the ground".into(),
            note: "grey: wanted".into(),
            unit: "m/s".into(),
            before: vec![line("wanted", wanted)],
            lines: vec![line("speed", speed)],
            ..Panel::default()
        },
        Panel {
            title: "The row that plays".into(),
            unit: "row".into(),
            lines: vec![Line { name: "row".into(), points: clip, keys: Vec::new() }],
            ..Panel::default()
        },
    ];
    let _ = write!(body, "<h2>Over time</h2>{}", panels(&all, "cost, speed and row over time"));

    body.push_str("<h2>Which channels decide</h2><table><tr><th>channel</th><th>share of the cost</th></tr>");
    for share in &judgement.shares {
        let _ = write!(
            body,
            "<tr><td>{}</td><td>{:.1} % <span class=\"cost\" style=\"width:{:.0}px\"></span></td></tr>",
            escape(&share.channel),
            share.share * 100.0,
            share.share * 200.0
        );
    }
    body.push_str("</table><h2>Jumps</h2><table><tr><th>time (s)</th><th>from</th><th>to</th><th>at (s)</th><th>cost</th></tr>");
    for (k, frame) in frames.iter().enumerate() {
        if let Some(from) = frame.jumped_from {
            let name = |row: u32| escape(&database.clips()[database.run_of(row).clip as usize].name);
            let _ = write!(
                body,
                "<tr><td>{:.2}</td><td>{} ({from})</td><td>{} ({})</td><td>{:.2}</td><td>{:.4}</td></tr>",
                time(k),
                name(from),
                name(frame.row),
                frame.row,
                frame.time_s,
                frame.cost
            );
        }
    }
    body.push_str("</table>");
    let _ = write!(body, "<h2>The database's features</h2>{}", histograms(database, None));
    page("A scripted run", &body)
}
