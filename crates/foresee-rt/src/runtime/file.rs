//! The file that the buffer is appended to. It must not get in the program's way.
//!
//! A descriptor is kept open, because the program may give up the right to open the file again. But it is one with a high
//! number, where programs do not expect their own, and only if the program may have that many. And because programs close
//! descriptors that they do not know, and use their numbers for something else, each use checks that it is still this file.

use super::sys;

pub(super) struct File {
    /// The descriptor; negative if there is none.
    descriptor: isize,
    /// The file's device and number.
    identity: [u64; 2],
    /// A C string.
    path: *const u8,
}

/// The lowest number of a descriptor that is kept.
const HIGH: usize = 500;
const F_DUPFD_CLOEXEC: usize = 1030;

impl File {
    pub(super) const NONE: File =
        File { descriptor: -1, identity: [0; 2], path: core::ptr::null() };

    /// Creates a file at a path, which is a C string and stays there. If that fails, the first use of the file does.
    pub(super) fn create(path: *const u8) -> File {
        let mut file = File { path, ..File::NONE };
        let flags = sys::O_RDWR | sys::O_CREAT | sys::O_CLOEXEC;
        // SAFETY: the path is a C string, and the descriptors are ours.
        unsafe {
            let low = sys::syscall!(sys::OPENAT, -100isize, file.path, flags, 0o600);
            if low >= 0 {
                file.identity = sys::identity(low).unwrap_or_default();
                file.descriptor = sys::syscall!(sys::FCNTL, low, F_DUPFD_CLOEXEC, HIGH);
                sys::syscall!(sys::CLOSE, low);
            }
        }
        file
    }

    /// Writes all bytes at an offset; otherwise returns the error number.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), u32> {
        // Beyond the limit, the kernel would send a signal to the program.
        if offset + bytes.len() as u64 > sys::limit(sys::RLIMIT_FSIZE) {
            return Err(sys::EFBIG);
        }
        if self.descriptor >= 0 && sys::identity(self.descriptor) == Some(self.identity) {
            return write(self.descriptor, bytes, offset);
        }
        // It is no longer ours: it must not be closed.
        self.descriptor = -1;
        let flags = sys::O_RDWR | sys::O_CREAT | sys::O_CLOEXEC;
        // SAFETY: the path is a C string, and the descriptor is ours.
        unsafe {
            let file = sys::syscall!(sys::OPENAT, -100isize, self.path, flags, 0o600);
            if file < 0 {
                return Err(-file as u32);
            }
            let out = write(file, bytes, offset);
            sys::syscall!(sys::CLOSE, file);
            out
        }
    }
}

fn write(descriptor: isize, bytes: &[u8], offset: u64) -> Result<(), u32> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let at = offset + done as u64;
        // SAFETY: the bytes outlive the call.
        match unsafe { sys::syscall!(sys::PWRITE, descriptor, rest.as_ptr(), rest.len(), at) } {
            sys::EINTR => {}
            n if n <= 0 => return Err(-n as u32),
            n => done += n as usize,
        }
    }
    Ok(())
}
