//! Standing, walking, running and turning, as functions of time.
//!
//! Each foot lives by its own phase: it lands on the heel, rolls flat, lifts the heel over the ball
//! of the foot, leaves the ground and swings to its next place. Where it lands follows from where
//! the root will be in the middle of the step, so feet stay put while the body goes over them,
//! also in a turn. Hips, spine and arms follow the phases as textbooks describe human gait: two
//! bobs and one sway a stride, hips and chest turning against each other, arms against legs.

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::{axis_angle, cos, sin};
use inbetween::{Binding, Clip, Curve, Marker, Property, Skeleton, Track, TrackData, ValueKind, Wrap};

use super::figure::{Arm, BALL, Foot, HEEL, HIPS, ROOT, Stance, figure, solve};
use super::{RATE, frame_times, import};
use crate::Import;

const DEGREE: f64 = std::f64::consts::PI / 180.0;
const CYCLE: f64 = 2.0 * std::f64::consts::PI;

/// How a figure moves. Phases are fractions of a stride, from a foot's landing.
#[derive(Clone, Copy, Debug)]
struct Gait {
    name: &'static str,
    /// Frames of one stride (two steps).
    frames: usize,
    /// Strides in the clip.
    strides: usize,
    /// Metres a second.
    speed: f64,
    /// Radians a second, to the left.
    turn: f64,
    /// Phase at which a foot leaves the ground.
    duty: f64,
    /// Phase at which the root is above the ankle.
    over: f64,
    /// Phases at which a foot has rolled flat and at which the heel leaves the ground.
    flat: [f64; 2],
    /// Pitch of the foot when it lands (heel first, so negative) and when it leaves.
    pitch: [f64; 2],
    /// How fast the foot still goes forward when it lands, metres a second.
    landing: f64,
    /// How high the ankle is lifted in the swing, beyond the straight way, metres.
    lift: f64,
    /// Half the distance between the two tracks of feet, metres.
    spread: f64,
    /// Toes outward, radians.
    toe_out: f64,
    /// Height of the hips, how far they bob, and the phase at which they are lowest.
    height: f64,
    bob: f64,
    lowest: f64,
    /// Sway to the side, metres.
    sway: f64,
    /// Hips: yaw and roll amplitude; spine: lean forward and yaw against the hips.
    hips_yaw: f64,
    hips_roll: f64,
    lean: f64,
    chest_yaw: f64,
    /// Arm swing amplitude and middle, elbow bend and how much more of it in front.
    arm: f64,
    arm_middle: f64,
    elbow: f64,
    elbow_more: f64,
}

const WALK: Gait = Gait {
    name: "walk",
    frames: 64,
    strides: 1,
    speed: 1.25,
    turn: 0.0,
    duty: 0.62,
    over: 0.26,
    flat: [0.08, 0.36],
    pitch: [-18.0 * DEGREE, 52.0 * DEGREE],
    landing: 0.25,
    lift: 0.045,
    spread: 0.075,
    toe_out: 7.0 * DEGREE,
    height: 0.928,
    bob: 0.017,
    lowest: 0.05,
    sway: 0.022,
    hips_yaw: 6.0 * DEGREE,
    hips_roll: 4.0 * DEGREE,
    lean: 4.0 * DEGREE,
    chest_yaw: 7.0 * DEGREE,
    arm: 24.0 * DEGREE,
    arm_middle: 2.0 * DEGREE,
    elbow: 20.0 * DEGREE,
    elbow_more: 14.0 * DEGREE,
};

const RUN: Gait = Gait {
    name: "run",
    frames: 42,
    strides: 1,
    speed: 2.9,
    turn: 0.0,
    duty: 0.34,
    over: 0.13,
    flat: [0.05, 0.14],
    pitch: [-6.0 * DEGREE, 58.0 * DEGREE],
    landing: 1.9,
    lift: 0.24,
    spread: 0.05,
    toe_out: 4.0 * DEGREE,
    height: 0.89,
    bob: 0.035,
    lowest: 0.16,
    sway: 0.008,
    hips_yaw: 8.0 * DEGREE,
    hips_roll: 4.0 * DEGREE,
    lean: 11.0 * DEGREE,
    chest_yaw: 14.0 * DEGREE,
    arm: 38.0 * DEGREE,
    arm_middle: -4.0 * DEGREE,
    elbow: 82.0 * DEGREE,
    elbow_more: 18.0 * DEGREE,
};

