//! What a reduction of a whole clip promises, checked by the metric, which shares no code with the reducer.

use inbetween::compare;
use inbetween::curve::CurveParts;
use inbetween::glam::{DQuat, DVec3};
use inbetween::metric::{Shell, measure};
use inbetween::reduce::literal::Literal;
use inbetween::reduce::{Fate, Keys, Options, Reduction, Sharing, auto_error, reduce, reduce_one_of};
use inbetween::{
    Axis, AxisName, Binding, Clip, Curve, EulerBetween, EulerCurve, Extrapolation, Joint, Pivot, Property,
    ScaleInherit, Skeleton, SpanKind, Spans, Track, TrackData, Transform, ValueKind,
};

fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    }
}

fn rest_of(property: &Property) -> Vec<f64> {
    match property {
        Property::Rotation => vec![0.0, 0.0, 0.0, 1.0],
        Property::Scale => vec![1.0; 3],
        _ => vec![0.0; 3],
    }
}

fn track(node: usize, name: &str, property: Property, curve: Curve) -> Track {
    let rest = rest_of(&property);
    Track::new(Binding::node(node, name, property), TrackData::Curve(curve), rest)
}

fn rotations(times: &[f64], of: impl FnMut(f64) -> DQuat) -> Curve {
    let values = times.iter().copied().map(of).flat_map(|q| q.to_array()).collect();
    Curve::linear(ValueKind::Rotation, times.to_vec(), values).unwrap()
}

fn vectors(times: &[f64], mut of: impl FnMut(f64) -> [f64; 3]) -> Curve {
    let values = times.iter().flat_map(|&t| of(t)).collect();
    Curve::linear(ValueKind::Vector(3), times.to_vec(), values).unwrap()
}

fn frames(count: usize, rate: f64) -> Vec<f64> {
    (0..count).map(|i| i as f64 / rate).collect()
}

fn clip(tracks: Vec<Track>) -> Clip {
    let mut clip = Clip::new("clip", 0.0, 0.0).unwrap();
    clip.tracks = tracks;
    let times = clip.key_times();
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        clip.set_range(first.min(0.0), *last).unwrap();
    }
    clip
}

/// A chain of `count` joints half a metre apart, each swinging with noise, and a moving root.
fn chain(count: usize, samples: usize) -> (Skeleton, Clip) {
    let joints = (0..count)
        .map(|i| {
            let along = DVec3::new(0.0, if i == 0 { 0.0 } else { 0.5 }, 0.0);
            Joint::new(
                format!("joint{i}"),
                i.checked_sub(1),
                Transform { translation: along, ..Transform::IDENTITY },
            )
        })
        .collect();
    let times = frames(samples, 30.0);
    let mut random = noise(count as u64);
    let mut tracks =
        vec![track(0, "joint0", Property::Translation, vectors(&times, |t| [t, 0.1 * (3.0 * t).sin(), 0.0]))];
    for i in 0..count {
        let axis = [DVec3::X, DVec3::Z, DVec3::new(0.6, 0.0, 0.8)][i % 3];
        let curve = rotations(&times, |t| {
            let swing = 0.35 * (2.0 * t + i as f64).sin() + 0.0003 * random();
            DQuat::from_axis_angle(axis, swing)
        });
        tracks.push(track(i, &format!("joint{i}"), Property::Rotation, curve));
    }
    (Skeleton::new(joints).unwrap(), clip(tracks))
}

/// Reduces and checks that the bound holds, by the metric and with every other promise.
fn checked(source: &Clip, skeleton: &Skeleton, options: &Options) -> Reduction {
    let result = reduce(source, skeleton, options).unwrap();
    let found = measure(source, &result.clip, skeleton, options.shell, options.restore_steps);
    if let Some(bound) = options.max_error {
        assert!(found.world_error() <= bound, "{} > {bound}", found.world_error());
    }
    assert!(result.report.holds());
    assert_eq!(result.report.measured, found);
    assert_eq!(result.clip.duration(), source.duration());
    let last = |clip: &Clip| clip.key_times().last().copied();
    assert_eq!(last(&result.clip), last(source), "the last key time is kept");
    for track in &result.clip.tracks {
        for curve in track.data.curves().iter().filter(|c| c.kind() == ValueKind::Rotation) {
            for k in 1..curve.len() {
                let (a, b) = (DQuat::from_slice(curve.value(k - 1)), DQuat::from_slice(curve.value(k)));
                let gap = 2.0 * a.dot(b).abs().min(1.0).acos();
                assert!(gap.to_degrees() < 179.5, "{} degrees between two keys", gap.to_degrees());
            }
        }
    }
    result
}

