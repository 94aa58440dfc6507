/** Colours of hot lines. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { screenshot } from "../desk";
import { activeLine, api, drawnBackgrounds, drawnStyles, facts, openSource, pressInText, putCursor, source, startOver } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

export const heat: readonly Test[] = [
  ["heat is drawn on the lines the server named", async () => {
    const editor = await startOver();
    await putCursor(editor, 0);
    const { marks, stale, unverified } = await until("heat", () => api.heatOf(source), (known) => known.marks.length > 0);
    assert.deepEqual([stale, unverified], [[], []]);
    assert.equal(marks.find(({ line }) => line === lines.victim)?.kind, "suffers");
    assert.equal(marks.find(({ line }) => line === lines.cause)?.kind, "causes");
    assert.ok(new Set(marks.map(({ line }) => line)).size === marks.length);
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
    await screenshot("heat-dark");
  }],
  ["it is drawn again when the document comes back into view", async () => {
    const { marks } = api.heatOf(source);
    await vscode.commands.executeCommand("workbench.action.files.newUntitledFile");
    await until("no colours", drawnBackgrounds, (all) => all.length === 0);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await openSource();
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
  }],
  ["it can be switched off and on", async () => {
    const { marks } = api.heatOf(source);
    await vscode.commands.executeCommand("gpa.toggleHeat");
    await until("no colours", drawnBackgrounds, (all) => all.length === 0);
    await vscode.commands.executeCommand("gpa.toggleHeat");
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
  }],
  ["a line that is changed loses its number and is marked as stale; undone, it has it again", async () => {
    const editor = await startOver();
    const { version } = editor.document;
    await editor.edit((builder) => builder.insert(new vscode.Position(lines.victim, 8), "1.0f * "));
    const changed = await until("stale lines", () => api.heatOf(source), ({ stale }) => stale.includes(lines.victim));
    assert.ok(!changed.marks.some(({ line }) => line === lines.victim));
    assert.ok(editor.document.version > version);
    await until("dots", () => drawnStyles("border-left-style"), (all) => all.includes("dotted"));
    await screenshot("stale-dark");
    await vscode.commands.executeCommand("undo");
    await until("no stale lines", () => api.heatOf(source), ({ stale, marks }) => stale.length === 0 && marks.some(({ line }) => line === lines.victim));
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["the next hot line and the one before are a key away", async () => {
    const editor = await startOver();
    await putCursor(editor, 0);
    const { marks } = await until("heat", () => api.heatOf(source), (known) => known.marks.length > 0 && known.stale.length === 0);
    const hot = marks.map(({ line }) => line);
    await pressInText("Control+F8");
    await until("the first hot line", activeLine, (line) => line === hot[0]);
    await pressInText("Control+F8");
    await until("the second hot line", activeLine, (line) => line === hot[1]);
    await pressInText("Control+Shift+F8");
    await until("the first hot line again", activeLine, (line) => line === hot[0]);
    await putCursor(editor, 0);
    await Promise.all([vscode.commands.executeCommand("gpa.nextHotLine"), vscode.commands.executeCommand("gpa.nextHotLine")]);
    await until("two lines on, however quick they come", activeLine, (line) => line === hot[1]);
  }],
];
