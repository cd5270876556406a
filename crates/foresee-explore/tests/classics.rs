//! Programs after the literature's families: the faulty ones fail, the correct ones are covered.

use foresee_explore::{Covered, Explored, Settings, Spin, Stopped, Trouble};

use crate::random::{run, to_the_end};
use crate::tiny::Ins::{self, *};
use crate::tiny::{Code, Tiny};

/// `main` starts all others and ends.
fn with_main(threads: Vec<Vec<Ins>>) -> Code {
    let main = (1..=threads.len()).map(Fork).collect();
    [vec![main], threads].concat()
}

/// `main` starts all others, waits for them, and then does something.
fn and_then(threads: Vec<Vec<Ins>>, after: Vec<Ins>) -> Code {
    let all = 1..=threads.len();
    let main = all.clone().map(Fork).chain(all.map(Join)).chain(after).collect();
    [vec![main], threads].concat()
}

fn explored(code: &Code) -> Explored {
    run(&Tiny::new(code), &to_the_end(), 1)
}

fn first_failure(code: &Code) -> u32 {
    let settings = Settings { stops_at_first: true, runs: Some(500), ..to_the_end() };
    let found = run(&Tiny::new(code), &settings, 1);
    assert_eq!(found.findings.len(), 1, "{found:?}\n{code:?}");
    found.runs
}

fn covers(code: &Code) -> Explored {
    let explored = explored(code);
    assert!(explored.is_complete(), "{explored:?}");
    assert!(explored.findings.is_empty(), "{:?}", explored.findings);
    explored
}

/// Adds to a balance without a lock.
fn deposit(lock: Option<usize>, by: u64) -> Vec<Ins> {
    let body = vec![Load(0, 0), Store(0, 0, by)];
    [lock.map(Lock).into_iter().collect(), body, lock.map(Unlock).into_iter().collect()].concat()
}

#[test]
fn account() {
    let check = vec![Load(0, 0), Assert(0, 30)];
    let faulty = and_then(vec![deposit(None, 10), deposit(None, 20)], check.clone());
    assert!(first_failure(&faulty) <= 5);
    let right = and_then(vec![deposit(Some(0), 10), deposit(Some(0), 20)], check);
    covers(&right);
}

#[test]
fn wronglock() {
    let check = vec![Load(0, 0), Assert(0, 30)];
    let faulty = and_then(vec![deposit(Some(0), 10), deposit(Some(1), 20)], check);
    assert!(first_failure(&faulty) <= 6);
}

/// The driver is stopped between the check and the use: 0 is `stopping`, 1 `pending`, 2 `stopped`.
#[test]
fn bluetooth() {
    let add = vec![
        Load(0, 0),
        SkipIf(0, 1, 4),
        Add(1, 1, 1),
        Load(2, 2),
        Assert(2, 0),
        Add(1, 1, u64::MAX),
    ];
    let stop = vec![Set(0, 1), Load(0, 1), SkipUnless(0, 0, 1), Set(2, 1)];
    assert!(first_failure(&with_main(vec![add, stop])) <= 10);
}

/// One reader sees a half-done update although many writers are in the way.
fn reorder(k: usize) -> Code {
    let set = vec![Set(0, 1), Set(1, 1)];
    let check = vec![Load(0, 0), Load(1, 1), SkipUnless(0, 1, 2), SkipUnless(1, 0, 1), Fail];
    with_main((0..k).map(|i| if i + 1 == k { check.clone() } else { set.clone() }).collect())
}

#[test]
fn reorder_needs_few_runs_however_many_threads() {
    for k in [3, 5, 10, 20] {
        assert!(first_failure(&reorder(k)) <= 8, "{k}");
    }
}

/// Two values under two locks, and a reader between them.
fn twostage(k: usize) -> Code {
    let write = vec![Lock(0), Set(0, 1), Unlock(0), Lock(1), Load(0, 0), Store(1, 0, 1), Unlock(1)];
    let read = vec![
        Lock(0),
        Load(0, 0),
        Unlock(0),
        SkipIf(0, 0, 5),
        Lock(1),
        Load(1, 1),
        SkipUnless(1, 0, 1),
        Fail,
        Unlock(1),
    ];
    with_main((0..k).map(|i| if i + 1 == k { read.clone() } else { write.clone() }).collect())
}

#[test]
fn twostage_needs_few_runs_however_many_threads() {
    for k in [2, 5, 10] {
        assert!(first_failure(&twostage(k)) <= 8, "{k}");
    }
}

