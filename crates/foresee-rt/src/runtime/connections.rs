//! The beginnings of connections: sockets that listen, connect and accept, and named pipes, whose ends wait for each other.
//!
//! A thread that waits for another one here must have recorded before it waits what the other one may see: then the
//! one that continues first comes after it, and a replay lets it come that far.

use super::calls::{Call, Way, calls};
use super::channels::{self, Channel};
use super::sys;
use crate::format::{Tag, channel};

/// The folder that paths of `open` are relative to.
pub(super) const HERE: usize = -100isize as usize;

fn listener(address: usize) -> Channel {
    Channel::made(channel::LISTENER, address, address as u32)
}

/// What is connected to an address, and not accepted yet. The port of the connecting side, which would tell the
/// connections apart, is known only when both sides may continue.
fn connections(address: usize) -> Channel {
    Channel::made(channel::CONNECTIONS, address, address as u32)
}

/// The address that a program passes.
fn address(name: usize, size: usize) -> usize {
    let size = if name == 0 { 0 } else { (size as u32 as usize).min(128) };
    // SAFETY: the program's own name of a socket, of this size.
    channels::address(unsafe { core::slice::from_raw_parts(name.max(1) as *const u8, size) })
}

calls! {
    Outside listen(file, room) |c| { c.note(Tag::Send, listener(channels::own_address(file))); };
    Aside connect(file, name, size) |c| {
        c.reads(name, size as u32 as usize);
        c.note(Tag::Send, connections(address(name, size)));
    } => |c, out| { c.note(Tag::Look, listener(address(name, size))); };
    Aside accept(file, name, size) |c| { c.may_write(name, 128); c.may_write(size, 4); }
        => |c, out| { c.accepted(file, out); c.wrote_name(name, size, out); };
    Aside accept4(file, name, size, flags) |c| { c.may_write(name, 128); c.may_write(size, 4); }
        => |c, out| { c.accepted(file, out); c.wrote_name(name, size, out); };
}

calls! {
    Inside bind(file, name, size) |c| { c.reads(name, size as u32 as usize); };
    Inside getsockname(file, name, size) |c| { c.asks_name(name, size); } => |c, out| { c.wrote_name(name, size, out); };
    Inside getpeername(file, name, size) |c| { c.asks_name(name, size); } => |c, out| { c.wrote_name(name, size, out); };
}

impl Call {
    fn asks_name(&mut self, name: usize, size: usize) {
        self.reads(size, 4);
        self.may_write(name, 128);
        self.may_write(size, 4);
    }

    fn accepted(&mut self, file: usize, out: usize) {
        self.note(Tag::Look, connections(channels::own_address(file)));
        self.got_number(out);
    }

    /// A file is about to be opened. If it is a named pipe, that may wait for a thread that opens the other end, and is done in
    /// this way.
    pub(super) fn opens_pipe(&mut self, folder: usize, path: usize, way: Way) {
        const NEWFSTATAT: usize = 262;
        const PIPE: u64 = 0o010_000;
        let mut stat = [0u64; 18];
        // SAFETY: the program's own path; the kernel fills the structure.
        let out = unsafe {
            sys::syscall!(NEWFSTATAT, folder as i32 as isize, path, stat.as_mut_ptr(), 0)
        };
        if out == 0 && stat[3] & 0o170_000 == PIPE {
            let ends = Channel::made(channel::NAMED_PIPE, stat[1] as usize, stat[1] as u32);
            self.note(Tag::Send, ends);
            self.source = Some(ends);
            self.way = way;
        }
    }
}
