//! What a camera path carries at each key: its channels and their meaning.
//!
//! The idea: a camera is a handful of numbers. Those with a meaning (place, angles,
//! field of view) have a [`Role`], so that a pose can be made of them; any other
//! number (focus distance, exposure) rides along under its name.

use crate::math;
use crate::spline::{quat_exp, quat_multiply, quat_rotate};

/// What a channel means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Place along x, metres.
    X,
    /// Place along y (up), metres.
    Y,
    /// Place along z, metres.
    Z,
    /// Turn about the up axis; 0 looks along −z, a quarter turn along −x.
    Yaw,
    /// Tilt; positive looks up.
    Pitch,
    /// Turn about the line of sight; positive lifts the camera's right side.
    Roll,
    /// Vertical field of view.
    Fov,
    /// Place looked at, along x, metres.
    TargetX,
    /// Place looked at, along y, metres.
    TargetY,
    /// Place looked at, along z, metres.
    TargetZ,
    /// Anything else, known by its name.
    Other,
}

impl Role {
    /// The roles that have a name of their own, with it.
    pub const NAMED: [(Role, &'static str); 10] = [
        (Role::X, "x"),
        (Role::Y, "y"),
        (Role::Z, "z"),
        (Role::Yaw, "yaw"),
        (Role::Pitch, "pitch"),
        (Role::Roll, "roll"),
        (Role::Fov, "fov"),
        (Role::TargetX, "target.x"),
        (Role::TargetY, "target.y"),
        (Role::TargetZ, "target.z"),
    ];

    /// The role of a channel name; [`Role::Other`] for names without one.
    pub fn of(name: &str) -> Self {
        Self::NAMED.iter().find(|(_, n)| *n == name).map_or(Self::Other, |(role, _)| *role)
    }

    /// Whether it is part of the camera's place.
    pub fn is_place(self) -> bool {
        matches!(self, Self::X | Self::Y | Self::Z)
    }

    /// Whether it is an angle that comes round again after a full turn.
    pub fn turns(self) -> bool {
        matches!(self, Self::Yaw | Self::Pitch | Self::Roll)
    }
}

/// One channel of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name, unique in the path.
    pub name: String,
    /// Its meaning.
    pub role: Role,
    /// For angles that come round: how much a full turn is (2π for radians, 360 for
    /// degrees). `None` for everything else.
    pub turn: Option<f64>,
}

impl Channel {
    /// A channel in the house's units (metres, radians), its meaning taken from its
    /// name.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let role = Role::of(&name);
        Self { turn: role.turns().then_some(std::f64::consts::TAU), name, role }
    }

    /// The same channel as an angle that comes round after `turn`.
    #[must_use]
    pub fn turning(mut self, turn: f64) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The same channel as a number that does not come round.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.turn = None;
        self
    }

    /// What one unit of the channel is in radians, for angles.
    pub fn radians_per_unit(&self) -> f64 {
        self.turn.map_or(1.0, |turn| std::f64::consts::TAU / turn)
    }
}

/// Where a camera is, where it looks and how wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CameraPose {
    /// Metres.
    pub position: [f64; 3],
    /// Unit quaternion x, y, z, w. A camera looks along its −z, its up is +y.
    pub rotation: [f64; 4],
    /// Vertical field of view in radians, if the path has one.
    pub fov: Option<f64>,
}

/// Yaw, pitch and roll in radians; see [`Role`] for their senses.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct CameraAngles {
    /// About the up axis.
    pub yaw: f64,
    /// Up and down.
    pub pitch: f64,
    /// About the line of sight.
    pub roll: f64,
}

impl CameraAngles {
    /// The rotation: yaw about +y, then pitch about the camera's +x, then roll about
    /// its +z.
    pub fn rotation(self) -> [f64; 4] {
        let yaw = quat_exp([0.0, 0.5 * self.yaw, 0.0]);
        let pitch = quat_exp([0.5 * self.pitch, 0.0, 0.0]);
        let roll = quat_exp([0.0, 0.0, 0.5 * self.roll]);
        quat_multiply(quat_multiply(yaw, pitch), roll)
    }

