/** Where documents are shown: SASS beside the source, sources beside the SASS, each where it already is. */

import {
  commands,
  Position,
  Range,
  Selection,
  type TextDocumentShowOptions,
  type TextEditor,
  TextEditorRevealType,
  Uri,
  ViewColumn,
  window,
} from "vscode";
import type { Range as ProtocolRange, ShowDocumentParams, ShowDocumentResult } from "vscode-languageclient/node";
import { type Place, SASS_SCHEME } from "./protocol";

export function toRange(range: ProtocolRange): Range {
  return new Range(range.start.line, range.start.character, range.end.line, range.end.character);
}

/** A URI as the server writes it: VS Code itself drops an empty authority. */
export function toProtocol(uri: Uri): string {
  return isSass(uri) ? `${uri.scheme}://${uri.with({ scheme: "file" }).toString().slice("file://".length)}` : uri.toString();
}

/** Where the cursor of an editor is. */
export function placeOf(editor: TextEditor): Place {
  const { line, character } = editor.selection.active;
  return { uri: toProtocol(editor.document.uri), range: { start: { line, character }, end: { line, character } } };
}

export function isSass(uri: Uri): boolean {
  return uri.scheme === SASS_SCHEME;
}

export interface ShowOptions {
  readonly preserveFocus?: boolean;
  readonly reveal?: TextEditorRevealType;
}

/** Show a place with the cursor at its beginning. */
export async function showPlace(place: Place, options: ShowOptions = {}): Promise<TextEditor> {
  return showLine(Uri.parse(place.uri, true), toRange(place.range).start, options);
}

export async function showLine(uri: Uri, start: Position, options: ShowOptions = {}): Promise<TextEditor> {
  const isInView = window.visibleTextEditors.some((editor) => editor.document.uri.toString() === uri.toString());
  const shown = await window.showTextDocument(uri, { viewColumn: pickColumn(uri), preserveFocus: options.preserveFocus ?? false, preview: isSass(uri) });
  shown.selection = new Selection(start, start);
  shown.revealRange(new Range(start, start), options.reveal ?? (isInView ? TextEditorRevealType.InCenterIfOutsideViewport : TextEditorRevealType.InCenter));
  return shown;
}

/** The column a document belongs in. */
function pickColumn(uri: Uri): ViewColumn {
  const visible = window.visibleTextEditors.filter((editor) => editor.viewColumn !== undefined);
  const same = visible.find((editor) => editor.document.uri.toString() === uri.toString());
  if (same?.viewColumn !== undefined) {
    return same.viewColumn;
  }
  const active = window.activeTextEditor;
  if (active === undefined || isSass(active.document.uri) === isSass(uri)) {
    return ViewColumn.Active;
  }
  const kin = visible.find((editor) => isSass(editor.document.uri) === isSass(uri));
  return kin?.viewColumn ?? (isSass(uri) ? ViewColumn.Beside : ViewColumn.One);
}

/** What the server asks to show; `showAsUsual` does what any client would. */
export async function placeDocument(params: ShowDocumentParams, showAsUsual: () => unknown): Promise<ShowDocumentResult> {
  const uri = Uri.parse(params.uri, true);
  if (params.external === true) {
    return (await showAsUsual()) as ShowDocumentResult;
  }
  try {
    if (uri.path.endsWith(".md")) {
      await commands.executeCommand("markdown.showPreview", uri);
      return { success: true };
    }
    const start = params.selection === undefined ? undefined : toRange(params.selection).start;
    const options: TextDocumentShowOptions = { preserveFocus: params.takeFocus !== true };
    await (start === undefined ? window.showTextDocument(uri, { ...options, viewColumn: pickColumn(uri) }) : showLine(uri, start, { preserveFocus: params.takeFocus !== true }));
    return { success: true };
  } catch {
    return { success: false };
  }
}
