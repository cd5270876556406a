//! What was learnt survives a kill.

use foresee_explore::program::Program;
use foresee_explore::{Explored, Journal, Opened, Settings, explore};
use foresee_testkit::seeds;

use crate::random::{program, to_the_end};
use crate::tiny::{Code, Tiny};

fn ready(opened: Opened) -> Journal {
    match opened {
        Opened::Ready(journal) => journal,
        Opened::Void => panic!("it belongs to this program"),
    }
}

fn with_journal(code: &Code, settings: &Settings, journal: Journal) -> (Explored, u64) {
    let tiny = Tiny::new(code);
    let locals = tiny.locals.clone();
    let mut runners: Vec<Box<dyn Program>> = vec![Box::new(tiny)];
    let explored = explore(&mut runners, settings, None, Some(journal), &mut |_| true);
    let locals = locals.lock().expect("no test panics with it").len() as u64;
    (explored.expect("it can be run"), locals)
}

#[test]
fn an_exploration_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in seeds(40) {
        let code = program(seed);
        let path = folder.path().join(format!("{seed}"));
        let open = || ready(Journal::open(&path, b"owner", false).expect("a journal"));
        let (whole, _) = with_journal(&code, &to_the_end(), open());
        std::fs::remove_file(&path).expect("it is there");
        let few = Settings { runs: Some(2), ..to_the_end() };
        with_journal(&code, &few, open());
        // A kill in the middle of a record: what is before it stays.
        let bytes = std::fs::read(&path).expect("it is there");
        std::fs::write(&path, &bytes[..bytes.len() - 3]).expect("it can be cut");
        let before = open();
        let (rest, _) = with_journal(&code, &to_the_end(), before);
        assert_eq!(rest.is_complete(), whole.is_complete(), "seed {seed}");
        assert_eq!(rest.findings.len(), whole.findings.len(), "seed {seed}");
        assert_eq!(rest.facts, whole.facts, "seed {seed}");
        // Everything is known now: nothing is run but the first schedule.
        let again = open();
        let kept = again.len() as u32;
        let (last, _) = with_journal(&code, &to_the_end(), again);
        assert!(last.runs <= kept + 1 + last.findings.len() as u32, "seed {seed}: {last:?}");
    }
}

#[test]
fn another_program_makes_it_void() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs");
    let code = program(1);
    let journal = ready(Journal::open(&path, b"one", false).expect("a journal"));
    with_journal(&code, &to_the_end(), journal);
    assert!(matches!(Journal::open(&path, b"two", false), Ok(Opened::Void)));
    let renewed = ready(Journal::open(&path, b"two", true).expect("a journal"));
    assert!(renewed.is_empty());
    assert!(matches!(Journal::open(&path, b"one", false), Ok(Opened::Void)));
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs");
    let code = program(3);
    let open = || ready(Journal::open(&path, b"one", false).expect("a journal"));
    with_journal(&code, &to_the_end(), open());
    let whole = std::fs::read(&path).expect("it is there");
    let kept = open().len();
    for at in (40..whole.len()).step_by(whole.len() / 40 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).expect("it can be written");
        assert!(open().len() < kept);
    }
}
