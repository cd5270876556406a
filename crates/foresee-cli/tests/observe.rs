//! The observer with real processes: a faulty sender learns what is wrong and affects no other, and
//! no finding or stored trace is lost whatever is killed.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use foresee_formats::native::{FrameHeader, Kind};
use foresee_observe::ProgramId;
use foresee_observe::wire::{Hello, Reply, Status};
use foresee_trace::FileOrder;
use serde_json::Value;

const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");
/// How long a test waits for what has to happen, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A violation that another run of `landing()` has.
const SPEC: &str = "init landing = 0, approved = 0, radio = 1\n\
    property safe: start(landing == 1) -> [start(approved == 1), end(radio == 1))\n";

/// The plane lands while the radio goes off, after many irrelevant steps.
fn landing(folder: &Path, before: usize, after: usize) -> PathBuf {
    let idle = |n: usize| -> String {
        (0..n).map(|i| format!("T{}|w(other{})={i}|\n", i % 2 + 1, i % 7)).collect()
    };
    let middle = "T1|w(approved)=1|\nT1|w(landing)=1|\nT2|w(radio)=0|\n";
    let path = folder.join(format!("landing-{before}-{after}.std"));
    std::fs::write(&path, format!("{}{middle}{}", idle(before), idle(after))).unwrap();
    path
}

pub(crate) struct Observer {
    child: Child,
    /// What it says, read as it comes: an observer waits until its output is read.
    lines: Receiver<Value>,
    pub(crate) address: String,
}

impl Observer {
    fn start(folder: &Path, flags: &[&str]) -> Observer {
        let spec = folder.join("landing.spec");
        std::fs::write(&spec, SPEC).unwrap();
        Observer::listen(&[&["--spec", spec.to_str().unwrap()], flags].concat())
    }

    pub(crate) fn listen(flags: &[&str]) -> Observer {
        let mut child = Command::new(FORESEE)
            .args(["observe", "--listen", "127.0.0.1:0", "--format", "json"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // The last line of one that was killed may be cut off.
            while input.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
                if said.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let mut observer = Observer { child, lines, address: String::new() };
        observer.address = observer.next("listening")["address"].as_str().unwrap().to_owned();
        observer
    }

    fn line(&mut self) -> Option<Value> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    /// The next line of a kind.
    pub(crate) fn next(&mut self, what: &str) -> Value {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("no {what}"));
            if line["what"] == what {
                return line;
            }
        }
    }

