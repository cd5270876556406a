//! `foresee lsp`, as an editor starts it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::FORESEE;

fn send(to: &mut impl Write, message: &Value) {
    let text = message.to_string();
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    to.flush().unwrap();
}

fn receive(from: &mut impl BufRead) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        match line.trim() {
            "" => break,
            header => {
                if let Some(n) = header.strip_prefix("Content-Length: ") {
                    length = n.parse().unwrap();
                }
            }
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Before there is any trace, the program itself says what it has.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn names_of_a_program_are_completed() {
    let bench = crate::harness::Bench::new();
    let program = "struct point { int x, y; };\nstruct { struct point at; } tower;\n\
        static int open_doors;\nint close_door(void) { return --open_doors; }\n\
        int main(void) { return close_door() + tower.at.x; }\n";
    bench.write("doors.c", program);
    bench.built("cc -o doors doors.c");
    let mut child = bench.foresee();
    child.args(["lsp", "--program", "doors"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let start = json!({"capabilities": {}});
    send(&mut to, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}));
    receive(&mut from);
    let document = json!({"uri": "file:///a.spec", "languageId": "foresee", "version": 1,
                          "text": "property a: o"});
    let opened = json!({"textDocument": document});
    send(&mut to, &json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
    send(&mut to, &json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened}));
    receive(&mut from);
    let place = json!({"textDocument": {"uri": "file:///a.spec"}, "position": {"line": 0, "character": 12}});
    send(
        &mut to,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "textDocument/completion", "params": place}),
    );
    let proposed = receive(&mut from)["result"].clone();
    let labels: Vec<&str> =
        proposed.as_array().unwrap().iter().filter_map(|item| item["label"].as_str()).collect();
    for name in ["open_doors", "tower", "tower.at.x", "close_door", "main"] {
        assert!(labels.contains(&name), "{name}: {labels:?}");
    }
    drop(to);
    child.wait().unwrap();
    // What is no program is refused.
    let output = bench.foresee().args(["lsp", "--program", "doors.c"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn an_editor_is_told_of_a_name_that_the_trace_does_not_have() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/landing/landing.std");
    let mut child = Command::new(FORESEE)
        .args(["lsp", "--trace", trace])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    send(
        &mut to,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}),
    );
    assert_eq!(receive(&mut from)["result"]["serverInfo"]["name"], "foresee");
    send(&mut to, &json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
    let document = json!({"uri": "file:///a.spec", "languageId": "foresee", "version": 1,
                          "text": "property a: lending == 1\n"});
    send(
        &mut to,
        &json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}),
    );
    let found = receive(&mut from)["params"]["diagnostics"][0]["message"].clone();
    assert!(found.as_str().unwrap().contains("did you mean `landing`?"), "{found}");
    send(&mut to, &json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
    assert_eq!(receive(&mut from)["id"], 2);
    send(&mut to, &json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_broken_connection_and_a_trace_on_standard_input_end_with_2() {
    for (arguments, input) in
        [(&["lsp"][..], "nonsense\r\n\r\n"), (&["lsp"], ""), (&["lsp", "--trace", "-"], "")]
    {
        let mut child = Command::new(FORESEE)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The server may have ended before it is written to.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {input:?}: {said}");
        assert!(said.starts_with("error: "), "{said}");
    }
}

/// Nothing is collected of what cannot be a message, and the reason is said.
#[test]
fn an_endless_stream_is_refused() {
    let child = Command::new(FORESEE)
        .arg("lsp")
        .stdin(std::fs::File::open("/dev/zero").unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the header of a message has more than 4096 bytes"), "{said}");
}