/// Philosophers take the left fork first, and the last one too, or not.
fn philosophers(k: usize, is_right: bool) -> Code {
    let one = |i: usize| {
        let (left, right) = (i, (i + 1) % k);
        let swaps = is_right && i + 1 == k;
        let (first, second) = if swaps { (right, left) } else { (left, right) };
        vec![Lock(first), Lock(second), Unlock(second), Unlock(first)]
    };
    with_main((0..k).map(one).collect())
}

#[test]
fn philosophers_starve() {
    for k in [2, 3, 5] {
        let explored = explored(&philosophers(k, false));
        assert!(explored.is_complete(), "{explored:?}");
        let [finding] = &explored.findings[..] else { panic!("{:?}", explored.findings) };
        assert!(matches!(finding.trouble, Trouble::Deadlock(_)));
    }
    covers(&philosophers(4, true));
}

/// A signal comes before the wait.
#[test]
fn lost_wakeup() {
    let wait = vec![Load(0, 0), SkipIf(0, 1, 3), Lock(0), Wait(0, 0), Unlock(0)];
    let wake = vec![Set(0, 1), Lock(0), Signal(0), Unlock(0)];
    let faulty = explored(&with_main(vec![wait, wake.clone()]));
    assert!(
        matches!(faulty.findings[..], [ref one] if matches!(one.trouble, Trouble::Deadlock(_)))
    );
    let wait = vec![Lock(0), Load(0, 0), SkipIf(0, 1, 2), Wait(0, 0), Back(3), Unlock(0)];
    let wake = vec![Lock(0), Set(0, 1), Signal(0), Unlock(0)];
    covers(&with_main(vec![wait, wake]));
}

/// A lock-free stack whose top comes back: 0 is the top, 1 and 2 are the next pointers of nodes 1 and 2.
#[test]
fn aba() {
    let pop_slowly = vec![Load(0, 0), Load(1, 1), CasReg(2, 0, 0, 1, 0)];
    // Pops 1 and 2, frees 2, and pushes 1 again: its next is empty then.
    let others = vec![
        Load(0, 0),
        SkipUnless(0, 1, 5),
        Cas(1, 0, 1, 2),
        Cas(1, 0, 2, 0),
        Set(3, 1),
        Set(1, 0),
        Cas(1, 0, 0, 1),
    ];
    let setup = vec![Set(1, 2), Set(0, 1)];
    let check = vec![Load(0, 0), Load(1, 3), SkipUnless(1, 1, 2), SkipUnless(0, 2, 1), Fail];
    let mut code = and_then(vec![pop_slowly, others], check);
    code[0].splice(0..0, setup);
    assert!(first_failure(&code) <= 20);
}

/// Peterson's lock: 0 and 1 are the flags, 2 the turn, 3 counts who is inside.
fn peterson(is_right: bool) -> Code {
    let one = |me: usize| {
        let other = 1 - me;
        let mut code = vec![Set(me, 1), Set(2, other as u64)];
        if !is_right {
            code.swap(0, 1);
        }
        // Waits while the other wants it and it is the other's turn.
        code.extend([
            Load(0, other),
            SkipIf(0, 0, 3),
            Load(1, 2),
            SkipUnless(1, other as u64, 1),
            Back(4),
        ]);
        code.extend([Add(3, 3, 1), Assert(3, 0), Add(3, 3, u64::MAX), Set(me, 0)]);
        code
    };
    with_main(vec![one(0), one(1)])
}

#[test]
fn peterson_excludes() {
    let collapsing = Settings { spin: Spin::Collapse, ..to_the_end() };
    let right = run(&Tiny::new(&peterson(true)), &collapsing, 1);
    assert!(right.is_complete() && right.findings.is_empty(), "{right:?}");
    assert!(right.has_collapsed);
    let wrong = run(&Tiny::new(&peterson(false)), &collapsing, 1);
    assert!(!wrong.findings.is_empty(), "{wrong:?}");
    // With a bound, loops are cut, and that is no coverage.
    let bounded = Settings { spin: Spin::Bound(2), ..to_the_end() };
    let right = run(&Tiny::new(&peterson(true)), &bounded, 1);
    assert!(right.findings.is_empty() && right.has_cut && !right.is_complete(), "{right:?}");
}

/// A ticket lock: 0 is the next ticket, 1 who is served, 2 counts who is inside.
#[test]
fn ticket_lock_excludes() {
    let one = vec![
        Add(0, 0, 1),
        Load(1, 1),
        SkipLess(1, 0, 1),
        SkipIf(5, 0, 1),
        Back(3),
        Add(3, 2, 1),
        Assert(3, 0),
        Add(3, 2, u64::MAX),
        Store(1, 0, 1),
    ];
    let settings = Settings { spin: Spin::Collapse, ..to_the_end() };
    let code = with_main(vec![one.clone(), one.clone(), one]);
    let explored = run(&Tiny::new(&code), &settings, 1);
    assert!(explored.is_complete() && explored.findings.is_empty(), "{explored:?}");
}

