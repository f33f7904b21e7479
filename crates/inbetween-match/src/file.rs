//! The bytes of a motion database, `.ibm`: the only file that knows an offset.
//!
//! Little-endian everywhere, sections at multiples of 64 bytes, rows stored as they are
//! searched: from a memory map they are used in place. The header holds a checksum over
//! the whole file and a hash of everything the database was baked from. What each byte
//! means is written down in `docs/ibm-format.md`.
//!
//! A reader trusts nothing: every length is held against the bytes that are there before
//! anything is allocated, the order must be a permutation, runs must cover the rows.

use std::sync::Arc;

use crate::axes::Axes;
use crate::bake::{BakeClip, Hash, clip_hash};
use crate::columns::Columns;
use crate::database::{ChannelColumns, ClipSource, DatabaseOptions, Family, MotionDatabase, Run};
use crate::error::MatchError;
use crate::normalise::Normalisation;
use crate::order::Order;
use crate::rows::{LANES, RowFormat, Rows, Shared};
use crate::schema::Schema;
use crate::tree::{Bits, Level, Tree};

/// The first bytes of every `.ibm` file.
pub const MAGIC: [u8; 8] = *b"INB-MM\r\n";

/// The version this library writes; it reads this one and all before it.
pub const VERSION: u32 = 2;

const HEADER: usize = 64;
const ENTRY: usize = 24;
const SECTIONS: usize = 9;

const SCHEMA: usize = 0;
const CHANNELS: usize = 1;
const CLIPS: usize = 2;
const RUNS: usize = 3;
const SCALE: usize = 4;
const TAGS: usize = 5;
const ORDER: usize = 6;
const TREE: usize = 7;
const ROWS: usize = 8;

/// How a database file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// The whole file is read once and held against its checksum.
    #[default]
    Checksum,
    /// Only the structure is checked, so that a memory map of many gigabytes opens at once.
    /// A damaged row then gives a wrong answer, never a crash.
    Structure,
}

impl MotionDatabase {
    /// The bytes of the file; the same on every machine.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let sections: [Vec<u8>; SECTIONS] = [
            self.schema.clone().into_bytes(),
            channels_out(&self.channels),
            clips_out(&self.clips),
            runs_out(&self.runs),
            self.scale.iter().flat_map(|(o, s)| [o.to_le_bytes(), s.to_le_bytes()]).flatten().collect(),
            self.tags.iter().flat_map(|t| t.to_le_bytes()).collect(),
            (0..self.len()).flat_map(|slot| self.order.row(slot).to_le_bytes()).collect(),
            tree_out(&self.tree),
            self.rows.to_bytes(),
        ];
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&MAGIC);
        put(&mut bytes, VERSION);
        put(&mut bytes, self.len() as u32);
        put(&mut bytes, self.columns() as u32);
        bytes.push(normalisation_out(self.options.normalisation));
        bytes.push(u8::from(self.options.format == RowFormat::F16));
        bytes.push(u8::from(self.options.balance));
        bytes.push(SECTIONS as u8);
        bytes.extend_from_slice(&self.content_hash().to_le_bytes());
        bytes.resize(HEADER + SECTIONS * ENTRY, 0);
        for (number, section) in sections.iter().enumerate() {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            let entry = HEADER + number * ENTRY;
            let offset = bytes.len() as u64;
            bytes[entry..entry + 8].copy_from_slice(&(number as u64).to_le_bytes());
            bytes[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
            bytes[entry + 16..entry + 24].copy_from_slice(&(section.len() as u64).to_le_bytes());
            bytes.extend_from_slice(section);
        }
        let length = bytes.len() as u64;
        bytes[32..40].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[40..44].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the bytes of a file, copying the rows.
    ///
    /// # Errors
    /// Bytes that are no database, of another version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MatchError> {
        read(bytes, Verify::Checksum, None)
    }

    /// Opens bytes that stay where they are, such as a memory map; the rows are searched in
    /// place where they lie at a multiple of 4 bytes (a map does) on a little-endian
    /// machine, and copied otherwise.
    ///
    /// # Errors
    /// As [`MotionDatabase::from_bytes`].
    pub fn from_shared(
        bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
        verify: Verify,
    ) -> Result<Self, MatchError> {
        let shared = Shared(bytes.clone());
        read((*bytes).as_ref(), verify, Some(shared))
    }

    /// A hash of what the database was baked from: the schema and the content of the clips.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let mut hash = Hash::default();
        hash.text(&self.schema);
        for clip in &self.clips {
            hash.text(&clip.name);
            hash.word(clip.content);
        }
        hash.value
    }

    /// Why the database no longer is what these clips and this schema would give; empty when
    /// it is up to date.
    #[must_use]
    pub fn stale(&self, clips: &[BakeClip], schema: &Schema) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.schema != schema.text {
            reasons.push("the schema has changed".to_owned());
        }
        if self.clips.len() != clips.len() {
            reasons.push(format!("it holds {} clips, and there are {}", self.clips.len(), clips.len()));
        }
        for (number, (was, is)) in self.clips.iter().zip(clips).enumerate() {
            if was.name != is.clip.name {
                reasons.push(format!("clip {number} was {:?} and is {:?}", was.name, is.clip.name));
            } else if was.content != clip_hash(&is.clip, &is.skeleton) {
                reasons.push(format!("clip {:?} has changed", was.name));
            }
        }
        reasons
    }
}

