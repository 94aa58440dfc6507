/** The suite beside the real clangd. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { count, screenshot, texts, waitFor } from "./desk";
import { activeLine, api, facts, hoverTexts, openExtension, openSource, ourDiagnostics, putCursor, source, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const { lines } = facts;

const tests: readonly Test[] = [
  ["hovers of both are shown", async () => {
    const editor = await openSource();
    await openExtension();
    await waitForServer(api);
    const column = editor.document.lineAt(lines.victim).text.indexOf("signal");
    const at = new vscode.Position(lines.victim, column + 1);
    const found = await until("both hovers", () => hoverTexts(source, at), (all) => all.some((text) => text.includes("variable `signal`")) && all.some((text) => /long_scoreboard|global memory/.test(text)));
    assert.equal(new Set(found).size, found.length, found.join("\n---\n"));
    editor.selection = new vscode.Selection(at, at);
    await vscode.commands.executeCommand("editor.action.showHover");
    await waitFor(".monaco-hover", "const float signal");
    const rows = await until("both parts", () => texts(".monaco-hover .hover-row"), (all) => all.some((text) => text.includes("const float signal")) && all.some((text) => text.includes("of the samples")));
    const order = (words: string): number => rows.findIndex((text) => text.includes(words));
    assert.ok(order("const float signal") < order("of the samples"), rows.join("\n---\n"));
    await screenshot("hover-beside-clangd");
    await vscode.commands.executeCommand("editor.action.hideHover");
  }],
  ["the definition is clangd's, and the jump goes there at once", async () => {
    await vscode.commands.executeCommand("editor.action.revealDefinition");
    await until("the jump", activeLine, (line) => line === lines.cause);
    assert.equal(await count(".peekview-widget"), 0);
  }],
  ["our problems stand beside clangd's", async () => {
    const editor = await openSource();
    await editor.edit((builder) => builder.insert(new vscode.Position(lines.victim, 8), "missing; "));
    await until("clangd's problem", () => vscode.languages.getDiagnostics(source), (all) => all.some(({ message }) => message.includes("missing")));
    assert.ok(ourDiagnostics(source).length > 0);
    await vscode.commands.executeCommand("undo");
  }],
  ["what clangd offers to do is offered beside ours", async () => {
    const editor = await openSource();
    await waitForServer(api);
    const line = lines.doubles;
    const from = editor.document.lineAt(line).text.indexOf("value * 0.7");
    const span = new vscode.Range(line, from, line, from + "value * 0.7".length);
    const list = () => vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", source, span);
    const titles = (await until("both", list, (all) => all.some(({ title }) => title.startsWith("Extract")) && all.some(({ title }) => title.startsWith("Write 0.7f")))).map(({ title }) => title);
    assert.equal(new Set(titles).size, titles.length, titles.join("\n"));
  }],
  ["clangd's hover comes first, and neither says what the other says", async () => {
    const editor = await openSource();
    const column = editor.document.lineAt(lines.victim).text.indexOf("signal");
    const found = await hoverTexts(source, new vscode.Position(lines.victim, column + 1));
    const ours = found.findIndex((text) => text.includes("long_scoreboard"));
    const theirs = found.findIndex((text) => text.includes("variable `signal`"));
    assert.ok(theirs >= 0 && ours >= 0 && theirs < ours, found.join("\n---\n"));
    assert.equal(found.filter((text) => text.includes("long_scoreboard")).length, 1);
    const there = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>("vscode.executeDefinitionProvider", source, new vscode.Position(lines.victim, column + 1));
    assert.equal(there.length, 1);
  }],
  ["the chain of calls is clangd's, ours has a tree of its own", async () => {
    const editor = await openSource();
    await putCursor(editor, lines.victim);
    const at = new vscode.Position(lines.kernel, editor.document.lineAt(lines.kernel).text.indexOf("relax"));
    const items = await vscode.commands.executeCommand<vscode.CallHierarchyItem[]>("vscode.prepareCallHierarchy", source, at);
    assert.deepEqual(items.map(({ name }) => name), ["relax"]);
    await vscode.commands.executeCommand("gpa.showChain");
    assert.ok((await api.chain.getChildren()).length >= 1);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
