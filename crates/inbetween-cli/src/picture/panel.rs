//! A panel: the curves of one track over time, their keys, a second version of them over the
//! first, and the difference beneath.

use super::{Anchor, Canvas, Ink, Pen, ticks};

/// Height of the curves of a panel, pixels.
pub const CURVES: f64 = 150.0;
/// Height of the strip of differences.
const STRIP: f64 = 46.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TITLE: f64 = 26.0;
const AXIS: f64 = 24.0;

/// One line and the keys on it.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// Time in seconds and value, by increasing time.
    pub points: Vec<(f64, f64)>,
    /// Keys to mark.
    pub keys: Vec<(f64, f64)>,
}

/// The difference between two versions of a track.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Time in seconds and size of the difference.
    pub points: Vec<(f64, f64)>,
    /// Unit of the size.
    pub unit: String,
    /// What it must stay under, if anything.
    pub bound: Option<f64>,
}

/// Everything a panel shows.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Above it, on the left.
    pub title: String,
    /// Above it, on the right.
    pub note: String,
    /// Unit of the values.
    pub unit: String,
    /// A line a component, as it was (drawn grey behind) where there is a second version.
    pub before: Vec<Line>,
    /// What the legend calls those lines; nothing is said if empty.
    pub before_name: String,
    /// A line a component.
    pub lines: Vec<Line>,
    /// Pieces of the lines to point out, by time and value.
    pub marked: Vec<Vec<(f64, f64)>>,
    /// Beneath the curves.
    pub strip: Option<Strip>,
    /// A time to point out, seconds.
    pub mark: Option<f64>,
}

impl Panel {
    /// Its height in pixels.
    pub fn height(&self) -> f64 {
        TITLE + CURVES + self.strip.as_ref().map_or(0.0, |_| STRIP + 10.0) + AXIS
    }

    /// Draws it with its top at `top` into a canvas `width` wide.
    pub fn draw(&self, canvas: &mut dyn Canvas, top: f64, width: f64) {
        let all = || self.before.iter().chain(&self.lines);
        let (t0, t1) = range(all().flat_map(|l| l.points.iter().map(|p| p.0)), 0.0);
        let (v0, v1) = range(all().flat_map(|l| l.points.iter().map(|p| p.1)), 0.06);
        let (right, y0) = (width - RIGHT, top + TITLE);
        let x = |t: f64| LEFT + (t - t0) / (t1 - t0) * (right - LEFT);
        let y = |v: f64| y0 + CURVES - (v - v0) / (v1 - v0) * CURVES;
        canvas.text(LEFT, top + 16.0, 13.0, Anchor::Start, Ink::Text, &self.title);
        canvas.text(right, top + 16.0, 11.0, Anchor::End, Ink::Quiet, &self.note);
        let bottom = y0 + CURVES + self.strip.as_ref().map_or(0.0, |_| STRIP + 10.0);
        let time_ticks = ticks(t0, t1, 8);
        for (t, label) in &time_ticks {
            canvas.line(&[(x(*t), y0), (x(*t), bottom)], Pen::solid(Ink::Grid, 1.0));
            canvas.text(x(*t), bottom + 15.0, 10.0, Anchor::Middle, Ink::Quiet, &format!("{label} s"));
        }
        for (v, label) in ticks(v0, v1, 4) {
            canvas.line(&[(LEFT, y(v)), (right, y(v))], Pen::solid(Ink::Grid, 1.0));
            canvas.text(LEFT - 6.0, y(v) + 3.5, 10.0, Anchor::End, Ink::Quiet, &label);
        }
        canvas.text(LEFT - 6.0, top + 16.0, 10.0, Anchor::End, Ink::Quiet, &self.unit);
        frame(canvas, LEFT, y0, right - LEFT, CURVES);
        if let Some(t) = self.mark {
            let pen = Pen { ink: Ink::Mark, width: 1.0, dashed: true };
            canvas.line(&[(x(t), y0), (x(t), bottom)], pen);
        }
        for line in &self.before {
            let points: Vec<_> = line.points.iter().map(|&(t, v)| (x(t), y(v))).collect();
            canvas.line(&thinned(&points), Pen::solid(Ink::Source, 3.0));
            // Thousands of keys would paint the curve over; they are told in the note.
            if line.keys.len() as f64 <= (right - LEFT) / 4.0 {
                for &(t, v) in &line.keys {
                    canvas.dot(x(t), y(v), 2.0, Ink::Source);
                }
            }
        }
        // Beside the title, where no curve runs through it.
        let mut legend = LEFT + 20.0 + 7.0 * self.title.chars().count() as f64;
        if !self.before_name.is_empty() {
            entry(canvas, &mut legend, top, Pen::solid(Ink::Source, 3.0), &self.before_name);
        }
        for (i, line) in self.lines.iter().enumerate() {
            let ink = Ink::Series(u8::try_from(i % 5).unwrap_or(0));
            let points: Vec<_> = line.points.iter().map(|&(t, v)| (x(t), y(v))).collect();
            canvas.line(&thinned(&points), Pen::solid(ink, 1.5));
            for &(t, v) in &line.keys {
                canvas.dot(x(t), y(v), if line.keys.len() > 300 { 1.4 } else { 2.6 }, ink);
            }
            if !line.name.is_empty() {
                entry(canvas, &mut legend, top, Pen::solid(ink, 2.0), &line.name);
            }
        }
        for piece in &self.marked {
            let points: Vec<_> = piece.iter().map(|&(t, v)| (x(t), y(v))).collect();
            canvas.line(&thinned(&points), Pen::solid(Ink::Mark, 3.0));
        }
        if let Some(strip) = &self.strip {
            strip.draw(canvas, y0 + CURVES + 10.0, right, &x);
        }
    }
}

