// Starts `foresee lsp` for specification files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("foresee");
  const trace = settings.get("trace");
  const server = {
    command: settings.get("path"),
    args: trace ? ["lsp", "--trace", trace] : ["lsp"],
  };
  const selector = { documentSelector: [{ language: "foresee" }] };
  client = new LanguageClient("foresee", "foresee", server, selector);
  return client.start();
};

exports.deactivate = () => client && client.stop();
