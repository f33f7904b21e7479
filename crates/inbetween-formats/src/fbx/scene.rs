//! The tree of nodes: rest pose, pivots, scale inheritance, skins; and the file's units and axes.
//!
//! Nodes keep `ufbx`'s order, parents first, without the root it adds. The rest pose is computed
//! here from the properties, so that it has the same bits on every machine.

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::axis_angle;
use inbetween::{AxisName, Joint, NodeKind, Pivot, ScaleInherit, Transform};

use crate::convention::{AxisMap, Convention};
use crate::import::{Note, Severity};

/// Index in our list of the node with this typed id, the root being left out.
pub(super) fn index_of(scene: &ufbx::Scene, node: &ufbx::Node) -> Option<usize> {
    let root = scene.root_node.element.typed_id;
    let id = node.element.typed_id;
    match id.cmp(&root) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(id as usize),
        std::cmp::Ordering::Greater => Some(id as usize - 1),
    }
}

pub(super) fn vec3(v: ufbx::Vec3) -> DVec3 {
    DVec3::new(v.x, v.y, v.z)
}

/// Numbers beyond this are damage, not lengths or angles; kept out so that no arithmetic on what
/// is left can overflow.
pub(super) const LARGEST: f64 = 1e100;

fn usable(v: DVec3) -> bool {
    v.to_array().iter().all(|x| x.abs() <= LARGEST)
}

/// A property's static value, or `default` where the element has none, or none of use.
pub(super) fn static_vec3(element: &ufbx::Element, name: &str, default: DVec3) -> DVec3 {
    let value = ufbx::find_prop(&element.props, name)
        .map(|p| DVec3::new(p.value_vec4.x, p.value_vec4.y, p.value_vec4.z));
    value.filter(|v| usable(*v)).unwrap_or(default)
}

/// The properties that make a node's transform.
const TRANSFORM_PROPERTIES: [&str; 9] = [
    "Lcl Translation",
    "Lcl Rotation",
    "Lcl Scaling",
    "PreRotation",
    "PostRotation",
    "RotationOffset",
    "RotationPivot",
    "ScalingOffset",
    "ScalingPivot",
];

/// Says which of a node's numbers are none.
fn note_unusable(node: &ufbx::Node, notes: &mut Vec<Note>) {
    for name in TRANSFORM_PROPERTIES {
        if let Some(p) = ufbx::find_prop(&node.element.props, name) {
            let v = DVec3::new(p.value_vec4.x, p.value_vec4.y, p.value_vec4.z);
            if !usable(v) {
                let place = format!("{:?}, {name}", &*node.element.name);
                let text = format!("{v} is no usable value; the property's default is taken");
                notes.push(Note::new(Severity::Repaired, place, text));
            }
        }
    }
}

/// The axes of a rotation order in the order of the matrix product: "XYZ" turns about X first, so
/// Z stands on the left.
pub(super) fn product_axes(order: ufbx::RotationOrder) -> [AxisName; 3] {
    use AxisName::{X, Y, Z};
    use ufbx::RotationOrder as O;
    match order {
        O::Xyz | O::Spheric => [Z, Y, X],
        O::Xzy => [Y, Z, X],
        O::Yzx => [X, Z, Y],
        O::Yxz => [Z, X, Y],
        O::Zxy => [Y, X, Z],
        O::Zyx => [X, Y, Z],
    }
}

/// The rotation of Euler angles in degrees.
pub(super) fn euler_degrees(v: DVec3, order: ufbx::RotationOrder) -> DQuat {
    let mut q = DQuat::IDENTITY;
    for axis in product_axes(order) {
        q *= axis_angle(axis.vector(), v[axis as usize].to_radians());
    }
    q
}

/// What lies around a node's animated rotation: the order of its angles and the fixed turns
/// before and after.
#[derive(Clone, Copy)]
pub(super) struct RotationFrame {
    pub(super) order: ufbx::RotationOrder,
    pub(super) pre: DQuat,
    pub(super) post: DQuat,
}

