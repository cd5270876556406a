//! Numbers of things, in English.

use std::fmt::Display;

/// `1 lock`, `2 locks`, `no` of which is `0 locks`. The last word of `things` is a noun in the singular.
pub fn count(n: impl Display, things: &str) -> String {
    let n = n.to_string();
    if n == "1" {
        return format!("1 {things}");
    }
    let ends_in = |ends: &[&str]| ends.iter().any(|end| things.ends_with(end));
    match things.strip_suffix('y') {
        Some(stem) if !ends_in(&["ay", "ey", "oy"]) => format!("{n} {stem}ies"),
        _ if ends_in(&["s", "sh", "ch", "x"]) => format!("{n} {things}es"),
        _ => format!("{n} {things}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "lock"), "1 lock");
        assert_eq!(count(0, "lock"), "0 locks");
        assert_eq!(count("1,000", "more event"), "1,000 more events");
        assert_eq!(count(2u64, "process"), "2 processes");
        assert_eq!(count(2, "property"), "2 properties");
        assert_eq!(count(2, "key"), "2 keys");
    }
}