    fn send(&self, trace: &Path, flags: &[&str]) -> Output {
        let mut send = Command::new(FORESEE);
        send.arg("send").arg(trace).args(["--to", &self.address]).args(flags).output().unwrap()
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Everything that is left to say, and the exit status.
    pub(crate) fn finish(mut self) -> (Vec<Value>, Option<i32>) {
        let mut rest = Vec::new();
        while let Some(line) = self.line() {
            rest.push(line);
        }
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello(name: &str) -> Vec<u8> {
    let (program, order) = (ProgramId::random(), FileOrder::Observed);
    Hello {
        program,
        name: name.to_owned(),
        order,
        channels: 1,
        token: Vec::new(),
        secret: Vec::new(),
        is_log: false,
        has_editions: false,
    }
    .encode()
    .unwrap()
}

/// Connects, says something, and waits for the answers.
fn say(address: &str, bytes: &[u8]) -> Vec<Reply> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut replies = Vec::new();
    while let Ok(Some(reply)) = Reply::read(&mut stream) {
        let is_last = reply.status != Status::Welcome;
        replies.push(reply);
        if is_last {
            break;
        }
    }
    replies
}

fn refusal(address: &str, bytes: &[u8]) -> String {
    let replies = say(address, bytes);
    let last = replies.last().expect("an answer");
    assert_eq!(last.status, Status::Refused, "{replies:?}");
    last.text.clone()
}

fn frame(number: u64, kind: Kind, count: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader::of(kind, count, payload).unwrap();
    [&number.to_le_bytes()[..], &header.encode(), payload].concat()
}

fn names_of(report: &Value) -> Vec<&str> {
    let analyses = report["analyses"].as_array().unwrap().iter();
    let findings = analyses.flat_map(|a| a["findings"].as_array().unwrap());
    findings.map(|f| f["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_violation_is_foreseen_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut observer = Observer::start(folder.path(), &["--programs", "2"]);
    let trace = landing(folder.path(), 300, 300_000);
    let sent = observer.send(&trace, &["--connections", "3", "--shuffle", "1", "--frame", "100"]);
    assert!(sent.status.success(), "{sent:?}");
    let finding = observer.next("finding");
    assert_eq!(finding["finding"]["kind"], "predicted");
    let verdict = observer.next("verdict");
    assert_eq!(names_of(&verdict["report"]), ["predicted"]);
    assert_eq!(verdict["report"]["trace"]["events"], 300_303);
    let sent = observer.send(&landing(folder.path(), 0, 0), &["--rate", "1000"]);
    assert!(sent.status.success(), "{sent:?}");
    let (rest, status) = observer.finish();
    assert!(rest.iter().any(|line| line["what"] == "verdict"));
    assert_eq!(status, Some(1));
}

#[test]
fn suppressed_findings_are_neither_told_nor_in_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, known) = (folder.path().join("race.std"), folder.path().join("known"));
    std::fs::write(&trace, "T1|w(x)|a.c:1(f)\nT2|w(x)|a.c:2(g)\n").unwrap();
    std::fs::write(&known, "race:f\n").unwrap();
    let flags = ["--check", "race", "--programs", "1", "--suppressions", known.to_str().unwrap()];
    for (flags, findings, expected) in [(&flags[..4], 1, 1), (&flags[..], 0, 0)] {
        let observer = Observer::listen(flags);
        assert!(observer.send(&trace, &[]).status.success());
        let (lines, status) = observer.finish();
        assert_eq!(status, Some(expected), "{lines:?}");
        let told = lines.iter().filter(|line| line["what"] == "finding").count();
        let verdict = lines.iter().find(|line| line["what"] == "verdict").unwrap();
        assert_eq!((told, names_of(&verdict["report"]).len()), (findings, findings), "{lines:?}");
        assert_eq!(verdict["status"], expected);
    }
}

#[test]
fn the_file_of_an_observer_grows_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, file) = (folder.path().join("landing.spec"), folder.path().join("lines"));
    std::fs::write(&spec, SPEC).unwrap();
    let mut observe = Command::new(FORESEE);
    observe.args(["observe", "--listen", "127.0.0.1:0", "--format", "json", "--programs", "1"]);
    observe.arg("--spec").arg(&spec).arg("--output").arg(&file);
    let child = observe.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // The first line is there while the observer still runs.
    let start = Instant::now();
    while lines().is_empty() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let address = lines()[0]["address"].as_str().unwrap().to_owned();
    let mut send = Command::new(FORESEE);
    send.arg("send").arg(landing(folder.path(), 0, 0)).args(["--to", &address]);
    assert!(send.output().unwrap().status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let whats: Vec<Value> = lines().into_iter().map(|line| line["what"].clone()).collect();
    assert_eq!(whats, ["listening", "program", "finding", "verdict"]);
}

#[test]
fn bad_senders_are_told_so_and_do_not_disturb_others() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--stall", "3", "--idle", "4", "--linger", "0", "--max-threads", "1000"];
    let mut observer = Observer::start(folder.path(), &flags);
    let address = observer.address.clone();
    // A program that goes on all the time.
    let long = landing(folder.path(), 3000, 3000);
    let undisturbed = std::thread::spawn({
        let address = address.clone();
        move || {
            let args = ["--to", &address, "--rate", "1000", "--name", "undisturbed"];
            Command::new(FORESEE).arg("send").arg(long).args(args).output().unwrap()
        }
    });
    assert!(refusal(&address, b"GET / HTTP/1.1\r\n\r\n").contains("not a foresee sender"));
    assert!(refusal(&address, &[0; 100]).contains("not a foresee sender"));
    let mut newer = hello("newer");
    newer[8] = 3;
    assert!(refusal(&address, &newer).contains("version 3"), "wrong version");
    let mut damaged = hello("damaged");
    damaged[30] ^= 1;
    assert!(refusal(&address, &damaged).contains("checksum"));
    // Garbage behind a good hello.
    assert!(refusal(&address, &[hello("garbage"), vec![7; 64]].concat()).contains("frame"));
    // Four gigabytes, of which none is ever there.
    let huge = FrameHeader { kind: Kind::Events, length: u32::MAX, count: 1, crc: 0 }.encode();
    let text = refusal(&address, &[hello("huge"), vec![0; 8], huge.to_vec()].concat());
    assert!(text.contains("4294967295 bytes is longer than"), "{text}");
    // A million threads.
    let mut names = vec![0; 8];
    for i in 0..1_000_000 {
        let name = format!("{i}");
        names.push(name.len() as u8);
        names.extend(name.as_bytes());
    }
    let threads = [hello("threads"), frame(0, Kind::Names, 1_000_000, &names)].concat();
    assert!(refusal(&address, &threads).contains("1000000 threads; the limit is 1000"));
    // A count that its frame has no room for, and events that no execution has.
    let lying = [hello("lying"), frame(0, Kind::Events, u32::MAX, &[0; 16])].concat();
    assert!(refusal(&address, &lying).contains("byte"));
    // Silence in the middle of a hello is as bad as in the middle of a frame.
    let part = frame(0, Kind::Events, 1, &[0; 100]);
    assert!(
        refusal(&address, &[hello("stalls"), part[..50].to_vec()].concat()).contains("timeout")
    );
    assert!(refusal(&address, &hello("silent")).contains("timeout"), "idle");
    // Death in the middle of a frame, and of a hello: there is no sender to answer.
    for bytes in [[hello("dies"), part[..50].to_vec()].concat(), hello("dies")[..20].to_vec()] {
        TcpStream::connect(&address).unwrap().write_all(&bytes).unwrap();
    }
    let sent = undisturbed.join().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let mut verdicts = 0;
    loop {
        let line = observer.line().expect("the observer is alive");
        if line["what"] == "verdict" {
            verdicts += 1;
            if line["program"]["name"] == "undisturbed" {
                assert_eq!(names_of(&line["report"]), ["predicted"]);
                assert!(line["report"]["trace"].get("cut_short").is_none());
                break;
            }
            assert!(line["report"]["trace"].get("cut_short").is_some(), "{line}");
        }
    }
    assert!(verdicts > 1);
    observer.signal("-TERM");
    assert_eq!(observer.finish().1, Some(1));
}

