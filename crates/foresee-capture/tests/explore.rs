//! Programs run under forced schedules, and do the same whenever the schedule is the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use foresee_capture::explore::{Native, Options};
use foresee_explore::program::{
    Ending, Event, Execution, Failure, Operation, Program, Schedule, Step, Tail, ThreadName, Told,
    Value,
};

use crate::native::Workshop;

const GCC: [&str; 2] = ["gcc", "g++"];
const CLANG: [&str; 2] = ["clang-19", "clang++-19"];

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn classic(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/explore").join(name)
}

fn native(program: &Path) -> Native {
    Native::new(Options::new(vec![program.into()])).unwrap()
}

/// Compiles a program that is written here.
fn build(workshop: &Workshop, name: &str, text: &str) -> Native {
    let source = workshop.path(&format!("{name}.c"));
    std::fs::write(&source, format!("#include <pthread.h>\n#include <stdlib.h>\n{text}")).unwrap();
    native(&workshop.build(GCC, &source, &["-O0"]))
}

fn freely(tail: Tail) -> Schedule {
    Schedule {
        threads: vec![ThreadName::default()],
        steps: Vec::new(),
        tail,
        most_operations: 5000,
    }
}

/// The schedule that an execution followed.
fn again(execution: &Execution) -> Schedule {
    let step = |event: &Event| Step { thread: event.thread, choice: event.choice };
    let steps = execution.events.iter().map(step).collect();
    Schedule { threads: execution.threads.clone(), steps, ..freely(Tail::Straight) }
}

/// Everything that a run reports.
fn told(execution: &Execution) -> String {
    format!("{execution:?}")
}

#[test]
fn a_schedule_determines_what_a_program_does() {
    let workshop = Workshop::new();
    for (compiler, level) in [(GCC, "-O0"), (GCC, "-O2"), (CLANG, "-O0"), (CLANG, "-O2")] {
        let program = workshop.build(compiler, &own("explored.c"), &[level]);
        let mut native = native(&program);
        for tail in [Tail::Straight, Tail::Random(1), Tail::Random(2), Tail::Random(3)] {
            let first = native.run(&freely(tail)).unwrap();
            assert_eq!(first.ending, Ending::Finished, "{compiler:?} {level} {tail:?}");
            let last = first.events.last().unwrap().operation;
            assert_eq!(last, Operation::Exit(0), "{compiler:?} {level} {tail:?}");
            assert_eq!(first.threads[2].to_string(), "0.1.1");
            assert!(!first.events.iter().any(|event| event.operation == Operation::Unknown));
            for _ in 0..2 {
                assert_eq!(told(&native.run(&freely(tail)).unwrap()), told(&first));
            }
            // The order that chance chose, forced.
            assert_eq!(told(&native.run(&again(&first)).unwrap()), told(&first));
        }
    }
}

#[test]
fn an_update_is_lost_when_the_schedule_says_so() {
    let workshop = Workshop::new();
    let mut native = native(&workshop.build(GCC, &classic("account.c"), &[]));
    let straight = native.run(&freely(Tail::Straight)).unwrap();
    assert_eq!(straight.events.last().unwrap().operation, Operation::Exit(0));
    // The second thread does all of its operations after the first one's first.
    let mut steps = Vec::new();
    let of = |thread| straight.events.iter().filter(move |event| event.thread == thread);
    let before = straight.events.iter().position(|event| event.thread == 1).unwrap();
    steps.extend(
        straight.events[..before].iter().map(|event| Step { thread: event.thread, choice: 0 }),
    );
    steps.push(Step { thread: 1, choice: 0 });
    steps.extend(of(2).map(|_| Step { thread: 2, choice: 0 }));
    let schedule = Schedule { threads: straight.threads.clone(), steps, ..freely(Tail::Straight) };
    let lost = native.run(&schedule).unwrap();
    assert_eq!(lost.diverged, None);
    assert_eq!(lost.ending, Ending::Finished);
    let last = lost.events.last().unwrap();
    assert_eq!((last.thread, last.operation), (0, Operation::Fail(Failure::Assertion)));
    assert!(
        native.place_name(last.place).contains("account.c:17(main)"),
        "{}",
        native.place_name(last.place)
    );
    // The same order, as a schedule for replay.
    let (order, _) = native.order(&again(&lost)).unwrap();
    assert_eq!(order.threads.len(), 3);
    assert!(order.steps.iter().any(|step| step.value == Some(15)), "{order}");
}

#[test]
fn what_is_not_possible_is_a_divergence_with_its_step() {
    let workshop = Workshop::new();
    let mut native = native(&workshop.build(GCC, &classic("deadlock.c"), &[]));
    let threads = vec![ThreadName::default(), ThreadName(vec![1]), ThreadName(vec![2])];
    let step = |thread| Step { thread, choice: 0 };
    let forced =
        |steps: Vec<Step>| Schedule { threads: threads.clone(), steps, ..freely(Tail::Straight) };
    let early = native.run(&forced(vec![step(0), step(2)])).unwrap();
    assert_eq!(early.diverged.as_ref().unwrap().0, 1);
    assert!(early.diverged.unwrap().1.contains("not started"));
    // Both threads have their first lock; then neither can go on.
    let straight = native.run(&freely(Tail::Straight)).unwrap();
    let before = straight.events.iter().position(|event| event.thread == 1).unwrap();
    let mut steps = vec![step(0); before];
    steps.extend([step(1), step(2)]);
    let stuck = native.run(&forced(steps.clone())).unwrap();
    assert_eq!(stuck.ending, Ending::Deadlock);
    let waits =
        |thread| stuck.pending.iter().find(|pending| pending.thread == thread).unwrap().operation;
    assert!(matches!(waits(0), Operation::Join { .. }));
    assert!(matches!((waits(1), waits(2)), (Operation::Lock { .. }, Operation::Lock { .. })));
    let (order, _) = native.order(&again(&stuck)).unwrap();
    assert!(order.to_string().contains("request"), "{order}");
    steps.push(step(1));
    let blocked = native.run(&forced(steps)).unwrap();
    assert_eq!(blocked.diverged.unwrap().0, before + 2);
}

