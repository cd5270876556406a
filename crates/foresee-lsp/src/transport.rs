//! Messages between the server and the streams of bytes to its editor.
//!
//! `lsp_server` has such threads as well, but believes any length that a message announces, and reads lines without an end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::bounded;
use lsp_server::{Connection, Message};

/// The longest header of a message, in bytes.
const MOST_HEADER: u64 = 4 << 10;
/// The longest message, in bytes: more than the longest specification that foresee reads.
const MOST_BODY: u64 = 64 << 20;

/// How the threads of a connection end.
pub(crate) struct Ends {
    reader_failed: Arc<Mutex<Option<io::Error>>>,
    writer: thread::JoinHandle<io::Result<()>>,
}

impl Ends {
    /// Why nothing more is received, if the editor did not just close the connection.
    pub(crate) fn broken(&self) -> Option<io::Error> {
        self.reader_failed.lock().ok()?.take()
    }

    /// Waits until everything has been written.
    pub(crate) fn written(self) -> io::Result<()> {
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

/// Starts to read and write messages. No more than one of each is kept.
pub(crate) fn start(
    input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> io::Result<(Connection, Ends)> {
    let (sender, to_write) = bounded::<Message>(0);
    let writer = thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || to_write.into_iter().try_for_each(|message| message.write(&mut output)))?;
    let (read, receiver) = bounded::<Message>(0);
    let failed = Arc::new(Mutex::new(None));
    let reader_failed = Arc::clone(&failed);
    thread::Builder::new().name("reader".to_owned()).spawn(move || {
        let mut input = BufReader::new(input);
        loop {
            let message = match receive(&mut input) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => {
                    if let Ok(mut failed) = failed.lock() {
                        *failed = Some(error);
                    }
                    break;
                }
            };
            let is_exit = matches!(&message, Message::Notification(n) if n.method == "exit");
            if read.send(message).is_err() || is_exit {
                break;
            }
        }
    })?;
    Ok((Connection { sender, receiver }, Ends { reader_failed, writer }))
}

/// The next message, unless the stream ends before it.
fn receive(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let (mut header, mut length) = (Vec::new(), 0);
    loop {
        let start = header.len();
        let room = MOST_HEADER - start as u64;
        if input.by_ref().take(room).read_until(b'\n', &mut header)? == 0 && start == 0 {
            return Ok(None);
        }
        let line = &header[start..];
        if !line.ends_with(b"\n") {
            return Err(bad(match header.len() as u64 == MOST_HEADER {
                true => format!("the header of a message has more than {MOST_HEADER} bytes"),
                false => "the header of a message is cut off".to_owned(),
            }));
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            break;
        }
        // Anything else that is wrong with it is said by the parser below.
        let text = String::from_utf8_lossy(line);
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("Content-Length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    if length > MOST_BODY {
        let most = MOST_BODY >> 20;
        return Err(bad(format!("a message of {length} bytes is longer than {most} MiB")));
    }
    Message::read(&mut header.chain(input.take(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(input: impl Read + Send + 'static) -> Option<String> {
        let (connection, ends) = start(input, io::sink()).unwrap();
        assert!(connection.receiver.recv().is_err());
        ends.broken().map(|error| error.to_string())
    }

    #[test]
    fn messages_come_and_go() {
        let text = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let framed = format!("Content-Type: x\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        let (connection, ends) = start(io::Cursor::new(framed), io::sink()).unwrap();
        let message = connection.receiver.recv().unwrap();
        assert!(matches!(&message, Message::Notification(n) if n.method == "exit"));
        connection.sender.send(message).unwrap();
        drop(connection);
        ends.written().unwrap();
    }

    #[test]
    fn streams_without_an_end_are_refused_and_so_are_lengths_that_nobody_needs() {
        for byte in [0, b'x'] {
            let why = failure(io::repeat(byte)).unwrap();
            assert_eq!(why, "the header of a message has more than 4096 bytes");
        }
        let many = io::Cursor::new("A: b\r\n".repeat(1000));
        assert_eq!(failure(many).unwrap(), "the header of a message has more than 4096 bytes");
        for length in ["67108865", "18446744073709551615"] {
            let header = io::Cursor::new(format!("Content-Length: {length}\r\n\r\n"));
            let why = failure(header.chain(io::repeat(b' '))).unwrap();
            assert_eq!(why, format!("a message of {length} bytes is longer than 64 MiB"));
        }
        for header in ["\r\n", "nonsense\r\n\r\n", "Content-Length: many\r\n\r\n", "\n"] {
            assert!(failure(io::Cursor::new(header)).is_some(), "{header:?}");
        }
        let cut_off = failure(io::Cursor::new("Content-Length: 3\r\n")).unwrap();
        assert_eq!(cut_off, "the header of a message is cut off");
        assert_eq!(failure(io::empty()), None);
    }
}
