//! stdio, and calls that take names of files or fill a structure.

use super::calls::{Call, Way, calls};
use super::connections::HERE;
use super::explore::kernel::goes_beyond;
use super::strings::text;
use super::{explore, gate, thread};
use crate::exploring::beyond::PROCESS;

unsafe extern "C" {
    static stdin: usize;
    static stdout: usize;
}

/// The file that `printf` writes to.
pub(super) fn output() -> usize {
    // SAFETY: libc's own variable, which programs may set.
    unsafe { (&raw const stdout).read_volatile() }
}

/// The file that `scanf` reads from.
pub(super) fn input() -> usize {
    // SAFETY: as above.
    unsafe { (&raw const stdin).read_volatile() }
}

fn word(at: usize) -> usize {
    // SAFETY: callers read words that the program passes to libc.
    if at == 0 { 0 } else { unsafe { (at as *const usize).read_volatile() } }
}

/// Whether a character can be read (or written) without accessing the file: stdio's buffer is not at its end. The layout of
/// the structure has been the same ever since `getc` was a macro.
fn has_room(file: usize, place: usize) -> bool {
    word(file + place) + 1 < word(file + place + 8)
}

const READ_PLACE: usize = 8;
const WRITE_PLACE: usize = 40;

fn gets_one(c: &mut Call, file: usize) {
    if !has_room(file, READ_PLACE) {
        c.gets_from(file);
    }
}

fn puts_one(c: &mut Call, file: usize) {
    if !has_room(file, WRITE_PLACE) {
        c.puts_to(file);
    }
}

fn may_get_line(c: &mut Call, line: usize, size: usize, file: usize) {
    c.reads(line, 8);
    c.reads(size, 8);
    c.may_write(line, 8);
    c.may_write(size, 8);
    c.may_write(word(line), word(size));
    c.allocates();
    c.gets_from(file);
}

fn got_line(c: &mut Call, line: usize, size: usize, out: usize) {
    if let Ok(n) = usize::try_from(out as isize) {
        c.wrote(line, 8);
        c.wrote(size, 8);
        c.wrote(word(line), n + 1);
    }
}

calls! {
    Outside fwrite(from, size, n, file) |c| { c.reads(from, size.saturating_mul(n)); c.puts_to(file); };
    Outside fwrite_unlocked(from, size, n, file) |c| { c.reads(from, size.saturating_mul(n)); c.puts_to(file); };
    Outside fputs(s, file) |c| { c.reads_text(s); c.puts_to(file); };
    Outside fputs_unlocked(s, file) |c| { c.reads_text(s); c.puts_to(file); };
    Outside puts(s) |c| { c.reads_text(s); c.puts_to(output()); };
    Outside perror(s) |c| { c.reads_text(s); };
    Outside fputc(b, file) |c| { puts_one(c, file); };
    Outside putc(b, file) |c| { puts_one(c, file); };
    Outside putchar(b) |c| { puts_one(c, output()); };
    Outside fflush(file) |c| { c.puts_to(file); };
    Outside fclose(file) |c| { c.closes(file); };
    Outside fread(to, size, n, file) |c| { c.may_write(to, size.saturating_mul(n)); c.gets_from(file); }
        => |c, out| { c.wrote(to, size.saturating_mul(out)); };
    Outside fread_unlocked(to, size, n, file) |c| { c.may_write(to, size.saturating_mul(n)); c.gets_from(file); }
        => |c, out| { c.wrote(to, size.saturating_mul(out)); };
    Outside __fread_chk(to, room, size, n, file) |c| { c.may_write(to, size.saturating_mul(n)); c.gets_from(file); }
        => |c, out| { c.wrote(to, size.saturating_mul(out)); };
    Outside fgets(to, n, file) |c| { c.may_write(to, n as u32 as usize); c.gets_from(file); } => |c, out| { c.wrote_text(out); };
    Outside __fgets_chk(to, room, n, file) |c| { c.may_write(to, n as u32 as usize); c.gets_from(file); }
        => |c, out| { c.wrote_text(out); };
    Outside fgetc(file) |c| { gets_one(c, file); };
    Outside getc(file) |c| { gets_one(c, file); };
    Outside getchar() |c| { gets_one(c, input()); };
    Outside getline(line, size, file) |c| { may_get_line(c, line, size, file); } => |c, out| { got_line(c, line, size, out); };
    Outside getdelim(line, size, b, file) |c| { may_get_line(c, line, size, file); } => |c, out| { got_line(c, line, size, out); };
    Outside __getdelim(line, size, b, file) |c| { may_get_line(c, line, size, file); } => |c, out| { got_line(c, line, size, out); };
}

