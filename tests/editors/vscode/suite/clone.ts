/** The suite of a fresh clone: sources newer than the measurement, and no copy of what was measured. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { screenshot } from "./desk";
import { activeLine, answerNotification, api, facts, hoverTexts, lensTitles, openExtension, openSource, putCursor, source, startOver, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

async function hintTexts(): Promise<readonly string[]> {
  const range = new vscode.Range(0, 0, 60, 0);
  const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, range);
  return hints.map(({ label }) => (typeof label === "string" ? label : label.map((part) => part.value).join("")));
}

const tests: readonly Test[] = [
  ["numbers stand on lines with the first load, and are marked", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    const hints = await until("hints", hintTexts, (all) => all.some((text) => / % samples, long_scoreboard \?$/.test(text)));
    assert.deepEqual(hints.filter((text) => text.length > 43), []);
    await until("lenses", () => lensTitles(source), (all) => all.some((title) => title.includes("source unverified")));
    const hovers = await hoverTexts(source, new vscode.Position(facts.lines.victim, 12));
    assert.ok(hovers.some((text) => text.includes("unverified")), hovers.join("\n---\n"));
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
];

export async function run(): Promise<void> {
  await runTests(tests);
}
