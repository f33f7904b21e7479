//! Ops about motion matching: paths ahead of a clip, and the best row among given poses.
//!
//! Both inputs are neutral descriptions. Clips of a root alone (`motion_matching`) become
//! clips of the model and are asked through the library's own view of a moving character;
//! poses (`motion_match_db`) become a database with a deviation a column. What is expected
//! of a database is also worked out here once more, in f64 and without the library.

use std::sync::Arc;

use inbetween::glam::DQuat;
use inbetween::{
    Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind, Wrap,
};
use inbetween_match::{
    ChannelColumns, DO_NOT_USE, DatabaseOptions, Family, Filter, Include, MatchError, Method, Motion,
    MotionDatabase, Normalisation, Poses, Query, Schema, Scratch, Weights,
};
use serde_json::Value;

use crate::Check;
use crate::fields::only;
use crate::subject::{Subject, number, row};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[
    ("trajectory", |s, c| trajectory(s, c).into()),
    ("match_scale", |s, c| scale(s, c).into()),
    ("match_best", |s, c| best(s, c).into()),
    ("match_best_weighted", |s, c| best(s, c).into()),
    ("match_none", |s, c| none(s, c).into()),
    ("match_equals_brute_force", |s, c| equals_brute_force(s, c).into()),
];

fn input(subject: &Subject) -> Result<&Value, String> {
    subject.case.json.as_ref().ok_or_else(|| "the input is no description of motion matching".to_owned())
}

/// A key of the check, else of the input's query, else of the input.
fn asked<'a>(input: &'a Value, check: &'a Value, key: &str) -> Option<&'a Value> {
    let args = check.get("args").and_then(|a| a.get(key));
    check
        .get(key)
        .or(args)
        .or_else(|| input.get("query").and_then(|q| q.get(key)))
        .or_else(|| input.get(key))
        .filter(|v| !v.is_null())
}

// Paths.

fn trajectory(subject: &Subject, check: &Value) -> Result<(), String> {
    let input = input(subject)?;
    let settings =
        ["type", "clips", "query", "clip", "ends", "t", "ahead_s", "offsets_s", "offsets", "times_s"];
    only("the input", input, &settings)?;
    let clips = input.get("clips").and_then(Value::as_object).ok_or("the input has no clips")?;
    let name = asked(input, check, "clip").and_then(Value::as_str).map(str::to_owned);
    let name = name.or_else(|| clips.keys().next().cloned()).ok_or("the input has no clip")?;
    let described = clips.get(&name).ok_or_else(|| format!("the input has no clip {name:?}"))?;
    let (clip, skeleton) = root_clip(&name, described)?;
    let ends = asked(input, check, "ends").and_then(Value::as_str).unwrap_or("hold");
    let schema = Schema::read(&format!(
        "interval = 0.1\nroot = \"Root\"\nends = \"{ends}\"\n[[channel]]\ntype = \"root_velocity\""
    ))
    .map_err(|e| e.to_string())?;
    let range = (clip.start(), clip.end());
    let motion = Motion::new(&clip, &Arc::new(skeleton), &schema, &[], range).map_err(|e| e.to_string())?;
    let time = asked(input, check, "t").and_then(Value::as_f64).ok_or("no t is given")?;
    let offsets = ["ahead_s", "offsets_s", "offsets", "times_s"]
        .iter()
        .find_map(|key| asked(input, check, key))
        .and_then(row)
        .ok_or("no times ahead are given")?;
    let tol = number(check, "tol").unwrap_or(1e-5);
    let frame = check.get("frame").and_then(Value::as_str).unwrap_or("root at t");
    let places: Vec<_> = offsets
        .iter()
        .map(|offset| match frame {
            "root at t" | "root" | "character" | "local" => Ok(motion.waypoint(time, *offset)),
            "start" | "clip start" | "root at start" => Ok(motion.waypoint(range.0, time + offset - range.0)),
            other => Err(format!("{other:?} is a frame this adaptor does not know")),
        })
        .collect::<Result<_, _>>()?;
    let mut compared = false;
    for (keys, values) in [
        (&["positions", "values"][..], places.iter().map(|w| w.position.to_array()).collect::<Vec<_>>()),
        (&["facings", "directions", "forward"][..], places.iter().map(|w| w.facing.to_array()).collect()),
    ] {
        let Some(wanted) = keys.iter().find_map(|k| check.get(k)).and_then(Value::as_array) else { continue };
        compared = true;
        if wanted.len() != values.len() {
            return Err(format!("{} are expected but {} were asked for", wanted.len(), values.len()));
        }
        for (i, (wanted, found)) in wanted.iter().zip(&values).enumerate() {
            let wanted = row(wanted).ok_or("an expected place is no row of numbers")?;
            // Two numbers are a place on the ground.
            let found = if wanted.len() == 2 { vec![found[0], found[2]] } else { found.to_vec() };
            let close =
                wanted.len() == found.len() && wanted.iter().zip(&found).all(|(a, b)| (a - b).abs() <= tol);
            if !close {
                return Err(format!("{}[{i}]: {found:?} instead of {wanted:?}", keys[0]));
            }
        }
    }
    if compared { Ok(()) } else { Err("the check expects nothing that is understood".to_owned()) }
}

