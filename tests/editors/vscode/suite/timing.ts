/** A described launch is timed with each save on a GPU that is made up: asked first, and compared with before the edit. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import * as vscode from "vscode";
import { screenshot } from "./desk";
import { answerNotification, api, facts, hoverTexts, lensTitles, openExtension, openSource, putCursor, source, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const moving = vscode.Uri.joinPath(source, "..", "..", "moving.cu");

async function openMoving(): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(moving, { viewColumn: vscode.ViewColumn.One, preview: false });
}

async function waitForLens(words: RegExp): Promise<void> {
  await until(`a lens with ${words}`, () => lensTitles(moving), (all) => all.some((title) => words.test(title)));
}

async function hintTexts(first: number, last: number): Promise<readonly string[]> {
  const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", moving, new vscode.Range(first, 0, last, 0));
  return hints.map(({ label }) => (typeof label === "string" ? label : label.map(({ value }) => value).join("")));
}

const tests: readonly Test[] = [
  ["the first save asks, and then the launch is timed", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    const editor = await openMoving();
    await waitForLens(/^predicted: /);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "// saved\n"));
    await editor.document.save();
    await answerNotification("Timing runs kernels on Made-up GPU", "Always in this workspace");
    await waitForLens(/^measured 41\.2 µs ± 0\.05/);
    await screenshot("timed-dark");
  }],
  ["an edit is compared with before it", async () => {
    writeFileSync(facts.times ?? "", "36256");
    const editor = await openMoving();
    const at = editor.document.getText().indexOf("= in[");
    await editor.edit((edit) => edit.insert(editor.document.positionAt(at + 2), "2 * "));
    await editor.document.save();
    await waitForLens(/^measured 36\.3 µs ± 0\.05, 12 % faster than before your edit/);
    await until("the status", () => api.statusBar[0], (text) => text?.includes("transpose measured 36.3 µs") === true);
    await until("the hint", () => hintTexts(0, 5), (all) => all.some((label) => /^(measured|·) 36\.3 µs/.test(label)));
    await putCursor(editor, 1);
    await until("the hover", () => hoverTexts(moving, new vscode.Position(1, 20)), (all) => all.some((text) => text.includes("before 41.2 µs")));
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
    await screenshot("timed-edit-dark");
    assert.ok(api.heatOf(moving).simulated.length === 0);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
