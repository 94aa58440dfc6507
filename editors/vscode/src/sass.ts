/** Source and SASS side by side: the way from one to the other, and each following the cursor of the other. */

import {
  type Disposable,
  OverviewRulerLane,
  Range,
  type TextEditor,
  TextEditorRevealType,
  ThemeColor,
  Uri,
  window,
} from "vscode";
import type { Connection } from "./client";
import type { JumpMemory } from "./jumpMemory";
import { isSass, showPlace, toProtocol, toRange } from "./placement";
import type { Link } from "./protocol";
import { isCursorSynced } from "./settings";

const SYNC_DELAY_MS = 80;

/** The other side of a line: its SASS, of the kernel that is open if there is one, or its source. */
export async function findLinked(connection: Connection, uri: Uri, line: number): Promise<readonly Link[]> {
  const links = (await connection.run<readonly Link[] | null>("gpaLsp.findLinked", toProtocol(uri), line)) ?? [];
  const open = new Set(window.visibleTextEditors.map((editor) => editor.document.uri.toString()));
  const isOpen = (link: Link): boolean => open.has(Uri.parse(link.uri, true).toString());
  return isSass(uri) ? links : [...links.filter(isOpen), ...links.filter((link) => !isOpen(link))];
}

/** Show the other side of the line under the cursor; after a jump the very instruction that was meant. */
export async function toggleSass(connection: Connection, memory: JumpMemory): Promise<void> {
  const editor = window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const { uri, version } = editor.document;
  const { line } = editor.selection.active; // before the server is asked: the cursor may go on meanwhile
  const meant = memory.recall(uri.toString(), line, version);
  const [first] = meant === undefined ? await findLinked(connection, uri, line) : [];
  const target = meant ?? (first && { uri: first.uri, range: first.primary });
  if (target === undefined) {
    const text = isSass(uri) ? "The source of this instruction is not on this machine" : "No instruction was compiled from this line";
    window.setStatusBarMessage(`$(info) ${text}`, 4_000);
    return;
  }
  await showPlace(target);
}

/** Shows on the other side what belongs to the line of the cursor. It scrolls there, but never takes the focus or moves a cursor. */
export class CursorSync implements Disposable {
  readonly #connection: Connection;
  readonly #linked = window.createTextEditorDecorationType({
    isWholeLine: true, backgroundColor: new ThemeColor("gpaLsp.linkedLine"),
    overviewRulerColor: new ThemeColor("gpaLsp.linkedLineBorder"), overviewRulerLane: OverviewRulerLane.Center,
  });
  readonly #primary = window.createTextEditorDecorationType({
    isWholeLine: true, borderStyle: "solid", borderWidth: "1px 0", borderColor: new ThemeColor("gpaLsp.linkedLineBorder"),
  });
  readonly #disposables: Disposable[];
  #timer: NodeJS.Timeout | undefined;
  #turn = 0;
  #lit: readonly { readonly uri: string; readonly lines: readonly number[]; readonly primary: number }[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#disposables = [
      window.onDidChangeTextEditorSelection((event) => event.textEditor === window.activeTextEditor && this.#schedule()),
      window.onDidChangeActiveTextEditor(() => this.#schedule()),
      window.onDidChangeVisibleTextEditors(() => this.#schedule()),
    ];
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const disposable of [...this.#disposables, this.#linked, this.#primary]) {
      disposable.dispose();
    }
  }

  /** What is lit at present, for tests and for nobody else. */
  get lit(): readonly { readonly uri: string; readonly lines: readonly number[]; readonly primary: number }[] {
    return this.#lit;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#follow(), SYNC_DELAY_MS);
  }

  async #follow(): Promise<void> {
    const turn = ++this.#turn;
    const active = window.activeTextEditor;
    const others = window.visibleTextEditors.filter((editor) => active !== undefined && isSass(editor.document.uri) !== isSass(active.document.uri));
    if (active === undefined || others.length === 0 || !window.visibleTextEditors.some((editor) => isSass(editor.document.uri)) || !isCursorSynced()) {
      this.#light(window.visibleTextEditors, []);
      return;
    }
    const links = await findLinked(this.#connection, active.document.uri, active.selection.active.line).catch(() => []);
    if (turn === this.#turn) {
      this.#light(window.visibleTextEditors, links);
    }
  }

  #light(editors: readonly TextEditor[], links: readonly Link[]): void {
    const lit = [];
    for (const editor of editors) {
      const uri = editor.document.uri.toString();
      const link = links.find((candidate) => Uri.parse(candidate.uri, true).toString() === uri);
      editor.setDecorations(this.#linked, link === undefined ? [] : link.ranges.map(toRange));
      editor.setDecorations(this.#primary, link === undefined ? [] : [toRange(link.primary)]);
      if (link !== undefined) {
        const { line } = toRange(link.primary).start;
        editor.revealRange(new Range(line, 0, line, 0), TextEditorRevealType.InCenterIfOutsideViewport);
        lit.push({ uri, lines: link.ranges.map((range) => range.start.line), primary: line });
      }
    }
    this.#lit = lit;
  }
}
