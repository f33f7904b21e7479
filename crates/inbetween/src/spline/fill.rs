//! Smooth spans for a curve of the model: any rule fills its Hermite tangents.
//!
//! The idea: a natural spline is no kind of span but a rule that picks velocities, so
//! a curve keeps its keys and gets tangents that every sampler, writer and codec
//! already understands.

use super::keys::SplineError;
use super::tangents::{Keys, Scratch, TangentRule};
use crate::curve::{Curve, CurveError, SpanKind, Spans, Tangents, ValueKind};
use thiserror::Error;

/// Why a curve cannot be smoothed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SmoothError {
    /// The kind of value has nothing between its keys, or turns.
    #[error("a curve of kind {0:?} is not smoothed by components; smooth rotations with a rotation spline")]
    Kind(ValueKind),
    /// The rule does not fit the keys.
    #[error(transparent)]
    Rule(#[from] SplineError),
    /// The tangents do not fit a curve: two keys are too near each other.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

/// The same keys with Hermite spans whose tangents `rule` picks, component by
/// component. Extrapolation is kept.
///
/// ```
/// use inbetween::spline::{TangentRule, smooth_curve};
/// use inbetween::{Curve, ValueKind};
/// let line = Curve::linear(ValueKind::Scalar, vec![0.0, 1.0, 2.0], vec![0.0, 2.0, 0.0])?;
/// let smooth = smooth_curve(&line, &TangentRule::Natural)?;
/// assert_eq!(smooth.scalar_at(0.5), 1.375);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`SmoothError::Kind`] for switches and rotations, [`SmoothError::Rule`] for a rule
/// that does not fit, [`SmoothError::Curve`] where keys are too near each other.
pub fn smooth_curve(curve: &Curve, rule: &TangentRule) -> Result<Curve, SmoothError> {
    let kind = curve.kind();
    if matches!(kind, ValueKind::Switch | ValueKind::Rotation) {
        return Err(SmoothError::Kind(kind));
    }
    let mut parts = curve.parts().clone();
    let mut tangents = Tangents { leave: vec![0.0; parts.values.len()], ..Tangents::default() };
    tangents.arrive = tangents.leave.clone();
    let keys = Keys::new(&parts.times, &parts.values, curve.width());
    rule.fill(keys, &mut tangents.arrive, &mut tangents.leave, &mut Scratch::default())?;
    parts.spans = Spans::Uniform(SpanKind::Hermite);
    parts.tangents = Some(Box::new(tangents));
    Ok(Curve::new(parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spline::Spline;

    #[test]
    fn a_smoothed_curve_plays_as_the_spline_does() {
        let times = vec![0.0, 0.7, 1.0, 2.5];
        let values = vec![0.0, 1.0, 4.0, 2.0, -3.0, 5.0, 1.0, 1.0];
        let curve = Curve::linear(ValueKind::Vector(2), times.clone(), values.clone()).unwrap();
        for rule in [TangentRule::Natural, TangentRule::Monotone, TangentRule::CatmullRomUniform] {
            let smooth = smooth_curve(&curve, &rule).unwrap();
            let spline = Spline::new(&times, &values, 2, &rule).unwrap();
            for k in 0..=50 {
                let t = f64::from(k) * 0.05;
                let mut out = [0.0; 2];
                smooth.eval(t, &mut out);
                for c in 0..2 {
                    assert!((out[c] - spline.component(c, t)).abs() < 1e-13, "{rule:?} at {t}");
                }
            }
        }
    }

    #[test]
    fn switches_and_rotations_are_refused() {
        let switch = Curve::step(ValueKind::Switch, vec![0.0], vec![1.0]).unwrap();
        assert_eq!(smooth_curve(&switch, &TangentRule::Natural), Err(SmoothError::Kind(ValueKind::Switch)));
    }
}
