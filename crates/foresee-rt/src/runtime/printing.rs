//! The `printf` family: it reads the texts that formats name, and may write to memory of the
//! program.

use core::ffi::c_int;

use super::calls::{Call, List, calls, variadic};
use super::formats::{Arguments, Conversions, Length};
use super::next::real;
use super::stdio::output;
use super::strings::{text, text_within, wide_text};

/// What a format and its arguments make libc read and write.
pub(super) fn reads_arguments(c: &mut Call, format: usize, list: usize) {
    c.reads_text(format);
    // SAFETY: the program's own format and arguments.
    let (conversions, list) = unsafe { (Conversions::of(format), List::copy(list)) };
    let mut arguments = Arguments::new(conversions, list);
    for conversion in conversions {
        // SAFETY: the format says what is there.
        unsafe {
            arguments.count(conversion.width);
            let precision = arguments.count(conversion.precision);
            let class = match conversion.class() {
                Ok(Some(class)) => class,
                Ok(None) => continue,
                Err(()) => return,
            };
            let word = arguments.take(conversion.number, class);
            match (conversion.letter, conversion.length) {
                (b's', Length::Int) if word != 0 => {
                    let size = precision.map_or_else(|| text(word), |most| text_within(word, most));
                    c.reads(word, size);
                }
                (b's' | b'S', _) if word != 0 && precision.is_none() => {
                    c.reads(word, wide_text(word));
                }
                (b'n', length) => {
                    let size = match length {
                        Length::Char => 1,
                        Length::Short => 2,
                        Length::Int => 4,
                        _ => 8,
                    };
                    c.writes(word, size);
                }
                _ => {}
            }
        }
    }
}

/// The length that a text will have, including its zero.
fn printed(format: usize, list: usize) -> usize {
    // SAFETY: a copy of the program's list; libc reads it as it will read the list itself.
    let copy = unsafe { List::copy(list) };
    let n = real!(vsnprintf(0 => usize, 0 => usize, format => usize, &raw const copy as usize => usize) -> c_int);
    usize::try_from(n).map_or(0, |n| n + 1)
}

/// Prints to memory of any size.
fn prints_freely(c: &mut Call, to: usize, format: usize, list: usize) {
    reads_arguments(c, format, list);
    c.writes(to, printed(format, list));
}

/// Prints to memory of limited size.
fn prints_within(c: &mut Call, to: usize, room: usize, format: usize, list: usize) {
    reads_arguments(c, format, list);
    c.writes(to, printed(format, list).min(room));
}

/// Prints to a stdio file.
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
