//! Ops about what was imported or made: counts, names, times, kinds of spans.

use inbetween::math::angle_between;
use inbetween::{Property, SpanKind, TrackData, glam::DQuat};
use serde_json::Value;

use crate::subject::{Subject, curves_of, key_count, number, property_of};
use crate::{Check, Verdict};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[
    ("duration", duration),
    ("time_range", time_range),
    ("rate_hz", rate_hz),
    ("frame_count", frame_count),
    ("clip_count", clip_count),
    ("clip_name", clip_name),
    ("track_count", track_count),
    ("node_count", node_count),
    ("key_count", keys),
    ("keys_at_most", keys_at_most),
    ("max_gap_deg", max_gap_deg),
    ("track_present", track_present),
    ("not_animated", not_animated),
    ("interpolation", interpolation),
    ("times_strictly_increasing", times_strictly_increasing),
    ("total_keys_below_source", total_keys_below_source),
    ("file_smaller_than_source", file_smaller_than_source),
    ("file_not_larger_than_source", file_not_larger_than_source),
    ("loop_period", duration),
];

/// Compares a number with `value`/`tol`, `value_in`, `min`, `max`.
pub fn expect_number(found: f64, check: &Value) -> Verdict {
    let tol = number(check, "tol").unwrap_or(1e-9);
    if let Some(options) = check.get("value_in").and_then(Value::as_array) {
        let fits = options.iter().filter_map(Value::as_f64).any(|v| (v - found).abs() <= tol);
        return Verdict::that(fits, || format!("found {found}, expected one of {options:?}"));
    }
    let (value, min, max) = (number(check, "value"), number(check, "min"), number(check, "max"));
    if value.is_none() && min.is_none() && max.is_none() {
        return Verdict::Fail("the check states no value".to_owned());
    }
    let fits = value.is_none_or(|v| (v - found).abs() <= tol)
        && min.is_none_or(|v| found >= v - tol)
        && max.is_none_or(|v| found <= v + tol);
    Verdict::that(fits, || {
        format!("found {found}, expected {:?} (min {min:?}, max {max:?}) within {tol}", value)
    })
}

fn with_clip(subject: &Subject, check: &Value, f: impl FnOnce(&inbetween::Clip) -> Verdict) -> Verdict {
    let clip = subject.file().and_then(|file| Ok(&file.house.clips[file.clip(check)?]));
    match clip {
        Ok(clip) => f(clip),
        Err(why) => Verdict::Fail(why),
    }
}

fn duration(subject: &Subject, check: &Value) -> Verdict {
    with_clip(subject, check, |clip| expect_number(clip.duration(), check))
}

fn time_range(subject: &Subject, check: &Value) -> Verdict {
    with_clip(subject, check, |clip| {
        let tol = number(check, "tol").unwrap_or(1e-6);
        let fits = |key: &str, found: f64| number(check, key).is_none_or(|v| (v - found).abs() <= tol);
        Verdict::that(fits("start", clip.start()) && fits("end", clip.end()), || {
            format!("runs from {} s to {} s, not as {check} says", clip.start(), clip.end())
        })
    })
}

fn rate_hz(subject: &Subject, check: &Value) -> Verdict {
    with_clip(subject, check, |clip| {
        let Some(rate) = clip.rate else { return Verdict::Fail("the clip has no rate".to_owned()) };
        if let (Some(num), Some(den)) = (number(check, "num"), number(check, "den")) {
            let same = f64::from(rate.num()) * den == f64::from(rate.den()) * num;
            return Verdict::that(same, || format!("the rate is {rate}"));
        }
        if let Some(text) = check.get("value").and_then(Value::as_str) {
            let wanted = inbetween::FrameRate::parse(text).ok();
            return Verdict::that(wanted == Some(rate), || format!("the rate is {rate}, not {text}"));
        }
        expect_number(rate.as_f64(), check)
    })
}

fn frame_count(subject: &Subject, check: &Value) -> Verdict {
    with_clip(subject, check, |clip| {
        let frames = match clip.rate {
            Some(rate) => (clip.duration() * rate.as_f64()).round() + 1.0,
            None => clip.key_times().len() as f64,
        };
        expect_number(frames, check)
    })
}

