//! Which channels carry order between threads.

use foresee_rt::format::{Tag, channel};

use super::HashMap;

/// The threads that use a channel, and how.
#[derive(Debug)]
struct Users {
    first: u32,
    several: bool,
    sends: bool,
    receives: bool,
    looks: bool,
    /// What it is: see [`channel`].
    value: u64,
}

impl Users {
    fn share(&self) -> bool {
        self.several && (self.receives || self.looks && self.sends)
    }
}

/// All uses of channels in the log.
#[derive(Debug, Default)]
pub(super) struct Channels {
    users: HashMap<u64, Users>,
}

impl Channels {
    /// Adds a step on a channel.
    pub(super) fn add(&mut self, channel: u64, thread: u32, tag: Tag, value: u64) {
        let users = self.users.entry(channel).or_insert(Users {
            first: thread,
            several: false,
            sends: false,
            receives: false,
            looks: false,
            value,
        });
        users.several |= users.first != thread;
        users.sends |= tag == Tag::Send;
        users.receives |= tag == Tag::Receive;
        users.looks |= tag == Tag::Look;
    }

    /// Whether one thread's use of the channel can affect another. A channel that is only written
    /// to (a terminal, a log file of the program) orders nothing, because no thread here reads it.
    pub(super) fn is_shared(&self, channel: u64) -> bool {
        self.users.get(&channel).is_some_and(Users::share)
    }

    /// Whether threads share a channel that orders more than it has to, and that is not left out. What OpenMP orders is
    /// exact, but for tasks.
    pub(super) fn are_conservative(&self, is_left_out: impl Fn(u64, u64) -> bool) -> bool {
        let is_exact = |users: &Users| {
            matches!(
                users.value >> 32,
                channel::TEAM
                    | channel::TASK
                    | channel::TASKS_DONE
                    | channel::DEPENDENCE
                    | channel::ORDERED
            )
        };
        let orders = |(&channel, users): (&u64, &Users)| {
            users.share() && !is_exact(users) && !is_left_out(channel, users.value)
        };
        self.users.iter().any(orders)
    }
}