/// One entry of a legend at `left`, which moves on to where the next begins.
pub fn entry(canvas: &mut dyn Canvas, left: &mut f64, top: f64, pen: Pen, name: &str) {
    canvas.line(&[(*left, top + 12.0), (*left + 14.0, top + 12.0)], pen);
    canvas.text(*left + 19.0, top + 16.0, 10.0, Anchor::Start, Ink::Text, name);
    *left += 34.0 + 6.0 * name.chars().count() as f64;
}

impl Strip {
    fn draw(&self, canvas: &mut dyn Canvas, top: f64, right: f64, x: &dyn Fn(f64) -> f64) {
        let largest = self.points.iter().map(|p| p.1).fold(0.0, f64::max);
        // Headroom over the larger of the error and, if it is near, the bound.
        let full = match self.bound {
            Some(bound) if bound <= 4.0 * largest => 1.15 * bound.max(largest),
            _ if largest > 0.0 => 1.15 * largest,
            _ => 1.0,
        };
        let y = |v: f64| top + STRIP - (v / full).clamp(0.0, 1.0) * STRIP;
        frame(canvas, LEFT, top, right - LEFT, STRIP);
        let mut shape = vec![(LEFT, top + STRIP)];
        let points: Vec<_> = self.points.iter().map(|&(t, v)| (x(t), y(v))).collect();
        shape.extend(thinned(&points));
        shape.push((self.points.last().map_or(right, |p| x(p.0)), top + STRIP));
        if let Some(first) = self.points.first() {
            shape[0].0 = x(first.0);
        }
        canvas.area(&shape, Ink::Error);
        let n = shape.len();
        canvas.line(&shape[1..n - 1], Pen::solid(Ink::Error, 1.2));
        if let Some(bound) = self.bound
            && bound <= full
        {
            canvas.line(
                &[(LEFT, y(bound)), (right, y(bound))],
                Pen { ink: Ink::Mark, width: 1.0, dashed: true },
            );
        }
        let number = crate::units::short(largest);
        canvas.text(LEFT - 6.0, y(largest).max(top + 8.0) + 3.5, 10.0, Anchor::End, Ink::Error, &number);
        canvas.text(LEFT - 6.0, top + STRIP + 1.0, 9.0, Anchor::End, Ink::Quiet, &self.unit);
    }
}

/// Leaves out points that lie within a tenth of a pixel of the line through the others, so that a
/// picture of thousands of samples stays small.
pub fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let n = points.len();
    if n < 3 {
        return points.to_vec();
    }
    let mut keep = vec![false; n];
    (keep[0], keep[n - 1]) = (true, true);
    let mut open = vec![(0, n - 1)];
    while let Some((a, b)) = open.pop() {
        let ((x0, y0), (x1, y1)) = (points[a], points[b]);
        let length = (x1 - x0).hypot(y1 - y0);
        let off = |&(x, y): &(f64, f64)| {
            if length < 1e-9 {
                (x - x0).hypot(y - y0)
            } else {
                ((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)).abs() / length
            }
        };
        let far =
            (a + 1..b).map(|i| (i, off(&points[i]))).fold((a, 0.1), |w, p| if p.1 > w.1 { p } else { w });
        if far.0 != a {
            keep[far.0] = true;
            open.extend([(a, far.0), (far.0, b)]);
        }
    }
    points.iter().zip(keep).filter(|(_, k)| *k).map(|(p, _)| *p).collect()
}

fn frame(canvas: &mut dyn Canvas, x: f64, y: f64, width: f64, height: f64) {
    let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)];
    canvas.line(&corners, Pen::solid(Ink::Frame, 1.0));
}

/// Smallest and largest of `values`, apart even where they are one, with a margin.
fn range(values: impl Iterator<Item = f64>, margin: f64) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    // A curve that does not move gets an axis that shows so.
    let least = 1e-6 * low.abs().max(high.abs()).max(1e-3);
    if high - low < least {
        let half = 0.5 * low.abs().max(1.0);
        return if margin == 0.0 { (low, low + 1.0) } else { (low - half, high + half) };
    }
    let extra = margin * (high - low);
    (low - extra, high + extra)
}

/// Draws panels one below the other under a heading; returns the height used if `canvas` is none.
pub fn stack(panels: &[Panel], heading: &str, width: f64, canvas: Option<&mut dyn Canvas>) -> f64 {
    let mut top = if heading.is_empty() { 6.0 } else { 34.0 };
    if let Some(canvas) = canvas {
        if !heading.is_empty() {
            canvas.text(LEFT, 24.0, 16.0, Anchor::Start, Ink::Text, heading);
        }
        for panel in panels {
            panel.draw(canvas, top, width);
            top += panel.height() + 8.0;
        }
    } else {
        top += panels.iter().map(|p| p.height() + 8.0).sum::<f64>();
    }
    top + 4.0
}
