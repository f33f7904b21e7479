//! One span of one component: value and derivative of the kinds that need arithmetic.
//!
//! A Hermite span has values `p0`, `p1` and slopes `m0`, `m1` per second over `h` seconds.
//! A Bezier span has its two inner points as offsets in time and value from its own key, and
//! its time has to be solved for the curve parameter. A handle may be as long in time as the gap,
//! and two such handles may overlap: time never runs backward as long as both inner points lie
//! within the gap. A longer handle is cut to the gap, in time and value alike. (Programs that
//! scale overlapping handles down before they evaluate want that done by their importer.)

/// Value of the Hermite span at `s` seconds after its first key.
///
/// Written about the first key (see CURVES: c2, c3), so the value at `s = 0` is `p0` exactly.
pub fn hermite(p0: f64, m0: f64, p1: f64, m1: f64, h: f64, s: f64) -> f64 {
    let d = (p1 - p0) / h;
    let c2 = (3.0 * d - 2.0 * m0 - m1) / h;
    let c3 = (m0 + m1 - 2.0 * d) / (h * h);
    p0 + s * (m0 + s * (c2 + s * c3))
}

/// Slope per second of the Hermite span at `s` seconds after its first key.
pub fn hermite_slope(p0: f64, m0: f64, p1: f64, m1: f64, h: f64, s: f64) -> f64 {
    let d = (p1 - p0) / h;
    let c2 = (3.0 * d - 2.0 * m0 - m1) / h;
    let c3 = (m0 + m1 - 2.0 * d) / (h * h);
    m0 + s * (2.0 * c2 + s * 3.0 * c3)
}

/// The two inner points of a Bezier span: offsets from the key each belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handles {
    /// Seconds after the first key, not negative.
    pub leave_dt: f64,
    /// Value above the first key.
    pub leave: f64,
    /// Seconds before the second key, not negative.
    pub arrive_dt: f64,
    /// Value above the second key.
    pub arrive: f64,
}

impl Handles {
    /// The handles as they are used: none longer in time than the gap `h`.
    fn fitted(self, h: f64) -> Self {
        let cut = |dt: f64, value: f64| if dt <= h { (dt, value) } else { (h, value * (h / dt)) };
        let (leave_dt, leave) = cut(self.leave_dt, self.leave);
        let (arrive_dt, arrive) = cut(self.arrive_dt, self.arrive);
        Self { leave_dt, leave, arrive_dt, arrive }
    }
}

fn bezier_at(a: f64, b: f64, c: f64, d: f64, u: f64) -> f64 {
    let v = 1.0 - u;
    v * v * v * a + 3.0 * v * v * u * b + 3.0 * v * u * u * c + u * u * u * d
}

fn bezier_slope_at(a: f64, b: f64, c: f64, d: f64, u: f64) -> f64 {
    let v = 1.0 - u;
    3.0 * (v * v * (b - a) + 2.0 * v * u * (c - b) + u * u * (d - c))
}

/// The curve parameter 0..1 at which the span's time is `s` (0..`h`): Newton kept inside a
/// bracket, so it always converges; time is monotone in the parameter.
fn solve_parameter(x1: f64, x2: f64, h: f64, s: f64) -> f64 {
    if s <= 0.0 {
        return 0.0;
    }
    if s >= h {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    let mut u = s / h;
    for _ in 0..80 {
        let f = bezier_at(0.0, x1, x2, h, u) - s;
        if f == 0.0 {
            break;
        }
        if f < 0.0 {
            low = u;
        } else {
            high = u;
        }
        let slope = bezier_slope_at(0.0, x1, x2, h, u);
        let newton = u - f / slope;
        let next = if slope > 0.0 && newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - u).abs() <= 1e-16 {
            break;
        }
        u = next;
    }
    u
}

/// Value of the Bezier span at `s` seconds after its first key.
pub fn bezier(p0: f64, p1: f64, handles: Handles, h: f64, s: f64) -> f64 {
    let k = handles.fitted(h);
    let u = solve_parameter(k.leave_dt, h - k.arrive_dt, h, s);
    bezier_at(p0, p0 + k.leave, p1 + k.arrive, p1, u)
}