// Names of files. `fopen` allocates memory before it opens a pipe: a replay must not stop it there, because the thread that opens
// the other end waits for it.
calls! {
    Outside fopen(path, mode) |c| { c.reads_text(path); c.reads_text(mode); c.opens(path, mode); c.opens_pipe(HERE, path, Way::Away); } => |c, out| { c.opened(out); };
    Outside fopen64(path, mode) |c| { c.reads_text(path); c.reads_text(mode); c.opens(path, mode); c.opens_pipe(HERE, path, Way::Away); } => |c, out| { c.opened(out); };
    Outside freopen(path, mode, file) |c| { c.reads_text(path); c.reads_text(mode); c.opens(path, mode); };
    Outside fdopen(file, mode) |c| { c.reads_text(mode); };
    Outside popen(command, mode) |c| { c.reads_text(command); c.reads_text(mode); goes_beyond(PROCESS); };
    Outside posix_spawn(to, path, actions, attributes, arguments, environment) |c| { c.reads_text(path); c.may_write(to, 4); goes_beyond(PROCESS); }
        => |c, out| { if out as i32 == 0 { c.wrote(to, 4); } };
    Outside posix_spawnp(to, path, actions, attributes, arguments, environment) |c| { c.reads_text(path); c.may_write(to, 4); goes_beyond(PROCESS); }
        => |c, out| { if out as i32 == 0 { c.wrote(to, 4); } };
    Outside open(path, flags, mode) |c| { c.reads_text(path); c.opens_with(path, flags); c.opens_pipe(HERE, path, Way::Aside); } => |c, out| { c.got_number(out); };
    Outside open64(path, flags, mode) |c| { c.reads_text(path); c.opens_with(path, flags); c.opens_pipe(HERE, path, Way::Aside); } => |c, out| { c.got_number(out); };
    Outside openat(folder, path, flags, mode) |c| { c.reads_text(path); c.opens_with(path, flags); c.opens_pipe(folder, path, Way::Aside); } => |c, out| { c.got_number(out); };
    Outside openat64(folder, path, flags, mode) |c| { c.reads_text(path); c.opens_with(path, flags); c.opens_pipe(folder, path, Way::Aside); } => |c, out| { c.got_number(out); };
    Outside creat(path, mode) |c| { c.reads_text(path); c.changes_name(path); } => |c, out| { c.got_number(out); };
    Outside opendir(path) |c| { c.reads_text(path); c.looks_at_name(path); c.looks_at_names(); };
    Outside access(path, mode) |c| { c.reads_text(path); c.looks_at_name(path); };
    Outside unlink(path) |c| { c.reads_text(path); c.changes_name(path); };
    Outside remove(path) |c| { c.reads_text(path); c.changes_name(path); };
    Outside rename(from, to) |c| { c.reads_text(from); c.reads_text(to); c.changes_name(from); c.changes_name(to); };
    Outside mkdir(path, mode) |c| { c.reads_text(path); c.changes_name(path); };
    Outside rmdir(path) |c| { c.reads_text(path); c.changes_name(path); };
    Outside chdir(path) |c| { c.reads_text(path); };
    Outside readlink(path, to, n) |c| { c.reads_text(path); c.looks_at_name(path); c.may_write(to, n); }
        => |c, out| { c.wrote(to, usize::try_from(out as isize).unwrap_or(0)); };
    Outside realpath(path, to) |c| { c.reads_text(path); c.may_write(to, 4096); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside __realpath_chk(path, to, room) |c| { c.reads_text(path); c.may_write(to, 4096); c.allocates(); }
        => |c, out| { c.wrote_text(out); };
    Outside getcwd(to, n) |c| { c.may_write(to, n); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside __getcwd_chk(to, n, room) |c| { c.may_write(to, n); c.allocates(); } => |c, out| { c.wrote_text(out); };
    Outside pipe(to) |c| { c.writes(to, 8); } => |c, out| { c.got_numbers(to, out); };
    Outside pipe2(to, flags) |c| { c.writes(to, 8); } => |c, out| { c.got_numbers(to, out); };
    Outside socketpair(family, kind, protocol, to) |c| { c.writes(to, 8); } => |c, out| { c.got_numbers(to, out); };
    Outside link(from, to) |c| { c.reads_text(from); c.reads_text(to); c.looks_at_name(from); c.changes_name(to); };
    Outside symlink(from, to) |c| { c.reads_text(from); c.reads_text(to); c.changes_name(to); };
    Outside mkfifo(path, mode) |c| { c.reads_text(path); c.changes_name(path); };
    Outside truncate(path, size) |c| { c.reads_text(path); c.changes_name(path); };
    Outside unlinkat(folder, path, flags) |c| { c.reads_text(path); c.changes_name(path); };
    Outside mkdirat(folder, path, mode) |c| { c.reads_text(path); c.changes_name(path); };
    Outside renameat(folder, from, other, to) |c| { c.reads_text(from); c.reads_text(to); c.changes_name(from); c.changes_name(to); };
    Outside renameat2(folder, from, other, to, flags) |c| { c.reads_text(from); c.reads_text(to); c.changes_name(from); c.changes_name(to); };
    Outside linkat(folder, from, other, to, flags) |c| { c.reads_text(from); c.reads_text(to); c.looks_at_name(from); c.changes_name(to); };
    Outside faccessat(folder, path, mode, flags) |c| { c.reads_text(path); c.looks_at_name(path); };
    Outside euidaccess(path, mode) |c| { c.reads_text(path); c.looks_at_name(path); };
    Outside eaccess(path, mode) |c| { c.reads_text(path); c.looks_at_name(path); };
    Inside readdir(folder) |c| { c.looks_at_names(); };
    Inside readdir64(folder) |c| { c.looks_at_names(); };
    Outside mkstemp(path) |c| { c.reads_text(path); c.may_write(path, text(path)); } => |c, out| { c.wrote_text(path); };
    Outside mkdtemp(path) |c| { c.reads_text(path); c.may_write(path, text(path)); } => |c, out| { c.wrote_text(path); };
    Outside mkostemp(path, flags) |c| { c.reads_text(path); c.may_write(path, text(path)); } => |c, out| { c.wrote_text(path); };
    Outside mkstemps(path, behind) |c| { c.reads_text(path); c.may_write(path, text(path)); } => |c, out| { c.wrote_text(path); };
    Outside gethostname(to, n) |c| { c.may_write(to, n); } => |c, out| { if out as i32 == 0 { c.wrote_text(to); } };
    Outside strerror_r(error, to, n) |c| { c.may_write(to, n); } => |c, out| { if out == to && n > 0 { c.wrote_text(to); } };
    Outside __xpg_strerror_r(error, to, n) |c| { c.may_write(to, n); } => |c, out| { if n > 0 { c.wrote_text(to); } };
}

/// Structures that are filled if the call succeeds, that is, returns zero.
macro_rules! fills {
    ($($name:ident($($arg:ident),*), $to:ident, $size:literal $(, $path:ident)?;)*) => {
        calls! { $(
            Outside $name($($arg),*) |c| { $(c.reads_text($path); c.looks_at_name($path);)? c.may_write($to, $size); }
                => |c, out| { if out as i32 == 0 { c.wrote($to, $size); } };
        )* }
    };
}

fills! {
    stat(path, to), to, 144, path;
    stat64(path, to), to, 144, path;
    lstat(path, to), to, 144, path;
    lstat64(path, to), to, 144, path;
    fstat(file, to), to, 144;
    fstat64(file, to), to, 144;
    fstatat(folder, path, to, flags), to, 144, path;
    fstatat64(folder, path, to, flags), to, 144, path;
    clock_getres(clock, to), to, 16;
    getrusage(who, to), to, 144;
    getrlimit(what, to), to, 16;
    uname(to), to, 390;
    sysinfo(to), to, 112;
}

calls! {
    Outside clock_gettime(clock, to) |c| { c.may_write(to, 16); }
        => |c, out| { if out as i32 == 0 { set_ahead(to, 1); c.wrote(to, 16); } };
    Outside gettimeofday(to, zone) |c| { c.may_write(to, 16); }
        => |c, out| { if out as i32 == 0 { set_ahead(to, 1000); c.wrote(to, 16); } };
    Inside time(to) |c| { c.may_write(to, 8); } => |c, out| { tells_time(c, to); };
    Inside timespec_get(to, base) |c| { c.writes(to, 16); };
    Inside localtime_r(time, to) |c| { c.reads(time, 8); c.writes(to, 56); };
    Inside gmtime_r(time, to) |c| { c.reads(time, 8); c.writes(to, 56); };
    Inside localtime(time) |c| { c.reads(time, 8); } => |c, out| { c.wrote(out, 56); };
    Inside gmtime(time) |c| { c.reads(time, 8); } => |c, out| { c.wrote(out, 56); };
    Inside mktime(time) |c| { c.reads(time, 56); c.writes(time, 56); };
    Inside timegm(time) |c| { c.reads(time, 56); c.writes(time, 56); };
    Inside asctime_r(time, to) |c| { c.reads(time, 56); c.may_write(to, 26); } => |c, out| { c.wrote_text(out); };
    Inside ctime_r(time, to) |c| { c.reads(time, 8); c.may_write(to, 26); } => |c, out| { c.wrote_text(out); };
    Inside strftime(to, n, format, time) |c| { c.reads_text(format); c.reads(time, 56); c.may_write(to, n); }
        => |c, out| { if out != 0 { c.wrote(to, out + 1); } };
}

const SECOND: u64 = 1_000_000_000;
/// A time to sleep until, not for.
const ABSOLUTE: usize = 1;

/// A `struct timespec` in nanoseconds.
fn span(time: usize) -> u64 {
    if time == 0 {
        return 0;
    }
    // SAFETY: the program's own structure.
    let [seconds, rest] = unsafe { *(time as *const [u64; 2]) };
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

/// Adds to a time what a replay did not wait for. The second word counts units of this many nanoseconds.
fn set_ahead(time: usize, unit: u64) {
    let t = thread::current();
    if explore::is_on() && time != 0 && !t.is_null() {
        // SAFETY: the thread's own state; the program's own structure.
        unsafe {
            let now = explore::inputs::time(t);
            *(time as *mut [u64; 2]) = [now / SECOND, now % SECOND / unit];
        }
        return;
    }
    let ahead = gate::ahead();
    if ahead == 0 || time == 0 {
        return;
    }
    // SAFETY: the program's own structure.
    let time = unsafe { &mut *(time as *mut [u64; 2]) };
    let rest = time[1] * unit + ahead % SECOND;
    *time = [time[0] + ahead / SECOND + rest / SECOND, rest % SECOND / unit];
}

/// Says which second it is: on the thread's own clock while the program is explored.
fn tells_time(c: &mut Call, to: usize) {
    if explore::is_on() {
        // SAFETY: in a hook of the thread; the program's own word.
        unsafe {
            let now = explore::inputs::time(c.t) / SECOND;
            if to != 0 {
                *(to as *mut u64) = now;
            }
            c.instead = Some(now as usize);
        }
    }
    c.wrote(to, 8);
}

impl Call {
    /// Sleeps, in nanoseconds.
    fn sleeps(&mut self, time: u64) {
        if explore::is_on() {
            explore::inputs::pass(time);
            self.way = Way::Skipped;
        } else if gate::skips(time) {
            self.way = Way::Skipped;
        }
    }
}

// Calls that block, without a file.
calls! {
    Aside sleep(seconds) |c| { c.sleeps(seconds as u32 as u64 * SECOND); };
    Aside usleep(time) |c| { c.sleeps(time as u32 as u64 * 1000); };
    Aside nanosleep(time, rest) |c| { c.reads(time, 16); c.sleeps(span(time)); };
    Aside clock_nanosleep(clock, flags, time, rest) |c| {
        c.reads(time, 16);
        c.sleeps(if flags & ABSOLUTE == 0 { span(time) } else { 0 });
    };
    Aside sched_yield();
    Aside thrd_sleep(time, rest) |c| { c.reads(time, 16); c.sleeps(span(time)); };
    Aside thrd_yield();
    Aside wait(to) |c| { c.may_write(to, 4); } => |c, out| { if out as i32 > 0 { c.wrote(to, 4); } };
    Aside waitpid(which, to, flags) |c| { c.may_write(to, 4); } => |c, out| { if out as i32 > 0 { c.wrote(to, 4); } };
    Aside system(command) |c| { c.reads_text(command); goes_beyond(PROCESS); };
    Aside pclose(file);
    Aside pause();
    Aside sigsuspend(mask);
    Aside fsync(file);
}