/// A clip of one node, the root, from its description.
fn root_clip(name: &str, described: &Value) -> Result<(Clip, Skeleton), String> {
    only("the clip", described, &["root", "start", "duration", "loop"])?;
    let root = described.get("root").ok_or("the clip has no root")?;
    only("the root", root, &["times", "translation", "rotation"])?;
    let times = root.get("times").and_then(row).ok_or("the root has no times")?;
    let rows = |key: &str| -> Option<Vec<f64>> {
        let list = root.get(key)?.as_array()?;
        Some(list.iter().map(row).collect::<Option<Vec<_>>>()?.concat())
    };
    let first = times.first().copied().ok_or("the root has no key")?;
    let last = times.last().copied().unwrap_or(first);
    let start = number(described, "start").unwrap_or_else(|| first.min(0.0));
    let end = number(described, "duration").map_or(last, |d| start + d);
    let mut clip = Clip::new(name, start, end).map_err(|e| e.to_string())?;
    if described.get("loop").and_then(Value::as_bool).unwrap_or(false) {
        clip.wrap = Wrap::Loop;
    }
    let skeleton =
        Skeleton::new(vec![Joint::new("Root", None, Transform::IDENTITY)]).map_err(|e| e.to_string())?;
    if let Some(values) = rows("translation") {
        let curve = Curve::linear(ValueKind::Vector(3), times.clone(), values).map_err(|e| e.to_string())?;
        clip.tracks.push(Track::new(
            Binding::node(0, "Root", Property::Translation),
            TrackData::Curve(curve),
            vec![0.0; 3],
        ));
    }
    if let Some(values) = rows("rotation") {
        let curve = Curve::linear(ValueKind::Rotation, times, values).map_err(|e| e.to_string())?;
        clip.tracks.push(Track::new(
            Binding::node(0, "Root", Property::Rotation),
            TrackData::Curve(curve),
            DQuat::IDENTITY.to_array().to_vec(),
        ));
    }
    Ok((clip, skeleton))
}

// Poses.

/// The described poses, as given.
struct Given {
    names: Vec<String>,
    widths: Vec<usize>,
    poses: Vec<Vec<f64>>,
    tags: Vec<u32>,
}

