/** Jumps along stalls: to the cause, to the victim, to the next hot line. */

import { Position, Range, Selection, TextEditorRevealType, Uri, window } from "vscode";
import type { Connection } from "./client";
import type { HeatView } from "./heat";
import { findNextHotLine } from "./heatMarks";
import type { JumpMemory } from "./jumpMemory";
import { showPlace, toProtocol } from "./placement";
import type { HotSpot, Jump } from "./protocol";

type Finder = "gpaLsp.findCauses" | "gpaLsp.findVictims";

const NOTHING: Readonly<Record<Finder, string>> = {
  "gpaLsp.findCauses": "This line is not known to be stalled on another one.",
  "gpaLsp.findVictims": "No line is known to be stalled on this one.",
};

const GO = "Go to the Hottest Line";

/** Jump to the first cause or victim of the line under the cursor; the status bar says how many there are. */
export async function jump(connection: Connection, memory: JumpMemory, finder: Finder): Promise<void> {
  const found = await find(connection, finder);
  const [first] = found;
  if (first !== undefined) {
    await land(memory, first);
    window.setStatusBarMessage(`$(arrow-right) ${first.text}${found.length > 1 ? ` (1 of ${found.length})` : ""}`, 6_000);
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

async function land(memory: JumpMemory, target: Jump): Promise<void> {
  const editor = await showPlace(target);
  memory.remember(target, editor.document.uri.toString(), editor.document.version);
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