#[test]
fn a_sender_without_the_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = landing(folder.path(), 0, 0);
    let mut observer =
        Observer::start(folder.path(), &["--token", "open sesame", "--programs", "1"]);
    for flags in [&[][..], &["--token", "open sesamf"], &["--token", "open sesame "]] {
        let sent = observer.send(&trace, flags);
        assert_eq!(sent.status.code(), Some(2));
        let text = String::from_utf8_lossy(&sent.stderr).into_owned();
        assert!(text.contains("the token is wrong"), "{text}");
    }
    let sent = observer.send(&trace, &["--token", "open sesame"]);
    assert!(sent.status.success(), "{sent:?}");
    observer.next("verdict");
    // Without a token, only this machine is served.
    let open = Command::new(FORESEE)
        .args(["observe", "--listen", "0.0.0.0:0", "--check", "causality"])
        .output()
        .unwrap();
    assert_eq!(open.status.code(), Some(2));
    let text = String::from_utf8_lossy(&open.stderr).into_owned();
    assert!(text.contains("can be reached from other machines: set a token"), "{text}");
}

#[test]
fn signals_bring_all_verdicts() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let mut observer = Observer::start(folder.path(), &[]);
        let trace = landing(folder.path(), 10, 5000);
        let mut senders: Vec<Child> = (0..3)
            .map(|_| {
                let mut send = Command::new(FORESEE);
                send.arg("send").arg(&trace).args(["--to", &observer.address, "--rate", "500"]);
                send.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for _ in 0..3 {
            observer.next("finding");
        }
        observer.signal(signal);
        let (rest, status) = observer.finish();
        let verdicts: Vec<&Value> = rest.iter().filter(|l| l["what"] == "verdict").collect();
        assert_eq!(verdicts.len(), 3);
        for verdict in verdicts {
            assert_eq!(names_of(&verdict["report"]), ["predicted"]);
            let why = verdict["report"]["trace"]["cut_short"].as_str().unwrap();
            assert!(why.contains("the observer was stopped"), "{why}");
        }
        assert_eq!(status, Some(1));
        for sender in &mut senders {
            assert_eq!(sender.wait().unwrap().code(), Some(2));
        }
    }
}

