/** Ways along stalls, and lists. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { press, screenshot, texts, waitFor, waitForPicker } from "../desk";
import { activeLine, activeScheme, api, facts, putCursor, startOver, textOfLine } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

export const jumps: readonly Test[] = [
  ["one key leads from the victim to the cause, and one more to exactly the causing instruction", async () => {
    const editor = await startOver();
    putCursor(editor, lines.victim);
    await press("Alt+j");
    await until("the cause", activeLine, (line) => line === lines.cause);
    await press("Alt+m");
    await until("the SASS", activeScheme, (scheme) => scheme === "gpa-sass");
    assert.match(textOfLine(), /\bLDG\b/);
    await press("Alt+m");
    await until("the source again", activeScheme, (scheme) => scheme === "file");
    assert.equal(activeLine(), lines.cause);
  }],
  ["the other way leads to the victim", async () => {
    const editor = await startOver();
    putCursor(editor, lines.cause);
    await press("Alt+Shift+j");
    await until("the victim", activeLine, (line) => line === lines.victim);
    await vscode.commands.executeCommand("gpa.back");
    await until("back", activeLine, (line) => line === lines.cause);
  }],
  ["the chain opens as a tree, both ways, and its items lead to their lines", async () => {
    const editor = await startOver();
    putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const roots = await api.chain.getChildren();
    assert.ok(roots.length >= 1);
    const first = (await api.chain.getChildren(roots[0]))[0];
    const item = api.chain.getTreeItem(first);
    assert.equal(item.collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
    await waitFor(".pane-header", "Def-Use Chain");
    await waitFor(".monaco-list-row", String(item.label));
    await api.chain.getChildren(first);
    await screenshot("chain-dark");
    await vscode.commands.executeCommand(item.command?.command ?? "", ...(item.command?.arguments ?? []));
    await until("the line of the item", () => vscode.window.visibleTextEditors.some(({ selection }) => selection.active.line === lines.cause));
  }],
  ["the list of hot spots shows each while it is looked at, and gives back the view when nothing is chosen", async () => {
    const editor = await startOver();
    putCursor(editor, 0);
    void vscode.commands.executeCommand("gpa.listHotSpots");
    await waitFor(".quick-input-list .monaco-list-row");
    const rows = await texts(".quick-input-list .monaco-list-row");
    assert.ok(rows.length >= 2);
    await until("the preview", () => editor.selection.active.line, (line) => line !== 0);
    await waitForPicker();
    await screenshot("hot-spots-dark");
    await press("Escape");
    await until("back", activeLine, (line) => line === 0);
  }],
  ["the list of kernels leads to a kernel", async () => {
    const editor = await startOver();
    putCursor(editor, 0);
    void vscode.commands.executeCommand("gpa.listKernels");
    // The list of the test before is still in the page, hidden: only a title tells them apart, and only a focus says that keys go to it.
    await waitFor(".quick-input-title", "Kernels, longest first");
    await waitFor(".quick-input-list .monaco-list-row", "relax");
    await waitForPicker();
    await press("Enter");
    await until("the definition of the first kernel", () => (activeLine() === 0 ? "" : textOfLine()), (text) => text.includes("__global__ void relax"));
  }],
  ["a page about everything opens as a preview", async () => {
    await vscode.commands.executeCommand("gpa.showReport");
    await until("the preview", () => vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview);
    await screenshot("report-dark");
  }],
  ["the report opens in a panel, runs its scripts and goes to lines of sources", async () => {
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the page", () => api.report.isReady);
    assert.ok(api.report.html?.includes("relax"), "the page is about the kernels of the workspace");
    assert.match(api.report.html ?? "", /Content-Security-Policy" content="default-src (?:'|&#39;)none/, "the page may load nothing");
    await screenshot("page-dark");
  }],
];
