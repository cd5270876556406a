//! Names and places as they fit into a line: template arguments and folders folded, and the frame of
//! the program instead of the library's.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use foresee_trace::{Fact, Finding, Location, Name, Site, block_start, closing};

/// How long a name may be in running text.
const LONGEST_NAME: usize = 60;

/// Template arguments up to this length stay.
const SHORT_ARGUMENTS: usize = 12;

/// Cuts a text that is wider than this, and shows that by an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Cuts a text that is wider than this in its middle: names begin alike, and differ at their ends.
pub(crate) fn middle_cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut tail: Vec<char> = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        used += c.width().unwrap_or(0);
        if used > width * 2 / 5 {
            break;
        }
        tail.push(c);
    }
    let end: String = tail.iter().rev().collect();
    format!("{}{end}", cut(text, width - end.width()))
}

/// `std::map<std::string, int>::at` is `std::map<…>::at`.
pub(crate) fn templates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        let is_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !before.ends_with("operator");
        match arguments(after).filter(|inside| is_name && inside.len() > SHORT_ARGUMENTS) {
            Some(inside) => {
                out.push_str("<…>");
                rest = &after[inside.len() + 2..];
            }
            None => {
                out.push('<');
                rest = &after[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// What stands between the angle brackets with which a text begins, if they match.
fn arguments(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // An arrow of a return type closes nothing.
            '>' if !text[..i].ends_with('-') => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[1..i]);
                }
            }
            _ => {}
        }
    }
    None
}

/// The name of a variable, lock or thread in a line.
pub(crate) fn name(text: &str) -> String {
    let mut short = text.to_owned();
    // A block is known by the place that made it: the one in the program.
    let start = block_start(text).or_else(|| text.find("heap(").map(|at| at + "heap(".len()));
    if let Some(start) = start
        && let Some(length) = closing(&text[start..])
        && let Some(place) = Location::parse(&text[start..start + length])
    {
        short = format!("{}{}{}", &text[..start], self::place(&place), &text[start + length..]);
    }
    middle_cut(&templates(&short), LONGEST_NAME)
}

/// A name of a Java program without its package, which is two or more words in lower case: `java.util.List.add` is `List.add`.
pub(crate) fn without_package(name: &str) -> &str {
    let is_package = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut rest = name;
    let mut parts = 0;
    while let Some((_, after)) = rest.split_once('.').filter(|(part, _)| is_package(part)) {
        (rest, parts) = (after, parts + 1);
    }
    let is_class = rest.starts_with(|c: char| c.is_ascii_uppercase());
    if parts >= 2 && is_class { rest } else { name }
}

/// Whether a frame is of a library that the program uses, not of the program.
pub(crate) fn is_library(frame: &Location) -> bool {
    const FOLDERS: &[&str] = &["/usr/", "/lib/", "/opt/", "/rustc/"];
    const PARTS: &[&str] = &["/.cargo/registry/", "/rustlib/src/", "/include/foresee.h"];
    match frame.file.as_deref() {
        None => true,
        Some(file) => {
            FOLDERS.iter().any(|folder| file.starts_with(folder))
                || PARTS.iter().any(|part| file.contains(part))
        }
    }
}

/// Whether all of a place is in libraries.
pub(crate) fn is_of_libraries(location: &Location) -> bool {
    location.frames().all(is_library)
}

/// The frame to name a place by: the innermost one of the program, or the innermost one.
pub(crate) fn frame(location: &Location) -> &Location {
    location.frames().find(|frame| !is_library(frame)).unwrap_or(location)
}

/// A place in a narrow column: `queue.c:33(run_job)`.
pub(crate) fn place(location: &Location) -> String {
    let frame = frame(location);
    let file = frame.file.as_deref().unwrap_or("?");
    let file = file.rsplit('/').next().unwrap_or(file);
    match &frame.function {
        Some(function) if is_of_jvm(file) => {
            let function = Some(without_package(function).to_owned());
            one_frame(file, &Location { function, ..frame.clone() })
        }
        _ => one_frame(file, frame),
    }
}

/// Whether a source file is one of a language of the JVM.
pub(crate) fn is_of_jvm(file: &str) -> bool {
    [".java", ".kt", ".scala"].iter().any(|end| file.ends_with(end))
}

/// A place in a line of its own, with the folders that are not those of the current one.
pub(crate) fn path(location: &Location, folder: &str) -> String {
    let frame = frame(location);
    one_frame(file(frame, folder), frame)
}

fn one_frame(file: &str, frame: &Location) -> String {
    let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
    let function = frame.function.as_deref();
    let function = function.map_or(String::new(), |function| {
        format!("({})", middle_cut(&templates(function), LONGEST_NAME))
    });
    format!("{}{line}{function}", middle_cut(file, LONGEST_NAME))
}