/// Quarter turns in two strides: a circle of about 1.5 m.
const TURN: Gait = Gait { strides: 2, speed: 1.1, duty: 0.64, toe_out: 5.0 * DEGREE, ..WALK };

/// The figure walking one stride, over which the root travels forward; plays on by
/// [`Wrap::LoopOffset`].
pub fn walk() -> Import {
    let skeleton = figure();
    let clip = clip(&skeleton, &WALK);
    import(skeleton, vec![clip])
}

/// The figure running one stride.
pub fn run() -> Import {
    let skeleton = figure();
    let clip = clip(&skeleton, &RUN);
    import(skeleton, vec![clip])
}

/// The figure's whole set on one skeleton: `idle`, `walk`, `run`, `walk turn left`, `walk turn
/// right`, `run turn left`, `run turn right`.
///
/// Every clip loops; marks named `left foot down`, `left foot up` and so on say when feet land
/// and leave.
pub fn locomotion() -> Import {
    let skeleton = figure();
    let turning = |gait: Gait, name, degrees: f64| Gait { name, turn: degrees * DEGREE, ..gait };
    let run = Gait { strides: 2, speed: 2.8, ..RUN };
    let clips = vec![
        idle(&skeleton),
        clip(&skeleton, &WALK),
        clip(&skeleton, &RUN),
        clip(&skeleton, &turning(TURN, "walk turn left", 42.0)),
        clip(&skeleton, &turning(TURN, "walk turn right", -42.0)),
        clip(&skeleton, &turning(run, "run turn left", 60.0)),
        clip(&skeleton, &turning(run, "run turn right", -60.0)),
    ];
    import(skeleton, clips)
}

fn clip(skeleton: &Skeleton, gait: &Gait) -> Clip {
    let frames = gait.frames * gait.strides;
    let mut clip = record(skeleton, gait.name, frames, |time| gait.stance(time));
    let mut markers = Vec::new();
    for (side, foot) in ["left", "right"].into_iter().enumerate() {
        for stride in 0..=gait.strides {
            for (phase, what) in [(0.0, "down"), (gait.duty, "up")] {
                let time = (stride as f64 - Gait::offset(side) + phase) * gait.period();
                if (0.0..clip.end()).contains(&time) {
                    markers.push(Marker { time, name: format!("{foot} foot {what}") });
                }
            }
        }
    }
    markers.sort_by(|a, b| a.time.total_cmp(&b.time));
    clip.markers = markers;
    clip
}

/// Keys for every frame of a motion that loops: all joints end exactly as they began, but for the
/// root, which is further on.
fn record(skeleton: &Skeleton, name: &str, frames: usize, stance: impl Fn(f64) -> Stance) -> Clip {
    let times = frame_times(frames);
    let mut clip = Clip::new(name, 0.0, times[frames]).expect("frames increase");
    clip.rate = Some(RATE);
    clip.wrap = Wrap::LoopOffset;
    let solved: Vec<_> = times.iter().map(|&t| solve(skeleton, &stance(t))).collect();
    debug_assert!(
        solved.iter().all(|s| s.stretch.iter().all(|s| *s < 0.9999)),
        "{name}: a foot is out of reach"
    );
    let position = |joint: usize, at: &dyn Fn(usize) -> DVec3| {
        let values = (0..=frames).flat_map(|i| at(i).to_array()).collect();
        let curve = Curve::linear(ValueKind::Vector(3), times.clone(), values).expect("finite");
        let rest = skeleton.joints()[joint].rest.translation.to_array().to_vec();
        let binding = Binding::node(joint, skeleton.joints()[joint].name.clone(), Property::Translation);
        Track::new(binding, TrackData::Curve(curve), rest)
    };
    clip.tracks.push(position(ROOT, &|i| solved[i].root));
    clip.tracks.push(position(HIPS, &|i| solved[i % frames].hips));
    for joint in 0..skeleton.len() {
        let mut values = Vec::with_capacity(4 * (frames + 1));
        let mut last = DQuat::IDENTITY;
        for i in 0..=frames {
            let frame = if joint == ROOT { i } else { i % frames };
            let q = solved[frame].rotations[joint];
            let q = if q.dot(last) < 0.0 { -q } else { q };
            values.extend(q.to_array());
            last = q;
        }
        let curve = Curve::linear(ValueKind::Rotation, times.clone(), values).expect("unit quaternions");
        let binding = Binding::node(joint, skeleton.joints()[joint].name.clone(), Property::Rotation);
        clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0, 0.0, 0.0, 1.0]));
    }
    clip
}