    /// The angles of a unit quaternion, pitch within a quarter turn up and down.
    /// Looking straight up or down, roll is 0 and yaw holds all the turning.
    pub fn of(rotation: [f64; 4]) -> Self {
        let back = quat_rotate(rotation, [0.0, 0.0, 1.0]);
        let right = quat_rotate(rotation, [1.0, 0.0, 0.0]);
        let up = quat_rotate(rotation, [0.0, 1.0, 0.0]);
        let level = libm::hypot(back[0], back[2]);
        let pitch = math::atan2(-back[1], level);
        if level < 1e-9 {
            return Self { yaw: math::atan2(-right[2], right[0]), pitch, roll: 0.0 };
        }
        Self { yaw: math::atan2(back[0], back[2]), pitch, roll: math::atan2(right[1], up[1]) }
    }

    /// The angles of a camera at `eye` that looks at `target`, level (roll 0). A
    /// target at the eye itself keeps `fallback`; straight up or down keeps its yaw.
    pub fn looking(eye: [f64; 3], target: [f64; 3], fallback: Self) -> Self {
        let to = [target[0] - eye[0], target[1] - eye[1], target[2] - eye[2]];
        let level = libm::hypot(to[0], to[2]);
        let distance = libm::hypot(level, to[1]);
        // Nearer than this the direction would be made of rounding errors.
        if distance.is_nan() || distance <= 1e-12 {
            return fallback;
        }
        let yaw = if level > 1e-9 * distance { math::atan2(-to[0], -to[2]) } else { fallback.yaw };
        Self { yaw, pitch: math::atan2(to[1], level), roll: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_and_rotation_undo_each_other() {
        for (yaw, pitch, roll) in [(0.3, 0.2, -0.1), (-2.9, -1.4, 3.0), (1.5, 1.5, 0.0), (0.0, 0.0, 0.0)] {
            let angles = CameraAngles { yaw, pitch, roll };
            let back = CameraAngles::of(angles.rotation());
            for (a, b) in [(back.yaw, yaw), (back.pitch, pitch), (back.roll, roll)] {
                assert!((a - b).abs() < 1e-12, "{angles:?} came back as {back:?}");
            }
        }
    }

    #[test]
    fn a_camera_looks_where_its_angles_say() {
        let left = CameraAngles { yaw: std::f64::consts::FRAC_PI_2, ..Default::default() };
        let sight = quat_rotate(left.rotation(), [0.0, 0.0, -1.0]);
        assert!((sight[0] + 1.0).abs() < 1e-15, "{sight:?}");
        let up = CameraAngles { pitch: 0.5, ..Default::default() };
        assert!(quat_rotate(up.rotation(), [0.0, 0.0, -1.0])[1] > 0.0);
        let rolled = CameraAngles { roll: 0.5, ..Default::default() };
        assert!(quat_rotate(rolled.rotation(), [1.0, 0.0, 0.0])[1] > 0.0);
    }

    #[test]
    fn looking_at_a_place_points_the_line_of_sight_there_and_stays_level() {
        let (eye, target) = ([1.0, 2.0, 3.0], [-4.0, 5.0, 2.5]);
        let angles = CameraAngles::looking(eye, target, CameraAngles::default());
        let sight = quat_rotate(angles.rotation(), [0.0, 0.0, -1.0]);
        let to = [-5.0, 3.0, -0.5];
        let length = f64::sqrt(25.0 + 9.0 + 0.25);
        for k in 0..3 {
            assert!((sight[k] - to[k] / length).abs() < 1e-14);
        }
        assert!(quat_rotate(angles.rotation(), [1.0, 0.0, 0.0])[1].abs() < 1e-15);
    }

    #[test]
    fn looking_straight_down_or_at_itself_keeps_the_yaw() {
        let before = CameraAngles { yaw: 0.7, pitch: 0.1, roll: 0.0 };
        let down = CameraAngles::looking([0.0; 3], [0.0, -3.0, 0.0], before);
        assert_eq!(down.yaw, 0.7);
        assert!((down.pitch + std::f64::consts::FRAC_PI_2).abs() < 1e-15);
        assert_eq!(CameraAngles::looking([1.0; 3], [1.0; 3], before), before);
    }
}
