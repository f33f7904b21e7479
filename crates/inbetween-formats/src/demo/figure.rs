//! The figure: 23 joints of a person 1.78 m tall, and the pose that a few meaningful numbers make.
//!
//! It faces +Z, its left is +X, and it rests with arms stretched out to the sides. `Root` lies on
//! the ground and carries the way it goes; everything else moves above it. Legs are solved so that
//! the ankles are where they should be.

use inbetween::glam::{DMat3, DQuat, DVec3};
use inbetween::math::{axis_angle, slerp};
use inbetween::{Joint, NodeKind, Skeleton, Transform};

pub(super) const ROOT: usize = 0;
pub(super) const HIPS: usize = 1;
const SPINE: [usize; 3] = [2, 3, 4];
const NECK: usize = 5;
const HEAD: usize = 6;
/// Clavicle, upper arm, forearm, hand; left, then right.
const ARMS: [[usize; 4]; 2] = [[7, 8, 9, 10], [11, 12, 13, 14]];
/// Thigh, shin, foot, toes; left, then right.
pub(super) const LEGS: [[usize; 4]; 2] = [[15, 16, 17, 18], [19, 20, 21, 22]];

const THIGH_M: f64 = 0.43;
const SHIN_M: f64 = 0.42;

/// From the ankle to the ground below the heel, and to the ground below the ball of the foot.
pub(super) const HEEL: DVec3 = DVec3::new(0.0, -0.08, -0.05);
pub(super) const BALL: DVec3 = DVec3::new(0.0, -0.08, 0.13);

/// The skeleton at rest.
pub fn figure() -> Skeleton {
    let mut joints: Vec<Joint> = Vec::new();
    let mut add = |name: &str, parent: Option<usize>, x: f64, y: f64, z: f64| {
        let rest = Transform { translation: DVec3::new(x, y, z), ..Transform::IDENTITY };
        let mut joint = Joint::new(name, parent, rest);
        joint.kind = NodeKind::Joint;
        joints.push(joint);
        joints.len() - 1
    };
    let root = add("Root", None, 0.0, 0.0, 0.0);
    let hips = add("Hips", Some(root), 0.0, 0.97, 0.0);
    let spine = add("Spine", Some(hips), 0.0, 0.09, -0.01);
    let spine1 = add("Spine1", Some(spine), 0.0, 0.12, 0.0);
    let chest = add("Chest", Some(spine1), 0.0, 0.12, 0.0);
    let neck = add("Neck", Some(chest), 0.0, 0.2, 0.01);
    let head = add("Head", Some(neck), 0.0, 0.09, 0.015);
    let mut tips = vec![(head, DVec3::new(0.0, 0.19, 0.0))];
    for (side, sign) in [("Left", 1.0), ("Right", -1.0)] {
        let clavicle = add(&format!("{side}Clavicle"), Some(chest), sign * 0.03, 0.14, 0.01);
        let upper = add(&format!("{side}UpperArm"), Some(clavicle), sign * 0.15, 0.0, -0.01);
        let fore = add(&format!("{side}Forearm"), Some(upper), sign * 0.28, 0.0, 0.0);
        let hand = add(&format!("{side}Hand"), Some(fore), sign * 0.25, 0.0, 0.0);
        tips.push((hand, DVec3::new(sign * 0.17, 0.0, 0.0)));
    }
    for (side, sign) in [("Left", 1.0), ("Right", -1.0)] {
        let thigh = add(&format!("{side}Thigh"), Some(hips), sign * 0.09, -0.04, 0.0);
        let shin = add(&format!("{side}Shin"), Some(thigh), 0.0, -THIGH_M, 0.0);
        let foot = add(&format!("{side}Foot"), Some(shin), 0.0, -SHIN_M, 0.0);
        let toes = add(&format!("{side}Toes"), Some(foot), BALL.x, BALL.y + 0.015, BALL.z);
        tips.push((toes, DVec3::new(0.0, -0.007, 0.07)));
    }
    for (joint, tip) in tips {
        joints[joint].tips.push(tip);
    }
    Skeleton::new(joints).expect("parents come first")
}

/// A foot: where its ankle is, and how it is turned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foot {
    /// Ankle, metres, in the world.
    pub(super) ankle: DVec3,
    /// Which way the toes point, radians about +Y, in the world.
    pub(super) yaw: f64,
    /// Radians; positive with the heel up.
    pub(super) pitch: f64,
    /// How far the toes are bent up, radians.
    pub(super) toes: f64,
}

/// One arm, in radians.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    /// Forward from hanging down.
    pub(super) swing: f64,
    /// Away from the body.
    pub(super) out: f64,
    /// Bend of the elbow.
    pub(super) elbow: f64,
    /// The shoulder, forward.
    pub(super) shoulder: f64,
}

