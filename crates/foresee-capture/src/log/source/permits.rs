//! Semaphores as events, and what is not known about them, about barriers and about OpenMP's tasks.

use std::collections::BTreeSet;

use foresee_rt::format::{Tag, channel, how};
use foresee_trace::{Event, Op, Value};

use super::{LogSource, Out, Result, listed};
use crate::log::names::Names;
use crate::log::semaphores::{Kind, Permits};
use crate::log::waiting::Thing;

impl<N: Names> LogSource<'_, N> {
    /// How a semaphore appears in the trace.
    pub(super) fn semaphore(&self, address: u64) -> Kind {
        let times = self.semaphores.get(&address).copied().unwrap_or(0);
        match self.log.header.free_running {
            true => Kind::Count,
            false => self.log.semaphores.kind(address, times),
        }
    }

    /// What a step is if a semaphore is a lock.
    pub(super) fn as_lock(&mut self, tag: Tag, address: u64) -> Tag {
        if !matches!(
            tag,
            Tag::SemInit | Tag::SemPost | Tag::SemWait | Tag::SemFailed | Tag::SemValue
        ) {
            return tag;
        }
        if tag == Tag::SemInit {
            self.close_permits(address);
            *self.semaphores.entry(address).or_default() += 1;
        }
        match (self.semaphore(address), tag) {
            (Kind::Lock, Tag::SemInit) => Tag::LockInit,
            (Kind::Lock, Tag::SemWait) => Tag::Acquire,
            (Kind::Lock, Tag::SemPost) => Tag::Release,
            (Kind::Lock, Tag::SemFailed) => Tag::TryFailed,
            _ => tag,
        }
    }

    /// A step on a semaphore that is not a lock.
    pub(super) fn use_semaphore(
        &mut self,
        tag: Tag,
        me: u32,
        address: u64,
        value: u64,
        event: impl Fn(Op) -> Event,
        out: &mut Out<'_>,
    ) -> Result<()> {
        if self.semaphore(address) == Kind::Count {
            return self.use_count(tag, address, value, event, out);
        }
        let events = self.threads.get(me).events;
        // Taken out, so that it can ask for variables.
        let (name, mut permits) = match self.permits.remove(&address) {
            Some(known) => known,
            None => {
                self.name_object(address, "", "");
                (self.text.clone(), Permits::new(value))
            }
        };
        let mut new =
            |number: usize| self.object_var(address, "", &format!(".permit{}", number + 1));
        match tag {
            Tag::SemPost => {
                let var = permits.raise(me, events, &mut new)?;
                out.put(event(Op::VolatileWrite).with_target(var.0), &[Value::Int(1)]);
            }
            Tag::SemWait => {
                if let Some((var, is_new)) = permits.lower(me, events, &mut new)? {
                    if is_new {
                        // It is no step of the thread.
                        let owner = out.owner.take();
                        out.put(event(Op::Init).with_target(var.0), &[Value::Int(1)]);
                        out.owner = owner;
                    }
                    let values = [Value::Int(1), Value::Int(0)];
                    out.put(event(Op::Rmw).with_target(var.0), &values);
                }
            }
            _ => {}
        }
        self.permits.insert(address, (name, permits));
        Ok(())
    }

    /// A step on a semaphore whose count is known to threads.
    fn use_count(
        &mut self,
        tag: Tag,
        address: u64,
        value: u64,
        event: impl Fn(Op) -> Event,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let is_first = !self.objects.contains_key(&address) || tag == Tag::SemInit;
        let var = match tag {
            Tag::SemInit => self.object_var(address, "", "")?,
            _ => self.object(address, "", "")?,
        };
        let times = self.semaphores.get(&address).copied().unwrap_or(0);
        let is_shared = self.log.semaphores.is_shared(address, times);
        if is_first && is_shared && !self.log.header.free_running {
            self.name_object(address, "", "");
            let name = self.text.clone();
            self.doubtful.insert(name);
        }
        if tag == Tag::SemInit {
            self.objects.insert(address, (var, Some(value as i64)));
            out.put(event(Op::VolatileWrite).with_target(var.0), &[Value::Int(value as i64)]);
            return Ok(());
        }
        let held = self.objects.get_mut(&address).and_then(|object| object.1.as_mut());
        match (tag, held) {
            (Tag::SemPost | Tag::SemWait, Some(count)) => {
                let old = *count;
                *count += if tag == Tag::SemPost { 1 } else { -1 };
                let values = [Value::Int(old), Value::Int(*count)];
                out.put(event(Op::Rmw).with_target(var.0), &values);
            }
            (Tag::SemPost | Tag::SemWait, None) => {
                out.put(event(Op::Rmw).with_target(var.0), &[]);
            }
            (Tag::SemValue, held) => {
                let value = held.map(|count| Value::Int(*count));
                out.put(event(Op::VolatileRead).with_target(var.0), value.as_slice());
            }
            // The attempt has found no permit.
            (_, held) => {
                let value = held.filter(|count| **count == 0).map(|_| Value::Int(0));
                out.put(event(Op::VolatileRead).with_target(var.0), value.as_slice());
            }
        }
        Ok(())
    }

    /// A semaphore is initialised again or its memory is freed, or the log ends.
    pub(super) fn close_permits(&mut self, address: u64) {
        if let Some((name, permits)) = self.permits.remove(&address)
            && !permits.is_exact()
        {
            self.doubtful.insert(name);
        }
    }

    /// Notes what a thread waits for and what it provides.
    pub(super) fn note_waits(&mut self, me: u32, tag: Tag, address: u64, value: u64) {
        let waiting = &mut self.waiting;
        let kind = value >> 32;
        match tag {
            Tag::Acquire | Tag::AcquireShared => {
                if value & how::TRIED == 0 {
                    waiting.asks(me, Thing::Lock(address));
                }
                waiting.has(me, address);
            }
            Tag::Release => waiting.gives(me, address),
            Tag::WaitBegin => {
                waiting.gives(me, value & !1);
                waiting.asks(me, Thing::Condition(address));
            }
            Tag::WaitEnd => {
                waiting.asks(me, Thing::Lock(value & !1));
                waiting.has(me, value & !1);
            }
            Tag::Notify | Tag::NotifyAll => waiting.provides(me, Thing::Condition(address)),
            Tag::Join => waiting.asks(me, Thing::End(value as u32)),
            Tag::SemInit => waiting.begins(address, value),
            Tag::SemWait => waiting.lowers(me, address, value & how::TRIED == 0),
            Tag::SemPost => waiting.raises(me, address),
            Tag::BarrierArrive => {
                waiting.provides(me, Thing::Barrier(address));
                waiting.asks(me, Thing::Barrier(address));
            }
            Tag::Send if kind == channel::SEMAPHORES => waiting.provides(me, Thing::Set(address)),
            Tag::Receive if kind == channel::SEMAPHORES => waiting.asks(me, Thing::Set(address)),
            Tag::Send if kind == channel::MESSAGES => waiting.provides(me, Thing::Queue(address)),
            Tag::Receive if kind == channel::MESSAGES => waiting.receives(me, address),
            _ => {}
        }
    }

    /// Says, when all records are read, what is not known about semaphores, barriers and tasks.
    pub(super) fn tell_doubts(&mut self) {
        let open: Vec<u64> = self.permits.keys().copied().collect();
        open.into_iter().for_each(|address| self.close_permits(address));
        if !self.doubtful.is_empty() {
            let names: Vec<String> = std::mem::take(&mut self.doubtful).into_iter().collect();
            self.remarks.add_partial(&format!(
                "the permits of semaphores could have gone to other threads than in this run, and what could happen then \
                 is not predicted: {}",
                listed(&names, "more semaphore")
            ));
        }
        if self.log.header.free_running {
            return;
        }
        for late in std::mem::take(&mut self.certain.late) {
            self.name_object(late.address, "", "");
            self.unordered[usize::from(late.is_of_task)].insert(self.text.clone());
        }
        let [of_threads, of_tasks] = self.unordered.clone();
        let listed_of = |names: BTreeSet<String>| {
            let names: Vec<String> = names.into_iter().collect();
            (!names.is_empty()).then(|| listed(&names, "more object"))
        };
        if let Some(names) = listed_of(of_threads) {
            self.remarks.add_partial(&format!(
                "what threads did with pipes, signals, descriptors and the like stays in the order of this run, and without that \
                 order they could access {names} at the same time"
            ));
        }
        if let Some(names) = listed_of(of_tasks) {
            self.remarks.add_partial(&format!(
                "OpenMP tasks or sections access {names} in an order that only this run had, because one thread executed them \
                 or nobody waited for one of them: whether they race is not known"
            ));
        }
        if self.certain.is_cut {
            self.remarks.add_partial(
                "whether OpenMP tasks or sections, or threads that use pipes, signals, descriptors and the like, access memory in an order \
                 that only this run had was not looked at to the end",
            );
        }
        let doubtful = self.waiting.doubtful();
        let mut names = BTreeSet::new();
        for thing in doubtful.iter().flatten() {
            let (before, address) = match *thing {
                Thing::Semaphore(address) => ("semaphore ", address),
                Thing::Barrier(address) => ("barrier ", address),
                _ => {
                    names.insert("a set of semaphores or a queue of System V".to_owned());
                    continue;
                }
            };
            self.name_object(address, before, "");
            names.insert(self.text.clone());
        }
        let names: Vec<String> = names.into_iter().collect();
        let what = match doubtful {
            Some(_) if names.is_empty() => return,
            Some(_) => listed(&names, "more object"),
            None => "semaphores and barriers".to_owned(),
        };
        self.remarks.add_partial(&format!(
            "whether threads could wait forever for {what} is not known: a thread that is to provide it may have to wait for \
             a lock or a permit that another one has"
        ));
    }
}
