//! The resources that senders may use.

use std::time::Duration;

/// The resources that one sender may use, and all of them together, and how long the observer waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of simultaneous connections, and of programs.
    pub connections: usize,
    /// The maximum payload of a frame, in bytes.
    pub frame: u32,
    /// The maximum number of buffered bytes of frames of one program, including those behind a gap.
    /// Its names may take as many.
    pub memory: usize,
    /// The maximum number of bytes of memory that all programs take together: frames that arrive or
    /// wait, names, and what analyses hold.
    pub total_memory: usize,
    /// The maximum number of threads of one program.
    pub threads: u32,
    /// The maximum number of bytes of one program that are spooled to disk, if its trace is not
    /// kept.
    pub disk: u64,
    /// The same for all programs together.
    pub total_disk: u64,
    /// A hello must be complete after this time.
    pub hello: Duration,
    /// A frame that has begun must be complete after this time.
    pub stall: Duration,
    /// A silent connection is closed after this time.
    pub idle: Option<Duration>,
    /// A program without a connection is over after this time, unless it reconnects.
    pub linger: Duration,
    /// Whether to drop events instead of applying back-pressure.
    pub lossy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            frame: foresee_formats::native::MAX_PAYLOAD,
            memory: 64 << 20,
            total_memory: 4 << 30,
            threads: 1 << 16,
            disk: 4 << 30,
            total_disk: 32 << 30,
            hello: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Some(Duration::from_secs(600)),
            linger: Duration::from_secs(5),
            lossy: false,
        }
    }
}
