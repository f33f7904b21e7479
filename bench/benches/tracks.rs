//! The case for tracks and interpolation: the same walk as whole matrices a frame, as tracks of
//! reduced keys, and compressed; memory, time and error for 1, 100 and 1 000 characters.
//!
//! Plays `Walking_A` of the 41-joint, 54-node character in the real data (`INBETWEEN_DATA`, else
//! `../shared/data`), or the embedded walk where that is missing.

use std::path::PathBuf;
use std::sync::Arc;

use inbetween::metric::check_times;
use inbetween::playback::runtime::{RuntimePose, WorldMatrix};
use inbetween::playback::sampler::{ClipSampler, Sampler};
use inbetween::pose::matrix;
use inbetween::reduce::{Options, reduce};
use inbetween::{Clip, FrameRate, LocalPose, ModelPose, Skeleton, TrackMask};
use inbetween_bench::{Race, Stream};
use inbetween_codec::{CompressOptions, JointTransform, Library, compress};
use inbetween_formats::{ReadOptions, demo, import_path};

/// Whole local 4 × 4 matrices, a row of them for each frame.
struct Matrices {
    rate: f64,
    joints: usize,
    frames: Vec<[[f32; 4]; 4]>,
}

impl Matrices {
    fn bake(clip: &Clip, skeleton: &Skeleton, rate: FrameRate) -> Self {
        let count = (clip.duration() * rate.as_f64()).round() as i64 + 1;
        let mut frames = Vec::new();
        for f in 0..count {
            let time = (clip.start() + rate.time_of(f)).min(clip.end());
            let local = LocalPose::of_clip(clip, skeleton, time, &TrackMask::all());
            for t in &local.joints {
                let m = matrix(t);
                let column = |v: inbetween::glam::DVec3, w: f32| [v.x as f32, v.y as f32, v.z as f32, w];
                frames.push([
                    column(m.matrix3.x_axis, 0.0),
                    column(m.matrix3.y_axis, 0.0),
                    column(m.matrix3.z_axis, 0.0),
                    column(m.translation, 1.0),
                ]);
            }
        }
        Self { rate: rate.as_f64(), joints: skeleton.len(), frames }
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.frames[..])
    }

    /// The nearest earlier frame, as it is.
    fn nearest(&self, since: f64, out: &mut [[[f32; 4]; 4]]) {
        let last = self.frames.len() / self.joints - 1;
        let f = ((since * self.rate + 1e-9) as usize).min(last);
        out.copy_from_slice(&self.frames[f * self.joints..(f + 1) * self.joints]);
    }

    /// Between two frames, number by number, which is all that whole matrices allow.
    fn between(&self, since: f64, out: &mut [[[f32; 4]; 4]]) {
        let last = self.frames.len() / self.joints - 1;
        let at = since * self.rate;
        let f = (at as usize).min(last);
        let (g, u) = ((f + 1).min(last), (at - f as f64) as f32);
        let (a, b) = (&self.frames[f * self.joints..], &self.frames[g * self.joints..]);
        for (j, out) in out.iter_mut().enumerate() {
            for c in 0..4 {
                for r in 0..4 {
                    out[c][r] = a[j][c][r] + u * (b[j][c][r] - a[j][c][r]);
                }
            }
        }
    }
}

/// Largest distance of a node's origin or a point 3 cm along its axes, millimetres, over the key
/// times, midpoints and a fine grid.
fn error(
    clip: &Clip,
    skeleton: &Skeleton,
    mut play: impl FnMut(f64) -> Vec<inbetween::glam::DAffine3>,
) -> f64 {
    let mut times = check_times(clip);
    times.extend((0..=500).map(|i| clip.start() + clip.duration() * f64::from(i) / 500.0));
    let offsets = inbetween::metric::shell_offsets(skeleton, inbetween::metric::Shell::default());
    let mut worst = 0.0f64;
    for t in times {
        let reference = ModelPose::of(skeleton, &LocalPose::of_clip(clip, skeleton, t, &TrackMask::all()));
        let locals = play(t);
        let mut world = locals.clone();
        for &i in skeleton.order() {
            if let Some(p) = skeleton.joints()[i].parent {
                world[i] = world[p] * locals[i];
            }
        }
        for (i, (a, b)) in reference.joints.iter().zip(&world).enumerate() {
            let o = offsets[i];
            for p in [
                inbetween::glam::DVec3::ZERO,
                inbetween::glam::DVec3::X * o.x,
                inbetween::glam::DVec3::Y * o.y,
                inbetween::glam::DVec3::Z * o.z,
            ] {
                worst = worst.max((a.transform_point3(p) - b.transform_point3(p)).length());
            }
        }
    }
    worst * 1000.0
}

fn affine(m: &[[f32; 4]; 4]) -> inbetween::glam::DAffine3 {
    let column = |c: [f32; 4]| inbetween::glam::DVec3::new(c[0].into(), c[1].into(), c[2].into());
    inbetween::glam::DAffine3 {
        matrix3: inbetween::glam::DMat3::from_cols(column(m[0]), column(m[1]), column(m[2])),
        translation: column(m[3]),
    }
}

