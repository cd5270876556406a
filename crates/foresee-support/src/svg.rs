//! What all pictures share: an SVG document, and text inside XML.

use std::fmt::{self, Write as _};

/// A text as the content or an attribute of an XML element: what would be markup is escaped, what
/// XML forbids is left out.
#[derive(Clone, Copy, Debug)]
pub struct Xml<'a>(pub &'a str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' => f.write_char(c)?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// The part of the plane that a picture shows.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// From the left edge to the right one.
    pub width: f64,
    /// From the upper edge to the lower one.
    pub height: f64,
}

/// An SVG document being drawn. Shapes are written to it as text; what needs escaping goes through [`Canvas::text`],
/// [`Canvas::title`] or [`Xml`].
#[derive(Debug)]
pub struct Canvas {
    svg: String,
    view: View,
}

impl Canvas {
    /// An empty picture, in a monospaced font of this size.
    pub fn new(view: View, font_size: u32) -> Canvas {
        let View { left, top, width, height } = view;
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"{left:.0} {top:.0} {width:.0} {height:.0}\" \
             font-family=\"ui-monospace, monospace\" font-size=\"{font_size}\">\n"
        );
        Canvas { svg, view }
    }

    /// Adds a style sheet.
    pub fn style(&mut self, sheet: &str) {
        self.svg.extend(["<style>\n", sheet, "</style>\n"]);
    }

    /// Adds a title of the picture, or of the group that was opened last.
    pub fn title(&mut self, title: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.svg, "<title>{}</title>", Xml(title));
    }

    /// Adds heads of arrows, to be named by lines. They are pulled back by `back` from the end of the line.
    pub fn arrow_heads(&mut self, ids: &[&str], back: u32) {
        self.svg.push_str("<defs>");
        let tip = 8 - back;
        for id in ids {
            let _ = write!(
                self.svg,
                "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"{tip}\" refY=\"4\" \
                 markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/>\
                 </marker>"
            );
        }
        self.svg.push_str("</defs>\n");
    }

    /// Fills the whole picture with the colour of the class `ground`.
    pub fn ground(&mut self) {
        let View { left, top, .. } = self.view;
        let at = match (left, top) {
            (0.0, 0.0) => String::new(),
            _ => format!(" x=\"{left:.0}\" y=\"{top:.0}\""),
        };
        let _ = writeln!(self.svg, "<rect class=\"ground\"{at} width=\"100%\" height=\"100%\"/>");
    }

    /// Adds a text element with these attributes.
    pub fn text(&mut self, attributes: fmt::Arguments<'_>, text: &str) {
        let _ = writeln!(self.svg, "<text {attributes}>{}</text>", Xml(text));
    }

    /// The document.
    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

impl fmt::Write for Canvas {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.svg.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_one_document() {
        let mut canvas = Canvas::new(View { left: 0.0, top: 0.0, width: 9.6, height: 20.0 }, 12);
        canvas.title("a & b");
        canvas.style(".ground { fill: #fff }\n");
        canvas.arrow_heads(&["head"], 1);
        canvas.ground();
        canvas.text(format_args!("x=\"{:.1}\"", 1.0), "1 < 2");
        let svg = canvas.finish();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        for part in [
            "width=\"10\" height=\"20\" viewBox=\"0 0 10 20\"",
            "<title>a &amp; b</title>\n<style>\n.ground { fill: #fff }\n</style>\n<defs><marker id=\"head\"",
            "refX=\"7\"",
            "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
            "<text x=\"1.0\">1 &lt; 2</text>\n",
        ] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        let moved = View { left: -4.0, top: 2.0, width: 10.0, height: 10.0 };
        let mut canvas = Canvas::new(moved, 11);
        canvas.ground();
        assert!(canvas.finish().contains("<rect class=\"ground\" x=\"-4\" y=\"2\" width"));
    }

    #[test]
    fn nothing_is_markup_and_nothing_is_forbidden() {
        assert_eq!(Xml("a<b> & \"c\"").to_string(), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(Xml("\u{0}x\u{1b}[1m\u{ffff}\ny é").to_string(), "x[1m\ny é");
    }
}
