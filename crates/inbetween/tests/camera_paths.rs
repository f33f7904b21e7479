//! What a camera path promises, tried on thousands of random paths and on small
//! ones that can be worked out by hand.

use inbetween::camera::*;
use inbetween::spline::{Derivative, quat_exp, quat_multiply, quat_rotate};

/// Random numbers that are the same everywhere.
struct Dice(u64);

impl Dice {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.share() * n as f64) as usize
    }
}

const NAMES: [&str; 7] = ["x", "y", "z", "yaw", "pitch", "roll", "fov"];

fn random_keys(dice: &mut Dice) -> Vec<CameraKey> {
    let n = 2 + dice.below(14);
    let mut time = dice.between(-5.0, 36_000.0);
    (0..n)
        .map(|_| {
            time += 10.0_f64.powf(dice.between(-1.5, 1.0));
            let place = [0; 3].map(|_| dice.between(-50.0, 50.0));
            let angles = [0; 3].map(|_| dice.between(-7.0, 7.0));
            let values = place.into_iter().chain(angles).chain([dice.between(0.2, 1.8)]).collect();
            CameraKey::new(time, values)
        })
        .collect()
}

fn path_of(keys: Vec<CameraKey>) -> CameraPath {
    CameraPath::new(NAMES.map(Channel::new).to_vec(), keys).unwrap()
}

fn smoothed(mut path: CameraPath, amount: f64) -> CameraPath {
    path.set_smoothing(Smoothing::amount(amount)).unwrap();
    path
}

fn values(path: &CameraPath, time: f64) -> Vec<f64> {
    let mut out = vec![0.0; path.channels().len()];
    path.values_at(time, Derivative::Value, &mut out);
    out
}

fn simple(points: &[(f64, f64)]) -> CameraPath {
    let keys = points.iter().map(|&(t, x)| CameraKey::new(t, vec![x])).collect();
    CameraPath::new(vec![Channel::new("x")], keys).unwrap()
}

/// Size against which rounding in channel `k` of the spans beside key `i` is judged.
fn size(path: &CameraPath, i: usize, k: usize) -> f64 {
    let near = [i.saturating_sub(1), i, (i + 1).min(path.len() - 1)];
    let values = near.iter().map(|&j| path.flown_value(j, k).abs()).fold(0.0, f64::max);
    let spans = [i.saturating_sub(1), i.min(path.spans() - 1)];
    spans.iter().fold(values, |size, &s| {
        let (start, end) = path.curve().span_times(s);
        let (a, b) = path.span_velocities(s, k);
        size.max((a.abs() + b.abs()) * (end - start))
    })
}

#[test]
fn acceleration_carries_on_through_every_key_of_a_fully_smoothed_path() {
    let mut dice = Dice(1);
    for round in 0..3000 {
        let path = smoothed(path_of(random_keys(&mut dice)), 1.0);
        for i in 1..path.len() - 1 {
            let (start, end) = path.curve().span_times(i - 1);
            let (_, next) = path.curve().span_times(i);
            for k in 0..NAMES.len() {
                let (before, after) = (path.curve().cubic(i - 1, k), path.curve().cubic(i, k));
                let h = (end - start).min(next - end);
                let jump = after.acceleration(0.0) - before.acceleration(end - start);
                // Coefficients are sums of some ten terms of this size, each rounded.
                let rounding = 1e-14 * size(&path, i, k) / (h * h);
                assert!(jump.abs() <= 10.0 * rounding, "round {round} key {i} {}: {jump:e}", NAMES[k]);
            }
        }
    }
}

#[test]
fn bending_energy_never_rises_with_the_amount() {
    let mut dice = Dice(2);
    for round in 0..1500 {
        let mut path = path_of(random_keys(&mut dice));
        let mut before = vec![f64::INFINITY; NAMES.len()];
        for step in 0..=8 {
            path.set_smoothing(Smoothing::amount(f64::from(step) / 8.0)).unwrap();
            for k in 0..NAMES.len() {
                let energy = path.curve().bending_energy(k);
                assert!(
                    energy <= before[k] * (1.0 + 1e-9) + 1e-12,
                    "round {round}, {} at {step}/8",
                    NAMES[k]
                );
                before[k] = energy;
            }
        }
    }
}

#[test]
fn every_key_is_met_exactly_whatever_the_amount() {
    let mut dice = Dice(3);
    for _ in 0..1000 {
        let path = smoothed(path_of(random_keys(&mut dice)), dice.share());
        for i in 0..path.len() {
            let found = values(&path, path.times()[i]);
            for (k, found) in found.iter().enumerate() {
                assert_eq!(*found, path.flown_value(i, k));
            }
        }
        assert_eq!(path.status().not_matching, 0);
    }
}