#[test]
fn a_bound_holds_at_the_end_of_a_long_chain() {
    let (skeleton, source) = chain(8, 61);
    let options = Options { shell: Shell::Fixed(0.05), ..Options::world(0.002) };
    let result = checked(&source, &skeleton, &options);
    assert!(result.report.percent() < 50.0, "{}", result.report.percent());
    let cubic = checked(&source, &skeleton, &Options { keys: Keys::Cubic, ..options });
    assert!(cubic.report.keys < result.report.keys, "{} and {}", cubic.report.keys, result.report.keys);
    assert!(
        cubic
            .clip
            .tracks
            .iter()
            .all(|t| t.data.curves()[0].span(0) == SpanKind::Hermite || t.data.key_count() < 2)
    );
}

#[test]
fn a_clip_longer_than_a_stage_is_reduced_across_its_seams() {
    let (skeleton, source) = chain(3, 4000);
    let result = checked(&source, &skeleton, &Options::world(0.004));
    assert!(result.report.percent() < 40.0, "{}", result.report.percent());
    // No stretch is left unreduced.
    let times = result.clip.tracks[1].data.key_times();
    let dense = times.windows(8).filter(|t| t[7] - t[0] < 7.5 / 30.0).count();
    assert!(dense < times.len() / 20, "{dense} of {}", times.len());
}

#[test]
fn moving_the_kept_keys_saves_more_than_leaving_them() {
    let (skeleton, source) = chain(4, 240);
    let moved = checked(&source, &skeleton, &Options::world(0.002));
    let left = checked(&source, &skeleton, &Options { refit: false, ..Options::world(0.002) });
    assert!(moved.report.keys < left.report.keys, "{} and {}", moved.report.keys, left.report.keys);
    for (before, after) in source.tracks.iter().zip(&left.clip.tracks) {
        for (k, &time) in after.data.key_times().iter().enumerate() {
            let (a, b) = (before.value_at(time), after.data.curves()[0].value(k));
            assert!(a.iter().zip(b).all(|(a, b)| (a.abs() - b.abs()).abs() < 1e-15), "{a:?} {b:?}");
        }
    }
}

#[test]
fn the_same_clip_gives_the_same_bits_twice() {
    let (skeleton, source) = chain(5, 120);
    let once = reduce(&source, &skeleton, &Options::world(0.001)).unwrap();
    assert_eq!(once, reduce(&source, &skeleton, &Options::world(0.001)).unwrap());
}

#[test]
fn a_small_move_under_a_great_scale_is_seen() {
    let big = Transform { scale: DVec3::splat(200.0), ..Transform::IDENTITY };
    let skeleton =
        Skeleton::new(vec![Joint::new("big", None, big), Joint::new("knot", Some(0), Transform::IDENTITY)])
            .unwrap();
    let times = frames(61, 30.0);
    let source = clip(vec![track(
        1,
        "knot",
        Property::Translation,
        vectors(&times, |t| [0.0005 * (6.0 * t).sin(), 0.0, 0.0]),
    )]);
    let result = checked(&source, &skeleton, &Options::world(0.001));
    assert!(result.report.keys > 5, "{}", result.report.keys);
}

