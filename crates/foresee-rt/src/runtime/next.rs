//! The functions that ours intercept.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::sys;

/// The next function of the same name.
pub(super) struct Next {
    name: &'static CStr,
    at: AtomicUsize,
}

impl Next {
    pub(super) const fn new(name: &'static CStr) -> Next {
        Next { name, at: AtomicUsize::new(0) }
    }

    /// Its address; zero if there is none.
    #[inline]
    pub(super) fn address(&self) -> usize {
        match self.at.load(Ordering::Relaxed) {
            0 => self.find(),
            at => at,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        super::in_loader(|| self.look_up())
    }

    fn look_up(&self) -> usize {
        let _errno = super::Errno::save();
        // SAFETY: names are C strings.
        let at = unsafe {
            let mut at: *mut c_void = core::ptr::null_mut();
            if self.name.to_bytes().starts_with(b"pthread_cond_")
                && self.name != c"pthread_cond_clockwait"
            {
                // There is an older kind of condition variables whose functions have the same names.
                at = sys::dlvsym(sys::RTLD_NEXT, self.name.as_ptr(), c"GLIBC_2.3.2".as_ptr());
            } else if self.name == c"malloc_usable_size" {
                // libc's: its allocator is used even if there is another one.
                at = sys::dlvsym(sys::RTLD_NEXT, self.name.as_ptr(), c"GLIBC_2.2.5".as_ptr());
            }
            if at.is_null() {
                at = sys::dlsym(sys::RTLD_NEXT, self.name.as_ptr());
            }
            if at.is_null() {
                at = self.find_in_openmp();
            }
            at as usize
        };
        self.at.store(at, Ordering::Relaxed);
        at
    }
}

impl Next {
    /// The linker omits a library if the program calls only those of its functions that we intercept.
    #[cold]
    fn find_in_openmp(&self) -> *mut c_void {
        const NOW: c_int = 2;
        let name = self.name.to_bytes();
        let libraries = match (
            name.starts_with(b"__kmpc_"),
            name.starts_with(b"GOMP_") || name.starts_with(b"omp_"),
        ) {
            (true, _) => [c"libomp.so.5", c"libomp.so", c"libiomp5.so"],
            (_, true) => [c"libgomp.so.1", c"libgomp.so", c"libomp.so.5"],
            _ => return core::ptr::null_mut(),
        };
        // Found by name: importing `dlopen` marks a program as one that loads libraries by itself.
        // SAFETY: names are C strings, and this is the function's type.
        let open: Option<unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void> =
            unsafe { core::mem::transmute(sys::dlsym(core::ptr::null_mut(), c"dlopen".as_ptr())) };
        let Some(open) = open else { return core::ptr::null_mut() };
        for library in libraries {
            // SAFETY: as above.
            unsafe {
                let handle = open(library.as_ptr(), NOW);
                if !handle.is_null() {
                    return sys::dlsym(handle, self.name.as_ptr());
                }
            }
        }
        core::ptr::null_mut()
    }
}

/// `real!(name(argument: type, …) -> type)`: calls the function that ours intercepts.
macro_rules! real {
    ($name:ident($($arg:expr => $kind:ty),*) $(-> $out:ty)?) => {{
        static NEXT: $crate::runtime::next::Next = $crate::runtime::next::Next::new(
            // SAFETY: ends with its only zero byte.
            unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) });
        // SAFETY: the function has the type in its manual page; a null pointer crashes, as a missing function would.
        unsafe {
            let f: unsafe extern "C" fn($($kind),*) $(-> $out)? = core::mem::transmute(NEXT.address());
            f($($arg),*)
        }
    }};
}
pub(super) use real;
