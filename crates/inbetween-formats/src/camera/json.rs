//! The project's own camera paths: JSON that can be written by hand and keeps all a
//! path is made of. `docs/camera.md` describes it.
//!
//! Lengths are metres (or `unit`), angles degrees unless `"angles": "radians"`; what
//! this program writes is in radians, so that reading it gives the same bits.

use inbetween::camera::{
    CameraKey, CameraPath, Channel, LookAt, MovingTarget, Overshoot, Role, Smoothing, Unwrap,
};
use serde_json::{Map, Value, json};

use super::text::{Place, described};
use super::{CameraFile, CameraFormat, CameraOptions, Shots};
use crate::{FormatError, Note};

/// What such a file says it is.
pub(super) const MAGIC: &str = "\"inbetween-camera\"";

const FORMAT: &str = "inbetween-camera";
const VERSION: u64 = 1;

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let document = place.json(text)?;
    let root =
        document.as_object().ok_or_else(|| place.broken("the file", "an object", described(&document)))?;
    known(
        place,
        "the file",
        root,
        &[
            "format",
            "version",
            "angles",
            "rate",
            "closing_gap",
            "keys",
            "smoothing",
            "subject",
            "look_at",
            "level",
        ],
    )?;
    if root.get("format").and_then(Value::as_str) != Some(FORMAT) {
        let found = root.get("format").map_or("nothing".to_owned(), described);
        return Err(place.broken("format", format!("{FORMAT:?}"), found));
    }
    match root.get("version") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        other => {
            let found = other.map_or("nothing".to_owned(), described);
            let advice = "a newer version of this program may read it";
            return Err(place.broken_with("version", VERSION, found, advice));
        }
    }
    let angle = match root.get("angles").map(|v| (v, v.as_str())) {
        None | Some((_, Some("degrees"))) => 1_f64.to_radians(),
        Some((_, Some("radians"))) => 1.0,
        Some((value, _)) => {
            return Err(place.broken("angles", "\"degrees\" or \"radians\"", described(value)));
        }
    };
    let reader = PathReader { place, unit: options.unit.unwrap_or(1.0), angle };
    let list = root.get("keys").and_then(Value::as_array);
    let list = list.ok_or_else(|| {
        place.broken("keys", "a list of keys", root.get("keys").map_or("nothing".to_owned(), described))
    })?;
    let mut channels: Vec<Channel> = Vec::new();
    let mut keys = Vec::with_capacity(list.len());
    for (i, key) in list.iter().enumerate() {
        keys.push(reader.key(i, key, &mut channels)?);
    }
    let mut path = super::build(place, channels, keys)?;
    let refused = |at: &str, error: inbetween::camera::CameraError| {
        place.broken(at, "a setting that fits the path", error)
    };
    if let Some(gap) = given(root, "closing_gap") {
        path.close(Some(place.json_number(gap, "closing_gap")?)).map_err(|e| refused("closing_gap", e))?;
    }
    if let Some(smoothing) = given(root, "smoothing") {
        let smoothing = reader.smoothing(smoothing)?;
        for (name, _) in smoothing.amounts.iter().filter(|(name, _)| name != "rotation") {
            path.channel(name).map_err(|e| refused("smoothing.amounts", e))?;
        }
        path.set_smoothing(smoothing).map_err(|e| refused("smoothing", e))?;
    }
    if let Some(subject) = given(root, "subject") {
        path.follow(Some(reader.target("subject", subject)?));
    }
    if let Some(look_at) = given(root, "look_at") {
        let look = match look_at {
            Value::String(text) if text == "target" => LookAt::Channels,
            Value::Object(map) if map.contains_key("position") => {
                known(place, "look_at", map, &["position"])?;
                let at = place.json_numbers::<3>(&map["position"], "look_at.position")?;
                LookAt::Place(at.map(|v| v * reader.unit))
            }
            Value::Object(_) => LookAt::Moving(Box::new(reader.target("look_at", look_at)?)),
            other => {
                let expected = "\"target\", an object with a position, or one with keys";
                return Err(place.broken("look_at", expected, described(other)));
            }
        };
        path.set_look_at(Some(look)).map_err(|e| refused("look_at", e))?;
    }
    path.set_level(flag(place, root, "level")?.unwrap_or(false));
    let rate = given(root, "rate").map(|v| place.json_number(v, "rate")).transpose()?;
    Ok(CameraFile { format: CameraFormat::Json, path, rate, notes: Vec::new() })
}

/// An entry that is there and not null.
fn given<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get(name).filter(|v| !v.is_null())
}

fn flag(place: &Place, map: &Map<String, Value>, name: &str) -> Result<Option<bool>, FormatError> {
    given(map, name)
        .map(|v| v.as_bool().ok_or_else(|| place.broken(name, "true or false", described(v))))
        .transpose()
}

