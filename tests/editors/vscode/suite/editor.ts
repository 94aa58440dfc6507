/** What the suites ask VS Code. */

import * as vscode from "vscode";
import { click, count, hover, press, styles, texts, waitFor, waitForPicker } from "./desk";
import { until } from "./runner";

/** Facts about the workspace, from the Python side. */
export interface Facts {
  readonly source: string;
  readonly control: string;
  /** A Python without any library, and the one of the tests. */
  readonly bareInterpreter?: string;
  readonly interpreter?: string;
  /** A file that says how the package index behaves. */
  readonly index?: string;
  /** The folder in which the extension keeps things. */
  readonly storage?: string;
  /** 0-based lines of the source. */
  readonly lines: Readonly<Record<"cause" | "victim" | "loop" | "doubles" | "dividing" | "kernel", number>>;
  /** Where a GPU that is made up finds its times. */
  readonly times?: string;
}

/** The part of the extension's interface that is looked at. */
export interface Api {
  readonly isRunning: boolean;
  readonly absence: { readonly brief: string; readonly reason: string } | undefined;
  readonly status: { readonly state: string; readonly text: string; readonly profiles: number; readonly kernels: number; readonly question?: string } | undefined;
  readonly statusBar: readonly string[];
  readonly measuringOutput: string;
  readonly lit: readonly { readonly uri: string; readonly lines: readonly number[]; readonly primary: number }[];
  readonly ties: readonly { readonly uri: string; readonly lines: readonly (readonly number[])[] }[];
  readonly chain: ChainTree;
  readonly report: Partial<Shown> & { readonly isReady: boolean; readonly files: { find(uri: vscode.Uri): Shown | undefined } };
  heatOf(uri: vscode.Uri): { readonly marks: readonly HeatMark[]; readonly stale: readonly number[]; readonly unverified: readonly number[]; readonly simulated: readonly number[] };
}

/** A page in a panel or in place of a report. */
export interface Shown {
  readonly html: string;
  readonly isReady: boolean;
  readonly place: string;
}

export interface HeatMark {
  readonly line: number;
  readonly level: number;
  readonly ratio: number;
  readonly kind: string;
  readonly text: string;
}

export interface ChainTree {
  getChildren(node?: unknown): Promise<readonly unknown[]>;
  getTreeItem(node: unknown): vscode.TreeItem;
}

export const facts = JSON.parse(process.env.GPA_TEST_FACTS ?? "{}") as Facts;
export const source = vscode.Uri.file(facts.source);

/** What the extension lets be seen, once openExtension was called. */
export let api: Api;

export async function openExtension(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("gpa-lsp.gpa-lsp");
  if (extension === undefined) {
    throw new Error("the extension is not there");
  }
  api = await extension.activate();
  return api;
}

export async function openSource(): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(source, { viewColumn: vscode.ViewColumn.One, preview: false });
}

const FOCUSED = ".editor-group-container.active .monaco-editor.focused";

/** Put the cursor of an editor on a line, and wait until the window has it there: what comes next starts from there. */
export async function putCursor(editor: vscode.TextEditor, line: number): Promise<void> {
  const position = new vscode.Position(line, editor.document.lineAt(line).firstNonWhitespaceCharacterIndex);
  const show = async (): Promise<void> => {
    const shown = await vscode.window.showTextDocument(editor.document, { viewColumn: editor.viewColumn, preview: false }); // a page that opens takes it once it is drawn
    shown.selection = new vscode.Selection(position, position); // an editor that was closed meanwhile is another one
    shown.revealRange(shown.selection);
  };
  await until("the text with the keyboard", async () => {
    await show();
    return count(FOCUSED);
  }, (found) => found > 0);
  await until(`the cursor on line ${line + 1}`, async () => {
    await show();
    return texts('[id="status.editor.selection"]');
  }, ([shown]) => shown?.startsWith(`Ln ${line + 1},`) === true);
}