impl RotationFrame {
    pub(super) fn of(node: &ufbx::Node) -> Self {
        // Without "rotation active" FBX ignores order, pre- and post-rotation.
        if !node.use_rotation_space {
            return Self { order: ufbx::RotationOrder::Xyz, pre: DQuat::IDENTITY, post: DQuat::IDENTITY };
        }
        let turn =
            |name| euler_degrees(static_vec3(&node.element, name, DVec3::ZERO), ufbx::RotationOrder::Xyz);
        Self { order: node.rotation_order, pre: turn("PreRotation"), post: turn("PostRotation").conjugate() }
    }

    pub(super) fn rotation(&self, degrees: DVec3) -> DQuat {
        (self.pre * euler_degrees(degrees, self.order) * self.post).normalize()
    }
}

/// Reads all nodes but the root `ufbx` adds.
pub(super) fn read(scene: &ufbx::Scene, notes: &mut Vec<Note>) -> Vec<Joint> {
    let mut joints = Vec::with_capacity(scene.nodes.count.saturating_sub(1));
    let mut geometric = Vec::new();
    let mut spheric = Vec::new();
    for node in &scene.nodes {
        if node.is_root {
            continue;
        }
        let name = node.element.name.to_string();
        if node.has_geometry_transform {
            geometric.push(name.clone());
        }
        if node.use_rotation_space && node.rotation_order == ufbx::RotationOrder::Spheric {
            spheric.push(name.clone());
        }
        note_unusable(node, notes);
        let parent = node.parent.as_ref().and_then(|p| index_of(scene, p));
        let at = |name, default| static_vec3(&node.element, name, default);
        let rest = Transform {
            translation: at("Lcl Translation", DVec3::ZERO),
            rotation: RotationFrame::of(node).rotation(at("Lcl Rotation", DVec3::ZERO)),
            scale: at("Lcl Scaling", DVec3::ONE),
        };
        let pivot = Pivot {
            rotation_offset: at("RotationOffset", DVec3::ZERO),
            rotation_pivot: at("RotationPivot", DVec3::ZERO),
            scaling_offset: at("ScalingOffset", DVec3::ZERO),
            scaling_pivot: at("ScalingPivot", DVec3::ZERO),
        };
        let some_pivot =
            [pivot.rotation_offset, pivot.rotation_pivot, pivot.scaling_offset, pivot.scaling_pivot]
                .iter()
                .any(|v| *v != DVec3::ZERO);
        joints.push(Joint {
            pivot: some_pivot.then(|| Box::new(pivot)),
            inherit: match node.inherit_mode {
                ufbx::InheritMode::Normal => ScaleInherit::Full,
                ufbx::InheritMode::IgnoreParentScale => ScaleInherit::Ignore,
                ufbx::InheritMode::ComponentwiseScale => ScaleInherit::Componentwise,
            },
            kind: kind_of(node),
            ..Joint::new(name, parent, rest)
        });
    }
    read_skins(scene, &mut joints);
    if !geometric.is_empty() {
        notes.push(Note::new(
            Severity::Info,
            list(&geometric),
            "a geometric transform moves the mesh but neither the node nor its children; it takes \
             no part in the animation and is left out",
        ));
    }
    if !spheric.is_empty() {
        notes.push(Note::new(Severity::Lost, list(&spheric), "the spheric rotation order is read as XYZ"));
    }
    joints
}

fn kind_of(node: &ufbx::Node) -> NodeKind {
    if node.bone.is_some() {
        NodeKind::Joint
    } else if node.mesh.is_some() {
        NodeKind::Mesh
    } else if node.camera.is_some() {
        NodeKind::Camera
    } else if node.light.is_some() {
        NodeKind::Light
    } else {
        NodeKind::Node
    }
}

