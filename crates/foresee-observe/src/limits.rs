//! What one sender may cost.

use std::time::Duration;

/// What one sender may cost, and how long it is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections, and how many programs, there may be at once.
    pub connections: usize,
    /// The longest payload of a frame, in bytes.
    pub frame: u32,
    /// How many bytes of frames of one program may wait, those behind a gap included; as many may
    /// its names take.
    pub memory: usize,
    /// How many threads one program may have.
    pub threads: u32,
    /// How many bytes of one program are put aside on disk, if its trace is not kept anyway.
    pub disk: u64,
    /// A hello must be complete after this time.
    pub hello: Duration,
    /// A frame that has begun must be complete after this time.
    pub stall: Duration,
    /// A connection must say something within this time.
    pub idle: Option<Duration>,
    /// A program without a connection is over after this time, unless it comes back.
    pub linger: Duration,
    /// Whether to drop events rather than to let a program wait.
    pub lossy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            frame: foresee_formats::native::MAX_PAYLOAD,
            memory: 64 << 20,
            threads: 1 << 16,
            disk: 4 << 30,
            hello: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Some(Duration::from_secs(600)),
            linger: Duration::from_secs(5),
            lossy: false,
        }
    }
}