/** Give the text that is active the keyboard. */
export async function focusText(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup");
  await waitFor(FOCUSED);
}

/** Press one of our keys in the text that is active. They hold where heat is known and where the text has the keyboard. */
export async function pressInText(key: string): Promise<void> {
  const uri = vscode.window.activeTextEditor?.document.uri;
  if (uri?.scheme === "file") {
    await until("heat", () => api.heatOf(uri).marks.length, (marks) => marks > 0);
  }
  await focusText(); // the window has heard of the heat by then: it is told one thing after the other
  await press(key);
}

export const ROW = ".quick-input-list .monaco-list-row";

/** Take the entry of the open list that is marked, once it is the one that is meant. */
export async function takeRow(text: string): Promise<void> {
  await waitForPicker();
  await waitFor(`${ROW}.focused`, text);
  await press("Enter");
}

export const activeLine = (): number | undefined => vscode.window.activeTextEditor?.selection.active.line;
export const activeScheme = (): string | undefined => vscode.window.activeTextEditor?.document.uri.scheme;

export function textOfLine(editor: vscode.TextEditor | undefined = vscode.window.activeTextEditor): string {
  return editor?.document.lineAt(editor.selection.active.line).text ?? "";
}

export const sassEditor = (): vscode.TextEditor | undefined => vscode.window.visibleTextEditors.find((editor) => editor.document.uri.scheme === "gpa-sass");

export async function hoverTexts(uri: vscode.Uri, position: vscode.Position): Promise<readonly string[]> {
  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", uri, position);
  return hovers.flatMap((hover) => hover.contents.map((content) => (typeof content === "string" ? content : content.value)));
}

export async function lensTitles(uri: vscode.Uri): Promise<readonly string[]> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 100);
  return lenses.map((lens) => lens.command?.title ?? "");
}

export const ourDiagnostics = (uri: vscode.Uri): readonly vscode.Diagnostic[] =>
  vscode.languages.getDiagnostics(uri).filter((diagnostic) => diagnostic.source?.startsWith("gpa") === true);

export async function waitForServer(api: Api): Promise<void> {
  await until("the server has read the profile", () => api.status, (status) => status?.state === "idle" && status.kernels > 0);
}

/** Close everything but the source, and show that. */
export async function startOver(): Promise<vscode.TextEditor> {
  const editor = await openSource();
  const isOther = (tab: vscode.Tab): boolean => !(tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === source.toString() && tab.group.viewColumn === vscode.ViewColumn.One);
  await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(isOther));
  return editor;
}

const NOTIFICATION = ".notifications-center .notification-list-item";

/** Wait for a notification. Under the test driver none pops up by itself; they are in the list behind the bell. */
export async function waitForNotification(text: string): Promise<void> {
  await until(`a notification: ${text}`, async () => {
    await vscode.commands.executeCommand("notifications.showList");
    return count(NOTIFICATION, text);
  }, (found) => found > 0);
}

/** Choose one of the buttons of the notification that is shown. */
export async function answerNotification(text: string, button: string): Promise<void> {
  await waitForNotification(text);
  await hover(NOTIFICATION, text);
  await click(`${NOTIFICATION} .monaco-button`, button);
}

const OVERLAYS = ".editor-instance .view-overlays .cdr[class*=ced-]";

/** Computed styles of everything that extensions draw behind lines. */
export const drawnStyles = (property: string): Promise<readonly string[]> => styles(OVERLAYS, property);

/** Backgrounds that are drawn behind lines, without those that are transparent. */
export async function drawnBackgrounds(): Promise<readonly string[]> {
  return (await drawnStyles("background-color")).filter((colour) => colour !== "rgba(0, 0, 0, 0)");
}

/** Open the SASS of a line, by the command. */
export async function openSass(line: number): Promise<vscode.TextEditor | undefined> {
  await putCursor(await openSource(), line);
  await vscode.commands.executeCommand("gpa.toggleSass");
  return until("a SASS document", sassEditor);
}
