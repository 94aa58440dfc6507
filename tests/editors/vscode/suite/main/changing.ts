/** Rewriting and measuring. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { click, press, screenshot, waitFor, waitForPicker } from "../desk";
import { answerNotification, api, facts, hoverTexts, lensTitles, openSass, openSource, putCursor, ROW, sassEditor, source, startOver, waitForNotification } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

const runs = (): number => (existsSync(join(facts.control, "runs")) ? readFileSync(join(facts.control, "runs"), "utf8").split("\n").length - 1 : 0);
const behave = (behaviour: string): void => writeFileSync(join(facts.control, "behaviour"), behaviour);

function runningProfilers(): readonly number[] {
  const file = join(facts.control, "pids");
  const pids = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number) : [];
  return pids.filter((pid) => existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
}

async function edit(find: string, replacement: string): Promise<void> {
  const editor = await openSource();
  const offset = editor.document.getText().indexOf(find);
  assert.notEqual(offset, -1, `${find} is not in the source`);
  const range = new vscode.Range(editor.document.positionAt(offset), editor.document.positionAt(offset + find.length));
  assert.ok(await editor.edit((builder) => builder.replace(range, replacement)));
}

/** What the line of the tree waits for most. */
async function firstOfChain(): Promise<string> {
  const [heading] = await api.chain.getChildren();
  const [link] = heading === undefined ? [] : await api.chain.getChildren(heading);
  return link === undefined ? "" : String(api.chain.getTreeItem(link).label);
}

const sassTextOf = (editor: vscode.TextEditor | undefined): string => editor?.document.getText() ?? "";

export const changing: readonly Test[] = [
  ["a quick fix rewrites the double constants", async () => {
    const editor = await startOver();
    const before = editor.document.lineAt(lines.doubles).text;
    const range = editor.document.lineAt(lines.doubles).range;
    const actions = await until(
      "a quick fix", () => vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", source, range, vscode.CodeActionKind.QuickFix.value, 50),
      (all) => all.some((action) => action.edit !== undefined && /f\b|float/i.test(action.title)),
    );
    const action = actions.find((one) => one.edit !== undefined && /f\b|float/i.test(one.title));
    assert.ok(await vscode.workspace.applyEdit(action?.edit as vscode.WorkspaceEdit));
    const after = editor.document.lineAt(lines.doubles).text;
    assert.notEqual(after, before);
    assert.match(after, /0\.7f.*0\.1f/);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["saving measures after the command was agreed to, and the lens says what changed", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    await until("the chain", firstOfChain, (label) => label.startsWith("37 % "));
    const text = sassTextOf(await openSass(lines.cause));
    await openSource();
    await edit("value * 0.7 + 0.1", "value * 0.7f + 0.1f");
    assert.equal(runs(), 0);
    await editor.document.save();
    await waitForNotification("measure.py");
    await screenshot("confirm-dark");
    assert.equal(runs(), 0);
    await until("the question in the status bar", () => api.statusBar[0], (text) => text?.includes("a save waits for your answer") === true);
    await vscode.commands.executeCommand("notifications.hideToasts"); // as it does by itself after a while
    await waitFor(".notifications-toasts .notification-list-item", "measure.py", "hidden");
    await screenshot("save-waits-dark");
    assert.equal(api.status?.state, "asking");
    await click(".statusbar-item a", "a save waits");
    await answerNotification("measure.py", "Run once");
    await until("a run", runs, (times) => times === 1);
    await until("its output", () => api.measuringOutput, (text) => text.includes("profiler: done"));
    await until("a lens that says what changed", () => lensTitles(source), (titles) => titles.some((title) => /−\s*\d+ % since/.test(title)));
    await until("the new numbers in the chain", firstOfChain, (label) => label.startsWith("68 % "));
    await until("other instructions in the SASS that is open", () => sassTextOf(sassEditor()), (now) => now !== "" && now !== text);
    await waitFor(".monaco-list-row", "68 % · line 13");
    await screenshot("measured-dark");
  }],
  ["the page of a line draws the time over the runs, and a link of its hover opens it", async () => {
    const isPreview = () => vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview;
    const page = await vscode.commands.executeCommand<string>("gpaLsp.showLine", source.toString(), lines.victim);
    assert.match(page, /\*\*history\*\* [▁-█] ?[^ ]* ?186 µs → 10\d µs over 2 runs; no regression/);
    await until("the page", isPreview);
    await putCursor(await startOver(), lines.victim);
    await until("a hover of ours", () => hoverTexts(source, new vscode.Position(lines.victim, 12)), (all) => all.some((text) => text.includes("[table](command:gpaLsp.showLine")));
    await vscode.commands.executeCommand("editor.action.showHover", { focus: "autoFocusImmediately" });
    await click(".monaco-hover a", "table");
    await until("the page again", isPreview);
  }],
  ["after once a later save asks again, and closing the question is no answer", async () => {
    await startOver();
    await edit("value * 0.7f + 0.1f", "value * 0.7 + 0.1");
    await (await openSource()).document.save();
    await waitForNotification("measure.py");
    assert.equal(runs(), 1);
    await vscode.commands.executeCommand("notifications.clearAll");
    await until("it still waits", () => api.status?.state, (state) => state === "asking");
    await vscode.commands.executeCommand("gpa.answerMeasuring");
    await answerNotification("measure.py", "Always in this workspace");
    await until("a run", runs, (times) => times === 2);
    await until("its end", () => api.status?.state, (state) => state === "idle");
    assert.equal(api.status?.question, "");
  }],
  ["another measurement of a kernel is shown from its list, and the newest again", async () => {
    await startOver();
    const readTime = async (): Promise<string> => (await lensTitles(source)).find((title) => title.startsWith("relax · "))?.split(" · ")[1] ?? "";
    const listTexts = async (): Promise<readonly string[]> =>
      (await vscode.commands.executeCommand<{ text: string }[]>("gpaLsp.listMeasurements", source.toString(), lines.victim)).map(({ text }) => text);
    const [last = ""] = await until("all of them", listTexts, (all) => all.length === 3);
    const newest = await until("the newest", readTime, (time) => time !== "" && last.includes(time));
    for (const row of [1, 0]) {
      const chosen = vscode.commands.executeCommand("gpa.chooseMeasurement");
      await waitFor(ROW, newest);
      await waitForPicker();
      await screenshot(`choose-measurement-${row}`);
      for (let step = 0; step < row; step++) {
        await press("ArrowDown");
      }
      await press("Enter");
      await chosen;
      await until("the lens", readTime, (time) => time !== "" && (time === newest) === (row === 0));
    }
  }],
  ["measuring is cancelled, and no process is left", async () => {
    behave("hang");
    await startOver();
    const measured = vscode.commands.executeCommand("gpa.measure");
    await until("two processes", runningProfilers, (pids) => pids.length === 2);
    await until("status", () => api.status?.state, (state) => state === "measuring");
    await screenshot("measuring-dark");
    await vscode.commands.executeCommand("gpa.cancelMeasuring");
    await until("no process", runningProfilers, (pids) => pids.length === 0);
    await until("status", () => api.status?.state, (state) => state === "idle");
    await measured;
    behave("measure");
  }],
  ["a run that fails is explained", async () => {
    behave("fail");
    const measured = vscode.commands.executeCommand("gpa.measure");
    await waitForNotification("performance counters");
    await measured;
    await screenshot("failed-run-dark");
    await vscode.commands.executeCommand("notifications.clearAll");
    behave("measure");
  }],
];
