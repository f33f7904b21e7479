//! The schema: a text file that says what a pose is described by.
//!
//! Written by hand in TOML, checked when read: an unknown key, a missing number or a wrong
//! type is an error that names the place and lists what would do. `docs/motion-matching.md`
//! shows every key. Joints are checked against the clips by the bake, which knows them.

use inbetween::glam::DVec3;

use crate::categories::DO_NOT_USE;
use crate::channels::{CHANNELS, FeatureChannel};
use crate::error::MatchError;
use crate::normalise::Normalisation;
use crate::rows::RowFormat;

/// What happens to path samples beyond the ends of a clip that is no loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// The character goes on at its last speed and turn rate.
    #[default]
    RunOut,
    /// The character stands where the clip ends.
    Hold,
    /// Poses that look beyond an end are left out.
    Cut,
}

/// A length of time as a ratio, so that pose k lies at exactly k · numerator ÷ denominator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    numerator: f64,
    denominator: f64,
}

impl Interval {
    /// `numerator ÷ denominator` seconds.
    ///
    /// # Errors
    /// If the quotient is not between a microsecond and an hour.
    pub fn new(numerator: f64, denominator: f64) -> Result<Self, MatchError> {
        let seconds = numerator / denominator;
        if !(1e-6..=3600.0).contains(&seconds) {
            return Err(MatchError::Schema(format!(
                "interval: {numerator}/{denominator} is no time between poses; give seconds such as 0.1, or a ratio such as \"1/30\""
            )));
        }
        Ok(Self { numerator, denominator })
    }

    /// Seconds from pose to pose.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.numerator / self.denominator
    }

    /// Seconds from pose 0 to pose `k`.
    #[must_use]
    pub fn times(self, k: u32) -> f64 {
        f64::from(k) * self.numerator / self.denominator
    }
}

/// Category bits over a range of time of some clips.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// The bits set.
    pub bits: u32,
    /// Clip names this holds for; `*` stands for any run of characters.
    pub clip: String,
    /// From here on, in seconds of the clip.
    pub from_s: f64,
    /// Up to, and not including, here.
    pub to_s: f64,
}

impl Tag {
    /// Whether the tag is meant for clips of this name.
    #[must_use]
    pub fn named(&self, clip: &str) -> bool {
        wildcard(&self.clip, clip)
    }

    /// Whether the tag covers a moment of a clip.
    #[must_use]
    pub fn covers(&self, clip: &str, time_s: f64) -> bool {
        // Times on a grid of 1/60 s are rounded; a nanosecond decides nothing.
        self.from_s <= time_s + 1e-9 && time_s + 1e-9 < self.to_s && wildcard(&self.clip, clip)
    }
}

/// A track whose value is the category field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryTrack {
    /// The track's target.
    pub target: String,
    /// Its property.
    pub property: String,
}

/// One channel of a schema.
#[derive(Debug)]
pub struct SchemaChannel {
    /// Its name, unique in the schema.
    pub name: String,
    /// Its weight, divided over its columns where the schema balances.
    pub weight: f32,
    /// What it measures.
    pub channel: Box<dyn FeatureChannel>,
}

