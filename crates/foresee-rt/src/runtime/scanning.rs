//! The `scanf` family: it reads its input, and writes what the format names, as far as the result
//! says.

use core::ffi::c_int;

use super::calls::{Call, List, variadic};
use super::formats::{Length, length, number, numbered};
use super::strings::{text, wide_text};
use super::sys;

/// Texts without a limit in the format are first assumed to be no longer than this.
const USUAL: usize = 256;

/// A target of a scan.
struct Target {
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// This many bytes.
    Bytes(usize),
    Text,
    Wide,
    /// The address of a text that libc allocates.
    Allocated,
    /// The number of bytes scanned: it does not count in the result.
    Count(usize),
}

impl Kind {
    fn size(self, at: usize) -> usize {
        match self {
            Kind::Bytes(n) | Kind::Count(n) => n,
            Kind::Text => text(at),
            Kind::Wide => wide_text(at),
            Kind::Allocated => 8,
        }
    }
}

/// Visits the targets of a format, with the limits that it gives.
fn targets(format: usize, list: usize, mut each: impl FnMut(Target, Option<usize>) -> bool) {
    // SAFETY: the program's own format and arguments.
    let (mut rest, first) = unsafe { (sys::bytes(format as *const _), List::copy(list)) };
    let mut list = first;
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        rest = &rest[at + 1..];
        let which = numbered(&mut rest);
        let skipped = rest.iter().take_while(|b| b"*'I".contains(b)).count();
        let ignored = rest[..skipped].contains(&b'*');
        rest = &rest[skipped..];
        let (width, digits) = number(rest);
        rest = &rest[digits..];
        let width = (digits > 0).then_some(width);
        let allocated = rest.first() == Some(&b'm');
        rest = &rest[usize::from(allocated)..];
        let (long, taken) = length(rest);
        rest = &rest[taken..];
        let Some((&conversion, behind)) = rest.split_first() else { return };
        rest = behind;
        if conversion == b'[' {
            // A bracket at the very beginning belongs to the set.
            let start = usize::from(rest.first() == Some(&b'^'));
            let start = start + usize::from(rest.get(start) == Some(&b']'));
            let Some(end) = rest.iter().skip(start).position(|&b| b == b']') else { return };
            rest = &rest[start + end + 1..];
        }
        let integer = match long {
            Length::Char => 1,
            Length::Short => 2,
            Length::Int => 4,
            Length::Long | Length::LongDouble => 8,
        };
        let is_wide = long == Length::Long || matches!(conversion, b'S' | b'C');
        let kind = match conversion {
            b'%' => continue,
            b's' | b'[' | b'S' | b'c' | b'C' if allocated => Kind::Allocated,
            b's' | b'[' | b'S' => {
                if is_wide {
                    Kind::Wide
                } else {
                    Kind::Text
                }
            }
            b'c' | b'C' => Kind::Bytes(width.unwrap_or(1) * if is_wide { 4 } else { 1 }),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => Kind::Bytes(integer),
            b'p' => Kind::Bytes(8),
            b'n' => Kind::Count(integer),
            b'e' | b'f' | b'g' | b'a' | b'E' | b'F' | b'G' | b'A' => Kind::Bytes(match long {
                Length::Long => 8,
                Length::LongDouble => 16,
                _ => 4,
            }),
            _ => return,
        };
        if ignored {
            continue;
        }
        if let Some(which) = which {
            list = first;
            // SAFETY: all arguments are pointers, and the format gives their number.
            (1..which).for_each(|_| unsafe {
                list.word();
            });
        }
        // SAFETY: the format says that it is there.
        if !each(Target { at: unsafe { list.word() }, kind }, width) {
            return;
        }
    }
}

/// Before the scan. `most` is the maximum length of a text, if known.
fn may_scan(c: &mut Call, format: usize, list: usize, most: Option<usize>) {
    c.reads_text(format);
    targets(format, list, |target, width| {
        let size = match target.kind {
            Kind::Text => width.map(|w| w + 1).or(most).unwrap_or(USUAL),
            Kind::Wide => 4 * width.map(|w| w + 1).or(most).unwrap_or(USUAL),
            kind => kind.size(target.at),
        };
        c.may_write(target.at, size);
        true
    });
}

/// After the scan, which found this many targets.
fn scanned(c: &mut Call, format: usize, list: &List, found: usize) {
    let mut left = usize::try_from(found as c_int).unwrap_or(0);
    targets(format, list as *const List as usize, |target, _| {
        let counts = !matches!(target.kind, Kind::Count(_));
        if counts && left == 0 {
            return false;
        }
        left -= usize::from(counts);
        c.wrote(target.at, target.kind.size(target.at));
        true
    });
}

macro_rules! scans {
    ($($name:ident($($arg:ident),*), $source:ident;)*) => { $(
        pub(super) mod $name {
            use super::*;

            pub(in $crate::runtime) extern "C" fn handle($($arg: usize,)* format: usize, list: usize, pc: f64) -> usize {
                // SAFETY: a copy of the program's list, because libc consumes the list itself.
                let copy = unsafe { List::copy(list) };
                super::super::calls::carry_out(
                    super::super::calls::Way::Outside,
                    pc,
                    |c| $source(c, [$($arg),*].first().copied().unwrap_or(0), format, list),
                    || super::super::next::real!($name($($arg => usize,)* format => usize, list => usize) -> usize),
                    |c, found| scanned(c, format, &copy, found),
                )
            }
        }
        super::calls::stand_in_front! { $name => $name::handle }
    )* };
}

fn text_source(c: &mut Call, source: usize, format: usize, list: usize) {
    c.reads_text(source);
    may_scan(c, format, list, Some(text(source)));
}

fn file_source(c: &mut Call, file: usize, format: usize, list: usize) {
    may_scan(c, format, list, None);
    c.gets_from(if file == 0 { super::stdio::input() } else { file });
}

scans! {
    vsscanf(source), text_source;
    __isoc99_vsscanf(source), text_source;
    __isoc23_vsscanf(source), text_source;
    vfscanf(file), file_source;
    __isoc99_vfscanf(file), file_source;
    __isoc23_vfscanf(file), file_source;
    vscanf(), file_source;
    __isoc99_vscanf(), file_source;
    __isoc23_vscanf(), file_source;
}

variadic! {
    sscanf, 2, "rdx" => vsscanf::handle;
    __isoc99_sscanf, 2, "rdx" => __isoc99_vsscanf::handle;
    __isoc23_sscanf, 2, "rdx" => __isoc23_vsscanf::handle;
    fscanf, 2, "rdx" => vfscanf::handle;
    __isoc99_fscanf, 2, "rdx" => __isoc99_vfscanf::handle;
    __isoc23_fscanf, 2, "rdx" => __isoc23_vfscanf::handle;
    scanf, 1, "rsi" => vscanf::handle;
    __isoc99_scanf, 1, "rsi" => __isoc99_vscanf::handle;
    __isoc23_scanf, 1, "rsi" => __isoc23_vscanf::handle;
}
