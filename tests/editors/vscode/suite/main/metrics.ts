/** What hints, colours and lenses show: one metric, of the person's choice. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { press, screenshot, type, waitFor, waitForPicker } from "../desk";
import { api, facts, lensTitles, openSource, ourDiagnostics, ROW, source, startOver, takeRow, waitForServer } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;
const STATUS = ".statusbar-item";

async function hintsOf(line: number): Promise<string> {
  const range = new vscode.Range(line, 0, line, 500);
  const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, range);
  return hints.map(({ label }) => (typeof label === "string" ? label : label.map(({ value }) => value).join(""))).join(" | ");
}

const heatOf = (line: number): string => api.heatOf(source).marks.find((mark) => mark.line === line)?.text ?? "";

async function choose(words: string): Promise<void> {
  const chosen = vscode.commands.executeCommand("gpa.chooseMetric");
  await waitFor(ROW, "samples and causes");
  await waitForPicker();
  await type(words);
  await takeRow(words);
  await waitFor(".quick-input-widget", undefined, "hidden");
  await chosen;
}

export const metrics: readonly Test[] = [
  ["a list offers what lines can show, and says what the profile lacks", async () => {
    await startOver();
    assert.match(await until("hints", () => hintsOf(lines.victim), Boolean), /← line \d+ · \d+ % samples, long_scoreboard/);
    const chosen = vscode.commands.executeCommand("gpa.chooseMetric");
    await waitFor(ROW, "no profile here has it");
    await waitForPicker();
    await screenshot("metrics-dark");
    await press("Escape");
    await chosen;
    await waitFor(".quick-input-widget", undefined, "hidden");
  }],
  ["hints, heat and lenses switch to it together, with its unit, and it stands in the status bar", async () => {
    await choose("long_scoreboard");
    await waitFor(STATUS, "long_scoreboard");
    await until("hints", () => hintsOf(lines.victim), (text) => /^← line \d+ · \d+ % long_scoreboard$/.test(text));
    await until("heat", () => heatOf(lines.victim), (text) => /^\d+ % long_scoreboard$/.test(text));
    assert.equal(heatOf(lines.cause).includes("causes"), false);
    await until("lenses", () => lensTitles(source), (titles) => titles.some((title) => /relax · \d+ % long_scoreboard/.test(title)));
    await screenshot("metric-reason-dark");
    await choose("time");
    await until("hints", () => hintsOf(lines.victim), (text) => /← line \d+ · \d+ % of samples$/.test(text));
  }],
  ["what the kernels lack is said, and nothing stands on lines", async () => {
    await choose("sectors");
    await until("lenses", () => lensTitles(source), (titles) => titles.some((title) => title.includes("sectors: not in this profile")));
    await until("no hints", () => hintsOf(lines.victim), (text) => text === "");
    await until("no heat", () => api.heatOf(source).marks.length, (marks) => marks === 0);
    await screenshot("metric-lacking-dark");
  }],
  ["the server is restarted on request: everything is there again, the choice holds, and is taken back", async () => {
    await choose("causes");
    await until("hints", () => hintsOf(lines.cause), (text) => /^→ line \d+ · causes \d+ %$/.test(text));
    await vscode.commands.executeCommand("gpa.restart");
    await waitForServer(api);
    await openSource();
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    await until("diagnostics", () => ourDiagnostics(source).length, (found) => found > 0);
    await until("the status bar", () => api.statusBar.join(" "), (text) => text.includes("$(eye) causes"));
    await until("hints", () => hintsOf(lines.cause), (text) => /^→ line \d+ · causes \d+ %$/.test(text));
    await choose("samples and causes");
    await until("the usual hints", () => hintsOf(lines.victim), (text) => /← line \d+ · \d+ % samples, long_scoreboard/.test(text));
    await waitFor(STATUS, "causes", "hidden");
  }],
];
