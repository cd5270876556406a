//! A page with figures for Prometheus, on a socket of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

/// How much of a request is read, and how long it may take: it is one line and some headers.
const MOST_BYTES: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// A page that is served as long as the process lives.
pub(crate) struct Metrics {
    page: Arc<Mutex<String>>,
    pub(crate) address: SocketAddr,
}

impl Metrics {
    /// Listens on an address, HOST:PORT.
    pub(crate) fn serve(address: &str) -> anyhow::Result<Metrics> {
        let cannot = || format!("cannot serve metrics on {address}");
        let listener = TcpListener::bind(address).with_context(cannot)?;
        let page = Arc::new(Mutex::new(String::new()));
        let metrics = Metrics {
            page: Arc::clone(&page),
            address: listener.local_addr().with_context(cannot)?,
        };
        let serve = move || {
            // One after the other: whoever scrapes waits for a moment, and nobody can open many.
            for stream in listener.incoming() {
                match stream {
                    // A scraper that went away is not our concern.
                    Ok(stream) => drop(answer(stream, &page)),
                    // Without descriptors there is nothing to do but to wait for one.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).with_context(cannot)?;
        Ok(metrics)
    }

    /// Replaces the page.
    pub(crate) fn set(&self, figures: &Figures) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = figures.text.clone();
    }
}

fn answer(mut stream: TcpStream, page: &Mutex<String>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") && request.len() < MOST_BYTES {
        match stream.read(&mut piece)? {
            0 => break,
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    let page = page.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (status, body) = match request.strip_prefix(b"GET ") {
        Some(rest) if rest.starts_with(b"/metrics ") || rest.starts_with(b"/metrics?") => {
            ("200 OK", &*page)
        }
        Some(_) => ("404 Not Found", "the figures are at /metrics\n"),
        None => ("405 Method Not Allowed", "only GET is understood\n"),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Figures in the text format of Prometheus.
#[derive(Default)]
pub(crate) struct Figures {
    text: String,
}

impl Figures {
    /// Adds a figure without labels; one that only grows is a `counter` and its name ends with `_total`.
    pub(crate) fn add(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name} {value}");
    }

    /// Adds a figure for each value of two labels.
    pub(crate) fn add_each(
        &mut self,
        name: &str,
        help: &str,
        [one, two]: [&str; 2],
        values: &BTreeMap<(String, &'static str), u64>,
    ) {
        self.head(name, help);
        for ((first, second), value) in values {
            let first = escaped(first);
            let _ = writeln!(self.text, "{name}{{{one}=\"{first}\",{two}=\"{second}\"}} {value}");
        }
    }

    fn head(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_page_is_served_to_whoever_asks_properly() {
        let metrics = Metrics::serve("127.0.0.1:0").unwrap();
        let mut figures = Figures::default();
        figures.add("foresee_jobs_total", "Jobs.", 3);
        let each = BTreeMap::from([(("odd \"name\"\n".to_owned(), "observed"), 1)]);
        figures.add_each("foresee_findings_total", "Findings.", ["property", "kind"], &each);
        metrics.set(&figures);
        let told = ask(metrics.address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
        let body = told.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(
            body,
            "# HELP foresee_jobs_total Jobs.\n# TYPE foresee_jobs_total counter\nforesee_jobs_total 3\n\
             # HELP foresee_findings_total Findings.\n# TYPE foresee_findings_total counter\n\
             foresee_findings_total{property=\"odd \\\"name\\\"\\n\",kind=\"observed\"} 1\n"
        );
        assert!(ask(metrics.address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(metrics.address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        let long = "x".repeat(MOST_BYTES);
        assert!(ask(metrics.address, &long).starts_with("HTTP/1.1 405"), "it is not read for ever");
        assert!(Metrics::serve("nowhere").is_err());
    }
}
