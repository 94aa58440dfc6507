/** A report of many kernels in one long source: nothing freezes while it is read, and no screen is crowded. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { screenshot } from "./desk";
import { activeLine, api, facts, hoverTexts, openExtension, openSource, putCursor, source } from "./editor";
import { pause, runTests, type Test, until } from "./runner";

/** What a reader has before their eyes, and the bounds of what stands there: `inlayHints.onScreen` and three lines of each kernel. */
const SCREEN_LINES = 40;
/** Things that a person gets done while the report is read: a server that does not answer meanwhile lets them do one. Slow machines also read slowly. */
const LEAST_DONE = 10;
/** Between two things a person does. */
const BETWEEN_MS = 150;

const noted: Record<string, number> = {};

/** Keep a figure for people; beside the profiler's own notes. */
function note(name: string, value: number): void {
  noted[name] = Math.round(value);
  writeFileSync(join(facts.control, "crowd.json"), JSON.stringify(noted));
}

async function timed<T>(work: () => PromiseLike<T>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The most of some lines that any screen holds. */
function countOnScreen(lines: readonly number[]): number {
  return Math.max(0, ...lines.map((first) => lines.filter((line) => line >= first && line < first + SCREEN_LINES).length));
}

async function listHints(document: vscode.TextDocument, first: number, last: number): Promise<readonly vscode.InlayHint[]> {
  return vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, new vscode.Range(first, 0, Math.min(last, document.lineCount), 0));
}

const tests: readonly Test[] = [
  ["hovers, hints and typing answer while the report is read", async () => {
    const began = performance.now();
    const editor = await openSource();
    await openExtension();
    await until("the server", () => api.status, (status) => status?.state === "reading");
    await hoverTexts(source, new vscode.Position(0, 8));
    note("the server answers after ms", performance.now() - began);
    const times: number[] = [];
    for (let number = 0; !(api.status?.state === "idle" && api.status.kernels > 0); number += 1) {
      const line = (number * 37) % editor.document.lineCount;
      times.push(await timed(() => hoverTexts(source, new vscode.Position(line, 8))));
      times.push(await timed(() => editor.edit((builder) => builder.insert(new vscode.Position(0, 0), number % 2 === 0 ? " " : "\n"))));
      await pause(BETWEEN_MS);
    }
    note("loaded in ms", performance.now() - began);
    note("hovers and edits while loading", times.length);
    note("longest of them, ms", Math.max(...times));
    note("of them, ms, p90", [...times].sort((one, other) => one - other)[Math.floor(0.9 * times.length)] ?? 0);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    assert.ok(times.length >= LEAST_DONE, `${times.length} answers while the report was read`);
  }],
  ["no screen holds more hints than it bears", async () => {
    const editor = await openSource();
    const { document } = editor;
    const hints = await until("hints", () => listHints(document, 0, document.lineCount), (all) => all.length > 0);
    const perScreen = countOnScreen(hints.map((hint) => hint.position.line));
    note("hints in the file", hints.length);
    note("most hints on a screen", perScreen);
    const kernels = countOnScreen([...document.getText().matchAll(/__global__/g)].map((match) => document.positionAt(match.index).line));
    assert.ok(perScreen <= Math.max(12, 3 * (kernels + 1)), `${perScreen} hints beside ${kernels} kernels`);
    await putCursor(editor, Math.floor(document.lineCount / 2));
    await screenshot("crowd");
  }],
  ["one command shows the others, and hides them again", async () => {
    const { document } = await openSource();
    const few = (await listHints(document, 0, document.lineCount)).length;
    await vscode.commands.executeCommand("gpa.showAllHints");
    await until("all of them", () => listHints(document, 0, document.lineCount), (all) => all.length > few);
    note("all hints", (await listHints(document, 0, document.lineCount)).length);
    await vscode.commands.executeCommand("gpa.showAllHints");
    await until("few again", () => listHints(document, 0, document.lineCount), (all) => all.length === few);
  }],
  ["asking is quick once all is read, also after an edit", async () => {
    const editor = await openSource();
    const asked: number[] = [];
    const edited: number[] = [];
    const before = await until("hints", () => listHints(editor.document, 0, editor.document.lineCount), (all) => all.length > 0);
    let unchanged = 0;
    for (let number = 0; number < 40; number += 1) {
      const line = (number * 97) % (editor.document.lineCount - SCREEN_LINES);
      asked.push(await timed(() => hoverTexts(source, new vscode.Position(line, 8))));
      await editor.edit((builder) => builder.insert(new vscode.Position(line, 0), " "));
      edited.push(await timed(async () => {
        unchanged += (await listHints(editor.document, line, line + SCREEN_LINES)).length;
      }));
    }
    note("longest hover, ms", Math.max(...asked));
    note("longest list of a screen's hints after an edit, ms", Math.max(...edited));
    await vscode.commands.executeCommand("workbench.action.files.revert");
    assert.ok(unchanged > 0, "other lines keep their hints while one is edited");
    await until("all hints again", () => listHints(editor.document, 0, editor.document.lineCount), (all) => all.length === before.length);
  }],
  ["the next hot line is one key away", async () => {
    await putCursor(await openSource(), 0);
    await vscode.commands.executeCommand("gpa.nextHotLine");
    await until("a hot line", activeLine, (line) => line !== undefined && line > 0);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
