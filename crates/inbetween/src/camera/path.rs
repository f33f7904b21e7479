//! A camera path: keys, how they are to be flown, and the curves that do it.
//!
//! The idea: a path is its keys and its [`Smoothing`]; everything else follows.
//! Whenever either changes, all curves are solved again in one pass, linear in the
//! number of keys; after that a frame costs one look-up and three multiply-adds a
//! channel, smoothed or not. Smoothing is a mix of two sets of velocities at the
//! keys, the replay curve's and the natural spline's, so every key is met exactly
//! whatever the amount, and turning it off gives back exactly what was there.
//!
//! A path falls into runs. A run ends where the camera mode changes: there the
//! picture holds and cuts over at the next key, and curves on either side know
//! nothing of each other. A key may also say that the picture holds. Straight spans end a run for the camera's place only;
//! the curves beside them leave and arrive with the straight span's velocity.
//!
//! It stops at curves: poses out of them are [`super::pose`], what can be said
//! about them is [`super::report`].

use std::sync::Arc;

use super::channel::{Channel, Role};
use super::target::{LookAt, MovingTarget};
use crate::spline::{
    Brake, End, Extrapolation, Keys, RotationSpline, Scratch, Spline, SplineError, TangentRule, check,
    limit_overshoot, mix, nearest_turn, periodic, quat_conjugate, quat_multiply, replay, unwrap_angles,
    with_ends,
};
use thiserror::Error;

/// How far a key may lie off a rotation curve and still count as lying on it,
/// radians: a key that was put there differs by the rounding of its numbers alone.
const ON_CURVE_RAD: f64 = 1e-12;

/// The mode that is smoothed unless told otherwise.
pub const FREE: &str = "free";

/// Why a camera path cannot be made or changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CameraError {
    /// The keys cannot carry a curve.
    #[error(transparent)]
    Keys(#[from] SplineError),
    /// A channel's numbers are not fit.
    #[error("channel {channel}: {error}")]
    Channel {
        /// Its name.
        channel: String,
        /// What is wrong.
        error: SplineError,
    },
    /// Two channels of one name, or none at all.
    #[error("{0}")]
    Channels(String),
    /// A list does not have one entry for each key.
    #[error("there are {keys} keys but {found} {what}; give each key its own")]
    Count {
        /// Which list.
        what: &'static str,
        /// Entries found.
        found: usize,
        /// Keys.
        keys: usize,
    },
    /// A setting is outside its range.
    #[error("{what} is {value}; it must be {expected}")]
    Setting {
        /// Which.
        what: String,
        /// What was found.
        value: f64,
        /// What is allowed.
        expected: &'static str,
    },
    /// There is no such key.
    #[error("there is no key {index}; the path has {keys}, numbered from 0")]
    NoKey {
        /// The number asked for.
        index: usize,
        /// Keys of the path.
        keys: usize,
    },
    /// There is no such channel.
    #[error("the path has no channel {name}; it has {}", .known.join(", "))]
    NoChannel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The last key cannot be removed.
    #[error("a path needs at least one key, so the last one cannot be removed")]
    LastKey,
}

/// What happens to angles whose keys are more than half a turn apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unwrap {
    /// Each key is reached the short way round.
    #[default]
    Shortest,
    /// Turns are flown as they are written.
    AsAuthored,
}

/// What happens where a curve would run past its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overshoot {
    /// The smoothest curve may swing past its keys; the report says by how much.
    #[default]
    Allow,
    /// No span leaves the range of its two keys, in any channel; what is held is
    /// held. Acceleration then jumps where a curve was held back.
    Prevent,
}

/// How a path is smoothed.
#[derive(Clone, Debug, PartialEq)]
pub struct Smoothing {
    /// Whether it is on. Off (the default), every mode is flown on the replay curve.
    pub on: bool,
    /// From 0, the replay curve, to 1 (the default), the smoothest curve that still
    /// meets every key.
    pub amount: f64,
    /// Amounts for single channels, by name; `rotation` for rotations given as
    /// quaternions.
    pub amounts: Vec<(String, f64)>,
    /// The camera modes it applies to; [`FREE`] by default.
    pub modes: Vec<String>,
    /// Whether the replay curve brakes where a channel slows down or turns back; it
    /// does by default.
    pub brake: bool,
    /// How angles go from key to key.
    pub unwrap: Unwrap,
    /// Whether curves may run past their keys.
    pub overshoot: Overshoot,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self {
            on: false,
            amount: 1.0,
            amounts: Vec::new(),
            modes: vec![FREE.to_owned()],
            brake: true,
            unwrap: Unwrap::default(),
            overshoot: Overshoot::default(),
        }
    }
}

impl Smoothing {
    /// Smoothing switched on with this amount for all channels.
    pub fn amount(amount: f64) -> Self {
        Self { on: true, amount, ..Self::default() }
    }