fn clip_count(subject: &Subject, check: &Value) -> Verdict {
    match subject.file() {
        Ok(file) => expect_number(file.house.clips.len() as f64, check),
        Err(why) => Verdict::Fail(why),
    }
}

fn clip_name(subject: &Subject, check: &Value) -> Verdict {
    with_clip(subject, check, |clip| {
        let wanted = check.get("value").and_then(Value::as_str);
        Verdict::that(wanted == Some(clip.name.as_str()), || format!("the clip is called {:?}", clip.name))
    })
}

fn track_count(subject: &Subject, check: &Value) -> Verdict {
    let result = subject.file().and_then(|file| {
        let clip = &file.house.clips[file.clip(check)?];
        let node = match check.get("node").or_else(|| check.get("node_index")) {
            Some(_) => Some(file.node(check, "node")?),
            None => None,
        };
        Ok(clip.tracks.iter().filter(|t| node.is_none() || t.binding.node == node).count())
    });
    result.map_or_else(Verdict::Fail, |count| expect_number(count as f64, check))
}

fn node_count(subject: &Subject, check: &Value) -> Verdict {
    match subject.file() {
        Ok(file) => expect_number(file.house.skeleton.len() as f64, check),
        Err(why) => Verdict::Fail(why),
    }
}

/// Hands the track a check means, and the component it names, to `f`.
fn with_track(
    subject: &Subject,
    check: &Value,
    f: impl FnOnce(&inbetween::Track, Option<usize>) -> Verdict,
) -> Verdict {
    let found = subject.file().and_then(|file| {
        let clip = file.clip(check)?;
        let track = file.track(clip, check)?.ok_or_else(|| format!("there is no such track: {check}"))?;
        // In the file's axes, in which a check names a component.
        Ok(&file.raw.clips[clip].tracks[track])
    });
    let component = check.get("path").and_then(Value::as_str).and_then(|p| property_of(p).1);
    match found {
        Ok(track) => f(track, component),
        Err(why) => Verdict::Fail(why),
    }
}

fn keys(subject: &Subject, check: &Value) -> Verdict {
    with_track(subject, check, |track, component| expect_number(key_count(track, component) as f64, check))
}

fn keys_at_most(subject: &Subject, check: &Value) -> Verdict {
    let most = number(check, "value").or_else(|| number(check, "max"));
    let Some(most) = most else { return Verdict::Fail("the check states no value".to_owned()) };
    let judge =
        |found: usize| Verdict::that(found as f64 <= most, || format!("{found} keys, more than {most}"));
    if check.get("node").is_none() && check.get("node_index").is_none() && check.get("target").is_none() {
        return with_clip(subject, check, |clip| judge(clip.key_count()));
    }
    // A track that is gone has no keys; whether it may go is what `track_present` asks.
    match subject.file().and_then(|f| f.track(f.clip(check)?, check)) {
        Ok(None) => Verdict::Pass,
        _ => with_track(subject, check, |track, component| judge(key_count(track, component))),
    }
}

fn max_gap_deg(subject: &Subject, check: &Value) -> Verdict {
    with_track(subject, check, |track, _| {
        let most = number(check, "value").unwrap_or(180.0);
        let times = track.data.key_times();
        let q = |t: f64| DQuat::from_slice(&track.value_at(t));
        let stepped = |t: f64| match &track.data {
            TrackData::Curve(c) => {
                let i = c.times().partition_point(|&k| k <= t).saturating_sub(1);
                matches!(c.span(i), SpanKind::Step | SpanKind::StepNext)
            }
            _ => false,
        };
        let worst = times
            .windows(2)
            .filter(|w| !stepped(w[0]))
            .map(|w| angle_between(q(w[0]), q(w[1])).to_degrees())
            .fold(0.0, f64::max);
        Verdict::that(track.binding.property == Property::Rotation && worst <= most, || {
            format!("neighbouring keys lie up to {worst} degrees apart, more than {most}")
        })
    })
}

