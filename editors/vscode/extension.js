// Starts `foresee lsp` for specification files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("foresee");
  const named = ["trace", "program"].filter((name) => settings.get(name));
  const server = {
    command: settings.get("path"),
    args: ["lsp", ...named.flatMap((name) => [`--${name}`, settings.get(name)])],
  };
  const selector = { documentSelector: [{ language: "foresee" }] };
  client = new LanguageClient("foresee", "foresee", server, selector);
  return client.start();
};

exports.deactivate = () => client && client.stop();
