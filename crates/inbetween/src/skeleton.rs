//! The tree of nodes that clips move: names, parents, rest pose, and what a file fixed about them.
//!
//! Nodes keep the order of their file, so an index means the same here and there; `order` lists
//! them parents first, so one forward pass takes a pose into the world.

use glam::{DQuat, DVec3};
use thiserror::Error;

/// Translation, rotation and scale of a node in its parent's space. Metres; a unit quaternion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// Metres.
    pub translation: DVec3,
    /// Unit length.
    pub rotation: DQuat,
    /// 1 = unchanged; may be zero or negative.
    pub scale: DVec3,
}

impl Transform {
    /// No move, no turn, scale one.
    pub const IDENTITY: Self =
        Self { translation: DVec3::ZERO, rotation: DQuat::IDENTITY, scale: DVec3::ONE };
}

/// Pivots and offsets around a node's rotation and scale, as FBX has them (metres).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pivot {
    /// Added before the rotation.
    pub rotation_offset: DVec3,
    /// The point about which the node turns.
    pub rotation_pivot: DVec3,
    /// Added before the scale.
    pub scaling_offset: DVec3,
    /// The point about which the node is scaled.
    pub scaling_pivot: DVec3,
}

impl Pivot {
    /// The plain transform that does what `raw` does about these pivots:
    /// `T · Roff · Rp · R · Rp⁻¹ · Soff · Sp · S · Sp⁻¹`.
    pub fn fold(&self, raw: Transform) -> Transform {
        let inner =
            self.scaling_offset + self.scaling_pivot - raw.scale * self.scaling_pivot - self.rotation_pivot;
        Transform {
            translation: raw.translation + self.rotation_offset + self.rotation_pivot + raw.rotation * inner,
            ..raw
        }
    }
}

/// Which scale of its parent a node takes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScaleInherit {
    /// All of it, as matrices multiply.
    #[default]
    Full,
    /// None of the parent's own scale (segment scale compensate).
    Ignore,
    /// Axis by axis, without shear.
    Componentwise,
}

/// What a node is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A group, a locator, anything else.
    #[default]
    Node,
    /// A joint of a skin or of a capture skeleton.
    Joint,
    /// Carries a mesh.
    Mesh,
    /// Carries a camera.
    Camera,
    /// Carries a light.
    Light,
}

/// One node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// Name as in the file, byte for byte; may be empty or shared.
    pub name: String,
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    /// Where it stands when nothing moves it, before its pivot.
    pub rest: Transform,
    /// Pivots, if it has any that matter.
    pub pivot: Option<Box<Pivot>>,
    /// Which scale of the parent it takes over.
    pub inherit: ScaleInherit,
    /// What it is for.
    pub kind: NodeKind,
    /// End Sites: points fixed to the node, in its own space, metres.
    pub tips: Vec<DVec3>,
    /// How far from its origin the skin that hangs on it reaches, metres in its own space.
    pub reach: Option<f64>,
}

impl Joint {
    /// A plain node at `rest`.
    pub fn new(name: impl Into<String>, parent: Option<usize>, rest: Transform) -> Self {
        Self {
            name: name.into(),
            parent,
            rest,
            pivot: None,
            inherit: ScaleInherit::Full,
            kind: NodeKind::Node,
            tips: Vec::new(),
            reach: None,
        }
    }
}

/// A checked tree of nodes. May have several roots, or be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skeleton {
    joints: Vec<Joint>,
    order: Vec<usize>,
}

/// Why a tree was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SkeletonError {
    /// A parent that is not there.
    #[error("node {index} ({name:?}) has node {parent} as its parent, but there are only {count} nodes")]
    NoSuchParent {
        /// The node.
        index: usize,
        /// Its name.
        name: String,
        /// The parent it names.
        parent: usize,
        /// Nodes there are.
        count: usize,
    },
    /// Parents go round in a circle.
    #[error("node {index} ({name:?}) is its own ancestor: the parents form a cycle, which no tree can have")]
    Cycle {
        /// A node on the cycle.
        index: usize,
        /// Its name.
        name: String,
    },
}

impl Skeleton {
    /// Checks parents and finds the parents-first order.
    ///
    /// # Errors
    /// If a parent is missing or the parents form a cycle.
    pub fn new(joints: Vec<Joint>) -> Result<Self, SkeletonError> {
        let count = joints.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut order = Vec::with_capacity(count);
        for (index, j) in joints.iter().enumerate() {
            match j.parent {
                None => order.push(index),
                Some(parent) if parent < count => children[parent].push(index),
                Some(parent) => {
                    return Err(SkeletonError::NoSuchParent { index, name: j.name.clone(), parent, count });
                }
            }
        }
        // Depth first, children in file order, without recursion: files nest thousands deep.
        let mut stack: Vec<usize> = order.drain(..).rev().collect();
        let mut seen = vec![false; count];
        while let Some(j) = stack.pop() {
            seen[j] = true;
            order.push(j);
            stack.extend(children[j].iter().rev());
        }
        if let Some(index) = seen.iter().position(|s| !s) {
            return Err(SkeletonError::Cycle { index, name: joints[index].name.clone() });
        }
        Ok(Self { joints, order })
    }

