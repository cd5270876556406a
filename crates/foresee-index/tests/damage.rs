//! Index files that are cut off, damaged or forged: no wrong answer, and no panic.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use crate::common::{bytes_of, question};
use fastrand::Rng;
use foresee_index::{Answer, Index, IndexError};
use foresee_testkit::generated;
use foresee_trace::generate::Config;

const PAGE: usize = 4096;

/// An index of some pages, and a pattern that has an answer in it.
fn sample() -> (Vec<u8>, String) {
    let config = Config { variables: 20, locks: 2, ..Config::bench(4, 4_000, 3) };
    let trace = generated(config);
    let names = &trace.names;
    let (x, t) = (names.vars.iter().next().unwrap().1, names.threads.iter().nth(1).unwrap().1);
    (bytes_of(&trace, usize::MAX), format!("write({x}) .. read({x})@{t} .. write({x})@{t}"))
}

fn try_ask(index: &mut Index<Vec<u8>>, pattern: &str) -> Result<Answer, IndexError> {
    let question = question(index, pattern).unwrap();
    index.answer(&question).map(|answer| answer.unwrap())
}

fn answer(bytes: Vec<u8>, pattern: &str) -> Result<String, IndexError> {
    let mut index = Index::new(bytes)?;
    Ok(format!("{:?}", try_ask(&mut index, pattern)?))
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let (bytes, pattern) = sample();
    assert!(bytes.len() > 4 * PAGE);
    answer(bytes.clone(), &pattern).unwrap();
    let all = bytes.len();
    for length in (0..all).filter(|n| n % 997 == 0 || n % PAGE == 0 || *n < 20 || all - n < 20) {
        let error = answer(bytes[..length].to_vec(), &pattern).unwrap_err();
        match length {
            0..10 => assert!(matches!(error, IndexError::NotAnIndex), "{length}: {error}"),
            _ => assert!(matches!(error, IndexError::Damaged { .. }), "{length}: {error}"),
        }
    }
    let longer = [&bytes[..], &[0; PAGE]].concat();
    assert!(answer(longer, &pattern).is_err());
}

#[test]
fn a_changed_byte_is_noticed_where_it_matters() {
    let (bytes, pattern) = sample();
    let right = answer(bytes.clone(), &pattern).unwrap();
    let mut noticed = 0;
    for at in (0..bytes.len()).step_by(61).chain(0..200) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        match answer(changed, &pattern) {
            Ok(answer) => assert_eq!(answer, right, "byte {at}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 200, "{noticed}");
}

#[test]
fn a_page_in_the_place_of_another_is_noticed() {
    let (bytes, pattern) = sample();
    let right = answer(bytes.clone(), &pattern).unwrap();
    let pages = bytes.len() / PAGE;
    let mut noticed = 0;
    for (a, b) in (1..pages - 1).map(|a| (a, a + 1)) {
        let mut changed = bytes.clone();
        changed.copy_within(a * PAGE..(a + 1) * PAGE, b * PAGE);
        match answer(changed, &pattern) {
            Ok(answer) => assert_eq!(answer, right),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 0);
}

#[test]
fn other_files_and_other_versions() {
    let (mut bytes, pattern) = sample();
    let text = b"T1|w(x)|\n".repeat(1000);
    assert!(matches!(answer(text, &pattern), Err(IndexError::NotAnIndex)));
    bytes[8] = 9;
    let error = answer(bytes, &pattern).unwrap_err();
    assert!(matches!(error, IndexError::Version(9)), "{error}");
    assert!(error.to_string().contains("version 9"), "{error}");
}

/// Changes with correct checksums, as an attacker would make them.
#[test]
fn forged_files_make_no_panic() {
    let (bytes, pattern) = sample();
    let mut rng = Rng::with_seed(1);
    let (mut refused, mut answered) = (0, 0);
    for _ in 0..3_000 {
        let mut forged = bytes.clone();
        for _ in 0..rng.usize(1..4) {
            let page = if rng.bool() { 0 } else { rng.usize(..bytes.len() / PAGE) };
            let length = if page == 0 { 130 } else { PAGE - 4 };
            let at = page * PAGE + rng.usize(..length);
            forged[at] = if rng.bool() { rng.u8(..) } else { [0, 1, 127, 255][rng.usize(..4)] };
        }
        for (number, page) in forged.chunks_mut(PAGE).enumerate() {
            let mut crc = crc32fast::Hasher::new();
            crc.update(&page[..PAGE - 4]);
            crc.update(&(number as u64).to_le_bytes());
            page[PAGE - 4..].copy_from_slice(&crc.finalize().to_le_bytes());
        }
        let Ok(mut index) = Index::new(forged) else {
            refused += 1;
            continue;
        };
        let _ = index.census();
        match try_ask(&mut index, &pattern) {
            Ok(_) => answered += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 300 && answered > 300, "{refused} refused, {answered} answered");
}
