/** Heat: coloured backgrounds of the lines that suffer and cause, marks in the scroll bar, and dotted stripes where numbers are out of date. */

import {
  commands,
  type DecorationOptions,
  type Disposable,
  OverviewRulerLane,
  Range,
  type TextEditor,
  type TextEditorDecorationType,
  ThemeColor,
  Uri,
  window,
  workspace,
} from "vscode";
import type { Connection } from "./client";
import { groupByLook, isCurrent, KINDS, LEVELS } from "./heatMarks";
import type { Heat, HeatKind, HeatMark } from "./protocol";
import { isHeatEnabled, SECTION } from "./settings";

/** Marks in the scroll bar only from here on, so that it shows where to go and not where everything is. */
const LEAST_RULER_LEVEL = 2;

export class HeatView implements Disposable {
  readonly #looks: readonly TextEditorDecorationType[] = (["solid", "dashed"] as const).flatMap((stripe) =>
    KINDS.flatMap((kind) => Array.from({ length: LEVELS }, (_, level) => makeLook(kind, level, stripe))),
  );
  readonly #stale = window.createTextEditorDecorationType({
    isWholeLine: true, borderStyle: "dotted", borderWidth: "0 0 0 2px", borderColor: new ThemeColor("gpaLsp.heat.stale"),
  });
  readonly #known = new Map<string, Heat>();
  readonly #disposables: Disposable[];

  constructor(connection: Connection) {
    this.#disposables = [
      connection.onHeat((heat) => this.#take(heat)),
      connection.onRunning((isRunning) => !isRunning && this.#forgetAll()),
      window.onDidChangeVisibleTextEditors((editors) => editors.forEach((editor) => this.#draw(editor))),
      window.onDidChangeActiveTextEditor(() => this.#tellContext()),
      workspace.onDidCloseTextDocument((document) => this.#known.delete(document.uri.toString())),
      workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(`${SECTION}.heat`) && this.#drawAll()),
    ];
  }

  dispose(): void {
    for (const disposable of [...this.#disposables, ...this.#looks, this.#stale]) {
      disposable.dispose();
    }
  }

  /** What the server last said about a document. */
  marksOf(uri: Uri): readonly HeatMark[] {
    return this.#known.get(uri.toString())?.marks ?? [];
  }

  staleLinesOf(uri: Uri): readonly number[] {
    return this.#known.get(uri.toString())?.stale ?? [];
  }

  /** Of those with marks, the lines of sources that may not be what was measured. */
  unverifiedLinesOf(uri: Uri): readonly number[] {
    return this.#known.get(uri.toString())?.unverified ?? [];
  }

  /** Of those with marks, the lines whose numbers a model says. */
  simulatedLinesOf(uri: Uri): readonly number[] {
    return this.#known.get(uri.toString())?.simulated ?? [];
  }

  #take(heat: Heat): void {
    const uri = Uri.parse(heat.uri).toString();
    const document = workspace.textDocuments.find((open) => open.uri.toString() === uri);
    if (document === undefined || !isCurrent(heat, document.version)) {
      return; // one for the present text is on its way
    }
    this.#known.set(uri, heat);
    window.visibleTextEditors.filter((editor) => editor.document === document).forEach((editor) => this.#draw(editor));
    this.#tellContext();
  }

  #draw(editor: TextEditor): void {
    const heat = this.#known.get(editor.document.uri.toString());
    if (heat !== undefined && !isCurrent(heat, editor.document.version)) {
      return; // what is drawn moves with the text until the server has seen it
    }
    const lineCount = editor.document.lineCount;
    const marks = heat !== undefined && isHeatEnabled() ? heat.marks : [];
    const stale = heat !== undefined && isHeatEnabled() ? heat.stale : [];
    groupByLook(marks, lineCount, [...(heat?.unverified ?? []), ...(heat?.simulated ?? [])]).forEach((lines, look) => {
      const type = this.#looks[look];
      if (type !== undefined) {
        editor.setDecorations(type, lines.map(toWholeLine));
      }
    });
    editor.setDecorations(this.#stale, stale.filter((line) => line < lineCount).map(toWholeLine));
  }

  #drawAll(): void {
    window.visibleTextEditors.forEach((editor) => this.#draw(editor));
  }

  #forgetAll(): void {
    this.#known.clear();
    this.#drawAll();
    this.#tellContext();
  }

  #tellContext(): void {
    const editor = window.activeTextEditor;
    void commands.executeCommand("setContext", `${SECTION}.hasHeat`, editor !== undefined && this.marksOf(editor.document.uri).length > 0);
  }
}

/** The stripe is dashed where nobody can tell whether the source is what was measured, and where nothing was. */
function makeLook(kind: HeatKind, level: number, stripe: "solid" | "dashed"): TextEditorDecorationType {
  const marker = new ThemeColor(`gpaLsp.heat.${kind}Marker`);
  const ruler = level < LEAST_RULER_LEVEL ? {} : { overviewRulerColor: marker, overviewRulerLane: OverviewRulerLane.Left };
  return window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor(`gpaLsp.heat.${kind}${level}`),
    borderStyle: stripe,
    borderWidth: "0 0 0 2px",
    borderColor: marker,
    ...ruler,
  });
}

function toWholeLine(line: number): DecorationOptions {
  return { range: new Range(line, 0, line, 0) };
}