#[test]
fn a_key_added_at_the_playhead_changes_nothing_where_smoothing_is_full() {
    let mut dice = Dice(4);
    for round in 0..1500 {
        let before = smoothed(path_of(random_keys(&mut dice)), 1.0);
        let mut after = before.clone();
        let at = dice.between(before.start(), before.end());
        after.insert_at(at).unwrap();
        for k in 0..60 {
            let t = before.start() + (before.end() - before.start()) * f64::from(k) / 59.0;
            let (a, b) = (values(&before, t), values(&after, t));
            for (c, (a, b)) in a.iter().zip(&b).enumerate() {
                // Splitting off a very short span costs digits in proportion.
                let near = before.times().iter().map(|x| (x - at).abs()).fold(f64::INFINITY, f64::min);
                let scale = (0..before.len()).map(|i| size(&before, i, c)).fold(1.0, f64::max);
                assert!(
                    (a - b).abs() <= 1e-11 * scale / near.min(1.0),
                    "round {round} {} at {t}: {a} {b}",
                    NAMES[c]
                );
            }
        }
    }
}

/// Rotation keys at random, up to half a turn apart, about any axis.
fn random_rotation_keys(dice: &mut Dice) -> Vec<CameraKey> {
    let mut keys = random_keys(dice);
    for key in &mut keys {
        let q = [0; 4].map(|_| dice.between(-1.0, 1.0));
        let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
        key.rotation = Some(q.map(|x| x / length));
        key.values.truncate(3);
    }
    keys
}

fn apart(a: [f64; 4], b: [f64; 4]) -> f64 {
    let signs = [1.0, -1.0].map(|s| (0..4).map(|k| (a[k] - s * b[k]).powi(2)).sum::<f64>().sqrt());
    2.0 * signs[0].min(signs[1])
}

#[test]
fn keys_added_at_the_playhead_leave_rotations_as_they_are_at_any_amount_and_closed_too() {
    let mut dice = Dice(21);
    for round in 0..1500 {
        let amount = if round % 3 == 0 { dice.share() } else { 1.0 };
        let mut before = smoothed(CameraPath::new(xyz(), random_rotation_keys(&mut dice)).unwrap(), amount);
        if round % 4 == 0 {
            before.close(Some(dice.between(0.3, 4.0))).unwrap();
        }
        let mut after = before.clone();
        for _ in 0..1 + dice.below(3) {
            let at = dice.between(after.start(), after.end());
            let index = after.insert_at(at).unwrap();
            let off = apart(after.key(index).unwrap().rotation.unwrap(), before.pose(at).rotation);
            assert!(off < 1e-14, "round {round}: {off:e}");
        }
        for k in 0..120 {
            let t = before.start() + (before.end() - before.start()) * f64::from(k) / 97.0;
            // Ten hours in, the end of a closed path may move by the rounding of its time.
            let off = apart(before.pose(t).rotation, after.pose(t).rotation);
            assert!(off < 1e-9, "round {round} at {t}: {off:e}");
        }
    }
}

#[test]
fn an_added_rotation_key_that_is_turned_by_hand_is_met_and_so_are_those_beside_it() {
    let mut dice = Dice(22);
    for _ in 0..300 {
        let mut path = smoothed(CameraPath::new(xyz(), random_rotation_keys(&mut dice)).unwrap(), 1.0);
        let times = path.times().to_vec();
        let span = dice.below(times.len() - 1);
        let at = |share: f64| times[span] + share * (times[span + 1] - times[span]);
        path.insert_at(at(0.3)).unwrap();
        let index = path.insert_at(at(0.6)).unwrap();
        let mut key = path.key(index).unwrap();
        key.rotation = key.rotation.map(|q| quat_multiply(q, quat_exp([0.1, 0.0, 0.05])));
        path.set_key(index, key).unwrap();
        for key in path.keys() {
            assert!(apart(path.pose(key.time).rotation, key.rotation.unwrap()) < 1e-12);
        }
    }
}

#[test]
fn a_key_added_on_the_way_back_of_a_closed_path_changes_nothing() {
    let mut dice = Dice(23);
    for round in 0..300 {
        let mut before = smoothed(path_of(random_keys(&mut dice)), 1.0);
        before.close(Some(dice.between(1.0, 4.0))).unwrap();
        let (last, end) = (*before.times().last().unwrap(), before.end());
        let mut after = before.clone();
        let at = last + (end - last) * dice.between(0.2, 0.8);
        assert_eq!(after.insert_at(at).unwrap(), before.len());
        assert!((after.end() - end).abs() < 1e-10);
        for k in 0..60 {
            let t = before.start() + (end - before.start()) * f64::from(k) / 59.0;
            for (c, (a, b)) in values(&before, t).iter().zip(&values(&after, t)).enumerate() {
                let scale = (0..before.len()).map(|i| size(&before, i, c)).fold(1.0, f64::max);
                assert!((a - b).abs() <= 1e-8 * scale, "round {round} {} at {t}: {a} {b}", NAMES[c]);
            }
        }
        assert!(after.insert_at(end + 1.0).unwrap_err().to_string().contains("within the path"));
    }
}

