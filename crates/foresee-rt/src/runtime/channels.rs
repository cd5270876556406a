//! Communication between threads through files: pipes, sockets, event counters, files on disk.
//!
//! A receiver comes after the sender, and of two receivers the second gets what the first left. So
//! both are recorded as steps on a *channel*. The host models it as a variable with atomic
//! read-modify-writes, if several threads use the channel and something is received from it at all.
//! An attempt that receives nothing is a look.

use super::calls::{Call, Way, calls};
use super::next::real;
use super::thread::Thread;
use super::{explore, gate, kernel, sync, sys};
use crate::format::{Tag, channel};

/// Something that bytes go into and come out of.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    /// The same for everything that refers to the same object.
    id: usize,
    /// The file descriptor that is used, or another number for its name.
    file: u32,
    /// Its kind, as recorded.
    what: u64,
    kind: Kind,
}

impl Channel {
    /// A channel other than a file.
    pub(super) const fn made(what: u64, number: usize, called: u32) -> Channel {
        let id = channel::id(what, number as u64) as usize;
        Channel { id, file: called, what, kind: Kind::Other }
    }

    /// Whether it is an event counter or the like.
    fn is_of_kernel(self) -> bool {
        self.id & 7 == 5
    }

    /// The number that distinguishes it from others of its kind.
    pub(super) const fn number(self) -> usize {
        self.id & 0x00ff_ffff_ffff_ffff
    }

    /// Records a step on the channel.
    ///
    /// # Safety
    /// In a hook of `t`.
    pub(super) unsafe fn note(self, t: *mut Thread, tag: Tag, pc: usize) {
        // SAFETY: by the caller's promise.
        unsafe { sync(t, tag, pc, self.id, self.what << 32 | u64::from(self.file)) }
        if explore::is_on() {
            explore::kernel::uses(t, self.id, tag);
        }
    }

