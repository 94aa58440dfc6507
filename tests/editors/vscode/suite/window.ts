/** One of two windows on one workspace, each with a server of its own: one measures, both show it, and nobody is asked twice. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { count } from "./desk";
import { answerNotification, api, facts, lensTitles, openExtension, openSource, source, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const isFirst = process.env.GPA_TEST_WINDOW === "first";
const LIMIT_MS = 550_000 * Number(process.env.GPA_LSP_TEST_PATIENCE ?? 1);

/** Windows wait for each other by files beside the profiler's notes. */
function say(word: string): void {
  writeFileSync(join(facts.control, `said-${word}`), "");
}

const waitToHear = (word: string) => until(`the other window says ${word}`, () => existsSync(join(facts.control, `said-${word}`)), Boolean, LIMIT_MS);
const waitForChange = () => until("what changed", () => lensTitles(source), (titles) => titles.some((title) => title.includes("−44 %")), LIMIT_MS);

async function countQuestions(): Promise<number> {
  await vscode.commands.executeCommand("notifications.showList");
  return count(".notifications-center .notification-list-item", "measure.py");
}

const tests: readonly Test[] = [
  ["both windows show the profile", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await until("lenses", () => lensTitles(source), (titles) => titles.some((title) => title.includes("relax")));
    say(isFirst ? "first-reads" : "second-reads");
    await waitToHear(isFirst ? "second-reads" : "first-reads");
  }],
  ["what one measures both show, with what changed", async () => {
    if (isFirst) {
      const editor = await openSource();
      const line = facts.lines.doubles;
      const { text } = editor.document.lineAt(line);
      const better = text.replace("0.7", "0.7f").replace("0.1", "0.1f");
      await editor.edit((builder) => builder.replace(new vscode.Range(line, 0, line, text.length), better));
      await editor.document.save();
      await answerNotification("measure.py", "Always in this workspace");
    }
    await waitForChange();
    say(isFirst ? "first-compares" : "second-compares");
    await waitToHear(isFirst ? "second-compares" : "first-compares");
  }],
  ["what was allowed in one window is not asked in the other", async () => {
    if (!isFirst) {
      assert.equal(await countQuestions(), 0);
      await vscode.commands.executeCommand("gpa.measure");
      await until("another run", () => readFileSync(join(facts.control, "runs"), "utf8").trim().split("\n").length, (runs) => runs === 2, LIMIT_MS);
      await until("its end", () => api.status?.state, (state) => state === "idle", LIMIT_MS);
      assert.equal(await countQuestions(), 0);
      say("second-measured");
    }
    await waitToHear("second-measured");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
