//! Results are kept, found again, and never trusted blindly.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use foresee_batch::{
    Blobs, Cache, Digest, Failed, HandOver, InProcess, Job, Plan, Questions, Queue, QueueError,
    Shard, SpecSource, decode, encode, perform,
};
use foresee_predict::session::Settings;
use foresee_report::text::Options;
use foresee_report::{exit_status, json, sarif, text};
use tempfile::TempDir;

/// Counts jobs, and gives up after some.
struct Counting {
    most: usize,
    done: RefCell<usize>,
}

impl Counting {
    fn up_to(most: usize) -> Counting {
        Counting { most, done: RefCell::new(0) }
    }
}

impl Queue for Counting {
    fn perform(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError> {
        for (number, job) in jobs.iter().enumerate() {
            if *self.done.borrow() == self.most {
                return Err(QueueError("the queue was killed".to_owned()));
            }
            *self.done.borrow_mut() += 1;
            done(number, perform(job, blobs, 1))?;
        }
        Ok(())
    }
}

fn race(variable: &str) -> String {
    format!("T1|w({variable})=1|a.c:1(f)\nT2|w({variable})=2|a.c:2(g)\n")
}

fn store(folder: &Path, variables: &[&str]) -> Vec<PathBuf> {
    let paths = variables.iter().map(|variable| {
        let path = folder.join(format!("{variable}.std"));
        fs::write(&path, race(variable)).unwrap();
        path
    });
    paths.collect()
}

fn plan(traces: &[PathBuf], specs: &[&str]) -> Plan {
    let specs = specs
        .iter()
        .enumerate()
        .map(|(i, text)| SpecSource { name: format!("{i}.spec"), text: (*text).to_owned() });
    let checks = vec!["race".to_owned()];
    let group =
        Questions { traces: traces.to_vec(), specs: specs.collect(), checks, ..Default::default() };
    Plan::new(&[group], &Settings::default(), 1).unwrap()
}

fn results() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    (folder, cache)
}

/// How many jobs were done, and the report.
fn run(plan: &Plan, cache: &Cache, most: usize) -> (usize, foresee_report::Report) {
    let queue = Counting::up_to(most);
    let done = foresee_batch::run(plan, Shard::ALL, cache, &queue, &mut |_| ()).unwrap();
    (queue.done.into_inner(), done.report)
}

#[test]
fn an_answer_is_the_same_after_it_was_stored() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut told = 0;
    for folder in ["examples", "specs", "testdata/formats"] {
        let mut found = foresee_batch::collect(&[root.join(folder)]).unwrap();
        found.traces.truncate(60);
        for path in found.traces {
            let plan = Plan::new(
                &[Questions { traces: vec![path], ..Questions::default() }],
                &Settings::default(),
                1,
            );
            for planned in plan.as_ref().unwrap().jobs.iter() {
                let job = planned.job.as_ref().unwrap();
                let performed = perform(job, &plan.as_ref().unwrap().blobs, 2);
                let bytes = encode(job.key(), &performed).unwrap();
                let again = decode(job.key(), &bytes).unwrap();
                let (Ok(one), Ok(two)) = (&performed, &again) else {
                    assert_eq!(performed.unwrap_err(), again.unwrap_err());
                    continue;
                };
                told += one.report.findings.len();
                assert_eq!(json::report(&one.report), json::report(&two.report));
                assert_eq!(sarif::report(&one.report), sarif::report(&two.report));
                let options = Options::default();
                let (one, two) =
                    (text::report(&one.report, &options), text::report(&two.report, &options));
                assert_eq!(one, two);
            }
        }
    }
    assert!(told > 10, "{told} findings");
}

#[test]
fn a_killed_batch_continues_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let traces = store(folder.path(), &["a", "b", "c", "d", "e"]);
    let plan = plan(&traces, &[]);
    let (_folder, cache) = results();
    let (_other, fresh) = results();
    let (done, cut) = run(&plan, &cache, 3);
    assert_eq!((done, cut.findings.len()), (3, 3));
    let reasons = json::report(&cut);
    assert_eq!(reasons.matches("the queue was killed").count(), 2, "{reasons}");
    let (done, rest) = run(&plan, &cache, 99);
    assert_eq!(done, 2, "three were done before");
    assert_eq!(json::report(&rest), json::report(&run(&plan, &fresh, 99).1));
}