#[test]
fn a_key_added_where_the_picture_holds_leaves_it_held_and_the_curves_beside_it_as_they_are() {
    let before = with_modes(&[
        (0.0, 0.0, "free"),
        (1.0, 2.0, "free"),
        (2.0, 0.0, "free"),
        (3.0, 50.0, "board"),
        (4.0, 60.0, "board"),
    ]);
    let mut after = before.clone();
    after.insert_at(2.5).unwrap();
    after.insert_at(2.25).unwrap();
    for k in 0..=80 {
        let t = f64::from(k) * 0.05;
        assert_eq!(values(&before, t), values(&after, t), "at {t}");
    }
    let free = &after.status().modes[0];
    assert_eq!((free.built, free.smoothed, free.cuts), (5, 2, 3));
}

#[test]
fn a_key_added_at_the_playhead_makes_no_jump_at_any_amount() {
    let mut dice = Dice(5);
    for _ in 0..1000 {
        let before = smoothed(path_of(random_keys(&mut dice)), dice.share());
        let mut after = before.clone();
        let at = dice.between(before.start(), before.end());
        let index = after.insert_at(at).unwrap();
        assert_eq!(values(&before, at), values(&after, at));
        for (i, &t) in before.times().iter().enumerate() {
            let j = i + usize::from(i >= index);
            assert_eq!(values(&after, t)[0], after.flown_value(j, 0), "the other keys stay");
            assert_eq!(before.flown_value(i, 3), after.flown_value(j, 3));
        }
    }
}

#[test]
fn smoothing_is_off_at_first_and_turning_it_on_and_off_gives_the_same_bits_back() {
    let mut dice = Dice(6);
    for _ in 0..200 {
        let mut path = path_of(random_keys(&mut dice));
        let (keys, curve) = (path.keys(), path.curve().clone());
        assert!(!path.smoothing().on);
        path.set_smoothing(Smoothing::amount(0.7)).unwrap();
        assert!(path.len() < 3 || *path.curve() != curve);
        path.set_smoothing(Smoothing::default()).unwrap();
        assert_eq!((path.keys(), path.curve()), (keys, &curve));
    }
}

#[test]
fn editing_key_by_key_is_the_same_as_building_at_once() {
    let mut dice = Dice(7);
    for _ in 0..300 {
        let keys = random_keys(&mut dice);
        let mut path = smoothed(path_of(keys[..1].to_vec()), 1.0);
        let mut order: Vec<usize> = (1..keys.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, dice.below(i + 1));
        }
        for &i in &order {
            path.insert(keys[i].clone()).unwrap();
        }
        let extra = CameraKey::new(keys[0].time + 0.01, vec![1.0; 7]);
        let index = path.insert(extra).unwrap();
        path.remove(index).unwrap();
        let last = keys.len() - 1;
        path.set_key(last, keys[0].clone()).unwrap_err();
        path.set_key(last, keys[last].clone()).unwrap();
        assert_eq!(path.keys(), keys);
        let at_once = smoothed(path_of(keys), 1.0);
        for k in 0..40 {
            let t = path.start() + (path.end() - path.start()) * f64::from(k) / 39.0;
            for (c, (a, b)) in values(&path, t).iter().zip(&values(&at_once, t)).enumerate() {
                let channel = &path.channels()[c];
                // Angles may have come by another number of whole turns.
                let apart = channel.turn.map_or(a - b, |turn| (a - b) - ((a - b) / turn).round() * turn);
                assert!(apart.abs() < 1e-9, "{} at {t}", channel.name);
            }
        }
    }
}

#[test]
fn one_channel_can_have_an_amount_of_its_own() {
    let mut dice = Dice(8);
    let keys = random_keys(&mut dice);
    let smoothing = Smoothing { amounts: vec![("yaw".into(), 0.25)], ..Smoothing::amount(1.0) };
    let mut path = path_of(keys.clone());
    path.set_smoothing(smoothing).unwrap();
    let (full, quarter) = (smoothed(path_of(keys.clone()), 1.0), smoothed(path_of(keys), 0.25));
    for k in 0..50 {
        let t = path.start() + (path.end() - path.start()) * f64::from(k) / 49.0;
        assert_eq!(values(&path, t)[3], values(&quarter, t)[3]);
        assert_eq!(values(&path, t)[0], values(&full, t)[0]);
    }
}

fn with_modes(points: &[(f64, f64, &str)]) -> CameraPath {
    let keys = points
        .iter()
        .map(|&(t, x, mode)| CameraKey { mode: mode.into(), ..CameraKey::new(t, vec![x]) })
        .collect();
    smoothed(CameraPath::new(vec![Channel::new("x")], keys).unwrap(), 1.0)
}

