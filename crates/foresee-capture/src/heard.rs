//! What a program prints to its standard error, and the messages in it that say that something went wrong: of sanitizers in the
//! program, of failed assertions, of libc and of the C++ library.

use std::io::{self, Read, Write as _};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// The most bytes that are kept; reports of sanitizers that come later are not looked at.
const MOST: usize = 1 << 20;

/// How long a process that outlives the program may keep us from knowing that nothing more comes.
const PATIENCE: Duration = Duration::from_millis(200);

/// The beginning of what a program prints to its standard error.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Vec<u8>>>);

/// A thread that listens to a program.
pub(crate) struct Listener(mpsc::Receiver<()>);

impl Listener {
    /// Waits until everything has been heard, or a process that outlives the program keeps its standard error open.
    pub(crate) fn wait(self) {
        let _ = self.0.recv_timeout(PATIENCE);
    }
}

impl Heard {
    /// Listens to a program, and passes on what it prints unless it `is_silent`.
    pub(crate) fn listen(&self, mut from: ChildStderr, is_silent: bool) -> Listener {
        let (over, is_over) = mpsc::channel();
        let to = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let n = match from.read(&mut bytes) {
                    Ok(n) => n,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => 0,
                };
                let Some(new) = bytes.get(..n).filter(|new| !new.is_empty()) else { break };
                if !is_silent {
                    // The program's own output is not ours to complain about.
                    let _ = io::stderr().write_all(new);
                }
                let mut kept = to.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST.saturating_sub(kept.len());
                kept.extend(&new[..n.min(room)]);
            }
            drop(over);
        });
        Listener(is_over)
    }

    /// The messages that say that something went wrong, without what differs from run to run; each once, in order.
    pub fn messages(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        let text = String::from_utf8_lossy(&kept);
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let next = lines.peek().map_or("", |next| next.trim());
            if let Some(message) = message(line.trim_end(), next).filter(|new| !all.contains(new)) {
                all.push(message);
            }
        }
        all
    }
}

/// What libc prints before it aborts the program, by how it begins.
const OF_LIBC: [&str; 13] = [
    "double free or corruption",
    "free(): ",
    "malloc(): ",
    "realloc(): ",
    "calloc(): ",
    "malloc_consolidate(): ",
    "munmap_chunk(): ",
    "corrupted size vs. prev_size",
    "corrupted double-linked list",
    "*** stack smashing detected ***",
    "*** buffer overflow detected ***",
    "Fatal glibc error: ",
    "The futex facility returned an unexpected error code",
];

/// The message of a line that says that something went wrong; `next` is the line after it.
fn message(line: &str, next: &str) -> Option<String> {
    // `==123==ERROR: AddressSanitizer: heap-use-after-free on address 0x5020 at pc …`
    for word in ["ERROR: ", "WARNING: "] {
        let Some((_, rest)) = line.split_once(word) else { continue };
        let Some((name, what)) = rest.split_once(": ") else { continue };
        if name.ends_with("Sanitizer") && !name.contains(' ') {
            let what = what.split(" on address ").next().unwrap_or(what);
            let what = what.split(" (pid=").next().unwrap_or(what);
            return Some(format!("{name}: {what}"));
        }
    }
    // `sum.c:9:12: runtime error: division by zero`
    if let Some((place, what)) = line.split_once(": runtime error: ") {
        let what = without_addresses(what);
        return Some(format!("UndefinedBehaviorSanitizer: {what} at {place}"));
    }
    // `program: sum.c:9: add: Assertion `n > 0' failed.`
    if let Some((before, what)) = line.split_once(": Assertion `")
        && let Some(what) = what.strip_suffix("' failed.")
    {
        let mut parts = before.splitn(4, ':').skip(1).map(str::trim);
        let (file, number) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        return Some(format!("the assertion `{what}` failed at {file}:{number}"));
    }
    if line.starts_with("terminate called") || line.starts_with("pure virtual method called") {
        let what = next.strip_prefix("what():").map_or("", str::trim);
        let line = line.trim_end();
        return Some(match what {
            "" => format!("the C++ library: {line}"),
            what => format!("the C++ library: {line}: {what}"),
        });
    }
    let is_libc = OF_LIBC.iter().any(|known| line.starts_with(known));
    is_libc.then(|| format!("libc: {line}"))
}

/// A text with `0x…` for every address.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push_str("0x…");
        out.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_recognised() {
        let text = "hello\n\
            sum.c:9:12: runtime error: division by zero\n\
            sum.c:9:12: runtime error: division by zero\n\
            sum.c:10:3: runtime error: load of misaligned address 0x7ffd8 for type 'int'\n\
            ==71==ERROR: AddressSanitizer: heap-use-after-free on address 0x502000000010 at pc 0x1\n\
            WARNING: ThreadSanitizer: data race (pid=71)\n\
            ERROR: the file is missing: try again\n\
            prog: a/sum.c:14: add: Assertion `n: > 0' failed.\n\
            terminate called after throwing an instance of 'std::logic_error'\n  what():  empty\n\
            free(): double free detected in tcache 2\n";
        let heard = Heard(Arc::new(Mutex::new(text.as_bytes().to_vec())));
        let expected = [
            "UndefinedBehaviorSanitizer: division by zero at sum.c:9:12",
            "UndefinedBehaviorSanitizer: load of misaligned address 0x… for type 'int' at sum.c:10:3",
            "AddressSanitizer: heap-use-after-free",
            "ThreadSanitizer: data race",
            "the assertion `n: > 0` failed at a/sum.c:14",
            "the C++ library: terminate called after throwing an instance of 'std::logic_error': empty",
            "libc: free(): double free detected in tcache 2",
        ];
        assert_eq!(heard.messages(), expected);
    }
}
