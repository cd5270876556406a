//! What senders may send: a hello, then frames; with checksums made right, so that what lies behind
//! them is reached.

#![no_main]

use foresee_observe::wire::{Hello, Numbered, Reply, WireError};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = Hello::read(&mut &bytes[..]);
    let _ = Reply::read(&mut &bytes[..]);
    let mut rest = bytes;
    while let Ok(Some(frame)) = Numbered::read(&mut rest, 1 << 16) {
        frame.threads();
    }
    let mut hello = bytes.to_vec();
    foresee_fuzz::seal_hello(&mut hello);
    if let Ok(Some(hello)) = Hello::read(&mut hello.as_slice()) {
        let again = hello.encode().expect("what was read can be written");
        assert_eq!(Hello::read(&mut again.as_slice()).expect("and read again"), Some(hello));
    }
    let sealed = foresee_fuzz::seal_frames(bytes);
    let mut rest = sealed.as_slice();
    loop {
        match Numbered::read(&mut rest, 1 << 16) {
            Ok(Some(frame)) => {
                frame.threads();
                assert_eq!(frame.bytes.len(), 16 + frame.header.length as usize);
            }
            Ok(None) | Err(WireError::Cut(_) | WireError::Frame(_)) => break,
            Err(error) => panic!("a slice cannot fail: {error}"),
        }
    }
});
