/** Ways along stalls, and lists. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { attributes, press, screenshot, texts, waitFor, waitForPicker } from "../desk";
import { activeLine, activeScheme, api, facts, focusText, ourDiagnostics, pressInText, putCursor, ROW, source, startOver, takeRow, textOfLine } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

export const jumps: readonly Test[] = [
  ["one key leads from the victim to the cause, and one more to exactly the causing instruction", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.victim);
    await pressInText("Alt+j");
    await until("the cause", activeLine, (line) => line === lines.cause);
    await pressInText("Alt+m");
    await until("the SASS", activeScheme, (scheme) => scheme === "gpa-sass");
    await until("the instruction", () => textOfLine(), (text) => /\bLDG\b/.test(text)); // the document is there before its cursor
    await pressInText("Alt+m");
    await until("the source again", activeScheme, (scheme) => scheme === "file");
    await until("its line", activeLine, (line) => line === lines.cause);
  }],
  ["the other way leads to the victim", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.cause);
    await pressInText("Alt+Shift+j");
    await until("the victim", activeLine, (line) => line === lines.victim);
  }],
  ["the chain opens as a tree, both ways, and its items lead to their lines", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const roots = await api.chain.getChildren();
    assert.ok(roots.length >= 1);
    const first = (await api.chain.getChildren(roots[0]))[0];
    const item = api.chain.getTreeItem(first);
    assert.equal(item.collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
    assert.match(String(item.label), /^37 % · line 13/); // a narrow view shows how much and where
    await waitFor(".pane-header", "Def-Use Chain");
    await waitFor(".monaco-list-row", String(item.label));
    await api.chain.getChildren(first);
    await screenshot("chain-dark");
    await vscode.commands.executeCommand(item.command?.command ?? "", ...(item.command?.arguments ?? []));
    await until("the line of the item", () => vscode.window.visibleTextEditors.some(({ selection }) => selection.active.line === lines.cause));
  }],
  ["the list of hot spots shows each while it is looked at, and gives back the view when nothing is chosen", async () => {
    const editor = await startOver();
    await putCursor(editor, 0);
    const listed = vscode.commands.executeCommand("gpa.listHotSpots");
    await waitFor(".quick-input-title", "Hot spots, hottest first");
    await until("rows", () => texts(ROW), (rows) => rows.length >= 2);
    await until("the preview", activeLine, (line) => line !== undefined && line !== 0);
    await waitForPicker();
    await screenshot("hot-spots-dark");
    await press("Escape");
    await listed;
    await until("back", activeLine, (line) => line === 0);
  }],
  ["the menu of the status bar is a list that keys walk", async () => {
    const chosen = vscode.commands.executeCommand("gpa.menu");
    await waitFor(ROW, "List Hot Spots");
    await waitForPicker();
    const labels = await attributes(ROW, "aria-label");
    assert.ok(labels.length >= 5 && labels.every((label) => label.length > 3 && !label.includes("$(")), labels.join("\n"));
    await press("ArrowDown");
    await press("Escape");
    await chosen;
  }],
  ["a problem of ours is reached and read by its key", async () => {
    await putCursor(await startOver(), lines.loop);
    await until("problems", () => ourDiagnostics(source), (all) => all.some(({ range }) => range.start.line > lines.loop));
    await focusText();
    await press("Alt+F8");
    await until("the problem", () => texts(".marker-widget"), (all) => all.some((text) => text.includes("long_scoreboard")));
    await press("Escape");
    await waitFor(".marker-widget", undefined, "hidden");
  }],
  ["the list of kernels leads to a kernel", async () => {
    const editor = await startOver();
    await putCursor(editor, 0);
    const listed = vscode.commands.executeCommand("gpa.listKernels");
    // The list of the test before is still in the page, hidden: only a title tells them apart, and only a focus says that keys go to it.
    await waitFor(".quick-input-title", "Kernels, longest first");
    await takeRow("relax");
    await listed;
    await until("the definition of the first kernel", () => (activeLine() === 0 ? "" : textOfLine()), (text) => text.includes("__global__ void relax"));
  }],
  ["the report opens in a panel, runs its scripts and goes to lines of sources", async () => {
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the page", () => api.report.isReady);
    assert.ok(api.report.html?.includes("relax"), "the page is about the kernels of the workspace");
    assert.match(api.report.html ?? "", /Content-Security-Policy" content="default-src (?:'|&#39;)none/, "the page may load nothing");
    for (const part of [/<html[^>]* lang="en"/, /<title>[^<]+<\/title>/, /<main\b/]) {
      assert.match(api.report.html ?? "", part, "it is read aloud by its parts");
    }
    await screenshot("page-dark");
  }],
];