#[test]
fn failures_of_every_kind_are_the_last_event_of_their_thread() {
    let workshop = Workshop::new();
    let body = "static int *nowhere; static void *f(void *x) { ACT; return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }";
    let last = |name: &str, act: &str| {
        let mut native = build(&workshop, name, &format!("#define ACT {act}\n{body}"));
        let execution = native.run(&freely(Tail::Straight)).unwrap();
        assert_eq!(execution.ending, Ending::Finished, "{name}");
        let event = *execution.events.last().unwrap();
        (event.thread, event.operation)
    };
    assert_eq!(last("aborts", "abort()"), (1, Operation::Fail(Failure::Abort)));
    assert_eq!(last("writes", "*nowhere = 1"), (1, Operation::Fail(Failure::Signal(11))));
    assert_eq!(
        last("reads", "return (void *)(long)*nowhere"),
        (1, Operation::Fail(Failure::Signal(11)))
    );
    assert_eq!(last("exits", "exit(7)"), (1, Operation::Exit(7)));
    assert_eq!(
        last("twice", "void *p = malloc(8); free(p); free(p)"),
        (1, Operation::Fail(Failure::Abort))
    );
}

#[test]
fn a_run_ends_whatever_the_program_does() {
    let workshop = Workshop::new();
    let mut spins = build(
        &workshop,
        "spins",
        "static int go; static void *f(void *x) { while (!go); return x; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); }",
    );
    let execution = spins.run(&freely(Tail::Straight)).unwrap();
    assert_eq!(execution.ending, Ending::Cut);
    // A spinning thread lets others go on.
    let mut waits = build(
        &workshop,
        "waits",
        "static int go; static void *f(void *x) { while (!go); return x; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); go = 1; pthread_join(t, 0); }",
    );
    let first = waits.run(&freely(Tail::Straight)).unwrap();
    let begun = first.events.iter().position(|event| event.thread == 1).unwrap();
    let steps = vec![Step { thread: 0, choice: 0 }, Step { thread: 1, choice: 0 }];
    let threads = vec![ThreadName::default(), ThreadName(vec![1])];
    let schedule = Schedule { threads, steps, ..freely(Tail::Straight) };
    let execution = waits.run(&schedule).unwrap();
    assert!(begun > 1);
    assert_eq!(execution.ending, Ending::Finished, "{execution:?}");
    assert!(execution.events.len() < 40);
    // Nothing that computes for ever is waited for.
    let source = workshop.path("computes.c");
    std::fs::write(&source, "int main(void) { for (volatile int i = 0;; i = 0) { } }").unwrap();
    let program = workshop.build(GCC, &source, &["-O0"]);
    let timeout = Duration::from_millis(300);
    let mut computes =
        Native::new(Options { timeout, ..Options::new(vec![program.into()]) }).unwrap();
    let schedule = Schedule { most_operations: 1 << 24, ..freely(Tail::Straight) };
    let execution = computes.run(&schedule).unwrap();
    assert!(matches!(execution.ending, Ending::TimedOut | Ending::Cut), "{:?}", execution.ending);
}

#[test]
fn names_do_not_depend_on_the_order_of_threads() {
    let workshop = Workshop::new();
    let mut native = build(
        &workshop,
        "heaps",
        "static void *seen[2]; static void *f(void *x) { long *p = malloc(16); *p = (long)x; seen[(long)x] = p; return p; }\n\
         int main(void) { pthread_t t[2]; for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, f, (void *)i);\n\
         for (int i = 0; i < 2; i++) pthread_join(t[i], 0); }",
    );
    let mut stored = std::collections::BTreeSet::new();
    for seed in 0..6 {
        let execution = native.run(&freely(Tail::Random(seed))).unwrap();
        for event in &execution.events {
            if let (Operation::End(Value::Bits(block)), 1..) = (event.operation, event.thread) {
                stored.insert((execution.threads[event.thread as usize].to_string(), block));
            }
        }
        let joins = execution
            .events
            .iter()
            .filter(|event| matches!(event.operation, Operation::Join { .. }));
        assert!(joins.into_iter().all(|event| matches!(event.told, Told::Value(_))));
    }
    assert_eq!(stored.len(), 2, "{stored:?}");
}

#[test]
fn programs_that_cannot_be_explored_are_refused() {
    let why =
        |command: &str| Native::new(Options::new(vec![command.into()])).err().unwrap().to_string();
    assert!(why("/bin/true").contains("was not built for capture"));
    assert!(why("no-such-program").contains("there is no program"));
}