/// The checksum of a file: CRC-32 of all its bytes, those of the checksum taken as 0.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..40]);
    crc.update(&[0; 4]);
    crc.update(&bytes[44..]);
    crc.finalize()
}

fn refuse<T>(text: impl Into<String>) -> Result<T, MatchError> {
    Err(MatchError::File(text.into()))
}

fn read(bytes: &[u8], verify: Verify, shared: Option<Shared>) -> Result<MotionDatabase, MatchError> {
    if bytes.len() < 8 || bytes[..8] != MAGIC {
        return refuse(
            "these bytes are no motion database (they do not begin with INB-MM); bake one with `inbetween match bake`",
        );
    }
    if bytes.len() < HEADER + SECTIONS * ENTRY {
        return refuse(format!(
            "the file ends after {} bytes, inside its header; it was cut short",
            bytes.len()
        ));
    }
    let mut head = Reader { bytes, at: 8, what: "the header" };
    let version = head.u32()?;
    if !(1..=VERSION).contains(&version) {
        return refuse(format!(
            "the file has version {version} and this program reads versions 1 to {VERSION}; bake it again"
        ));
    }
    let rows = head.u32()? as usize;
    let columns = head.u32()? as usize;
    let (normalisation, format, balance, sections) = (head.u8()?, head.u8()?, head.u8()?, head.u8()?);
    let content = head.u64()?;
    let length = head.u64()?;
    let stated = head.u32()?;
    if length != bytes.len() as u64 {
        return refuse(format!(
            "the file should be {length} bytes long and is {}; it was cut short or added to",
            bytes.len()
        ));
    }
    if verify == Verify::Checksum && checksum(bytes) != stated {
        return refuse("the checksum does not fit the bytes, so the file is damaged; bake it again");
    }
    if usize::from(sections) != SECTIONS || rows == 0 || columns == 0 {
        return refuse(format!(
            "the header says {sections} sections, {rows} rows and {columns} columns; it is damaged"
        ));
    }
    let section = |number: usize| -> Result<(usize, &[u8]), MatchError> {
        let mut entry = Reader { bytes, at: HEADER + number * ENTRY, what: "the table of sections" };
        let (id, offset, length) = (entry.u64()?, entry.u64()?, entry.u64()?);
        let end = offset.checked_add(length).filter(|end| *end <= bytes.len() as u64);
        match end {
            Some(end) if id == number as u64 && offset % 64 == 0 => {
                Ok((offset as usize, &bytes[offset as usize..end as usize]))
            }
            _ => refuse(format!("section {number} lies outside the file; it is damaged")),
        }
    };
    let reader = |number, what| Ok(Reader { bytes: section(number)?.1, at: 0, what });

    let schema = String::from_utf8(section(SCHEMA)?.1.to_vec())
        .or_else(|_| refuse("the schema is no UTF-8 text; the file is damaged"))?;
    let channels = channels_in(reader(CHANNELS, "the channels")?, columns)?;
    let clips = clips_in(reader(CLIPS, "the clips")?)?;
    let runs = runs_in(reader(RUNS, "the runs")?, rows, clips.len())?;
    let mut scale_in = reader(SCALE, "the scales")?;
    let mut scale = scale_in.list(columns, 16, |r| Ok((r.f64()?, r.f64()?)))?;
    scale_in.end()?;
    if scale.iter().any(|(o, s)| !(o.is_finite() && s.is_finite() && *s > 0.0)) {
        return refuse("a scale is not above 0; the file is damaged");
    }
    scale.shrink_to_fit();
    let mut tags_in = reader(TAGS, "the categories")?;
    let tags = if tags_in.bytes.is_empty() { Vec::new() } else { tags_in.list(rows, 4, Reader::u32)? };
    tags_in.end()?;
    let mut order_in = reader(ORDER, "the order")?;
    let order = order_in.list(rows, 4, Reader::u32)?;
    order_in.end()?;
    let mut seen = vec![false; rows];
    for row in &order {
        match seen.get_mut(*row as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => {
                return refuse(format!(
                    "row {row} stands twice in the order, or does not exist; the file is damaged"
                ));
            }
        }
    }
    let tree = tree_in(reader(TREE, "the tree")?, version, rows, columns, !tags.is_empty())?;
    let format = if format == 1 { RowFormat::F16 } else { RowFormat::F32 };
    let (offset, row_bytes) = section(ROWS)?;
    let entry = if format == RowFormat::F16 { 2 } else { 4 };
    let expected = (rows.div_ceil(LANES) as u128) * columns as u128 * LANES as u128 * entry;
    if row_bytes.len() as u128 != expected {
        return refuse(format!(
            "the rows take {} bytes where {expected} are needed; the file is damaged",
            row_bytes.len()
        ));
    }
    let stored = Rows::open(format, row_bytes, offset, shared);
    if verify == Verify::Checksum && !stored.all_finite() {
        return refuse("a row holds a number that is not finite; the file was not written by this program");
    }
    let database = MotionDatabase {
        channels,
        options: DatabaseOptions {
            normalisation: normalisation_in(normalisation)?,
            format,
            balance: balance != 0,
        },
        scale,
        clips,
        runs,
        tags,
        rows: stored,
        order: Order::new(&order),
        tree,
        schema,
    };
    if database.content_hash() != content {
        return refuse("the content hash does not fit the clips and the schema; the file is damaged");
    }
    Ok(database)
}

