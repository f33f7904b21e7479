//! Prints how the codec stands against the measured peers, over real clips.
//!
//! ```text
//! cargo run --release -p inbetween-bench --bin codec_table -- [PEERS.csv] [--each] [--only NAME] [--encode]
//! ```
//!
//! `--each` prints a line for every clip, `--only` takes the clips whose name has the letters,
//! `--encode` compresses them and does nothing else.
//!
//! Clips come from the data folder (`INBETWEEN_DATA`, else `../shared/data`), as frames at the rate
//! the peers' table gives, with straight lines between them: what the peers were given too. A clip
//! stands alone, without names, parents or a rest pose. Bytes are those of a whole chunk and the
//! file's header. The error is measured on the opened bytes at all frames and midpoints, at each
//! node's origin and 3 cm along its axes; a sample is one node at one time. Build with
//! `RUSTFLAGS=-Ctarget-cpu=x86-64-v3` to compare speeds with the peers' figures. Speeds are least
//! times of rounds in which decoder and yardstick take turns: a pose at random times, forward by
//! 1/60 s with a cursor, one node, and a crowd of 1 000 characters, each with a pose and time of
//! its own, after the caches were flushed. Means are geometric.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use inbetween::glam::{DMat3, DVec3};
use inbetween::pose::matrix;
use inbetween::{
    Binding, Clip, Curve, FrameRate, Joint, LocalPose, NodeKind, Property, Skeleton, Track, TrackData,
    TrackMask, Transform, ValueKind,
};
use inbetween_codec::{
    CompressOptions, JointTransform, Library, PreparedNode, assemble, compress_clip, unpack,
};
use inbetween_formats::{Import, ReadOptions, import_path};

/// A row of the peers' table.
struct Wanted {
    clip: String,
    file: String,
    animation: String,
    joints: usize,
    frames: usize,
    rate: f64,
    start: f64,
    unit: f64,
    check: f64,
    counted: bool,
    /// Bytes of ACL medium at 0.01 cm and 0.1 cm.
    acl: [f64; 2],
}

/// Frames of a clip: the tree and a transform a node and frame.
struct Raw {
    parents: Vec<Option<usize>>,
    frames: Vec<Vec<JointTransform>>,
}

/// Random, forward and crowd over the yardstick; one node over a pose; a pose in nanoseconds; a
/// prepared node over a pose.
const SPEEDS: usize = 6;

/// Sums over clips of a kind.
#[derive(Clone, Copy, Default)]
struct Sum {
    acl: f64,
    runtime: f64,
    rest: f64,
    over: usize,
    samples: usize,
    clips: usize,
    seconds: f64,
    /// Seconds to unpack the form for storage.
    unpacking: f64,
    raw: f64,
    /// Seconds a raw byte of the slowest clip.
    slowest: f64,
    speed: [f64; SPEEDS],
    /// The rig of 68 nodes: one node over a pose, and one that is prepared.
    one_of_68: [f64; 2],
}

