//! The files that make up the program, and what is requested of them.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};

use super::next::real;
use super::sys::{self, PhdrInfo};
use super::thread::Thread;
use super::{access, config, enter, hook, leave, log, shadow};
use crate::format::Tag;

/// Where each known module begins.
static KNOWN: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
/// Functions whose calls are recorded: first and last byte.
static WANTED: [[AtomicUsize; 2]; 1024] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 1024];
/// The text of the launcher's requests.
static WISHES: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_W: u32 = 2;
/// Larger ranges of variables are not scanned.
const MOST_DATA: usize = 64 << 20;

/// Reads the launcher's requests.
pub(super) fn read_wishes() {
    let Some(path) = config::variable(c"FORESEE_WATCH") else { return };
    let mut name = sys::Text::<4096>::new();
    name.push(path);
    // SAFETY: reads a file into memory of our own.
    unsafe {
        let file =
            sys::syscall!(sys::OPENAT, -100isize, name.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
        if file < 0 {
            return;
        }
        const ROOM: usize = 16 << 20;
        let room = sys::reserve(ROOM);
        let mut len = 0;
        while !room.is_null() && len < ROOM {
            let n = sys::syscall!(sys::READ, file, room.add(len), ROOM - len);
            if n <= 0 {
                break;
            }
            len += n as usize;
        }
        sys::syscall!(sys::CLOSE, file);
        WISHES[0].store(room as usize, Relaxed);
        WISHES[1].store(len, Relaxed);
    }
}

/// Records new modules.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn announce(t: *mut Thread) {
    // SAFETY: `each` is called before this returns.
    unsafe { sys::dl_iterate_phdr(each, t.cast()) };
}

/// Whether an address lies in a library that keeps its threads in a pool until the program ends, as OpenMP's do.
pub(super) fn is_of_runtime(pc: usize) -> bool {
    let nothing = core::ptr::null();
    let mut info =
        sys::DlInfo { file: nothing, base: nothing.cast(), symbol: nothing, at: nothing.cast() };
    // SAFETY: fills `info`; the name lives as long as the module.
    let file = unsafe {
        match sys::dladdr(pc as *const c_void, &mut info) {
            0 => &[][..],
            _ => sys::bytes(info.file),
        }
    };
    let name = file.rsplit(|&b| b == b'/').next().unwrap_or(&[]);
    name.starts_with(b"libgomp") || name.starts_with(b"libomp") || name.starts_with(b"libiomp")
}

hook! { dlclose => close_module, "rsi"; }

