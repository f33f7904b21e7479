//! The page a reduction writes: one self-contained HTML file that needs no network.
//!
//! At the top what was done in numbers; then a row a clip with bars of keys, bytes and error; then
//! for each clip the worst place by name, the path of that node with its distance beneath, and the
//! tracks that changed most, before and after, with their keys. It reads in light, dark and print.

use std::fmt::Write as _;

use inbetween::compare::{self, Comparison, Measure, TrackDifference};
use inbetween::glam::DVec3;
use inbetween::metric::Shell;
use inbetween::{Clip, LocalPose, ModelPose, Skeleton};

use crate::commands::shell_words;
use crate::curves;
use crate::input::shown_name;
use crate::picture::figure;
use crate::picture::page;
use crate::picture::panel::{Line, Panel, Strip, stack};
use crate::picture::svg::{Svg, escape};
use crate::units::{short, show_length};

/// Clips of one file that get pictures; the rest have their row.
const DRAWN_CLIPS: usize = 12;
/// Tracks of a clip that are drawn.
const DRAWN_TRACKS: usize = 5;
/// Width of the pictures, pixels.
const WIDTH: f64 = 900.0;

/// A reduced file.
pub struct FilePage<'a> {
    /// Names of the two files.
    pub input: String,
    /// See above.
    pub output: String,
    /// Metres.
    pub bound: f64,
    /// Whether the bound is one in the world.
    pub world: bool,
    /// The points it holds for.
    pub shell: Shell,
    /// Nodes of the source.
    pub source_skeleton: &'a Skeleton,
    /// Nodes of what was read back.
    pub result_skeleton: &'a Skeleton,
    /// Bytes of the source file.
    pub source_size: u64,
    /// Bytes of the written file.
    pub size: u64,
    /// Its clips.
    pub clips: Vec<ClipPage<'a>>,
}

/// A reduced clip.
pub struct ClipPage<'a> {
    /// As it was.
    pub source: &'a Clip,
    /// As it was read back.
    pub result: &'a Clip,
    /// The two compared.
    pub found: &'a Comparison,
    /// Keys before.
    pub source_keys: usize,
    /// Keys after.
    pub keys: usize,
    /// Bytes of the keys before.
    pub source_bytes: u64,
    /// Bytes of the keys after.
    pub bytes: u64,
    /// Lines of plain words.
    pub remarks: Vec<String>,
}