fn given(input: &Value) -> Result<Given, String> {
    let settings = [
        "type",
        "features",
        "poses",
        "tags",
        "query",
        "queries",
        "weights",
        "include",
        "include_mode",
        "mode",
        "exclude",
    ];
    only("the input", input, &settings)?;
    let poses: Vec<Vec<f64>> = input
        .get("poses")
        .and_then(Value::as_array)
        .ok_or("the input has no poses")?
        .iter()
        .map(|p| row(p).ok_or_else(|| format!("{p} is no row of numbers")))
        .collect::<Result<_, _>>()?;
    let columns = poses.first().map_or(0, Vec::len);
    let mut names = Vec::new();
    let mut widths = Vec::new();
    for feature in input.get("features").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
        let name = feature.as_str().or_else(|| feature.get("name").and_then(Value::as_str));
        names.push(name.map_or_else(|| format!("feature {}", names.len()), str::to_owned));
        let width =
            ["columns", "width", "size", "dims"].iter().find_map(|k| feature.get(k)).and_then(Value::as_u64);
        widths.push(width.map_or(1, |w| w as usize));
    }
    if widths.iter().sum::<usize>() != columns {
        // Names that do not say their widths: a column each.
        widths = vec![1; columns];
        names.resize_with(columns, || "column".to_owned());
    }
    let tags = match input.get("tags").and_then(Value::as_array) {
        None => vec![0; poses.len()],
        Some(list) => list
            .iter()
            .map(|t| t.as_i64().map(|t| t as u32).ok_or_else(|| format!("{t} is no tag field")))
            .collect::<Result<_, _>>()?,
    };
    if tags.len() != poses.len() || poses.iter().any(|p| p.len() != columns) {
        return Err("the input's poses and tags do not fit each other".to_owned());
    }
    Ok(Given { names, widths, poses, tags })
}

fn database(given: &Given) -> Result<MotionDatabase, MatchError> {
    let poses = Poses {
        channels: given
            .names
            .iter()
            .zip(&given.widths)
            .map(|(name, width)| ChannelColumns {
                name: name.clone(),
                columns: (0..*width).map(|c| c.to_string()).collect(),
                weight: 1.0,
                family: Family::Pose,
            })
            .collect(),
        values: given.poses.iter().flatten().map(|x| *x as f32).collect(),
        tags: given.tags.clone(),
        ..Poses::default()
    };
    let options = DatabaseOptions {
        normalisation: Normalisation::ColumnDeviation,
        balance: false,
        ..DatabaseOptions::default()
    };
    MotionDatabase::new(poses, options)
}

/// What a check asks of a database: numbers a column, weights a column, and the filter.
struct Asked {
    features: Vec<f64>,
    weights: Vec<f64>,
    filter: Filter,
}

fn question(input: &Value, check: &Value, given: &Given) -> Result<Asked, String> {
    let args = check.get("args").unwrap_or(&Value::Null);
    let of = |key: &str| check.get(key).or_else(|| args.get(key)).or_else(|| input.get(key));
    let query = of("query").ok_or("no query is given")?;
    let features = row(query)
        .or_else(|| query.get("features").or_else(|| query.get("values")).and_then(row))
        .ok_or("the query is no row of numbers")?;
    let columns: usize = given.widths.iter().sum();
    let weights = match of("weights") {
        None | Some(Value::Null) => vec![1.0; columns],
        Some(Value::Object(named)) => given
            .names
            .iter()
            .zip(&given.widths)
            .flat_map(|(name, width)| {
                std::iter::repeat_n(named.get(name).and_then(Value::as_f64).unwrap_or(1.0), *width)
            })
            .collect(),
        Some(list) => {
            let list = row(list).ok_or("the weights are no row of numbers")?;
            if list.len() == columns {
                list
            } else if list.len() == given.widths.len() {
                list.iter().zip(&given.widths).flat_map(|(w, n)| std::iter::repeat_n(*w, *n)).collect()
            } else {
                return Err(format!("{} weights for {columns} columns", list.len()));
            }
        }
    };
    let bits = |key: &str| match of(key) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => {
            value.as_i64().map(|b| b as u32).ok_or_else(|| format!("{key} {value} is no tag field"))
        }
    };
    let mode = match of("include_mode").or_else(|| of("mode")).and_then(Value::as_str) {
        Some("all") => Include::All,
        None | Some("any") => Include::Any,
        Some(other) => return Err(format!("{other:?} is a way to include that this adaptor does not know")),
    };
    Ok(Asked {
        features,
        weights,
        filter: Filter { include: bits("include")?, mode, exclude: bits("exclude")? },
    })
}