/// What a pose is described by, and how clips are cut into poses.
#[derive(Debug)]
pub struct Schema {
    /// Time between poses.
    pub interval: Interval,
    /// The joint whose ground path and heading are the character's: a root joint or the hips.
    pub root: String,
    /// The direction the character faces when the root has no heading: a unit axis on the ground.
    pub forward: DVec3,
    /// What lies beyond the ends of clips that are no loops.
    pub ends: Ends,
    /// Clip names that are loops, with `*` as a wildcard, beside those that say so themselves.
    pub loops: Vec<String>,
    /// Pairs of words exchanged in joint names for mirrored rows; empty for no mirrored rows.
    pub mirror: Vec<(String, String)>,
    /// How columns are made comparable.
    pub normalisation: Normalisation,
    /// How rows are kept.
    pub format: RowFormat,
    /// Whether a channel's weight is divided over its columns.
    pub balance: bool,
    /// Names of category bits.
    pub categories: Vec<(String, u32)>,
    /// A track of the clips that holds the category field.
    pub category_track: Option<CategoryTrack>,
    /// Categories over time.
    pub tags: Vec<Tag>,
    /// The channels, in column order.
    pub channels: Vec<SchemaChannel>,
    /// The text it was read from.
    pub text: String,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Text that is no TOML, unknown or missing keys, wrong types, values out of range,
    /// names used twice, no channel at all: the message names the place.
    pub fn read(text: &str) -> Result<Self, MatchError> {
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| MatchError::Schema(e.to_string().trim_end().to_owned()))?;
        let mut fields = Fields::new(&table, String::new());
        let interval = fields.interval("interval")?;
        let root = fields.text("root")?;
        let forward = fields.axis("forward", "+z")?;
        if forward.y != 0.0 {
            return Err(fields.wrong("forward", "a direction on the ground: +x, -x, +z or -z"));
        }
        let ends =
            fields.choice("ends", &[("run-out", Ends::RunOut), ("hold", Ends::Hold), ("cut", Ends::Cut)])?;
        let loops = fields.texts("loops")?;
        let normalisation = fields.choice(
            "normalisation",
            &[
                ("channel-deviation", Normalisation::ChannelDeviation),
                ("column-deviation", Normalisation::ColumnDeviation),
                ("min-max", Normalisation::MinMax),
                ("raw", Normalisation::Raw),
                ("variance", Normalisation::Variance),
            ],
        )?;
        let format = fields.choice("rows", &[("f32", RowFormat::F32), ("f16", RowFormat::F16)])?;
        let balance = fields.flag("balance", true)?;
        let mirror = fields.pairs("mirror")?;
        let categories = categories(&mut fields)?;
        let category_track = match fields.table("category_track")? {
            None => None,
            Some(table) => {
                let mut f = Fields::new(table, "category_track".into());
                let track = CategoryTrack { target: f.text("target")?, property: f.text("property")? };
                f.finish()?;
                Some(track)
            }
        };
        let mut tags = Vec::new();
        for (number, table) in fields.tables("tag")?.into_iter().enumerate() {
            tags.push(tag(Fields::new(table, format!("tag {}", number + 1)), &categories)?);
        }
        let mut channels: Vec<SchemaChannel> = Vec::new();
        for (number, table) in fields.tables("channel")?.into_iter().enumerate() {
            let made = channel(Fields::new(table, format!("channel {}", number + 1)))?;
            if channels.iter().any(|c| c.name == made.name) {
                return Err(MatchError::Schema(format!(
                    "channel {}: the name {:?} is taken by an earlier channel; give it a name of its own with name = \"…\"",
                    number + 1,
                    made.name
                )));
            }
            channels.push(made);
        }
        fields.finish()?;
        if channels.is_empty() {
            return Err(MatchError::Schema(format!(
                "there is no [[channel]], so poses have no feature to be told apart by; add at least one, of type {}",
                kinds()
            )));
        }
        if channels.iter().all(|c| c.weight == 0.0) {
            return Err(MatchError::Schema(
                "every channel has weight 0, so all poses would cost the same; give one a weight above 0"
                    .into(),
            ));
        }
        Ok(Self {
            interval,
            root,
            forward,
            ends,
            loops,
            mirror,
            normalisation,
            format,
            balance,
            categories,
            category_track,
            tags,
            channels,
            text: text.to_owned(),
        })
    }

    /// Whether a clip of this name is declared a loop.
    #[must_use]
    pub fn is_loop(&self, clip: &str) -> bool {
        self.loops.iter().any(|pattern| wildcard(pattern, clip))
    }

    /// The category bit of a name from `[categories]`, a bit number, or `do-not-use`.
    #[must_use]
    pub fn category(&self, name: &str) -> Option<u32> {
        category(&self.categories, name)
    }

    /// The name of a joint's other side; the same name where it has none.
    #[must_use]
    pub fn mirrored_name(&self, joint: &str) -> String {
        for (a, b) in &self.mirror {
            for (from, to) in [(a, b), (b, a)] {
                if joint.contains(from.as_str()) {
                    return joint.replacen(from.as_str(), to, 1);
                }
            }
        }
        joint.to_owned()
    }
}

fn categories(fields: &mut Fields<'_>) -> Result<Vec<(String, u32)>, MatchError> {
    let mut list = Vec::new();
    let Some(table) = fields.table("categories")? else { return Ok(list) };
    for (name, value) in table {
        match value.as_integer() {
            Some(bit) if (0..=31).contains(&bit) => list.push((name.clone(), 1u32 << bit)),
            _ => {
                return Err(MatchError::Schema(format!(
                    "categories.{name}: expected the number of a bit, 0 to 31, found {value}"
                )));
            }
        }
    }
    Ok(list)
}

