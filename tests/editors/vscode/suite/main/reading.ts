/** What stands in a source after it was opened. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { count, screenshot, texts, waitFor } from "../desk";
import { activeLine, api, facts, hoverTexts, lensTitles, openExtension, openSource, ourDiagnostics, putCursor, source, startOver, waitForServer } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

const KEYS = ["alt+j", "shift+alt+j", "alt+m", "ctrl+f8", "ctrl+shift+f8"];

export const startUp: readonly Test[] = [
  ["the extension starts the server by itself", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    assert.equal(api.isRunning, true);
    assert.equal(api.status?.profiles, 1);
    assert.equal(api.status?.kernels, 2);
    await waitFor(".statusbar-item", api.status?.text.slice(0, 12));
  }],
  ["none of its keys is a default of VS Code", async () => {
    await vscode.commands.executeCommand("workbench.action.openDefaultKeybindingsFile");
    const document = await until("the default keys", () => vscode.workspace.textDocuments.find((open) => open.uri.path.includes("keybindings")));
    const text = (document as vscode.TextDocument).getText();
    const bindings = [...text.matchAll(/"key": "([^"]+)",\s*"command": "([^"]+)"/g)].filter(([, , command]) => !command?.startsWith("gpa."));
    assert.ok(bindings.length > 500);
    assert.deepEqual(bindings.filter(([, key]) => KEYS.includes(key ?? "")).map((found) => found.slice(1)), []);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  }],
];

export const reading: readonly Test[] = [
  ["causes are problems of severity Information, with the lines that wait", async () => {
    const found = await until("diagnostics", () => ourDiagnostics(source), (all) => all.some(({ range }) => range.start.line === lines.cause));
    const cause = found.find(({ range }) => range.start.line === lines.cause);
    assert.equal(cause?.severity, vscode.DiagnosticSeverity.Information);
    assert.ok(cause?.relatedInformation?.some(({ location }) => location.range.start.line === lines.victim));
  }],
  ["a line above each kernel says its time", async () => {
    const titles = await until("lenses", () => lensTitles(source), (all) => all.length >= 2);
    assert.ok(titles.some((title) => /\d (µs|ms)/.test(title)), titles.join(" | "));
  }],
  ["shares stand at the ends of suffering lines", async () => {
    const range = new vscode.Range(0, 0, 40, 0);
    const hints = await until(
      "hints", () => vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, range),
      (all) => all.some(({ position }) => position.line === lines.victim),
    );
    const hint = hints.find(({ position }) => position.line === lines.victim);
    const label = typeof hint?.label === "string" ? hint.label : hint?.label.map((part) => part.value).join("");
    assert.match(label ?? "", /^← line \d+ · \d+ % samples, long_scoreboard$/);
    const labels = hints.map((one) => (typeof one.label === "string" ? one.label : one.label.map((part) => part.value).join("")));
    assert.deepEqual(labels.filter((one) => one.length > 43), [], "VS Code would cut them");
  }],
  ["a setting takes effect at once", async () => {
    const settings = vscode.workspace.getConfiguration("gpaLsp");
    const hints = () => vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, new vscode.Range(0, 0, 40, 0));
    await settings.update("inlayHints.enable", false, vscode.ConfigurationTarget.Workspace);
    await until("no hints", hints, (all) => all.length === 0);
    await settings.update("inlayHints.enable", undefined, vscode.ConfigurationTarget.Workspace);
    await until("hints", hints, (all) => all.length > 0);
  }],
  ["our hover stands beside that of the language's own server", async () => {
    const both = [/neighbour says/, /long_scoreboard|global memory/];
    await until("both hovers", () => hoverTexts(source, new vscode.Position(lines.victim, 12)), (all) => both.every((one) => all.some((text) => one.test(text))));
  }],
  ["the hover is drawn, with nothing raw in it", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("editor.action.showHover", { focus: "autoFocusImmediately" });
    await waitFor(".monaco-hover", "neighbour says");
    await waitFor(".monaco-hover a", "table"); // each part is drawn when it comes
    const rows = await texts(".monaco-hover .hover-row");
    const place = (words: RegExp): number => rows.findIndex((row) => words.test(row));
    assert.ok(place(/neighbour says/) < place(/long_scoreboard|global memory/), rows.join("\n---\n"));
    const [text] = (await texts(".monaco-resizable-hover")).filter((shown) => shown.includes("neighbour says"));
    assert.match(text ?? "", /long_scoreboard|global memory/);
    assert.doesNotMatch(text ?? "", /data:image|\|---|command:/);
    await screenshot("hover-dark");
    await vscode.commands.executeCommand("editor.action.hideHover");
  }],
  ["definitions on a source are the neighbour's alone: no list to choose from", async () => {
    const editor = await startOver();
    const at = new vscode.Position(lines.victim, editor.document.lineAt(lines.victim).text.indexOf("signal"));
    const found = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeDefinitionProvider", source, at);
    assert.equal(found.length, 1);
    editor.selection = new vscode.Selection(at, at);
    await vscode.commands.executeCommand("editor.action.revealDefinition");
    await until("the jump", activeLine, (line) => line === lines.cause);
    assert.equal(await count(".peekview-widget"), 0);
  }],
  ["references and call hierarchy of a source are the neighbour's alone", async () => {
    const at = new vscode.Position(lines.victim, 12);
    const references = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeReferenceProvider", source, at);
    assert.equal(references.length, 0); // the neighbour has none
    const items = await vscode.commands.executeCommand<vscode.CallHierarchyItem[]>("vscode.prepareCallHierarchy", source, at);
    assert.deepEqual(items.map(({ name }) => name), ["neighbour's item"]);
  }],
];
