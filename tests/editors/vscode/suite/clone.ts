/** A fresh clone that is not trusted: sources newer than the measurement, without a copy of what was measured. Everything is shown, marked, and nothing is run. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { click, screenshot } from "./desk";
import { activeLine, answerNotification, api, facts, hoverTexts, lensTitles, openExtension, openSource, ourDiagnostics, putCursor, source, startOver, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const isThere = (name: string): boolean => existsSync(join(facts.control, name));

async function hintTexts(): Promise<readonly string[]> {
  const range = new vscode.Range(0, 0, 60, 0);
  const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, range);
  return hints.map(({ label }) => (typeof label === "string" ? label : label.map((part) => part.value).join("")));
}

async function saveChange(): Promise<void> {
  const editor = await openSource();
  await editor.edit((builder) => builder.insert(new vscode.Position(0, 0), "// another line\n"));
  assert.ok(await editor.document.save());
}

const tests: readonly Test[] = [
  ["the server is the user's, not the workspace's; numbers stand on lines with the first load, and are marked", async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    await openSource();
    await openExtension();
    await waitForServer(api);
    const configured = vscode.workspace.getConfiguration("gpaLsp");
    assert.notEqual(configured.get("interpreter"), configured.inspect("interpreter")?.workspaceValue);
    assert.equal(isThere("workspace-interpreter"), false);
    const hints = await until("hints", hintTexts, (all) => all.some((text) => / % samples, long_scoreboard \?$/.test(text)));
    assert.deepEqual(hints.filter((text) => text.length > 43), []);
    await until("lenses", () => lensTitles(source), (all) => all.some((title) => title.includes("source unverified")));
    const hovers = await hoverTexts(source, new vscode.Position(facts.lines.victim, 12));
    assert.ok(hovers.some((text) => text.includes("unverified")), hovers.join("\n---\n"));
    await until("diagnostics", () => ourDiagnostics(source).length, (found) => found > 0);
    const { marks, unverified } = await until("heat", () => api.heatOf(source), (known) => known.marks.length > 0);
    assert.deepEqual(unverified, marks.map(({ line }) => line));
    await screenshot("clone-dark");
  }],
  ["a jump that leads nowhere says so and offers the hottest line", async () => {
    const editor = await startOver();
    await putCursor(editor, 0);
    await vscode.commands.executeCommand("gpa.goToCause");
    await answerNotification("not known to be stalled", "Go to the Hottest Line");
    await until("the hottest line", activeLine, (line) => line !== undefined && line > 0);
  }],
  ["one message asks what to show, and hides the numbers", async () => {
    await openSource();
    await answerNotification("marked with ?", "Hide");
    await until("no hints", hintTexts, (all) => all.length === 0);
    await until("lenses", () => lensTitles(source), (all) => all.some((title) => title.includes("not this text was measured")));
  }],
  ["neither saving nor the command measures, and nobody is asked", async () => {
    await saveChange();
    assert.notEqual(await vscode.commands.executeCommand("gpaLsp.measure"), true);
    assert.equal(isThere("runs"), false);
    assert.notEqual(api.status?.state, "measuring");
    await screenshot("restricted-dark");
  }],
  ["once the workspace is trusted its own command may run, after it was agreed to", async () => {
    await vscode.commands.executeCommand("workbench.trust.manage");
    await click(".workspace-trust-editor .monaco-button", "Trust");
    await until("trust", () => vscode.workspace.isTrusted, Boolean);
    await until("the workspace's interpreter", () => isThere("workspace-interpreter")); // the server is restarted with it
    await waitForServer(api);
    await saveChange();
    await answerNotification("measure.py", "Run once");
    await until("a run", () => isThere("runs"));
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
