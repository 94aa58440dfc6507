/** The suite of a workspace that is not trusted: everything is shown, nothing is run. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { click, screenshot } from "./desk";
import { answerNotification, api, facts, openExtension, openSource, ourDiagnostics, source, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const wasMeasured = (): boolean => existsSync(join(facts.control, "runs"));

async function saveChange(): Promise<void> {
  const editor = await openSource();
  await editor.edit((builder) => builder.insert(new vscode.Position(0, 0), "// another line\n"));
  assert.ok(await editor.document.save());
}

const tests: readonly Test[] = [
  ["the server is the user's, not the workspace's, and profiles are shown", async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    await openSource();
    await openExtension();
    await waitForServer(api);
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    await until("diagnostics", () => ourDiagnostics(source).length, (found) => found > 0);
    const configured = vscode.workspace.getConfiguration("gpaLsp");
    assert.notEqual(configured.get("interpreter"), configured.inspect("interpreter")?.workspaceValue);
    assert.equal(existsSync(join(facts.control, "workspace-interpreter")), false);
  }],
  ["neither saving nor the command measures, and nobody is asked", async () => {
    await saveChange();
    assert.notEqual(await vscode.commands.executeCommand("gpaLsp.measure"), true);
    assert.equal(wasMeasured(), false);
    assert.notEqual(api.status?.state, "measuring");
    await screenshot("restricted-dark");
  }],
  ["once the workspace is trusted its own command may run, after it was agreed to", async () => {
    await vscode.commands.executeCommand("workbench.trust.manage");
    await click(".workspace-trust-editor .monaco-button", "Trust");
    await until("trust", () => vscode.workspace.isTrusted, Boolean);
    await until("the workspace's interpreter", () => existsSync(join(facts.control, "workspace-interpreter"))); // the server is restarted with it
    await waitForServer(api);
    await saveChange();
    await answerNotification("measure.py", "Run once");
    await until("a run", wasMeasured);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
