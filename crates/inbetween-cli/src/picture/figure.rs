//! A strip of stick figures: what a clip looks like, for reports.
//!
//! Poses at even times stand side by side: where they are, if the clip travels, else a step apart.
//! The view is from the side of the travel, so a walk goes from left to right. Limbs nearer to the
//! eye are coloured, those behind grey.

use inbetween::glam::{DVec2, DVec3};
use inbetween::math::{cos, sin};
use inbetween::{Clip, LocalPose, ModelPose, Skeleton, TrackMask};

use super::{Anchor, Canvas, Ink, Pen};

/// How a strip is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Strip {
    /// Number of poses, at even times from the clip's start to its end.
    pub poses: usize,
    /// Largest height, pixels; a long row of poses needs less.
    pub height: f64,
    /// Turns the view about +Y from straight at the side, radians.
    pub yaw: f64,
}

impl Default for Strip {
    fn default() -> Self {
        Self { poses: 9, height: 240.0, yaw: 0.25 }
    }
}

/// One pose's bones: both ends in the world.
type Bones = Vec<(DVec3, DVec3)>;

/// A strip ready to be drawn: poses side by side, and how they are seen.
pub struct Layout {
    poses: Vec<Bones>,
    times: Vec<f64>,
    right: DVec3,
    toward: DVec3,
    /// Lower left and upper right corner of what is drawn, metres; the ground is in it.
    corners: [DVec2; 2],
    width: f64,
    /// Pixels of a metre.
    scale: f64,
    /// Height it takes, pixels.
    pub height: f64,
}

const SIDES: f64 = 14.0;
const WORDS: f64 = 18.0;

/// Lays out poses of `clip` in a strip `width` pixels wide. `None` where nothing can be drawn: a
/// skeleton without joints.
pub fn lay_out(skeleton: &Skeleton, clip: &Clip, strip: &Strip, width: f64) -> Option<Layout> {
    let count = strip.poses.max(1);
    let time = |i: usize| {
        let u = if count == 1 { 0.0 } else { i as f64 / (count - 1) as f64 };
        clip.start() + clip.duration() * u
    };
    let mut poses: Vec<Bones> = (0..count).map(|i| bones(skeleton, clip, time(i))).collect();

    // Which way it goes: from the middle of the first pose to that of the last, on the ground.
    let middle = |b: &Bones| b.iter().map(|(a, b)| (*a + *b) * 0.5).sum::<DVec3>() / b.len().max(1) as f64;
    let way = (middle(&poses[count - 1]) - middle(&poses[0])) * DVec3::new(1.0, 0.0, 1.0);
    let size = extent(&poses[0]);
    let travels = way.length() > 0.3 * size.max(1e-9);
    let right = if travels { way.normalize() } else { DVec3::new(0.8, 0.0, 0.6) };
    let toward = right.cross(DVec3::Y);
    let (right, toward) = {
        let (c, s) = (cos(strip.yaw), sin(strip.yaw));
        (right * c + toward * s, toward * c - right * s)
    };
    if !travels || way.length() < 0.35 * size * (count - 1) as f64 {
        // Too close together to tell apart: push them along the strip.
        let step = if travels { 0.55 * size - way.length() / (count.max(2) - 1) as f64 } else { 0.9 * size };
        for (i, pose) in poses.iter_mut().enumerate() {
            for (a, b) in pose {
                *a += right * (step * i as f64);
                *b += right * (step * i as f64);
            }
        }
    }
    let points = || poses.iter().flatten().flat_map(|(a, b)| [*a, *b]).map(|p| DVec2::new(p.dot(right), p.y));
    let low = points().fold(DVec2::new(f64::INFINITY, 0.0), DVec2::min);
    let high = points().fold(DVec2::splat(f64::NEG_INFINITY), DVec2::max);
    if low.x > high.x {
        return None;
    }
    let span = (high - low).max(DVec2::splat(1e-9));
    let scale = ((width - 2.0 * SIDES) / span.x).min((strip.height - SIDES - WORDS) / span.y);
    let height = span.y * scale + SIDES + WORDS;
    let times = (0..count).map(time).collect();
    Some(Layout { poses, times, right, toward, corners: [low, high], width, scale, height })
}

fn bones(skeleton: &Skeleton, clip: &Clip, time: f64) -> Bones {
    let local = LocalPose::of_clip(clip, skeleton, time, &TrackMask::all());
    let world = ModelPose::of(skeleton, &local);
    let at = |i: usize| world.joints[i].translation;
    let mut bones = Vec::new();
    for (i, joint) in skeleton.joints().iter().enumerate() {
        // A root that lies on the ground is no bone.
        if let Some(parent) = joint.parent
            && skeleton.joints()[parent].parent.is_some()
        {
            bones.push((at(parent), at(i)));
        }
        bones.extend(joint.tips.iter().map(|&tip| (at(i), world.joints[i].transform_point3(tip))));
    }
    if bones.is_empty() {
        bones.extend((0..skeleton.len()).map(|i| (at(i), at(i))));
    }
    bones.retain(|(a, b)| a.is_finite() && b.is_finite());
    bones
}

