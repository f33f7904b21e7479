//! One node of a clip made ready: where its fields lie in every segment, found once.
//!
//! A pose finds the fields of eight lanes at once, and most of what one node alone costs would be finding three
//! of them among their neighbours. What is asked for again and again, such as the hand that holds a weapon, is
//! prepared: 32 bytes a component and segment and 12 bytes a frame are kept, and each value is then one read
//! and a few multiplications. The bits are those of the pose.

use crate::clip::{CompressedClip, write_keys};
use crate::content::Target;
use crate::decode::{Between, Gives, JointTransform, Table};
use crate::kernel::{self, FoundLane};

/// A node of a clip that is sampled often; from [`CompressedClip::prepare`].
///
/// ```
/// # use inbetween::{Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind};
/// # use inbetween_codec::{CompressOptions, JointTransform, Library, compress};
/// # let skeleton = Skeleton::new(vec![Joint::new("ball", None, Transform::IDENTITY)])?;
/// # let mut clip = Clip::new("rise", 0.0, 1.0)?;
/// # let height = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 0.0, 2.0, 0.0])?;
/// # clip.tracks.push(Track::new(Binding::node(0, "ball", Property::Translation), TrackData::Curve(height), vec![0.0; 3]));
/// # let file = compress(&skeleton, &[clip], &CompressOptions::default(), false)?;
/// let library = Library::open(&file.bytes)?;
/// let ball = library.clips[0].prepare(0);
/// assert_eq!(ball.at(0.3), library.clips[0].node(0.3, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PreparedNode<'c> {
    clip: &'c CompressedClip<'c>,
    node: usize,
    still: JointTransform,
    groups: Vec<Ready<'c>>,
}

/// What a group says of the node.
#[derive(Clone, Debug)]
struct Ready<'c> {
    table: &'c Table,
    payload: &'c [u8],
    /// The rotation's middle, if it turns; its lanes are then the first three.
    middle: Option<[f32; 4]>,
    /// What the further lanes are.
    values: Vec<Target>,
    biases: Vec<f32>,
    /// Time of each frame, and frames a second between the first and the last, to guess by.
    times: Vec<f64>,
    rate: f64,
    /// Of each stored frame its segment.
    segments: Vec<u32>,
    /// Of each segment what is to be added to a frame for the place of its basis.
    bases: Vec<i32>,
    /// Segment by segment, all lanes.
    lanes: Vec<FoundLane>,
}

/// A frame of a group.
#[derive(Clone, Copy)]
struct At<'r> {
    frame: u32,
    basis: [f32; 3],
    lanes: &'r [FoundLane],
}

impl<'c> PreparedNode<'c> {
    pub(crate) fn new(clip: &'c CompressedClip<'c>, node: usize) -> Self {
        let ready = |group: &crate::clip::FoundIn| {
            let (table, payload) = clip.group(group.table as usize);
            Ready::new(table, payload, group.rotation, &group.values)
        };
        let groups = clip.found(node).groups.iter().map(ready).collect();
        Self { clip, node, still: clip.still_of(node), groups }
    }

    /// Which node of the clip it is.
    pub fn node(&self) -> usize {
        self.node
    }

    /// The node at `time` seconds on the clip's clock, held outside its range: [`CompressedClip::node`] to the bit.
    /// Allocates nothing.
    pub fn at(&self, time: f64) -> JointTransform {
        let time = self.clip.held(time);
        let mut one = [self.still];
        for group in &self.groups {
            group.write(time, &mut one[0]);
        }
        for (property, keys) in self.clip.exact_keys(self.node) {
            write_keys(0, property, keys, time, &mut &mut one[..]);
        }
        one[0]
    }
}

