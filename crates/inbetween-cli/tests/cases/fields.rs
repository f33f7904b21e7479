//! Which fields of a check, an op's `args` and a description are understood.
//!
//! A field that nothing here reads would change what a check asks without anyone noticing, and the
//! check could pass without having been made. So such a field is named and the check is "not
//! built". Words for the reader ([`WORDS`]) may stand anywhere.

use serde_json::{Map, Value};

use crate::Verdict;

/// Fields that only explain.
const WORDS: &[&str] =
    &["op", "id", "why", "note", "notes", "what", "expect", "reason", "comment", "no_crash"];

/// A clip.
const CLIP: &[&str] = &["clip"];
/// A track or a property of a node.
const TRACK: &[&str] = &["clip", "node", "node_index", "target", "path", "property"];
/// A value that is found and its tolerance.
const VALUE: &[&str] = &["value", "tol", "either_sign", "unit", "min", "max"];
/// A number that is found.
const NUMBER: &[&str] = &["value", "value_in", "tol", "min", "max"];
/// Words in a message.
const MENTIONS: &[&str] = &["mentions_any", "mentions_all"];
/// How large an error an op allows.
const BOUND: &[&str] = &["args", "then", "max_error", "max_error_deg", "metric", "shell", "loop"];
/// How a camera path is smoothed.
const CAMERA: &[&str] = &[
    "path",
    "amount",
    "amounts",
    "unwrap",
    "mode",
    "modes",
    "key_modes",
    "brake",
    "closed",
    "loop",
    "periodic",
    "closing_gap",
    "args",
];
/// A motion of a root.
const ROOT: &[&str] = &[
    "clip",
    "node",
    "node_index",
    "axes",
    "loop",
    "wrap",
    "from",
    "to",
    "frame",
    "translation",
    "rotation",
    "tol",
    "either_sign",
];
/// What is asked of a database of poses.
const QUERY: &[&str] = &["args", "query", "weights", "include", "include_mode", "exclude"];