/// Every admitted pose with its cost, best first, by the rule alone.
fn by_hand(given: &Given, asked: &Asked) -> Vec<(f64, usize)> {
    let scale = scales_by_hand(given);
    let mut list: Vec<(f64, usize)> = (0..given.poses.len())
        .filter(|p| given.tags[*p] & DO_NOT_USE == 0)
        .filter(|p| {
            let (tags, f) = (given.tags[*p], asked.filter);
            let asked_for = match f.mode {
                Include::Any => f.include == 0 || tags & f.include != 0,
                Include::All => tags & f.include == f.include,
            };
            asked_for && tags & f.exclude == 0
        })
        .map(|p| {
            let cost = (0..asked.features.len())
                .map(|c| {
                    let d = (asked.features[c] - given.poses[p][c]) / scale[c].1;
                    asked.weights[c] * d * d
                })
                .sum::<f64>();
            (cost, p)
        })
        .collect();
    list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    list
}

/// Mean and population deviation of each column of the poses that are stored.
fn scales_by_hand(given: &Given) -> Vec<(f64, f64)> {
    let stored: Vec<&Vec<f64>> =
        given.poses.iter().zip(&given.tags).filter(|(_, t)| **t & DO_NOT_USE == 0).map(|(p, _)| p).collect();
    let n = stored.len().max(1) as f64;
    (0..given.widths.iter().sum())
        .map(|c| {
            let mean = stored.iter().map(|p| p[c]).sum::<f64>() / n;
            let variance = stored.iter().map(|p| (p[c] - mean).powi(2)).sum::<f64>() / n;
            let deviation = variance.sqrt();
            (mean, if deviation > 1e-7 * mean.abs() { deviation } else { 1.0 })
        })
        .collect()
}

/// Which given pose a row is.
fn pose_of(database: &MotionDatabase, row: u32) -> usize {
    let run = database.run_of(row);
    (run.first_pose + row - run.first_row) as usize
}

/// The best pose and its cost, the same by every method, or none.
fn search(database: &MotionDatabase, asked: &Asked) -> Result<Option<(usize, f64)>, String> {
    let features: Vec<f32> = asked.features.iter().map(|x| *x as f32).collect();
    let weights: Vec<f32> = asked.weights.iter().map(|x| *x as f32).collect();
    let query = Query {
        features: &features,
        weights: Weights::Columns(&weights),
        filter: asked.filter,
        ..Query::default()
    };
    let mut answers = Vec::new();
    for method in [Method::Plain, Method::Scan, Method::Tree] {
        let mut scratch = Scratch::new();
        let found = database.search_by(method, &query, 1, &mut scratch).map_err(|e| e.to_string())?;
        answers.push(found.first().map(|m| (pose_of(database, m.row), m.cost.to_bits())));
    }
    if answers.iter().any(|a| *a != answers[0]) {
        return Err(format!("plain, scan and tree differ: {answers:?}"));
    }
    Ok(answers[0].map(|(pose, cost)| (pose, f64::from(f32::from_bits(cost)))))
}

fn best(subject: &Subject, check: &Value) -> Result<(), String> {
    let input = input(subject)?;
    let given = given(input)?;
    let database = database(&given).map_err(|e| e.to_string())?;
    let asked = question(input, check, &given)?;
    let found = search(&database, &asked)?;
    let wanted = ["index", "pose", "row", "best"].iter().find_map(|k| check.get(k)).and_then(Value::as_u64);
    let wanted = wanted.ok_or("the check expects no index")? as usize;
    let Some((pose, cost)) = found else { return Err(format!("no pose matches, instead of {wanted}")) };
    if pose != wanted {
        return Err(format!("pose {pose} (cost {cost}) instead of {wanted}"));
    }
    for key in ["cost", "distance", "distance_squared", "distance2"] {
        if let Some(expected) = number(check, key) {
            let tol = number(check, "tol").unwrap_or(1e-5);
            let found = if key == "distance" && (cost - expected).abs() > tol { cost.sqrt() } else { cost };
            if (found - expected).abs() > tol {
                return Err(format!("{key} is {found} instead of {expected}"));
            }
        }
    }
    Ok(())
}

