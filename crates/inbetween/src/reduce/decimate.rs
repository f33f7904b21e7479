//! Taking keys out one by one while the world allows it.
//!
//! A key may go if, without it and with its two neighbours moved to make up for it, no watched point is
//! further from where it should be than the limit, at every time of the grid that the change touches. The
//! error that is tested is the true one, with every other track as it is now, so nothing is lost to
//! assumptions about how the errors of a chain add up; where two of them cancel, that is used.
//!
//! The neighbours are moved by one or two Gauss–Newton steps on the sum of squared displacements of all that
//! hangs on the node: a small dense system per trial. They are proposals only; what is kept is decided by the
//! test.
//!
//! Keys go in rounds of a rising limit, so that the cheap ones go first all over the body, and none uses up
//! the whole bound where three others could have gone.

use glam::{DAffine3, DMat3, DVec3};

use super::ball::LARGEST_GAP_RAD;
use super::moving::{Between, Moving, NONE, Part, Value, apart};
use super::rotation;
use super::stage::Stage;

/// How keys are taken out.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Largest displacement in the world, metres.
    pub bound: f64,
    /// Whether the keys beside one that goes may be moved.
    pub refit: bool,
    /// Gauss–Newton steps of a trial.
    pub steps: usize,
    /// A trial is given up at once if, before its neighbours are moved, it is about this many limits off.
    pub hopeless: f64,
    /// How many grid times the steps look at, about; the test looks at all.
    pub points: usize,
}

/// The work space of a search over one stage.
pub struct Search<'s, 'r> {
    pub stage: &'s mut Stage<'r>,
    pub times: &'s [f64],
    pub rules: Rules,
    values: Vec<Value>,
    movers: Vec<Option<DAffine3>>,
    /// Trials made and keys taken out.
    pub trials: usize,
    pub removed: usize,
}

/// A trial that is more than this many limits off after a step is given up. Going on finds nothing more and
/// costs half as much again.
const FAR: f64 = 1.5;

/// Unknown vectors of a trial: a value and a slope of each of two keys.
const UNKNOWNS: usize = 4;

/// A key whose value and slopes a trial changes.
#[derive(Clone, Copy)]
struct Changed {
    key: usize,
    value: Value,
    leave: Value,
    arrive: Value,
}

impl<'s, 'r> Search<'s, 'r> {
    pub fn new(stage: &'s mut Stage<'r>, times: &'s [f64], rules: Rules) -> Self {
        Self { stage, times, rules, values: Vec::new(), movers: Vec::new(), trials: 0, removed: 0 }
    }

    /// One round: tries every key of every track once, with `share` of the bound as the limit, but for those that
    /// an earlier round found to need more.
    /// Returns how many went.
    pub fn round(&mut self, moving: &mut [Moving], share: f64) -> usize {
        let before = self.removed;
        for track in moving.iter_mut() {
            let from = track.grid.partition_point(|&g| g < self.stage.range.start);
            // Every other key first: neighbours that go together take a long span from good keys beside it.
            for odd in [true, false] {
                let mut b = self.first_key(track, from);
                let mut nth = 0;
                while b != NONE && track.grid[b] < self.stage.range.end {
                    let next = track.next[b];
                    nth += 1;
                    if (nth % 2 == 1) == odd
                        && track.previous[b] != NONE
                        && next != NONE
                        && track.needs[b] <= share
                    {
                        self.trials += 1;
                        if self.try_remove(track, b, share) {
                            self.removed += 1;
                        }
                    }
                    b = next;
                }
            }
        }
        self.removed - before
    }

    /// The first key at or behind sample `from`.
    fn first_key(&self, track: &Moving, from: usize) -> usize {
        let is_key = |s: usize| s == 0 || track.previous[s] != NONE;
        (from..track.times.len()).find(|&s| is_key(s)).unwrap_or(NONE)
    }