#[test]
fn zero_scale_mirrors_pivots_and_scales_not_inherited_keep_the_bound() {
    let times = frames(90, 30.0);
    let mut random = noise(9);
    for (nth, inherit) in
        [ScaleInherit::Full, ScaleInherit::Ignore, ScaleInherit::Componentwise].into_iter().enumerate()
    {
        for mirrored in [1.0, -1.0] {
            let mut upper = Joint::new(
                "upper",
                Some(0),
                Transform {
                    translation: DVec3::new(0.0, 1.0, 0.0),
                    scale: DVec3::new(mirrored, 1.0, 1.5),
                    ..Transform::IDENTITY
                },
            );
            upper.inherit = inherit;
            upper.pivot = Some(Box::new(Pivot {
                rotation_offset: DVec3::new(0.1, 0.0, 0.0),
                rotation_pivot: DVec3::new(0.0, 0.3, 0.0),
                scaling_offset: DVec3::ZERO,
                scaling_pivot: DVec3::new(0.0, 0.0, 0.2),
            }));
            let mut hand = Joint::new(
                "hand",
                Some(1),
                Transform { translation: DVec3::new(0.2, 0.5, 0.0), ..Transform::IDENTITY },
            );
            hand.inherit = inherit;
            let skeleton =
                Skeleton::new(vec![Joint::new("root", None, Transform::IDENTITY), upper, hand]).unwrap();
            let mut turn = |node: usize, name: &str| {
                let curve = rotations(&times, |t| {
                    DQuat::from_rotation_x(0.5 * (3.0 * t + node as f64).sin() + 0.0005 * random())
                });
                track(node, name, Property::Rotation, curve)
            };
            let tracks = vec![
                turn(0, "root"),
                turn(1, "upper"),
                turn(2, "hand"),
                // Through zero and back, flat for ten frames.
                track(
                    0,
                    "root",
                    Property::Scale,
                    vectors(&times, |t| {
                        let s = ((t - 1.5).abs() - 0.15).clamp(0.0, 1.0);
                        [s, s, 1.0]
                    }),
                ),
            ];
            let result = checked(&clip(tracks), &skeleton, &Options::world(0.003));
            assert!(result.report.percent() < 80.0, "{nth} {mirrored}: {}", result.report.percent());
        }
    }
}

#[test]
fn a_loop_keeps_its_seam_to_the_bit() {
    let times = frames(31, 30.0);
    let mut random = noise(3);
    let mut rows: Vec<f64> = times
        .iter()
        .flat_map(|t| [0.0, (std::f64::consts::TAU * t).sin() * 0.1 + 0.01 * random(), 0.0])
        .collect();
    let n = rows.len();
    rows.copy_within(0..3, n - 3);
    let curve = Curve::linear(ValueKind::Vector(3), times, rows).unwrap();
    let skeleton = Skeleton::new(vec![Joint::new("hip", None, Transform::IDENTITY)]).unwrap();
    let source = clip(vec![track(0, "hip", Property::Translation, curve)]);
    for options in [
        Options::world(0.02),
        Options::per_track(Some(0.02), None),
        Options { keys: Keys::Cubic, ..Options::world(0.02) },
    ] {
        let result = checked(&source, &skeleton, &options);
        let curve = result.clip.tracks[0].data.curves()[0];
        assert_eq!(curve.value(0), curve.value(curve.len() - 1));
        assert_eq!(curve.value(0), source.tracks[0].data.curves()[0].value(0));
        assert!(curve.len() > 2 && curve.len() < 20, "{}", curve.len());
    }
}

#[test]
fn a_still_track_keeps_one_key_and_the_clip_its_length() {
    let times = frames(400, 60.0);
    let skeleton = Skeleton::new(vec![Joint::new("prop", None, Transform::IDENTITY)]).unwrap();
    let still = || track(0, "prop", Property::Scale, vectors(&times, |_| [1.0; 3]));
    let ends = [0.0, 1.0, times[399]];
    let moves = track(0, "prop", Property::Translation, vectors(&ends, |t| [(t * 0.9).sin(), 0.0, 0.0]));
    for options in [Options::default(), Options::world(0.001), Options::per_track(Some(0.001), None)] {
        let result = checked(&clip(vec![still(), moves.clone()]), &skeleton, &options);
        assert_eq!(result.clip.tracks[0].data.key_count(), 1);
        assert_eq!(result.clip.tracks[1].data.key_count(), 3);
        // Alone, the still track has to say how long the clip is.
        let result = checked(&clip(vec![still()]), &skeleton, &options);
        assert_eq!(result.clip.tracks[0].data.key_times(), [0.0, times[399]]);
    }
}

