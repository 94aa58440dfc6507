/** Colours that tie the lines of a source to their instructions, where both are open side by side: a bar of the same colour in the margins of both. */

import { type DecorationRenderOptions, type Disposable, Range, type TextEditor, type TextEditorDecorationType, Uri, window, workspace } from "vscode";
import type { Connection } from "./client";
import { isSass, toProtocol } from "./placement";
import type { Tie } from "./protocol";
import { isCursorSynced, SECTION } from "./settings";

const PAUSE_MS = 120;

/** Told apart with any colour vision (Okabe and Ito), on dark and on light ground; as many as the server numbers. */
const COLOURS: readonly { readonly dark: string; readonly light: string }[] = [
  { dark: "#56b4e9", light: "#3a9bd4" },
  { dark: "#e69f00", light: "#d08f00" },
  { dark: "#2fc296", light: "#009e73" },
  { dark: "#cc79a7", light: "#c0629a" },
  { dark: "#f0e442", light: "#b8a800" },
  { dark: "#4c8fd6", light: "#0072b2" },
  { dark: "#e8703a", light: "#d55e00" },
  { dark: "#a0a0a0", light: "#808080" },
];

/** The bars of one document. */
export interface TiedDocument {
  readonly uri: string;
  /** For each colour the lines that have it. */
  readonly lines: readonly (readonly number[])[];
}

export class TieView implements Disposable {
  readonly #connection: Connection;
  readonly #looks: readonly TextEditorDecorationType[] = COLOURS.map((colour) =>
    window.createTextEditorDecorationType({ isWholeLine: true, dark: makeBar(colour.dark), light: makeBar(colour.light) }));
  readonly #disposables: Disposable[];
  #timer: NodeJS.Timeout | undefined;
  #turn = 0;
  #shown: readonly TiedDocument[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#disposables = [
      window.onDidChangeVisibleTextEditors(() => this.#schedule()),
      workspace.onDidChangeTextDocument(({ document }) => isSass(document.uri) && this.#schedule()),
      workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(`${SECTION}.sass`) && this.#schedule()),
      connection.onHeat(() => this.#schedule()), // the server has seen the text as it is, or another measurement
      connection.onRunning(() => this.#schedule()),
    ];
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const disposable of [...this.#disposables, ...this.#looks]) {
      disposable.dispose();
    }
  }

  /** What is drawn at present, for tests and for nobody else. */
  get shown(): readonly TiedDocument[] {
    return this.#shown;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#follow(), PAUSE_MS);
  }

  async #follow(): Promise<void> {
    const turn = ++this.#turn;
    const uris = [...new Set(window.visibleTextEditors.map(({ document }) => document.uri.toString()))].map((uri) => Uri.parse(uri, true));
    const tied = new Map<string, number[][]>();
    if (isCursorSynced()) {
      for (const sass of uris.filter(isSass)) {
        for (const source of uris.filter((uri) => uri.scheme === "file")) {
          const ties = (await this.#connection.run<readonly Tie[] | null>("gpaLsp.listTies", toProtocol(sass), toProtocol(source)).catch(() => null)) ?? [];
          addTies(tied, sass.toString(), source.toString(), ties);
        }
      }
    }
    if (turn === this.#turn) {
      this.#shown = [...tied].map(([uri, lines]) => ({ uri, lines }));
      window.visibleTextEditors.forEach((editor) => this.#draw(editor, tied.get(editor.document.uri.toString())));
    }
  }

  #draw(editor: TextEditor, lines: readonly (readonly number[])[] | undefined): void {
    this.#looks.forEach((look, colour) => editor.setDecorations(look, (lines?.[colour] ?? []).map((line) => new Range(line, 0, line, 0))));
  }
}

/** A source beside several kernels keeps the colours of the first. */
function addTies(tied: Map<string, number[][]>, sass: string, source: string, ties: readonly Tie[]): void {
  if (ties.length === 0) {
    return;
  }
  const isFirst = !tied.has(source);
  const ofSass = tied.get(sass) ?? COLOURS.map(() => []);
  const ofSource = tied.get(source) ?? COLOURS.map(() => []);
  for (const { line, colour, ranges } of ties) {
    if (isFirst) {
      ofSource[colour]?.push(line);
    }
    for (const { first, last } of ranges) {
      ofSass[colour]?.push(...Array.from({ length: last - first + 1 }, (_, index) => first + index));
    }
  }
  tied.set(sass, ofSass).set(source, ofSource);
}

/** Without a size of its own the picture is as high as the line, so that the bars of neighbouring lines touch. */
function makeBar(colour: string): DecorationRenderOptions {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="100%"><rect x="6" width="5" height="100%" fill="${colour}"/></svg>`;
  return { gutterIconPath: Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`) };
}