#[test]
fn a_program_that_is_too_fast_waits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = landing(folder.path(), 10, 400_000);
    let mut observer = Observer::start(folder.path(), &["--memory", "1", "--programs", "1"]);
    let sent = observer.send(&trace, &["--frame", "50", "--connections", "2"]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(observer.next("verdict")["report"]["trace"]["events"], 400_013);
}

#[test]
fn unix_sockets_and_hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let address = format!("unix:{}", socket.display());
    let mut child = Command::new(FORESEE)
        .args(["observe", "--listen", &address, "--check", "causality", "--programs", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let trace = folder.path().join("evil.jsonl");
    let name = "\\u001b]0;pwned\\u0007\\u202e\\u009b31m";
    let event =
        |op: &str| format!("{{\"thread\":\"{name}\",\"op\":\"{op}\",\"target\":\"{name}\"}}\n");
    std::fs::write(&trace, event("w") + &event("r")).unwrap();
    // The socket may exist a moment before the observer listens.
    let send = ["--to", &address, "--retry", "60", "--name", "\u{1b}[2J\u{202e}x"];
    let sent = Command::new(FORESEE).arg("send").arg(&trace).args(send).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    let is_bad = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(is_bad), "{text:?}");
    assert!(text.contains("\\u{1b}[2J\\u{202e}x"), "{text:?}");
    assert!(!socket.exists(), "the socket is removed");
}

/// How many times each side is killed.
const KILLS: u64 = 150;

/// The sender is killed at random moments; its trace is analysed as far as it came.
#[test]
fn senders_may_be_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut observer = Observer::start(folder.path(), &["--linger", "0"]);
    let trace = landing(folder.path(), 20, 200);
    for kill in 0..KILLS {
        let args = ["--to", &observer.address, "--rate", "10000", "--connections", "2"];
        let mut sender = Command::new(FORESEE)
            .arg("send")
            .arg(&trace)
            .args(args)
            .args(["--name", &kill.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..30_000)));
        let _ = sender.kill();
        sender.wait().unwrap();
    }
    // One that is not killed comes last.
    assert!(observer.send(&trace, &["--name", "last"]).status.success());
    let mut found = std::collections::HashSet::new();
    loop {
        let line = observer.line().expect("the observer is alive");
        let name = line["program"]["name"].as_str().unwrap_or_default().to_owned();
        match line["what"].as_str().unwrap() {
            "finding" => drop(found.insert(name)),
            "verdict" => {
                let is_found = !names_of(&line["report"]).is_empty();
                assert!(is_found || !found.contains(&name), "{line}");
                if name == "last" {
                    break;
                }
            }
            "error" => panic!("{line}"),
            _ => {}
        }
    }
    observer.signal("-INT");
    observer.finish();
}