    /// The amount that applies to a channel of a mode: 0 where it is off or the mode
    /// is not among those smoothed.
    pub fn amount_of(&self, channel: &str, mode: &str) -> f64 {
        if !self.applies_to(mode) {
            return 0.0;
        }
        self.amounts.iter().find(|(name, _)| name == channel).map_or(self.amount, |(_, amount)| *amount)
    }

    /// Whether keys of this mode are smoothed.
    pub fn applies_to(&self, mode: &str) -> bool {
        self.on && self.modes.iter().any(|m| m == mode)
    }

    fn check(&self) -> Result<(), CameraError> {
        let all =
            self.amounts.iter().map(|(name, amount)| (format!("the smoothing amount of {name}"), *amount));
        for (what, value) in all.chain([("the smoothing amount".to_owned(), self.amount)]) {
            if !(0.0..=1.0).contains(&value) {
                let expected = "from 0 (the replay curve) to 1 (the smoothest curve through the keys)";
                return Err(CameraError::Setting { what, value, expected });
            }
        }
        Ok(())
    }
}

/// One key of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct CameraKey {
    /// Seconds.
    pub time: f64,
    /// Camera mode of the span that begins here.
    pub mode: Arc<str>,
    /// One number for each channel of the path.
    pub values: Vec<f64>,
    /// The rotation, for paths that keep it as a quaternion.
    pub rotation: Option<[f64; 4]>,
    /// Whether the camera's place goes straight from here to the next key.
    pub straight: bool,
    /// Whether the picture holds from here until the next key, as it does where the
    /// mode changes; the curves on either side know nothing of each other.
    pub hold: bool,
    /// Whether the key was put where the curve is by [`CameraPath::insert_at`]; its
    /// angles are then flown as they are. As long as its rotation lies on the curve
    /// through the other keys, that curve is kept as it is; once it does not, the
    /// curve goes through this key as through any other.
    pub on_curve: bool,
}

impl CameraKey {
    /// A key of the free camera.
    pub fn new(time: f64, values: Vec<f64>) -> Self {
        Self {
            time,
            mode: FREE.into(),
            values,
            rotation: None,
            straight: false,
            hold: false,
            on_curve: false,
        }
    }
}

/// Keys a camera flies through, with the curves that take it there. See the
/// [module](super).
#[derive(Clone, Debug)]
pub struct CameraPath {
    pub(super) channels: Vec<Channel>,
    pub(super) times: Vec<f64>,
    /// Values as authored, a row for each key.
    authored: Vec<f64>,
    /// The same with angles unwrapped as the smoothing says.
    pub(super) values: Vec<f64>,
    pub(super) rotations: Option<Vec<[f64; 4]>>,
    pub(super) modes: Vec<Arc<str>>,
    pub(super) straight: Vec<bool>,
    hold: Vec<bool>,
    on_curve: Vec<bool>,
    pub(super) closing_gap: Option<f64>,
    pub(super) smoothing: Smoothing,
    pub(super) subject: Option<MovingTarget>,
    pub(super) look_at: Option<LookAt>,
    pub(super) level: bool,
    pub(super) solved: Solved,
    scratch: Scratch,
}

/// The curves of a path.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub curve: Spline,
    /// The runs of rotation keys, each with the time it begins.
    pub rotations: Vec<(f64, RotationSpline)>,
    /// Velocities per second at both ends of each span, a row of channels each.
    pub leave: Vec<f64>,
    pub arrive: Vec<f64>,
}

impl CameraPath {
    /// A path with these channels through these keys. Smoothing is off, the path is
    /// open, nothing is followed.
    ///
    /// # Errors
    /// Names the key or channel that does not fit.
    pub fn new(channels: Vec<Channel>, keys: Vec<CameraKey>) -> Result<Self, CameraError> {
        for (i, channel) in channels.iter().enumerate() {
            if channels[..i].iter().any(|c| c.name == channel.name) {
                return Err(CameraError::Channels(format!(
                    "two channels are called {}; rename or remove one",
                    channel.name
                )));
            }
            if let Some(turn) = channel.turn
                && !(turn.is_finite() && turn > 0.0)
            {
                return Err(CameraError::Setting {
                    what: format!("a full turn of channel {}", channel.name),
                    value: turn,
                    expected: "positive and finite",
                });
            }
        }
        let with_rotation = keys.iter().filter(|k| k.rotation.is_some()).count();
        if channels.is_empty() && with_rotation == 0 && !keys.is_empty() {
            return Err(CameraError::Channels(
                "the path has no channels, so there is nothing to fly".to_owned(),
            ));
        }
        if with_rotation != 0 && with_rotation != keys.len() {
            return Err(CameraError::Count { what: "rotations", found: with_rotation, keys: keys.len() });
        }
        if let Some(i) = keys.iter().position(|key| key.values.len() != channels.len()) {
            return Err(CameraError::Channels(format!(
                "key {i} of {} has {} values, but the path has {} channels; give each key a value a channel",
                keys.len(),
                keys[i].values.len(),
                channels.len()
            )));
        }
        let times: Vec<f64> = keys.iter().map(|k| k.time).collect();
        let mut path = Self {
            authored: keys.iter().flat_map(|k| k.values.iter().copied()).collect(),
            values: Vec::new(),
            rotations: (with_rotation > 0).then(|| keys.iter().filter_map(|k| k.rotation).collect()),
            modes: keys.iter().map(|k| k.mode.clone()).collect(),
            straight: keys.iter().map(|k| k.straight).collect(),
            hold: keys.iter().map(|k| k.hold).collect(),
            on_curve: keys.iter().map(|k| k.on_curve).collect(),
            channels,
            times,
            closing_gap: None,
            smoothing: Smoothing::default(),
            subject: None,
            look_at: None,
            level: false,
            solved: Solved {
                curve: Spline::new(&[0.0], &[0.0], 1, &TangentRule::Flat)?,
                rotations: Vec::new(),
                leave: Vec::new(),
                arrive: Vec::new(),
            },
            scratch: Scratch::default(),
        };
        path.unwrap();
        path.solve()?;
        Ok(path)
    }