/// The file of a frame, below the current folder if it is there.
pub(crate) fn file<'l>(frame: &'l Location, folder: &str) -> &'l str {
    let file = frame.file.as_deref().unwrap_or("?");
    let below = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|_| !folder.is_empty()).unwrap_or(file)
}

/// Shortens what a finding names, wherever its texts name it.
#[derive(Default)]
pub(crate) struct Shorter {
    /// What to replace by what, the longest first.
    pairs: Vec<(String, String)>,
}

impl Shorter {
    pub(crate) fn of(finding: &Finding, folder: &str) -> Shorter {
        let mut shorter = Shorter::default();
        for site in &finding.sites {
            shorter.site(site, folder);
        }
        finding.about.iter().for_each(|subject| shorter.name(subject.name()));
        for detail in &finding.details {
            if let Fact::Region(region) = &detail.fact {
                let points = [Some(&region.begin), region.end.as_ref()].into_iter().flatten();
                let places = points.filter_map(|point| point.location.as_ref());
                places.for_each(|place| shorter.place(place, folder));
            }
        }
        shorter.pairs.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        shorter.pairs.dedup();
        shorter
    }

    fn site(&mut self, site: &Site, folder: &str) {
        site.frames.iter().for_each(|place| self.place(place, folder));
        if let Some(target) = &site.target {
            self.name(&target.name);
        }
        if let Some(thread) = &site.thread {
            self.name(&thread.name);
            if let Some(fork) = &thread.forked {
                self.name(&fork.by);
                let places = fork.location.iter().chain(&fork.calls);
                places.for_each(|place| self.place(place, folder));
            }
        }
        for lock in site.locks.iter().flatten() {
            self.name(&lock.name);
            lock.location.iter().for_each(|place| self.place(place, folder));
        }
    }

    fn place(&mut self, place: &Location, folder: &str) {
        self.pair(place.to_string(), path(place, folder));
    }

    fn name(&mut self, name: &str) {
        self.pair(name.to_owned(), self::name(name));
    }

    fn pair(&mut self, full: String, short: String) {
        let quoted = Name(&full).to_string();
        if quoted != full {
            self.pairs.push((quoted, Name(&short).to_string()));
        }
        if full != short {
            self.pairs.push((full, short));
        }
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (full, short) in &self.pairs {
            if text.contains(full.as_str()) {
                text = text.replace(full.as_str(), short);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_arguments_are_folded() {
        let text = "std::map<std::string, std::vector<int> >::at(a<b>) and operator<(x)";
        assert_eq!(templates(text), "std::map<…>::at(a<b>) and operator<(x)");
        assert_eq!(
            templates("a.h:3(f)<b.c:4(gggggggggggggggggg)"),
            "a.h:3(f)<b.c:4(gggggggggggggggggg)"
        );
        assert_eq!(templates("f<auto (int) -> int, long long>::g"), "f<…>::g");
    }

    #[test]
    fn blocks_are_named_by_the_program() {
        let inner = "/usr/include/c++/12/new.h:137(N<std::pair<int, int> >::f)<src/t.cc:8(add)";
        assert_eq!(name(&format!("heap({inner})#2+8")), "heap(t.cc:8(add))#2+8");
        assert_eq!(name(&format!("node({inner})#2.next")), "node(t.cc:8(add))#2.next");
        assert_eq!(name("heap(t.cc:9(main))#1.balance"), "heap(t.cc:9(main))#1.balance");
        let long = "x".repeat(10_000);
        assert_eq!(name(&long).width(), LONGEST_NAME);
    }

    #[test]
    fn packages_are_left_out() {
        let cases = [
            ("java.util.List.add", "List.add"),
            ("org.h2.util.Cache#2.size", "Cache#2.size"),
            ("bank.Account.balance", "bank.Account.balance"),
            ("a.b.c.d", "a.b.c.d"),
            ("List.add", "List.add"),
        ];
        for (full, short) in cases {
            assert_eq!(without_package(full), short);
        }
    }

    #[test]
    fn places_are_those_of_the_program() {
        let location = Location::parse("/usr/include/list.h:9(push)</home/me/queue.c:20(add)");
        let location = location.expect("it is a place");
        assert_eq!(place(&location), "queue.c:20(add)");
        assert_eq!(path(&location, "/home/me"), "queue.c:20(add)");
        assert_eq!(path(&location, "/home/m"), "/home/me/queue.c:20(add)");
    }

    #[test]
    fn cut_texts_have_the_width_that_was_asked_for() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("日本語日本語", 6), "日本…");
    }
}