fn main() {
    let data =
        std::env::var_os("INBETWEEN_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let (mut peers, mut each, mut only) = (data.join("../anchors/codec_peers.csv"), false, String::new());
    let mut encode_alone = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(a) = arguments.next() {
        match a.as_str() {
            "--each" => each = true,
            "--encode" => encode_alone = true,
            "--only" => only = arguments.next().unwrap_or_default(),
            path => peers = PathBuf::from(path),
        }
    }
    let Ok(text) = std::fs::read_to_string(&peers) else {
        println!("not run: {} is not there", peers.display());
        std::process::exit(i32::from(std::env::var_os("CI").is_some()));
    };
    let wanted = read_peers(&text);
    let mut files: BTreeMap<String, Option<Import>> = BTreeMap::new();
    for (k, (bound, name)) in [(1e-4, "0.01 cm"), (1e-3, "0.1 cm")].into_iter().enumerate() {
        let mut sums = [Sum::default(); 4];
        let mut missing = Vec::new();
        for w in wanted.iter().filter(|w| w.counted && w.clip.contains(&only)) {
            let options = ReadOptions { file_units: true, ..ReadOptions::default() };
            let import = files
                .entry(w.file.clone())
                .or_insert_with(|| import_path(&data.join(&w.file), &options).ok());
            let Some(raw) = import.as_ref().and_then(|i| raw_frames(i, w)) else {
                missing.push(w.clip.clone());
                continue;
            };
            let one = measure(&raw, w, bound, k, encode_alone);
            if each {
                println!(
                    "{:40} {:4} nodes {:5} frames  runtime {:8} {:.3}  at rest {:8} {:.3}  {:5.1} MB/s  random {:.2} forward {:.2} crowd {:.2} node 1/{:.1} {:.0} ns",
                    w.clip,
                    w.joints,
                    w.frames,
                    one.runtime,
                    one.runtime / one.acl,
                    one.rest,
                    one.rest / one.acl,
                    one.raw / one.seconds / 1e6,
                    one.speed[0],
                    one.speed[1],
                    one.speed[2],
                    1.0 / one.speed[3],
                    one.speed[4]
                );
            }
            let kind = match Path::new(&w.file).extension().and_then(|e| e.to_str()) {
                Some("bvh") => 0,
                Some("fbx") => 2,
                _ => 1,
            };
            for s in [kind, 3] {
                let t = &mut sums[s];
                t.acl += one.acl;
                t.runtime += one.runtime;
                t.rest += one.rest;
                t.over += one.over;
                t.samples += one.samples;
                t.clips += 1;
                t.seconds += one.seconds;
                t.unpacking += one.unpacking;
                t.raw += one.raw;
                if w.joints == 68 {
                    t.one_of_68 = [one.speed[3], one.speed[5]];
                }
                t.slowest = t.slowest.max(one.seconds / one.raw);
                for i in 0..SPEEDS {
                    t.speed[i] += one.speed[i].max(1e-9).ln();
                }
            }
        }
        println!(
            "\ntrue {name}       clips  samples over      runtime bytes   / ACL    at rest bytes   / ACL   encode MB/s (slowest clip)   unpack MB/s   pose/yardstick random, forward, crowd; one node of a pose"
        );
        for (s, kind) in sums.iter().zip(["BVH", "GLB", "FBX", "all"]) {
            let mean = |i: usize| (s.speed[i] / s.clips.max(1) as f64).exp();
            println!(
                "{kind:14} {:8} {:5} of {:9} {:15} {:7.3} {:16} {:7.3} {:13.1} ({:4.1})   {:13.1}   {:.2} {:.2} {:.2}   1/{:.1}",
                s.clips,
                s.over,
                s.samples,
                s.runtime,
                s.runtime / s.acl,
                s.rest,
                s.rest / s.acl,
                s.raw / s.seconds / 1e6,
                1e-6 / s.slowest,
                s.raw / s.unpacking / 1e6,
                mean(0),
                mean(1),
                mean(2),
                1.0 / mean(3),
            );
            if s.one_of_68[0] > 0.0 && kind == "all" {
                println!(
                    "one node of the rig of 68: 1/{:.1} of a pose, prepared 1/{:.1}",
                    1.0 / s.one_of_68[0],
                    1.0 / s.one_of_68[1]
                );
            }
        }
        if !missing.is_empty() {
            println!("not read as the table says: {}", missing.join(", "));
        }
    }
}

fn read_peers(text: &str) -> Vec<Wanted> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let column = |n: &str| names.iter().position(|c| *c == n).unwrap_or(usize::MAX);
    let mut out: Vec<Wanted> = Vec::new();
    for line in lines {
        let v: Vec<&str> = line.split(',').collect();
        let get = |n: &str| v.get(column(n)).copied().unwrap_or("");
        let number = |n: &str| get(n).parse::<f64>().unwrap_or(0.0);
        if out.last().is_none_or(|w| w.clip != get("clip")) {
            out.push(Wanted {
                clip: get("clip").to_owned(),
                file: get("file").to_owned(),
                animation: get("animation").to_owned(),
                joints: number("joints") as usize,
                frames: number("frames") as usize,
                rate: number("rate_hz"),
                start: number("start_time_s"),
                unit: number("unit_scale_m_per_file_unit"),
                check: number("check_mean_l1_object_position_m"),
                counted: get("in_totals") == "yes",
                acl: [0.0; 2],
            });
        }
        if get("tool") == "ACL"
            && let Some(w) = out.last_mut()
        {
            for (k, setting) in ["medium 0.01cm", "medium 0.1cm"].into_iter().enumerate() {
                if get("setting").starts_with(setting) {
                    w.acl[k] = number("compressed_bytes");
                }
            }
        }
    }
    out
}