#[test]
fn a_track_at_rest_is_dropped_only_if_asked_and_if_nothing_else_moves_it() {
    let skeleton = Skeleton::new(vec![Joint::new("jaw", None, Transform::IDENTITY)]).unwrap();
    let still = |x: f64| vectors(&[0.0, 1.0], move |_| [x, 0.0, 0.0]);
    let neutral = clip(vec![
        track(0, "jaw", Property::Translation, still(0.0)),
        track(0, "jaw", Property::Scale, vectors(&[0.0, 1.0], |_| [1.0; 3])),
        track(0, "jaw", Property::Rotation, rotations(&[0.0, 1.0], DQuat::from_rotation_x)),
    ]);
    let open = clip(vec![track(0, "jaw", Property::Translation, vectors(&[0.0, 1.0], |t| [t, 0.0, 0.0]))]);
    let clips = [neutral, open];
    let asked = Options { drop_at_rest: true, ..Options::default() };
    let kept = reduce_one_of(&clips, 0, &skeleton, &Options::default()).unwrap();
    assert_eq!(kept.clip.tracks.len(), 3);
    let result = reduce_one_of(&clips, 0, &skeleton, &asked).unwrap();
    let dropped: Vec<_> = result.report.dropped().map(|t| t.property.as_str()).collect();
    assert_eq!(dropped, ["scale"]);
    assert_eq!(result.clip.tracks.len(), 2);
    assert!(result.report.to_string().contains("removed jaw.scale"));
    // Alone, both still tracks may go.
    let alone = reduce_one_of(&clips[..1], 0, &skeleton, &asked).unwrap();
    assert_eq!(alone.report.dropped().count(), 2);
}

#[test]
fn a_track_that_moves_less_than_the_bound_is_flattened_and_the_report_says_by_how_much() {
    let skeleton = Skeleton::new(vec![Joint::new("tiny", None, Transform::IDENTITY)]).unwrap();
    let source = clip(vec![track(
        0,
        "tiny",
        Property::Translation,
        vectors(&[0.0, 1.0, 2.0], |t| [if t == 1.0 { 0.0002 } else { 0.0 }, 0.0, 0.0]),
    )]);
    let flat = checked(&source, &skeleton, &Options::per_track(Some(0.001), None));
    assert!(flat.report.flattened().count() == 1);
    let text = flat.report.to_string();
    assert!(text.contains("flattened tiny.translation") && text.contains("0.0002"), "{text}");
    // A bound that suits the size of what moves keeps it.
    let auto = auto_error(&skeleton, std::slice::from_ref(&source), 0.01);
    assert!((auto - 2e-6).abs() < 1e-15);
    assert_eq!(checked(&source, &skeleton, &Options::world(auto)).report.keys, 3);
}

#[test]
fn steps_take_no_part_in_tolerances() {
    let skeleton = Skeleton::new(vec![Joint::new("flip", None, Transform::IDENTITY)]).unwrap();
    let times = [0.0, 0.25, 8.0 / 24.0, 9.0 / 24.0, 1.0];
    let values = [1.0, 1.0, 0.999, 1.0, 1.0].iter().flat_map(|s| [*s; 3]).collect();
    let source = clip(vec![track(
        0,
        "flip",
        Property::Scale,
        Curve::step(ValueKind::Vector(3), times.to_vec(), values).unwrap(),
    )]);
    for options in [Options::world(0.1), Options::per_track(Some(0.1), None), Options::default()] {
        let result = checked(&source, &skeleton, &options);
        let curve = result.clip.tracks[0].data.curves()[0];
        assert_eq!(curve.span(0), SpanKind::Step);
        // The last key only says how long the clip is.
        assert_eq!(&curve.times()[..], [0.0, times[2], times[3], 1.0]);
    }
}

#[test]
fn a_baked_step_becomes_a_step_and_the_judge_knows_it() {
    let skeleton = Skeleton::new(vec![Joint::new("hat", None, Transform::IDENTITY)]).unwrap();
    let times = frames(48, 24.0);
    let source = clip(vec![
        track(
            0,
            "hat",
            Property::Scale,
            vectors(&times, |t| [if (0.5..1.1).contains(&t) { 0.0 } else { 1.0 }; 3]),
        ),
        track(0, "hat", Property::Translation, vectors(&times, |t| [t, 0.0, 0.0])),
    ]);
    let result = checked(&source, &skeleton, &Options::world(0.001));
    let curve = result.clip.tracks[0].data.curves()[0];
    assert_eq!((curve.len(), curve.span(0)), (3, SpanKind::Step));
    assert_eq!(result.report.tracks[0].fate, Fate::StepRestored);
    assert_eq!(curve.times()[1], 0.5);
    // Unless it is not wanted.
    let left = checked(&source, &skeleton, &Options { restore_steps: false, ..Options::world(0.001) });
    assert_eq!(left.clip.tracks[0].data.curves()[0].span(0), SpanKind::Linear);
}