fn tag(mut fields: Fields<'_>, categories: &[(String, u32)]) -> Result<Tag, MatchError> {
    let mut bits = 0u32;
    for name in fields.texts("set")? {
        let Some(bit) = category(categories, &name) else {
            let known: Vec<&str> = categories.iter().map(|(n, _)| n.as_str()).collect();
            return Err(fields.wrong(
                "set",
                &format!(
                    "names from [categories] ({}), bit numbers 0 to 31, or do-not-use; {name:?} is none",
                    if known.is_empty() { "none is given".to_owned() } else { known.join(", ") }
                ),
            ));
        };
        bits |= bit;
    }
    if bits == 0 {
        return Err(fields.wrong("set", "a list of at least one category, as in set = [\"do-not-use\"]"));
    }
    let clip = fields.text_or("clip", "*")?;
    let from_s = fields.number_or("from_s", f64::NEG_INFINITY)?;
    let to_s = fields.number_or("to_s", f64::INFINITY)?;
    if from_s >= to_s {
        return Err(fields.wrong("to_s", &format!("a time after from_s = {from_s}")));
    }
    fields.finish()?;
    Ok(Tag { bits, clip, from_s, to_s })
}

/// A bit by its name, its number, or as `do-not-use`.
fn category(categories: &[(String, u32)], name: &str) -> Option<u32> {
    if name == "do-not-use" {
        return Some(DO_NOT_USE);
    }
    let named = categories.iter().find(|(n, _)| n == name).map(|(_, bit)| *bit);
    named.or_else(|| name.parse::<u32>().ok().filter(|bit| *bit < 32).map(|bit| 1 << bit))
}

fn channel(mut fields: Fields<'_>) -> Result<SchemaChannel, MatchError> {
    let kind = fields.text("type")?;
    let Some(found) = CHANNELS.iter().find(|c| c.name == kind) else {
        return Err(fields.wrong("type", &format!("one of {}; {kind:?} is none", kinds())));
    };
    let weight = fields.number_or("weight", 1.0)? as f32;
    if !(weight == 0.0 || (1e-6..=1e6).contains(&weight)) {
        return Err(fields.wrong("weight", "0, or a number between 1e-6 and 1e6"));
    }
    let name = fields.text_or("name", "")?;
    let channel = (found.read)(&mut fields)?;
    fields.finish()?;
    let name = if name.is_empty() { channel.default_name() } else { name };
    Ok(SchemaChannel { name, weight, channel })
}

fn kinds() -> String {
    CHANNELS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ")
}

