//! What a finding is known by from run to run.
//!
//! A fingerprint is made of what stays when a program is run again, when its threads get other
//! numbers, and when lines are added above: the check or property; and for each site that distinguishes
//! bugs its role, function, operation, the path of its variable, and the rank of its line
//! among those of the same function that do the same. It is not made of line numbers, threads,
//! event numbers, addresses, elements of arrays or numbers of heap blocks.
//!
//! The rank is taken among the lines that occur in the trace. If a function does the same to the
//! same variable on several lines, and a run passes fewer of them, the rank can change. A finding
//! that is reported while the program still runs is ranked among the lines that it has passed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::Op;
use crate::finding::Finding;
use crate::location::Location;
use crate::site::{Site, Target};

/// What a finding is known by from run to run: `F-3f9a1c20b7d4`.
///
/// ```
/// use foresee_trace::{Finding, Fingerprint};
///
/// /// Whether a finding is one that was reported before.
/// fn is_known(finding: &Finding, known: &[Fingerprint]) -> bool {
///     finding.fingerprint.is_some_and(|fingerprint| known.contains(&fingerprint))
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint(u64);

/// How many bits of the hash are kept: twelve hexadecimal digits.
const BITS: u32 = 48;

impl Fingerprint {
    /// The fingerprint of a finding, with the rank of each site among the lines that do the same.
    pub fn of(finding: &Finding, rank: impl Fn(&Site) -> usize) -> Fingerprint {
        let sites = finding.sites.iter().filter(|site| site.role.identifies());
        let mut parts: Vec<String> =
            sites
                .map(|site| {
                    let what = SiteKey::of(site);
                    let SiteKey { function, operation, path } = &what;
                    format!("{}|{function}|{operation}|{path}|{}", site.role.word(), rank(site))
                })
                .chain(finding.about.iter().map(|subject| {
                    format!("about|{}|{}", subject.kind(), stable_name(subject.name()))
                }))
                .collect();
        // Which of two threads comes first differs from run to run.
        parts.sort();
        parts.dedup();
        // Which of many objects a property is about differs from run to run.
        let property = finding.property.split('(').next().unwrap_or_default();
        parts.insert(0, property.to_owned());
        Fingerprint(hash(&parts.join("\n")))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "F-{:012x}", self.0)
    }
}

/// What sites of one function that do the same have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SiteKey {
    /// The function and those that it was inlined into, or a file where functions are not known.
    pub function: String,
    /// The kind of operation.
    pub operation: &'static str,
    /// What it is done to, without what differs from run to run.
    pub path: String,
}

impl SiteKey {
    /// The key of a site.
    pub fn of(site: &Site) -> SiteKey {
        let function = site.location().map(stable_function).unwrap_or_default();
        let path = site.target.as_ref().map_or_else(String::new, stable_path);
        SiteKey { function, operation: site.op.map_or("", operation), path }
    }
}

/// The word for an operation. To ask for a lock is to take it, for a bug's identity.
pub fn operation(op: Op) -> &'static str {
    match op {
        Op::Request | Op::Try | Op::TryFor => Op::Acquire.word(),
        Op::RequestShared => Op::AcquireShared.word(),
        Op::Await => Op::Join.word(),
        op => op.word(),
    }
}

/// The functions of a place, innermost first, without lines. Where functions are not known, the
/// last part of the file's name.
pub fn stable_function(location: &Location) -> String {
    let frames = location.frames().map(|frame| match (&frame.function, &frame.file) {
        (Some(function), _) => function.as_str(),
        (None, Some(file)) => file.rsplit('/').next().unwrap_or(file),
        (None, None) => "?",
    });
    frames.collect::<Vec<_>>().join("<")
}

/// The name of a target without what differs from run to run. Threads have no name that stays.
pub fn stable_path(target: &Target) -> String {
    match target.kind {
        crate::TargetKind::Thread => "thread".to_owned(),
        _ => stable_name(&target.name),
    }
}

/// A name without numbers of heap blocks and the lines that made them, offsets in them, elements
/// of arrays, and addresses: `heap(list.c:7(make))#2.item[3].next` is `heap(make).item[].next`.
pub(crate) fn stable_name(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    if let Some(start) = block_start(name)
        && let after = &name[start..]
        && let Some(end) = closing(after)
    {
        // Whether the type is known can depend on how the program was compiled.
        out += "heap(";
        out += &Location::parse(&after[..end]).map_or_else(String::new, |l| stable_function(&l));
        out.push(')');
        rest = without_number(&after[end + 1..], '#').unwrap_or(&after[end + 1..]);
        if let Some(after) = without_number(rest, '+') {
            out.push('+');
            rest = after;
        }
        // A place without names is an address.
        out = without_numbers(&out);
    }
    out + &without_numbers(rest)
}

/// Where the place begins in the name of a block of allocated memory, `heap(list.c:7(make))#2`, which begins with its type
/// if that is known: `node(list.c:7(make))#2`.
pub fn block_start(name: &str) -> Option<usize> {
    let start = name.find('(')? + 1;
    let after = &name[start..];
    let behind = after[closing(after)? + 1..].strip_prefix('#')?;
    let has_word = start > 1 && !name[..start].contains(['.', '#', '[', '+']);
    (has_word && behind.starts_with(|c: char| c.is_ascii_digit())).then_some(start)
}

/// What follows a mark and a number.
fn without_number(text: &str, mark: char) -> Option<&str> {
    let rest = text.strip_prefix(mark)?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < rest.len()).then_some(after)
}

/// Where the parenthesis that is open before a text is closed in it.
pub fn closing(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

/// A text without elements of arrays and without addresses.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        out.push(c);
        if c == '['
            && let Some(end) = rest.find(']')
            && end > 0
            && rest[..end].bytes().all(|b| b.is_ascii_digit())
        {
            rest = &rest[end..];
        }
        if c == 'x' && out.ends_with("0x") {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
    }
    out
}

/// FNV-1a, which never changes and is the same on every machine, folded to the bits that are shown.
fn hash(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash >> BITS) ^ (hash & ((1 << BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_differs_from_run_to_run() {
        let same = [
            ("heap(list.c:7(make))#2.item[3].next", "heap(make).item[].next"),
            ("node(list.c:7(make))#2.item[3].next", "heap(make).item[].next"),
            ("heap(a.h:7(grow)<b.c:9(push))#12+24", "heap(grow<push)+"),
            ("heap(0x55d0c4)#1", "heap(0x)"),
            ("memory(0x7ffd01)", "memory(0x)"),
            ("libz.so+0x4010", "libz.so+0x"),
            ("a[3][14].x", "a[][].x"),
            ("m[key]", "m[key]"),
            ("count2", "count2"),
            ("heap(odd", "heap(odd"),
            ("Ünï[7]", "Ünï[]"),
        ];
        for (name, expected) in same {
            assert_eq!(stable_name(name), expected);
        }
    }
}