#[test]
fn curves_with_some_steps_in_them_are_not_smeared() {
    let skeleton = Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap();
    let curve = Curve::new(CurveParts {
        kind: ValueKind::Vector(3),
        times: vec![0.0, 1.0, 2.0, 3.0].into(),
        values: [0.0, 1.0, 1.0, 1.5].iter().flat_map(|x| [*x, 0.0, 0.0]).collect(),
        spans: Spans::PerKey(vec![SpanKind::Step, SpanKind::Linear, SpanKind::Linear, SpanKind::Linear]),
        tangents: None,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })
    .unwrap();
    let result =
        checked(&clip(vec![track(0, "a", Property::Translation, curve)]), &skeleton, &Options::world(1.0));
    assert_eq!(result.clip.tracks[0].value_at(0.99)[0], 0.0);
    assert_eq!(result.clip.tracks[0].value_at(1.0)[0], 1.0);
}

#[test]
fn rotations_with_alternating_signs_reduce_like_any_others() {
    let skeleton = Skeleton::new(vec![Joint::new("osc", None, Transform::IDENTITY)]).unwrap();
    let times = frames(11, 10.0);
    let values = times.iter().enumerate().flat_map(|(k, t)| {
        let q = DQuat::from_rotation_y((40.0 * t).to_radians());
        if k % 2 == 0 { q.to_array() } else { (-q).to_array() }
    });
    let curve = Curve::linear(ValueKind::Rotation, times.clone(), values.collect()).unwrap();
    let source = clip(vec![track(0, "osc", Property::Rotation, curve)]);
    for options in [Options::per_track(None, Some(0.01_f64.to_radians())), Options::world(0.0001)] {
        assert_eq!(checked(&source, &skeleton, &options).report.keys, 2);
    }
}

#[test]
fn a_wheel_that_turns_fully_keeps_the_short_way() {
    let skeleton = Skeleton::new(vec![Joint::new("wheel", None, Transform::IDENTITY)]).unwrap();
    let times = frames(37, 36.0);
    let source = clip(vec![track(
        0,
        "wheel",
        Property::Rotation,
        rotations(&times, |t| DQuat::from_rotation_x(std::f64::consts::TAU * t)),
    )]);
    for options in [Options::per_track(None, Some(0.05_f64.to_radians())), Options::world(0.0001)] {
        let result = checked(&source, &skeleton, &options);
        assert!((4..=8).contains(&result.report.keys), "{}", result.report.keys);
    }
}

#[test]
fn captured_euler_angles_reduce_as_the_rotations_they_are() {
    let skeleton = Skeleton::new(vec![Joint::new("hips", None, Transform::IDENTITY)]).unwrap();
    let degrees = [170.0_f64, 178.0, -174.0, -166.0, -158.0];
    let angle =
        Curve::linear(ValueKind::Scalar, frames(5, 30.0), degrees.map(f64::to_radians).to_vec()).unwrap();
    let euler = EulerCurve {
        terms: vec![(AxisName::Z, Axis::Curve(angle)), (AxisName::X, Axis::Constant(0.0))],
        pre: DQuat::IDENTITY,
        post: DQuat::IDENTITY,
        between: EulerBetween::Slerp,
    };
    let binding = Binding::node(0, "hips", Property::Rotation);
    let source = clip(vec![Track::new(binding, TrackData::Euler(euler), vec![0.0, 0.0, 0.0, 1.0])]);
    for options in [Options::per_track(None, Some(0.01_f64.to_radians())), Options::default()] {
        assert_eq!(checked(&source, &skeleton, &options).report.keys, 2, "{options:?}");
    }
}