/// A pose of the figure in numbers that mean something. Angles in radians: yaw to the left, pitch
/// forward, roll to the right.
#[derive(Clone, Debug)]
pub(super) struct Stance {
    /// Where the root is, and which way it faces.
    pub(super) root: DVec3,
    pub(super) heading: f64,
    /// Hips above the root, and their yaw, pitch, roll.
    pub(super) hips: DVec3,
    pub(super) hips_turn: [f64; 3],
    /// Yaw, pitch, roll of the chest against the hips, shared by the three joints of the spine.
    pub(super) spine: [f64; 3],
    /// Yaw, pitch, roll of the head against the root.
    pub(super) head: [f64; 3],
    pub(super) arms: [Arm; 2],
    pub(super) feet: [Foot; 2],
}

/// A stance as joints: where root and hips are, and every joint's rotation.
pub(super) struct Solved {
    pub(super) root: DVec3,
    pub(super) hips: DVec3,
    pub(super) rotations: Vec<DQuat>,
    /// How far each leg is stretched; 1 is straight and above 1 the ankle is out of reach.
    pub(super) stretch: [f64; 2],
}

fn turn([yaw, pitch, roll]: [f64; 3]) -> DQuat {
    axis_angle(DVec3::Y, yaw) * axis_angle(DVec3::X, pitch) * axis_angle(DVec3::Z, -roll)
}

/// The joints' rotations for a stance.
pub(super) fn solve(skeleton: &Skeleton, stance: &Stance) -> Solved {
    let mut local = vec![DQuat::IDENTITY; skeleton.len()];
    let heading = axis_angle(DVec3::Y, stance.heading);
    local[ROOT] = heading;
    let hips = turn(stance.hips_turn);
    local[HIPS] = hips;
    let third = turn(stance.spine.map(|a| a / 3.0));
    let mut chest = hips;
    for joint in SPINE {
        local[joint] = third;
        chest *= third;
    }
    // The head looks where it should; neck and head share what that takes.
    let head = turn(stance.head);
    let middle = slerp(chest, head, 0.5);
    local[NECK] = chest.inverse() * middle;
    local[HEAD] = middle.inverse() * head;
    for (side, arm) in stance.arms.iter().enumerate() {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let [clavicle, upper, fore, hand] = ARMS[side];
        local[clavicle] = axis_angle(DVec3::Y, -sign * arm.shoulder);
        let down = axis_angle(DVec3::Z, -sign * (std::f64::consts::FRAC_PI_2 - arm.out));
        local[upper] = axis_angle(DVec3::X, -arm.swing) * down;
        local[fore] = axis_angle(DVec3::Y, -sign * arm.elbow);
        local[hand] = axis_angle(DVec3::Y, -sign * 0.25 * arm.elbow);
    }
    let mut stretch = [0.0; 2];
    for (side, foot) in stance.feet.iter().enumerate() {
        let [thigh, shin, foot_joint, toes] = LEGS[side];
        let ankle = heading.inverse() * (foot.ankle - stance.root);
        let yaw = foot.yaw - stance.heading;
        let hip = stance.hips + hips * skeleton.joints()[thigh].rest.translation;
        // The knee points between where the hips and where the toes point.
        let knee_yaw = 0.5 * (yaw + stance.hips_turn[0]);
        let (thigh_turn, shin_turn, s) = two_bones(hip, ankle, knee_yaw);
        stretch[side] = s;
        let foot_turn = axis_angle(DVec3::Y, yaw) * axis_angle(DVec3::X, foot.pitch);
        local[thigh] = hips.inverse() * thigh_turn;
        local[shin] = thigh_turn.inverse() * shin_turn;
        local[foot_joint] = shin_turn.inverse() * foot_turn;
        local[toes] = axis_angle(DVec3::X, -foot.toes);
    }
    let rotations = local.into_iter().map(DQuat::normalize).collect();
    Solved { root: stance.root, hips: stance.hips, rotations, stretch }
}

/// Thigh and shin, turned so that they reach from the hip to the ankle with the knee in front; by
/// the law of cosines. The third number is the distance over the leg's length.
fn two_bones(hip: DVec3, ankle: DVec3, knee_yaw: f64) -> (DQuat, DQuat, f64) {
    let between = ankle - hip;
    let stretch = between.length() / (THIGH_M + SHIN_M);
    let distance = between.length().clamp(0.05, (THIGH_M + SHIN_M) * 0.9999);
    let along = between.normalize();
    let left = axis_angle(DVec3::Y, knee_yaw) * DVec3::X;
    let side = (left - along * left.dot(along)).normalize();
    let front = side.cross(-along);
    let cos = (THIGH_M * THIGH_M + distance * distance - SHIN_M * SHIN_M) / (2.0 * THIGH_M * distance);
    let sin = (1.0 - cos * cos).max(0.0).sqrt();
    let thigh = along * cos + front * sin;
    let shin = (along * distance - thigh * THIGH_M).normalize();
    let bone = |down: DVec3| DQuat::from_mat3(&DMat3::from_cols(side, -down, side.cross(-down)));
    (bone(thigh), bone(shin), stretch)
}