/// Modules without hooks are recorded at the end of the program, or here.
extern "C" fn close_module(handle: *mut c_void, _pc: usize) -> c_int {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`.
        unsafe {
            access::settle(t);
            announce(t);
            leave(t);
        }
    }
    real!(dlclose(handle => *mut c_void) -> c_int)
}

/// Records all modules again, in the log of a forked child.
pub(super) fn start_over() {
    for known in &KNOWN {
        known.store(0, Relaxed);
    }
}

unsafe extern "C" fn each(info: *mut PhdrInfo, _size: usize, data: *mut c_void) -> c_int {
    let t: *mut Thread = data.cast();
    // SAFETY: what the dynamic linker passes is valid during this call.
    unsafe {
        let headers = core::slice::from_raw_parts((*info).headers, usize::from((*info).count));
        let base = (*info).base;
        let loads = headers.iter().filter(|h| h.kind == PT_LOAD);
        let low = loads.clone().map(|h| base + h.address).min().unwrap_or(0);
        let end = loads.map(|h| base + h.address + h.in_memory).max().unwrap_or(0);
        if low == 0 {
            return 0;
        }
        let mut is_first = false;
        for (i, known) in KNOWN.iter().enumerate() {
            match known.load(Relaxed) {
                at if at == low => return 0,
                0 => {
                    known.store(low, Relaxed);
                    is_first = i == 0;
                    break;
                }
                _ => {}
            }
        }
        let mut text = [0u8; 4096];
        let mut len = 0;
        let mut push = |bytes: &[u8]| {
            let n = bytes.len().min(text.len() - len);
            text[len..len + n].copy_from_slice(&bytes[..n]);
            len += n;
        };
        push(&(base as u64).to_le_bytes());
        push(&(end as u64).to_le_bytes());
        let id = headers.iter().filter(|h| h.kind == PT_NOTE).find_map(|h| {
            build_id(core::slice::from_raw_parts((base + h.address) as *const u8, h.in_memory))
        });
        let id = id.filter(|id| id.len() < 256).unwrap_or(&[]);
        push(&[id.len() as u8]);
        push(id);
        let mut own = [0u8; 2048];
        let path = match sys::bytes((*info).name) {
            [] if is_first => {
                let n = sys::syscall!(
                    267,
                    -100isize,
                    c"/proc/self/exe".as_ptr(),
                    own.as_mut_ptr(),
                    own.len()
                );
                &own[..usize::try_from(n).unwrap_or(0)]
            }
            path => path,
        };
        push(path);
        log::put_uncounted(t, Tag::Module, low, len as u64, &text[..len]);
        // The program's own variables before any hook. Those of libraries have the values found here.
        let writable = headers.iter().filter(|h| h.kind == PT_LOAD && h.flags & PF_W != 0);
        for header in writable.filter(|h| is_first && h.in_memory <= MOST_DATA) {
            tell_data(t, base + header.address, header.in_memory);
        }
        grant_wishes(base, path, is_first);
    }
    0
}

/// Records the contents of variables. Most of them are zero, which need not be recorded.
unsafe fn tell_data(t: *mut Thread, from: usize, size: usize) {
    const MOST: usize = 512;
    let (from, end) = (from & !7, (from + size) & !7);
    // SAFETY: in a hook of `t`; the dynamic linker says that the memory is there.
    unsafe {
        log::put_uncounted(t, Tag::Data, from, (end - from) as u64, &[]);
        let is_zero = |at: usize| (at as *const u64).read_volatile() == 0;
        let mut at = from;
        while at < end {
            if is_zero(at) {
                at += 8;
                continue;
            }
            let start = at;
            while at < end && at - start < 8 * MOST && !is_zero(at) {
                at += 8;
            }
            let bytes = core::slice::from_raw_parts(start as *const u8, at - start);
            log::put_uncounted(t, Tag::Bytes, start, bytes.len() as u64, bytes);
        }
    }
}

/// The build id in a segment of notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let word = |at: usize| {
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
        };
        let (name, data, kind) = (word(0).next_multiple_of(4), word(4), word(8));
        let body = rest.get(name..)?;
        if kind == 3 && rest.starts_with(b"GNU\0") {
            return body.get(..data);
        }
        notes = body.get(data.next_multiple_of(4)..)?;
    }
    None
}

/// Finds the requests for a module.
fn grant_wishes(base: usize, path: &[u8], is_main: bool) {
    // SAFETY: written once by `read_wishes`.
    let wishes = unsafe {
        let (at, len) = (WISHES[0].load(Relaxed), WISHES[1].load(Relaxed));
        if at == 0 { &[][..] } else { core::slice::from_raw_parts(at as *const u8, len) }
    };
    for line in wishes.split(|&b| b == b'\n') {
        // The path may contain spaces: the other three words do not.
        let mut words = line.splitn(2, |&b| b == b' ');
        let (Some(kind), Some(rest)) = (words.next(), words.next()) else { continue };
        let mut words = rest.rsplitn(3, |&b| b == b' ');
        let (Some(size), Some(at), Some(module)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if module != path && !(is_main && module == b"*") {
            continue;
        }
        let (Some(size), Some(at)) = (config::number(size), config::digits(at, 16)) else {
            continue;
        };
        let (at, size) = (base.wrapping_add(at as usize), size as usize);
        match kind {
            b"data" if config::filter() => shadow::watch(at, size),
            b"call" => want(at, size),
            _ => {}
        }
    }
}

/// Calls of this function are recorded from now on, unless the table is full.
pub(super) fn want(at: usize, size: usize) {
    static IS_CHANGING: AtomicBool = AtomicBool::new(false);
    // Threads that run freely may load modules at the same time.
    while IS_CHANGING.swap(true, Acquire) {
        core::hint::spin_loop();
    }
    let is_last = |wanted: &&[AtomicUsize; 2]| [0, at].contains(&wanted[0].load(Relaxed));
    let found = WANTED.iter().find(is_last);
    if let Some(wanted) = found.filter(|wanted| wanted[0].load(Relaxed) == 0) {
        wanted[1].store(at + size, Relaxed);
        // A thread that finds the beginning finds the end.
        wanted[0].store(at, Release);
        config::want_calls();
    }
    IS_CHANGING.store(false, Release);
}

/// Whether calls of the function that contains `pc` are recorded.
pub(super) fn is_wanted(pc: usize) -> bool {
    WANTED
        .iter()
        .map(|w| (w[0].load(Acquire), w[1].load(Relaxed)))
        .take_while(|w| w.0 != 0)
        .any(|w| w.0 < pc && pc <= w.1)
}
