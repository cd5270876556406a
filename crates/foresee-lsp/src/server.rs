//! The conversation with the editor.

use std::collections::HashMap;
use std::io;

use foresee_trace::Names;
use lsp_server::{Connection, ErrorCode, Message, Notification, ProtocolError, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{Completion, Formatting, HoverRequest, Request as _};
use lsp_types::{
    CompletionOptions, CompletionParams, CompletionResponse, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams, HoverParams,
    HoverProviderCapability, InitializeResult, OneOf, Position, PublishDiagnosticsParams,
    ServerCapabilities, ServerInfo, TextDocumentPositionParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextEdit, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::completion::complete;
use crate::document::Document;
use crate::hover::hover;
use crate::transport;

/// How much text all open files may have, in bytes.
const MOST_TEXT: usize = 256 << 20;

/// Why a server ended before the editor ended it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The editor does not keep to the protocol.
    #[error("the editor does not keep to the protocol")]
    Protocol(#[source] ProtocolError),
    /// The connection broke.
    #[error("the connection to the editor broke")]
    Io(#[from] io::Error),
    /// The editor went away without saying so.
    #[error("the editor closed the connection")]
    Closed,
    /// The open files are too large.
    #[error("the open files have more than {} MiB of text", MOST_TEXT >> 20)]
    Full,
}

impl From<ProtocolError> for ServeError {
    fn from(error: ProtocolError) -> ServeError {
        match error.channel_is_disconnected() {
            true => ServeError::Closed,
            false => ServeError::Protocol(error),
        }
    }
}

/// The names that the server knows, besides those of the files.
#[derive(Debug, Default)]
pub struct Known {
    /// Those of a trace, for diagnostics, completion and hovers: what is not among them cannot match.
    pub trace: Option<Names>,
    /// Those of a program, for completion: variables, and functions as methods.
    pub program: Option<Names>,
}

/// Serves an editor on standard input and output until it says that it is done.
pub fn serve(known: Known) -> Result<(), ServeError> {
    let (connection, ends) = transport::start(io::stdin(), io::stdout())?;
    let result = serve_on(&connection, known);
    // The threads end when their channels do.
    drop(connection);
    match result {
        Ok(()) => Ok(ends.written()?),
        Err(ServeError::Closed) => Err(ends.broken().map_or(ServeError::Closed, ServeError::Io)),
        Err(error) => Err(error),
    }
}

/// The same on any connection.
pub fn serve_on(connection: &Connection, known: Known) -> Result<(), ServeError> {
    let (id, _) = connection.initialize_start()?;
    let offered = InitializeResult {
        capabilities: ServerCapabilities {
            text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            completion_provider: Some(CompletionOptions::default()),
            document_formatting_provider: Some(OneOf::Left(true)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "foresee".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    };
    let offered = serde_json::to_value(offered).unwrap_or_default();
    connection.initialize_finish(id, offered)?;
    let mut server = Server { connection, known, documents: HashMap::new() };
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                server.request(request)?;
            }
            Message::Notification(notification) => server.notification(notification)?,
            Message::Response(_) => {}
        }
    }
    Err(ServeError::Closed)
}

struct Server<'a> {
    connection: &'a Connection,
    known: Known,
    documents: HashMap<String, Document>,
}

impl Server<'_> {
    fn request(&mut self, request: Request) -> Result<(), ServeError> {
        let known = &self.known;
        let id = request.id.clone();
        let response = match request.method.as_str() {
            HoverRequest::METHOD => answer(request, |params: HoverParams| {
                let (document, at) = self.place(&params.text_document_position_params)?;
                hover(document, at, known.trace.as_ref())
            }),
            Completion::METHOD => answer(request, |params: CompletionParams| {
                let (document, at) = self.place(&params.text_document_position)?;
                Some(CompletionResponse::Array(complete(document, at, known)))
            }),
            Formatting::METHOD => answer(request, |params: DocumentFormattingParams| {
                let document = self.documents.get(params.text_document.uri.as_str())?;
                // What has mistakes is left as it is.
                let new_text = foresee_spec::format(document.text()).ok()?;
                Some(vec![TextEdit { range: document.whole(), new_text }])
            }),
            other => {
                let message = format!("foresee does not answer `{other}`");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, message)
            }
        };
        self.send(Message::Response(response))
    }

    fn notification(&mut self, from: Notification) -> Result<(), ServeError> {
        match from.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(params) = read::<DidOpenTextDocumentParams>(from) {
                    return self.changed(&params.text_document.uri, params.text_document.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                // The whole text is sent with each change.
                if let Some(mut params) = read::<DidChangeTextDocumentParams>(from)
                    && let Some(change) = params.content_changes.pop()
                {
                    return self.changed(&params.text_document.uri, change.text);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(params) = read::<DidCloseTextDocumentParams>(from) {
                    self.documents.remove(params.text_document.uri.as_str());
                    return self.publish(params.text_document.uri, Vec::new());
                }
            }
            // The protocol lets a server ignore what it does not know.
            _ => {}
        }
        Ok(())
    }

    fn changed(&mut self, uri: &Uri, text: String) -> Result<(), ServeError> {
        let document = Document::new(text);
        let diagnostics = document.diagnostics(uri.as_str(), self.known.trace.as_ref());
        self.documents.insert(uri.as_str().to_owned(), document);
        let text = |(uri, document): (&String, &Document)| uri.len() + document.text().len();
        if self.documents.iter().map(text).sum::<usize>() > MOST_TEXT {
            return Err(ServeError::Full);
        }
        self.publish(uri.clone(), diagnostics)
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>) -> Result<(), ServeError> {
        let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
        let method = PublishDiagnostics::METHOD.to_owned();
        self.send(Message::Notification(Notification::new(method, params)))
    }

    fn place(&self, at: &TextDocumentPositionParams) -> Option<(&Document, Position)> {
        Some((self.documents.get(at.text_document.uri.as_str())?, at.position))
    }

    fn send(&self, message: Message) -> Result<(), ServeError> {
        self.connection.sender.send(message).map_err(|_| ServeError::Closed)
    }
}

