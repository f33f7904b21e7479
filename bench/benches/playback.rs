//! Blending and local-to-world for a crowd, against the yardstick: plain Rust over frames of
//! 40-byte joints, a normalised lerp with hemisphere check per joint.

use inbetween::glam::DVec3;
use inbetween::math;
use inbetween::playback::runtime::{self, RuntimeMask, RuntimePose, RuntimeRig, best_level};
use inbetween::{Joint, Skeleton, Transform};
use inbetween_bench::{Race, Stream};

const JOINTS: usize = 50;
const CHARACTERS: usize = 64;

/// The joint of the yardstick: quaternion, translation, scale.
#[derive(Clone, Copy)]
#[repr(C)]
struct Plain {
    q: [f32; 4],
    t: [f32; 3],
    s: [f32; 3],
}

fn yardstick(a: &[Plain], b: &[Plain], u: f32, out: &mut [Plain]) {
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        let dot = a.q[0] * b.q[0] + a.q[1] * b.q[1] + a.q[2] * b.q[2] + a.q[3] * b.q[3];
        let v = if dot < 0.0 { -u } else { u };
        let mut q = [0.0; 4];
        for c in 0..4 {
            q[c] = a.q[c] * (1.0 - u) + b.q[c] * v;
        }
        let r = 1.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
        out.q = q.map(|c| c * r);
        for c in 0..3 {
            out.t[c] = a.t[c] + u * (b.t[c] - a.t[c]);
            out.s[c] = a.s[c] + u * (b.s[c] - a.s[c]);
        }
    }
}

fn transform(s: &mut Stream) -> Transform {
    let mut v = || DVec3::new(2.0 * s.unit() - 1.0, 2.0 * s.unit() - 1.0, 2.0 * s.unit() - 1.0);
    Transform { rotation: math::from_rotation_vector(v() * 2.0), translation: v(), scale: DVec3::ONE }
}

fn main() {
    let mut s = Stream::new(7);
    let joints = (0..JOINTS)
        .map(|i| Joint::new(format!("j{i}"), i.checked_sub(1).map(|p| p * 3 / 4), transform(&mut s)))
        .collect();
    let rig = RuntimeRig::new(&Skeleton::new(joints).expect("a tree")).expect("plain scales");
    let poses: Vec<RuntimePose> = (0..2 * CHARACTERS)
        .map(|_| {
            let mut pose = RuntimePose::identity(JOINTS);
            (0..JOINTS).for_each(|j| pose.set(j, &transform(&mut s)));
            pose
        })
        .collect();
    let frames: Vec<Vec<Plain>> = poses
        .iter()
        .map(|p| {
            let plain = |j| {
                let t = p.get(j);
                Plain {
                    q: t.rotation.to_array().map(|v| v as f32),
                    t: t.translation.to_array().map(|v| v as f32),
                    s: t.scale.to_array().map(|v| v as f32),
                }
            };
            (0..JOINTS).map(plain).collect()
        })
        .collect();
    let mask = RuntimeMask::new(&[0.7; JOINTS]);
    let level = best_level();
    let (below, layer) = poses.split_at(CHARACTERS);
    let mut out = frames[0].clone();
    let mut work = below.to_vec();
    let mut masked = below.to_vec();
    let mut added = below.to_vec();
    let mut twin = below.to_vec();
    let mut worlds = vec![Vec::new(); CHARACTERS];
    let mut plain_worlds = vec![Vec::new(); CHARACTERS];

    Race::new("pose work for 64 characters of 50 joints", JOINTS * CHARACTERS, "joint")
        .rounds(300)
        .with("yardstick: plain nlerp of 40-byte joints", || {
            for c in 0..CHARACTERS {
                yardstick(&frames[c], &frames[CHARACTERS + c], 0.3, &mut out);
                std::hint::black_box(&mut out);
            }
        })
        .with("blend two layers, override, slerp", || {
            for (w, l) in work.iter_mut().zip(layer) {
                runtime::blend_override(level, w, l, 0.3, None);
            }
        })
        .with("blend two layers, masked", || {
            for (w, l) in masked.iter_mut().zip(layer) {
                runtime::blend_override(level, w, l, 0.3, Some(&mask));
            }
        })
        .with("blend two layers, additive", || {
            for (w, l) in added.iter_mut().zip(layer) {
                runtime::blend_additive(level, w, l, 0.001, None);
            }
        })
        .with("blend two layers, plain twin", || {
            for (w, l) in twin.iter_mut().zip(layer) {
                runtime::plain::blend_override(w, l, 0.3, None);
            }
        })
        .with("local to world", || {
            for (p, w) in below.iter().zip(&mut worlds) {
                runtime::local_to_world(level, &rig, p, w);
            }
        })
        .with("local to world, plain twin", || {
            for (p, w) in below.iter().zip(&mut plain_worlds) {
                runtime::plain::local_to_world(&rig, p, w);
            }
        })
        .run();
}
