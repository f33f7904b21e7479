//! The ball throw: three keys, two cubic pieces, and how near they come to a parabola.
//!
//! Prints the pieces S₀ and S₁ as a + b·s + c·s² + d·s³ and, given a file name, draws the
//! keys, the straight lines between them, the spline and the true flight as an SVG:
//! `cargo run -p inbetween --example ball_throw -- docs/ball-throw.svg`

use std::fmt::Write as _;

use inbetween::spline::{Spline, TangentRule};

/// Half the width of the throw and its height, metres.
const REACH: f64 = 1.0;
const HEIGHT: f64 = 1.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = [(0.0, 0.0), (REACH, HEIGHT), (2.0 * REACH, 0.0)];
    let (times, values) = (keys.map(|k| k.0), keys.map(|k| k.1));
    let spline = Spline::new(&times, &values, 1, &TangentRule::Natural)?;
    for i in 0..spline.spans() {
        let s = spline.cubic(i, 0);
        println!("S{i}: a = {}, b = {}, c = {}, d = {}", s.a, s.b, s.c, s.d);
    }
    let flight = |x: f64| HEIGHT * (2.0 * x / REACH - (x / REACH) * (x / REACH));
    let line = |x: f64| HEIGHT * (1.0 - (x / REACH - 1.0).abs());
    let worst = |of: &dyn Fn(f64) -> f64| {
        (0..=3000)
            .map(|k| 2.0 * REACH * f64::from(k) / 3000.0)
            .map(|x| (of(x) - flight(x)).abs())
            .fold(0.0, f64::max)
    };
    println!(
        "furthest from the true flight: straight lines {:.4}, spline {:.4}",
        worst(&line),
        worst(&|x| spline.value(x))
    );
    if let Some(file) = std::env::args().nth(1) {
        std::fs::write(&file, picture(&keys, &line, &|x| spline.value(x), &flight))?;
        println!("drawn in {file}");
    }
    Ok(())
}

/// Three drawings side by side: key frames, straight lines, spline; the true flight dotted.
fn picture(
    keys: &[(f64, f64)],
    line: &dyn Fn(f64) -> f64,
    spline: &dyn Fn(f64) -> f64,
    flight: &dyn Fn(f64) -> f64,
) -> String {
    let (width, height, gap) = (260.0, 190.0, 20.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>A ball thrown, as key frames, straight lines and a natural spline</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        3.0 * width + 4.0 * gap,
        height + 60.0
    );
    for (i, title) in ["key frames", "straight lines", "natural spline"].iter().enumerate() {
        let left = gap + i as f64 * (width + gap);
        let at = |(x, y): (f64, f64)| {
            (left + x / (2.0 * REACH) * width, 40.0 + height * (1.0 - y / (1.1 * HEIGHT)))
        };
        let path = |of: &dyn Fn(f64) -> f64| -> String {
            let points = (0..=120).map(|k| 2.0 * REACH * f64::from(k) / 120.0).map(|x| at((x, of(x))));
            points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(out, "<text x=\"{left}\" y=\"24\">{title}</text>");
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"40\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbb\"/>"
        );
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#999\" stroke-dasharray=\"2 3\"/>",
            path(flight)
        );
        if i > 0 {
            let curve = if i == 1 { path(line) } else { path(spline) };
            let _ = writeln!(
                out,
                "<polyline points=\"{curve}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>"
            );
        }
        for &key in keys {
            let (x, y) = at(key);
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#d55e00\"/>");
        }
    }
    out.push_str("</svg>\n");
    out
}
