//! System calls, without libc where a call might change `errno` or be one that we intercept.

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};

/// A system call; negative results are error numbers. `errno` is not touched.
///
/// # Safety
/// As the call itself.
#[inline]
pub(super) unsafe fn call(n: usize, args: [usize; 6]) -> isize {
    let out: isize;
    // SAFETY: this is how the kernel is called on x86-64; it clobbers rcx and r11 and no other register.
    unsafe {
        asm!("syscall", inlateout("rax") n as isize => out, in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    out
}

macro_rules! syscall {
    ($n:expr) => { $crate::runtime::sys::call($n, [0; 6]) };
    ($n:expr, $a:expr) => { $crate::runtime::sys::call($n, [$a as usize, 0, 0, 0, 0, 0]) };
    ($n:expr, $a:expr, $b:expr) => { $crate::runtime::sys::call($n, [$a as usize, $b as usize, 0, 0, 0, 0]) };
    ($n:expr, $a:expr, $b:expr, $c:expr $(, $d:expr $(, $e:expr, $f:expr)?)?) => {
        $crate::runtime::sys::call($n, $crate::runtime::sys::syscall!(@pad $a, $b, $c $(, $d $(, $e, $f)?)?))
    };
    (@pad $a:expr, $b:expr, $c:expr) => { [$a as usize, $b as usize, $c as usize, 0, 0, 0] };
    (@pad $a:expr, $b:expr, $c:expr, $d:expr) => { [$a as usize, $b as usize, $c as usize, $d as usize, 0, 0] };
    (@pad $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        [$a as usize, $b as usize, $c as usize, $d as usize, $e as usize, $f as usize]
    };
}
pub(super) use syscall;

pub(super) const READ: usize = 0;
pub(super) const CLOSE: usize = 3;
pub(super) const FSTAT: usize = 5;
pub(super) const MMAP: usize = 9;
pub(super) const PWRITE: usize = 18;
pub(super) const MADVISE: usize = 28;
pub(super) const GETPID: usize = 39;
pub(super) const KILL: usize = 62;
pub(super) const FCNTL: usize = 72;
pub(super) const MKDIR: usize = 83;
pub(super) const UNLINK: usize = 87;
pub(super) const READLINK: usize = 89;
pub(super) const GETPPID: usize = 110;
pub(super) const GETTID: usize = 186;
pub(super) const FUTEX: usize = 202;
pub(super) const CLOCK_GETTIME: usize = 228;
pub(super) const EXIT_GROUP: usize = 231;
pub(super) const OPENAT: usize = 257;
pub(super) const FALLOCATE: usize = 285;
pub(super) const PRLIMIT: usize = 302;
pub(super) const MEMBARRIER: usize = 324;
pub(super) const FACCESSAT2: usize = 439;

pub(super) const RLIMIT_FSIZE: usize = 1;
pub(super) const RLIMIT_DATA: usize = 2;
pub(super) const RLIMIT_AS: usize = 9;

pub(super) const O_RDONLY: usize = 0;
pub(super) const O_RDWR: usize = 2;
pub(super) const O_CREAT: usize = 0o100;
pub(super) const O_EXCL: usize = 0o200;
pub(super) const O_CLOEXEC: usize = 0o2_000_000;

pub(super) const ENOMEM: u32 = 12;
pub(super) const EACCES: u32 = 13;
pub(super) const EFBIG: u32 = 27;
pub(super) const EEXIST: isize = -17;
pub(super) const EINTR: isize = -4;
pub(super) const ENOENT: isize = -2;
pub(super) const ESRCH: isize = -3;

const PROT_READ_WRITE: usize = 3;
pub(super) const MAP_SHARED: usize = 1;
pub(super) const MAP_PRIVATE: usize = 2;
pub(super) const MAP_FIXED: usize = 0x10;
pub(super) const MAP_ANONYMOUS: usize = 0x20;
pub(super) const MAP_NORESERVE: usize = 0x4000;

pub(super) const MADV_DONTNEED: usize = 4;
pub(super) const MADV_WIPEONFORK: usize = 18;

/// Zeroed memory from the kernel, allocated only where it is used; null if there is none, or the program may need it itself.
pub(super) fn reserve(size: usize) -> *mut u8 {
    if is_memory_limited() {
        return core::ptr::null_mut();
    }
    map(core::ptr::null_mut(), size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)
}

/// A limit of this process.
pub(super) fn limit(kind: usize) -> u64 {
    let mut limits = [u64::MAX; 2];
    // SAFETY: the kernel fills the two words.
    unsafe { syscall!(PRLIMIT, 0, kind, 0, limits.as_mut_ptr()) };
    limits[0]
}

/// Whether the program may use only a limited amount of memory: what we took of it, it would lack.
pub(super) fn is_memory_limited() -> bool {
    limit(RLIMIT_AS) != u64::MAX || limit(RLIMIT_DATA) != u64::MAX
}

/// The device and the number of an open file; `None` if the descriptor is closed.
pub(super) fn identity(descriptor: isize) -> Option<[u64; 2]> {
    let mut stat = [0u64; 32];
    // SAFETY: there is more room than the kernel fills.
    let out = unsafe { syscall!(FSTAT, descriptor, stat.as_mut_ptr()) };
    (out == 0).then(|| [stat[0], stat[1]])
}

/// Maps memory for reading and writing; null if that fails.
pub(super) fn map(at: *mut u8, size: usize, flags: usize, file: isize) -> *mut u8 {
    // SAFETY: without MAP_FIXED nothing that exists is replaced; with it, callers name their own mapping.
    let out = unsafe { syscall!(MMAP, at, size, PROT_READ_WRITE, flags, file, 0) };
    if (-4095..0).contains(&out) { core::ptr::null_mut() } else { out as *mut u8 }
}

/// Sleeps until `word` differs from `value`, a wake-up comes, or the time is over.
pub(super) fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32, nanoseconds: u64) {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: the word and the time outlive the call.
    unsafe { syscall!(FUTEX, word.as_ptr(), 128, value, time.as_ptr()) };
}

/// Wakes `count` of the threads that sleep on `word`.
pub(super) fn futex_wake(word: &core::sync::atomic::AtomicU32, count: u32) {
    // SAFETY: waking has no effect on memory.
    unsafe { syscall!(FUTEX, word.as_ptr(), 129, count) };
}

/// Sleeps for this many nanoseconds, or until a signal comes.
pub(super) fn sleep(nanoseconds: u64) {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: the time outlives the call.
    unsafe { syscall!(35, time.as_ptr(), 0) };
}

/// This thread, as the kernel knows it.
pub(super) fn thread_id() -> u32 {
    // SAFETY: asks for a number.
    unsafe { syscall!(GETTID) as u32 }
}

/// Whether there is a process with this number.
pub(super) fn exists(process: u64) -> bool {
    // SAFETY: no signal is sent.
    unsafe { syscall!(KILL, process, 0) != ESRCH }
}

/// Whether a process with this number is running: one that has ended exists until its parent asks for its status, but
/// has no executable any more.
pub(super) fn is_running(process: u64) -> bool {
    let mut path = Text::<64>::new();
    path.push(b"/proc/").number(process).push(b"/exe");
    let has_ended = |path: *const u8| {
        let mut first = 0u8;
        // SAFETY: the path is a C string, and there is room for one byte.
        unsafe { syscall!(READLINK, path, &raw mut first, 1) == ENOENT }
    };
    // Where `/proc` is not mounted, nothing is known.
    exists(process) && (!has_ended(path.as_ptr()) || has_ended(c"/proc/self/exe".as_ptr().cast()))
}

/// The process that started this one; 0 if it is in another namespace.
pub(super) fn parent_id() -> u64 {
    // SAFETY: asks for a number.
    unsafe { syscall!(GETPPID) as u64 }
}

/// This process.
pub(super) fn process_id() -> u32 {
    // SAFETY: asks for a number.
    unsafe { syscall!(GETPID) as u32 }
}

/// Nanoseconds of the real-time clock.
pub(super) fn now() -> u64 {
    clock(0).unwrap_or(0)
}

/// Nanoseconds of a clock that is never set.
pub(super) fn ticks() -> u64 {
    clock(1).unwrap_or(0)
}

/// The processor time of a thread of this process in nanoseconds; `None` if there is no such thread.
pub(super) fn processor_time(tid: u32) -> Option<u64> {
    // The kernel's number for the clock that counts the time of one thread.
    clock((!tid << 3 | 6) as i32)
}

fn clock(id: i32) -> Option<u64> {
    let mut time = [0u64; 2];
    // SAFETY: the kernel fills the two words.
    let out = unsafe { syscall!(CLOCK_GETTIME, id, time.as_mut_ptr()) };
    (out == 0).then(|| time[0] * 1_000_000_000 + time[1])
}

/// Ends the program at once, because recording would be wrong.
pub(crate) fn abort() -> ! {
    loop {
        // SAFETY: the call does not return.
        unsafe { syscall!(EXIT_GROUP, 134) };
    }
}

/// A path or name on the stack, ended by a zero byte.
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(super) const fn new() -> Self {
        Text { bytes: [0; N], len: 0 }
    }

    /// Makes it empty.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds bytes as far as there is room.
    pub(super) fn push(&mut self, more: &[u8]) -> &mut Self {
        for &byte in more {
            if self.len + 1 < N {
                self.bytes[self.len] = byte;
                self.len += 1;
            }
        }
        self.bytes[self.len] = 0;
        self
    }

    /// Adds a number in decimal digits.
    pub(super) fn number(&mut self, mut n: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.push(&digits[at..])
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// The bytes of a C string.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte and lives as long as the answer is used.
pub(super) unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { core::ffi::CStr::from_ptr(text) }.to_bytes()
}

pub(super) const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
pub(super) const RTLD_DEFAULT: *mut c_void = core::ptr::null_mut();

/// The dynamic linker's description of an address.
#[repr(C)]
pub(super) struct DlInfo {
    pub(super) file: *const c_char,
    pub(super) base: *const c_void,
    pub(super) symbol: *const c_char,
    pub(super) at: *const c_void,
}

/// The dynamic linker's description of a module.
#[repr(C)]
pub(super) struct PhdrInfo {
    pub(super) base: usize,
    pub(super) name: *const c_char,
    pub(super) headers: *const Phdr,
    pub(super) count: u16,
}

/// A program header of an ELF file.
#[repr(C)]
pub(super) struct Phdr {
    pub(super) kind: u32,
    pub(super) flags: u32,
    pub(super) offset: usize,
    pub(super) address: usize,
    pub(super) physical: usize,
    pub(super) in_file: usize,
    pub(super) in_memory: usize,
    pub(super) align: usize,
}

#[link(name = "c")]
unsafe extern "C" {
    pub(super) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(super) fn dlvsym(
        handle: *mut c_void,
        name: *const c_char,
        version: *const c_char,
    ) -> *mut c_void;
    pub(super) fn getenv(name: *const c_char) -> *const c_char;
    pub(super) fn dl_iterate_phdr(
        each: unsafe extern "C" fn(*mut PhdrInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    pub(super) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub(super) fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
    pub(super) fn pthread_getattr_np(thread: usize, attributes: *mut [u64; 8]) -> c_int;
    pub(super) fn pthread_attr_getstack(
        attributes: *const [u64; 8],
        low: *mut usize,
        size: *mut usize,
    ) -> c_int;
    pub(super) fn pthread_attr_destroy(attributes: *mut [u64; 8]) -> c_int;
    pub(super) fn __cxa_atexit(
        act: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
        module: *mut c_void,
    ) -> c_int;
    pub(super) fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
    pub(super) fn pthread_self() -> usize;
    pub(super) fn backtrace(to: *mut *mut c_void, room: c_int) -> c_int;
    pub(super) fn __errno_location() -> *mut c_int;
}