#[test]
fn only_what_changes_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let traces = store(folder.path(), &["x", "y"]);
    let (_folder, cache) = results();
    let specs = ["init x = 0\nproperty p: x <= 1 || true\n"; 2];
    let first = plan(&traces[..1], &[specs[0], "init x = 0\nproperty q: x <= 9\n"]);
    assert_eq!(run(&first, &cache, 99).0, 3, "the check and two specifications");
    let other = plan(&traces[..1], &[specs[0], "init x = 0\nproperty q: x <= 8\n"]);
    assert_eq!(run(&other, &cache, 99).0, 1, "one specification has changed");
    let renamed = folder.path().join("renamed.std");
    fs::rename(&traces[0], &renamed).unwrap();
    let (done, report) = run(&plan(&[renamed], &[specs[0]]), &cache, 99);
    assert_eq!(done, 0, "the name of a trace does not matter");
    assert!(report.name.ends_with("renamed.std"), "{}", report.name);
    let twice = plan(&[traces[1].clone(), traces[1].clone()], &[]);
    assert_eq!(run(&twice, &cache, 99).0, 1, "equal jobs are done once");
}

#[test]
fn a_damaged_result_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&store(folder.path(), &["a"]), &[]);
    let (kept, cache) = results();
    let (_, report) = run(&plan, &cache, 99);
    let key = plan.jobs[0].job.as_ref().unwrap().key();
    let name = key.to_string();
    let path = kept.path().join(&name[..2]).join(format!("{name}.result"));
    let whole = fs::read(&path).unwrap();
    for damage in [Vec::new(), whole[..whole.len() / 2].to_vec(), b"nonsense".to_vec(), {
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x40;
        flipped
    }] {
        fs::write(&path, damage).unwrap();
        let (_, again) = run(&plan, &cache, 99);
        assert_eq!(json::report(&again), json::report(&report));
        let _ = run(&plan, &cache, 99);
    }
    assert!(decode(Digest::of(b"other"), &whole).is_err(), "it belongs to another job");
}

#[test]
fn a_trace_that_changes_under_the_batch_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let traces = store(folder.path(), &["a"]);
    let plan = plan(&traces, &[]);
    fs::write(&traces[0], race("other_variable")).unwrap();
    let (_folder, cache) = results();
    let (_, report) = run(&plan, &cache, 99);
    assert_eq!(exit_status(&report), 3);
    assert!(json::report(&report).contains("it has changed since the batch began"));
    assert!(!cache.has(plan.jobs[0].job.as_ref().unwrap().key()));
}

#[test]
fn what_a_job_panics_with_is_its_own_failure() {
    struct Broken;
    impl Blobs for Broken {
        fn trace(&self, _: &foresee_batch::Blob) -> Result<PathBuf, Failed> {
            panic!("the disk is on fire")
        }
        fn text(&self, _: &foresee_batch::Blob) -> Result<String, Failed> {
            unreachable!()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&store(folder.path(), &["a"]), &[]);
    let failed = perform(plan.jobs[0].job.as_ref().unwrap(), &Broken, 1).unwrap_err();
    assert!(failed.0.starts_with("internal error") && failed.0.contains("on fire"), "{failed}");
}

#[test]
fn old_results_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let traces = store(folder.path(), &["a", "b", "c"]);
    let (_folder, cache) = results();
    let all = plan(&traces, &[]);
    run(&all, &cache, 99);
    let keys: Vec<Digest> = all.jobs.iter().map(|one| one.job.as_ref().unwrap().key()).collect();
    cache.trim(u64::MAX, &[].into()).unwrap();
    assert!(keys.iter().all(|key| cache.has(*key)));
    cache.trim(0, &[keys[1]].into()).unwrap();
    assert_eq!(keys.iter().map(|key| cache.has(*key)).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn jobs_on_several_cores_give_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = plan(&store(folder.path(), &names), &[]);
    let told = |cores| {
        let (_folder, cache) = results();
        let queue = InProcess { cores };
        let mut last = None;
        let done =
            foresee_batch::run(&plan, Shard::ALL, &cache, &queue, &mut |now| last = Some(now));
        assert_eq!(last.unwrap().done, 20);
        json::report(&done.unwrap().report)
    };
    assert_eq!(told(1), told(8));
}