fn put(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

fn channels_out(channels: &[ChannelColumns]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, channels.len() as u32);
    for channel in channels {
        put_text(&mut out, &channel.name);
        out.extend_from_slice(&channel.weight.to_le_bytes());
        put(&mut out, channel.family as u32);
        put(&mut out, channel.columns.len() as u32);
        channel.columns.iter().for_each(|c| put_text(&mut out, c));
    }
    out
}

fn channels_in(mut r: Reader<'_>, columns: usize) -> Result<Vec<ChannelColumns>, MatchError> {
    let count = r.u32()? as usize;
    let channels = r.list(count, 16, |r| {
        let name = r.text()?;
        let weight = r.f32()?;
        if !(weight >= 0.0 && weight.is_finite()) {
            return refuse(format!("channel {name:?} weighs {weight}; the file is damaged"));
        }
        let family = if r.u32()? == 0 { Family::Pose } else { Family::Path };
        let width = r.u32()? as usize;
        Ok(ChannelColumns { name, weight, family, columns: r.list(width, 4, Reader::text)? })
    })?;
    r.end()?;
    if channels.iter().map(|c| c.columns.len()).sum::<usize>() != columns
        || channels.iter().any(|c| c.columns.is_empty())
    {
        return refuse("the channels' columns do not add up; the file is damaged");
    }
    Ok(channels)
}

fn clips_out(clips: &[ClipSource]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, clips.len() as u32);
    for clip in clips {
        put_text(&mut out, &clip.name);
        put_text(&mut out, &clip.file);
        out.extend_from_slice(&clip.duration_s.to_le_bytes());
        out.extend_from_slice(&clip.content.to_le_bytes());
        put(&mut out, u32::from(clip.looped));
    }
    out
}

fn clips_in(mut r: Reader<'_>) -> Result<Vec<ClipSource>, MatchError> {
    let count = r.u32()? as usize;
    let clips = r.list(count, 28, |r| {
        Ok(ClipSource {
            name: r.text()?,
            file: r.text()?,
            duration_s: r.f64()?,
            content: r.u64()?,
            looped: r.u32()? != 0,
        })
    })?;
    r.end()?;
    Ok(clips)
}

fn runs_out(runs: &[Run]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, runs.len() as u32);
    for run in runs {
        put(&mut out, run.clip);
        put(&mut out, u32::from(run.mirrored));
        put(&mut out, run.rows);
        put(&mut out, run.first_pose);
        out.extend_from_slice(&run.start_s.to_le_bytes());
        out.extend_from_slice(&run.interval_s.to_le_bytes());
    }
    out
}

