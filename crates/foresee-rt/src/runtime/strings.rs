//! Texts and blocks of bytes: `str*`, `mem*`, `wcs*`. Only the bytes that the result depends on are recorded as read.

use core::ffi::c_int;

use super::calls::{Call, calls};
use super::next::real;

/// The length of a text with the zero that ends it.
pub(super) fn text(text: usize) -> usize {
    real!(strlen(text => usize) -> usize) + 1
}

/// The same, if it ends within `most` bytes.
pub(super) fn text_within(text: usize, most: usize) -> usize {
    real!(strnlen(text => usize, most => usize) -> usize).saturating_add(1).min(most)
}

fn byte(at: usize) -> u8 {
    // SAFETY: callers read memory that the program passes to libc to read.
    unsafe { (at as *const u8).read_volatile() }
}

fn wide(at: usize) -> u32 {
    // SAFETY: as above.
    unsafe { (at as *const u32).read_volatile() }
}

/// How much of two texts is compared: up to the first difference or their end, at most `most` bytes.
fn compared(a: usize, b: usize, most: usize, fold: fn(u8) -> u8) -> usize {
    for i in 0..most {
        let (x, y) = (byte(a + i), byte(b + i));
        if x == 0 || fold(x) != fold(y) {
            return i + 1;
        }
    }
    most
}

fn same(byte: u8) -> u8 {
    byte
}

