/** A described launch is simulated when it is saved, and by a code action; what is shown of it is marked. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { screenshot } from "./desk";
import { api, facts, lensTitles, openExtension, openSource, putCursor, source, waitForNotification, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const moving = vscode.Uri.joinPath(source, "..", "..", "moving.cu");
const LINE = 4;
const { lines } = facts;

async function openMoving(): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(moving, { viewColumn: vscode.ViewColumn.One, preview: false });
}

const tests: readonly Test[] = [
  ["a save simulates what is described, and lines and lens say so", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    const editor = await openMoving();
    await until("the prediction", () => lensTitles(moving), (all) => all.some((title) => title.startsWith("predicted: ")));
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "// saved\n"));
    await editor.document.save();
    await until("the lens", () => lensTitles(moving), (all) => all.some((title) => /transpose · .* simulated/.test(title)));
    await until("the heat", () => api.heatOf(moving).simulated, (lines) => lines.includes(LINE + 1));
    const whole = new vscode.Range(0, 0, editor.document.lineCount, 0);
    const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", moving, whole);
    const labels = hints.map((hint) => (typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join("")));
    assert.ok(labels.some((label) => label.endsWith(" simulated") && label.length <= 43), labels.join("\n"));
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
    putCursor(editor, LINE + 1);
    await screenshot("simulated-dark");
  }],
  ["the code action says what came of it", async () => {
    const editor = await openMoving();
    putCursor(editor, 1);
    const range = new vscode.Range(1, 0, 1, 0);
    const ask = () => vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", moving, range);
    const actions = await until("the action", ask, (all) => all.some((one) => one.title === "Simulate the described launches of transpose"));
    const command = actions.find((one) => one.title.startsWith("Simulate"))?.command;
    assert.ok(command !== undefined);
    await vscode.commands.executeCommand(command.command, ...(command.arguments ?? []));
    await waitForNotification("transpose on ");
    await screenshot("simulated-message-dark");
  }],
  ["a measured kernel is shown beside its simulation", async () => {
    await putCursor(await openSource(), lines.victim);
    await vscode.commands.executeCommand("gpa.compareSimulated");
    await until("the page", () => api.report.isReady && api.report.html?.includes("relax: measured and simulated"));
    assert.match(api.report.html ?? "", /relax\.cu:\d+ as measured and relax\.cu:\d+ as simulated/);
    await screenshot("comparison-dark");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