/// Refuses entries nobody reads: a typing error must not pass in silence.
fn known(place: &Place, at: &str, map: &Map<String, Value>, names: &[&str]) -> Result<(), FormatError> {
    match map.keys().find(|k| !names.contains(&k.as_str())) {
        None => Ok(()),
        Some(other) => Err(place.broken_with(
            at,
            format!("only {}", names.join(", ")),
            format!("{other:?}"),
            "correct its name or take it out",
        )),
    }
}

struct PathReader<'a> {
    place: &'a Place<'a>,
    unit: f64,
    angle: f64,
}

impl PathReader<'_> {
    fn key(&self, i: usize, value: &Value, channels: &mut Vec<Channel>) -> Result<CameraKey, FormatError> {
        let place = self.place;
        let at = format!("keys[{i}]");
        let key = value.as_object().ok_or_else(|| place.broken(&at, "an object", described(value)))?;
        known(
            place,
            &at,
            key,
            &[
                "time", "mode", "straight", "hold", "on_curve", "position", "yaw", "pitch", "roll",
                "rotation", "fov", "target", "channels",
            ],
        )?;
        let time = key.get("time").unwrap_or(&Value::Null);
        let time = place.json_number(time, format!("{at}.time"))?;
        let mut named: Vec<(String, f64)> = Vec::new();
        for (entry, names) in
            [("position", ["x", "y", "z"]), ("target", ["target.x", "target.y", "target.z"])]
        {
            if let Some(value) = given(key, entry) {
                let numbers = place.json_numbers::<3>(value, format!("{at}.{entry}"))?;
                named.extend(names.iter().zip(numbers).map(|(n, v)| ((*n).to_owned(), v * self.unit)));
            }
        }
        for name in ["yaw", "pitch", "roll", "fov"] {
            if let Some(value) = given(key, name) {
                named.push((name.to_owned(), place.json_number(value, format!("{at}.{name}"))? * self.angle));
            }
        }
        if let Some(further) = given(key, "channels") {
            let map = further.as_object();
            let map =
                map.ok_or_else(|| place.broken(format!("{at}.channels"), "an object", described(further)))?;
            for (name, value) in map {
                if Role::of(name) != Role::Other {
                    let advice = "write position, target, yaw, pitch, roll and fov beside time";
                    return Err(place.broken_with(
                        format!("{at}.channels"),
                        "further channels",
                        format!("{name:?}"),
                        advice,
                    ));
                }
                named.push((name.clone(), place.json_number(value, format!("{at}.channels.{name}"))?));
            }
        }
        if i == 0 {
            channels.extend(named.iter().map(|(name, _)| Channel::new(name.clone())));
        }
        let mut values = Vec::with_capacity(channels.len());
        for channel in channels.iter() {
            let found = named.iter().find(|(name, _)| *name == channel.name);
            let (_, value) = found
                .ok_or_else(|| place.broken(&at, format!("{} as in the first key", channel.name), "none"))?;
            values.push(*value);
        }
        if let Some((name, _)) = named.iter().find(|(name, _)| !channels.iter().any(|c| c.name == *name)) {
            return Err(place.broken(&at, "what the first key has", format!("also {name}")));
        }
        let rotation = given(key, "rotation")
            .map(|v| place.json_numbers::<4>(v, format!("{at}.rotation")))
            .transpose()?;
        if rotation == Some([0.0; 4]) {
            return Err(place.broken(format!("{at}.rotation"), "a quaternion that is not zero", "0 0 0 0"));
        }
        let mut made = CameraKey { rotation, ..CameraKey::new(time, values) };
        if let Some(mode) = given(key, "mode") {
            let mode =
                mode.as_str().ok_or_else(|| place.broken(format!("{at}.mode"), "a name", described(mode)))?;
            made.mode = mode.into();
        }
        made.straight = flag(place, key, "straight")?.unwrap_or(false);
        made.hold = flag(place, key, "hold")?.unwrap_or(false);
        made.on_curve = flag(place, key, "on_curve")?.unwrap_or(false);
        Ok(made)
    }

    fn smoothing(&self, value: &Value) -> Result<Smoothing, FormatError> {
        let place = self.place;
        let map =
            value.as_object().ok_or_else(|| place.broken("smoothing", "an object", described(value)))?;
        known(
            place,
            "smoothing",
            map,
            &["on", "amount", "amounts", "modes", "brake", "unwrap", "overshoot"],
        )?;
        let on = flag(place, map, "on")?.unwrap_or(true);
        let mut smoothing = Smoothing { on, ..Smoothing::default() };
        if let Some(amount) = given(map, "amount") {
            smoothing.amount = place.json_number(amount, "smoothing.amount")?;
        }
        if let Some(amounts) = given(map, "amounts") {
            let list = amounts.as_object();
            let list =
                list.ok_or_else(|| place.broken("smoothing.amounts", "an object", described(amounts)))?;
            for (name, amount) in list {
                let amount = place.json_number(amount, format!("smoothing.amounts.{name}"))?;
                smoothing.amounts.push((name.clone(), amount));
            }
        }
        if let Some(modes) = given(map, "modes") {
            let names =
                modes.as_array().and_then(|l| l.iter().map(|m| m.as_str().map(str::to_owned)).collect());
            smoothing.modes =
                names.ok_or_else(|| place.broken("smoothing.modes", "a list of names", described(modes)))?;
        }
        smoothing.brake = flag(place, map, "brake")?.unwrap_or(true);
        smoothing.unwrap = match given(map, "unwrap").map(|v| (v, v.as_str())) {
            None | Some((_, Some("shortest"))) => Unwrap::Shortest,
            Some((_, Some("as_authored"))) => Unwrap::AsAuthored,
            Some((value, _)) => {
                return Err(place.broken(
                    "smoothing.unwrap",
                    "\"shortest\" or \"as_authored\"",
                    described(value),
                ));
            }
        };
        smoothing.overshoot = match given(map, "overshoot").map(|v| (v, v.as_str())) {
            None | Some((_, Some("allow"))) => Overshoot::Allow,
            Some((_, Some("prevent"))) => Overshoot::Prevent,
            Some((value, _)) => {
                return Err(place.broken(
                    "smoothing.overshoot",
                    "\"allow\" or \"prevent\"",
                    described(value),
                ));
            }
        };
        Ok(smoothing)
    }

    fn target(&self, at: &str, value: &Value) -> Result<MovingTarget, FormatError> {
        let place = self.place;
        let map =
            value.as_object().ok_or_else(|| place.broken(at, "an object with keys", described(value)))?;
        known(place, at, map, &["keys", "smooth"])?;
        let list = map.get("keys").and_then(Value::as_array);
        let list = list.ok_or_else(|| place.broken(at, "a list of keys", "none"))?;
        let (mut times, mut places, mut turns) = (Vec::new(), Vec::new(), Vec::new());
        for (i, key) in list.iter().enumerate() {
            let here = format!("{at}.keys[{i}]");
            let null = Value::Null;
            let get = |name: &str| key.get(name).unwrap_or(&null);
            times.push(place.json_number(get("time"), format!("{here}.time"))?);
            let position = place.json_numbers::<3>(get("position"), format!("{here}.position"))?;
            places.push(position.map(|v| v * self.unit));
            if !get("rotation").is_null() {
                turns.push(place.json_numbers::<4>(get("rotation"), format!("{here}.rotation"))?);
            }
        }
        if !turns.is_empty() && turns.len() != times.len() {
            return Err(place.broken(
                at,
                "a rotation at every key or at none",
                format!("{} of {}", turns.len(), times.len()),
            ));
        }
        let refused = |error| place.broken(at, "keys something can move through", error);
        let target = MovingTarget::new(&times, &places, flag(place, map, "smooth")?.unwrap_or(true))
            .map_err(refused)?;
        if turns.is_empty() { Ok(target) } else { target.turning(&times, &turns).map_err(refused) }
    }
}

