//! Nearly the fewest straight spans of a scalar curve, at the speed of the greedy ones.
//!
//! [`farthest`](super::search::farthest) follows one path. Here `WIDTH` paths with the same number of keys
//! are followed side by side: the ends of the last span that lie farthest. Their cones of slopes are advanced
//! in lock step, sample by sample, as rows of `WIDTH` numbers, which the compiler turns into vector
//! arithmetic; the division, the expensive part, is shared out over the lanes. From the spans that hold, the
//! farthest end and some behind it go on.
//!
//! Linear time and, apart from the result, `WIDTH` words per kept key.

use super::cone::{ScalarCone, Tolerance};
use super::search::{self, patience};

/// An end reached, and which end of the layer before it was reached from.
#[derive(Clone, Copy)]
struct Node {
    at: usize,
    parent: usize,
}

/// The cones of a layer's ends, one per lane.
struct Cones<const WIDTH: usize> {
    time: [f64; WIDTH],
    value: [f64; WIDTH],
    low: [f64; WIDTH],
    high: [f64; WIDTH],
}

impl<const WIDTH: usize> Cones<WIDTH> {
    /// Cones that let nothing through; lanes without an end stay so.
    fn shut() -> Self {
        Self {
            time: [f64::NEG_INFINITY; WIDTH],
            value: [0.0; WIDTH],
            low: [f64::INFINITY; WIDTH],
            high: [f64::NEG_INFINITY; WIDTH],
        }
    }

    /// Takes the sample into every cone. Returns the lanes whose span to it is allowed, as bits, and whether any cone
    /// is still open behind it.
    #[inline(always)]
    fn advance(&mut self, time: f64, value: f64, tolerance: f64) -> (u32, bool) {
        let mut allowed = 0_u32;
        let mut open = 0_u32;
        for lane in 0..WIDTH {
            let per_second = 1.0 / (time - self.time[lane]);
            let slope = (value - self.value[lane]) * per_second;
            let slack = tolerance * per_second;
            let (low, high) = (self.low[lane], self.high[lane]);
            allowed |= u32::from((low <= slope) & (slope <= high)) << lane;
            let (below, above) = (slope - slack, slope + slack);
            let low = if below > low { below } else { low };
            let high = if above < high { above } else { high };
            self.low[lane] = low;
            self.high[lane] = high;
            open |= u32::from(low <= high);
        }
        (allowed, open != 0)
    }
}

/// Nearly the fewest keys whose straight lines pass every sample within its tolerance.
///
/// - `times`: strictly increasing seconds; `values`: as many, in some unit; `tolerance` in that unit, ≥ 0.
/// - returns the kept indices, increasing, first and last sample among them.
///
/// Every skipped sample is tested. Linear time whatever the curve: 40 to 125 million samples a second and core
/// where more than a hundred keys stay. Where fewer do, up to 64 looks a sample are spent on finding the fewest.
///
/// # Panics
/// If the two lengths differ.
pub fn nearly_optimal_scalar(times: &[f64], values: &[f64], tolerance: impl Tolerance) -> Vec<usize> {
    assert_eq!(times.len(), values.len(), "a value per time");
    if times.len() <= 2 {
        return (0..times.len()).collect();
    }
    let kept = beam::<4>(times, values, &tolerance);
    if kept.len() == 2 || kept.len() > FEW {
        return kept;
    }
    let mut spans = ScalarCone::new(times, values, Borrowed(&tolerance));
    let wide = search::nearly_optimal(&mut spans, WIDE);
    if wide.len() < kept.len() { wide } else { kept }
}

/// Where no more keys than this are left, one or two too many are a twentieth, and a search that goes nearly
/// everywhere is made as well.
const FEW: usize = 100;

/// Samples that search may look at per sample. Still linear, and on short curves enough for the optimum.
const WIDE: usize = 64;

/// A tolerance that belongs to the caller.
struct Borrowed<'a, T>(&'a T);

impl<T: Tolerance> Tolerance for Borrowed<'_, T> {
    fn at(&self, index: usize) -> f64 {
        self.0.at(index)
    }
}

fn beam<const WIDTH: usize>(times: &[f64], values: &[f64], tolerance: &impl Tolerance) -> Vec<usize> {
    let n = times.len();
    let last = n - 1;
    // All ends of all layers, each layer in increasing order.
    let mut nodes = vec![Node { at: 0, parent: 0 }];
    let mut layer = 0..1;
    let mut ends = Vec::new();
    loop {
        let front = nodes[layer.end - 1].at;
        if front == last {
            break;
        }
        let mut cones = Cones::<WIDTH>::shut();
        for (lane, node) in nodes[layer.clone()].iter().enumerate() {
            let (low, high) = cone_to(times, values, tolerance, node.at, front);
            cones.time[lane] = times[node.at];
            cones.value[lane] = values[node.at];
            cones.low[lane] = low;
            cones.high[lane] = high;
        }
        ends.clear();
        let mut limit = usize::MAX;
        for end in front + 1..n {
            let (allowed, open) = cones.advance(times[end], values[end], tolerance.at(end));
            if allowed != 0 {
                ends.push(Node { at: end, parent: layer.start + allowed.trailing_zeros() as usize });
                limit = end + patience(end - front);
            }
            if !open || end + 1 >= limit {
                break;
            }
        }
        let start = nodes.len();
        spread::<WIDTH>(&ends, |node| nodes.push(node));
        layer = start..nodes.len();
    }
    let mut kept = Vec::new();
    let mut node = nodes[layer.end - 1];
    while node.at != 0 {
        kept.push(node.at);
        node = nodes[node.parent];
    }
    kept.push(0);
    kept.reverse();
    kept
}

/// The cone of slopes from `from` behind the samples up to `until`; shut where it is empty.
fn cone_to(
    times: &[f64],
    values: &[f64],
    tolerance: &impl Tolerance,
    from: usize,
    until: usize,
) -> (f64, f64) {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for k in from + 1..=until {
        let per_second = 1.0 / (times[k] - times[from]);
        let slope = (values[k] - values[from]) * per_second;
        let slack = tolerance.at(k) * per_second;
        let (below, above) = (slope - slack, slope + slack);
        low = if below > low { below } else { low };
        high = if above < high { above } else { high };
        if low > high {
            return (f64::INFINITY, f64::NEG_INFINITY);
        }
    }
    (low, high)
}

/// Picks the farthest end and others behind it, in increasing order: dense close by, thinner farther back,
/// because neighbouring ends are much alike. `count·¾·(k/WIDTH)²` was the best of a dozen spreads tried.
fn spread<const WIDTH: usize>(ends: &[Node], mut take: impl FnMut(Node)) {
    let count = ends.len();
    if count <= WIDTH {
        ends.iter().for_each(|end| take(*end));
        return;
    }
    for k in (0..WIDTH).rev() {
        let back = (k * k * 3 * count / (4 * WIDTH * WIDTH)).max(k).min(count - 1);
        take(ends[count - 1 - back]);
    }
}