/// Marks the nodes that skins hang on, and how far the skin reaches from each.
fn read_skins(scene: &ufbx::Scene, joints: &mut [Joint]) {
    for mesh in &scene.meshes {
        for skin in &mesh.skin_deformers {
            for cluster in &skin.clusters {
                let Some(i) = cluster.bone_node.as_ref().and_then(|b| index_of(scene, b)) else {
                    continue;
                };
                let joint = &mut joints[i];
                joint.kind = NodeKind::Joint;
                let m = &cluster.geometry_to_bone;
                let mut reach: f64 = joint.reach.unwrap_or(0.0);
                for (&vertex, &weight) in cluster.vertices.iter().zip(cluster.weights.iter()) {
                    let Some(v) = mesh.vertices.get(vertex as usize) else { continue };
                    if weight > 0.0 {
                        let p = vec3(ufbx::transform_position(m, *v));
                        if p.is_finite() {
                            reach = reach.max(p.length());
                        }
                    }
                }
                if reach > 0.0 {
                    joint.reach = Some(reach);
                }
            }
        }
    }
}

/// The file's units and axes.
pub(super) fn convention(scene: &ufbx::Scene, notes: &mut Vec<Note>) -> Convention {
    let settings = &scene.settings;
    let mut metres_per_unit = settings.unit_meters;
    if !(1e-12..=1e12).contains(&metres_per_unit) {
        notes.push(Note::new(
            Severity::Repaired,
            "UnitScaleFactor",
            format!("{metres_per_unit} m is no length of a unit; centimetres are taken, FBX's own default"),
        ));
        metres_per_unit = 0.01;
    }
    let axes = &settings.axes;
    let axes = match axis_map(axes.right, axes.up, axes.front) {
        Some(map) => map,
        None => {
            let unknown = [axes.right, axes.up, axes.front].contains(&ufbx::CoordinateAxis::Unknown);
            let severity = if unknown { Severity::Info } else { Severity::Repaired };
            notes.push(Note::new(severity, "axes", "the file states no usable axes; +Y is taken to be up"));
            AxisMap::SAME
        }
    };
    Convention { metres_per_unit, axes }
}

/// The map to +X right, +Y up, +Z to the front; `None` if two of the three lie on one axis.
fn axis_map(
    right: ufbx::CoordinateAxis,
    up: ufbx::CoordinateAxis,
    front: ufbx::CoordinateAxis,
) -> Option<AxisMap> {
    use ufbx::CoordinateAxis as A;
    let mut map = AxisMap::SAME;
    let mut seen = [false; 3];
    for (i, axis) in [right, up, front].into_iter().enumerate() {
        (map.from[i], map.sign[i]) = match axis {
            A::PositiveX => (0, 1.0),
            A::NegativeX => (0, -1.0),
            A::PositiveY => (1, 1.0),
            A::NegativeY => (1, -1.0),
            A::PositiveZ => (2, 1.0),
            A::NegativeZ => (2, -1.0),
            A::Unknown => return None,
        };
        seen[map.from[i]] = true;
    }
    seen.iter().all(|s| *s).then_some(map)
}

/// Up to four names, and how many more.
pub(super) fn list(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
    match names.len() {
        0..=4 => shown.join(", "),
        n => format!("{} and {} more", shown.join(", "), n - 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_a_file_become_a_signed_permutation() {
        use ufbx::CoordinateAxis as A;
        assert_eq!(axis_map(A::PositiveX, A::PositiveY, A::PositiveZ), Some(AxisMap::SAME));
        assert_eq!(axis_map(A::PositiveX, A::PositiveZ, A::NegativeY), Some(AxisMap::Z_UP));
        assert_eq!(axis_map(A::PositiveX, A::NegativeX, A::PositiveZ), None);
        assert_eq!(axis_map(A::Unknown, A::PositiveY, A::PositiveZ), None);
    }

    #[test]
    fn euler_orders_agree_with_ufbx() {
        use ufbx::RotationOrder as O;
        let angles = ufbx::Vec3 { x: 20.0, y: -75.0, z: 131.0 };
        for order in [O::Xyz, O::Xzy, O::Yzx, O::Yxz, O::Zxy, O::Zyx] {
            let q = ufbx::euler_to_quat(angles, order);
            let theirs = DQuat::from_xyzw(q.x, q.y, q.z, q.w);
            let ours = euler_degrees(vec3(angles), order);
            assert!(inbetween::math::angle_between(ours, theirs) < 1e-14, "{order:?}");
        }
    }
}