impl<'c> Ready<'c> {
    fn new(table: &'c Table, payload: &'c [u8], rotation: Option<(u32, u32)>, values: &[(u32, u32)]) -> Self {
        let mut wanted = Vec::new();
        let mut middle = None;
        if let Some((block, lane)) = rotation {
            let l = lane as usize;
            wanted.extend((0..3).map(|row| (block as usize, row, l)));
            if let Gives::Rotations { middle: m, .. } = &table.blocks[block as usize].gives {
                middle = Some([m[0][l], m[1][l], m[2][l], m[3][l]]);
            }
        }
        let mut targets = Vec::new();
        for &(block, l) in values {
            wanted.push((block as usize, l as usize / 8, l as usize % 8));
            if let Gives::Values(all) = &table.blocks[block as usize].gives {
                targets.push(all[l as usize]);
            }
        }
        let (mut lanes, mut segments, mut bases) = (Vec::new(), Vec::new(), Vec::new());
        for s in 0..table.scales.len() {
            let spot = table.segment_spot(s);
            segments.extend((0..spot.frames).map(|_| s as u32));
            bases.push(spot.first as i32 - spot.start as i32);
            lanes.extend(wanted.iter().map(|&(block, row, lane)| {
                let at = table.block_at(payload, s, block);
                let rows = &table.blocks[block].rows;
                FoundLane::new((payload, at), rows, (row, lane), &spot)
            }));
        }
        let biases = wanted.iter().map(|&(b, row, lane)| table.blocks[b].rows[row].bias[lane]).collect();
        let times: Vec<f64> = (0..table.frames).map(|f| table.times.at(f)).collect();
        let rate = (times.len() - 1) as f64 / (times[times.len() - 1] - times[0]).max(f64::MIN_POSITIVE);
        Self { table, payload, middle, values: targets, biases, times, rate, segments, bases, lanes }
    }

    /// The frames around `time`: those of [`Table::between`], whose divisions are done beforehand.
    #[inline(always)]
    fn between(&self, time: f64) -> Between {
        let last = self.times.len() - 1;
        let f = ((time - self.times[0]) * self.rate) as usize;
        if f < last {
            let (a, b) = (self.times[f], self.times[f + 1]);
            if a < time && time < b {
                let blend = ((time - a) / (b - a)) as f32;
                if blend > 0.0 && blend < 1.0 {
                    return Between { first: f, second: f + 1, blend };
                }
            }
        }
        // On a frame, at an end, or where frames are not evenly spaced.
        self.table.between(time)
    }

    #[inline(always)]
    fn frame(&self, frame: usize) -> At<'_> {
        let s = self.segments[frame] as usize;
        let count = self.biases.len();
        At {
            frame: frame as u32,
            basis: self.table.basis((frame as i32 + self.bases[s]) as u32),
            lanes: &self.lanes[s * count..(s + 1) * count],
        }
    }

    #[inline(always)]
    fn lane(&self, at: &At<'_>, k: usize) -> f32 {
        at.lanes[k].at(self.payload, at.frame, at.basis, self.biases[k])
    }

    fn write(&self, time: f64, out: &mut JointTransform) {
        let between = self.between(time);
        let first = self.frame(self.table.stored_frame(between.first));
        let second =
            if between.blend == 0.0 { first } else { self.frame(self.table.stored_frame(between.second)) };
        let turns = self.middle.map_or(0, |_| 3);
        if let Some(middle) = self.middle {
            let three = |at: &At<'_>| [self.lane(at, 0), self.lane(at, 1), self.lane(at, 2)];
            out.rotation = kernel::plain_turn(three(&first), three(&second), middle, between.blend);
        }
        for (k, target) in self.values.iter().enumerate() {
            let (a, b) = (self.lane(&first, turns + k), self.lane(&second, turns + k));
            let value = if between.blend == 0.0 { a } else { kernel::mix(a, b, between.blend) };
            match *target {
                Target::Translation(_, axis) => out.translation[usize::from(axis)] = value,
                Target::Scale(_, axis) => out.scale[usize::from(axis)] = value,
                Target::Track(..) => {}
            }
        }
    }
}
