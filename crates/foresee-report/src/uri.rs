//! File names as references of RFC 3986.

use std::fmt::Write as _;

/// The reference for a file: relative if its name is. Bytes that have no place in a path are escaped.
pub(crate) fn of_file(name: &str) -> String {
    let scheme = if name.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", escaped(name))
}

/// A text with everything escaped that has no place in a path.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'+' => {
                out.push(byte as char);
            }
            // Writing to a string cannot fail.
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_references() {
        assert_eq!(of_file("src/a b.c"), "src/a%20b.c");
        assert_eq!(of_file("/tmp/ü#?.c"), "file:///tmp/%C3%BC%23%3F.c");
        assert_eq!(of_file("c:12"), "c%3A12", "what stands before a colon would be a scheme");
    }
}