    /// The file that a receiver waits for, if it may have to.
    pub(super) fn awaited(self) -> Option<u32> {
        let may_wait = matches!(self.kind, Kind::Pipe | Kind::Socket) || self.is_of_kernel();
        may_wait.then_some(self.file)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
    OnDisk,
    /// Terminals, and objects without a file in the kernel.
    Other,
}

/// The environment, which is not a file but is recorded in the same way.
const ENVIRONMENT: Channel = Channel::made(channel::ENVIRONMENT, 0, 0);

const FSTAT: usize = 5;
const POLL: usize = 7;
const GETSOCKNAME: usize = 51;
const GETPEERNAME: usize = 52;
const GETSOCKOPT: usize = 55;
const EAGAIN: i32 = 11;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
/// The number of bytes that a pipe accepts at once if it accepts any.
const AT_ONCE: usize = 4096;
/// How long a replay waits, in milliseconds, for what was sent to arrive.
const ON_ITS_WAY: isize = 200;

/// The channel of a file descriptor; `None` if it carries no order.
pub(super) fn channel(file: usize) -> Option<Channel> {
    let mut stat = [0u64; 18];
    // SAFETY: the kernel fills the structure.
    if unsafe { sys::syscall!(FSTAT, file as u32, stat.as_mut_ptr()) } != 0 {
        return None;
    }
    let (device, node, mode, special) =
        (stat[0] as usize, stat[1] as usize, stat[3] as u32 & 0o170_000, stat[5] as usize);
    let (kind, id) = match mode {
        0o010_000 => (Kind::Pipe, node << 3 | 1),
        0o140_000 => (Kind::Socket, connection(file) << 3 | 2),
        0o100_000 => (Kind::OnDisk, (node ^ device << 32) << 3 | 3),
        // The null device and the like transfer no data.
        0o020_000 if special >> 8 == 1 => return None,
        0o020_000 => (Kind::Other, special << 3 | 4),
        0o040_000 => return None,
        // Event counters and the like: the kernel has one node for all of them.
        _ => (Kind::Other, kernel::first_of(file as u32) << 3 | 5),
    };
    Some(Channel { id, file: file as u32, what: channel::FILE, kind })
}

/// Both ends of a connection have the same number; so do all unconnected sockets and all datagrams.
fn connection(file: usize) -> usize {
    let (mut kind, mut size) = (0u32, 4u32);
    // SAFETY: the kernel is given the size of what it fills.
    unsafe {
        sys::syscall!(GETSOCKOPT, file as u32, 1, 3, &raw mut kind, &raw mut size, 0);
        match (kind, name_of(file, GETSOCKNAME), name_of(file, GETPEERNAME)) {
            // SOCK_STREAM and SOCK_SEQPACKET
            (1 | 5, Some(a), Some(b)) => a.min(b) << 28 | a.max(b),
            _ => 0,
        }
    }
}

/// A number for the name of a socket.
pub(super) fn address(name: &[u8]) -> usize {
    match name {
        // Only the port: the two ends may use different names for the same address.
        [2 | 10, 0, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        // Only the last part of a path, for the same reason.
        [_, _, path @ ..] => {
            let path = path.strip_prefix(b"\0").unwrap_or(path);
            let path = path.split(|&b| b == 0).next().unwrap_or(path);
            let last = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
            let mix = |n: usize, &b: &u8| n.rotate_left(5).wrapping_mul(31) ^ usize::from(b);
            last.iter().fold(0xffff, mix) & 0x0fff_ffff
        }
        _ => 0xffff,
    }
}

/// A number for the name of a socket, or of its peer, if it has one.
fn name_of(file: usize, call: usize) -> Option<usize> {
    let (mut name, mut size) = ([0u8; 128], 128u32);
    // SAFETY: the kernel is given the size of what it fills.
    let out = unsafe { sys::syscall!(call, file as u32, name.as_mut_ptr(), &raw mut size) };
    (out == 0).then(|| address(&name[..(size as usize).min(name.len())]))
}

/// A number for the name that a socket is bound to.
pub(super) fn own_address(file: usize) -> usize {
    name_of(file, GETSOCKNAME).unwrap_or(0)
}

/// Whether the kernel would not block a thread.
fn is_ready(file: u32, for_what: u16) -> bool {
    wait_until(file, for_what, 0)
}

/// Waits until the kernel would not block a thread, for this many milliseconds; forever if negative.
fn wait_until(file: u32, for_what: u16, time: isize) -> bool {
    let mut wish = u64::from(file) | u64::from(for_what) << 32;
    // SAFETY: one request, which outlives the call.
    unsafe { sys::syscall!(POLL, &raw mut wish, 1, time) == 1 }
}

/// Waits until there is something to receive, as the caller's next call would.
pub(super) fn await_input(file: usize) {
    wait_until(file as u32, POLLIN, -1);
}

/// Whether something can be received at once.
pub(super) fn has_input(file: usize) -> bool {
    is_ready(file as u32, POLLIN)
}

impl Call {
    pub(super) fn note(&mut self, tag: Tag, channel: Channel) {
        // SAFETY: in a hook of the thread.
        unsafe { channel.note(self.t, tag, self.pc) }
    }

    /// Sends something now, through a call that cannot block for long.
    pub(super) fn sends(&mut self, file: usize) {
        if let Some(channel) = channel(file) {
            self.note(Tag::Send, channel);
        }
    }

    /// Sends this many bytes now: with the token if they fit at once, so that the order of steps is
    /// that of the bytes.
    fn sends_bytes(&mut self, file: usize, size: usize) {
        self.way = Way::Outside;
        if let Some(channel) = channel(file) {
            let at_once = match channel.kind {
                Kind::OnDisk => true,
                _ => size <= AT_ONCE && is_ready(channel.file, POLLOUT),
            };
            if !at_once {
                self.way = Way::Aside;
            }
            self.note(Tag::Send, channel);
        }
    }

    /// Sends a message through a queue, which the kernel represents as a file.
    pub(super) fn sends_message(&mut self, file: usize) {
        if let Some(channel) = channel(file) {
            self.way = if is_ready(channel.file, POLLOUT) { Way::Outside } else { Way::Aside };
            self.note(Tag::Send, channel);
        }
    }

    /// A message will be received.
    pub(super) fn receives_message(&mut self, file: usize) {
        self.source = channel(file);
        self.way = if has_input(file) { Way::Outside } else { Way::Aside };
    }

    /// Something will be received.
    pub(super) fn receives(&mut self, file: usize) {
        self.source = channel(file);
        // What was sent may be on its way still, and a receiver that does not wait would miss it.
        // SAFETY: in a hook of the thread.
        if unsafe { gate::is_to_receive(self.t, self.pc) } {
            wait_until(file as u32, POLLIN, ON_ITS_WAY);
        }
        self.way = match self.source {
            Some(channel) if channel.kind != Kind::OnDisk && !is_ready(channel.file, POLLIN) => {
                Way::Aside
            }
            _ => Way::Outside,
        };
    }

    /// Something was received, or there was nothing.
    pub(super) fn received(&mut self, channel: Channel, out: usize) {
        // SAFETY: the thread's own word.
        let nothing = out as i32 == -1 && unsafe { *sys::__errno_location() } == EAGAIN;
        self.note(if nothing { Tag::Look } else { Tag::Receive }, channel);
        if let Some(besides) = kernel::told_by(channel.file).filter(|_| channel.is_of_kernel()) {
            self.note(Tag::Look, besides);
        }
    }

    /// Moves bytes of the program into a pipe.
    pub(super) fn splices(&mut self, file: usize, list: usize, count: usize) {
        self.sends_pieces(file, list, count);
    }

    /// Writes to a stdio file; buffered data counts as sent now or when the buffer is full.
    pub(super) fn puts_to(&mut self, file: usize) {
        if file != 0 {
            self.sends(real!(fileno(file => usize) -> usize));
        }
    }

    /// Writes out and closes a stdio file.
    pub(super) fn closes(&mut self, file: usize) {
        if file != 0 {
            let number = real!(fileno(file => usize) -> usize);
            self.sends(number);
            self.gives_number(number);
        }
    }

    /// A stdio file was opened.
    pub(super) fn opened(&mut self, file: usize) {
        if file != 0 {
            self.got_number(real!(fileno(file => usize) -> usize));
        }
    }

    /// Reads from a stdio file.
    pub(super) fn gets_from(&mut self, file: usize) {
        if file != 0 {
            self.receives(real!(fileno(file => usize) -> usize));
        }
    }

    /// Checks whether something can be received.
    pub(super) fn looks(&mut self, file: usize) {
        if let Some(channel) = channel(file) {
            self.note(Tag::Look, channel);
        }
    }

    /// Reads the list of pieces of a gathering call, and calls `each` for them.
    fn pieces(&mut self, list: usize, count: usize, mut each: impl FnMut(&mut Call, usize, usize)) {
        self.reads(list, 16 * count.min(1024));
        for i in 0..count.min(1024) {
            // SAFETY: the program's own list.
            let [at, size] = unsafe { *((list + 16 * i) as *const [usize; 2]) };
            each(self, at, size);
        }
    }

    fn sends_pieces(&mut self, file: usize, list: usize, count: usize) {
        let mut sum = 0usize;
        self.pieces(list, count, |c, at, size| {
            c.reads(at, size);
            sum = sum.saturating_add(size);
        });
        self.sends_bytes(file, sum);
    }

    fn receives_pieces(&mut self, file: usize, list: usize, count: usize) {
        self.pieces(list, count, |c, at, size| c.may_write(at, size));
        self.receives(file);
    }

    fn wrote_pieces(&mut self, list: usize, count: usize, out: usize) {
        let mut left = usize::try_from(out as isize).unwrap_or(0);
        for i in 0..count.min(1024) {
            // SAFETY: the program's own list.
            let [at, size] = unsafe { *((list + 16 * i) as *const [usize; 2]) };
            self.wrote(at, size.min(left));
            left -= size.min(left);
        }
    }

    /// Writes as many bytes as the result says.
    pub(super) fn wrote_result(&mut self, at: usize, out: usize) {
        self.wrote(at, usize::try_from(out as isize).unwrap_or(0));
    }

    /// An address of a peer, and its size before it.
    pub(super) fn wrote_name(&mut self, at: usize, size: usize, out: usize) {
        if at != 0 && size != 0 && out as i32 >= 0 {
            // SAFETY: the program's own number.
            let n = unsafe { *(size as *const u32) } as usize;
            self.wrote(at, n.min(128));
            self.wrote(size, 4);
        }
    }
}

/// The list of pieces of a message, and their number.
fn message(at: usize) -> (usize, usize) {
    // SAFETY: the program's own message.
    unsafe { (*((at + 16) as *const usize), *((at + 24) as *const usize)) }
}

calls! {
    Outside write(file, from, n) |c| { c.reads(from, n); c.sends_bytes(file, n); };
    Outside pwrite(file, from, n, at) |c| { c.reads(from, n); c.sends_bytes(file, n); };
    Outside pwrite64(file, from, n, at) |c| { c.reads(from, n); c.sends_bytes(file, n); };
    Outside send(file, from, n, flags) |c| { c.reads(from, n); c.sends_bytes(file, n); };
    Outside sendto(file, from, n, flags, to, size) |c| { c.reads(to, size as u32 as usize); c.reads(from, n); c.sends_bytes(file, n); };
    Outside writev(file, list, count) |c| { c.sends_pieces(file, list, count as u32 as usize); };
    Outside pwritev(file, list, count, at) |c| { c.sends_pieces(file, list, count as u32 as usize); };
    Outside sendmsg(file, what, flags) |c| { c.reads(what, 56); let (list, n) = message(what); c.sends_pieces(file, list, n); };
    Outside eventfd_write(file, n) |c| { c.sends_bytes(file, 8); };
    Outside shutdown(file, how) |c| { c.sends(file); };
}

calls! {
    Outside read(file, to, n) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside __read_chk(file, to, n, room) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside pread(file, to, n, at) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside pread64(file, to, n, at) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside __pread_chk(file, to, n, at, room) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside recv(file, to, n, flags) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside __recv_chk(file, to, n, room, flags) |c| { c.may_write(to, n); c.receives(file); } => |c, out| { c.wrote_result(to, out); };
    Outside recvfrom(file, to, n, flags, from, size) |c| { c.may_write(to, n); c.may_write(from, 128); c.may_write(size, 4); c.receives(file); }
        => |c, out| { c.wrote_result(to, out); c.wrote_name(from, size, out); };
    Outside readv(file, list, count) |c| { c.receives_pieces(file, list, count as u32 as usize); }
        => |c, out| { c.wrote_pieces(list, count as u32 as usize, out); };
    Outside preadv(file, list, count, at) |c| { c.receives_pieces(file, list, count as u32 as usize); }
        => |c, out| { c.wrote_pieces(list, count as u32 as usize, out); };
    Outside recvmsg(file, what, flags) |c| { c.reads(what, 56); let (list, n) = message(what); c.receives_pieces(file, list, n); }
        => |c, out| { let (list, n) = message(what); c.wrote_pieces(list, n, out); };
    Outside eventfd_read(file, to) |c| { c.may_write(to, 8); c.receives(file); } => |c, out| { if out as i32 == 0 { c.wrote(to, 8); } };
}

// These check whether something can be received without receiving it.
calls! {
    Aside poll(wishes, count, time) |c| { c.reads(wishes, 8 * count); c.may_write(wishes, 8 * count); }
        => |c, out| { looked_at_all(c, wishes, count, out); };
    Aside ppoll(wishes, count, time, mask) |c| { c.reads(wishes, 8 * count); c.may_write(wishes, 8 * count); }
        => |c, out| { looked_at_all(c, wishes, count, out); };
    Aside select(count, reading, writing, odd, time) |c| { asks_sets(c, count, [reading, writing, odd]); }
        => |c, out| { looked_at_sets(c, count, [reading, writing, odd]); };
    Aside pselect(count, reading, writing, odd, time, mask) |c| { asks_sets(c, count, [reading, writing, odd]); }
        => |c, out| { looked_at_sets(c, count, [reading, writing, odd]); };
    Aside epoll_wait(file, to, count, time) |c| { c.may_write(to, 12 * (count as u32 as usize)); }
        => |c, out| { c.looks(file); c.wrote_ready(file, to, out); };
    Aside epoll_pwait2(file, to, count, time, mask) |c| { c.reads(time, 16); c.may_write(to, 12 * (count as u32 as usize)); }
        => |c, out| { c.looks(file); c.wrote_ready(file, to, out); };
    Aside epoll_pwait(file, to, count, time, mask) |c| { c.may_write(to, 12 * (count as u32 as usize)); }
        => |c, out| { c.looks(file); c.wrote_ready(file, to, out); };
    Outside epoll_ctl(file, what, other, event) |c| { c.reads(event, 12); c.sends(file); kernel::watch(file, other, event); };
}

impl Call {
    /// What `epoll` reports as ready: the cause comes before.
    fn wrote_ready(&mut self, epoll: usize, to: usize, out: usize) {
        let count = usize::try_from(out as i32).unwrap_or(0);
        self.wrote(to, 12 * count);
        for i in 0..count {
            // SAFETY: the program's own list, just filled; entries have twelve bytes.
            let data = unsafe { ((to + 12 * i + 4) as *const usize).read_unaligned() };
            kernel::watched(epoll, data, |file| self.looks(file));
        }
    }
}

fn looked_at_all(c: &mut Call, wishes: usize, count: usize, out: usize) {
    for i in 0..count {
        let at = wishes + 8 * i;
        // SAFETY: the program's own list.
        let wish = unsafe { *(at as *const u64) };
        if wish >> 32 & u64::from(POLLIN) != 0 && (wish as u32 as i32) >= 0 {
            c.looks(wish as u32 as usize);
        }
        if out as i32 >= 0 {
            c.wrote(at + 6, 2);
        }
    }
}

fn asks_sets(c: &mut Call, count: usize, sets: [usize; 3]) {
    let size = (count as u32 as usize).div_ceil(64) * 8;
    for set in sets {
        c.reads(set, size);
        c.may_write(set, size);
    }
    // Before the call, which leaves only the ready files in the sets.
    for file in 0..count as u32 as usize {
        // SAFETY: the program's own set, of as many bits.
        if sets[0] != 0 && unsafe { *((sets[0] + file / 8) as *const u8) } >> (file % 8) & 1 != 0 {
            c.looks(file);
        }
    }
}

fn looked_at_sets(c: &mut Call, count: usize, sets: [usize; 3]) {
    for set in sets {
        c.wrote(set, (count as u32 as usize).div_ceil(64) * 8);
    }
    for file in 0..count as u32 as usize {
        // SAFETY: as above.
        if sets[0] != 0 && unsafe { *((sets[0] + file / 8) as *const u8) } >> (file % 8) & 1 != 0 {
            c.looks(file);
        }
    }
}

calls! {
    Inside getenv(name) |c| { c.reads_text(name); c.note(Tag::Look, ENVIRONMENT); };
    Inside secure_getenv(name) |c| { c.reads_text(name); c.note(Tag::Look, ENVIRONMENT); };
    Outside setenv(name, value, over) |c| { c.reads_text(name); c.reads_text(value); c.note(Tag::Send, ENVIRONMENT); };
    Outside unsetenv(name) |c| { c.reads_text(name); c.note(Tag::Send, ENVIRONMENT); };
    Outside putenv(text) |c| { c.reads_text(text); c.note(Tag::Send, ENVIRONMENT); };
    Outside clearenv() |c| { c.note(Tag::Send, ENVIRONMENT); };
}
