/** Jumps along stalls: to the cause, to the victim, to the next hot line. */

import { commands, Position, type QuickPickItem, Range, Selection, TextEditorRevealType, Uri, window } from "vscode";
import type { Connection } from "./client";
import type { HeatView } from "./heat";
import { findNextHotLine } from "./heatMarks";
import type { JumpMemory } from "./jumpMemory";
import { nameLine, pickWithPreview } from "./lists";
import { placeOf, showPlace, toProtocol } from "./placement";
import type { HotSpot, Jump, Place } from "./protocol";

type Finder = "gpaLsp.findCauses" | "gpaLsp.findVictims";

const NOTHING: Readonly<Record<Finder, string>> = {
  "gpaLsp.findCauses": "This line is not known to wait for another one.",
  "gpaLsp.findVictims": "No line is known to wait for this one.",
};

const GO = "Go to the Hottest Line";

interface JumpItem extends QuickPickItem {
  readonly jump: Jump;
}

/** Jump to the first cause or victim of the line under the cursor; the status bar says how many there are. */
export async function jump(connection: Connection, memory: JumpMemory, finder: Finder): Promise<void> {
  const origin = findCursor(); // before the server is asked: the cursor may go on meanwhile
  const found = await find(connection, finder);
  const [first] = found;
  if (first !== undefined) {
    await land(memory, first, origin);
    window.setStatusBarMessage(`$(arrow-right) ${first.text}${found.length > 1 ? ` (1 of ${found.length})` : ""}`, 6_000);
  }
}

/** Choose among the causes of the line under the cursor. */
export async function chooseCause(connection: Connection, memory: JumpMemory): Promise<void> {
  const origin = findCursor(); // before the server is asked and the list is open: its rows move the cursor
  const found = await find(connection, "gpaLsp.findCauses");
  const items: JumpItem[] = found.map((cause) => ({
    label: cause.text,
    description: nameLine(cause),
    jump: cause,
  }));
  const chosen = items.length === 0 ? undefined : await pickWithPreview("What this line waits for", items, (item) => item.jump);
  if (chosen !== undefined) {
    await land(memory, chosen.jump, origin);
  }
}

async function find(connection: Connection, finder: Finder): Promise<readonly Jump[]> {
  const editor = window.activeTextEditor;
  if (editor === undefined) {
    return [];
  }
  const found = (await connection.run<readonly Jump[] | null>(finder, toProtocol(editor.document.uri), editor.selection.active.line)) ?? [];
  if (found.length === 0) {
    void explain(connection, editor.document.uri, NOTHING[finder]);
  }
  return found;
}

/** A key that does nothing must say so where it is seen, and where there is something to see. */
async function explain(connection: Connection, uri: Uri, text: string): Promise<void> {
  const [hottest] = (await connection.run<readonly HotSpot[] | null>("gpaLsp.listHotSpots", toProtocol(uri))) ?? [];
  const answer = await window.showInformationMessage(text, ...(hottest === undefined ? [] : [GO]));
  if (answer === GO && hottest !== undefined) {
    await showPlace(hottest);
  }
}

function findCursor(): Place | undefined {
  return window.activeTextEditor && placeOf(window.activeTextEditor);
}

async function land(memory: JumpMemory, target: Jump, origin: Place | undefined): Promise<void> {
  if (origin !== undefined) {
    memory.leave(origin);
  }
  const editor = await showPlace(target);
  memory.remember(target, editor.document.uri.toString(), editor.document.version);
}

/** Back to where the last jump began; without one, wherever the editor itself goes back to. */
export async function goBack(memory: JumpMemory): Promise<void> {
  const origin = memory.goBack();
  await (origin === undefined ? commands.executeCommand("workbench.action.navigateBack") : showPlace(origin));
}

interface HotLine {
  readonly line: number;
  readonly text: string;
}

/** Move to the next or previous hot line of this document. */
export async function goToHotLine(connection: Connection, heat: HeatView, step: 1 | -1): Promise<void> {
  const editor = window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const { document } = editor;
  const marks = heat.marksOf(document.uri);
  const hot = marks.length > 0 ? marks : await listHotSpots(connection, document.uri);
  const next = findNextHotLine(hot, editor.selection.active.line, step);
  if (next === undefined || next.line >= document.lineCount) {
    window.setStatusBarMessage("$(info) This file has no hot lines", 4_000);
    return;
  }
  const start = new Position(next.line, document.lineAt(next.line).firstNonWhitespaceCharacterIndex);
  editor.selection = new Selection(start, start); // at once: who presses the key again goes on from there
  editor.revealRange(new Range(start, start), TextEditorRevealType.InCenterIfOutsideViewport);
  window.setStatusBarMessage(`$(flame) ${next.text}`, 6_000);
}

/** The hot spots of a document, where no heat is drawn. */
async function listHotSpots(connection: Connection, uri: Uri): Promise<readonly HotLine[]> {
  const spots = (await connection.run<readonly HotSpot[] | null>("gpaLsp.listHotSpots", toProtocol(uri))) ?? [];
  const here = spots.filter((spot) => Uri.parse(spot.uri, true).toString() === uri.toString());
  return here.map(({ range, text }) => ({ line: range.start.line, text })).sort((one, other) => one.line - other.line);
}