fn runs_in(mut r: Reader<'_>, rows: usize, clips: usize) -> Result<Vec<Run>, MatchError> {
    let count = r.u32()? as usize;
    let mut next = 0u64;
    let runs = r.list(count, 32, |r| {
        let (clip, mirrored, run_rows, first_pose) = (r.u32()?, r.u32()? != 0, r.u32()?, r.u32()?);
        let (start_s, interval_s) = (r.f64()?, r.f64()?);
        let first_row = next as u32;
        next += u64::from(run_rows);
        let sound = (clip as usize) < clips
            && run_rows > 0
            && next <= rows as u64
            && first_pose.checked_add(run_rows).is_some()
            && start_s.is_finite()
            && interval_s > 0.0
            && interval_s.is_finite();
        if !sound {
            return refuse(format!(
                "the run at row {first_row} does not fit the rows and clips; the file is damaged"
            ));
        }
        Ok(Run { clip, mirrored, first_row, rows: run_rows, first_pose, start_s, interval_s })
    })?;
    r.end()?;
    if next != rows as u64 {
        return refuse(format!("the runs cover {next} of {rows} rows; the file is damaged"));
    }
    Ok(runs)
}

fn tree_out(tree: &Tree) -> Vec<u8> {
    let axes = &tree.axes;
    let mut out = Vec::new();
    put(&mut out, axes.count as u32);
    put(&mut out, tree.levels.len() as u32);
    put(&mut out, tree.levels[0].axes as u32);
    put(&mut out, tree.columns.as_ref().map_or(0, |c| if c.fours.is_empty() { 1 } else { 2 }));
    out.extend(axes.axis_group.iter().chain(&axes.column_group));
    axes.reference.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
    for x in axes.middle.iter().chain(&axes.step).chain(&axes.matrix) {
        out.extend_from_slice(&x.to_le_bytes());
    }
    for level in &tree.levels {
        for steps in level.low.iter().chain(&level.high) {
            out.extend(steps.iter().map(|s| *s as u8));
        }
        level.bits.pairs().for_each(|(union, _)| put(&mut out, union));
        level.bits.pairs().for_each(|(_, intersection)| put(&mut out, intersection));
    }
    if let Some(columns) = &tree.columns {
        for x in columns.middle.iter().chain(&columns.step) {
            out.extend_from_slice(&x.to_le_bytes());
        }
        out.extend(columns.blocks.iter().map(|s| *s as u8));
    }
    out
}