    /// The channels, in the order of each key's values.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Number of the channel with this name.
    ///
    /// # Errors
    /// [`CameraError::NoChannel`], naming those there are.
    pub fn channel(&self, name: &str) -> Result<usize, CameraError> {
        self.channels.iter().position(|c| c.name == name).ok_or_else(|| CameraError::NoChannel {
            name: name.to_owned(),
            known: self.channels.iter().map(|c| c.name.clone()).collect(),
        })
    }

    /// Number of the channel with this role, if there is one.
    pub fn role(&self, role: Role) -> Option<usize> {
        self.channels.iter().position(|c| c.role == role)
    }

    /// Number of keys, at least 1.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Never: a path has at least one key.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Key times in seconds.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// A key as it was authored.
    ///
    /// # Errors
    /// [`CameraError::NoKey`].
    pub fn key(&self, index: usize) -> Result<CameraKey, CameraError> {
        self.check_index(index)?;
        let w = self.channels.len();
        Ok(CameraKey {
            time: self.times[index],
            mode: self.modes[index].clone(),
            values: self.authored[index * w..(index + 1) * w].to_vec(),
            rotation: self.rotations.as_ref().map(|r| r[index]),
            straight: self.straight[index],
            hold: self.hold[index],
            on_curve: self.on_curve[index],
        })
    }

    /// All keys as they were authored.
    pub fn keys(&self) -> Vec<CameraKey> {
        (0..self.len()).map(|i| self.key(i).expect("an index of the path")).collect()
    }

    /// The value of channel `k` at key `index` as it is flown, angles unwrapped.
    pub fn flown_value(&self, index: usize, k: usize) -> f64 {
        self.values[index * self.channels.len() + k]
    }

    /// How the path is smoothed.
    pub fn smoothing(&self) -> &Smoothing {
        &self.smoothing
    }

    /// First key time, seconds.
    pub fn start(&self) -> f64 {
        self.times[0]
    }

    /// Last key time, or, for a closed path, the time it is back at its first key.
    pub fn end(&self) -> f64 {
        self.times[self.len() - 1] + self.closing_gap.unwrap_or(0.0)
    }

    /// Whether keys keep their rotation as a quaternion.
    pub fn has_rotations(&self) -> bool {
        self.rotations.is_some()
    }

    /// The gap back to the first key, for closed paths.
    pub fn closing_gap(&self) -> Option<f64> {
        self.closing_gap
    }

    /// What the camera looks at, if anything.
    pub fn look_at(&self) -> Option<&LookAt> {
        self.look_at.as_ref()
    }

    /// What the keys are relative to, if anything.
    pub fn subject(&self) -> Option<&MovingTarget> {
        self.subject.as_ref()
    }

    /// Whether roll is taken out.
    pub fn is_level(&self) -> bool {
        self.level
    }

    /// The curves of all channels, in the order of the channels.
    pub fn curve(&self) -> &Spline {
        &self.solved.curve
    }

    /// Velocities per second of channel `k` at both ends of span `i`: (leaving,
    /// arriving).
    pub fn span_velocities(&self, i: usize, k: usize) -> (f64, f64) {
        let at = i * self.channels.len() + k;
        (self.solved.leave[at], self.solved.arrive[at])
    }

    /// Number of spans: one less than keys, or as many for a closed path.
    pub fn spans(&self) -> usize {
        self.len() - 1 + usize::from(self.closing_gap.is_some())
    }

    /// What span `i` is.
    pub fn span_kind(&self, i: usize) -> PathSpan {
        if self.hold[i] || self.modes[i] != self.modes[(i + 1) % self.len()] {
            PathSpan::Cut
        } else if self.straight[i] {
            PathSpan::Straight
        } else if self.smoothing.applies_to(&self.modes[i]) {
            PathSpan::Smoothed
        } else {
            PathSpan::Replay
        }
    }