/// A loop that waits needs as many runs with collapsing as it has ways to end, whatever the bound.
#[test]
fn loops_that_wait_collapse() {
    let code = with_main(vec![vec![Load(0, 0), SkipIf(0, 1, 1), Back(2)], vec![Set(0, 1)]]);
    let settings = Settings { spin: Spin::Collapse, ..to_the_end() };
    let explored = run(&Tiny::new(&code), &settings, 1);
    assert!(explored.is_complete() && explored.has_collapsed, "{explored:?}");
    assert!(explored.runs <= 6, "{explored:?}");
}

/// A loop that counts is not a loop that waits.
#[test]
fn loops_that_count_do_not_collapse() {
    // Reads three times, and fails if it always read 0.
    let read =
        vec![Load(0, 0), SkipIf(0, 1, 4), Bump(1, 1), SkipIf(1, 3, 1), Back(4), Fail, Load(2, 1)];
    let code = with_main(vec![read, vec![Set(0, 1)]]);
    let settings = Settings { spin: Spin::Collapse, ..to_the_end() };
    let explored = run(&Tiny::new(&code), &settings, 1);
    assert_eq!(explored.findings.len(), 1, "{explored:?}");
}

/// What mutating single traces misses: explore.md, section 4. The search finds each of them, as its facts are combined.
#[test]
fn counterexamples_to_mutating_traces() {
    // Each fails in the state that is missed.
    let both =
        |first: u64, second: u64| vec![SkipUnless(0, first, 2), SkipUnless(1, second, 1), Fail];
    let seen =
        |x: usize, first, second| [vec![Load(0, x), Load(1, x)], both(first, second)].concat();
    let one = with_main(vec![
        vec![Load(0, 0), Store(1, 0, 0)],
        [vec![Set(0, 2)], seen(1, 0, 2)].concat(),
    ]);
    let two = with_main(vec![vec![Set(0, 2)], seen(0, 1, 2), vec![Load(0, 0), Set(0, 1)]]);
    let three =
        with_main(vec![[seen(0, 0, 1), vec![Set(0, 2)]].concat(), vec![Load(0, 0), Set(0, 1)]]);
    for code in [one, two, three] {
        assert_eq!(explored(&code).findings.len(), 1, "{code:?}");
    }
}

/// A coin is noticed, and nothing is claimed then.
#[test]
fn hidden_input_is_noticed() {
    let code = with_main(vec![
        vec![Coin(0), SkipIf(0, 0, 1), Set(0, 1), Load(1, 1)],
        vec![Coin(0), SkipIf(0, 0, 1), Set(1, 1), Load(1, 0)],
    ]);
    let mut noticed = 0;
    for seed in 0..50 {
        let mut tiny = Tiny::new(&code);
        tiny.chance = Some(seed * 1000);
        let settings = Settings { repeats: 10, ..to_the_end() };
        let explored = run(&tiny, &settings, 1);
        noticed += u32::from(!explored.doubts.is_empty() && !explored.is_complete());
    }
    assert!(noticed >= 49, "{noticed} of 50");
}

/// A search that stops early says what it covered.
#[test]
fn a_budget_of_runs_is_kept() {
    let settings = Settings { runs: Some(3), stops_at_first: false, ..to_the_end() };
    let explored = run(&Tiny::new(&twostage(4)), &settings, 1);
    assert!(!explored.is_complete());
    assert!(explored.runs <= 4, "{explored:?}");
    assert_ne!(explored.covered, Covered::Everything);
}

/// States that wait count as well as those that are known.
#[test]
fn a_budget_of_memory_is_kept() {
    let settings = Settings { memory: 10_000, reduces: false, ..to_the_end() };
    let explored = run(&Tiny::new(&twostage(4)), &settings, 1);
    assert_eq!(explored.stopped, Stopped::States, "{explored:?}");
    assert!(!explored.is_complete() && explored.states < 20_000, "{explored:?}");
    assert_ne!(explored.covered, Covered::Everything);
}

/// The same search twice is the same, however many at a time.
#[test]
fn an_exploration_can_be_repeated() {
    let results: Vec<(u32, usize, u64)> = (0..2)
        .map(|_| explored(&twostage(3)))
        .map(|explored| (explored.runs, explored.states, explored.facts))
        .collect();
    assert_eq!(results[0], results[1]);
}
