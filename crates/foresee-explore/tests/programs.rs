//! Random programs of the tiny language.

use super::tiny::{Code, Ins};

/// What programs of a family consist of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// Added to seeds, so that families differ.
    pub(crate) salt: u64,
    /// The largest number of threads.
    pub(crate) threads: usize,
    /// The largest number of choices in a thread.
    pub(crate) length: usize,
    /// What is chosen from, each as often as it occurs; the last `more` only in some programs.
    pub(crate) choices: &'static [Choice],
    pub(crate) more: usize,
    /// Whether locks are shared, threads started late, branches long, and processes ended early.
    pub(crate) is_rich: bool,
}

/// One or a few instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Load,
    Set,
    Store,
    Add,
    Cas,
    Skip,
    Fail,
    /// A loop of at most two rounds, which waits for a value.
    Loop,
    Lock,
    TryLock,
    Signal,
    Wait,
    LoadPart,
    StorePart,
    Post,
    Take,
    Barrier,
    Once,
}

impl Family {
    /// What the interpreter can do.
    pub(crate) const RICH: Family = {
        use Choice::*;
        Family {
            salt: 0,
            threads: 4,
            length: 6,
            choices: &[
                Load, Load, Load, Load, Set, Set, Store, Store, Add, Cas, Skip, Fail, Lock, Lock,
                Lock, TryLock, Signal, Wait, LoadPart, StorePart, Post, Take, Barrier, Once,
            ],
            more: 4,
            is_rich: true,
        }
    };

    /// What can be written in C, line by line.
    pub(crate) const IN_C: Family = {
        use Choice::*;
        Family {
            salt: 0x5eed,
            threads: 3,
            length: 5,
            choices: &[
                Load, Load, Load, Set, Set, Store, Store, Add, Add, Cas, Skip, Fail, Loop, Lock,
                Lock, Lock, TryLock, Signal, Wait, LoadPart, StorePart, Post, Take, Barrier,
            ],
            more: 3,
            is_rich: false,
        }
    };