    /// Smooths the path otherwise. Reversible: the keys are not touched.
    ///
    /// # Errors
    /// [`CameraError::Setting`] for an amount outside 0..=1; the path is unchanged.
    pub fn set_smoothing(&mut self, smoothing: Smoothing) -> Result<(), CameraError> {
        smoothing.check()?;
        self.changed(|path| {
            let again = smoothing.unwrap != path.smoothing.unwrap;
            path.smoothing = smoothing;
            if again {
                path.unwrap();
            }
        })
    }

    /// Closes the path: `gap` seconds after its last key it is back at its first,
    /// and runs on without a bump. `None` opens it again.
    ///
    /// # Errors
    /// [`CameraError::Setting`] for a gap that is not positive and finite.
    pub fn close(&mut self, gap: Option<f64>) -> Result<(), CameraError> {
        if let Some(value) = gap
            && !(value.is_finite()
                && value > 0.0
                && self.times[self.len() - 1] + value > self.times[self.len() - 1])
        {
            let what = "the time from the last key back to the first".to_owned();
            return Err(CameraError::Setting { what, value, expected: "a positive number of seconds" });
        }
        self.changed(|path| path.closing_gap = gap)
    }

    /// Makes the keys relative to a subject that moves, or (`None`) to the world.
    /// The keys' numbers stay as they are.
    pub fn follow(&mut self, subject: Option<MovingTarget>) {
        self.subject = subject;
    }

    /// Makes the camera look at something, whatever its keys' angles say; their
    /// roll is kept. `None` gives the keys their say again.
    ///
    /// # Errors
    /// [`CameraError::NoChannel`] where the target's channels are missing.
    pub fn set_look_at(&mut self, look_at: Option<LookAt>) -> Result<(), CameraError> {
        if look_at == Some(LookAt::Channels) {
            for name in ["target.x", "target.y", "target.z"] {
                self.channel(name)?;
            }
        }
        self.look_at = look_at;
        Ok(())
    }

    /// Takes roll out of every pose.
    pub fn set_level(&mut self, level: bool) {
        self.level = level;
    }

    /// Replaces a key; its time must stay between its neighbours.
    ///
    /// # Errors
    /// What is wrong with the key; the path is unchanged.
    pub fn set_key(&mut self, index: usize, mut key: CameraKey) -> Result<(), CameraError> {
        self.check_key(&key)?;
        // What is moved is no longer where the curve put it.
        key.on_curve &= key == self.key(index)?;
        self.changed(|path| {
            path.put(index, key);
            path.rewrap(index);
        })
    }

    /// Adds a key where its time belongs and returns its number.
    ///
    /// # Errors
    /// What is wrong with the key, [`SplineError::DuplicateTime`] if there is one at
    /// its time; the path is unchanged.
    pub fn insert(&mut self, mut key: CameraKey) -> Result<usize, CameraError> {
        key.on_curve = false;
        let index = self.make_room(&key)?;
        self.changed(|path| {
            path.open(index);
            path.put(index, key);
            path.rewrap(index);
        })?;
        Ok(index)
    }