/// The nodes the table means and their frames; `None` where they are not those of the table.
fn raw_frames(import: &Import, w: &Wanted) -> Option<Raw> {
    let index = match w.animation.strip_prefix("(unnamed ").and_then(|n| n.strip_suffix(')')) {
        Some(n) => n.parse().ok()?,
        None if w.animation.is_empty() => 0,
        None => import.clips.iter().position(|c| c.name == w.animation)?,
    };
    let clip = import.clips.get(index)?;
    let s = &import.skeleton;
    let animated = |n: usize| {
        import.clips.iter().any(|c| {
            c.tracks.iter().any(|t| {
                t.binding.node == Some(n)
                    && matches!(
                        t.binding.property,
                        Property::Translation | Property::Rotation | Property::Scale
                    )
            })
        })
    };
    let fbx = w.file.ends_with(".fbx");
    let member: Vec<bool> = (0..s.len())
        .map(|n| s.joints()[n].kind == NodeKind::Joint || (!fbx && animated(n)) || w.file.ends_with(".bvh"))
        .collect();
    let under = |n: usize| s.chain(n).into_iter().any(|a| member[a]);
    let order: Vec<usize> = s.order().iter().copied().filter(|&n| under(n)).collect();
    let mut place = vec![None; s.len()];
    for (i, n) in order.iter().enumerate() {
        place[*n] = Some(i);
    }
    let parents: Vec<Option<usize>> =
        order.iter().map(|&n| s.joints()[n].parent.and_then(|p| place[p])).collect();
    let mut pose = LocalPose::default();
    let mut frames: Vec<Vec<JointTransform>> = Vec::new();
    let mut mean = 0.0;
    // Where the table's own start is not the clip's, its frames still run from the first key.
    let last = w.start + (w.frames - 1) as f64 / w.rate;
    for f in 0..w.frames {
        let time = (w.start + f as f64 / w.rate).min(clip.end().max(last.min(clip.end())));
        pose.sample(clip, s, time, &TrackMask::all());
        let mut row: Vec<JointTransform> = Vec::with_capacity(order.len());
        let mut worlds = Vec::with_capacity(order.len());
        for (i, &n) in order.iter().enumerate() {
            let mut t = pose.joints[n];
            t.translation *= w.unit;
            if let Some(before) = frames.last()
                && before[i]
                    .rotation
                    .iter()
                    .zip(t.rotation.to_array())
                    .map(|(a, b)| f64::from(*a) * b)
                    .sum::<f64>()
                    < 0.0
            {
                t.rotation = -t.rotation;
            }
            let m = matrix(&t);
            let m = parents[i].map_or(m, |p: usize| worlds[p] * m);
            mean += m.translation.abs().element_sum();
            worlds.push(m);
            row.push(JointTransform {
                rotation: t.rotation.to_array().map(|v| v as f32),
                translation: t.translation.to_array().map(|v| v as f32),
                scale: t.scale.to_array().map(|v| v as f32),
            });
        }
        frames.push(row);
    }
    mean /= (w.frames * order.len().max(1)) as f64;
    let same = order.len() == w.joints && (mean - w.check).abs() < 1e-3 * w.check.max(0.01);
    if !same {
        eprintln!("{}: {} nodes for {}, mean place {mean} for {}", w.clip, order.len(), w.joints, w.check);
    }
    same.then_some(Raw { parents, frames })
}

fn model(t: &JointTransform) -> Transform {
    t.to_model()
}

/// The frames as a clip of straight lines, on a skeleton that says nothing.
fn clip_of(raw: &Raw, rate: f64) -> Option<(Skeleton, Clip)> {
    let joints = raw.parents.iter().map(|p| Joint::new("", *p, Transform::IDENTITY)).collect();
    let skeleton = Skeleton::new(joints).ok()?;
    let times: Arc<[f64]> = (0..raw.frames.len()).map(|f| f as f64 / rate).collect();
    let mut clip = Clip::new("", 0.0, times[times.len() - 1]).ok()?;
    clip.rate = FrameRate::from_hz(rate, 1e-6);
    for n in 0..raw.parents.len() {
        for (p, property) in
            [Property::Rotation, Property::Translation, Property::Scale].into_iter().enumerate()
        {
            let row = |t: &JointTransform| -> Vec<f64> {
                match p {
                    0 => t.rotation.map(f64::from).to_vec(),
                    1 => t.translation.map(f64::from).to_vec(),
                    _ => t.scale.map(f64::from).to_vec(),
                }
            };
            let first = row(&raw.frames[0][n]);
            let kind = if p == 0 { ValueKind::Rotation } else { ValueKind::Vector(3) };
            let curve = if raw.frames.iter().all(|f| row(&f[n]) == first) {
                Curve::linear(kind, vec![0.0], first.clone())
            } else {
                Curve::linear(kind, times.clone(), raw.frames.iter().flat_map(|f| row(&f[n])).collect())
            };
            clip.tracks.push(Track::new(
                Binding::node(n, "", property),
                TrackData::Curve(curve.ok()?),
                first,
            ));
        }
    }
    Some((skeleton, clip))
}

