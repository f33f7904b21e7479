//! A drawing as SVG text, small and readable, that turns dark where its page or reader does.

use std::fmt::Write as _;

use super::{Anchor, Canvas, Ink, Pen};

/// Collects the elements of a drawing.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// The colours as CSS, for light and for dark.
pub fn style() -> String {
    let rule = |ink: Ink, i: usize| {
        let (r, g, b) = ink.colours()[i];
        format!("--{}:#{r:02x}{g:02x}{b:02x};", ink.class())
    };
    let all = |i: usize| Ink::ALL.iter().map(|&k| rule(k, i)).collect::<String>();
    let mut css = format!(":root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}", all(0), all(1));
    let _ = write!(css, "@media print{{:root{{{}}}}}", all(0));
    for ink in Ink::ALL {
        let name = ink.class();
        let _ = write!(css, ".f-{name}{{fill:var(--{name})}}.l-{name}{{stroke:var(--{name});fill:none}}");
    }
    css.push_str("svg text{font-family:system-ui,sans-serif}svg polyline,svg path{stroke-linejoin:round}");
    css
}

/// Text as it may stand in XML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with a tenth of a pixel.
fn px(v: f64) -> String {
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Svg {
    /// An empty drawing of that many pixels.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// The element to put into a page that has [`style`] already.
    pub fn element(&self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            px(self.width),
            px(self.height),
            escape(label),
            self.body
        )
    }

    /// A file that stands alone.
    pub fn document(&self, label: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\
             <title>{2}</title><style>{3}</style>\
             <rect class=\"f-paper\" width=\"{0}\" height=\"{1}\"/>{4}</svg>\n",
            px(self.width),
            px(self.height),
            escape(label),
            style(),
            self.body
        )
    }

    fn points(&mut self, points: &[(f64, f64)]) {
        for (i, (x, y)) in points.iter().enumerate() {
            if i > 0 {
                self.body.push(' ');
            }
            let _ = write!(self.body, "{},{}", px(*x), px(*y));
        }
    }
}

impl Canvas for Svg {
    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, ink: Ink) {
        let _ = write!(
            self.body,
            "<rect class=\"f-{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            ink.class(),
            px(x),
            px(y),
            px(width),
            px(height)
        );
    }

    fn line(&mut self, points: &[(f64, f64)], pen: Pen) {
        let dash = if pen.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = write!(
            self.body,
            "<polyline class=\"l-{}\" stroke-width=\"{}\"{dash} points=\"",
            pen.ink.class(),
            px(pen.width)
        );
        self.points(points);
        self.body.push_str("\"/>");
    }

    fn area(&mut self, points: &[(f64, f64)], ink: Ink) {
        let _ = write!(self.body, "<polygon class=\"f-{}\" fill-opacity=\".3\" points=\"", ink.class());
        self.points(points);
        self.body.push_str("\"/>");
    }

    fn dot(&mut self, x: f64, y: f64, radius: f64, ink: Ink) {
        let _ = write!(
            self.body,
            "<circle class=\"f-{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            ink.class(),
            px(x),
            px(y),
            px(radius)
        );
    }

    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, ink: Ink, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"f-{}\" x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            ink.class(),
            px(x),
            px(y),
            px(size),
            escape(words)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_cannot_break_out_of_the_page() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(0.0, 0.0, 9.0, Anchor::Start, Ink::Text, "<script>\"&\u{0}");
        let text = svg.document("</title>");
        assert!(!text.contains("<script>") && !text.contains("</title></title>") && !text.contains('\u{0}'));
    }
}
