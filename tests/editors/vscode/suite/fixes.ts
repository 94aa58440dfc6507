/** What the compiler makes of a fix, before it is applied: in the menu, and in the preview. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { press, screenshot, texts, waitFor } from "./desk";
import { api, facts, openExtension, openSource, putCursor, source, startOver, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const { lines } = facts;
const MENU = ".action-widget .monaco-list-row .title";

async function listFixes(line: number): Promise<readonly vscode.CodeAction[]> {
  const range = new vscode.Range(line, 0, line, 0);
  return vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", source, range, vscode.CodeActionKind.QuickFix.value);
}

async function openMenu(line: number, words: RegExp): Promise<readonly string[]> {
  const editor = await startOver();
  await putCursor(editor, line);
  await until(`a fix that says ${words}`, () => listFixes(line), (all) => all.some((one) => words.test(one.title)));
  await vscode.commands.executeCommand("editor.action.quickFix");
  await waitFor(".action-widget .monaco-list-row.focused"); // what is pressed next goes to the menu
  return texts(MENU);
}

const tests: readonly Test[] = [
  ["the server has read the profile", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
  }],
  ["the menu says what the compiler makes of a fix", async () => {
    const titles = await openMenu(lines.loop, /loads in flight 1 → 8/);
    assert.ok(titles.some((title) => /#pragma unroll 8: 16 → 32 registers, occupancy unchanged, loads in flight 1 → 8/.test(title)), titles.join("\n"));
    await screenshot("fix-menu-dark");
  }],
  ["the preview says more, and nothing is applied before it is read", async () => {
    await press("Control+Enter");
    await waitFor(".bulk-edit-panel .monaco-list-row", "unroll 8");
    await screenshot("fix-preview-dark");
    const editor = await openSource();
    assert.equal(editor.document.isDirty, false);
    await vscode.commands.executeCommand("refactorPreview.apply");
    await until("the pragma", () => editor.document.getText(), (text) => text.includes("#pragma unroll 8"));
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
