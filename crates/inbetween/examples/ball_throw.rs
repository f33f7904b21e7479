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

/// Three drawings side by side: key frames, straight lines, spline, with the furthest each
/// is from the true flight, which is dotted.
fn picture(
    keys: &[(f64, f64)],
    line: &dyn Fn(f64) -> f64,
    spline: &dyn Fn(f64) -> f64,
    flight: &dyn Fn(f64) -> f64,
) -> String {
    let (width, height, gap, foot) = (270.0, 190.0, 26.0, 66.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>A ball thrown, as key frames, straight lines and a natural spline</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        3.0 * width + 4.0 * gap,
        40.0 + height + foot
    );
    let off = |of: &dyn Fn(f64) -> f64| {
        let places = (0..=3000).map(|k| 2.0 * REACH * f64::from(k) / 3000.0);
        places
            .map(|x| ((of(x) - flight(x)).abs() / HEIGHT, x))
            .fold((0.0, 0.0), |w, p| if p.0 > w.0 + 1e-9 { p } else { w })
    };
    type Height<'a> = &'a dyn Fn(f64) -> f64;
    let curves: [(&str, Option<Height<'_>>); 3] =
        [("key frames", None), ("straight lines", Some(line)), ("natural spline", Some(spline))];
    for (i, (title, curve)) in curves.into_iter().enumerate() {
        let left = gap + i as f64 * (width + gap);
        let at = |(x, y): (f64, f64)| {
            (left + (0.06 + 0.88 * x / (2.0 * REACH)) * width, 40.0 + height * (0.94 - 0.84 * y / HEIGHT))
        };
        let path = |of: &dyn Fn(f64) -> f64| -> String {
            let points = (0..=120).map(|k| 2.0 * REACH * f64::from(k) / 120.0).map(|x| at((x, of(x))));
            points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(out, "<text x=\"{left}\" y=\"26\" font-size=\"14\">{title}</text>");
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"40\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbb\"/>"
        );
        for (x, name) in [(0.0, "0"), (REACH, "H"), (2.0 * REACH, "2H")] {
            let (from, to) = (at((x, 0.0)), at((x, HEIGHT)));
            let _ = writeln!(
                out,
                "<line x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\" stroke=\"#e4e7ec\"/>\
                 <text x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"middle\" fill=\"#626a76\">{name}</text>",
                from.0,
                from.1,
                to.1,
                40.0 + height + 16.0
            );
        }
        for (y, name) in [(0.0, "0"), (HEIGHT, "h")] {
            let (from, to) = (at((0.0, y)), at((2.0 * REACH, y)));
            let _ = writeln!(
                out,
                "<line x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{2:.1}\" y2=\"{1:.1}\" stroke=\"#e4e7ec\"/>\
                 <text x=\"{3:.1}\" y=\"{4:.1}\" text-anchor=\"end\" fill=\"#626a76\">{name}</text>",
                from.0,
                from.1,
                to.0,
                left - 5.0,
                from.1 + 4.0
            );
        }
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#888\" stroke-width=\"1.2\" stroke-dasharray=\"2 3\"/>",
            path(flight)
        );
        let mut words = "dots: keys; dotted: the true flight".to_owned();
        if let Some(curve) = curve {
            let points = if i == 1 {
                keys.iter()
                    .map(|&k| at(k))
                    .map(|(x, y)| format!("{x:.1},{y:.1}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            } else {
                path(curve)
            };
            let _ = writeln!(
                out,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>"
            );
            let (far, x) = off(curve);
            let (a, b) = (at((x, flight(x))), at((x, curve(x))));
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#c43c48\" stroke-width=\"2\"/>",
                a.0, a.1, b.0, b.1
            );
            words = format!("up to {far:.3} h off, at {:.3} H", x / REACH);
        }
        let _ = writeln!(
            out,
            "<text x=\"{left}\" y=\"{}\" fill=\"#626a76\">{words}</text>",
            40.0 + height + 40.0
        );
        for &key in keys {
            let (x, y) = at(key);
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#d55e00\"/>");
        }
    }
    out.push_str("</svg>\n");
    out
}
