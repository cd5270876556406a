//! Text inside XML, for SVG drawings.

use std::fmt::{self, Write as _};

/// A text as the content or an attribute of an XML element: markup is escaped, and characters that
/// XML forbids are left out.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup_and_nothing_is_forbidden() {
        assert_eq!(Xml("a<b> & \"c\"").to_string(), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(Xml("\u{0}x\u{1b}[1m\u{ffff}\ny é").to_string(), "x[1m\ny é");
    }
}