    /// Takes key `b` out if the rest can make up for it within `share` of the bound.
    fn try_remove(&mut self, track: &mut Moving, b: usize, share: f64) -> bool {
        let (a, c) = (track.previous[b], track.next[b]);
        let limit = self.rules.bound * share;
        let range = self.stage.range.clone();
        if track.grid[a] < range.start || track.grid[c] >= range.end {
            return false;
        }
        track.next[a] = c;
        track.previous[c] = a;
        // Without moving anything else, is it anywhere near?
        let hopeless = self.rules.hopeless * limit;
        if !self.propose(track, a, c, hopeless) {
            self.put_back(track, a, b, c);
            return false;
        }
        let movable = self.rules.refit && track.part != Part::Scale;
        let (before, after) = (track.previous[a], track.next[c]);
        let move_a = movable && before != NONE && track.grid[before] >= range.start;
        let move_c = movable && after != NONE && track.grid[after] < range.end;
        let mut kept = [self.unchanged(track, a), self.unchanged(track, c)];
        // The ends of a track stay where they are, but the slope of a cubic there is free.
        let cubic = track.between == Between::Cubic && movable;
        let slopes = [move_a || (cubic && before == NONE), move_c || (cubic && after == NONE)];
        if !slopes[0] && !slopes[1] {
            if self.holds(track, a, c, limit) {
                self.commit(track, a);
                track.count -= 1;
                return true;
            }
            self.put_back(track, a, b, c);
            return false;
        }
        if track.between == Between::Cubic {
            // Keys that are touched become smooth, if they are not yet; the steps below go on from there.
            for (key, moves) in [(a, slopes[0]), (c, slopes[1])] {
                if moves && track.leave[key] != track.arrive[key] {
                    track.leave[key] = track.smooth[key];
                    track.arrive[key] = track.smooth[key];
                }
            }
        }
        let from = if move_a { before } else { a };
        let to = if move_c { after } else { c };
        if !self.propose(track, from, to, f64::INFINITY) {
            self.put_back(track, a, b, c);
            return false;
        }
        for _ in 0..self.rules.steps {
            self.correct(track, [a, c], [move_a, move_c], slopes, from, to);
            if !self.propose(track, from, to, f64::INFINITY) {
                break;
            }
            if self.holds(track, from, to, limit) {
                self.commit(track, from);
                track.count -= 1;
                return true;
            }
            // A step or two more take off a little, not a half. Nor will a later round with less than this.
            if !self.holds(track, from, to, FAR * limit) {
                track.needs[b] = FAR * share;
                break;
            }
        }
        for changed in &mut kept {
            self.restore(track, changed);
        }
        self.put_back(track, a, b, c);
        false
    }

    fn put_back(&self, track: &mut Moving, a: usize, b: usize, c: usize) {
        track.next[a] = b;
        track.previous[c] = b;
    }

    fn unchanged(&self, track: &Moving, key: usize) -> Changed {
        let tangent = |row: &[Value]| row.get(key).copied().unwrap_or_default();
        Changed {
            key,
            value: track.values[key],
            leave: tangent(&track.leave),
            arrive: tangent(&track.arrive),
        }
    }

    fn restore(&self, track: &mut Moving, changed: &Changed) {
        track.values[changed.key] = changed.value;
        if track.between == Between::Cubic {
            track.leave[changed.key] = changed.leave;
            track.arrive[changed.key] = changed.arrive;
        }
    }

    /// Fills `values` and `movers` for the grid times strictly between the keys `from` and `to`. Returns false
    /// if a span covers half a turn, or if what hangs on the node would move by more than about `hopeless`.
    fn propose(&mut self, track: &Moving, from: usize, to: usize, hopeless: f64) -> bool {
        self.values.clear();
        self.movers.clear();
        let place = self.stage.rig.place[track.node];
        let mut a = from;
        while a != to {
            let c = track.next[a];
            if track.part == Part::Rotation
                && c > a + 1
                && rotation::angle(track.values[a], track.values[c]) > LARGEST_GAP_RAD
            {
                return false;
            }
            let span = track.span(a, c);
            for g in track.grid[a]..track.grid[c] {
                let value = if g == track.grid[a] { track.values[a] } else { span.at(self.times[g]) };
                if hopeless < f64::INFINITY {
                    let lever = match track.part {
                        Part::Translation => self.stage.parent(g, place).matrix3.x_axis.length(),
                        _ => f64::from(self.stage.reach[self.stage.at(g, place)]),
                    };
                    let now = self.stage.current(g, place, track.part);
                    if track.part != Part::Scale && apart(track.part, now, value) * lever > hopeless {
                        return false;
                    }
                }
                self.values.push(value);
            }
            a = c;
        }
        let first = track.grid[from];
        for (k, value) in self.values.iter().enumerate() {
            let g = first + k;
            self.movers.push(self.stage.mover(g, place, track.part, *value));
        }
        true
    }

