//! The `printf` family: texts that formats name are read, and what comes out may be memory of the program.

use core::ffi::c_int;

use super::calls::{Call, List, calls, variadic};
use super::next::real;
use super::stdio::output;
use super::strings::{text, text_within, wide_text};
use super::sys;

/// How long what a conversion stands for is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Char,
    Short,
    Int,
    Long,
    LongDouble,
}

/// The modifiers of a conversion, and how much of the format they take.
pub(super) fn length(rest: &[u8]) -> (Length, usize) {
    match rest {
        [b'h', b'h', ..] => (Length::Char, 2),
        [b'h', ..] => (Length::Short, 1),
        [b'l', b'l', ..] => (Length::LongDouble, 2),
        [b'l' | b'j' | b'z' | b't' | b'Z', ..] => (Length::Long, 1),
        [b'q' | b'L', ..] => (Length::LongDouble, 1),
        _ => (Length::Int, 0),
    }
}

/// A number in a format, and how many digits it has.
pub(super) fn number(rest: &[u8]) -> (usize, usize) {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = rest[..digits]
        .iter()
        .fold(0usize, |n, b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
    (value, digits)
}

/// What a format and its arguments make libc read and write.
///
/// A format that numbers its arguments (`%2$s`) is left alone from the first such number on.
pub(super) fn reads_arguments(c: &mut Call, format: usize, list: usize) {
    c.reads_text(format);
    // SAFETY: the program's own format and arguments.
    let (mut rest, mut list) = unsafe { (sys::bytes(format as *const _), List::copy(list)) };
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        rest = &rest[at + 1..];
        let flags = rest.iter().take_while(|b| b"-+ #0'I".contains(b)).count();
        rest = &rest[flags..];
        let star = |rest: &mut &[u8], list: &mut List| {
            if rest.first() == Some(&b'*') {
                *rest = &rest[1..];
                // SAFETY: the format says that it is there.
                return unsafe { list.word() } as c_int as isize;
            }
            let (n, digits) = number(rest);
            *rest = &rest[digits..];
            n as isize
        };
        star(&mut rest, &mut list);
        let mut precision = None;
        if rest.first() == Some(&b'.') {
            rest = &rest[1..];
            // A negative one is as good as none.
            precision = usize::try_from(star(&mut rest, &mut list)).ok();
        }
        if rest.first() == Some(&b'$') {
            return;
        }
        let (length, taken) = length(rest);
        rest = &rest[taken..];
        let Some((&conversion, behind)) = rest.split_first() else { return };
        rest = behind;
        // SAFETY: the format says what is there.
        unsafe {
            match conversion {
                b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b'p' | b'b' | b'B' => {
                    list.word();
                }
                b'e' | b'f' | b'g' | b'a' | b'E' | b'F' | b'G' | b'A' => match length {
                    Length::LongDouble => list.skip_long_double(),
                    _ => list.skip_double(),
                },
                b's' if length == Length::Int => {
                    let s = list.word();
                    if s != 0 {
                        c.reads(s, precision.map_or_else(|| text(s), |most| text_within(s, most)));
                    }
                }
                b's' | b'S' => {
                    let s = list.word();
                    if s != 0 && precision.is_none() {
                        c.reads(s, wide_text(s));
                    }
                }
                b'n' => {
                    let size = match length {
                        Length::Char => 1,
                        Length::Short => 2,
                        Length::Int => 4,
                        _ => 8,
                    };
                    c.writes(list.word(), size);
                }
                b'm' | b'%' => {}
                // What a program has taught libc, nobody else knows.
                _ => return,
            }
        }
    }
}

/// How long a text is going to be, with its zero.
fn printed(format: usize, list: usize) -> usize {
    // SAFETY: a copy of the program's list; libc goes through it as it will through the list itself.
    let copy = unsafe { List::copy(list) };
    let n = real!(vsnprintf(0 => usize, 0 => usize, format => usize, &raw const copy as usize => usize) -> c_int);
    usize::try_from(n).map_or(0, |n| n + 1)
}

/// Into memory of any size.
fn prints_freely(c: &mut Call, to: usize, format: usize, list: usize) {
    reads_arguments(c, format, list);
    c.writes(to, printed(format, list));
}

/// Into memory of some size.
fn prints_within(c: &mut Call, to: usize, room: usize, format: usize, list: usize) {
    reads_arguments(c, format, list);
    c.writes(to, printed(format, list).min(room));
}

/// To a file that stdio keeps.
fn prints_to(c: &mut Call, file: usize, format: usize, list: usize) {
    reads_arguments(c, format, list);
    c.puts_to(file);
}

fn wrote_pointer(c: &mut Call, to: usize, out: usize) {
    if out as c_int >= 0 {
        c.wrote(to, 8);
        // SAFETY: libc put the text's address there.
        c.wrote_text(unsafe { *(to as *const usize) });
    }
}

calls! {
    Inside vsprintf(to, format, list) |c| { prints_freely(c, to, format, list); };
    Inside __vsprintf_chk(to, flag, room, format, list) |c| { prints_freely(c, to, format, list); };
    Inside vsnprintf(to, room, format, list) |c| { prints_within(c, to, room, format, list); };
    Inside __vsnprintf_chk(to, room, flag, size, format, list) |c| { prints_within(c, to, room, format, list); };
    Outside vasprintf(to, format, list) |c| { reads_arguments(c, format, list); c.may_write(to, 8); c.allocates(); }
        => |c, out| { wrote_pointer(c, to, out); };
    Outside __vasprintf_chk(to, flag, format, list) |c| { reads_arguments(c, format, list); c.may_write(to, 8); c.allocates(); }
        => |c, out| { wrote_pointer(c, to, out); };
    Outside vprintf(format, list) |c| { reads_arguments(c, format, list); c.puts_to(output()); };
    Outside __vprintf_chk(flag, format, list) |c| { reads_arguments(c, format, list); c.puts_to(output()); };
    Outside vfprintf(file, format, list) |c| { prints_to(c, file, format, list); };
    Outside __vfprintf_chk(file, flag, format, list) |c| { prints_to(c, file, format, list); };
    Outside vdprintf(file, format, list) |c| { reads_arguments(c, format, list); c.sends(file); };
    Outside __vdprintf_chk(file, flag, format, list) |c| { reads_arguments(c, format, list); c.sends(file); };
    Outside vsyslog(priority, format, list) |c| { reads_arguments(c, format, list); };
    Outside __vsyslog_chk(priority, flag, format, list) |c| { reads_arguments(c, format, list); };
}

variadic! {
    sprintf, 2, "rdx" => vsprintf::handle;
    __sprintf_chk, 4, "r8" => __vsprintf_chk::handle;
    snprintf, 3, "rcx" => vsnprintf::handle;
    __snprintf_chk, 5, "r9" => __vsnprintf_chk::handle;
    asprintf, 2, "rdx" => vasprintf::handle;
    __asprintf_chk, 3, "rcx" => __vasprintf_chk::handle;
    printf, 1, "rsi" => vprintf::handle;
    __printf_chk, 2, "rdx" => __vprintf_chk::handle;
    fprintf, 2, "rdx" => vfprintf::handle;
    __fprintf_chk, 3, "rcx" => __vfprintf_chk::handle;
    dprintf, 2, "rdx" => vdprintf::handle;
    __dprintf_chk, 3, "rcx" => __vdprintf_chk::handle;
    syslog, 2, "rdx" => vsyslog::handle;
    __syslog_chk, 3, "rcx" => __vsyslog_chk::handle;
}
