//! A drawing as a PNG, twice as fine as its pixels, on light paper, with its own letters.
//!
//! Letters come from a font that is compiled in, so a picture is the same on every machine; it
//! has Latin, Greek and Cyrillic ones, anything else is drawn as a box.

use ab_glyph::{Font, FontRef, OutlineCurve, PxScale, ScaleFont as _};
use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};

use super::{Anchor, Canvas, Ink, Pen};

/// Dots for each pixel of the drawing, in x and y.
const FINE: f32 = 2.0;

/// Largest side of a picture in dots; a taller drawing is refused.
const LARGEST: f64 = 32_000.0;

/// Collects a drawing dot by dot.
pub struct Png {
    pixels: Pixmap,
    font: FontRef<'static>,
}

impl Png {
    /// An empty drawing of that many pixels.
    ///
    /// # Errors
    /// If it is too large, in words for the user.
    pub fn new(width: f64, height: f64) -> Result<Self, String> {
        let (w, h) = (width * f64::from(FINE), height * f64::from(FINE));
        if !(1.0..=LARGEST).contains(&w) || !(1.0..=LARGEST).contains(&h) {
            return Err(format!(
                "a PNG of {width:.0} by {height:.0} pixels is too large; choose fewer tracks with --target, or write an .svg"
            ));
        }
        let mut pixels = Pixmap::new(w as u32, h as u32).ok_or("no memory for the picture")?;
        let (r, g, b) = Ink::Paper.colours()[0];
        pixels.fill(tiny_skia::Color::from_rgba8(r, g, b, 255));
        let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).map_err(|e| e.to_string())?;
        Ok(Self { pixels, font })
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// As the encoder says.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        self.pixels.encode_png().map_err(|e| e.to_string())
    }

    fn fill(&mut self, path: &Path, ink: Ink, alpha: u8) {
        self.pixels.fill_path(path, &paint(ink, alpha), FillRule::Winding, to_dots(), None);
    }
}

fn to_dots() -> Transform {
    Transform::from_scale(FINE, FINE)
}

fn paint(ink: Ink, alpha: u8) -> Paint<'static> {
    let (r, g, b) = ink.colours()[0];
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, alpha);
    paint.anti_alias = true;
    paint
}

fn path_of(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        if i == 0 {
            path.move_to(x as f32, y as f32);
        } else {
            path.line_to(x as f32, y as f32);
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}

impl Canvas for Png {
    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, ink: Ink) {
        if let Some(rect) = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32) {
            self.pixels.fill_rect(rect, &paint(ink, 255), to_dots(), None);
        }
    }

    fn line(&mut self, points: &[(f64, f64)], pen: Pen) {
        let Some(path) = path_of(points, false) else { return };
        let stroke = Stroke {
            width: pen.width as f32,
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            dash: if pen.dashed { StrokeDash::new(vec![5.0, 4.0], 0.0) } else { None },
            ..Stroke::default()
        };
        self.pixels.stroke_path(&path, &paint(pen.ink, 255), &stroke, to_dots(), None);
    }

    fn area(&mut self, points: &[(f64, f64)], ink: Ink) {
        if let Some(path) = path_of(points, true) {
            self.fill(&path, ink, 77);
        }
    }

    fn dot(&mut self, x: f64, y: f64, radius: f64, ink: Ink) {
        if let Some(path) = PathBuilder::from_circle(x as f32, y as f32, radius as f32) {
            self.fill(&path, ink, 255);
        }
    }

    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, ink: Ink, words: &str) {
        let font = self.font.clone();
        let scale = PxScale::from(size as f32 * 1.15);
        let scaled = font.as_scaled(scale);
        let width: f32 = words.chars().map(|c| scaled.h_advance(font.glyph_id(c))).sum();
        let mut pen = x as f32
            - match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5 * width,
                Anchor::End => width,
            };
        let factor = scaled.h_scale_factor();
        let mut path = PathBuilder::new();
        for c in words.chars() {
            let id = font.glyph_id(c);
            if let Some(outline) = font.outline(id) {
                let at = |p: ab_glyph::Point| (pen + p.x * factor, y as f32 - p.y * factor);
                let mut last = None;
                for curve in &outline.curves {
                    let (from, _) = ends(curve);
                    if last != Some((from.x.to_bits(), from.y.to_bits())) {
                        let (px, py) = at(from);
                        path.move_to(px, py);
                    }
                    let to = match curve {
                        OutlineCurve::Line(_, b) => {
                            let (bx, by) = at(*b);
                            path.line_to(bx, by);
                            *b
                        }
                        OutlineCurve::Quad(_, c, b) => {
                            let ((cx, cy), (bx, by)) = (at(*c), at(*b));
                            path.quad_to(cx, cy, bx, by);
                            *b
                        }
                        OutlineCurve::Cubic(_, c, d, b) => {
                            let ((cx, cy), (dx, dy), (bx, by)) = (at(*c), at(*d), at(*b));
                            path.cubic_to(cx, cy, dx, dy, bx, by);
                            *b
                        }
                    };
                    last = Some((to.x.to_bits(), to.y.to_bits()));
                }
            }
            pen += scaled.h_advance(id);
        }
        if let Some(path) = path.finish() {
            self.fill(&path, ink, 255);
        }
    }
}

/// First and last point of a piece of an outline.
fn ends(curve: &OutlineCurve) -> (ab_glyph::Point, ab_glyph::Point) {
    match curve {
        OutlineCurve::Line(a, b) | OutlineCurve::Quad(a, _, b) | OutlineCurve::Cubic(a, _, _, b) => (*a, *b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_leave_ink_on_the_paper() {
        let mut png = Png::new(80.0, 20.0).unwrap();
        png.text(2.0, 15.0, 12.0, Anchor::Start, Ink::Text, "Hips 0.83");
        let dark = png.pixels.pixels().iter().filter(|p| p.red() < 128).count();
        assert!(dark > 100, "{dark}");
        assert_eq!(&png.bytes().unwrap()[1..4], b"PNG");
        assert!(Png::new(80.0, 1e6).is_err());
    }
}