    /// True if the proposed values keep every point within `limit` and the track within its own tolerance.
    fn holds(&self, track: &Moving, from: usize, to: usize, limit: f64) -> bool {
        let place = self.stage.rig.place[track.node];
        let first = track.grid[from];
        let limit2 = limit * limit;
        if track.tolerance < f64::INFINITY {
            for s in from + 1..to {
                let value = self.values[track.grid[s] - first];
                if apart(track.part, value, track.samples[s]) > track.tolerance {
                    return false;
                }
            }
        }
        // From coarse to fine, because what fails mostly fails over a stretch.
        let n = self.values.len();
        for (start, stride) in [(4, 8), (0, 8), (2, 4), (1, 2)] {
            for k in (start..n).step_by(stride) {
                let g = first + k;
                let error2 = match &self.movers[k] {
                    Some(mover) => self.stage.error2_moved(g, place, mover, limit2),
                    None => self.stage.error2_walked(g, place, track.part, self.values[k]),
                };
                if error2 > limit2 {
                    return false;
                }
            }
        }
        true
    }

    /// Makes the proposed values the present ones.
    fn commit(&mut self, track: &Moving, from: usize) {
        let place = self.stage.rig.place[track.node];
        let first = track.grid[from];
        for k in 0..self.values.len() {
            self.stage.apply(first + k, place, track.part, self.values[k], self.movers[k].as_ref());
        }
    }

    /// Moves the keys by one Gauss–Newton step, from what is proposed now.
    fn correct(
        &mut self,
        track: &mut Moving,
        keys: [usize; 2],
        moves: [bool; 2],
        slopes: [bool; 2],
        from: usize,
        to: usize,
    ) {
        let place = self.stage.rig.place[track.node];
        let first = track.grid[from];
        let bound2 = self.rules.bound * self.rules.bound;
        let cubic = track.between == Between::Cubic;
        // Enough points to tell the unknowns apart, and no more than that.
        let stride = (self.values.len() / self.rules.points).max(1);
        let per_key = if cubic { 2 } else { 1 };
        let mut system = System::default();
        let mut weights = [0.0; UNKNOWNS];
        let mut a = from;
        while a != to {
            let c = track.next[a];
            let (start, length) = (track.times[a], track.times[c] - track.times[a]);
            for g in (track.grid[a]..track.grid[c]).step_by(stride) {
                let Some(mover) = &self.movers[g - first] else { continue };
                let u = (self.times[g] - start) / length;
                let v = 1.0 - u;
                weights.fill(0.0);
                for (k, &key) in keys.iter().enumerate() {
                    if !slopes[k] {
                        continue;
                    }
                    if key == a {
                        if cubic {
                            weights[2 * k] = if moves[k] { v * v * (1.0 + 2.0 * u) } else { 0.0 };
                            weights[2 * k + 1] = length * u * v * v;
                        } else {
                            weights[k] = v;
                        }
                    } else if key == c {
                        if cubic {
                            weights[2 * k] = if moves[k] { u * u * (3.0 - 2.0 * u) } else { 0.0 };
                            weights[2 * k + 1] = -length * u * u * v;
                        } else {
                            weights[k] = u;
                        }
                    }
                }
                let (block, pull) = self.stage.normal(g, place, track.part, mover, bound2);
                system.add(&weights, &block, pull);
            }
            a = c;
        }
        let corrections = system.solve(2 * per_key);
        for (k, &key) in keys.iter().enumerate() {
            if !slopes[k] {
                continue;
            }
            if cubic {
                move_cubic(track, key, corrections[2 * k], corrections[2 * k + 1]);
            } else {
                track.values[key] = moved(track.part, track.values[key], corrections[k]);
            }
        }
    }
}

