//! Which channels carry order between threads.

use foresee_rt::format::Tag;

use super::HashMap;

/// Who uses a channel, and how.
#[derive(Debug)]
struct Users {
    first: u32,
    several: bool,
    sends: bool,
    receives: bool,
    looks: bool,
}

/// What is done to channels in the whole log.
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

    /// Whether what one thread does to the channel can matter to another. What is only written to (a terminal, a log of
    /// the program) orders nothing: nobody here can tell.
    pub(super) fn is_shared(&self, channel: u64) -> bool {
        self.users.get(&channel).is_some_and(|u| u.several && (u.receives || u.looks && u.sends))
    }
}