    /// The nodes, in the order of their file.
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.joints.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.joints.is_empty()
    }

    /// Indices of the nodes, every parent before its children (depth first).
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Indices of all nodes of that name.
    pub fn find(&self, name: &str) -> Vec<usize> {
        (0..self.len()).filter(|&i| self.joints[i].name == name).collect()
    }

    /// Indices from `joint` up to its root, both included.
    pub fn chain(&self, joint: usize) -> Vec<usize> {
        let mut chain = vec![joint];
        while let Some(p) = self.joints[chain[chain.len() - 1]].parent {
            chain.push(p);
        }
        chain
    }

    /// The same tree with a new node at the origin, at the end of the list, as the parent of the
    /// root `joint`; every other index stays what it was.
    ///
    /// # Panics
    /// If `joint` is no root of this tree.
    pub fn with_parent(&self, joint: usize, name: impl Into<String>) -> Self {
        assert!(self.joints[joint].parent.is_none(), "only a root can be given a parent");
        let mut joints = self.joints.clone();
        joints[joint].parent = Some(joints.len());
        joints.push(Joint::new(name, None, Transform::IDENTITY));
        Self::new(joints).expect("a new root makes no cycle")
    }

    /// The same tree with every end site ([`Joint::tips`]) as a node of its own, at the end of the
    /// list and called after its joint (`Head_end`, or `Head_end1` and on where it has several);
    /// every other index stays what it was. For formats that know points only as nodes.
    pub fn with_end_nodes(&self) -> Self {
        let mut joints = self.joints.clone();
        for (index, joint) in self.joints.iter().enumerate() {
            for (i, &tip) in joint.tips.iter().enumerate() {
                let number = if joint.tips.len() > 1 { (i + 1).to_string() } else { String::new() };
                let rest = Transform { translation: tip, ..Transform::IDENTITY };
                let mut end = Joint::new(format!("{}_end{number}", joint.name), Some(index), rest);
                end.kind = joint.kind;
                joints.push(end);
            }
            joints[index].tips.clear();
        }
        Self::new(joints).expect("leaves make no cycle")
    }

    /// Sets how far the skin on each node reaches; see [`Joint::reach`].
    pub fn set_reach(&mut self, joint: usize, reach: Option<f64>) {
        self.joints[joint].reach = reach;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_sites_become_leaves_behind_the_nodes_there_were() {
        let mut head = Joint::new("Head", Some(1), Transform::IDENTITY);
        head.tips = vec![DVec3::Y];
        let mut root = Joint::new("root", None, Transform::IDENTITY);
        root.tips = vec![DVec3::X, DVec3::Z];
        let with = Skeleton::new(vec![head, root]).unwrap().with_end_nodes();
        let said = |i: usize| {
            let j: &Joint = &with.joints()[i];
            (j.name.as_str(), j.parent, j.rest.translation)
        };
        assert_eq!(with.len(), 5);
        assert_eq!(said(2), ("Head_end", Some(0), DVec3::Y));
        assert_eq!(said(3), ("root_end1", Some(1), DVec3::X));
        assert_eq!(said(4), ("root_end2", Some(1), DVec3::Z));
        assert!(with.joints().iter().all(|j| j.tips.is_empty()));
    }

    #[test]
    fn children_may_stand_before_their_parents() {
        let joints = vec![
            Joint::new("hand", Some(1), Transform::IDENTITY),
            Joint::new("arm", Some(2), Transform::IDENTITY),
            Joint::new("root", None, Transform::IDENTITY),
        ];
        assert_eq!(Skeleton::new(joints).unwrap().order(), [2, 1, 0]);
    }

    #[test]
    fn cycles_and_missing_parents_are_errors_that_name_the_node() {
        let a = Joint::new("a", Some(1), Transform::IDENTITY);
        let b = Joint::new("b", Some(0), Transform::IDENTITY);
        let e = Skeleton::new(vec![a.clone(), b]).unwrap_err();
        assert!(e.to_string().contains("cycle") && e.to_string().contains("\"a\""));
        assert!(matches!(Skeleton::new(vec![a]), Err(SkeletonError::NoSuchParent { .. })));
    }
}