    /// Adds a key at the playhead with the values the path has there, and returns
    /// its number. The picture does not jump, and where the path is smoothed in full
    /// nothing changes at all. On a closed path the time back to the first key stays
    /// what it was; where the picture holds it goes on holding.
    ///
    /// # Errors
    /// As [`CameraPath::insert`]; [`CameraError::Setting`] for a time outside a closed
    /// path.
    pub fn insert_at(&mut self, time: f64) -> Result<usize, CameraError> {
        if self.closing_gap.is_some() && !(time >= self.start() && time < self.end()) {
            let what = "the time of a new key on a closed path".to_owned();
            return Err(CameraError::Setting { what, value: time, expected: "within the path" });
        }
        let span = self.times.partition_point(|&t| t <= time).saturating_sub(1);
        let inside = span < self.spans() && time > self.times[span];
        let cut = inside && self.span_kind(span) == PathSpan::Cut;
        let mut values = vec![0.0; self.channels.len()];
        if !values.is_empty() {
            self.solved.curve.sample(time, crate::spline::Derivative::Value, &mut values);
        }
        let rotation = self.rotations.is_some().then(|| self.own_rotation(time));
        let key = CameraKey {
            time,
            mode: self.modes[span].clone(),
            values,
            straight: self.straight[span],
            hold: inside && self.hold[span],
            on_curve: inside && !cut,
            rotation,
        };
        let index = self.make_room(&key)?;
        self.changed(|path| {
            let end = path.end();
            path.open(index);
            path.put(index, key);
            if cut {
                path.hold[span] = true;
            }
            if inside && index == path.len() - 1 {
                // Split off the way back to the first key.
                path.closing_gap = path.closing_gap.map(|_| end - time);
            }
        })?;
        Ok(index)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// [`CameraError::NoKey`], [`CameraError::LastKey`].
    pub fn remove(&mut self, index: usize) -> Result<CameraKey, CameraError> {
        let key = self.key(index)?;
        if self.len() == 1 {
            return Err(CameraError::LastKey);
        }
        self.changed(|path| {
            let rows = index * path.channels.len()..(index + 1) * path.channels.len();
            path.times.remove(index);
            path.authored.drain(rows.clone());
            path.values.drain(rows);
            path.modes.remove(index);
            path.straight.remove(index);
            path.hold.remove(index);
            path.on_curve.remove(index);
            if let Some(rotations) = &mut path.rotations {
                rotations.remove(index);
            }
            if let Some(next) = (index..path.len()).find(|&i| index > 0 && !path.on_curve[i]) {
                path.rewrap(next);
            }
        })?;
        Ok(key)
    }

    /// Changes the path and solves it; gives the old path back where that fails.
    fn changed(&mut self, change: impl FnOnce(&mut Self)) -> Result<(), CameraError> {
        let before = self.clone();
        change(self);
        self.solve().inspect_err(|_| *self = before)
    }

    fn check_index(&self, index: usize) -> Result<(), CameraError> {
        if index < self.len() { Ok(()) } else { Err(CameraError::NoKey { index, keys: self.len() }) }
    }

    fn check_key(&self, key: &CameraKey) -> Result<(), CameraError> {
        if key.values.len() != self.channels.len() {
            let (width, values) = (self.channels.len(), key.values.len());
            return Err(SplineError::Shape { times: 1, width, values }.into());
        }
        if key.rotation.is_some() != self.rotations.is_some() {
            let found = usize::from(key.rotation.is_some());
            return Err(CameraError::Count { what: "rotations", found, keys: 1 });
        }
        Ok(())
    }

    fn make_room(&self, key: &CameraKey) -> Result<usize, CameraError> {
        self.check_key(key)?;
        if !key.time.is_finite() {
            let index = self.len();
            return Err(SplineError::NonFinite { index, what: "time", value: key.time }.into());
        }
        let index = self.times.partition_point(|&t| t < key.time);
        if self.times.get(index) == Some(&key.time) {
            return Err(SplineError::DuplicateTime { index: index + 1, time: key.time }.into());
        }
        Ok(index)
    }

    /// Room for a key at `index`.
    fn open(&mut self, index: usize) {
        let w = self.channels.len();
        self.times.insert(index, 0.0);
        for rows in [&mut self.authored, &mut self.values] {
            rows.splice(index * w..index * w, std::iter::repeat_n(0.0, w));
        }
        self.modes.insert(index, FREE.into());
        self.straight.insert(index, false);
        self.hold.insert(index, false);
        self.on_curve.insert(index, false);
        if let Some(rotations) = &mut self.rotations {
            rotations.insert(index, [0.0, 0.0, 0.0, 1.0]);
        }
    }

    fn put(&mut self, index: usize, key: CameraKey) {
        let rows = index * self.channels.len()..(index + 1) * self.channels.len();
        self.times[index] = key.time;
        self.authored[rows.clone()].copy_from_slice(&key.values);
        self.values[rows].copy_from_slice(&key.values);
        self.modes[index] = key.mode;
        self.straight[index] = key.straight;
        self.hold[index] = key.hold;
        self.on_curve[index] = key.on_curve;
        if let (Some(rotations), Some(rotation)) = (&mut self.rotations, key.rotation) {
            rotations[index] = rotation;
        }
    }

    /// Unwraps the angles of all keys afresh, run by run. Keys that were put on the
    /// curve are there already, and where it swings wide the short way from one of
    /// them to the next key is not the way the curve goes: the others pass them over.
    fn unwrap(&mut self) {
        let w = self.channels.len();
        self.values.clone_from(&self.authored);
        if self.smoothing.unwrap == Unwrap::AsAuthored {
            return;
        }
        let mut from = 0;
        for to in 1..=self.times.len() {
            if to < self.times.len() && self.modes[to] == self.modes[to - 1] {
                continue;
            }
            let keys: Vec<usize> = (from..to).filter(|&i| i == from || !self.on_curve[i]).collect();
            for (k, channel) in self.channels.iter().enumerate() {
                let Some(turn) = channel.turn else { continue };
                let mut angles: Vec<f64> = keys.iter().map(|&i| self.values[i * w + k]).collect();
                unwrap_angles(&mut angles, turn);
                for (&i, angle) in keys.iter().zip(angles) {
                    self.values[i * w + k] = angle;
                }
            }
            from = to;
        }
    }

    /// Unwraps key `index` against the one before it and moves all later keys of
    /// its run by the whole turns that keep them the short way from it. Distances
    /// between other keys stay as they are. Keys put on the curve are passed over,
    /// as in [`CameraPath::unwrap`].
    fn rewrap(&mut self, index: usize) {
        if self.smoothing.unwrap == Unwrap::AsAuthored || self.on_curve[index] {
            return;
        }
        let (n, w) = (self.len(), self.channels.len());
        let same_run = |&i: &usize| self.modes[i] == self.modes[index];
        let before = (0..index)
            .rev()
            .take_while(same_run)
            .find(|&i| !self.on_curve[i] || i == 0 || self.modes[i - 1] != self.modes[i]);
        let end = (index..n).take_while(same_run).last().map_or(n, |i| i + 1);
        let next = (index + 1..end).find(|&i| !self.on_curve[i]);
        for k in 0..w {
            let Some(turn) = self.channels[k].turn else { continue };
            if let Some(before) = before {
                let near = self.values[before * w + k];
                self.values[index * w + k] = nearest_turn(self.values[index * w + k], near, turn);
            }
            let Some(next) = next else { continue };
            let next = self.values[next * w + k];
            let shift = nearest_turn(next, self.values[index * w + k], turn) - next;
            if shift != 0.0 {
                for i in index + 1..end {
                    self.values[i * w + k] += shift;
                    if self.on_curve[i] {
                        self.authored[i * w + k] += shift;
                    }
                }
            }
        }
    }

    /// Works out all curves from the keys. Linear in the number of keys.
    fn solve(&mut self) -> Result<(), CameraError> {
        let w = self.channels.len();
        check(&self.times, &self.times, 1)?;
        if let Some(at) = self.values.iter().position(|v| !v.is_finite()) {
            let error = SplineError::NonFinite { index: at / w, what: "value", value: self.values[at] };
            return Err(CameraError::Channel { channel: self.channels[at % w].name.clone(), error });
        }
        let spans = self.spans();
        let lap = Lap::of(self);
        let (mut leave, mut arrive) = (vec![0.0; spans * w], vec![0.0; spans * w]);
        let (places, others): (Vec<usize>, Vec<usize>) =
            (0..w).partition(|&k| self.channels[k].role.is_place());
        let mut scratch = std::mem::take(&mut self.scratch);
        for (group, straight) in [(places, true), (others, false)] {
            if !group.is_empty() {
                let velocities = (leave.as_mut_slice(), arrive.as_mut_slice());
                self.solve_group(&lap, &group, straight, velocities, &mut scratch);
            }
        }
        self.scratch = scratch;
        let curve = self.build(&lap, &leave, &arrive)?;
        let rotations = self.solve_rotations(&lap)?;
        self.solved = Solved { curve, rotations, leave, arrive };
        Ok(())
    }

    /// The curve of all channels from the velocities at the ends of every span. A
    /// cut holds its key until the next one's time.
    fn build(&self, lap: &Lap, leave: &[f64], arrive: &[f64]) -> Result<Spline, CameraError> {
        let (w, spans) = (self.channels.len(), self.spans());
        if w == 0 {
            // Rotations alone: a curve of nothing still knows the times.
            let times: Vec<f64> = (0..=spans as isize).map(|i| lap.time(i)).collect();
            return Ok(Spline::new(&times, &times, 1, &TangentRule::Flat)?);
        }
        let mut times = Vec::with_capacity(spans + 1);
        let mut jumps = Vec::new();
        let rows = || Vec::with_capacity((spans + 1) * w);
        let (mut values, mut into, mut out) = (rows(), rows(), rows());
        let still = vec![0.0; w];
        for i in 0..=spans {
            let key = i as isize;
            let before = if i > 0 { &arrive[(i - 1) * w..i * w] } else { &still };
            if i > 0 && self.span_kind(i - 1) == PathSpan::Cut {
                times.push(lap.time(key));
                lap.push_row(key - 1, &mut values);
                into.extend_from_slice(&still);
                out.extend_from_slice(&still);
                jumps.push(times.len());
            }
            times.push(lap.time(key));
            lap.push_row(key, &mut values);
            into.extend_from_slice(before);
            out.extend_from_slice(if i < spans { &leave[i * w..(i + 1) * w] } else { &still });
        }
        let curve = Spline::build(Keys { times: &times, values: &values, width: w }, &into, &out, &jumps)?;
        let outside = if lap.closed { Extrapolation::CycleOffset } else { Extrapolation::Hold };
        Ok(curve.extrapolated(outside, outside))
    }

    /// The runs between `breaks` (spans, in order) as first and last key; on a
    /// closed path they may pass the seam, and without a break the one run goes
    /// once round.
    fn runs(&self, breaks: &[usize]) -> Vec<(isize, isize)> {
        let spans = self.spans() as isize;
        let mut edges: Vec<isize> = breaks.iter().map(|&i| i as isize).collect();
        match (self.closing_gap.is_some(), edges.first().copied()) {
            (true, Some(first)) => edges.push(first + spans),
            (true, None) => return vec![(0, spans)],
            (false, _) => {
                edges.insert(0, -1);
                edges.push(spans);
            }
        }
        edges.windows(2).map(|pair| (pair[0] + 1, pair[1])).collect()
    }

    /// Velocities of the channels `group` at the ends of every span.
    fn solve_group(
        &self,
        lap: &Lap,
        group: &[usize],
        straight: bool,
        (leave, arrive): (&mut [f64], &mut [f64]),
        scratch: &mut Scratch,
    ) {
        let (spans, w, g) = (self.spans(), self.channels.len(), group.len());
        if spans == 0 {
            return;
        }
        let is_straight = |i: usize| straight && self.straight[i] && self.span_kind(i) != PathSpan::Cut;
        let is_break = |i: usize| is_straight(i) || self.span_kind(i) == PathSpan::Cut;
        let breaks: Vec<usize> = (0..spans).filter(|&i| is_break(i)).collect();
        let chord =
            |i: isize, k: usize| (lap.value(i + 1, k) - lap.value(i, k)) / (lap.time(i + 1) - lap.time(i));
        for &i in breaks.iter().filter(|&&i| is_straight(i)) {
            for &k in group {
                (leave[i * w + k], arrive[i * w + k]) = (chord(i as isize, k), chord(i as isize, k));
            }
        }
        let round = lap.closed && breaks.is_empty();
        // What a run takes over from the straight span beside it.
        let beside = |i: isize| -> Option<Vec<f64>> {
            let inside = lap.closed || (0..spans as isize).contains(&i);
            (inside && !round && is_straight(i.rem_euclid(spans as isize) as usize))
                .then(|| group.iter().map(|&k| chord(i, k)).collect())
        };
        let (mut times, mut values, mut game, mut smooth) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let brake = if self.smoothing.brake { Brake::Automatic } else { Brake::None };
        for (first, last) in self.runs(&breaks).into_iter().filter(|(first, last)| first < last) {
            let m = (last - first + 1) as usize;
            // Where the path runs round, the keys beyond the seam are neighbours too.
            let pad = usize::from(round);
            times.clear();
            values.clear();
            for i in first - pad as isize..=last + pad as isize {
                times.push(lap.time(i));
                values.extend(group.iter().map(|&k| lap.value(i, k)));
            }
            let inner = pad * g..(pad + m) * g;
            game.clear();
            game.resize(values.len(), 0.0);
            smooth.clear();
            smooth.resize(values.len(), 0.0);
            let around = Keys { times: &times, values: &values, width: g };
            let keys = Keys { times: &times[pad..pad + m], values: &values[inner.clone()], width: g };
            replay(around, brake, &mut game);
            let (before, after) = (beside(first - 1), beside(last));
            if round {
                periodic(keys, &mut smooth[inner.clone()], scratch);
            } else {
                let start = before.as_deref().map_or(End::Natural, End::Velocity);
                let stop = after.as_deref().map_or(End::Natural, End::Velocity);
                with_ends(keys, start, stop, &mut smooth, scratch);
            }
            let mode = &self.modes[first.rem_euclid(self.times.len() as isize) as usize];
            for (j, &k) in group.iter().enumerate() {
                let amount = self.smoothing.amount_of(&self.channels[k].name, mode);
                if amount < 1.0 {
                    for at in inner.clone().skip(j).step_by(g) {
                        smooth[at] = (1.0 - amount) * game[at] + amount * smooth[at];
                    }
                }
            }
            // Whatever the amount, a straight span beside the run is joined exactly.
            for (velocity, row) in [(&before, 0), (&after, m - 1)] {
                if let Some(velocity) = velocity {
                    smooth[row * g..(row + 1) * g].copy_from_slice(velocity);
                }
            }
            if self.smoothing.overshoot == Overshoot::Prevent {
                limit_overshoot(keys, &mut smooth[inner.clone()]);
                for j in 0..g * pad {
                    // The seam is one key: both of its spans hold it back.
                    let (a, b) = (smooth[inner.start + j], smooth[inner.end - g + j]);
                    let held = if a.abs() < b.abs() { a } else { b };
                    (smooth[inner.start + j], smooth[inner.end - g + j]) = (held, held);
                }
            }
            for row in 0..m - 1 {
                let span = (first + row as isize).rem_euclid(spans as isize) as usize;
                for (j, &k) in group.iter().enumerate() {
                    leave[span * w + k] = smooth[inner.start + row * g + j];
                    arrive[span * w + k] = smooth[inner.start + (row + 1) * g + j];
                }
            }
        }
    }

    /// Rotation curves, one for each run of keys of one mode, in order of time.
    fn solve_rotations(&self, lap: &Lap) -> Result<Vec<(f64, RotationSpline)>, CameraError> {
        let Some(rotations) = &self.rotations else { return Ok(Vec::new()) };
        let n = self.len();
        let cuts: Vec<usize> = (0..self.spans()).filter(|&i| self.span_kind(i) == PathSpan::Cut).collect();
        let mut found = Vec::new();
        for (first, last) in self.runs(&cuts) {
            let index = |key: isize| key.rem_euclid(n as isize) as usize;
            let ends = [index(first), index(last)];
            let on_curve = |key: isize| self.on_curve[index(key)] && !ends.contains(&index(key));
            let curve = |leave_out: bool| -> Result<RotationSpline, CameraError> {
                // Where the path runs round, laps are added before and after until the
                // ends are out of earshot: each key away, an end's influence falls to a
                // half at most.
                let taken = (0..n).filter(|&i| !leave_out || !self.on_curve[i]).count().max(1);
                let pad =
                    if lap.closed && cuts.is_empty() { n * 100_usize.div_ceil(taken) } else { 0 } as isize;
                let keys: Vec<isize> =
                    (first - pad..=last + pad).filter(|&key| !leave_out || !on_curve(key)).collect();
                let times: Vec<f64> = keys.iter().map(|&key| lap.time(key)).collect();
                let turned: Vec<[f64; 4]> = keys.iter().map(|&key| rotations[index(key)]).collect();
                let rates = self.rotation_rates(&times, &turned, &self.modes[index(first)])?;
                let inner =
                    keys.partition_point(|&key| key < first)..keys.partition_point(|&key| key <= last);
                Ok(RotationSpline::with_rates(&times[inner.clone()], &turned[inner.clone()], &rates[inner])?)
            };
            // A cubic of the rotation vector, cut in two, is no longer two of them. So
            // keys that were put on the curve take no part in it while they are met.
            let mut solved = None;
            if (first..=last).any(on_curve) {
                let without = curve(true)?;
                let met = |key: isize| {
                    rotation_apart(without.rotation(lap.time(key)), rotations[index(key)]) <= ON_CURVE_RAD
                };
                solved = (first..=last).filter(|&key| on_curve(key)).all(met).then_some(without);
            }
            let solved = solved.map_or_else(|| curve(false), Ok)?;
            found.push((lap.time(first), solved));
        }
        Ok(found)
    }

    fn rotation_rates(
        &self,
        times: &[f64],
        keys: &[[f64; 4]],
        mode: &str,
    ) -> Result<Vec<[f64; 3]>, CameraError> {
        let amount = self.smoothing.amount_of("rotation", mode);
        let mut smooth = RotationSpline::smooth_rates(times, keys)?;
        if amount < 1.0 {
            let game = RotationSpline::replay_rates(times, keys, self.smoothing.brake)?;
            mix(game.as_flattened(), smooth.as_flattened_mut(), amount);
        }
        Ok(smooth)
    }
}

/// The angle between two rotations, radians; the quaternions may be of any length.
fn rotation_apart(a: [f64; 4], b: [f64; 4]) -> f64 {
    let between = quat_multiply(quat_conjugate(a), b);
    let sine = (between[0] * between[0] + between[1] * between[1] + between[2] * between[2]).sqrt();
    2.0 * libm::atan2(sine, between[3].abs())
}

/// The keys laid out in time for ever in both directions where the path is closed:
/// key n is key 0 a lap later.
struct Lap {
    closed: bool,
    period: f64,
    width: usize,
    times: Vec<f64>,
    values: Vec<f64>,
    /// How far each channel is further after a lap: whole turns of angles.
    offset: Vec<f64>,
}

impl Lap {
    fn of(path: &CameraPath) -> Self {
        let (n, w) = (path.len(), path.channels.len());
        // A key put on the way back does not say how the way goes.
        let end = (1..n).rev().find(|&i| !path.on_curve[i]).unwrap_or(0);
        let offset = (0..w).map(|k| {
            let (first, last) = (path.values[k], path.values[end * w + k]);
            match path.channels[k].turn {
                Some(turn) if path.smoothing.unwrap == Unwrap::Shortest => {
                    nearest_turn(first, last, turn) - first
                }
                _ => 0.0,
            }
        });
        Self {
            closed: path.closing_gap.is_some(),
            period: path.end() - path.start(),
            width: w,
            offset: offset.collect(),
            times: path.times.clone(),
            values: path.values.clone(),
        }
    }

    fn split(&self, key: isize) -> (usize, f64) {
        let n = self.times.len() as isize;
        (key.rem_euclid(n) as usize, key.div_euclid(n) as f64)
    }

    fn time(&self, key: isize) -> f64 {
        let (i, laps) = self.split(key);
        self.times[i] + laps * self.period
    }

    fn value(&self, key: isize, k: usize) -> f64 {
        let (i, laps) = self.split(key);
        self.values[i * self.width + k] + laps * self.offset[k]
    }

    fn push_row(&self, key: isize, rows: &mut Vec<f64>) {
        rows.extend((0..self.width).map(|k| self.value(key, k)));
    }
}

/// What a span of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSpan {
    /// The mode changes: the picture holds, then cuts over.
    Cut,
    /// The camera's place goes straight.
    Straight,
    /// Smoothing applies.
    Smoothed,
    /// Flown on the replay curve.
    Replay,
}