impl Gait {
    /// Seconds of a stride.
    fn period(&self) -> f64 {
        RATE.time_of(self.frames as i64)
    }

    /// The right foot is half a stride behind.
    fn offset(side: usize) -> f64 {
        0.5 * side as f64
    }

    /// Where the root is, and which way it faces.
    fn root(&self, time: f64) -> (DVec3, f64) {
        let heading = self.turn * time;
        if self.turn == 0.0 {
            return (DVec3::new(0.0, 0.0, self.speed * time), heading);
        }
        let radius = self.speed / self.turn;
        (DVec3::new(radius * (1.0 - cos(heading)), 0.0, radius * sin(heading)), heading)
    }

    /// The ground under the heel, and the yaw, of a foot's step number `step`.
    fn plant(&self, side: usize, step: f64) -> (DVec3, f64) {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let (root, heading) = self.root((step - Self::offset(side) + self.over) * self.period());
        let turned = axis_angle(DVec3::Y, heading);
        (root + turned * DVec3::new(sign * self.spread, 0.0, HEEL.z), heading + sign * self.toe_out)
    }

    /// A foot on the ground at `phase` below [`Gait::duty`].
    fn on_ground(&self, (heel, yaw): (DVec3, f64), phase: f64) -> Foot {
        let [flat, lifts] = self.flat;
        let pitch = if phase < flat {
            let left = 1.0 - phase / flat;
            self.pitch[0] * left * left
        } else if phase > lifts {
            let s = (phase - lifts) / (self.duty - lifts);
            self.pitch[1] * 0.5 * s * s * (3.0 - s)
        } else {
            0.0
        };
        let turned = axis_angle(DVec3::Y, yaw);
        let pitched = turned * axis_angle(DVec3::X, pitch);
        // It turns about the heel while it lands and about the ball while it leaves.
        let ankle =
            if pitch < 0.0 { heel - pitched * HEEL } else { heel + turned * (BALL - HEEL) - pitched * BALL };
        Foot { ankle, yaw, pitch, toes: pitch.max(0.0) }
    }

    fn foot(&self, side: usize, time: f64) -> Foot {
        let strides = time / self.period() + Self::offset(side);
        let step = strides.floor();
        let phase = strides - step;
        let here = self.plant(side, step);
        if phase < self.duty {
            return self.on_ground(here, phase);
        }
        // The swing meets place and speed of both ends; it lands with some speed left.
        let there = self.plant(side, step + 1.0);
        let h = 1e-4;
        let (before, from) = (self.on_ground(here, self.duty - h), self.on_ground(here, self.duty));
        let (to, after) = (self.on_ground(there, 0.0), self.on_ground(there, h));
        let length = 1.0 - self.duty;
        let s = (phase - self.duty) / length;
        let rates = length / h;
        let early = s * (1.5 - 0.5 * s);
        let bump = 16.0 * early * early * (1.0 - early) * (1.0 - early);
        let smooth = s * s * (3.0 - 2.0 * s);
        let forward = axis_angle(DVec3::Y, there.1) * DVec3::Z * (self.landing * length * self.period());
        let vector = |get: fn(&Foot) -> DVec3| {
            let (v0, v1) = ((get(&from) - get(&before)) * rates, (get(&after) - get(&to)) * rates + forward);
            DVec3::from_array(std::array::from_fn(|i| hermite(get(&from)[i], v0[i], get(&to)[i], v1[i], s)))
        };
        let pitch = {
            let (v0, v1) = ((from.pitch - before.pitch) * rates, (after.pitch - to.pitch) * rates);
            hermite(from.pitch, v0, to.pitch, v1, s)
        };
        Foot {
            ankle: vector(|f| f.ankle) + DVec3::Y * self.lift * bump,
            yaw: from.yaw + (to.yaw - from.yaw) * smooth,
            pitch,
            toes: pitch.max(0.0) * (1.0 - smooth),
        }
    }