/// The observer is killed at random moments and started again; senders go on where it stopped, and
/// nothing that was stored is unreadable.
#[test]
fn the_observer_may_be_killed() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let trace = landing(folder.path(), 20, 20_000);
    // The same address each time, so that senders find it; another process could have taken a port
    // by then.
    let listen = format!("unix:{}", folder.path().join("socket").display());
    let flags = ["--listen", &listen, "--keep", keep.to_str().unwrap(), "--linger", "20"];
    let sender = || {
        Command::new(FORESEE)
            .arg("send")
            .arg(&trace)
            .args(["--to", &listen, "--frame", "16", "--rate", "20000", "--retry", "60"])
            .args(["--connections", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut senders = Vec::new();
    let mut found = std::collections::HashSet::new();
    let mut verdicts: std::collections::HashMap<String, Value> = std::collections::HashMap::new();
    let mut note = |line: Value, found: &mut std::collections::HashSet<String>| {
        let id = line["program"]["id"].as_str().unwrap_or_default().to_owned();
        match line["what"].as_str().unwrap() {
            "finding" => drop(found.insert(id)),
            "verdict" => drop(verdicts.insert(id, line["report"].clone())),
            _ => {}
        }
    };
    for kill in 0..KILLS {
        let mut observer = Observer::start(folder.path(), &flags);
        if kill % 30 == 0 {
            senders.push(sender());
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..40_000)));
        observer.child.kill().unwrap();
        while let Some(line) = observer.line() {
            note(line, &mut found);
        }
        drop(observer);
        for entry in keep.read_dir().into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let opened = foresee_formats::open(&entry.path(), None);
            let Ok(mut opened) = opened else { panic!("{entry:?} cannot be opened") };
            foresee_trace::Trace::load(&mut opened.source)
                .unwrap_or_else(|e| panic!("{entry:?} cannot be read: {e}"));
        }
    }
    let mut observer = Observer::start(folder.path(), &flags);
    for sender in senders {
        let output = sender.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    observer.signal("-INT");
    while let Some(line) = observer.line() {
        note(line, &mut found);
    }
    // Whatever was found before a kill is in the verdict in the end, and the traces are whole.
    assert!(!found.is_empty());
    for (id, report) in &verdicts {
        assert_eq!(names_of(report), ["predicted"], "{id}");
    }
    let whole = keep.read_dir().unwrap().flatten().filter(|entry| {
        if entry.file_name().to_string_lossy().starts_with('.') {
            return false;
        }
        let mut opened = foresee_formats::open(&entry.path(), None).unwrap();
        let trace = foresee_trace::Trace::load(&mut opened.source).unwrap();
        entry.path().extension().is_some_and(|e| e == "fse") && trace.events.len() == 20_023
    });
    assert_eq!(whole.count() as u64, KILLS / 30);
    assert!(found.iter().all(|id| verdicts.contains_key(id)));
}

#[test]
fn figures_are_served_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let mut observer = Observer::start(folder.path(), &["--metrics", "127.0.0.1:0"]);
    let metrics = observer.next("metrics")["address"].as_str().unwrap().to_owned();
    let page = || {
        let mut stream = TcpStream::connect(&metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    let trace = landing(folder.path(), 10, 10);
    let mut send = Command::new(FORESEE);
    send.arg("send").arg(&trace).args(["--to", &observer.address]);
    assert!(send.output().unwrap().status.success());
    observer.next("verdict");
    let until = Instant::now() + PATIENCE;
    while !page().contains("\nforesee_programs_total 1\n") {
        assert!(Instant::now() < until, "{}", page());
        std::thread::sleep(Duration::from_millis(20));
    }
    let page = page();
    assert!(
        page.contains("foresee_findings_total{property=\"safe\",kind=\"predicted\"} 1\n"),
        "{page}"
    );
    assert!(page.contains("\nforesee_programs_running 0\n"), "{page}");
}