fn measure(raw: &Raw, w: &Wanted, bound: f64, setting: usize, encode_alone: bool) -> Sum {
    let (skeleton, clip) = clip_of(raw, w.rate).expect("frames make a clip");
    let options = CompressOptions { max_error: bound, ..CompressOptions::default() };
    let raw_bytes = (raw.frames.len() * raw.parents.len() * 40) as f64;
    let encode = || {
        let begun = Instant::now();
        let chunk = compress_clip(&clip, &skeleton, &options).expect("the bound can be met");
        (chunk, begun.elapsed().as_secs_f64())
    };
    let (chunk, mut seconds) = encode();
    // Short clips take a millisecond or less: the least of some.
    for _ in 0..if raw_bytes < 4e5 { 4 } else { 0 } {
        seconds = seconds.min(encode().1);
    }
    if encode_alone {
        let runtime = (chunk.report.bytes + 24) as f64;
        let rest = (assemble(&skeleton, vec![chunk], true).reports[0].bytes + 24) as f64;
        return Sum {
            acl: w.acl[setting],
            runtime,
            rest,
            clips: 1,
            seconds,
            raw: raw_bytes,
            ..Sum::default()
        };
    }
    let runtime = assemble(&skeleton, vec![chunk.clone()], false);
    let rest = assemble(&skeleton, vec![chunk], true);
    let mut unpacking = f64::INFINITY;
    for _ in 0..5 {
        let begun = Instant::now();
        let unpacked = unpack(&rest.bytes);
        unpacking = unpacking.min(begun.elapsed().as_secs_f64());
        assert_eq!(unpacked.as_ref(), Ok(&runtime.bytes), "{}: both forms hold the same", w.clip);
    }
    let library = Library::open(&runtime.bytes).expect("it was just written");
    let (over, samples) = count_over(raw, w, bound, &library);
    let speed = speeds(raw, w, &library);
    // A chunk, its eight bytes and the file's sixteen.
    Sum {
        acl: w.acl[setting],
        runtime: (runtime.reports[0].bytes + 24) as f64,
        rest: (rest.reports[0].bytes + 24) as f64,
        over,
        samples,
        clips: 1,
        seconds,
        unpacking,
        raw: raw_bytes,
        speed,
        ..Sum::default()
    }
}

/// Samples over the bound, reckoned from the raw frames by matrices alone.
fn count_over(raw: &Raw, w: &Wanted, bound: f64, library: &Library) -> (usize, usize) {
    let n = raw.parents.len();
    let mut pose = vec![JointTransform::IDENTITY; n];
    let (mut over, mut samples) = (0, 0);
    for s in 0..2 * raw.frames.len() - 1 {
        library.clips[0].pose(s as f64 / 2.0 / w.rate, &mut pose);
        let mut worlds = [Vec::with_capacity(n), Vec::with_capacity(n)];
        for j in 0..n {
            let a = model(&raw.frames[s / 2][j]);
            let truth = if s % 2 == 0 {
                a
            } else {
                let b = model(&raw.frames[s / 2 + 1][j]);
                let sign = if a.rotation.dot(b.rotation) < 0.0 { -1.0 } else { 1.0 };
                Transform {
                    translation: (a.translation + b.translation) / 2.0,
                    rotation: (a.rotation + b.rotation * sign).normalize(),
                    scale: (a.scale + b.scale) / 2.0,
                }
            };
            for (worlds, t) in worlds.iter_mut().zip([truth, model(&pose[j])]) {
                let m = matrix(&t);
                let m = raw.parents[j].map_or(m, |p: usize| worlds[p] * m);
                worlds.push(m);
            }
            let (a, b) = (&worlds[0][j], &worlds[1][j]);
            let worst = DMat3::IDENTITY.to_cols_array_2d().map(|axis| {
                let p = DVec3::from_array(axis) * 0.03;
                (a.transform_point3(p) - b.transform_point3(p)).length()
            });
            samples += 1;
            over += usize::from(worst.iter().any(|e| *e > bound));
        }
    }
    (over, samples)
}

