//! An index recognises its trace, and no other.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use foresee_index::{Identity, IdentityReader};

fn identity(path: &Path, read: usize) -> Identity {
    let mut file = IdentityReader::open(path).unwrap();
    file.read_exact(&mut vec![0; read]).unwrap();
    file.identity().unwrap()
}

fn set_modified(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn a_trace_is_known_again_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, "T1|w(x)|\n".repeat(100)).unwrap();
    let then = identity(&path, 17);
    // It does not matter how much of it was read.
    assert_eq!(then.digest, identity(&path, 900).digest);
    assert_eq!(then.differs_from(&path).unwrap(), None);
    // Touched, but unchanged.
    set_modified(&path, SystemTime::now() + Duration::from_secs(60));
    assert_eq!(then.differs_from(&path).unwrap(), None);
    // Longer.
    fs::write(&path, "T1|w(x)|\n".repeat(101)).unwrap();
    let why = then.differs_from(&path).unwrap().unwrap();
    assert!(why.contains("909 bytes but had 900"), "{why}");
}

/// The same length and the same time, moments later: times prove nothing then.
#[test]
fn a_change_within_the_grain_of_time_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, "T1|w(x)|\n".repeat(100)).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let then = identity(&path, 0);
    fs::write(&path, "T1|w(x)|\n".repeat(99) + "T1|w(y)|\n").unwrap();
    set_modified(&path, modified);
    assert!(then.differs_from(&path).unwrap().is_some());
}

#[test]
fn what_is_no_file_cannot_be_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let error = IdentityReader::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("only a regular file"), "{error}");
}
