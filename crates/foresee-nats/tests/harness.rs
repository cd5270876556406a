//! A server, and workers in processes of their own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use foresee_batch::{Failed, Plan, Questions, perform};
use foresee_nats::{Answering, Perform, Served, Server, Worker, work};
use foresee_predict::session::{Limits, Settings};
use tempfile::TempDir;

/// A server with a store that outlives it.
pub(crate) struct Nats {
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Nats {
    pub(crate) fn start(arguments: &[&str]) -> Nats {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut nats = Nats { port, folder: TempDir::new().unwrap(), arguments, process: None };
        nats.restart();
        nats
    }

    /// With these lines in its configuration.
    pub(crate) fn configured(lines: &str) -> Nats {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, lines).unwrap();
        let arguments = vec!["-c".to_owned(), file.display().to_string()];
        let mut nats = Nats { port, folder, arguments, process: None };
        nats.restart();
        nats
    }

    /// Starts it on its store.
    pub(crate) fn restart(&mut self) {
        let program = ["/usr/sbin/nats-server", "/usr/bin/nats-server"];
        let program = program.iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(program.unwrap_or(&"nats-server"));
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        command.arg(self.folder.path().join("store")).args(&self.arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn().expect("nats-server is needed: apt-get install nats-server");
        self.process = Some(started);
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < until, "nats-server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// How tests reach it: impatient.
    pub(crate) fn server(&self) -> Server {
        server(&self.url())
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn server(url: &str) -> Server {
    Server {
        patience: Duration::from_secs(20),
        ack_wait: Duration::from_secs(1),
        ..Server::new(url)
    }
}

/// The environment variable by which this executable knows that it is a worker.
const WORKER: &str = "FORESEE_TEST_WORKER";

/// Where it keeps traces, and how many bytes of them.
const FOLDER: &str = "FORESEE_TEST_FOLDER";
const MOST: &str = "FORESEE_TEST_MOST";

/// Not a test: a worker, if this process was started as one.
#[test]
fn worker_process() {
    let Ok(url) = std::env::var(WORKER) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let worker = Worker {
        server: server(&url),
        jobs: 1,
        folder,
        most_bytes: std::env::var(MOST).map_or(1 << 20, |most| most.parse().unwrap()),
        idle: None,
        perform: moody(),
        served: vec![Served { group: ECHO.parse().unwrap(), answer: echo() }],
    };
    let _ = work(&worker, &AtomicBool::new(false), &|_| ());
}

/// Does jobs, and what the names of their traces ask for besides: to take long, or to die.
fn moody() -> Perform {
    Arc::new(|job, blobs| {
        if job.trace.name.contains("deadly") {
            std::process::exit(1);
        }
        if job.trace.name.contains("odd") {
            return Err(Failed("this one is odd".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(5));
        perform(job, blobs, 1)
    })
}

/// The group of requests that workers answer.
pub(crate) const ECHO: &str = "echo";

/// Answers with the request, backwards, and is as moody.
fn echo() -> Answering {
    Arc::new(|request| match request {
        b"deadly" => std::process::exit(1),
        b"odd" => Err("this one is odd".to_owned()),
        _ => {
            std::thread::sleep(Duration::from_millis(50));
            Ok(request.iter().rev().copied().collect())
        }
    })
}

/// A worker in a process of its own.
pub(crate) struct WorkerProcess {
    process: Child,
    _folder: Option<TempDir>,
}

impl WorkerProcess {
    /// One with a folder of its own.
    pub(crate) fn start(url: &str) -> WorkerProcess {
        let folder = TempDir::new().unwrap();
        let process = worker_command(url, folder.path()).spawn().unwrap();
        WorkerProcess { process, _folder: Some(folder) }
    }

    /// One that shares a folder, in which there is room for this many bytes.
    pub(crate) fn sharing(url: &str, folder: &Path, most: u64) -> WorkerProcess {
        let mut command = worker_command(url, folder);
        let process = command.env(MOST, most.to_string()).spawn().unwrap();
        WorkerProcess { process, _folder: None }
    }
}

fn worker_command(url: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "harness::worker_process"]);
    command.env(WORKER, url).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl WorkerProcess {
    pub(crate) fn restart_if_dead(&mut self, url: &str) {
        if self.process.try_wait().unwrap().is_some() {
            *self = WorkerProcess::start(url);
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn settings() -> Settings {
    // A limit of time would make answers depend on the load of the machine.
    Settings { limits: Limits { time: None, cores: 1, ..Limits::default() }, ..Settings::default() }
}

/// A plan for tiny traces, no two alike, of which every third has a race.
pub(crate) fn plan(folder: &Path, names: &[String]) -> Plan {
    let traces = names.iter().enumerate().map(|(i, name)| {
        let path = folder.join(format!("{name}.std"));
        let lock = if i % 3 == 0 { "n" } else { "m" };
        let text = format!(
            "T1|acq(m)|\nT1|w(x{i})=1|a.c:1(f{i})\nT1|rel(m)|\n\
             T2|acq({lock})|\nT2|w(x{i})=2|a.c:2(g)\nT2|rel({lock})|\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    });
    let traces = traces.collect();
    let checks = vec!["race".to_owned()];
    let group = Questions { traces, checks, ..Questions::default() };
    Plan::new(&[group], &settings(), 1).unwrap()
}

pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("trace{i}")).collect()
}