/// The peers' yardstick: two frames of plain transforms blended.
#[inline(never)]
fn yardstick(a: &[JointTransform], b: &[JointTransform], u: f32, out: &mut [JointTransform]) {
    for ((a, b), o) in a.iter().zip(b).zip(out) {
        let d: f32 = (0..4).map(|i| a.rotation[i] * b.rotation[i]).sum();
        let (v, s) = (1.0 - u, if d < 0.0 { -u } else { u });
        let q: [f32; 4] = std::array::from_fn(|i| a.rotation[i] * v + b.rotation[i] * s);
        let k = 1.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
        o.rotation = q.map(|c| c * k);
        for i in 0..3 {
            o.translation[i] = a.translation[i] + (b.translation[i] - a.translation[i]) * u;
            o.scale[i] = a.scale[i] + (b.scale[i] - a.scale[i]) * u;
        }
    }
}

/// Characters of the crowd.
const CROWD: usize = 1000;
/// Bytes read between two crowds.
const BALLAST: usize = 384 << 20;

/// See [`SPEEDS`]. The least of many rounds counts, in which all take turns.
fn speeds(raw: &Raw, w: &Wanted, library: &Library) -> [f64; SPEEDS] {
    let clip = &library.clips[0];
    let n = raw.parents.len();
    let mut out = vec![JointTransform::IDENTITY; n];
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let end = clip.end();
    let plain = |time: f64, out: &mut [JointTransform]| {
        let at = time * w.rate;
        let f = (at as usize).min(raw.frames.len() - 2);
        yardstick(&raw.frames[f], &raw.frames[f + 1], (at - f as f64) as f32, black_box(out));
    };
    let mut best = [f64::INFINITY; 6];
    let mut cursor = clip.cursor();
    let prepared: Vec<PreparedNode<'_>> = (0..n).map(|node| clip.prepare(node)).collect();
    // Which node each call asks for, so that no division by n is measured.
    let nodes: Vec<usize> = (0..150).map(|i| i % n).collect();
    for _ in 0..24 {
        let times: Vec<f64> = (0..150).map(|_| random() * end).collect();
        let from = random() * end;
        let forward: Vec<f64> = (0..150).map(|i| (from + f64::from(i) / 60.0) % end.max(1e-9)).collect();
        let mut race = |slot: usize, run: &mut dyn FnMut(usize)| {
            let begun = Instant::now();
            (0..150).for_each(&mut *run);
            best[slot] = best[slot].min(begun.elapsed().as_nanos() as f64 / 150.0);
        };
        race(0, &mut |i| clip.pose(times[i], black_box(&mut out)));
        race(1, &mut |i| cursor.pose(forward[i], black_box(&mut out)));
        race(2, &mut |i| {
            black_box(clip.node(times[i], nodes[i]));
        });
        race(3, &mut |i| plain(times[i], &mut out));
        race(4, &mut |i| plain(forward[i], &mut out));
        race(5, &mut |i| {
            black_box(prepared[nodes[i]].at(times[i]));
        });
    }
    let crowd = crowd(n, end, &mut random, [&mut |t, out| clip.pose(t, out), &mut |t, out| plain(t, out)]);
    [best[0] / best[3], best[1] / best[4], crowd, best[2] / best[0], best[0], best[5] / best[0]]
}

/// Writes the pose at a time.
type Play<'p> = dyn FnMut(f64, &mut [JointTransform]) + 'p;

/// Time of the first over that of the second for a crowd after a cache flush.
fn crowd(n: usize, end: f64, random: &mut dyn FnMut() -> f64, mut runs: [&mut Play<'_>; 2]) -> f64 {
    let mut poses = vec![JointTransform::IDENTITY; n * CROWD];
    // More than any cache holds, a number from every line of it.
    let ballast = vec![1u64; BALLAST / 8];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..3 {
        let times: Vec<f64> = (0..CROWD).map(|_| random() * end).collect();
        for (run, best) in runs.iter_mut().zip(&mut best) {
            black_box(ballast.iter().step_by(8).sum::<u64>());
            let begun = Instant::now();
            for (time, pose) in times.iter().zip(poses.chunks_mut(n)) {
                run(*time, pose);
            }
            *best = best.min(begun.elapsed().as_secs_f64());
            black_box(&mut poses);
        }
    }
    best[0] / best[1]
}