fn none(subject: &Subject, check: &Value) -> Result<(), String> {
    let input = input(subject)?;
    let given = given(input)?;
    let database = match database(&given) {
        Ok(database) => database,
        // Nothing is stored at all, which is said before anything can be asked.
        Err(error @ MatchError::NoRows(_)) => {
            return if error.to_string().contains("no row") { Ok(()) } else { Err(error.to_string()) };
        }
        Err(error) => return Err(error.to_string()),
    };
    match search(&database, &question(input, check, &given)?)? {
        None => Ok(()),
        Some((pose, _)) => Err(format!("pose {pose} instead of none")),
    }
}

fn scale(subject: &Subject, check: &Value) -> Result<(), String> {
    let input = input(subject)?;
    let given = given(input)?;
    let database = database(&given).map_err(|e| e.to_string())?;
    let tol = number(check, "tol").unwrap_or(1e-6);
    let feature = check.get("feature").or_else(|| check.get("column"));
    let only = match feature {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => {
            let at =
                given.names.iter().position(|n| n == name).ok_or_else(|| format!("no feature {name:?}"))?;
            Some(given.widths[..at].iter().sum::<usize>())
        }
        Some(number) => number.as_u64().map(|n| n as usize),
    };
    let columns: Vec<usize> = only.map_or_else(|| (0..database.columns()).collect(), |c| vec![c]);
    let mut compared = false;
    let mut compare = |what: &str, keys: &[&str], found: Vec<f64>| {
        let Some(wanted) = keys.iter().find_map(|k| check.get(*k)) else { return Ok(()) };
        let wanted = row(wanted).ok_or_else(|| format!("{what}: {wanted} is no row of numbers"))?;
        compared = true;
        let close = wanted.len() == found.len()
            && wanted.iter().zip(&found).all(|(a, b)| (a - b).abs() <= tol * a.abs().max(1.0));
        if close { Ok(()) } else { Err(format!("{what} is {found:?} instead of {wanted:?}")) }
    };
    let scales = database.scale();
    compare("mean", &["mean", "means", "offset"], columns.iter().map(|c| scales[*c].0).collect())?;
    compare(
        "scale",
        &["scale", "scales", "std", "stds", "deviation", "value", "values"],
        columns.iter().map(|c| scales[*c].1).collect(),
    )?;
    if let Some(rows) = ["normalised", "normalized", "poses", "rows", "scaled"]
        .iter()
        .find_map(|k| check.get(k))
        .and_then(Value::as_array)
    {
        for (at, wanted) in rows.iter().enumerate() {
            let wanted = row(wanted).ok_or("an expected pose is no row of numbers")?;
            let stored = (0..database.len() as u32).find(|r| pose_of(&database, *r) == at);
            let stored = stored.ok_or_else(|| format!("pose {at} is not stored"))?;
            let found: Vec<f64> =
                columns.iter().map(|c| f64::from(database.normalised(stored, *c))).collect();
            compared = true;
            if wanted.len() != found.len() || wanted.iter().zip(&found).any(|(a, b)| (a - b).abs() > tol) {
                return Err(format!("pose {at} is {found:?} instead of {wanted:?}"));
            }
        }
    }
    // Whatever is stated, no number may be infinite or undefined.
    for r in 0..database.len() as u32 {
        if let Some(c) = columns.iter().find(|c| !database.normalised(r, **c).is_finite()) {
            return Err(format!("row {r}, column {c} is not finite"));
        }
    }
    let hand = scales_by_hand(&given);
    for c in &columns {
        if (scales[*c].1 - hand[*c].1).abs() > 1e-5 * hand[*c].1 {
            return Err(format!("column {c} is scaled by {} instead of {}", scales[*c].1, hand[*c].1));
        }
        compared = true;
    }
    if compared { Ok(()) } else { Err("the check expects nothing that is understood".to_owned()) }
}