    fn stance(&self, time: f64) -> Stance {
        let phase = time / self.period();
        let wave = |shift: f64| cos(CYCLE * (phase - shift));
        let (root, heading) = self.root(time);
        // The left foot carries around a quarter of the stride, the right around three quarters.
        let bob = -self.bob * cos(2.0 * CYCLE * (phase - self.lowest));
        let bank = 0.12 * self.turn * self.speed / 9.81 * 8.0;
        let hips = DVec3::new(self.sway * wave(0.5 * self.duty) + 0.04 * bank, self.height + bob, 0.0);
        // With the left foot in front the hips are turned to the right (a negative yaw).
        let yaw = -self.hips_yaw * wave(0.02);
        // The side that swings hangs lower.
        let roll = self.hips_roll * wave(0.2);
        let chest = self.chest_yaw * wave(0.02);
        let arms = [0, 1].map(|side| {
            let front = if side == 0 { -wave(0.0) } else { wave(0.0) };
            Arm {
                swing: self.arm_middle + self.arm * front,
                out: 11.0 * DEGREE,
                elbow: self.elbow + self.elbow_more * front,
                shoulder: 3.0 * DEGREE * front,
            }
        });
        let nod = 1.5 * DEGREE * cos(2.0 * CYCLE * (phase - self.lowest));
        Stance {
            root,
            heading,
            hips,
            hips_turn: [yaw, 0.35 * self.lean, roll - bank],
            // The spine makes up for the tilt of the hips from its foot on, so the head sways little.
            spine: [chest - yaw, 0.65 * self.lean, -1.6 * roll],
            // The head keeps still, leans a little and looks into a turn.
            head: [0.25 * self.turn, 0.3 * self.lean + nod, -0.5 * bank],
            arms,
            feet: [self.foot(0, time), self.foot(1, time)],
        }
    }
}

fn hermite(a: f64, leave: f64, b: f64, arrive: f64, s: f64) -> f64 {
    let (s2, s3) = (s * s, s * s * s);
    a * (2.0 * s3 - 3.0 * s2 + 1.0)
        + leave * (s3 - 2.0 * s2 + s)
        + b * (3.0 * s2 - 2.0 * s3)
        + arrive * (s3 - s2)
}

/// Standing: breathing twice, with the weight going over from one foot to the other and back.
fn idle(skeleton: &Skeleton) -> Clip {
    const FRAMES: usize = 360;
    let length = RATE.time_of(FRAMES as i64);
    let mut clip = record(skeleton, "idle", FRAMES, |time| {
        let weight = sin(CYCLE * time / length);
        let breath = sin(2.0 * CYCLE * time / length);
        let arm = |sign: f64| Arm {
            swing: 3.0 * DEGREE + 0.8 * DEGREE * breath,
            out: 12.0 * DEGREE + 0.7 * DEGREE * breath,
            elbow: 14.0 * DEGREE + 1.5 * DEGREE * sign * weight,
            shoulder: 2.0 * DEGREE,
        };
        let foot = |sign: f64| Foot {
            ankle: DVec3::new(sign * 0.1, -HEEL.y, -0.01 * sign),
            yaw: sign * 9.0 * DEGREE,
            pitch: 0.0,
            toes: 0.0,
        };
        Stance {
            root: DVec3::ZERO,
            heading: 0.0,
            hips: DVec3::new(0.028 * weight, 0.955 - 0.004 * weight * weight, -0.01),
            hips_turn: [1.5 * DEGREE * weight, 1.0 * DEGREE, 2.0 * DEGREE * weight],
            spine: [-DEGREE * weight, -DEGREE - 1.2 * DEGREE * breath, -3.0 * DEGREE * weight],
            head: [5.0 * DEGREE * weight, 2.0 * DEGREE, 0.0],
            arms: [arm(1.0), arm(-1.0)],
            feet: [foot(1.0), foot(-1.0)],
        }
    });
    clip.wrap = Wrap::Loop;
    clip
}