/// The page for some reduced files.
pub fn reduction(files: &[FilePage<'_>]) -> String {
    let mut out = String::new();
    let title = match files {
        [one] => format!("{} reduced", base(&one.input)),
        many => format!("{} files reduced", many.len()),
    };
    summary(&mut out, files);
    for (f, file) in files.iter().enumerate() {
        file_section(&mut out, f, file, files.len() > 1);
    }
    page::page(&title, &out)
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Whole numbers in groups of three.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The file, clip and node that are farthest off.
fn worst<'a, 'b>(
    files: &'b [FilePage<'a>],
) -> Option<(&'b FilePage<'a>, &'b ClipPage<'a>, &'a compare::NodeDifference)> {
    let all = files.iter().flat_map(|f| f.clips.iter().map(move |c| (f, c)));
    all.filter_map(|(f, c)| c.found.worst_node().map(|n| (f, c, n)))
        .max_by(|a, b| share(a.2.distance, a.0.bound).total_cmp(&share(b.2.distance, b.0.bound)))
}

fn summary(out: &mut String, files: &[FilePage<'_>]) {
    let clips = || files.iter().flat_map(|f| &f.clips);
    let (before, after) =
        (clips().map(|c| c.source_keys).sum::<usize>(), clips().map(|c| c.keys).sum::<usize>());
    let (size, new_size) =
        (files.iter().map(|f| f.source_size).sum::<u64>(), files.iter().map(|f| f.size).sum::<u64>());
    out.push_str("<div class=\"tiles\">");
    let mut tile = |big: String, small: String| {
        let _ =
            write!(out, "<div class=\"tile\"><b>{}</b><span>{}</span></div>", escape(&big), escape(&small));
    };
    tile(
        format!("{} %", short(100.0 * share(after as f64, before as f64))),
        format!("of the keys remain: {} of {}", grouped(after as u64), grouped(before as u64)),
    );
    tile(
        format!("{} kB", short(new_size as f64 / 1e3)),
        format!(
            "in the written file{}, {} kB before",
            if files.len() > 1 { "s" } else { "" },
            short(size as f64 / 1e3)
        ),
    );
    if let Some((file, _, node)) = worst(files) {
        tile(show_length(node.distance), format!("largest error, of {} allowed", show_length(file.bound)));
    }
    out.push_str("</div>");
    if let Some((file, clip, node)) = worst(files) {
        let name = shown_name(&file.source_skeleton.joints()[node.node].name, Some(node.node));
        let _ = write!(
            out,
            "<p class=\"worst\">The worst place: <b>{}</b> in clip <b>{}</b> at <b>{} s</b>, {} from where it was.</p>",
            escape(&name),
            escape(&clip.source.name),
            short(node.time),
            show_length(node.distance)
        );
    }
    if let Some(file) = files.first() {
        let what = if file.world {
            format!(
                "Distances are measured in the world, for {}, at every key of the source and every midpoint \
                 between neighbouring keys",
                shell_words(file.shell)
            )
        } else {
            "Each track was held to its own tolerance".to_owned()
        };
        let holds = files.iter().all(|f| {
            !f.world
                || f.clips
                    .iter()
                    .all(|c| c.found.worst_node().is_none_or(|n| n.distance <= f.bound * (1.0 + 1e-9)))
        });
        let verdict = if holds {
            "<span class=\"good\">The bound holds.</span>"
        } else {
            "<b>The bound does not hold.</b>"
        };
        let _ = write!(
            out,
            "<p class=\"quiet\">{}, on the file as it was read back after writing. {verdict}</p>",
            escape(&what)
        );
    }
}

fn file_section(out: &mut String, f: usize, file: &FilePage<'_>, several: bool) {
    if several {
        let _ = write!(out, "<h2>{}</h2>", escape(base(&file.input)));
    }
    let _ = write!(
        out,
        "<p class=\"quiet\"><code>{}</code> → <code>{}</code></p>",
        escape(&file.input),
        escape(&file.output)
    );
    out.push_str(
        "<table><thead><tr><th>clip<th>keys<th>bytes of the keys<th>largest error</tr></thead><tbody>",
    );
    for (i, clip) in file.clips.iter().enumerate() {
        clip_row(out, f, i, file, clip);
    }
    out.push_str("</tbody></table>");
    for (i, clip) in file.clips.iter().enumerate().take(DRAWN_CLIPS) {
        clip_section(out, f, i, file, clip);
    }
    if file.clips.len() > DRAWN_CLIPS {
        let left = file.clips.len() - DRAWN_CLIPS;
        let _ = write!(
            out,
            "<p class=\"quiet\">{left} more clips are in the table only; <code>inbetween reduce --clip</code> or \
             <code>inbetween plot --against</code> draws them.</p>"
        );
    }
}

fn bar(out: &mut String, class: &str, part: f64, words: &str) {
    let _ = write!(
        out,
        "<td><div class=\"bar {class}\"><i style=\"width:{:.1}%\"></i></div><span class=\"num\">{}</span>",
        100.0 * part.clamp(0.0, 1.0),
        escape(words)
    );
}

fn clip_row(out: &mut String, f: usize, i: usize, file: &FilePage<'_>, clip: &ClipPage<'_>) {
    let name = if clip.source.name.is_empty() { format!("clip {i}") } else { clip.source.name.clone() };
    let link =
        if i < DRAWN_CLIPS { format!("<a href=\"#c{f}-{i}\">{}</a>", escape(&name)) } else { escape(&name) };
    let _ = write!(out, "<tr><td>{link}");
    let keys = share(clip.keys as f64, clip.source_keys as f64);
    bar(out, "", keys, &format!("{} of {}, {} %", clip.keys, clip.source_keys, short(100.0 * keys)));
    let bytes = share(clip.bytes as f64, clip.source_bytes as f64);
    bar(
        out,
        "b",
        bytes,
        &format!("{} of {}, {} %", grouped(clip.bytes), grouped(clip.source_bytes), short(100.0 * bytes)),
    );
    match clip.found.worst_node() {
        Some(n) => {
            let node = shown_name(&file.source_skeleton.joints()[n.node].name, Some(n.node));
            bar(
                out,
                "e",
                share(n.distance, file.bound),
                &format!("{} at {node}, {} s", show_length(n.distance), short(n.time)),
            );
        }
        None => out.push_str("<td><span class=\"num\">no node moves</span>"),
    }
    out.push_str("</tr>");
}

fn clip_section(out: &mut String, f: usize, i: usize, file: &FilePage<'_>, clip: &ClipPage<'_>) {
    let name = if clip.source.name.is_empty() { format!("clip {i}") } else { clip.source.name.clone() };
    let _ = write!(out, "<section id=\"c{f}-{i}\"><h2>{}</h2>", escape(&name));
    let bones = file.source_skeleton.joints().iter().filter(|j| j.parent.is_some()).count();
    if bones >= 3 && clip.source.duration() > 0.0 {
        let options = figure::Strip { height: 190.0, ..figure::Strip::default() };
        if let Some(layout) = figure::lay_out(file.result_skeleton, clip.result, &options, WIDTH) {
            let mut svg = Svg::new(WIDTH, layout.height);
            figure::draw(&mut svg, &layout, 0.0);
            out.push_str(&svg.element(&format!("poses of {name}")));
        }
    }
    let mut panels = Vec::new();
    if let Some(node) = clip.found.worst_node().filter(|n| n.distance > 0.0) {
        panels.extend(node_panel(file, clip, node));
    }
    let lever = levers(file.source_skeleton);
    let mut tracks: Vec<(&TrackDifference, f64)> =
        clip.found.tracks.iter().map(|t| (t, weight(t, &lever))).collect();
    tracks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let drawn = tracks.iter().filter(|t| t.1 > 0.0).filter_map(|(t, _)| Some((t.first?, t.second?)));
    panels.extend(
        drawn
            .take(DRAWN_TRACKS)
            .map(|(a, b)| curves::panel(clip.result, &clip.result.tracks[b], Some(&clip.source.tracks[a]))),
    );
    if panels.is_empty() {
        out.push_str("<p class=\"quiet\">Every value is where it was.</p>");
    } else {
        let mut svg = Svg::new(WIDTH, stack(&panels, "", WIDTH, None));
        stack(&panels, "", WIDTH, Some(&mut svg));
        out.push_str(&svg.element(&format!("curves of {name} before and after")));
        out.push_str(
            "<p class=\"quiet\">Grey: before. Colour: after, a dot a key. Red beneath: how far apart they are.</p>",
        );
    }
    if !clip.remarks.is_empty() {
        out.push_str("<details open><summary>Remarks</summary><ul>");
        for line in clip.remarks.iter().take(200) {
            let _ = write!(out, "<li>{}</li>", escape(line));
        }
        out.push_str("</ul></details>");
    }
    out.push_str("</section>");
}

/// How much a track's difference matters: its size, a turn as the way of the far end of its limb.
fn weight(track: &TrackDifference, lever: &[f64]) -> f64 {
    match (track.measure, track.node) {
        (Measure::Radians, Some(node)) => track.size * lever.get(node).copied().unwrap_or(0.0).max(0.03),
        _ => track.size,
    }
}

/// For each node, the length of the longest limb below it at rest.
fn levers(skeleton: &Skeleton) -> Vec<f64> {
    let rest = ModelPose::of(skeleton, &LocalPose::rest(skeleton));
    let place = |node: usize| -> DVec3 { rest.joints[node].translation };
    let mut lever = vec![0.0f64; skeleton.len()];
    for &node in skeleton.order().iter().rev() {
        if let Some(parent) = skeleton.joints()[node].parent {
            lever[parent] = lever[parent].max(lever[node] + (place(parent) - place(node)).length());
        }
    }
    lever
}

/// The path of the node that is farthest off, before and after, with its distance and the bound.
fn node_panel(file: &FilePage<'_>, clip: &ClipPage<'_>, node: &compare::NodeDifference) -> Option<Panel> {
    let judged = compare::judged_times(&[clip.source]);
    // A picture shows no more than some two thousand times; the worst one stays.
    let step = judged.len().div_ceil(2000).max(1);
    let mut times: Vec<f64> = judged.iter().copied().step_by(step).chain([node.time]).collect();
    times.sort_unstable_by(f64::total_cmp);
    let path = compare::follow_node(
        (clip.source, file.source_skeleton),
        (clip.result, file.result_skeleton),
        file.shell,
        node.node,
        &times,
    )?;
    let line = |c: usize, second: bool| Line {
        name: ["x", "y", "z"][c].to_owned(),
        points: times.iter().zip(&path).map(|(&t, p)| (t, if second { p.1[c] } else { p.0[c] })).collect(),
        keys: Vec::new(),
    };
    let name = shown_name(&file.source_skeleton.joints()[node.node].name, Some(node.node));
    Some(Panel {
        title: format!("{name} in the world"),
        note: format!("largest error {} at {} s", show_length(node.distance), short(node.time)),
        unit: "m".to_owned(),
        before: (0..3).map(|c| line(c, false)).collect(),
        lines: (0..3).map(|c| line(c, true)).collect(),
        strip: Some(Strip {
            points: times.iter().zip(&path).map(|(&t, p)| (t, 1e3 * p.2)).collect(),
            unit: "mm".to_owned(),
            bound: file.world.then_some(1e3 * file.bound),
        }),
        mark: Some(node.time),
        ..Panel::default()
    })
}
