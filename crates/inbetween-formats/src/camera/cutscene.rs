//! Settlers cutscenes: XML events of which some are camera keys with a place, a place
//! looked at and a field of view, timed in game turns.
//!
//! Heights are along z; the game's lengths are centimetres. How long a turn takes is
//! the game's to know: [`CameraOptions::turn_s`], a tenth of a second unless told.
//! Read only.

use inbetween::camera::{CameraKey, Channel, LookAt};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::text::Place;
use super::{CameraFile, CameraFormat, CameraOptions, assumed, build, from_z_up, lost};
use crate::FormatError;

const UNIT: f64 = 0.01;

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let unit = options.unit.unwrap_or(UNIT);
    let mut reader = Reader::from_str(text);
    let mut events: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut field = String::new();
    let mut depth = 0_usize;
    loop {
        let event = reader.read_event().map_err(|error| {
            place.broken(format!("byte {}", reader.buffer_position()), "well-formed XML", error)
        })?;
        match event {
            Event::Eof => break,
            Event::Start(tag) => {
                depth += 1;
                let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
                if name == "event" {
                    let class = tag
                        .html_attributes()
                        .flatten()
                        .find(|a| a.key.as_ref() == b"classname")
                        .map(|a| String::from_utf8_lossy(&a.value).into_owned());
                    events.push((class.unwrap_or_default(), Vec::new()));
                }
                field = name;
            }
            Event::Text(value) => {
                let value = String::from_utf8_lossy(&value).trim().to_owned();
                if !value.is_empty()
                    && let Some((_, fields)) = events.last_mut()
                {
                    fields.push((field.clone(), value));
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if depth > 0 {
        return Err(place.broken("the end", "every tag closed", format!("{depth} still open")));
    }
    let mut keys = Vec::new();
    let mut others = 0;
    for (i, (class, fields)) in events.iter().enumerate() {
        if !class.ends_with("CCutsceneEventCamera") {
            others += 1;
            continue;
        }
        let number = |name: &str| {
            let at = format!("event {i}, {name}");
            let text = fields.iter().find(|(n, _)| n == name);
            let (_, text) = text.ok_or_else(|| place.broken(&at, "a number", "nothing"))?;
            place.number(text, &at)
        };
        let eye =
            from_z_up([number("PositionX")?, number("PositionY")?, number("PositionZ")?].map(|v| v * unit));
        let target =
            from_z_up([number("LookAtX")?, number("LookAtY")?, number("LookAtZ")?].map(|v| v * unit));
        let mut values = eye.to_vec();
        values.extend(target);
        values.push(number("FOV")?.to_radians());
        keys.push(CameraKey::new(number("Turn")? * options.turn_s, values));
    }
    let mut notes = vec![
        assumed("", format!("a turn is taken as {} s and a unit as {unit} m", options.turn_s)),
        assumed("", "heights are taken to be along z, in a right-handed world"),
    ];
    if others > 0 {
        notes.push(lost("", format!("{others} events that are no camera keys are not kept")));
    }
    let names = ["x", "y", "z", "target.x", "target.y", "target.z", "fov"];
    let mut path = build(place, names.map(Channel::new).to_vec(), keys)?;
    path.set_look_at(Some(LookAt::Channels)).map_err(|e| place.broken("LookAt", "places to look at", e))?;
    Ok(CameraFile { format: CameraFormat::Cutscene, path, rate: None, notes })
}