/// What each op reads.
const FIELDS: &[(&str, &[&[&str]])] = &[
    ("sample", &[TRACK, VALUE, &["t", "time"]]),
    ("sample_looped", &[TRACK, VALUE, &["t", "time"]]),
    ("world_position", &[TRACK, VALUE, &["t", "time"]]),
    ("end_site_position", &[TRACK, VALUE, &["t", "time", "parent", "index"]]),
    ("world_range", &[TRACK, VALUE, &["t0", "t1", "axis", "coordinate", "coord", "component", "at_most"]]),
    ("loop_gap", &[TRACK, VALUE, &["deg"]]),
    ("loop_gap_report", &[TRACK, VALUE, &["gap", "deg"]]),
    ("values_only_from", &[TRACK, &["values", "tol", "unit"]]),
    ("all_finite", &[CLIP, &["space"]]),
    ("max_error_vs_source", &[TRACK, &["value", "deg", "metric", "shell", "unit", "times"]]),
    ("duration", &[CLIP, NUMBER]),
    ("loop_period", &[CLIP, NUMBER]),
    ("time_range", &[CLIP, &["start", "end", "tol"]]),
    ("rate_hz", &[CLIP, NUMBER, &["num", "den"]]),
    ("frame_count", &[CLIP, NUMBER]),
    ("clip_count", &[NUMBER]),
    ("clip_name", &[CLIP, &["value"]]),
    ("track_count", &[CLIP, NUMBER, &["node", "node_index"]]),
    ("node_count", &[NUMBER]),
    ("key_count", &[TRACK, NUMBER]),
    ("keys_at_most", &[TRACK, &["value", "max"]]),
    ("max_gap_deg", &[TRACK, &["value"]]),
    ("track_present", &[TRACK, &["value"]]),
    ("not_animated", &[TRACK]),
    ("interpolation", &[TRACK, &["value"]]),
    ("times_strictly_increasing", &[CLIP]),
    ("total_keys_below_source", &[]),
    ("file_smaller_than_source", &[]),
    ("file_not_larger_than_source", &[]),
    ("report_mentions", &[&["any", "mentions_any", "node", "with_error", "args"]]),
    ("load_error", &[MENTIONS]),
    ("load_error_or_skip_track", &[MENTIONS]),
    ("diagnostic", &[MENTIONS]),
    ("limits", &[&["seconds", "rss_mb"]]),
    ("clip_lookup_ambiguous", &[MENTIONS, &["name", "clip", "value"]]),
    ("play_then", &[&["first", "then", "node", "node_index", "path", "unit", "value", "tol", "either_sign"]]),
    ("play_steps", &[TRACK, VALUE, &["loop", "wrap", "dt", "steps"]]),
    ("eval_layers", &[&["set", "t", "eval_time", "values", "tol", "either_sign"]]),
    ("eval_layers_same_for_all_orders", &[&["set", "t", "eval_time", "values", "tol", "either_sign"]]),
    ("root_motion", &[ROOT]),
    ("root_motion_steps", &[ROOT, &["start", "dt", "step", "steps"]]),
    ("pose_root", &[ROOT, &["t", "time"]]),
    ("camera", &[CAMERA, &["t", "values", "tol", "modulo"]]),
    ("camera_mode", &[CAMERA, &["t", "values", "tol", "modulo"]]),
    ("camera_mode_range", &[CAMERA, &["channel", "t0", "t1", "min", "max", "tol"]]),
    (
        "camera_continuity",
        &[
            CAMERA,
            &[
                "channel",
                "channels",
                "t",
                "times",
                "at",
                "key",
                "keys",
                "at_key",
                "order",
                "orders",
                "derivative",
                "derivatives",
                "of",
                "tol",
                "max_jump",
                "value",
                "relative",
            ],
        ],
    ),
    ("camera_end_curvature", &[CAMERA, &["channel", "channels", "t", "times", "at", "end", "value", "tol"]]),
    (
        "camera_speed_below",
        &[
            CAMERA,
            &[
                "channel",
                "channels",
                "t0",
                "t1",
                "deg_per_s",
                "rad_per_s",
                "m_per_s",
                "units_per_s",
                "per_s",
                "speed",
                "max",
                "value",
            ],
        ],
    ),
    (
        "camera_rotation",
        &[
            CAMERA,
            &[
                "t",
                "value",
                "rotation",
                "quaternion",
                "quat",
                "values",
                "tol",
                "tol_deg",
                "deg",
                "either_sign",
            ],
        ],
    ),
    ("camera_angular_speed_below", &[CAMERA, &["t0", "t1", "deg_per_s", "rad_per_s", "max", "value"]]),
    ("overshoot_report", &[CAMERA, &["channel", "segment", "value", "tol", "at", "at_tol", "none"]]),
    ("path_error", &[CAMERA, MENTIONS]),
    (
        "trajectory",
        &[&[
            "args",
            "clip",
            "ends",
            "t",
            "ahead_s",
            "offsets_s",
            "offsets",
            "times_s",
            "frame",
            "positions",
            "values",
            "facings",
            "directions",
            "forward",
            "tol",
        ]],
    ),
    (
        "match_scale",
        &[&[
            "feature",
            "column",
            "mean",
            "means",
            "offset",
            "scale",
            "scales",
            "std",
            "stds",
            "deviation",
            "value",
            "values",
            "normalised",
            "normalized",
            "poses",
            "rows",
            "scaled",
            "tol",
        ]],
    ),
    (
        "match_best",
        &[
            QUERY,
            &["index", "pose", "row", "best", "cost", "distance", "distance_squared", "distance2", "tol"],
        ],
    ),
    (
        "match_best_weighted",
        &[
            QUERY,
            &["index", "pose", "row", "best", "cost", "distance", "distance_squared", "distance2", "tol"],
        ],
    ),
    ("match_none", &[QUERY]),
    ("match_equals_brute_force", &[QUERY, &["queries", "count", "seed"]]),
    ("diff", &[&["other", "shell", "clip", "worst", "worst_track", "same_tracks"]]),
    ("ci_check", &[&["other", "shell", "limit", "max_error", "exit_code", "message_mentions"]]),
    ("reduce", &[BOUND]),
    ("compress", &[BOUND]),
    ("optimize_default", &[&["args", "then"]]),
    ("cut", &[CLIP, &["args", "then", "start", "end"]]),
    ("resample", &[CLIP, &["args", "then", "rate_hz", "rate", "fps"]]),
    ("rebase_to_zero", &[CLIP, &["args", "then"]]),
    ("close_loop", &[CLIP, &["args", "then", "step", "step_s"]]),
    ("round_trip", &[&["args", "then", "format", "to"]]),
    ("make_additive", &[&["args", "then"]]),
];

