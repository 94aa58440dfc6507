/** The suite of the packaged extension, with the server that comes along. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import * as vscode from "vscode";
import { screenshot, waitFor } from "./desk";
import { api, facts, openExtension, openSource, ourDiagnostics, source, waitForNotification, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";


/** Command lines of the processes of this run. */
function commandLines(): readonly string[] {
  const mark = `GPA_TEST_DESK=${process.env.GPA_TEST_DESK ?? ""}\0`;
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark) ? [readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ")] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
}

const tests: readonly Test[] = [
  ["the server that comes along reads the profile, with the compiled libraries of the interpreter", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await until("diagnostics", () => ourDiagnostics(source).length, (found) => found > 0);
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    assert.ok(commandLines().some((line) => line.includes("bundled/tool/serve.py")), commandLines().join("\n"));
  }],
  ["an interpreter without the libraries is named, with what it lacks and what to do", async () => {
    const settings = vscode.workspace.getConfiguration("gpaLsp");
    const before = settings.get<string>("interpreter");
    await settings.update("interpreter", facts.bareInterpreter, vscode.ConfigurationTarget.Workspace);
    await waitForNotification("lacks");
    await waitForNotification("The extension can make a Python environment of its own");
    await waitFor(".notification-list-item .monaco-button", "Create Environment");
    await screenshot("no-server-dark");
    assert.equal(api.isRunning, false);
    assert.deepEqual(api.heatOf(source).marks, []);
    await settings.update("interpreter", undefined, vscode.ConfigurationTarget.Workspace);
    assert.equal(vscode.workspace.getConfiguration("gpaLsp").get("interpreter"), before);
    await waitForServer(api);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
