//! Which channels carry order between threads.

use foresee_rt::format::Tag;

use super::HashMap;

/// The threads that use a channel, and how.
#[derive(Debug)]
struct Users {
    first: u32,
    several: bool,
    sends: bool,
    receives: bool,
    looks: bool,
}

/// All uses of channels in the log.
#[derive(Debug, Default)]
pub(super) struct Channels {
    users: HashMap<u64, Users>,
}

impl Channels {
    /// Adds a step on a channel.
    pub(super) fn add(&mut self, channel: u64, thread: u32, tag: Tag) {
        let users = self.users.entry(channel).or_insert(Users {
            first: thread,
            several: false,
            sends: false,
            receives: false,
            looks: false,
        });
        users.several |= users.first != thread;
        users.sends |= tag == Tag::Send;
        users.receives |= tag == Tag::Receive;
        users.looks |= tag == Tag::Look;
    }

    /// Whether one thread's use of the channel can affect another. A channel that is only written
    /// to (a terminal, a log file of the program) orders nothing, because no thread here reads it.
    pub(super) fn is_shared(&self, channel: u64) -> bool {
        self.users.get(&channel).is_some_and(|u| u.several && (u.receives || u.looks && u.sends))
    }
}
