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
    void vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await type("./symbols");
    await screenshot("record-dark");
    await press("Enter");
    await answerNotification("Recording launches runs a program", "Run once");
    await waitForNotification("recorded launches of 1 kernel: filter");
    await until("the lens", () => lensTitles(kernel), (all) => all.some((title) => title.startsWith("predicted: ")));
    await screenshot("recorded-dark");
    assert.ok(api.measuringOutput.includes("symbols: right"), api.measuringOutput);
  }],
  ["what was run last is offered again, and nothing runs against the answer", async () => {
    void vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await press("Enter");
    await answerNotification("-- ./symbols", "Never");
    await until("the end of the question", () => api.status?.question, (question) => question === "");
    assert.notEqual(api.status?.state, "recording");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