/// Three keys of the free camera, then three on a board elsewhere.
const TWO_MODES: [(f64, f64, &str); 6] = [
    (0.0, 0.0, "free"),
    (1.0, 2.0, "free"),
    (2.0, 0.0, "free"),
    (3.0, 50.0, "board"),
    (4.0, 60.0, "board"),
    (5.0, 50.0, "board"),
];

#[test]
fn a_path_is_cut_where_the_mode_changes_and_only_chosen_modes_are_smoothed() {
    let path = with_modes(&TWO_MODES);
    // The free run is the spline through its own three keys alone.
    assert_eq!(path.pose(0.5).position[0], 1.375);
    // Then the picture holds until the board camera's first key.
    assert_eq!(path.pose(2.9).position[0], 0.0);
    assert_eq!(path.pose(3.0).position[0], 50.0);
    // The board camera stays on the replay curve: left at half speed, stopped at
    // its turning key. h = 1, m = 5 and 0: 50 + (5 + ⅛·…) by hand is 55.625.
    assert_eq!(path.pose(3.5).position[0], 55.625);
    let status = path.status();
    assert_eq!(status.not_matching, 0);
    let counts: Vec<_> =
        status.modes.iter().map(|m| (m.mode.as_str(), m.built, m.smoothed, m.left, m.cuts)).collect();
    assert_eq!(counts, [("free", 3, 2, 0, 1), ("board", 2, 0, 2, 0)]);
}

#[test]
fn yaw_goes_the_short_way_or_as_it_was_authored() {
    let turns = |unwrap| {
        let keys = [(0.0, 1.0), (1.0, -303.0), (2.0, 20.0)].map(|(t, yaw)| CameraKey::new(t, vec![yaw]));
        let mut path = CameraPath::new(vec![Channel::new("yaw").turning(360.0)], keys.to_vec()).unwrap();
        path.set_smoothing(Smoothing { unwrap, ..Smoothing::amount(1.0) }).unwrap();
        values(&path, 0.25)[0]
    };
    assert!((turns(Unwrap::Shortest) - 20.44921875).abs() < 1e-12);
    assert!(turns(Unwrap::AsAuthored) < -60.0);
}

#[test]
fn a_held_zoom_stays_held_where_overshoot_is_prevented() {
    let keys =
        [(0.0, 90.0), (1.0, 40.0), (3.0, 40.0), (4.0, 60.0)].map(|(t, fov)| CameraKey::new(t, vec![fov]));
    let mut path = CameraPath::new(vec![Channel::new("fov")], keys.to_vec()).unwrap();
    path.set_smoothing(Smoothing::amount(1.0)).unwrap();
    let report = path.overshoot();
    let worst = report.iter().max_by(|a, b| a.past.total_cmp(&b.past)).unwrap();
    assert_eq!((worst.channel.as_str(), worst.times), ("fov", (1.0, 3.0)));
    assert!((worst.past - 13.3828205).abs() < 1e-7 && (worst.at - 1.865).abs() < 1e-3, "{worst:?}");
    path.set_smoothing(Smoothing { overshoot: Overshoot::Prevent, ..Smoothing::amount(1.0) }).unwrap();
    assert!(path.overshoot().is_empty());
    for k in 0..=20 {
        assert_eq!(values(&path, 1.0 + f64::from(k) / 10.0)[0], 40.0);
    }
}

#[test]
fn no_random_path_overshoots_where_that_is_prevented() {
    let mut dice = Dice(9);
    for _ in 0..1000 {
        let mut path = path_of(random_keys(&mut dice));
        let amount = dice.share();
        path.set_smoothing(Smoothing { overshoot: Overshoot::Prevent, ..Smoothing::amount(amount) }).unwrap();
        let report = path.overshoot();
        assert!(report.iter().all(|o| o.past < 1e-10), "{report:?}");
    }
}

#[test]
fn slots_make_a_four_key_player_play_the_path() {
    let mut dice = Dice(10);
    for _ in 0..300 {
        let path = smoothed(path_of(random_keys(&mut dice)), dice.share());
        for i in 0..path.spans() {
            let (start, end) = path.curve().span_times(i);
            for k in 0..NAMES.len() {
                let slots = path.slots(i, k);
                for step in 0..8 {
                    let u = f64::from(step) / 8.0;
                    let shown = play_slots(slots, 0.0, u);
                    let flown = path.curve().cubic(i, k).value(u * (end - start));
                    assert!((shown - flown).abs() <= 1e-12 * size(&path, i, k).max(1.0));
                }
            }
        }
    }
}