    /// A random program: some threads, a few operations each.
    pub(crate) fn program(&self, seed: u64) -> Code {
        let mut rng = fastrand::Rng::with_seed(seed ^ self.salt);
        let threads = rng.usize(2..=self.threads);
        let (vars, locks) = (rng.usize(1..=3), rng.usize(0..=2));
        let has_conditions = locks > 0 && rng.u8(..3) == 0;
        let has_parts = rng.u8(..6) == 0;
        let has_more = rng.u8(..4) == 0;
        // Some threads are started later, or by others.
        let is_late = |child: usize| child == 3 && seed % 2 == 1;
        let mut code: Code = Vec::new();
        for at in 0..threads {
            let mut body: Vec<Ins> = Vec::new();
            if at == 0 {
                if has_more {
                    body.extend([Ins::SemInit(0, rng.u32(0..2)), Ins::BarrierInit(0, 2)]);
                }
                body.extend((1..threads).filter(|&child| !is_late(child)).map(Ins::Fork));
            }
            if at == 1 && threads == 4 && is_late(3) {
                body.push(Ins::Fork(3));
            }
            let length = rng.usize(2..=if threads > 3 { 3 } else { self.length });
            let mut held: Option<usize> = None;
            for _ in 0..length {
                let (var, reg) = (rng.usize(..vars), rng.usize(..2));
                let most = self.choices.len() - if has_more { 0 } else { self.more };
                match self.choices[usize::from(rng.u8(..most as u8))] {
                    Choice::Set => body.push(Ins::Set(var, rng.u64(0..3))),
                    Choice::Store => body.push(Ins::Store(var, reg, rng.u64(0..2))),
                    Choice::Add => body.push(Ins::Add(reg, var, 1)),
                    Choice::Cas => body.push(Ins::Cas(reg, var, rng.u64(0..2), rng.u64(0..3))),
                    Choice::Skip => {
                        let values: &[u64] = match self.is_rich {
                            true => &[0, 1][..=rng.usize(0..2)],
                            false => &[1],
                        };
                        body.push(Ins::SkipIf(reg, rng.u64(0..2), values.len()));
                        body.extend(values.iter().map(|&v| Ins::Set(rng.usize(..vars), v)));
                    }
                    Choice::Fail => {
                        body.push(Ins::Load(reg, var));
                        body.push(Ins::SkipUnless(reg, 2, 1));
                        body.push(Ins::Fail);
                    }
                    Choice::Loop => {
                        body.push(Ins::Load(reg, var));
                        body.extend([Ins::SkipIf(reg, 1, 3), Ins::Bump(4, 1)]);
                        body.extend([Ins::SkipIf(4, 2, 1), Ins::Back(4)]);
                    }
                    Choice::Lock => match held {
                        None if locks > 0 => {
                            held = Some(rng.usize(..locks));
                            // Conditions need the lock for themselves.
                            let shares = self.is_rich && !has_conditions && rng.u8(..4) == 0;
                            body.extend(held.map(if shares { Ins::ReadLock } else { Ins::Lock }));
                        }
                        Some(lock) if locks == 2 && rng.bool() => {
                            // A second one, perhaps the wrong way round.
                            body.extend([Ins::Lock(1 - lock), Ins::Load(reg, var)]);
                            body.push(Ins::Unlock(1 - lock));
                        }
                        Some(lock) => {
                            body.push(Ins::Unlock(lock));
                            held = None;
                        }
                        None => body.push(Ins::Load(reg, var)),
                    },
                    Choice::TryLock if locks > 0 && held.is_none() => {
                        let lock = rng.usize(..locks);
                        body.push(match rng.bool() {
                            true => Ins::TryLock(2, lock),
                            false => Ins::TimedLock(2, lock),
                        });
                        body.push(Ins::SkipIf(2, 0, 2));
                        body.extend([Ins::Store(var, reg, 1), Ins::Unlock(lock)]);
                    }
                    Choice::Signal if has_conditions => {
                        body.push(if rng.bool() { Ins::Signal(0) } else { Ins::Broadcast(0) });
                    }
                    Choice::Wait if has_conditions && held.is_some() => {
                        let lock = held.unwrap_or(0);
                        body.push(match rng.bool() {
                            true => Ins::Wait(0, lock),
                            false => Ins::TimedWait(3, 0, lock),
                        });
                        body.extend([Ins::SkipIf(3, 0, 1), Ins::Set(var, 1)]);
                    }
                    Choice::LoadPart if has_parts => {
                        body.push(Ins::LoadPart(reg, var, 4 * rng.u8(0..2), 4));
                    }
                    Choice::StorePart if has_parts => {
                        body.push(Ins::StorePart(var, rng.u8(0..7), 2, rng.u64(0..3)));
                    }
                    Choice::Post => body.push(Ins::Post(0)),
                    Choice::Take => {
                        body.push(if rng.bool() { Ins::Take(0) } else { Ins::TryTake(3, 0) });
                    }
                    Choice::Barrier if held.is_none() => {
                        body.extend([Ins::Arrive(0), Ins::Pass(0)]);
                    }
                    Choice::Once => {
                        body.extend([Ins::OnceBegin(3, 0), Ins::SkipIf(3, 0, 2)]);
                        body.extend([Ins::Set(var, 2), Ins::OnceEnd(0)]);
                    }
                    _ => body.push(Ins::Load(reg, var)),
                }
            }
            body.extend(held.map(Ins::Unlock));
            if at == 0 && rng.bool() {
                body.extend([Ins::Join(1), Ins::Load(0, 0)]);
            }
            if self.is_rich && at == 0 && rng.u8(..4) == 0 {
                body.push(Ins::Exit(0));
            }
            code.push(body);
        }
        code
    }
}
