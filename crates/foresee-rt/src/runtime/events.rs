//! Events that the program reports through `foresee.h`.

use core::ffi::{c_char, c_int};

use super::{access, enter, explore, hook, leave, log, sys};
use crate::format::Tag;

hook! {
    foresee_event => event, "rcx";
    foresee_begin => begin, "rsi";
    foresee_end => end, "rsi";
}

fn say(tag: Tag, pc: usize, bytes: &[u8]) {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`; callers keep to RECORD_MAX.
        unsafe {
            access::settle(t);
            if explore::is_on() {
                explore::mark(t, tag as u8, pc, bytes);
            }
            log::put_with(t, tag as u8, pc, 0, bytes.len() as u64, bytes);
            leave(t);
        }
    }
}

extern "C" fn event(name: *const c_char, count: c_int, values: *const u64, pc: usize) {
    let mut bytes = [0u8; 1024];
    let count = count.clamp(0, 16) as usize;
    bytes[0] = count as u8;
    // SAFETY: the header passes this many values, and a name.
    unsafe {
        for i in 0..count {
            bytes[1 + 8 * i..9 + 8 * i].copy_from_slice(&values.add(i).read().to_le_bytes());
        }
        let (at, name) = (1 + 8 * count, sys::bytes(name));
        let n = name.len().min(bytes.len() - at);
        bytes[at..at + n].copy_from_slice(&name[..n]);
        say(Tag::Event, pc, &bytes[..at + n]);
    }
}

extern "C" fn begin(name: *const c_char, pc: usize) {
    // SAFETY: a C string.
    let name = unsafe { sys::bytes(name) };
    say(Tag::RegionBegin, pc, &name[..name.len().min(1000)]);
}

extern "C" fn end(name: *const c_char, pc: usize) {
    // SAFETY: a C string.
    let name = unsafe { sys::bytes(name) };
    say(Tag::RegionEnd, pc, &name[..name.len().min(1000)]);
}