#[test]
fn the_players_own_slots_in_true_time_play_the_replay_curve_without_its_brake() {
    let mut path = simple(&[(0.0, 0.0), (4.0, 8.0), (5.0, 9.0), (7.0, 9.5)]);
    path.set_smoothing(Smoothing { brake: false, ..Smoothing::default() }).unwrap();
    for i in 0..3 {
        let (start, end) = path.curve().span_times(i);
        for u in [0.0, 0.3, 0.9] {
            let shown = play_slots(path.own_slots(i, 0, SlotTiming::TrueTime), 0.0, u);
            assert!(
                (shown - path.pose(start + u * (end - start)).position[0]).abs() < 1e-12,
                "span {i} at {u}"
            );
        }
    }
    let raw = path.own_slots(1, 0, SlotTiming::Raw);
    assert_eq!(raw, [0.0, 8.0, 9.0, 9.5]);
}

#[test]
fn a_closed_path_runs_on_through_its_seam_without_a_bump() {
    let mut dice = Dice(11);
    for round in 0..500 {
        let mut path = smoothed(path_of(random_keys(&mut dice)), 1.0);
        let gap = dice.between(0.2, 4.0);
        path.close(Some(gap)).unwrap();
        let last = path.spans() - 1;
        let (start, end) = path.curve().span_times(last);
        assert!((end - path.end()).abs() < 1e-9);
        for k in 0..NAMES.len() {
            let (before, after) = (path.curve().cubic(last, k), path.curve().cubic(0, k));
            let h = (end - start).min(path.times()[1] - path.times()[0]);
            let scale = 1e-12 * size(&path, 0, k).max(size(&path, path.len() - 1, k));
            assert!(
                (before.velocity(end - start) - after.velocity(0.0)).abs() <= scale / h,
                "round {round} {k}"
            );
            assert!(
                (before.acceleration(end - start) - after.acceleration(0.0)).abs() <= 10.0 * scale / h / h
            );
        }
        let (a, b) = (path.pose(path.start() + 0.05), path.pose(path.end() + 0.05));
        for k in 0..3 {
            assert!((a.position[k] - b.position[k]).abs() < 1e-6);
            assert!((a.rotation[k].abs() - b.rotation[k].abs()).abs() < 1e-6);
        }
        assert_eq!(path.status().not_matching, 0);
    }
}

#[test]
fn an_orbit_of_three_keys_turns_on_and_on() {
    let keys = (0..3).map(|i| CameraKey::new(f64::from(i), vec![120.0 * f64::from(i)])).collect();
    let mut path = smoothed(CameraPath::new(vec![Channel::new("yaw").turning(360.0)], keys).unwrap(), 1.0);
    path.close(Some(1.0)).unwrap();
    for k in 0..30 {
        let t = f64::from(k) * 0.37;
        assert!((values(&path, t)[0] - 120.0 * t).abs() < 1e-9, "at {t}");
    }
}

#[test]
fn a_straight_span_is_straight_at_an_even_pace_and_its_neighbours_join_it() {
    let mut dice = Dice(12);
    for _ in 0..500 {
        let mut keys = random_keys(&mut dice);
        let i = dice.below(keys.len() - 1);
        keys[i].straight = true;
        let path = smoothed(path_of(keys), dice.share());
        let (start, end) = path.curve().span_times(i);
        for u in [0.1, 0.5, 0.77] {
            let t = start + u * (end - start);
            // Ten hours in, the time itself is rounded.
            let u = (t - start) / (end - start);
            let found = path.pose(t).position;
            for k in 0..3 {
                let line = path.flown_value(i, k) + u * (path.flown_value(i + 1, k) - path.flown_value(i, k));
                assert!((found[k] - line).abs() < 1e-9);
            }
        }
        for k in 0..3 {
            let here = path.span_velocities(i, k);
            if i > 0 {
                assert_eq!(path.span_velocities(i - 1, k).1, here.0);
            }
            if i + 1 < path.spans() {
                assert_eq!(path.span_velocities(i + 1, k).0, here.1);
            }
        }
        assert_eq!(path.status().not_matching, 0);
    }
}

fn turn(axis: [f64; 3], angle: f64) -> [f64; 4] {
    quat_exp(axis.map(|x| 0.5 * angle * x))
}

fn rotation_keys(n: usize) -> Vec<CameraKey> {
    (0..n)
        .map(|i| {
            let i = i as f64;
            let q = quat_multiply(turn([0.0, 1.0, 0.0], 0.9 * i), turn([1.0, 0.0, 0.0], (1.7 * i).sin()));
            CameraKey { rotation: Some(q), ..CameraKey::new(i + 0.3 * (i * i % 2.0), vec![i, 0.0, 0.0]) }
        })
        .collect()
}

fn xyz() -> Vec<Channel> {
    ["x", "y", "z"].map(Channel::new).to_vec()
}

