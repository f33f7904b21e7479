//! Which keys to keep, once it is known which spans are allowed.
//!
//! A reduction picks keys `0 = k₀ < k₁ < … = n − 1` so that every span `kᵢ → kᵢ₊₁` is allowed: drawing it
//! leaves no skipped sample further off than its tolerance. A [`Spans`] answers which ends can be reached
//! from one key; the searches here only walk over those answers, so scalars, vectors, rotations and cubic
//! keys share them.
//!
//! - [`farthest`]: extend it as long as any line can still hold, and take the last end that does.
//! - [`nearly_optimal`]: breadth-first over layers of "reachable with k spans", within a fixed amount of work
//!   per sample. Never more keys than `farthest`; on real curves nearly always the fewest there are.
//! - [`optimal`]: the same without the limit, so the fewest keys that exist. Quadratic on a straight line;
//!   it is the judge the others are measured by.
//!
//! Allowed ends are not monotone: an end may fail and a later one hold again, which is why the last good end
//! is not always the best place to stop.

/// Tells which spans from one key are allowed.
pub trait Spans {
    /// Number of samples.
    fn len(&self) -> usize;

    /// Visits the possible ends `from + 1, from + 2, …` of a span starting at `from`, in order, calling
    /// `visit(end, allowed)`; stops when no later end can be allowed, when `visit` returns `false`, or at the
    /// last sample. `from + 1` is always allowed. Returns the work done, in samples looked at.
    fn scan(&mut self, from: usize, visit: impl FnMut(usize, bool) -> bool) -> usize;

    /// True if there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How much farther than the last good end a scan goes on while it finds nothing, relative to the span so far.
/// Without it a cone that has shrunk to a sliver could be carried along for the rest of the curve from every
/// key, which is quadratic.
pub(super) fn patience(span: usize) -> usize {
    16 + 4 * span
}

/// Keys kept when each span goes to the last end that is allowed.
///
/// Returns strictly increasing indices, the first 0 and the last `len − 1` (one index for one sample, none for
/// none). Linear time for spans whose scan is linear.
pub fn farthest(spans: &mut impl Spans) -> Vec<usize> {
    greedy(spans, |spans, from| {
        let mut best = from + 1;
        let mut limit = best + patience(1);
        spans.scan(from, |end, allowed| {
            if allowed {
                best = end;
                limit = end + patience(end - from);
            }
            end + 1 < limit
        });
        best
    })
}

/// Follows the one path that `next` gives.
fn greedy<S: Spans>(spans: &mut S, next: impl Fn(&mut S, usize) -> usize) -> Vec<usize> {
    let n = spans.len();
    let mut kept = Vec::new();
    if n == 0 {
        return kept;
    }
    kept.push(0);
    let mut from = 0;
    while from + 1 < n {
        from = next(spans, from);
        kept.push(from);
    }
    kept
}

/// Samples looked at per sample of the curve by [`nearly_optimal`], unless a caller says otherwise. Moving it
/// up costs time in proportion and comes closer to the optimum.
pub const WORK_PER_SAMPLE: usize = 6;

/// Nearly the fewest keys, in linear time.
///
/// Layer k holds the samples that can be reached with k spans and no fewer. Each layer is expanded from its
/// far end backwards until `work_per_sample` times the samples passed so far have been looked at; the
/// farthest one is always expanded, so the path of [`farthest`] is always among those searched.
pub fn nearly_optimal(spans: &mut impl Spans, work_per_sample: usize) -> Vec<usize> {
    layered(spans, Some(work_per_sample))
}

/// The fewest keys there are.
///
/// Breadth-first over every allowed span: O(n · reach), which on a curve that is one long straight line is
/// quadratic in the worst case. Use it as a judge, or where n is small.
pub fn optimal(spans: &mut impl Spans) -> Vec<usize> {
    layered(spans, None)
}

/// Marks a sample that no path has reached yet.
const UNREACHED: u32 = u32::MAX;

fn layered(spans: &mut impl Spans, work_per_sample: Option<usize>) -> Vec<usize> {
    let n = spans.len();
    if n <= 2 {
        return (0..n).collect();
    }
    assert!(n < UNREACHED as usize, "a curve of {n} samples is longer than its indices reach");
    let last = n - 1;
    let mut parent = vec![UNREACHED; n];
    parent[0] = 0;
    let mut layer: Vec<u32> = vec![0];
    let mut next: Vec<u32> = Vec::new();
    let mut work = 0_usize;
    loop {
        // Far ends first: they carry most, and the ones left out by the limit are those farthest behind.
        // Each scan reaches its ends in increasing order, so a layer is a few ascending runs; the sort is
        // close to linear on those.
        layer.sort_unstable();
        let frontier = *layer.last().expect("every layer holds at least the successor of its best") as usize;
        next.clear();
        for (nth, &from) in layer.iter().rev().enumerate() {
            if nth > 0 && work_per_sample.is_some_and(|w| work > w * (frontier + 1)) {
                break;
            }
            let from = from as usize;
            let limited = work_per_sample.is_some();
            let mut limit = from + 1 + patience(1);
            work += spans.scan(from, |end, allowed| {
                if allowed {
                    if parent[end] == UNREACHED {
                        parent[end] = from as u32;
                        next.push(end as u32);
                    }
                    limit = end + patience(end - from);
                }
                !limited || end + 1 < limit
            });
            if parent[last] != UNREACHED {
                return path(&parent, last);
            }
        }
        std::mem::swap(&mut layer, &mut next);
    }
}

/// Follows the parents back from `last`.
fn path(parent: &[u32], last: usize) -> Vec<usize> {
    let mut kept = vec![last];
    let mut at = last;
    while at != 0 {
        at = parent[at] as usize;
        kept.push(at);
    }
    kept.reverse();
    kept
}