fn track_present(subject: &Subject, check: &Value) -> Verdict {
    let wanted = check.get("value").and_then(Value::as_bool).unwrap_or(true);
    match subject.file().and_then(|f| f.track(f.clip(check)?, check)) {
        Ok(found) => Verdict::that(found.is_some() == wanted, || {
            format!("the track is {}", if found.is_some() { "there" } else { "not there" })
        }),
        Err(why) => Verdict::Fail(why),
    }
}

fn not_animated(subject: &Subject, check: &Value) -> Verdict {
    let result = subject.file().and_then(|file| {
        let clips = match check.get("clip") {
            Some(_) => vec![file.clip(check)?],
            None => (0..file.house.clips.len()).collect(),
        };
        let node = file.node(check, "node")?;
        let path = check.get("path").and_then(Value::as_str);
        for clip in clips {
            let found = file.house.clips[clip].tracks.iter().find(|t| {
                t.binding.node == Some(node)
                    && t.enabled
                    && path.is_none_or(|p| t.binding.property.name() == p)
            });
            if let Some(track) = found {
                return Err(format!("clip {clip} has a {} track for it", track.binding.property.name()));
            }
        }
        Ok(())
    });
    Verdict::from(result)
}

fn interpolation(subject: &Subject, check: &Value) -> Verdict {
    with_track(subject, check, |track, component| {
        let wanted = check.get("value").and_then(Value::as_str).unwrap_or("").to_lowercase();
        let fits = |kind: SpanKind| match wanted.as_str() {
            "step" | "constant" | "stepped" => matches!(kind, SpanKind::Step | SpanKind::StepNext),
            "linear" => kind == SpanKind::Linear,
            "cubic" | "cubicspline" | "hermite" | "spline" => {
                matches!(kind, SpanKind::Hermite | SpanKind::Bezier)
            }
            "bezier" => kind == SpanKind::Bezier,
            _ => false,
        };
        for curve in curves_of(track, component) {
            for i in 0..curve.len().max(2) - 1 {
                if !fits(curve.span(i)) {
                    return Verdict::Fail(format!(
                        "the span after key {i} is {:?}, not {wanted}",
                        curve.span(i)
                    ));
                }
            }
        }
        Verdict::Pass
    })
}

fn times_strictly_increasing(subject: &Subject, check: &Value) -> Verdict {
    let result = subject.file().and_then(|file| {
        let clips = match check.get("clip") {
            Some(_) => vec![file.clip(check)?],
            None => (0..file.house.clips.len()).collect(),
        };
        for clip in clips {
            for track in &file.house.clips[clip].tracks {
                for curve in track.data.curves() {
                    if let Some(i) = curve.times().windows(2).position(|w| w[0] >= w[1]) {
                        let name = &track.binding.target;
                        return Err(format!("{name}: key {} is not after key {i}", i + 1));
                    }
                }
            }
        }
        Ok(())
    });
    Verdict::from(result)
}

fn with_source(
    subject: &Subject,
    f: impl FnOnce(&crate::subject::File, &crate::subject::File) -> Verdict,
) -> Verdict {
    match (subject.file(), &subject.source) {
        (Ok(file), Some(source)) => f(file, source),
        (Err(why), _) => Verdict::Fail(why),
        (_, None) => Verdict::Fail("there is no source to compare with".to_owned()),
    }
}

fn total_keys_below_source(subject: &Subject, _: &Value) -> Verdict {
    with_source(subject, |file, source| {
        let keys =
            |f: &crate::subject::File| f.house.clips.iter().map(inbetween::Clip::key_count).sum::<usize>();
        Verdict::that(keys(file) < keys(source), || format!("{} keys of {}", keys(file), keys(source)))
    })
}

fn file_smaller_than_source(subject: &Subject, _: &Value) -> Verdict {
    with_source(subject, |file, source| {
        Verdict::that(file.size < source.size, || format!("{} bytes of {}", file.size, source.size))
    })
}

fn file_not_larger_than_source(subject: &Subject, _: &Value) -> Verdict {
    with_source(subject, |file, source| {
        Verdict::that(file.size <= source.size, || format!("{} bytes of {}", file.size, source.size))
    })
}
