/** What the compiler makes of a fix, before it is applied: in the menu, and in the preview. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { press, screenshot, texts, waitFor } from "../desk";
import { facts, openSource, putCursor, source, startOver } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;
const COMPILED = /#pragma unroll 8: 16 → 32 registers, occupancy unchanged, loads in flight 1 → 8/;

async function listTitles(line: number): Promise<readonly string[]> {
  const range = new vscode.Range(line, 0, line, 0);
  const found = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", source, range, vscode.CodeActionKind.QuickFix.value);
  return found.map(({ title }) => title);
}

export const fixing: readonly Test[] = [
  ["the menu says what the compiler makes of a fix, and the preview more; nothing is applied before it is read", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.loop);
    await until("a compiled fix", () => listTitles(lines.loop), (all) => all.some((title) => COMPILED.test(title)));
    await vscode.commands.executeCommand("editor.action.quickFix");
    await waitFor(".action-widget .monaco-list-row.focused"); // what is pressed next goes to the menu
    const titles = await texts(".action-widget .monaco-list-row .title");
    assert.ok(titles.some((title) => COMPILED.test(title)), titles.join("\n"));
    await screenshot("fix-menu-dark");
    await press("Control+Enter");
    await waitFor(".bulk-edit-panel .monaco-list-row", "unroll 8");
    await screenshot("fix-preview-dark");
    await openSource();
    assert.equal(editor.document.isDirty, false);
    await vscode.commands.executeCommand("refactorPreview.apply");
    await until("the pragma", () => editor.document.getText(), (text) => text.includes("#pragma unroll 8"));
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await vscode.commands.executeCommand("workbench.action.closePanel");
  }],
];