/// Whether a text fits a pattern in which `*` stands for any run of characters.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = text.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut rest = rest;
    let mut last = None;
    for part in parts {
        if let Some(skipped) = last.replace(part) {
            match rest.find(skipped) {
                Some(at) => rest = &rest[at + str::len(skipped)..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// A table of the schema and which of its keys have been asked for.
pub struct Fields<'a> {
    table: &'a toml::Table,
    place: String,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(table: &'a toml::Table, place: String) -> Self {
        Self { table, place, known: Vec::new() }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a toml::Value> {
        self.known.push(key);
        self.table.get(key)
    }

    /// An error at a key of this table that says what was expected.
    pub(crate) fn wrong(&self, key: &str, expected: &str) -> MatchError {
        let found = self.table.get(key).map_or("nothing".to_owned(), ToString::to_string);
        let dot = if self.place.is_empty() { "" } else { ": " };
        MatchError::Schema(format!("{}{dot}{key}: expected {expected}, found {found}", self.place))
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<String, MatchError> {
        match self.get(key).and_then(toml::Value::as_str) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(key, "a text")),
        }
    }

    /// A text with a default.
    pub(crate) fn text_or(&mut self, key: &'static str, default: &str) -> Result<String, MatchError> {
        if self.table.contains_key(key) {
            self.text(key)
        } else {
            self.known.push(key);
            Ok(default.to_owned())
        }
    }

    /// A finite number with a default.
    pub(crate) fn number_or(&mut self, key: &'static str, default: f64) -> Result<f64, MatchError> {
        let number = match self.get(key) {
            None => return Ok(default),
            Some(toml::Value::Float(x)) => *x,
            Some(toml::Value::Integer(x)) => *x as f64,
            Some(toml::Value::String(text)) => {
                let ratio = text
                    .split_once('/')
                    .and_then(|(a, b)| Some(a.trim().parse::<f64>().ok()? / b.trim().parse::<f64>().ok()?));
                ratio.ok_or_else(|| self.wrong(key, "a number, or a ratio such as \"1/60\""))?
            }
            Some(_) => return Err(self.wrong(key, "a number")),
        };
        if number.is_finite() { Ok(number) } else { Err(self.wrong(key, "a finite number")) }
    }

    /// A list of finite numbers that must be there and not be empty.
    pub(crate) fn numbers(&mut self, key: &'static str) -> Result<Vec<f64>, MatchError> {
        let expected = "a list of at least one finite number, such as [0.2, 0.4, 0.6]";
        let Some(list) = self.get(key).and_then(toml::Value::as_array) else {
            return Err(self.wrong(key, expected));
        };
        let numbers: Option<Vec<f64>> = list
            .iter()
            .map(|v| v.as_float().or_else(|| v.as_integer().map(|x| x as f64)).filter(|x| x.is_finite()))
            .collect();
        numbers.filter(|n| !n.is_empty()).ok_or_else(|| self.wrong(key, expected))
    }

    /// One of ±x, ±y, ±z.
    pub(crate) fn axis(&mut self, key: &'static str, default: &str) -> Result<DVec3, MatchError> {
        let text = self.text_or(key, default)?;
        axis(&text).ok_or_else(|| self.wrong(key, "an axis: +x, -x, +y, -y, +z or -z"))
    }

    fn interval(&mut self, key: &'static str) -> Result<Interval, MatchError> {
        let expected = "seconds such as 0.1, or a ratio such as \"1/30\"";
        let (a, b) = match self.get(key) {
            Some(toml::Value::Float(x)) => (*x, 1.0),
            Some(toml::Value::Integer(x)) => (*x as f64, 1.0),
            Some(toml::Value::String(text)) => {
                let (a, b) = text.split_once('/').unwrap_or((text, "1"));
                match (a.trim().parse(), b.trim().parse()) {
                    (Ok(a), Ok(b)) => (a, b),
                    _ => return Err(self.wrong(key, expected)),
                }
            }
            _ => return Err(self.wrong(key, expected)),
        };
        Interval::new(a, b)
    }

    fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, MatchError> {
        match self.get(key) {
            None => Ok(default),
            Some(toml::Value::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    fn choice<T: Copy>(&mut self, key: &'static str, list: &[(&str, T)]) -> Result<T, MatchError> {
        let text = self.text_or(key, list[0].0)?;
        list.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
            self.wrong(key, &format!("one of {}", names.join(", ")))
        })
    }

    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Vec<String>, MatchError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list: Option<Vec<String>> = match value {
            toml::Value::String(one) => Some(vec![one.clone()]),
            toml::Value::Array(list) => list.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        list.ok_or_else(|| self.wrong(key, "a text or a list of texts"))
    }

    fn pairs(&mut self, key: &'static str) -> Result<Vec<(String, String)>, MatchError> {
        let expected = "a list of pairs of words, such as [[\"Left\", \"Right\"]]";
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.wrong(key, expected))?;
        list.iter()
            .map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([toml::Value::String(a), toml::Value::String(b)])
                    if !a.is_empty() && !b.is_empty() && a != b =>
                {
                    Ok((a.clone(), b.clone()))
                }
                _ => Err(self.wrong(key, expected)),
            })
            .collect()
    }

    fn table(&mut self, key: &'static str) -> Result<Option<&'a toml::Table>, MatchError> {
        match self.get(key) {
            None => Ok(None),
            Some(toml::Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(self.wrong(key, &format!("a table, [{key}]"))),
        }
    }

    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<&'a toml::Table>, MatchError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list: Option<Vec<&toml::Table>> =
            value.as_array().and_then(|list| list.iter().map(toml::Value::as_table).collect());
        list.ok_or_else(|| self.wrong(key, &format!("tables, each headed [[{key}]]")))
    }

    /// Refuses keys nobody asked for.
    pub(crate) fn finish(self) -> Result<(), MatchError> {
        match self.table.keys().find(|key| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let place = if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
                Err(MatchError::Schema(format!(
                    "{place}{key} is not a key that means anything here; known are {}",
                    self.known.join(", ")
                )))
            }
        }
    }
}

/// The unit vector of `+x`, `-x`, … (`x` is `+x`).
fn axis(text: &str) -> Option<DVec3> {
    let (sign, name) = match text.strip_prefix('-') {
        Some(name) => (-1.0, name),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let axis = match name {
        "x" => DVec3::X,
        "y" => DVec3::Y,
        "z" => DVec3::Z,
        _ => return None,
    };
    Some(axis * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
        interval = \"1/30\"
        root = \"Root\"
        [[channel]]
        type = \"joint_position\"
        joint = \"LeftFoot\"
    ";

    fn refusal(text: &str) -> String {
        Schema::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_small_schema_is_read_with_its_defaults() {
        let schema = Schema::read(SMALL).unwrap();
        assert_eq!(schema.interval.times(30), 1.0);
        assert_eq!(schema.channels[0].name, "joint_position LeftFoot");
        assert_eq!(schema.channels[0].weight, 1.0);
        assert_eq!(schema.ends, Ends::RunOut);
        assert_eq!(schema.forward, DVec3::Z);
        assert!(schema.balance);
    }

    #[test]
    fn a_schema_without_a_channel_is_refused() {
        let text = refusal("interval = 0.1\nroot = \"Root\"");
        assert!(text.contains("no [[channel]]") && text.contains("joint_position"), "{text}");
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_what_would_do() {
        for (from, to, words) in [
            ("interval = \"1/30\"", "", vec!["interval", "found nothing"]),
            ("\"1/30\"", "\"soon\"", vec!["interval", "soon"]),
            ("\"1/30\"", "-1", vec!["interval"]),
            ("joint_position", "joint_poison", vec!["channel 1", "joint_poison", "joint_velocity"]),
            ("joint = ", "bone = ", vec!["channel 1", "joint"]),
            ("root = \"Root\"", "root = \"Root\"\ncolour = 3", vec!["colour", "known are"]),
            ("joint = \"LeftFoot\"", "joint = \"LeftFoot\"\nweight = -1", vec!["channel 1", "weight", "-1"]),
            ("joint = \"LeftFoot\"", "joint = \"LeftFoot\"\nweight = 0", vec!["weight 0"]),
            ("root = \"Root\"", "root = \"Root\"\nforward = \"+y\"", vec!["forward", "ground"]),
            ("root = \"Root\"", "root = \"Root\"\nends = \"loop\"", vec!["ends", "run-out, hold, cut"]),
            ("root = \"Root\"", "root = \"Root\"\nmirror = [[\"L\"]]", vec!["mirror", "pairs"]),
            ("interval = \"1/30\"", "interval = = 3", vec!["schema"]),
        ] {
            let text = refusal(&SMALL.replace(from, to));
            for word in words {
                assert!(text.contains(word), "{to:?}: {text}");
            }
        }
        let twice = format!("{SMALL}\n[[channel]]\ntype = \"joint_position\"\njoint = \"LeftFoot\"");
        assert!(refusal(&twice).contains("taken by an earlier channel"));
        let tag = format!("{SMALL}\n[[tag]]\nset = [\"crouched\"]");
        assert!(refusal(&tag).contains("crouched"));
    }

    #[test]
    fn tags_cover_their_range_up_to_but_not_including_its_end() {
        let text = format!(
            "{SMALL}\n[categories]\ncrouch = 3\n[[tag]]\nset = [\"do-not-use\", \"crouch\"]\nto_s = \"1/60\"\nclip = \"Walk*\""
        );
        let schema = Schema::read(&text).unwrap();
        let tag = &schema.tags[0];
        assert_eq!(tag.bits, DO_NOT_USE | 8);
        assert!(tag.covers("Walk1", 0.0));
        assert!(!tag.covers("Walk1", 1.0 / 60.0));
        assert!(!tag.covers("Run1", 0.0));
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("Walk*", "Walk1", true),
            ("Walk*", "RunWalk", false),
            ("*Turn*1", "WalkStopTurn1", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abac", true),
            ("a*ab", "ab", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(wildcard(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn the_other_side_of_a_joint_is_found_by_its_words() {
        let schema = Schema::read(&format!("mirror = [[\"Left\", \"Right\"]]\n{SMALL}")).unwrap();
        assert_eq!(schema.mirrored_name("LeftFoot"), "RightFoot");
        assert_eq!(schema.mirrored_name("RightFoot"), "LeftFoot");
        assert_eq!(schema.mirrored_name("Hips"), "Hips");
    }
}