/// The costs of the `k` best rows by every method are those by hand.
fn same_best(
    database: &MotionDatabase,
    asked: &Asked,
    hand: &[(f64, usize)],
    k: usize,
) -> Result<(), String> {
    let features: Vec<f32> = asked.features.iter().map(|x| *x as f32).collect();
    let weights: Vec<f32> = asked.weights.iter().map(|x| *x as f32).collect();
    let query = Query {
        features: &features,
        weights: Weights::Columns(&weights),
        filter: asked.filter,
        ..Query::default()
    };
    for method in [Method::Plain, Method::Scan, Method::Tree] {
        let mut scratch = Scratch::new();
        let found = database.search_by(method, &query, k, &mut scratch).map_err(|e| e.to_string())?;
        if found.len() != k.min(hand.len()) {
            return Err(format!("{} rows instead of {}", found.len(), k.min(hand.len())));
        }
        for (i, (m, (cost, _))) in found.iter().zip(hand).enumerate() {
            if (f64::from(m.cost) - cost).abs() > 1e-5 * (1.0 + cost) {
                return Err(format!("the best but {i} costs {} instead of {cost}", m.cost));
            }
        }
    }
    Ok(())
}

fn equals_brute_force(subject: &Subject, check: &Value) -> Result<(), String> {
    let input = input(subject)?;
    let given = given(input)?;
    let database = database(&given).map_err(|e| e.to_string())?;
    let columns = database.columns();
    // The stated queries, else the poses themselves moved about at random.
    let stated = check.get("queries").or_else(|| input.get("queries"));
    let count =
        stated.and_then(Value::as_u64).or_else(|| number(check, "count").map(|n| n as u64)).unwrap_or(1000);
    let seed = number(check, "seed").unwrap_or(1.0) as u64;
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ seed;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut questions = Vec::new();
    if input.get("query").is_some() || check.get("query").is_some() {
        questions.push(question(input, check, &given)?);
    }
    if let Some(list) = stated.and_then(Value::as_array) {
        for one in list {
            let asked = if one.is_object() { one.clone() } else { serde_json::json!({ "query": one }) };
            questions.push(question(input, &asked, &given)?);
        }
    } else {
        let scale = scales_by_hand(&given);
        for _ in 0..count.min(100_000) {
            let near = &given.poses[(random() * given.poses.len() as f64) as usize];
            let weighted = random() < 0.5;
            questions.push(Asked {
                features: (0..columns).map(|c| near[c] + (random() - 0.5) * 2.0 * scale[c].1).collect(),
                weights: (0..columns)
                    .map(|_| {
                        if !weighted {
                            1.0
                        } else if random() < 0.3 {
                            0.0
                        } else {
                            random() * 4.0 + 0.01
                        }
                    })
                    .collect(),
                filter: if random() < 0.5 {
                    Filter::default()
                } else {
                    let bit = |r: f64| 1u32 << (r * 6.0) as u32;
                    Filter {
                        include: bit(random()) | bit(random()),
                        exclude: bit(random()),
                        ..Filter::default()
                    }
                },
            });
        }
    }
    for (number, asked) in questions.iter().enumerate() {
        let found = search(&database, asked)?;
        let hand = by_hand(&given, asked);
        if let Some(k) = check.get("k").and_then(Value::as_u64).filter(|k| *k > 1) {
            same_best(&database, asked, &hand, k as usize).map_err(|e| format!("query {number}: {e}"))?;
        }
        match (found, hand.first()) {
            (None, None) => {}
            (Some((pose, cost)), Some((least, _))) => {
                // The library adds in f32: poses whose costs differ by less may change places.
                let own = hand.iter().find(|(_, p)| *p == pose).map_or(f64::INFINITY, |(c, _)| *c);
                let room = 1e-5 * (1.0 + least);
                if (own - least).abs() > room || (cost - own).abs() > room {
                    return Err(format!("query {number}: pose {pose} at {cost}, by hand {:?}", hand[0]));
                }
            }
            (found, least) => return Err(format!("query {number}: {found:?}, by hand {least:?}")),
        }
    }
    Ok(())
}