/// The answer to a request; `null` where there is nothing to say.
fn answer<P: DeserializeOwned, R: Serialize>(
    request: Request,
    find: impl FnOnce(P) -> Option<R>,
) -> Response {
    match serde_json::from_value(request.params) {
        Ok(params) => Response::new_ok(request.id, find(params)),
        Err(error) => {
            Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string())
        }
    }
}

fn read<P: DeserializeOwned>(from: Notification) -> Option<P> {
    serde_json::from_value(from.params).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const URI: &str = "file:///landing.spec";

    /// An editor that is connected to a server in another thread.
    struct Editor {
        connection: Connection,
        server: std::thread::JoinHandle<Result<(), ServeError>>,
        next: i32,
    }

    impl Editor {
        fn new() -> Editor {
            let (connection, theirs) = Connection::memory();
            let mut names = Names::default();
            for name in ["landing", "ctl.radio"] {
                names.vars.intern(name).unwrap();
            }
            names.syms.intern("close").unwrap();
            let mut program = Names::default();
            program.vars.intern("landed_at").unwrap();
            program.syms.intern("land").unwrap();
            let known = Known { trace: Some(names), program: Some(program) };
            let server = std::thread::spawn(move || serve_on(&theirs, known));
            let mut editor = Editor { connection, server, next: 0 };
            let offered = editor.ask("initialize", json!({"capabilities": {}}));
            assert_eq!(offered["serverInfo"]["name"], "foresee");
            editor.tell("initialized", json!({}));
            editor
        }

        fn ask(&mut self, method: &str, params: Value) -> Value {
            self.next += 1;
            let request = Request::new(self.next.into(), method.to_owned(), params);
            self.connection.sender.send(Message::Request(request)).unwrap();
            match self.connection.receiver.recv().unwrap() {
                Message::Response(response) => {
                    assert_eq!(response.id, self.next.into());
                    let refused =
                        |error: lsp_server::ResponseError| json!({"error": error.message});
                    response.response_result.unwrap_or_else(refused)
                }
                other => panic!("{other:?}"),
            }
        }

        fn tell(&self, method: &str, params: Value) {
            let notification = Notification::new(method.to_owned(), params);
            self.connection.sender.send(Message::Notification(notification)).unwrap();
        }

        fn published(&self) -> Value {
            match self.connection.receiver.recv().unwrap() {
                Message::Notification(notification) => notification.params["diagnostics"].clone(),
                other => panic!("{other:?}"),
            }
        }

        fn open(&self, text: &str) -> Value {
            let document = json!({"uri": URI, "languageId": "foresee", "version": 1, "text": text});
            self.tell("textDocument/didOpen", json!({"textDocument": document}));
            self.published()
        }

        fn at(line: u32, character: u32) -> Value {
            json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": character}})
        }

        fn end(mut self) {
            self.ask("shutdown", Value::Null);
            self.tell("exit", Value::Null);
            self.server.join().unwrap().unwrap();
        }
    }

    #[test]
    fn mistakes_are_published_and_taken_back() {
        let editor = Editor::new();
        let found = editor.open("property a: landing = 1\n");
        assert_eq!(found[0]["code"], "single-equals");
        let change = json!({"textDocument": {"uri": URI, "version": 2},
                            "contentChanges": [{"text": "property a: landing == 1\n"}]});
        editor.tell("textDocument/didChange", change);
        assert_eq!(editor.published(), json!([]));
        editor.tell("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
        assert_eq!(editor.published(), json!([]));
        editor.end();
    }

    #[test]
    fn hovers_explain_properties_operators_and_names() {
        let mut editor = Editor::new();
        assert_eq!(
            editor.open("let low = landing < 1\nproperty safe: once low || landing > 3\n"),
            json!([])
        );
        let mut hover = |line, character| {
            editor.ask("textDocument/hover", Editor::at(line, character))["contents"]["value"]
                .clone()
        };
        let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
        assert!(text(hover(1, 10)).contains("safe"));
        assert!(text(hover(1, 16)).contains("some earlier step"));
        assert!(text(hover(1, 21)).contains("landing < 1"));
        assert!(text(hover(1, 29)).contains("a variable"));
        assert_eq!(hover(1, 26), Value::Null);
        editor.end();
    }

    #[test]
    fn words_and_names_are_completed_and_text_is_formatted() {
        let mut editor = Editor::new();
        editor.open("property   a :  rad\n");
        let found = editor.ask("textDocument/completion", Editor::at(0, 19));
        let labels: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|item| item["label"].as_str()).collect();
        assert_eq!(labels, ["ctl.radio"]);
        editor.open("property   a :  land\n");
        let found = editor.ask("textDocument/completion", Editor::at(0, 20));
        let labels: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|item| item["label"].as_str()).collect();
        assert_eq!(labels, ["landing", "landed_at", "land"]);
        let everything = editor.ask("textDocument/completion", Editor::at(0, 15));
        assert!(everything.as_array().unwrap().len() > 20);
        let options =
            json!({"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": true}});
        editor.open("property   a :  landing==1\n");
        let edits = editor.ask("textDocument/formatting", options.clone());
        assert_eq!(edits[0]["newText"], "property a: landing == 1\n");
        editor.open("property a: (\n");
        assert_eq!(editor.ask("textDocument/formatting", options), Value::Null);
        editor.end();
    }

    #[test]
    fn what_is_not_known_is_refused_and_the_conversation_goes_on() {
        let mut editor = Editor::new();
        let refused = editor.ask("textDocument/definition", Editor::at(0, 0));
        assert!(refused["error"].as_str().unwrap().contains("does not answer"));
        let refused = editor.ask("textDocument/hover", json!({"textDocument": 3}));
        assert!(refused["error"].is_string());
        assert_eq!(editor.ask("textDocument/hover", Editor::at(0, 0)), Value::Null);
        editor.tell("textDocument/didOpen", json!({"nothing": true}));
        editor.tell("$/unknown", json!({}));
        editor.end();
    }
}