#[test]
fn rotations_as_quaternions_meet_their_keys_of_either_sign_at_any_amount() {
    let keys = rotation_keys(9);
    let mut flipped = keys.clone();
    for key in flipped.iter_mut().step_by(2) {
        key.rotation = key.rotation.map(|q| q.map(|x| -x));
    }
    for amount in [0.0, 0.5, 1.0] {
        let path = smoothed(CameraPath::new(xyz(), keys.clone()).unwrap(), amount);
        let other = smoothed(CameraPath::new(xyz(), flipped.clone()).unwrap(), amount);
        for key in &keys {
            let (a, b) = (path.pose(key.time).rotation, key.rotation.unwrap());
            let cosine: f64 = (0..4).map(|k| a[k] * b[k]).sum();
            assert!((cosine.abs() - 1.0).abs() < 1e-14);
        }
        for k in 0..90 {
            let t = f64::from(k) * 0.1;
            let (a, b) = (path.pose(t).rotation, other.pose(t).rotation);
            let cosine: f64 = (0..4).map(|k| a[k] * b[k]).sum();
            assert!((cosine.abs() - 1.0).abs() < 1e-13);
        }
    }
}

#[test]
fn a_closed_path_of_quaternions_turns_through_its_seam_without_a_bump() {
    let mut path = smoothed(CameraPath::new(xyz(), rotation_keys(6)).unwrap(), 1.0);
    path.close(Some(1.1)).unwrap();
    let (start, end) = (path.start(), path.end());
    let e = 1e-3;
    let rate = |t: f64| path.turning_rate(t);
    assert!((rate(end - e) - rate(start + e)).abs() < 0.02, "{} {}", rate(end - e), rate(start + e));
    let (a, b) = (path.pose(start + 0.2).rotation, path.pose(end + 0.2).rotation);
    assert!(((0..4).map(|k| a[k] * b[k]).sum::<f64>().abs() - 1.0).abs() < 1e-9);
}

#[test]
fn a_camera_told_what_to_look_at_keeps_it_in_the_middle_of_the_frame() {
    let mut path = smoothed(path_of(random_keys(&mut Dice(13))), 1.0);
    let target = MovingTarget::new(&[0.0, 40_000.0], &[[0.0; 3], [900.0, 5.0, 3.0]], true).unwrap();
    for look in [LookAt::Place([1.0, 2.0, 3.0]), LookAt::Moving(Box::new(target.clone()))] {
        path.set_look_at(Some(look.clone())).unwrap();
        for k in 0..50 {
            let t = path.start() + (path.end() - path.start()) * f64::from(k) / 49.0;
            let pose = path.pose(t);
            let place = if let LookAt::Place(place) = look { place } else { target.place(t) };
            let to = [0, 1, 2].map(|k| place[k] - pose.position[k]);
            let sight = quat_rotate(pose.rotation, [0.0, 0.0, -1.0]);
            let length = to.iter().map(|x| x * x).sum::<f64>().sqrt();
            for k in 0..3 {
                assert!((sight[k] - to[k] / length).abs() < 1e-12);
            }
        }
    }
    let error = path.set_look_at(Some(LookAt::Channels)).unwrap_err().to_string();
    assert!(error.contains("target.x") && error.contains("yaw"), "{error}");
}

#[test]
fn levelling_takes_the_roll_out_and_leaves_the_view() {
    let mut path = smoothed(CameraPath::new(xyz(), rotation_keys(7)).unwrap(), 1.0);
    let sights: Vec<_> =
        (0..60).map(|k| quat_rotate(path.pose(f64::from(k) * 0.1).rotation, [0.0, 0.0, -1.0])).collect();
    path.set_level(true);
    for (k, sight) in sights.iter().enumerate() {
        let q = path.pose(k as f64 * 0.1).rotation;
        assert!(quat_rotate(q, [1.0, 0.0, 0.0])[1].abs() < 1e-12);
        let found = quat_rotate(q, [0.0, 0.0, -1.0]);
        assert!((0..3).all(|k| (found[k] - sight[k]).abs() < 1e-9), "{k}");
    }
}