fn tree_in(
    mut r: Reader<'_>,
    version: u32,
    rows: usize,
    columns: usize,
    tagged: bool,
) -> Result<Tree, MatchError> {
    let count = r.u32()? as usize;
    let levels_stated = r.u32()? as usize;
    // Version 1 has all axes everywhere and no boxes along columns.
    let (leaf, along) = if version == 1 { (count, 0) } else { (r.u32()? as usize, r.u32()?) };
    if count == 0 || !count.is_multiple_of(4) || count > columns.next_multiple_of(4) {
        return refuse(format!("the tree has {count} axes for {columns} columns; the file is damaged"));
    }
    if leaf == 0 || !leaf.is_multiple_of(4) || leaf > count {
        return refuse(format!("boxes of the tree use {leaf} of {count} axes; the file is damaged"));
    }
    if along > 2 || (along > 0 && (columns < LANES || rows <= LANES * LANES)) {
        return refuse(format!(
            "{rows} rows of {columns} columns have boxes of kind {along} along columns; the file is damaged"
        ));
    }
    let axis_group = r.list(count, 1, Reader::u8)?;
    let column_group = r.list(columns, 1, Reader::u8)?;
    let reference = r.list(columns, 4, Reader::f32)?;
    let middle = r.list(count, 8, Reader::f64)?;
    let step = r.list(count, 8, Reader::f64)?;
    let matrix = r.list(columns * count, 8, Reader::f64)?;
    if !places(&middle, &step)
        || matrix.iter().any(|x| !x.is_finite())
        || reference.iter().any(|w| *w < 0.0 || !w.is_finite())
    {
        return refuse("the axes of the tree hold numbers that cannot be; the file is damaged");
    }
    let mut levels = Vec::new();
    let mut items = rows.div_ceil(LANES);
    loop {
        let axes = if levels.is_empty() { leaf } else { count };
        let entries = items.div_ceil(LANES) * axes;
        let steps = |r: &mut Reader<'_>| -> Result<[i8; LANES], MatchError> {
            Ok(r.array::<LANES>()?.map(|b| b as i8))
        };
        let low = r.list(entries, LANES, steps)?;
        let high = r.list(entries, LANES, steps)?;
        let tags = if tagged { items } else { 0 };
        let union = r.list(tags, 4, Reader::u32)?;
        let intersection = r.list(tags, 4, Reader::u32)?;
        let bits = Bits::new(&union.into_iter().zip(intersection).collect::<Vec<_>>());
        levels.push(Level { items, axes, low, high, bits });
        if items <= LANES {
            break;
        }
        items = items.div_ceil(LANES);
    }
    let along = if along == 0 {
        None
    } else {
        let middle = r.list(columns, 8, Reader::f64)?;
        let step = r.list(columns, 8, Reader::f64)?;
        if !places(&middle, &step) {
            return refuse("the boxes along columns have no place; the file is damaged");
        }
        let ends = 2 * columns * rows.div_ceil(LANES);
        let blocks = r.list(ends, 1, Reader::u8)?.into_iter().map(|b| b as i8).collect();
        Some(Columns::over(middle, step, blocks, along == 2))
    };
    r.end()?;
    if levels.len() != levels_stated {
        return refuse(format!(
            "the tree has {levels_stated} levels where {} are needed; the file is damaged",
            levels.len()
        ));
    }
    let margin = vec![0.0; count];
    Ok(Tree {
        axes: Axes { columns, count, matrix, axis_group, column_group, reference, middle, step, margin },
        levels,
        columns: along,
    })
}

/// Whether zeros and steps of axes are such that a place can be told along them.
fn places(middle: &[f64], step: &[f64]) -> bool {
    middle.iter().all(|x| x.is_finite()) && step.iter().all(|s| *s > 0.0 && s.is_finite())
}

fn normalisation_out(n: Normalisation) -> u8 {
    match n {
        Normalisation::ChannelDeviation => 0,
        Normalisation::ColumnDeviation => 1,
        Normalisation::MinMax => 2,
        Normalisation::Raw => 3,
        Normalisation::Variance => 4,
    }
}

fn normalisation_in(byte: u8) -> Result<Normalisation, MatchError> {
    Ok(match byte {
        0 => Normalisation::ChannelDeviation,
        1 => Normalisation::ColumnDeviation,
        2 => Normalisation::MinMax,
        3 => Normalisation::Raw,
        4 => Normalisation::Variance,
        other => return refuse(format!("normalisation {other} is not known; the file is damaged")),
    })
}

/// Takes numbers off a section, never past its end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    what: &'static str,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MatchError> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => refuse(format!("{} end in the middle of a value; the file is damaged", self.what)),
        }
    }
    fn u8(&mut self) -> Result<u8, MatchError> {
        Ok(self.array::<1>()?[0])
    }
    fn u32(&mut self) -> Result<u32, MatchError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64, MatchError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn f32(&mut self) -> Result<f32, MatchError> {
        Ok(f32::from_le_bytes(self.array()?))
    }
    fn f64(&mut self) -> Result<f64, MatchError> {
        Ok(f64::from_le_bytes(self.array()?))
    }
    fn text(&mut self) -> Result<String, MatchError> {
        let length = self.u32()? as usize;
        let bytes = self.list(length, 1, Self::u8)?;
        String::from_utf8(bytes)
            .or_else(|_| refuse(format!("{} hold a text that is no UTF-8; the file is damaged", self.what)))
    }
    /// `count` items of at least `least` bytes each: refused before anything is allocated
    /// when they cannot all be there.
    fn list<T>(
        &mut self,
        count: usize,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, MatchError>,
    ) -> Result<Vec<T>, MatchError> {
        let left = self.bytes.len() - self.at;
        if count.checked_mul(least).is_none_or(|needed| needed > left) {
            return refuse(format!(
                "{} should hold {count} items but only {left} bytes are left; the file is damaged",
                self.what
            ));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(item(self)?);
        }
        Ok(list)
    }
    fn end(&self) -> Result<(), MatchError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => {
                refuse(format!("{} are followed by {left} bytes too many; the file is damaged", self.what))
            }
        }
    }
}