/// Length of the diagonal of the box around a pose.
fn extent(bones: &Bones) -> f64 {
    let points = || bones.iter().flat_map(|(a, b)| [*a, *b]);
    let low = points().fold(DVec3::splat(f64::INFINITY), DVec3::min);
    let high = points().fold(DVec3::splat(f64::NEG_INFINITY), DVec3::max);
    if low.x > high.x { 0.0 } else { (high - low).length() }
}

/// Draws a strip into the canvas from `top` down.
pub fn draw(canvas: &mut dyn Canvas, layout: &Layout, top: f64) {
    let Layout { poses, times, right, toward, corners: [low, high], width: w, scale, height: h } = layout;
    let (right, toward, scale) = (*right, *toward, *scale);
    let flat = |p: DVec3| DVec2::new(p.dot(right), p.y);
    let span = *high - *low;
    let left = 0.5 * (w - scale * span.x);
    let put = |p: DVec2| (left + (p.x - low.x) * scale, top + h - WORDS - (p.y - low.y) * scale);
    let ground = put(DVec2::ZERO).1;
    canvas.line(&[(0.0, ground), (*w, ground)], Pen::solid(Ink::Frame, 1.0));
    let width = (0.016 * span.y * scale).clamp(1.2, 4.0);
    let mut written = f64::NEG_INFINITY;
    for (pose, time) in poses.iter().zip(times) {
        let depth: Vec<f64> = pose.iter().map(|(a, b)| (*a + *b).dot(toward) * 0.5).collect();
        let middle = depth.iter().sum::<f64>() / depth.len().max(1) as f64;
        let spread = depth.iter().map(|d| (d - middle).abs()).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..pose.len()).collect();
        order.sort_by(|&a, &b| depth[a].total_cmp(&depth[b]));
        for i in order {
            let ink = match (depth[i] - middle) / spread.max(1e-9) {
                u if u < -0.2 => Ink::Source,
                u if u > 0.2 => Ink::Series(0),
                _ => Ink::Quiet,
            };
            let (a, b) = (put(flat(pose[i].0)), put(flat(pose[i].1)));
            if pose[i].0 == pose[i].1 {
                canvas.dot(a.0, a.1, width, ink);
            } else {
                canvas.line(&[a, b], Pen::solid(ink, width));
            }
        }
        let center =
            pose.iter().map(|(a, b)| flat((*a + *b) * 0.5).x).sum::<f64>() / pose.len().max(1) as f64;
        let x = put(DVec2::new(center, 0.0)).0;
        // A time only where it does not run into the one before.
        if x - written < 38.0 {
            continue;
        }
        written = x;
        canvas.text(x, top + h - 4.0, 10.0, Anchor::Middle, Ink::Quiet, &format!("{time:.2} s"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::svg::Svg;
    use inbetween_formats::demo;

    #[test]
    fn a_walk_is_drawn_from_left_to_right_with_a_time_under_each_pose() {
        let walk = demo::walk();
        let mut svg = Svg::new(900.0, 240.0);
        let strip = Strip { poses: 5, ..Strip::default() };
        let layout = lay_out(&walk.skeleton, &walk.clips[0], &strip, 900.0).expect("a figure");
        assert!(layout.height <= strip.height);
        draw(&mut svg, &layout, 0.0);
        let text = svg.document("walk");
        let at = |time: &str| {
            let head = &text[..text.find(time).expect("the time is written")];
            let x = &head[head.rfind(" x=\"").expect("a place") + 4..];
            x[..x.find('"').expect("a number")].parse::<f64>().expect("a number")
        };
        let places = ["0.00 s", "0.27 s", "0.53 s", "0.80 s", "1.07 s"].map(at);
        assert!(places.windows(2).all(|w| w[0] < w[1]), "{places:?}");
    }

    #[test]
    fn clips_without_joints_or_travel_are_drawn_too() {
        let idle = demo::locomotion();
        let ball = demo::ball();
        for (skeleton, clip) in [
            (&idle.skeleton, &idle.clips[0]),
            (&ball.skeleton, &ball.clips[0]),
            (&Skeleton::default(), &ball.clips[0]),
        ] {
            let mut svg = Svg::new(400.0, 100.0);
            if let Some(layout) = lay_out(skeleton, clip, &Strip::default(), 400.0) {
                draw(&mut svg, &layout, 0.0);
            }
            assert!(!svg.document("x").contains("NaN"));
        }
    }
}