pub(super) fn write(path: &CameraPath) -> String {
    let mut root = Map::new();
    root.insert("format".into(), json!(FORMAT));
    root.insert("version".into(), json!(VERSION));
    root.insert("angles".into(), json!("radians"));
    if let Some(gap) = path.closing_gap() {
        root.insert("closing_gap".into(), json!(gap));
    }
    let smoothing = path.smoothing();
    let amounts: Map<String, Value> = smoothing.amounts.iter().map(|(n, a)| (n.clone(), json!(a))).collect();
    root.insert(
        "smoothing".into(),
        json!({
            "on": smoothing.on,
            "amount": smoothing.amount,
            "amounts": amounts,
            "modes": smoothing.modes,
            "brake": smoothing.brake,
            "unwrap": if smoothing.unwrap == Unwrap::Shortest { "shortest" } else { "as_authored" },
            "overshoot": if smoothing.overshoot == Overshoot::Allow { "allow" } else { "prevent" },
        }),
    );
    if let Some(subject) = path.subject() {
        root.insert("subject".into(), target(subject));
    }
    match path.look_at() {
        None => {}
        Some(LookAt::Place(place)) => drop(root.insert("look_at".into(), json!({"position": place}))),
        Some(LookAt::Moving(moving)) => drop(root.insert("look_at".into(), target(moving))),
        Some(LookAt::Channels) => drop(root.insert("look_at".into(), json!("target"))),
    }
    if path.is_level() {
        root.insert("level".into(), json!(true));
    }
    let keys: Vec<Value> = path.keys().iter().map(|key| key_of(path, key)).collect();
    root.insert("keys".into(), Value::Array(keys));
    document(&root)
}