/// A value moved by a correction.
fn moved(part: Part, value: Value, by: DVec3) -> Value {
    match part {
        Part::Rotation => super::moving::unit(rotation::mul(value, rotation::exp(by.to_array()))),
        _ => [value[0] + by.x, value[1] + by.y, value[2] + by.z, 0.0],
    }
}

/// Moves a cubic key's value, and its slopes along with it.
fn move_cubic(track: &mut Moving, key: usize, by: DVec3, slope: DVec3) {
    let value = track.values[key];
    track.values[key] = moved(track.part, value, by);
    for row in [&mut track.leave[key], &mut track.arrive[key]] {
        *row = match track.part {
            Part::Rotation => {
                // d(q·exp(δ)) = dq·exp(δ) + q·exp(δ)·½dδ
                let turned = rotation::mul(*row, rotation::exp(by.to_array()));
                let added =
                    rotation::mul(track.values[key], [slope.x / 2.0, slope.y / 2.0, slope.z / 2.0, 0.0]);
                std::array::from_fn(|k| turned[k] + added[k])
            }
            _ => [row[0] + slope.x, row[1] + slope.y, row[2] + slope.z, 0.0],
        };
    }
}

/// Normal equations of up to four unknown vectors.
#[derive(Default)]
struct System {
    a: [[DMat3; UNKNOWNS]; UNKNOWNS],
    b: [DVec3; UNKNOWNS],
    any: bool,
}

impl System {
    fn add(&mut self, weights: &[f64; UNKNOWNS], block: &DMat3, pull: DVec3) {
        if !self.any {
            self.a = [[DMat3::ZERO; UNKNOWNS]; UNKNOWNS];
            self.any = true;
        }
        for i in 0..UNKNOWNS {
            if weights[i] == 0.0 {
                continue;
            }
            self.b[i] -= pull * weights[i];
            for j in 0..=i {
                if weights[j] != 0.0 {
                    self.a[i][j] += *block * (weights[i] * weights[j]);
                }
            }
        }
    }

    /// Solves by Cholesky factors, slightly damped so that unknowns nothing depends on stay where they are.
    fn solve(&self, unknowns: usize) -> [DVec3; UNKNOWNS] {
        let mut out = [DVec3::ZERO; UNKNOWNS];
        if !self.any {
            return out;
        }
        let n = 3 * unknowns;
        let mut m = [[0.0_f64; 3 * UNKNOWNS]; 3 * UNKNOWNS];
        for i in 0..n {
            for j in 0..=i {
                m[i][j] = self.a[i / 3][j / 3].col(j % 3)[i % 3];
            }
        }
        for i in 0..n {
            // Damped relative to its own size, so that slopes and values, whose units differ, are treated alike.
            m[i][i] += 1e-6 * m[i][i] + 1e-30;
        }
        for i in 0..n {
            for j in 0..=i {
                let mut sum = m[i][j];
                for k in 0..j {
                    sum -= m[i][k] * m[j][k];
                }
                if i == j {
                    if sum <= 0.0 {
                        return out;
                    }
                    m[i][i] = sum.sqrt();
                } else {
                    m[i][j] = sum / m[j][j];
                }
            }
        }
        let mut x = [0.0_f64; 3 * UNKNOWNS];
        for i in 0..n {
            let mut sum = self.b[i / 3][i % 3];
            for k in 0..i {
                sum -= m[i][k] * x[k];
            }
            x[i] = sum / m[i][i];
        }
        for i in (0..n).rev() {
            let mut sum = x[i];
            for k in i + 1..n {
                sum -= m[k][i] * x[k];
            }
            x[i] = sum / m[i][i];
        }
        for (i, value) in out.iter_mut().enumerate().take(unknowns) {
            *value = DVec3::new(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
        }
        out
    }
}