/// Slope per second of the Bezier span at `s` seconds after its first key; where the curve
/// stands upright (a handle without time), the slope of the chord instead of an infinity.
pub fn bezier_slope(p0: f64, p1: f64, handles: Handles, h: f64, s: f64) -> f64 {
    let k = handles.fitted(h);
    let (x1, x2) = (k.leave_dt, h - k.arrive_dt);
    let u = solve_parameter(x1, x2, h, s);
    let dx = bezier_slope_at(0.0, x1, x2, h, u);
    if dx <= 1e-12 * h {
        return (p1 - p0) / h;
    }
    bezier_slope_at(p0, p0 + k.leave, p1 + k.arrive, p1, u) / dx
}

/// The piece of a Bezier span between the times `piece.0` and `piece.1` (seconds after the first
/// key): its handles, each an offset from its own end of the piece.
pub fn bezier_piece(p0: f64, p1: f64, handles: Handles, h: f64, piece: (f64, f64)) -> Handles {
    let k = handles.fitted(h);
    let (x1, x2) = (k.leave_dt, h - k.arrive_dt);
    let (u0, u1) = (solve_parameter(x1, x2, h, piece.0), solve_parameter(x1, x2, h, piece.1));
    let third = (u1 - u0) / 3.0;
    let slope = |u: f64| {
        let dx = bezier_slope_at(0.0, x1, x2, h, u);
        let dy = bezier_slope_at(p0, p0 + k.leave, p1 + k.arrive, p1, u);
        (dx * third, dy * third)
    };
    let ((leave_dt, leave), (arrive_dt, arrive)) = (slope(u0), slope(u1));
    Handles { leave_dt: leave_dt.max(0.0), leave, arrive_dt: arrive_dt.max(0.0), arrive: -arrive }
}

/// A Bezier span cut in two at `s` seconds: the value there, and the handles of both halves.
pub fn bezier_split(p0: f64, p1: f64, handles: Handles, h: f64, s: f64) -> (f64, Handles, Handles) {
    let value = bezier(p0, p1, handles, h, s);
    (value, bezier_piece(p0, p1, handles, h, (0.0, s)), bezier_piece(p0, p1, handles, h, (s, h)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_at_thirds_are_the_hermite_span() {
        let handles = Handles { leave_dt: 1.0, leave: 2.0, arrive_dt: 1.0, arrive: 1.5 };
        for i in 0..=30 {
            let s = 0.1 * f64::from(i);
            let b = bezier(1.0, 4.0, handles, 3.0, s);
            let h = hermite(1.0, 2.0, 4.0, -1.5, 3.0, s);
            assert!((b - h).abs() < 1e-14, "{s}: {b} {h}");
        }
    }

    #[test]
    fn overlapping_handles_are_taken_as_they_are_and_too_long_ones_cut() {
        let overlapping = Handles { leave_dt: 0.9, leave: 4.0, arrive_dt: 0.8, arrive: 3.0 };
        for i in 0..=100 {
            let u = f64::from(i) / 100.0;
            let (x, y) = (bezier_at(0.0, 0.9, 0.2, 1.0, u), bezier_at(0.0, 4.0, 4.0, 1.0, u));
            assert!((bezier(0.0, 1.0, overlapping, 1.0, x) - y).abs() < 1e-9, "{u}");
        }
        let long = Handles { leave_dt: 2.0, leave: 8.0, arrive_dt: 0.8, arrive: 3.0 };
        let cut = Handles { leave_dt: 1.0, leave: 4.0, ..long };
        assert_eq!(bezier(0.0, 1.0, long, 1.0, 0.3), bezier(0.0, 1.0, cut, 1.0, 0.3));
    }

    #[test]
    fn slopes_are_those_of_the_values() {
        let handles = Handles { leave_dt: 0.9, leave: 3.0, arrive_dt: 0.3, arrive: -1.0 };
        for i in 1..20 {
            let s = 0.1 * f64::from(i);
            let e = 1e-6;
            let slope =
                (bezier(0.0, 1.0, handles, 2.0, s + e) - bezier(0.0, 1.0, handles, 2.0, s - e)) / (2.0 * e);
            assert!((slope - bezier_slope(0.0, 1.0, handles, 2.0, s)).abs() < 1e-6);
        }
    }
}
