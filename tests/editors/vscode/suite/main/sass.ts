/** The SASS beside the source. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { screenshot, waitFor } from "../desk";
import { activeLine, activeScheme, api, facts, hoverTexts, openSource, pressInText, putCursor, sassEditor, source, startOver, textOfLine } from "../editor";
import { pause, type Test, until } from "../runner";

const { lines } = facts;

export const sass: readonly Test[] = [
  ["the SASS of a line opens beside it, and the cursor is on its instruction", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.cause);
    await pressInText("Alt+m");
    await until("a SASS document", activeScheme, (scheme) => scheme === "gpa-sass");
    const shown = vscode.window.activeTextEditor;
    assert.equal(shown?.document.languageId, "nvsass");
    assert.equal(shown?.viewColumn, vscode.ViewColumn.Two);
    await until("its instruction", () => textOfLine(), (text) => /\bLDG\b/.test(text)); // the document is there before its cursor
    assert.equal(vscode.window.visibleTextEditors.filter(({ document }) => document.uri.scheme === "gpa-sass").length, 1);
  }],
  ["hover, definition, symbols, folding and colours are served in the SASS", async () => {
    const editor = sassEditor();
    assert.ok(editor);
    const { document } = editor;
    const line = editor.selection.active.line;
    const column = document.lineAt(line).text.indexOf("LDG");
    const texts = await until("hover", () => hoverTexts(document.uri, new vscode.Position(line, column + 1)), (all) => all.length > 0);
    assert.ok(!texts.some((text) => text.includes("neighbour says")));
    const before = editor.selection;
    editor.selection = new vscode.Selection(line, column + 1, line, column + 1);
    await vscode.commands.executeCommand("editor.action.showHover");
    await waitFor(".monaco-hover .monaco-hover-content:visible");
    await screenshot("sass-hover-dark");
    await vscode.commands.executeCommand("editor.action.hideHover");
    editor.selection = before;
    const symbols = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeDocumentSymbolProvider", document.uri);
    assert.ok(symbols.length > 0);
    const folds = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeFoldingRangeProvider", document.uri);
    assert.ok(folds.length > 0);
    const tokens = await vscode.commands.executeCommand<vscode.SemanticTokens | undefined>("vscode.provideDocumentSemanticTokens", document.uri);
    assert.ok((tokens?.data.length ?? 0) > 0);
  }],
  ["a register leads to the instruction that wrote it", async () => {
    const editor = sassEditor();
    assert.ok(editor);
    const { document } = editor;
    const load = document.lineAt(editor.selection.active.line).text;
    const register = /LDG\S*\s+(R\d+)/.exec(load)?.[1];
    assert.ok(register, load);
    const user = Array.from({ length: document.lineCount }, (_, line) => line).find(
      (line) => line > editor.selection.active.line && new RegExp(`, -?${register}\\b`).test(document.lineAt(line).text),
    );
    assert.ok(user !== undefined);
    const column = document.lineAt(user).text.search(new RegExp(`, -?${register}\\b`)) + 2;
    const at = new vscode.Position(user, column + (document.lineAt(user).text[column] === "-" ? 2 : 1));
    const found = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>("vscode.executeDefinitionProvider", document.uri, at);
    const targets = found.map((one) => ("targetRange" in one ? one.targetRange : one.range).start.line);
    assert.ok(targets.includes(editor.selection.active.line), JSON.stringify(targets));
  }],
  ["the next hot instruction is a key away", async () => {
    const editor = sassEditor();
    const before = editor?.selection.active.line ?? 0;
    await pressInText("Control+F8");
    await until("another instruction", activeLine, (line) => line !== undefined && line !== before);
    assert.equal(activeScheme(), "gpa-sass");
    assert.match(textOfLine(), /\d %/);
    await pressInText("Control+Shift+F8");
    await until("the one before", activeLine, (line) => line !== undefined && line <= before);
    await putCursor(vscode.window.activeTextEditor as vscode.TextEditor, before);
  }],
  ["the way back leads to the line of the instruction", async () => {
    await pressInText("Alt+m");
    await until("the source", activeScheme, (scheme) => scheme === "file");
    await until("its line", activeLine, (line) => line === lines.cause);
    assert.equal(vscode.window.activeTextEditor?.viewColumn, vscode.ViewColumn.One);
  }],
  ["the SASS follows the cursor of the source, and keeps its own", async () => {
    const editor = await openSource();
    const before = sassEditor()?.selection.active.line;
    await putCursor(editor, lines.victim);
    const textOf = (line: number): string => sassEditor()?.document.lineAt(line).text ?? "";
    const lit = await until("lit lines", () => api.lit, ([first]) => first !== undefined && /\bF(FMA|MUL|ADD)\b/.test(textOf(first.primary)));
    assert.equal(lit.length, 1);
    assert.equal(lit[0]?.uri, sassEditor()?.document.uri.toString());
    assert.ok(lit[0]?.lines.length);
    assert.equal(sassEditor()?.selection.active.line, before);
    assert.equal(vscode.window.activeTextEditor, editor);
    await screenshot("sass-dark");
  }],
  ["the source follows the cursor of the SASS, and the focus stays", async () => {
    const editor = sassEditor();
    assert.ok(editor);
    const own = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === source.toString());
    const before = own?.selection.active.line;
    const load = Array.from({ length: editor.document.lineCount }, (_, line) => line).find((line) => /\bLDG\b/.test(editor.document.lineAt(line).text));
    await vscode.window.showTextDocument(editor.document, { viewColumn: editor.viewColumn ?? vscode.ViewColumn.Two });
    await putCursor(vscode.window.activeTextEditor as vscode.TextEditor, load ?? 0);
    await until("lit lines", () => api.lit, (all) => all.some(({ uri, lines: shown }) => uri === source.toString() && shown.includes(lines.cause)));
    assert.equal(activeScheme(), "gpa-sass");
    assert.equal(own?.selection.active.line, before);
    const steady = JSON.stringify(api.lit);
    await pause(600);
    assert.equal(JSON.stringify(api.lit), steady);
  }],
];