#[test]
fn tracks_that_move_no_node_keep_a_tolerance_of_their_own() {
    let weights = [0.0, 1.0, 0.5, 0.5, 1.0, 0.0, 1.0, 0.2, 1.0, 0.4];
    let curve = Curve::linear(ValueKind::Weights(2), frames(5, 1.0), weights.to_vec()).unwrap();
    let binding = Binding { target: "face".into(), node: Some(0), property: Property::Weights, path: None };
    let light = Binding {
        target: "sun".into(),
        node: None,
        property: Property::Other("light.intensity".into()),
        path: None,
    };
    let times = frames(100, 25.0);
    let flicker = Curve::linear(
        ValueKind::Scalar,
        times.clone(),
        times.iter().map(|t| 800.0 + 100.0 * t.sin()).collect(),
    )
    .unwrap();
    let source = clip(vec![
        Track::new(binding, TrackData::Curve(curve), vec![0.0; 2]),
        Track::new(light, TrackData::Curve(flicker), vec![800.0]),
    ]);
    let skeleton = Skeleton::new(vec![Joint::new("face", None, Transform::IDENTITY)]).unwrap();
    let fine = checked(&source, &skeleton, &Options { value_tolerance: Some(1e-4), ..Options::world(0.001) });
    assert_eq!(fine.clip.tracks[0].data.key_count(), 3);
    assert!(fine.clip.tracks[1].data.key_count() > 50);
    let mut coarse = Options::world(0.001);
    coarse.tolerances.push(inbetween::reduce::TrackTolerance {
        target: Some("sun".into()),
        property: Property::Other("light.intensity".into()),
        tolerance: 5.0,
    });
    let result = checked(&source, &skeleton, &coarse);
    assert!(result.clip.tracks[1].data.key_count() < 10);
    assert!(result.report.measured.tracks[1].value <= 5.0);
}

#[test]
fn an_authored_cubic_never_grows() {
    let skeleton = Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap();
    let values = vec![0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0];
    let slopes = vec![0.0, 3.0, 0.0, 2.0, 0.0, 0.0, -3.0, 0.0, 0.0];
    let curve =
        Curve::hermite(ValueKind::Vector(3), vec![0.0, 0.7, 2.0], values, slopes.clone(), slopes).unwrap();
    let source = clip(vec![track(0, "a", Property::Translation, curve)]);
    for options in [
        Options { keys: Keys::Cubic, ..Options::world(0.0001) },
        Options { keys: Keys::Cubic, ..Options::per_track(Some(0.0001), None) },
        Options::per_track(Some(0.0001), None),
        Options::world(0.01),
        Options { sharing: Sharing::ByDepth, ..Options::world(0.01) },
    ] {
        let result = checked(&source, &skeleton, &options);
        assert_eq!(result.report.keys, 3, "{options:?}");
        assert_eq!(result.clip.tracks[0].data.curves()[0].span(0), SpanKind::Hermite);
    }
    // Where straight lines take fewer keys, they are taken.
    let lines = checked(&source, &skeleton, &Options::world(2.0));
    assert_eq!(lines.report.keys, 2);
    assert_eq!(lines.clip.tracks[0].data.curves()[0].span(0), SpanKind::Linear);
}

#[test]
fn what_hangs_on_a_track_that_stays_as_drawn_is_reduced_around_it() {
    let at = |x| Transform { translation: DVec3::new(x, 0.0, 0.0), ..Transform::IDENTITY };
    let skeleton =
        Skeleton::new(vec![Joint::new("a", None, at(0.0)), Joint::new("b", Some(0), at(1.0))]).unwrap();
    let values = vec![0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0];
    let slopes = vec![0.0, 3.0, 0.0, 2.0, 0.0, 0.0, -3.0, 0.0, 0.0];
    let drawn =
        Curve::hermite(ValueKind::Vector(3), vec![0.0, 0.7, 2.0], values, slopes.clone(), slopes).unwrap();
    let times = frames(200, 100.0);
    let source = clip(vec![
        track(0, "a", Property::Translation, drawn.clone()),
        track(1, "b", Property::Translation, vectors(&times, |t| [1.0, (3.0 * t).sin(), 0.0])),
    ]);
    let result = checked(&source, &skeleton, &Options::world(0.001));
    assert_eq!(result.clip.tracks[0].data, TrackData::Curve(drawn));
    assert!(matches!(result.report.tracks[0].fate, Fate::Kept(_)));
    assert!(result.clip.tracks[1].data.key_count() < 100);
}

