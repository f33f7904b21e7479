//! Reduction of real captured motion: per curve against the fewest keys there are, and whole clips against the
//! bound and against a plain split of it by depth.

mod common;

use common::data_dir;
use inbetween::metric::{Shell, measure};
use inbetween::reduce::beam::nearly_optimal_scalar;
use inbetween::reduce::cone::ScalarCone;
use inbetween::reduce::cubic::{HermiteSpans, Measure, difference_tangents};
use inbetween::reduce::search::{farthest, nearly_optimal, optimal};
use inbetween::reduce::{Keys, Options, Sharing, reduce};
use inbetween::{TrackData, ValueKind};
use inbetween_formats::{ReadOptions, import_path};

/// Metres in a unit of the captures whose files do not say.
const CMU_UNIT: f64 = 0.056444;

#[test]
fn scalar_curves_of_captured_motion_keep_at_most_a_twentieth_more_than_the_fewest_keys() {
    let Some(dir) = data_dir() else { return };
    let (mut curves, mut over, mut samples) = (0, Vec::new(), 0);
    let (mut far, mut beam, mut fewest, mut cubic) = (0, 0, 0, 0);
    for file in ["pybvh/cmu_12_01_walk.bvh", "bvh11/131_01.bvh", "pymo/AV_8Walk_Meredith_HVHA_Rep1.bvh"] {
        let import = import_path(&dir.join("bvh").join(file), &ReadOptions::default()).unwrap();
        // Angles alone; positions are in metres.
        let euler = import.clips[0].tracks.iter().filter(|t| matches!(t.data, TrackData::Euler(_)));
        for curve in euler.flat_map(|t| t.data.curves()).filter(|c| c.kind() == ValueKind::Scalar) {
            let (times, values) = (curve.times(), curve.values());
            for degrees in [0.05_f64, 0.25, 0.5, 2.0] {
                let tolerance = degrees.to_radians();
                let mut spans = ScalarCone::new(times, values, tolerance);
                let best = optimal(&mut spans).len();
                let kept = nearly_optimal_scalar(times, values, tolerance).len();
                if kept as f64 > 1.05 * best as f64 {
                    over.push(format!("{file} at {degrees} degrees: {kept} of {best}"));
                }
                curves += 1;
                samples += times.len();
                far += farthest(&mut spans).len();
                beam += kept;
                fewest += best;
                let tangents = difference_tangents(times, values, 1);
                let mut hermite =
                    HermiteSpans::new(times, values, &tangents, &tangents, 1, Measure::Length, tolerance);
                cubic += nearly_optimal(&mut hermite, 8).len();
            }
        }
    }
    println!(
        "of {samples} samples in {curves} curves farthest keeps {far}, the beam {beam}, the optimum {fewest}, cubic {cubic}"
    );
    assert!(over.is_empty(), "{over:?}");
    assert!(beam as f64 <= 1.005 * fewest as f64 && beam <= far, "{beam} and {fewest}");
}

#[test]
fn captured_motion_keeps_its_bound_with_half_the_keys_of_a_split_by_depth() {
    let Some(dir) = data_dir() else { return };
    for (file, unit, linear_at_most) in
        [("bvh/pybvh/cmu_12_01_walk.bvh", CMU_UNIT, 7_372), ("khronos-sample-assets/Fox.glb", 0.01, 269)]
    {
        let read = ReadOptions { unit: Some(unit), ..ReadOptions::default() };
        let import = import_path(&dir.join(file), &read).unwrap();
        let clip = &import.clips[0];
        let world = Options::world(0.001);
        let split =
            reduce(clip, &import.skeleton, &Options { sharing: Sharing::ByDepth, ..world.clone() }).unwrap();
        let linear = reduce(clip, &import.skeleton, &world).unwrap();
        let cubic = reduce(clip, &import.skeleton, &Options { keys: Keys::Cubic, ..world }).unwrap();
        let error = |result: &inbetween::Clip| {
            measure(clip, result, &import.skeleton, Shell::default(), true).world_error()
        };
        println!(
            "{file}: {} keys, split by depth {}, linear {} ({} m), cubic {} ({} m)",
            linear.report.source_keys,
            split.report.keys,
            linear.report.keys,
            error(&linear.clip),
            cubic.report.keys,
            error(&cubic.clip),
        );
        assert!(error(&linear.clip) <= 0.001 && error(&cubic.clip) <= 0.001);
        // What a cruder way of spending the whole bound, by scaling tolerances, is known to reach.
        assert!(linear.report.keys <= linear_at_most, "{}", linear.report.keys);
        assert!(linear.report.keys as f64 <= 0.6 * split.report.keys as f64);
        assert!(cubic.report.keys < linear.report.keys);
    }
}