fn key_of(path: &CameraPath, key: &CameraKey) -> Value {
    let mut out = Map::new();
    out.insert("time".into(), json!(key.time));
    if &*key.mode != inbetween::camera::FREE {
        out.insert("mode".into(), json!(&*key.mode));
    }
    if key.straight {
        out.insert("straight".into(), json!(true));
    }
    if key.hold {
        out.insert("hold".into(), json!(true));
    }
    if key.on_curve {
        out.insert("on_curve".into(), json!(true));
    }
    let triple = |roles: [Role; 3]| -> Option<Vec<f64>> {
        roles.iter().map(|&role| path.role(role).map(|k| key.values[k])).collect()
    };
    if let Some(place) = triple([Role::X, Role::Y, Role::Z]) {
        out.insert("position".into(), json!(place));
    }
    if let Some(rotation) = key.rotation {
        out.insert("rotation".into(), json!(rotation));
    }
    for (role, name) in [(Role::Yaw, "yaw"), (Role::Pitch, "pitch"), (Role::Roll, "roll"), (Role::Fov, "fov")]
    {
        if let Some(k) = path.role(role) {
            out.insert(name.into(), json!(key.values[k] * path.channels()[k].radians_per_unit()));
        }
    }
    if let Some(place) = triple([Role::TargetX, Role::TargetY, Role::TargetZ]) {
        out.insert("target".into(), json!(place));
    }
    let further: Map<String, Value> = path
        .channels()
        .iter()
        .zip(&key.values)
        .filter(|(channel, _)| channel.role == Role::Other)
        .map(|(channel, value)| (channel.name.clone(), json!(value)))
        .collect();
    if !further.is_empty() {
        out.insert("channels".into(), Value::Object(further));
    }
    Value::Object(out)
}

fn target(target: &MovingTarget) -> Value {
    let (times, places) = target.place_keys();
    let turns = target.rotation_keys().filter(|(at, _)| *at == times);
    let keys: Vec<Value> = (0..times.len())
        .map(|i| match turns {
            Some((_, turns)) => json!({"time": times[i], "position": places[i], "rotation": turns[i]}),
            None => json!({"time": times[i], "position": places[i]}),
        })
        .collect();
    json!({"smooth": target.is_smooth(), "keys": keys})
}

pub(super) fn write_shots(shots: &Shots) -> (String, Vec<Note>) {
    let mut root = Map::new();
    root.insert("format".into(), json!(FORMAT));
    root.insert("version".into(), json!(VERSION));
    root.insert("angles".into(), json!("radians"));
    if let Some(rate) = shots.rate {
        root.insert("rate".into(), json!(rate));
    }
    if let Some(gap) = shots.closing_gap {
        root.insert("closing_gap".into(), json!(gap));
    }
    let with_fov = shots.shots.iter().all(|s| s.pose.fov.is_some());
    let keys: Vec<Value> = shots
        .shots
        .iter()
        .map(|shot| {
            let mut key = json!({
                "time": shot.time,
                "position": shot.pose.position,
                "yaw": shot.angles.yaw,
                "pitch": shot.angles.pitch,
                "roll": shot.angles.roll,
            });
            if shot.mode != inbetween::camera::FREE {
                key["mode"] = json!(shot.mode);
            }
            if with_fov {
                key["fov"] = json!(shot.pose.fov);
            }
            if !shots.extra.is_empty() {
                let further: Map<String, Value> =
                    shots.extra.iter().cloned().zip(shot.extra.iter().map(|v| json!(v))).collect();
                key["channels"] = Value::Object(further);
            }
            key
        })
        .collect();
    root.insert("keys".into(), Value::Array(keys));
    (document(&root), Vec::new())
}

/// The document with a key a line: short enough to read, simple enough to compare.
fn document(root: &Map<String, Value>) -> String {
    let mut out = String::from("{\n");
    for (i, (name, value)) in root.iter().enumerate() {
        let comma = if i + 1 < root.len() { "," } else { "" };
        match value {
            Value::Array(list) if !list.is_empty() => {
                let rows: Vec<String> = list.iter().map(|v| format!("    {v}")).collect();
                out.push_str(&format!("  {:?}: [\n{}\n  ]{comma}\n", name, rows.join(",\n")));
            }
            other => out.push_str(&format!("  {name:?}: {other}{comma}\n")),
        }
    }
    out.push_str("}\n");
    out
}