fn main() {
    let data = std::env::var_os("INBETWEEN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    );
    let path = data.join("kaykit-adventurers/Rogue.glb");
    let (import, name) = match import_path(&path, &ReadOptions::default()) {
        Ok(import) => (import, "Walking_A"),
        Err(_) => {
            println!("no real data at {}: playing the embedded walk", data.display());
            (demo::walk(), "")
        }
    };
    let clip = import.clips.iter().find(|c| c.name == name).unwrap_or(&import.clips[0]).clone();
    let skeleton = import.skeleton;
    let joints = skeleton.len();
    let (start, duration) = (clip.start(), clip.duration());

    // Why blending matrices goes wrong where it does: the largest turn of a node between frames.
    let mut fastest = (0.0f64, 0usize, 0.0f64);
    for f in 0..(duration * 30.0) as i64 {
        let at = |f: i64| LocalPose::of_clip(&clip, &skeleton, start + f as f64 / 30.0, &TrackMask::all());
        let (a, b) = (at(f), at(f + 1));
        for n in 0..joints {
            let turn = inbetween::math::angle_between(a.joints[n].rotation, b.joints[n].rotation);
            if turn > fastest.0 {
                fastest = (turn, n, start + f as f64 / 30.0);
            }
        }
    }
    println!(
        "fastest turn between two frames at 30 fps: {:.0} degrees, {:?} at {:.3} s",
        fastest.0.to_degrees(),
        skeleton.joints()[fastest.1].name,
        fastest.2
    );

    let at60 = Matrices::bake(&clip, &skeleton, FrameRate::hz(60));
    let at30 = Matrices::bake(&clip, &skeleton, FrameRate::hz(30));
    let reduced = reduce(&clip, &skeleton, &Options::world(0.001)).expect("a walk reduces").clip;
    let options = CompressOptions { max_error: 0.001, ..CompressOptions::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).expect("a walk compresses");
    let library = Library::open(&file.bytes).expect("what was written opens");
    let packed = &library.clips[0];

    // Runtime keys: a 32-bit time, shared by no one, and 32-bit components.
    let key_bytes: usize =
        reduced.tracks.iter().map(|t| t.data.key_times().len() * (4 + 4 * t.data.kind().width())).sum();
    let of_matrices = |m: &Matrices, blend: bool, t: f64| {
        let mut out = vec![[[0.0; 4]; 4]; joints];
        if blend {
            m.between(t - start, &mut out)
        } else {
            m.nearest(t - start, &mut out)
        }
        out.iter().map(affine).collect::<Vec<_>>()
    };
    let locals = |pose: &LocalPose| pose.joints.iter().map(matrix).collect::<Vec<_>>();
    let rows = [
        (
            "matrices, 60 fps, no interpolation",
            at60.bytes(),
            error(&clip, &skeleton, |t| of_matrices(&at60, false, t)),
        ),
        (
            "matrices, 30 fps, interpolated",
            at30.bytes(),
            error(&clip, &skeleton, |t| of_matrices(&at30, true, t)),
        ),
        (
            "tracks, keys reduced under 1 mm",
            key_bytes,
            error(&clip, &skeleton, |t| {
                locals(&LocalPose::of_clip(&reduced, &skeleton, t, &TrackMask::all()))
            }),
        ),
        (
            ".ibc under 1 mm",
            file.bytes.len(),
            error(&clip, &skeleton, |t| {
                let mut pose = vec![JointTransform::IDENTITY; joints];
                packed.pose(t, &mut pose);
                pose.iter().map(|j| matrix(&j.to_model())).collect()
            }),
        ),
    ];
    println!("{:?}: {duration:.3} s, {joints} nodes, {} keys in the source", clip.name, clip.key_count());
    println!("{:<40} {:>10} {:>12} {:>14}", "", "bytes", "a minute, kB", "off by, mm");
    for (name, bytes, off) in rows {
        let minute = bytes as f64 / duration * 60.0 / 1000.0;
        println!("{name:<40} {bytes:>10} {minute:>12.0} {off:>14.2}");
    }

    for characters in [1usize, 100, 1000] {
        let mut s = Stream::new(3);
        let times: Vec<f64> = (0..characters).map(|_| start + duration * s.unit()).collect();
        // Each character has a pose of its own, as in a game.
        let mut matrices = vec![vec![[[0.0f32; 4]; 4]; joints]; characters];
        let mut matrices2 = matrices.clone();
        let mut poses = vec![RuntimePose::identity(joints); characters];
        let mut transforms = vec![vec![JointTransform::IDENTITY; joints]; characters];
        let mut sampler =
            ClipSampler::new(Arc::new(reduced.clone()), Arc::new(skeleton.clone())).expect("plain scales");
        let mask = TrackMask::all();
        Race::new(
            format!("{characters} characters, a pose each at times of their own"),
            characters * joints,
            "joint",
        )
        .rounds(if characters == 1 { 2000 } else { 60 })
        .with("matrices, 60 fps, no interpolation", || {
            for (t, m) in times.iter().zip(&mut matrices) {
                at60.nearest(t - start, m);
            }
        })
        .with("matrices, 30 fps, interpolated", || {
            for (t, m) in times.iter().zip(&mut matrices2) {
                at30.between(t - start, m);
            }
        })
        .with("tracks, reduced keys (f64 authoring)", || {
            for (t, p) in times.iter().zip(&mut poses) {
                sampler.sample_pose(*t, &mask, p);
            }
        })
        .with(".ibc", || {
            for (t, p) in times.iter().zip(&mut transforms) {
                packed.pose(*t, p);
            }
        })
        .run();
        let state = |bytes: usize| characters * bytes / 1000;
        println!(
            "state of all characters: matrices {} kB, transforms {} kB (world matrices for drawing, on top: {} kB)",
            state(joints * 64),
            state(joints * size_of::<JointTransform>()),
            state(joints * size_of::<WorldMatrix>()),
        );
    }
}