fn lower(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

/// How much of two blocks of bytes is compared: up to the first difference.
fn compared_bytes(a: usize, b: usize, size: usize) -> usize {
    (0..size).find(|&i| byte(a + i) != byte(b + i)).map_or(size, |i| i + 1)
}

/// How much of a text is read by a search that ended at `found`, or with nothing.
fn searched(from: usize, found: usize, width: usize, all: usize) -> usize {
    if found == 0 { all } else { found - from + width }
}

/// The bytes of a text up to and including the zero or the first byte for which `stop` is true.
fn spanned(from: usize, stop: impl Fn(u8) -> bool) -> usize {
    (0..).find(|&i| byte(from + i) == 0 || stop(byte(from + i))).map_or(1, |i: usize| i + 1)
}

fn has(set: usize, c: u8) -> bool {
    real!(strchr(set => usize, c_int::from(c) => c_int) -> usize) != 0
}

/// The length of a wide text in bytes, with the zero that ends it.
pub(super) fn wide_text(text: usize) -> usize {
    4 * (real!(wcslen(text => usize) -> usize) + 1)
}

fn wide_text_within(text: usize, most: usize) -> usize {
    4 * (real!(wcsnlen(text => usize, most => usize) -> usize) + 1).min(most)
}

fn compared_wide(a: usize, b: usize, most: usize) -> usize {
    for i in 0..most {
        if wide(a + 4 * i) == 0 || wide(a + 4 * i) != wide(b + 4 * i) {
            return 4 * (i + 1);
        }
    }
    4 * most
}

/// The token at the beginning of a text, for `strtok`; its end, if a delimiter is overwritten there.
fn token_end(from: usize, delimiters: usize) -> Option<usize> {
    let mut at = from;
    while byte(at) != 0 && has(delimiters, byte(at)) {
        at += 1;
    }
    if byte(at) == 0 {
        return None;
    }
    while byte(at) != 0 && !has(delimiters, byte(at)) {
        at += 1;
    }
    (byte(at) != 0).then_some(at)
}

/// A word of memory.
fn word(at: usize) -> usize {
    // SAFETY: as for `byte`.
    unsafe { (at as *const usize).read_volatile() }
}

// Lengths.
calls! {
    Inside strlen(s) |c| { c.reads(s, text(s)); };
    Inside strnlen(s, n) |c| { c.reads(s, text_within(s, n)); };
    Inside wcslen(s) |c| { c.reads(s, wide_text(s)); };
    Inside wcsnlen(s, n) |c| { c.reads(s, wide_text_within(s, n)); };
}

// Comparisons.
calls! {
    Inside memcmp(a, b, n) |c| { let m = compared_bytes(a, b, n); c.reads(a, m); c.reads(b, m); };
    Inside bcmp(a, b, n) |c| { let m = compared_bytes(a, b, n); c.reads(a, m); c.reads(b, m); };
    Inside strcmp(a, b) |c| { let n = compared(a, b, usize::MAX, same); c.reads(a, n); c.reads(b, n); };
    Inside strcoll(a, b) |c| { c.reads_text(a); c.reads_text(b); };
    Inside strncmp(a, b, most) |c| { let n = compared(a, b, most, same); c.reads(a, n); c.reads(b, n); };
    Inside strcasecmp(a, b) |c| { let n = compared(a, b, usize::MAX, lower); c.reads(a, n); c.reads(b, n); };
    Inside strncasecmp(a, b, most) |c| { let n = compared(a, b, most, lower); c.reads(a, n); c.reads(b, n); };
    Inside wcscmp(a, b) |c| { let n = compared_wide(a, b, usize::MAX >> 3); c.reads(a, n); c.reads(b, n); };
    Inside wcsncmp(a, b, most) |c| { let n = compared_wide(a, b, most); c.reads(a, n); c.reads(b, n); };
    Inside wmemcmp(a, b, n) |c| { c.reads(a, 4 * n); c.reads(b, 4 * n); };
}

// Searches: how far they went shows in what they found.
calls! {
    Inside memchr(s, b, n) => |c, found| { c.reads(s, searched(s, found, 1, n)); };
    Inside memrchr(s, b, n) => |c, found| {
        let from = if found == 0 { s } else { found };
        c.reads(from, s + n - from);
    };
    Inside rawmemchr(s, b) => |c, found| { c.reads(s, searched(s, found, 1, 0)); };
    Inside memmem(s, n, part, size) => |c, found| {
        c.reads(part, size);
        c.reads(s, searched(s, found, size, n));
    };
    Inside strchr(s, b) => |c, found| { c.reads(s, if found == 0 { text(s) } else { found - s + 1 }); };
    Inside index(s, b) => |c, found| { c.reads(s, if found == 0 { text(s) } else { found - s + 1 }); };
    Inside strchrnul(s, b) => |c, found| { c.reads(s, found - s + 1); };
    Inside strrchr(s, b) |c| { c.reads_text(s); };
    Inside rindex(s, b) |c| { c.reads_text(s); };
    Inside strstr(s, part) => |c, found| {
        let size = text(part);
        c.reads(part, size);
        c.reads(s, if found == 0 { text(s) } else { found - s + size - 1 });
    };
    Inside strcasestr(s, part) => |c, found| {
        let size = text(part);
        c.reads(part, size);
        c.reads(s, if found == 0 { text(s) } else { found - s + size - 1 });
    };
    Inside strspn(s, set) |c| { c.reads_text(set); c.reads(s, spanned(s, |b| !has(set, b))); };
    Inside strcspn(s, set) |c| { c.reads_text(set); c.reads(s, spanned(s, |b| has(set, b))); };
    Inside strpbrk(s, set) |c| { c.reads_text(set); c.reads(s, spanned(s, |b| has(set, b))); };
    Inside wmemchr(s, w, n) => |c, found| { c.reads(s, searched(s, found, 4, 4 * n)); };
    Inside wcschr(s, w) => |c, found| { c.reads(s, if found == 0 { wide_text(s) } else { found - s + 4 }); };
    Inside wcsrchr(s, w) |c| { c.reads(s, wide_text(s)); };
    Inside wcsstr(s, part) |c| { c.reads(part, wide_text(part)); c.reads(s, wide_text(s)); };
}

// Copies.
calls! {
    Inside mempcpy(to, from, n) |c| { c.reads(from, n); c.writes(to, n); };
    Inside __mempcpy_chk(to, from, n, room) |c| { c.reads(from, n); c.writes(to, n); };
    Inside __memcpy_chk(to, from, n, room) |c| { c.reads(from, n); c.writes(to, n); };
    Inside __memmove_chk(to, from, n, room) |c| { c.reads(from, n); c.writes(to, n); };
    Inside __memset_chk(to, b, n, room) |c| { c.writes(to, n); };
    Inside bcopy(from, to, n) |c| { c.reads(from, n); c.writes(to, n); };
    Inside bzero(to, n) |c| { c.writes(to, n); };
    Inside explicit_bzero(to, n) |c| { c.writes(to, n); };
    Inside swab(from, to, n) |c| { c.reads(from, n & !1); c.writes(to, n & !1); };
    Inside memccpy(to, from, b, n) |c| { c.may_write(to, n); } => |c, end| {
        let n = searched(to, end, 0, n);
        c.reads(from, n);
        c.wrote(to, n);
    };
    Inside strcpy(to, from) |c| { let n = text(from); c.reads(from, n); c.writes(to, n); };
    Inside __strcpy_chk(to, from, room) |c| { let n = text(from); c.reads(from, n); c.writes(to, n); };
    Inside stpcpy(to, from) |c| { let n = text(from); c.reads(from, n); c.writes(to, n); };
    Inside __stpcpy_chk(to, from, room) |c| { let n = text(from); c.reads(from, n); c.writes(to, n); };
    Inside strncpy(to, from, n) |c| { c.reads(from, text_within(from, n)); c.writes(to, n); };
    Inside __strncpy_chk(to, from, n, room) |c| { c.reads(from, text_within(from, n)); c.writes(to, n); };
    Inside stpncpy(to, from, n) |c| { c.reads(from, text_within(from, n)); c.writes(to, n); };
    Inside strcat(to, from) |c| { appends(c, to, from, usize::MAX); };
    Inside __strcat_chk(to, from, room) |c| { appends(c, to, from, usize::MAX); };
    Inside strncat(to, from, n) |c| { appends(c, to, from, n); };
    Inside __strncat_chk(to, from, n, room) |c| { appends(c, to, from, n); };
    Inside wmemcpy(to, from, n) |c| { c.reads(from, 4 * n); c.writes(to, 4 * n); };
    Inside wmemmove(to, from, n) |c| { c.reads(from, 4 * n); c.writes(to, 4 * n); };
    Inside wmemset(to, w, n) |c| { c.writes(to, 4 * n); };
    Inside wcscpy(to, from) |c| { let n = wide_text(from); c.reads(from, n); c.writes(to, n); };
    Inside wcsncpy(to, from, n) |c| { c.reads(from, wide_text_within(from, n)); c.writes(to, 4 * n); };
    Inside wcscat(to, from) |c| {
        let (old, n) = (wide_text(to), wide_text(from));
        c.reads(to, old);
        c.reads(from, n);
        c.writes(to + old - 4, n);
    };
    Inside strxfrm(to, from, n) |c| { c.reads_text(from); c.may_write(to, n); } => |c, size| {
        c.wrote(to, (size + 1).min(n));
    };
    Outside strdup(s) |c| { c.reads_text(s); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside __strdup(s) |c| { c.reads_text(s); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside strndup(s, n) |c| { c.reads(s, text_within(s, n)); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside wcsdup(s) |c| { c.reads(s, wide_text(s)); c.allocates(); } => |c, out| {
        if out != 0 {
            c.wrote(out, wide_text(out));
        }
    };
}

/// What `strcat` does.
fn appends(c: &mut Call, to: usize, from: usize, most: usize) {
    let (old, n) = (text(to), text_within(from, most));
    c.reads(to, old);
    c.reads(from, n);
    // The zero is added even if the bound cut the text.
    let copied = if n == most && most > 0 && byte(from + most - 1) != 0 { n + 1 } else { n.max(1) };
    c.writes(to + old - 1, copied);
}

/// What `strtok_r` does.
fn takes_token(c: &mut Call, s: usize, set: usize, rest: usize) {
    c.reads_text(set);
    if s == 0 {
        c.reads(rest, 8);
    }
    let from = if s != 0 { s } else { word(rest) };
    c.reads_text(from);
    if let Some(end) = (from != 0).then(|| token_end(from, set)).flatten() {
        c.writes(end, 1);
    }
    c.writes(rest, 8);
}

// Texts that are taken apart.
calls! {
    Inside strtok_r(s, set, rest) |c| { takes_token(c, s, set, rest); };
    Inside __strtok_r(s, set, rest) |c| { takes_token(c, s, set, rest); };
    Inside strsep(place, set) |c| {
        c.reads(place, 8);
        let from = word(place);
        if from != 0 {
            c.reads_text(set);
            let n = spanned(from, |b| has(set, b));
            c.reads(from, n);
            if byte(from + n - 1) != 0 {
                c.writes(from + n - 1, 1);
            }
            c.writes(place, 8);
        }
    };
    // After the first call only libc knows the text; we know the token that it found.
    Inside strtok(s, set) |c| {
        c.reads_text(set);
        c.reads_text(s);
        if let Some(end) = (s != 0).then(|| token_end(s, set)).flatten() {
            c.writes(end, 1);
        }
    } => |c, out| {
        if s == 0 && out != 0 {
            c.wrote(out + text(out) - 1, 1);
        }
    };
}

// Numbers.
macro_rules! numbers {
    ($($name:ident)*) => {
        calls! { $(
            Inside $name(s, end, base) |c| { c.reads(s, number(s)); c.writes(end, 8); };
        )* }
    };
}

numbers! {
    strtol strtoul strtoll strtoull strtoimax strtoumax
    __isoc23_strtol __isoc23_strtoul __isoc23_strtoll __isoc23_strtoull
}

calls! {
    Inside atoi(s) |c| { c.reads(s, number(s)); };
    Inside atol(s) |c| { c.reads(s, number(s)); };
    Inside atoll(s) |c| { c.reads(s, number(s)); };
}

/// How much of a text is read to parse the number at its beginning: at most a little more than the number.
fn number(s: usize) -> usize {
    let blank = (0..).find(|&i| !byte(s + i).is_ascii_whitespace()).unwrap_or(0);
    blank
        + spanned(s + blank, |b| {
            !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'(' | b')' | b'_'))
        })
}

macro_rules! floats {
    ($($name:ident($($arg:ident),*) -> $kind:ty;)*) => { $(
        const _: () = {
            extern "C" fn handle($($arg: usize,)* pc: f64) -> $kind {
                let mut value = 0.0;
                super::calls::carry_out(
                    super::calls::Way::Inside,
                    pc,
                    |c| {
                        let [s, end] = first_two([$($arg),*]);
                        c.reads(s, number(s));
                        if end != 0 {
                            c.writes(end, 8);
                        }
                    },
                    || {
                        value = real!($name($($arg => usize),*) -> $kind);
                        0
                    },
                    |_, _| {},
                );
                value
            }
            super::calls::stand_in_front! { $name => handle }
        };
    )* };
}

fn first_two<const N: usize>(arguments: [usize; N]) -> [usize; 2] {
    core::array::from_fn(|i| arguments.get(i).copied().unwrap_or(0))
}

floats! {
    strtod(s, end) -> f64;
    strtof(s, end) -> f32;
    atof(s) -> f64;
}
