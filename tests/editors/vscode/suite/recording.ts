/** A program is run without a GPU, once its user has typed and allowed it; its launches are emulated on the lines of its source. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { press, screenshot, type, waitFor } from "./desk";
import { answerNotification, api, lensTitles, openExtension, openSource, source, waitForNotification, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const kernel = vscode.Uri.joinPath(source, "..", "..", "symbols.cu");
const INPUT = ".quick-input-widget input:focus";

const tests: readonly Test[] = [
  ["a program that is typed runs when it is allowed, and its kernels are emulated", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await vscode.window.showTextDocument(kernel, { viewColumn: vscode.ViewColumn.One, preview: false });
    const recorded = vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await type("./symbols");
    await screenshot("record-dark");
    await press("Enter");
    await answerNotification("Recording launches runs a program", "Run once");
    assert.equal(await recorded, true); // it is built, with a runtime library of ours, and run: what that takes is the test's own limit
    await waitForNotification("recorded launches of 1 kernel: filter");
    await until("the lens", () => lensTitles(kernel), (all) => all.some((title) => title.startsWith("predicted: ")));
    await screenshot("recorded-dark");
    await until("what it printed", () => api.measuringOutput, (text) => text.includes("symbols: right"));
  }],
  ["what was run last is offered again, and nothing runs against the answer", async () => {
    const recorded = vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await press("Enter");
    await answerNotification("-- ./symbols", "Never");
    await recorded;
    await until("the end of the question", () => api.status?.question, (question) => question === "");
    assert.notEqual(api.status?.state, "recording");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