#[test]
fn cubic_keys_of_sampled_motion_are_few_and_smooth() {
    let skeleton = Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap();
    let times = frames(600, 120.0);
    let source = clip(vec![
        track(0, "a", Property::Translation, vectors(&times, |t| [t.sin(), (2.0 * t).cos(), 0.3 * t])),
        track(
            0,
            "a",
            Property::Rotation,
            rotations(&times, |t| DQuat::from_rotation_y(1.5 * t) * DQuat::from_rotation_x((2.0 * t).sin())),
        ),
    ]);
    let lines = checked(&source, &skeleton, &Options::world(0.001));
    let cubics = checked(&source, &skeleton, &Options { keys: Keys::Cubic, ..Options::world(0.001) });
    assert!(cubics.report.keys * 2 < lines.report.keys, "{} and {}", cubics.report.keys, lines.report.keys);
    let curve = cubics.clip.tracks[0].data.curves()[0];
    let tangents = curve.parts().tangents.as_ref().unwrap();
    assert_eq!(tangents.leave[3..tangents.leave.len() - 3], tangents.arrive[3..tangents.arrive.len() - 3]);
}

#[test]
fn the_published_rule_is_there_and_its_error_is_shown() {
    let skeleton = Skeleton::new(vec![Joint::new("ball", None, Transform::IDENTITY)]).unwrap();
    let times = frames(961, 96.0);
    let source =
        clip(vec![track(0, "ball", Property::Translation, vectors(&times, |t| [0.0, 0.5 * t * t, 0.0]))]);
    let keys = Keys::Literal { tolerance: 0.05, habits: Literal::default() };
    let result = reduce(&source, &skeleton, &Options { keys, ..Options::default() }).unwrap();
    let error = result.report.measured.world_error();
    assert!((11.0..12.0).contains(&error), "{error}");
}

#[test]
fn empty_clips_and_single_keys_come_through() {
    let skeleton = Skeleton::new(vec![Joint::new("pose", None, Transform::IDENTITY)]).unwrap();
    let empty = Clip::new("nothing", -1.0, 2.0).unwrap();
    let result = reduce(&empty, &skeleton, &Options::world(0.001)).unwrap();
    assert_eq!((result.report.keys, result.report.percent(), result.clip.duration()), (0, 100.0, 3.0));
    let pose = clip(vec![track(0, "pose", Property::Translation, vectors(&[0.0], |_| [1.0, 2.0, 3.0]))]);
    let result = checked(&pose, &skeleton, &Options::world(0.01));
    assert_eq!(result.clip.tracks[0].value_at(7.0), [1.0, 2.0, 3.0]);
    let nobody = reduce(&pose, &Skeleton::default(), &Options::world(0.01)).unwrap_err();
    assert!(nobody.to_string().contains("node 0") && nobody.to_string().contains("pose"), "{nobody}");
}