/// Further fields of some ops.
const MORE: &[(&str, &[&str])] = &[
    ("camera_continuity", &["at_keys", "eps", "h", "step"]),
    ("match_scale", &["finite"]),
    ("match_equals_brute_force", &["k"]),
    ("root_motion", &["value"]),
    ("root_motion_steps", &["value", "speed"]),
    ("pose_root", &["value"]),
    ("play_steps", &["speed"]),
    ("loop_gap_report", &["mentions", "mentions_any", "mentions_all"]),
    ("clip_lookup_ambiguous", &["count"]),
    ("round_trip", &["via"]),
    ("reduce", &["drop_at_rest", "keys"]),
];

/// Fields of `args` that are not also fields of the op itself.
const ARGUMENTS: &[(&str, &[&str])] = &[("make_additive", &["reference", "additive_reference"])];

/// Named values of fields whose meaning is fixed: another value asks for something else.
const FIXED: &[(&str, &[&str])] = &[
    ("unit", &["file", "m"]),
    ("times", &["keys and midpoints"]),
    ("space", &["world", "local"]),
    ("metric", &["world", "local", "track"]),
    ("unwrap", &["shortest", "keep_turns", "as_authored", "none"]),
    ("include_mode", &["any", "all"]),
    ("angles_in", &["degrees", "deg", "radians", "rad"]),
    ("quaternion_order", &["xyzw"]),
];

/// Says which field of a check is not understood, if there is one.
pub fn unknown(op: &str, check: &Value) -> Option<Verdict> {
    let (_, lists) = FIELDS.iter().find(|(name, _)| *name == op)?;
    let more = MORE.iter().find(|(name, _)| *name == op).map_or(&[][..], |(_, list)| list);
    let known = |key: &str| more.contains(&key) || lists.iter().any(|list| list.contains(&key));
    let map = check.as_object()?;
    if let Some(key) = map.keys().find(|k| !known(k) && !WORDS.contains(&k.as_str())) {
        return Some(not_built(op, key, &map[key]));
    }
    if let Some(args) = map.get("args").and_then(Value::as_object) {
        let own = ARGUMENTS.iter().find(|(name, _)| *name == op).map_or(&[][..], |(_, list)| list);
        let taken = |key: &str| own.contains(&key) || (known(key) && !["args", "then"].contains(&key));
        if let Some(key) = args.keys().find(|k| !taken(k) && !WORDS.contains(&k.as_str())) {
            return Some(not_built(op, &format!("args.{key}"), &args[key]));
        }
        if let Some(verdict) = other_value(op, args) {
            return Some(verdict);
        }
    }
    other_value(op, map)
}

/// A field with one of a few words in it has another one.
fn other_value(op: &str, map: &Map<String, Value>) -> Option<Verdict> {
    FIXED.iter().find_map(|(key, values)| {
        let found = map.get(*key)?;
        let word = found.as_str()?;
        (!values.contains(&word)).then(|| not_built(op, key, found))
    })
}

fn not_built(op: &str, key: &str, value: &Value) -> Verdict {
    Verdict::NotBuilt(format!("{op} does not know the field {key}: {value}"))
}

/// Fields of a description that nothing reads.
///
/// # Errors
/// The first one that is neither in `known` nor for the reader.
pub fn only(what: &str, described: &Value, known: &[&str]) -> Result<(), String> {
    let Some(map) = described.as_object() else { return Ok(()) };
    let other = map.keys().find(|k| !known.contains(&k.as_str()) && !WORDS.contains(&k.as_str()));
    if let Some(key) = other {
        return Err(format!("{what} has a field that is not understood: {key}: {}", map[key]));
    }
    match other_value(what, map) {
        Some(Verdict::NotBuilt(why)) => Err(why),
        _ => Ok(()),
    }
}