#[test]
fn a_follow_shot_keeps_its_subject_still_in_the_frame() {
    // The same offset at every key, from a subject that swerves and turns.
    let keys = (0..5).map(|i| CameraKey::new(f64::from(i) * 0.8, vec![0.0, 2.0, 6.0])).collect();
    let mut path = smoothed(CameraPath::new(xyz(), keys).unwrap(), 1.0);
    let times = [0.0, 0.5, 1.1, 2.0, 3.5];
    let places = [[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [7.0, 1.0, -3.0], [2.0, 0.0, -9.0], [0.0, 0.0, 4.0]];
    let turns = times.map(|t| turn([0.0, 1.0, 0.0], t * t));
    let subject = MovingTarget::new(&times, &places, true).unwrap().turning(&times, &turns).unwrap();
    path.follow(Some(subject.clone()));
    for k in 0..64 {
        let t = f64::from(k) * 0.05;
        let pose = path.pose(t);
        let from = [0, 1, 2].map(|k| pose.position[k] - subject.place(t)[k]);
        let [x, y, z, w] = pose.rotation;
        let seen = quat_rotate([-x, -y, -z, w], from);
        for (a, b) in seen.iter().zip([0.0, 2.0, 6.0]) {
            assert!((a - b).abs() < 1e-12, "at {t}: {seen:?}");
        }
        let e = 1e-6;
        let (a, b) = (path.pose(t + 0.001 - e).position, path.pose(t + 0.001 + e).position);
        for (k, v) in path.velocity(t + 0.001).iter().enumerate() {
            assert!((v - (b[k] - a[k]) / (2.0 * e)).abs() < 1e-3 * (1.0 + v.abs()), "at {t}");
        }
    }
}

#[test]
fn an_even_speed_is_even_and_meets_every_key_on_the_same_road() {
    let mut dice = Dice(14);
    for round in 0..40 {
        let path = smoothed(path_of(random_keys(&mut dice)), 1.0);
        let how = Retime { max_turning: None, ..Retime::default() };
        let even = path.retime(&how).unwrap();
        assert!((even.duration() - (path.end() - path.start())).abs() < 1e-9);
        let mean = (1..200).map(|k| even.speed(even.duration() * f64::from(k) / 200.0)).sum::<f64>() / 199.0;
        for k in 1..200 {
            let speed = even.speed(even.duration() * f64::from(k) / 200.0);
            // Pieces fit to 1e-7 of their length, so speeds to some thousandths.
            assert!((speed - mean).abs() < 0.01 * mean, "round {round}: {speed} against {mean}");
        }
        for (i, &t) in even.key_times().iter().enumerate() {
            assert!((even.path_time(t) - path.times()[i]).abs() < 1e-7);
            let (a, b) = (even.pose(t).position, path.pose(path.times()[i]).position);
            assert!((0..3).all(|k| (a[k] - b[k]).abs() < 1e-3));
        }
    }
}

#[test]
fn a_retimed_path_as_keys_plays_within_its_bound() {
    let mut dice = Dice(31);
    for round in 0..40 {
        let mut path = if round % 2 == 0 {
            path_of(random_keys(&mut dice))
        } else {
            CameraPath::new(xyz(), random_rotation_keys(&mut dice)).unwrap()
        };
        path.set_smoothing(Smoothing::amount(if round % 3 == 0 { 0.4 } else { 1.0 })).unwrap();
        match round % 5 {
            1 => path.close(Some(dice.between(0.4, 3.0))).unwrap(),
            2 if round % 2 == 0 => path.set_look_at(Some(LookAt::Place([100.0, 3.0, 100.0]))).unwrap(),
            _ => {}
        }
        let how = Retime { ease_in_s: 0.1, ease_out_s: 0.05, max_turning: Some(40.0), ..Retime::default() };
        let Ok(clock) = path.retime(&how) else { continue };
        let bound = KeyBound { place_m: 5e-3, turn_rad: 2e-3 };
        let found = clock.keys(&bound).unwrap();
        assert!(
            found.place_m <= bound.place_m && found.turn_rad <= bound.turn_rad,
            "round {round}: {found:?}"
        );
        let (mut place, mut turn) = (0.0_f64, 0.0_f64);
        for k in 0..3000 {
            let t = clock.duration() * f64::from(k) / 2999.0;
            let (a, b) = (clock.pose(t), found.path.pose(t));
            place = place.max((0..3).map(|k| (a.position[k] - b.position[k]).powi(2)).sum::<f64>().sqrt());
            turn = turn.max(apart(a.rotation, b.rotation));
            if let (Some(a), Some(b)) = (a.fov, b.fov) {
                turn = turn.max((a - b).abs());
            }
        }
        // Looked at elsewhere than where keys were added by.
        assert!(
            place <= 1.05 * bound.place_m && turn <= 1.05 * bound.turn_rad,
            "round {round}: {place} {turn}"
        );
        assert!((found.path.start(), found.path.end()) == (0.0, clock.duration()), "round {round}");
    }
}

#[test]
fn a_retimed_path_as_keys_keeps_its_cuts_and_its_modes() {
    let path = with_modes(&TWO_MODES);
    let clock = path.retime(&Retime { duration: Some(10.0), ..Retime::default() }).unwrap();
    let found = clock.keys(&KeyBound::default()).unwrap();
    let modes = found.path.status().modes;
    assert_eq!((modes[0].mode.as_str(), modes[0].cuts, modes[1].mode.as_str()), ("free", 1, "board"));
    let cut = clock.time_of(3.0);
    for (time, x) in [(cut - 1e-6, 0.0), (cut + 1e-9, 50.0)] {
        assert!(
            (found.path.pose(time).position[0] - x).abs() < 1e-3,
            "{}",
            found.path.pose(time).position[0]
        );
    }
    assert!(clock.keys(&KeyBound { place_m: 0.0, ..KeyBound::default() }).is_err());
}

#[test]
fn turning_is_capped_and_the_whole_takes_longer_only_if_it_must() {
    let mut dice = Dice(15);
    for _ in 0..20 {
        let path = smoothed(path_of(random_keys(&mut dice)), 1.0);
        for (cap, ease) in [(0.5, 0.0), (0.5, 0.4)] {
            let how = Retime {
                max_turning: Some(cap),
                ease_in_s: ease,
                ease_out_s: 0.3 * ease,
                ..Retime::default()
            };
            let Ok(held) = path.retime(&how) else { continue };
            let mut turned = 0.0;
            for k in 1..400 {
                let rate = held.turning_rate(held.duration() * f64::from(k) / 400.0);
                assert!(rate <= cap * 1.02, "{rate} over {cap}");
                turned += rate * held.duration() / 400.0;
            }
            assert!(held.duration() * cap >= turned * 0.98);
        }
    }
}

#[test]
fn easing_starts_and_ends_at_rest_and_keeps_the_duration() {
    let path = smoothed(simple(&[(0.0, 0.0), (3.0, 30.0), (4.0, 31.0), (9.0, 80.0)]), 1.0);
    let how = Retime { ease_in_s: 2.0, ease_out_s: 1.0, ..Retime::default() };
    let eased = path.retime(&how).unwrap();
    assert_eq!(eased.duration(), 9.0);
    assert!(eased.speed(1e-6) < 1e-3 && eased.speed(9.0 - 1e-6) < 1e-3);
    // 80 m in 9 s with half speed over 3 s of easing: 80 / 7.5 in between.
    for t in [2.1, 4.0, 7.9] {
        assert!((eased.speed(t) - 80.0 / 7.5).abs() < 0.02, "{}", eased.speed(t));
    }
    assert_eq!(eased.path_time(0.0), 0.0);
    assert_eq!(eased.path_time(9.0), 9.0);
    assert!(path.retime(&Retime { ease_in_s: 8.0, ease_out_s: 2.0, ..Retime::default() }).is_err());
    assert!(path.retime(&Retime { duration: Some(f64::NAN), ..Retime::default() }).is_err());
}

#[test]
fn a_camera_that_stands_still_or_has_one_key_can_be_retimed() {
    let still = simple(&[(0.0, 1.0), (2.0, 1.0)]);
    let retimed = still.retime(&Retime::default()).unwrap();
    assert!((retimed.path_time(1.0) - 1.0).abs() < 1e-9);
    let single = simple(&[(5.0, 1.0)]);
    let retimed = single.retime(&Retime::default()).unwrap();
    assert_eq!((retimed.duration(), retimed.path_time(3.0), retimed.pose(0.0).position[0]), (0.0, 5.0, 1.0));
}

#[test]
fn bad_keys_are_refused_by_name_and_leave_the_path_as_it_was() {
    let channels = || vec![Channel::new("x"), Channel::new("fov")];
    let key = |t: f64, x: f64| CameraKey::new(t, vec![x, 1.0]);
    let text = |keys: Vec<CameraKey>| CameraPath::new(channels(), keys).unwrap_err().to_string();
    assert!(text(vec![]).contains("at least one key"));
    assert!(text(vec![key(0.0, 0.0), key(1.0, 0.0), key(1.0, 2.0)]).contains("same time"));
    assert!(text(vec![key(0.0, 0.0), key(2.0, 0.0), key(1.0, 2.0)]).contains("out of order"));
    let nan = text(vec![key(0.0, 0.0), key(1.0, f64::NAN)]);
    assert!(nan.contains("channel x") && nan.contains("key 1"), "{nan}");
    assert!(text(vec![key(0.0, 0.0), key(f64::INFINITY, 0.0)]).contains("key 1 has time inf"));
    assert!(text(vec![CameraKey::new(0.0, vec![1.0])]).contains("has 1 values, but the path has 2 channels"));
    let twice = CameraPath::new(vec![Channel::new("x"), Channel::new("x")], vec![]).unwrap_err().to_string();
    assert!(twice.contains("two channels are called x"));

    let mut path = CameraPath::new(channels(), vec![key(0.0, 0.0), key(1.0, 5.0)]).unwrap();
    let before = path.keys();
    assert!(path.insert(key(1.0, 3.0)).is_err());
    assert!(path.insert(key(0.5, f64::NAN)).is_err());
    assert!(path.set_key(7, key(0.5, 1.0)).unwrap_err().to_string().contains("no key 7"));
    assert!(path.set_smoothing(Smoothing::amount(1.5)).unwrap_err().to_string().contains("from 0"));
    assert!(path.close(Some(-1.0)).is_err());
    assert_eq!(path.keys(), before);
    assert!((path.pose(0.5).position[0] - 2.5).abs() < 1e-12);
    path.remove(0).unwrap();
    assert_eq!(path.remove(0).unwrap_err(), CameraError::LastKey);
}
