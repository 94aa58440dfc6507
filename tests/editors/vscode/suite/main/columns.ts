/** What stands beside the instructions of the SASS: heat, columns, an order, colours that tie them to their lines. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { click, count, press, screenshot, type, waitFor, waitForPicker } from "../desk";
import { activeLine, activeScheme, api, drawnBackgrounds, facts, openSass, pressInText, ROW, sassEditor, source, takeRow, textOfLine } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;
const TITLE = /^\/\/ addr /m;

const sassText = (): string => sassEditor()?.document.getText() ?? "";
const titles = (): string => sassText().split("\n").find((line) => TITLE.test(line)) ?? "";

export const columns: readonly Test[] = [
  ["heat is drawn on instructions", async () => {
    await openSass(lines.victim);
    const editor = sassEditor();
    assert.ok(editor);
    const { marks, stale } = await until("heat", () => api.heatOf(editor.document.uri), (known) => known.marks.length > 0);
    assert.deepEqual(stale, []);
    const kindOf = (opcode: RegExp): readonly string[] => marks.filter(({ line }) => opcode.test(editor.document.lineAt(line).text)).map(({ kind }) => kind);
    assert.ok(kindOf(/\bLDG\b/).includes("causes"));
    assert.ok(kindOf(/\bF(FMA|MUL|ADD)\b/).includes("suffers"));
    await until("colours on both sides", drawnBackgrounds, (all) => all.length > api.heatOf(source).marks.length);
  }],
  ["operands are seen in half a window, lines of other files have their file, and padding is one line", async () => {
    const text = sassText();
    const loads = text.split("\n").filter((line) => /\bLDG\b/.test(line) && line.startsWith("/*"));
    assert.ok(loads.length > 0);
    assert.ok(loads.every((line) => line.search(/\bLDG\b/) < 24), loads.join("\n"));
    assert.match(text, /\/\/ .*\bcurves\.cuh:\d+/);
    const paddings = text.split("\n").filter((line) => /\bNOP\b/.test(line));
    assert.equal(paddings.length, 1, paddings.join("\n"));
    assert.match(paddings[0] ?? "", /padding, \d+ times/);
  }],
  ["source and SASS are tied by colours, which can be switched off", async () => {
    const uri = sassEditor()?.document.uri.toString();
    const shown = await until("ties", () => api.ties, (all) => all.length === 2);
    const ofSource = shown.find((one) => one.uri === source.toString());
    const ofSass = shown.find((one) => one.uri === uri);
    const colour = ofSource?.lines.findIndex((all) => all.includes(lines.cause)) ?? -1;
    assert.ok(colour >= 0);
    const instructions = (ofSass?.lines[colour] ?? []).map((line) => sassEditor()?.document.lineAt(line).text ?? "");
    assert.ok(instructions.some((text) => /\bLDG\b/.test(text)), instructions.join("\n"));
    await until("bars in the margins", () => count(".glyph-margin-widgets .cgmr[class*=ced-]"), (bars) => bars > 8);
    await screenshot("ties-dark");
    const settings = vscode.workspace.getConfiguration("gpaLsp");
    await settings.update("sass.syncCursor", false, vscode.ConfigurationTarget.Global);
    await until("no ties", () => api.ties, (all) => all.length === 0);
    await settings.update("sass.syncCursor", undefined, vscode.ConfigurationTarget.Global);
    await until("ties", () => api.ties, (all) => all.length === 2);
  }],
  ["columns are chosen from a list", async () => {
    const before = titles();
    assert.match(before, /share.*line.*stalled by/);
    await vscode.window.showTextDocument(sassEditor()?.document ?? assert.fail(), vscode.ViewColumn.Two);
    await pressInText("Alt+k");
    await waitFor(".quick-input-title", "Columns of the SASS");
    await waitFor(ROW, "executed");
    await waitForPicker();
    await screenshot("columns-dark");
    for (const key of ["ArrowDown", "Space", ...Array.from({ length: 8 }, () => "ArrowDown"), "Space", "Enter"]) {
      await press(key);
    }
    await until("another column", titles, (text) => /alive/.test(text));
    assert.doesNotMatch(titles(), /share/);
    await until("ties of the new text", () => api.ties, (all) => all.length === 2);
    await screenshot("columns-chosen-dark");
  }],
  ["the usual columns come back with a button", async () => {
    const chosen = vscode.commands.executeCommand("gpa.chooseColumns");
    await waitFor(ROW, "executed");
    await click(".quick-input-titlebar .action-label[aria-label='The usual columns']");
    await chosen;
    await until("the usual columns", titles, (text) => /share.*line.*stalled by/.test(text));
  }],
  ["the hottest instructions are a list that jumps, in the order of any column", async () => {
    await vscode.window.showTextDocument(sassEditor()?.document ?? assert.fail(), vscode.ViewColumn.Two);
    await pressInText("Alt+o");
    await waitFor(".quick-input-title", "largest first");
    await waitFor(ROW, "%");
    await waitForPicker();
    await screenshot("instructions-dark");
    await takeRow("%");
    await waitFor(".quick-input-widget", undefined, "hidden");
    await until("the hottest instruction", () => textOfLine(), (text) => /\d\d %.*\bF(FMA|MUL|ADD)\b/.test(text));
    assert.equal(activeScheme(), "gpa-sass");
    const hottest = activeLine();
    const chosen = vscode.commands.executeCommand("gpa.listHotSpots");
    await waitFor(".quick-input-title", "largest first");
    await click(".quick-input-list .monaco-list-row.focused .action-label[aria-label='In the order of another column']");
    await waitFor(ROW, "registers that hold a value");
    await waitForPicker();
    await type("alive");
    await takeRow("registers that hold a value");
    await waitFor(".quick-input-titlebar", "registers that hold a value at it");
    await takeRow("");
    await chosen;
    await until("another instruction", activeLine, (line) => line !== hottest);
  }],
];
