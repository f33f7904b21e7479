//! Which property a JSON pointer of `KHR_animation_pointer` names, and what it is at rest.
//!
//! Node transforms, weights and visibility become the same properties that plain channels drive.
//! Cameras and lights get the names used for them in every format (`camera.yfov`,
//! `light.intensity`), on the node that carries them where it is one alone. Everything else keeps
//! the pointer as its name. The pointer itself always stays in the binding.

use inbetween::Property;
use serde_json::Value;

use super::container::Document;

/// What a pointer names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) property: Property,
    /// The node it belongs to, if it belongs to one.
    pub(super) node: Option<usize>,
    /// Name of the node, camera, light, material, …; empty where it has none.
    pub(super) target: String,
}

/// The steps of a pointer, `~1` and `~0` undone.
fn steps(pointer: &str) -> Option<Vec<String>> {
    let rest = pointer.strip_prefix('/')?;
    Some(rest.split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect())
}

/// What `pointer` names in the document, `None` if it is no pointer or its object is not there.
pub(super) fn resolve(document: &Document, pointer: &str) -> Option<Named> {
    let steps = steps(pointer)?;
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let name_of = |value: &Value| value.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    let item = |list: &str, index: &str| document.list(list).get(index.parse::<usize>().ok()?);
    let other = |target: String| Named { property: Property::Other(pointer.to_owned()), node: None, target };
    Some(match steps[..] {
        ["nodes", index, ref path @ ..] => {
            let node = item("nodes", index)?;
            let property = match path {
                ["translation"] => Property::Translation,
                ["rotation"] => Property::Rotation,
                ["scale"] => Property::Scale,
                ["weights"] => Property::Weights,
                ["extensions", "KHR_node_visibility", "visible"] => Property::Visible,
                _ => Property::Other(pointer.to_owned()),
            };
            Named { property, node: index.parse().ok(), target: name_of(node) }
        }
        ["cameras", index, "perspective" | "orthographic", name] => {
            let camera = item("cameras", index)?;
            let index: u64 = index.parse().ok()?;
            let node = only_node(document, |n| n.get("camera").and_then(Value::as_u64) == Some(index));
            carried(document, node, camera, format!("camera.{name}"))
        }
        ["extensions", "KHR_lights_punctual", "lights", index, ref path @ ..] if !path.is_empty() => {
            let light = light(document, index.parse().ok()?)?;
            let index: u64 = index.parse().ok()?;
            let node = only_node(document, |n| node_light(n) == Some(index));
            carried(document, node, light, format!("light.{}", path.join(".")))
        }
        [list, index, _, ..] => match item(list, index) {
            Some(value) => other(name_of(value)),
            // A list within an extension, or something this program has not heard of.
            None if document.json.pointer(pointer).is_some() || list == "extensions" => other(String::new()),
            None => return None,
        },
        _ => other(String::new()),
    })
}

fn carried(document: &Document, node: Option<usize>, object: &Value, property: String) -> Named {
    let named = node.map_or(object, |n| &document.list("nodes")[n]);
    let target = named.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    Named { property: Property::Other(property), node, target }
}

/// The pointer to a property of the camera or light that a node carries, the other way round;
/// `None` if the node carries none, or the property is neither's.
pub(super) fn of_carried(json: &Value, node: usize, property: &str) -> Option<String> {
    let node = json.get("nodes")?.get(node)?;
    if let Some(name) = property.strip_prefix("camera.") {
        let index = node.get("camera")?.as_u64()?;
        let kind = json.get("cameras")?.get(index as usize)?.get("type")?.as_str()?;
        let known: &[&str] = match kind {
            "perspective" => &["yfov", "aspectRatio", "znear", "zfar"],
            _ => &["xmag", "ymag", "znear", "zfar"],
        };
        return known.contains(&name).then(|| format!("/cameras/{index}/{kind}/{name}"));
    }
    let name = property.strip_prefix("light.")?;
    let index = node_light(node)?;
    let known = ["color", "intensity", "range", "spot.innerConeAngle", "spot.outerConeAngle"];
    let path = name.replace('.', "/");
    known.contains(&name).then(|| format!("/extensions/KHR_lights_punctual/lights/{index}/{path}"))
}

/// The light of a node.
pub(super) fn node_light(node: &Value) -> Option<u64> {
    node.get("extensions")?.get("KHR_lights_punctual")?.get("light")?.as_u64()
}

fn light(document: &Document, index: usize) -> Option<&Value> {
    document.json.pointer("/extensions/KHR_lights_punctual/lights")?.get(index)
}

/// The one node for which the test holds; `None` if there is none or more than one.
fn only_node(document: &Document, test: impl Fn(&Value) -> bool) -> Option<usize> {
    let mut found = document.list("nodes").iter().enumerate().filter(|(_, n)| test(n)).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(node), None) => Some(node),
        _ => None,
    }
}

/// The numbers the document has at the pointer, else the specification's default, else `None`.
pub(super) fn rest(document: &Document, pointer: &str, width: usize) -> Option<Vec<f64>> {
    let value = match document.json.pointer(pointer) {
        Some(Value::Array(list)) => list.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?,
        Some(Value::Bool(on)) => vec![f64::from(u8::from(*on))],
        Some(value) => vec![value.as_f64()?],
        None => default(pointer, width)?,
    };
    (value.len() == width).then_some(value)
}

/// Defaults of the core properties and of ratified extensions, by the pointer's last step.
fn default(pointer: &str, width: usize) -> Option<Vec<f64>> {
    let last = pointer.rsplit('/').next()?;
    let value = match last {
        "baseColorFactor"
        | "metallicFactor"
        | "roughnessFactor"
        | "strength"
        | "emissiveStrength"
        | "color"
        | "intensity"
        | "scale"
        | "specularFactor"
        | "specularColorFactor"
        | "visible"
        | "attenuationColor"
        | "diffuseTransmissionColorFactor" => 1.0,
        "alphaCutoff" => 0.5,
        "ior" => 1.5,
        "iridescenceIor" => 1.3,
        "iridescenceThicknessMinimum" => 100.0,
        "iridescenceThicknessMaximum" => 400.0,
        "outerConeAngle" => std::f64::consts::FRAC_PI_4,
        "emissiveFactor"
        | "offset"
        | "rotation"
        | "innerConeAngle"
        | "transmissionFactor"
        | "thicknessFactor"
        | "iridescenceFactor"
        | "clearcoatFactor"
        | "clearcoatRoughnessFactor"
        | "sheenColorFactor"
        | "sheenRoughnessFactor"
        | "anisotropyStrength"
        | "anisotropyRotation"
        | "dispersion"
        | "weights" => 0.0,
        _ => return None,
    };
    Some(vec![value; width])
}

/// True if the pointer's value is a switch.
pub(super) fn is_switch(pointer: &str) -> bool {
    let last = pointer.rsplit('/').next().unwrap_or("");
    matches!(last, "visible" | "doubleSided" | "selectable" | "hoverable")
}

/// True if three or four numbers at the pointer are a colour.
pub(super) fn is_color(pointer: &str) -> bool {
    let last = pointer.rsplit('/').next().unwrap_or("").to_lowercase();
    last.contains("color") || last == "emissivefactor"
}
