//! Reduction of real captured motion: per curve against the fewest keys there are, and whole clips against the
//! bound and against a plain split of it by depth.

mod common;

use common::data_dir;
use inbetween::metric::{Shell, measure};
use inbetween::reduce::beam::nearly_optimal_scalar;
use inbetween::reduce::cone::ScalarCone;
use inbetween::reduce::cubic::{HermiteSpans, Measure, difference_tangents};
use inbetween::reduce::search::{farthest, first_fail, nearly_optimal, optimal};
use inbetween::reduce::{Keys, Options, Sharing, reduce};
use inbetween::{TrackData, ValueKind};
use inbetween_formats::{ReadOptions, import_path};

/// Metres in a unit of the captures whose files do not say.
const CMU_UNIT: f64 = 0.056444;

#[test]
fn scalar_curves_of_captured_motion_keep_at_most_a_twentieth_more_than_the_fewest_keys() {
    let Some(dir) = data_dir() else { return };
    let import = import_path(&dir.join("bvh/pybvh/cmu_12_01_walk.bvh"), &ReadOptions::default()).unwrap();
    let (mut samples, mut first, mut far, mut beam, mut fewest, mut cubic) = (0, 0, 0, 0, 0, 0);
    for track in &import.clips[0].tracks {
        let curves = track.data.curves();
        for curve in curves.iter().filter(|c| c.kind() == ValueKind::Scalar) {
            let (times, values) = (curve.times(), curve.values());
            // Half a degree for the angles; positions are in metres and stay out.
            if !matches!(track.data, TrackData::Euler(_)) {
                continue;
            }
            let tolerance = 0.5_f64.to_radians();
            let mut spans = ScalarCone::new(times, values, tolerance);
            let best = optimal(&mut spans).len();
            let kept = nearly_optimal_scalar(times, values, tolerance).len();
            assert!(kept as f64 <= 1.05 * best as f64, "{kept} of {best}");
            samples += times.len();
            first += first_fail(&mut spans).len();
            far += farthest(&mut spans).len();
            beam += kept;
            fewest += best;
            let tangents = difference_tangents(times, values, 1);
            let mut hermite =
                HermiteSpans::new(times, values, &tangents, &tangents, 1, Measure::Length, tolerance);
            cubic += nearly_optimal(&mut hermite, 8).len();
        }
    }
    println!(
        "of {samples} samples first fail keeps {first}, farthest {far}, the beam {beam}, the optimum {fewest}, cubic {cubic}"
    );
    assert!(beam as f64 <= 1.02 * fewest as f64, "{beam} and {fewest}");
    assert!(far <= first && beam <= far);
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