#[test]
fn bounds_that_are_none_are_refused_by_name() {
    let skeleton = Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap();
    let source = clip(vec![]);
    for (options, word) in [
        (Options::world(-1.0), "world"),
        (Options::world(f64::NAN), "world"),
        (Options::per_track(None, Some(f64::INFINITY)), "rotations"),
        (Options { shell: Shell::Fixed(-0.1), ..Options::default() }, "shell"),
    ] {
        let error = reduce(&source, &skeleton, &options).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_bound_of_nothing_keeps_every_key_that_matters() {
    let (skeleton, source) = chain(3, 30);
    let result = reduce(&source, &skeleton, &Options::world(0.0)).unwrap();
    assert!(result.report.measured.world_error() < 1e-12);
}

#[test]
fn muted_tracks_and_curves_that_go_on_are_left_alone() {
    let skeleton = Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap();
    let times = frames(30, 30.0);
    let wave = |x: f64| vectors(&times, move |t| [x * (3.0 * t).sin(), 0.0, 0.0]);
    let mut muted = track(0, "a", Property::Translation, wave(5.0));
    muted.enabled = false;
    let cycle = Extrapolation::CycleOffset { repeats: None };
    let mut source =
        clip(vec![muted, track(0, "a", Property::Scale, wave(1.0).with_extrapolation(cycle, cycle))]);
    source.set_range(0.0, 1.0).unwrap();
    let result = reduce(&source, &skeleton, &Options::world(0.01)).unwrap();
    assert_eq!(result.clip.tracks[0].data.key_count(), 30);
    assert!(!result.clip.tracks[0].enabled);
    let curve = result.clip.tracks[1].data.curves()[0];
    assert_eq!(curve.parts().after, cycle);
    assert!(curve.len() < 30 && curve.end() == source.tracks[1].data.curves()[0].end());
}

/// The skeleton and clip of a chain whose last joint is also moved in steps, far out and back.
fn stepping_chain() -> (Skeleton, Clip) {
    let (skeleton, mut source) = chain(4, 240);
    let times: Vec<f64> = (0..24).map(|k| f64::from(k) / 3.0).collect();
    let values = (0..24).flat_map(|k| [0.0, if k % 2 == 0 { 0.5 } else { 3.0 }, 0.0]).collect();
    let curve = Curve::new(CurveParts {
        kind: ValueKind::Vector(3),
        times: times.into(),
        values,
        spans: Spans::Uniform(SpanKind::Step),
        tangents: None,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })
    .unwrap();
    source.tracks.push(track(3, "joint3", Property::Translation, curve));
    (skeleton, source)
}

#[test]
fn the_bound_holds_just_before_another_track_jumps() {
    let (skeleton, source) = stepping_chain();
    for keys in [Keys::Linear, Keys::Cubic] {
        let options = Options { keys, ..Options::world(0.002) };
        let result = checked(&source, &skeleton, &options);
        let times = compare::judged_times(&[&source]);
        let found =
            compare::compare_at((&source, &skeleton), (&result.clip, &skeleton), options.shell, &times);
        let worst = found.worst_node().unwrap();
        assert!(worst.distance <= 0.002, "{} m at {} s", worst.distance, worst.time);
        assert!(result.report.keys * 2 < result.report.source_keys, "{} keys", result.report.keys);
    }
}

#[test]
fn the_kind_of_span_behind_the_last_key_changes_nothing() {
    let n = 100;
    let times = frames(n, 30.0);
    let values: Vec<f64> = times.iter().flat_map(|t| [(2.0 * t).sin(), 0.0, *t]).collect();
    let slopes: Vec<f64> = times.iter().flat_map(|t| [2.0 * (2.0 * t).cos(), 0.0, 1.0]).collect();
    let skeleton = Skeleton::new(vec![Joint::new("hip", None, Transform::IDENTITY)]).unwrap();
    let curve = Curve::hermite(ValueKind::Vector(3), times, values, slopes.clone(), slopes).unwrap();
    let mut parts = curve.parts().clone();
    let mut kinds = vec![SpanKind::Hermite; n];
    kinds[n - 1] = SpanKind::Step;
    parts.spans = Spans::PerKey(kinds);
    let odd = clip(vec![track(0, "hip", Property::Translation, Curve::new(parts).unwrap())]);
    let plain = clip(vec![track(0, "hip", Property::Translation, curve)]);
    for keys in [Keys::Linear, Keys::Cubic] {
        let options = Options { keys, ..Options::world(0.005) };
        let left = checked(&odd, &skeleton, &options);
        assert!(left.report.keys < n / 2, "{} keys", left.report.keys);
        assert_eq!(left.clip, checked(&plain, &skeleton, &options).clip);
    }
}

#[test]
fn sparse_curves_of_angles_stay_as_drawn_where_they_can_be_written() {
    // Two angles at once: no slerp between the two keys follows them, so rotations need many keys.
    let line =
        |end: f64| Axis::Curve(Curve::linear(ValueKind::Scalar, vec![0.0, 2.0], vec![0.0, end]).unwrap());
    let data = TrackData::Euler(EulerCurve {
        terms: vec![(AxisName::X, line(2.0)), (AxisName::Y, line(3.0))],
        pre: DQuat::IDENTITY,
        post: DQuat::IDENTITY,
        between: EulerBetween::Angles,
    });
    let skeleton = Skeleton::new(vec![Joint::new("arm", None, Transform::IDENTITY)]).unwrap();
    let binding = Binding::node(0, "arm", Property::Rotation);
    let source = clip(vec![Track::new(binding, data.clone(), vec![0.0, 0.0, 0.0, 1.0])]);
    for keys in [Keys::Linear, Keys::Cubic] {
        for options in [
            Options { keys, ..Options::world(0.0005) },
            Options { keys, ..Options::per_track(None, Some(0.001)) },
        ] {
            let left = reduce(&source, &skeleton, &options).unwrap();
            assert_eq!(left.clip.tracks[0].data, data);
            assert_eq!(left.report.tracks[0].fate, Fate::Kept("its own keys are fewer"));
            let rotations = checked(&source, &skeleton, &Options { keep_components: false, ..options });
            assert!(rotations.report.keys > 2, "{} keys", rotations.report.keys);
        }
    }
}
