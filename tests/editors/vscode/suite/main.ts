/** The suite of a trusted workspace: everything a person does with a profile. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { count, press, screenshot, styles, texts, waitFor } from "./desk";
import {
  activeLine,
  activeScheme,
  answerNotification,
  type Api,
  facts,
  hoverTexts,
  lensTitles,
  openExtension,
  openSource,
  ourDiagnostics,
  putCursor,
  sassEditor,
  source,
  startOver,
  textOfLine,
  waitForNotification,
  waitForServer,
} from "./editor";
import { pause, runTests, type Test, until } from "./runner";

const { lines } = facts;
let api: Api;

const KEYS = ["alt+j", "shift+alt+j", "alt+m", "ctrl+f8", "ctrl+shift+f8"];

const runs = (): number => (existsSync(join(facts.control, "runs")) ? readFileSync(join(facts.control, "runs"), "utf8").split("\n").length - 1 : 0);
const behave = (behaviour: string): void => writeFileSync(join(facts.control, "behaviour"), behaviour);

function runningProfilers(): readonly number[] {
  const file = join(facts.control, "pids");
  const pids = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number) : [];
  return pids.filter((pid) => existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
}

async function edit(find: string, replacement: string): Promise<void> {
  const editor = await openSource();
  const offset = editor.document.getText().indexOf(find);
  assert.notEqual(offset, -1, `${find} is not in the source`);
  const range = new vscode.Range(editor.document.positionAt(offset), editor.document.positionAt(offset + find.length));
  assert.ok(await editor.edit((builder) => builder.replace(range, replacement)));
}

const startUp: readonly Test[] = [
  ["the extension starts the server by itself", async () => {
    await openSource();
    api = await openExtension();
    await waitForServer(api);
    assert.equal(api.isRunning, true);
    assert.equal(api.status?.profiles, 1);
    assert.equal(api.status?.kernels, 2);
    await waitFor(".statusbar-item", api.status?.text.slice(0, 12));
  }],
  ["none of its keys is a default of VS Code", async () => {
    await vscode.commands.executeCommand("workbench.action.openDefaultKeybindingsFile");
    const document = await until("the default keys", () => vscode.workspace.textDocuments.find((open) => open.uri.path.includes("keybindings")));
    const text = (document as vscode.TextDocument).getText();
    const bindings = [...text.matchAll(/"key": "([^"]+)",\s*"command": "([^"]+)"/g)].filter(([, , command]) => !command?.startsWith("gpa."));
    assert.ok(bindings.length > 500);
    assert.deepEqual(bindings.filter(([, key]) => KEYS.includes(key ?? "")).map((found) => found.slice(1)), []);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  }],
];

const reading: readonly Test[] = [
  ["causes are problems of severity Information, with the lines that wait", async () => {
    const found = await until("diagnostics", () => ourDiagnostics(source), (all) => all.some(({ range }) => range.start.line === lines.cause));
    const cause = found.find(({ range }) => range.start.line === lines.cause);
    assert.equal(cause?.severity, vscode.DiagnosticSeverity.Information);
    assert.ok(cause?.relatedInformation?.some(({ location }) => location.range.start.line === lines.victim));
  }],
  ["a line above each kernel says its time", async () => {
    const titles = await until("lenses", () => lensTitles(source), (all) => all.length >= 2);
    assert.ok(titles.some((title) => /\d (µs|ms)/.test(title)), titles.join(" | "));
  }],
  ["shares stand at the ends of suffering lines", async () => {
    const range = new vscode.Range(0, 0, 40, 0);
    const hints = await until(
      "hints", () => vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, range), (all) => all.length > 0,
    );
    const hint = hints.find(({ position }) => position.line === lines.victim);
    const label = typeof hint?.label === "string" ? hint.label : hint?.label.map((part) => part.value).join("");
    assert.match(label ?? "", /\d %/);
  }],
  ["a setting takes effect at once", async () => {
    const settings = vscode.workspace.getConfiguration("gpaLsp");
    const hints = () => vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", source, new vscode.Range(0, 0, 40, 0));
    await settings.update("inlayHints.enable", false, vscode.ConfigurationTarget.Workspace);
    await until("no hints", hints, (all) => all.length === 0);
    await settings.update("inlayHints.enable", undefined, vscode.ConfigurationTarget.Workspace);
    await until("hints", hints, (all) => all.length > 0);
  }],
  ["our hover stands beside that of the language's own server", async () => {
    const found = await hoverTexts(source, new vscode.Position(lines.victim, 12));
    assert.ok(found.some((text) => text.includes("neighbour says")), "the neighbour's hover is lost");
    assert.ok(found.some((text) => /long_scoreboard|global memory/.test(text)), found.join("\n---\n"));
  }],
  ["the hover is drawn, with nothing raw in it", async () => {
    const editor = await startOver();
    putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("editor.action.showHover", { focus: "autoFocusImmediately" });
    await waitFor(".monaco-hover", "neighbour says");
    await pause(300);
    const [text] = (await texts(".monaco-resizable-hover")).filter((shown) => shown.includes("neighbour says"));
    assert.doesNotMatch(text ?? "", /data:image|\|---|command:/);
    await screenshot("hover-dark");
    assert.ok((await count(".monaco-hover img")) > 0, "there is no picture");
    await press("PageDown"); // the hover has the focus
    await pause(200);
    await screenshot("hover-picture-dark");
    await vscode.commands.executeCommand("editor.action.hideHover");
  }],
  ["definitions on a source are the neighbour's alone: no list to choose from", async () => {
    const editor = await startOver();
    const at = new vscode.Position(lines.victim, editor.document.lineAt(lines.victim).text.indexOf("signal"));
    const found = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeDefinitionProvider", source, at);
    assert.equal(found.length, 1);
    editor.selection = new vscode.Selection(at, at);
    await vscode.commands.executeCommand("editor.action.revealDefinition");
    await until("the jump", activeLine, (line) => line === lines.cause);
    assert.equal(await count(".peekview-widget"), 0);
  }],
  ["references and call hierarchy of a source are the neighbour's alone", async () => {
    const at = new vscode.Position(lines.victim, 12);
    const references = await vscode.commands.executeCommand<readonly unknown[]>("vscode.executeReferenceProvider", source, at);
    assert.equal(references.length, 0); // the neighbour has none
    const items = await vscode.commands.executeCommand<vscode.CallHierarchyItem[]>("vscode.prepareCallHierarchy", source, at);
    assert.deepEqual(items.map(({ name }) => name), ["neighbour's item"]);
  }],
];

const OVERLAYS = ".editor-instance .view-overlays .cdr[class*=ced-]";

/** Backgrounds that are drawn behind lines, without those that are transparent. */
async function drawnBackgrounds(): Promise<readonly string[]> {
  return (await styles(OVERLAYS, "background-color")).filter((colour) => colour !== "rgba(0, 0, 0, 0)");
}

const heat: readonly Test[] = [
  ["heat is drawn on the lines the server named", async () => {
    const editor = await startOver();
    putCursor(editor, 0);
    const { marks, stale } = await until("heat", () => api.heatOf(source), (known) => known.marks.length > 0);
    assert.deepEqual(stale, []);
    assert.equal(marks.find(({ line }) => line === lines.victim)?.kind, "suffers");
    assert.equal(marks.find(({ line }) => line === lines.cause)?.kind, "causes");
    assert.ok(new Set(marks.map(({ line }) => line)).size === marks.length);
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
    await screenshot("heat-dark");
  }],
  ["it is drawn again when the document comes back into view", async () => {
    const { marks } = api.heatOf(source);
    await vscode.commands.executeCommand("workbench.action.files.newUntitledFile");
    await until("no colours", drawnBackgrounds, (all) => all.length === 0);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await openSource();
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
  }],
  ["it can be switched off and on", async () => {
    const { marks } = api.heatOf(source);
    await vscode.commands.executeCommand("gpa.toggleHeat");
    await until("no colours", drawnBackgrounds, (all) => all.length === 0);
    await vscode.commands.executeCommand("gpa.toggleHeat");
    await until("colours", drawnBackgrounds, (all) => all.length === marks.length);
  }],
  ["a line that is changed loses its number and is marked as stale; undone, it has it again", async () => {
    const editor = await startOver();
    const { version } = editor.document;
    await editor.edit((builder) => builder.insert(new vscode.Position(lines.victim, 8), "1.0f * "));
    const changed = await until("stale lines", () => api.heatOf(source), ({ stale }) => stale.includes(lines.victim));
    assert.ok(!changed.marks.some(({ line }) => line === lines.victim));
    assert.ok(editor.document.version > version);
    await until("dots", () => styles(OVERLAYS, "border-left-style"), (all) => all.includes("dotted"));
    await screenshot("stale-dark");
    await vscode.commands.executeCommand("undo");
    await until("no stale lines", () => api.heatOf(source), ({ stale, marks }) => stale.length === 0 && marks.some(({ line }) => line === lines.victim));
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["the next hot line and the one before are a key away", async () => {
    const editor = await startOver();
    putCursor(editor, 0);
    const hot = api.heatOf(source).marks.map(({ line }) => line);
    await press("Control+F8");
    await until("the first hot line", activeLine, (line) => line === hot[0]);
    await press("Control+F8");
    await until("the second hot line", activeLine, (line) => line === hot[1]);
    await press("Control+Shift+F8");
    await until("the first hot line again", activeLine, (line) => line === hot[0]);
  }],
];

const sass: readonly Test[] = [
  ["the SASS of a line opens beside it, and the cursor is on its instruction", async () => {
    const editor = await startOver();
    putCursor(editor, lines.cause);
    await press("Alt+m");
    await until("a SASS document", activeScheme, (scheme) => scheme === "gpa-sass");
    const shown = vscode.window.activeTextEditor;
    assert.equal(shown?.document.languageId, "nvsass");
    assert.equal(shown?.viewColumn, vscode.ViewColumn.Two);
    assert.match(textOfLine(), /\bLDG\b/);
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
    await pause(300);
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
    await press("Control+F8");
    await until("another instruction", activeLine, (line) => line !== undefined && line !== before);
    assert.equal(activeScheme(), "gpa-sass");
    assert.match(textOfLine(), /\d %/);
    await press("Control+Shift+F8");
    await until("the one before", activeLine, (line) => line !== undefined && line <= before);
    putCursor(vscode.window.activeTextEditor as vscode.TextEditor, before);
  }],
  ["the way back leads to the line of the instruction", async () => {
    await press("Alt+m");
    await until("the source", activeScheme, (scheme) => scheme === "file");
    await until("its line", activeLine, (line) => line === lines.cause);
    assert.equal(vscode.window.activeTextEditor?.viewColumn, vscode.ViewColumn.One);
  }],
  ["the SASS follows the cursor of the source, and keeps its own", async () => {
    const editor = await openSource();
    const before = sassEditor()?.selection.active.line;
    putCursor(editor, lines.victim);
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
    putCursor(vscode.window.activeTextEditor as vscode.TextEditor, load ?? 0);
    await until("lit lines", () => api.lit, (all) => all.some(({ uri, lines: shown }) => uri === source.toString() && shown.includes(lines.cause)));
    assert.equal(activeScheme(), "gpa-sass");
    assert.equal(own?.selection.active.line, before);
    const steady = JSON.stringify(api.lit);
    await pause(600);
    assert.equal(JSON.stringify(api.lit), steady);
  }],
];

const jumps: readonly Test[] = [
  ["one key leads from the victim to the cause, and one more to exactly the causing instruction", async () => {
    const editor = await startOver();
    putCursor(editor, lines.victim);
    await press("Alt+j");
    await until("the cause", activeLine, (line) => line === lines.cause);
    await press("Alt+m");
    await until("the SASS", activeScheme, (scheme) => scheme === "gpa-sass");
    assert.match(textOfLine(), /\bLDG\b/);
    await press("Alt+m");
    await until("the source again", activeScheme, (scheme) => scheme === "file");
    assert.equal(activeLine(), lines.cause);
  }],
  ["the other way leads to the victim", async () => {
    const editor = await startOver();
    putCursor(editor, lines.cause);
    await press("Alt+Shift+j");
    await until("the victim", activeLine, (line) => line === lines.victim);
    await vscode.commands.executeCommand("gpa.back");
    await until("back", activeLine, (line) => line === lines.cause);
  }],
  ["the chain opens as a tree, both ways, and its items lead to their lines", async () => {
    const editor = await startOver();
    putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const roots = await api.chain.getChildren();
    assert.ok(roots.length >= 1);
    const first = (await api.chain.getChildren(roots[0]))[0];
    const item = api.chain.getTreeItem(first);
    assert.equal(item.collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
    await waitFor(".pane-header", "Def-Use Chain");
    await waitFor(".monaco-list-row", String(item.label));
    await api.chain.getChildren(first);
    await screenshot("chain-dark");
    await vscode.commands.executeCommand(item.command?.command ?? "", ...(item.command?.arguments ?? []));
    await until("the line of the item", () => vscode.window.visibleTextEditors.some(({ selection }) => selection.active.line === lines.cause));
  }],
  ["the list of hot spots shows each while it is looked at, and gives back the view when nothing is chosen", async () => {
    const editor = await startOver();
    putCursor(editor, 0);
    void vscode.commands.executeCommand("gpa.listHotSpots");
    await waitFor(".quick-input-list .monaco-list-row");
    const rows = await texts(".quick-input-list .monaco-list-row");
    assert.ok(rows.length >= 2);
    await until("the preview", () => editor.selection.active.line, (line) => line !== 0);
    await screenshot("hot-spots-dark");
    await press("Escape");
    await until("back", activeLine, (line) => line === 0);
  }],
  ["the list of kernels leads to a kernel", async () => {
    void vscode.commands.executeCommand("gpa.listKernels");
    await waitFor(".quick-input-list .monaco-list-row", "relax");
    await press("Escape");
    await until("closed", () => count(".quick-input-widget:not([style*='display: none'])"), (shown) => shown === 0);
  }],
  ["a page about everything opens as a preview", async () => {
    await vscode.commands.executeCommand("gpa.showReport");
    await until("the preview", () => vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview);
    await pause(800);
    await screenshot("report-dark");
  }],
];

const changing: readonly Test[] = [
  ["a quick fix rewrites the double constants", async () => {
    const editor = await startOver();
    const before = editor.document.lineAt(lines.doubles).text;
    const range = editor.document.lineAt(lines.doubles).range;
    const actions = await until(
      "a quick fix", () => vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", source, range, vscode.CodeActionKind.QuickFix.value, 50),
      (all) => all.some((action) => action.edit !== undefined && /f\b|float/i.test(action.title)),
    );
    const action = actions.find((one) => one.edit !== undefined && /f\b|float/i.test(one.title));
    assert.ok(await vscode.workspace.applyEdit(action?.edit as vscode.WorkspaceEdit));
    const after = editor.document.lineAt(lines.doubles).text;
    assert.notEqual(after, before);
    assert.match(after, /0\.7f.*0\.1f/);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["saving measures after the command was agreed to, and the lens says what changed", async () => {
    const editor = await startOver();
    const before = await lensTitles(source);
    const text = sassTextOf(await openSass(lines.cause));
    await openSource();
    await edit("value * 0.7 + 0.1", "value * 0.7f + 0.1f");
    assert.equal(runs(), 0);
    await editor.document.save();
    await waitForNotification("measure.py");
    await screenshot("confirm-dark");
    assert.equal(runs(), 0);
    await answerNotification("measure.py", "Run");
    await until("a run", runs, (times) => times === 1);
    await until("another lens", () => lensTitles(source), (now) => now.length > 0 && now[0] !== before[0]);
    const titles = await lensTitles(source);
    assert.ok(titles.some((title) => /×|faster|−\s*\d/.test(title)), titles.join(" | "));
    assert.match(api.measuringOutput, /profiler: done/);
    await until("other instructions in the SASS that is open", () => sassTextOf(sassEditor()), (now) => now !== "" && now !== text);
    await screenshot("measured-dark");
  }],
  ["measuring is cancelled, and no process is left", async () => {
    behave("hang");
    await startOver();
    void vscode.commands.executeCommand("gpa.measure");
    await until("two processes", runningProfilers, (pids) => pids.length === 2);
    await until("status", () => api.status?.state, (state) => state === "measuring");
    await screenshot("measuring-dark");
    await vscode.commands.executeCommand("gpa.cancelMeasuring");
    await until("no process", runningProfilers, (pids) => pids.length === 0);
    await until("status", () => api.status?.state, (state) => state === "idle");
    behave("measure");
  }],
  ["a run that fails is explained", async () => {
    behave("fail");
    void vscode.commands.executeCommand("gpa.measure");
    await waitForNotification("performance counters");
    await screenshot("failed-run-dark");
    await vscode.commands.executeCommand("notifications.clearAll");
    behave("measure");
  }],
  ["the server is started anew on request, and everything is there again", async () => {
    await startOver();
    await vscode.commands.executeCommand("gpa.restart");
    await waitForServer(api);
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    await until("diagnostics", () => ourDiagnostics(source).length, (found) => found > 0);
  }],
];

async function openSass(line: number): Promise<vscode.TextEditor | undefined> {
  putCursor(await openSource(), line);
  await vscode.commands.executeCommand("gpa.toggleSass");
  return until("a SASS document", sassEditor);
}

const sassTextOf = (editor: vscode.TextEditor | undefined): string => editor?.document.getText() ?? "";

/** Wait until the SASS, and nothing else, has been lit for a while: the editor may still be on its way from one side to the other. */
async function waitForLitSass(): Promise<void> {
  let since = Date.now();
  await until("lit lines in the SASS", () => {
    if (api.lit[0]?.uri !== sassEditor()?.document.uri.toString()) {
      since = Date.now();
    }
    return Date.now() - since;
  }, (steady) => steady > 1_200); // colours of the server's tokens come a little later, too
}

const looks: readonly Test[] = [
  ["the pictures of the README", async () => {
    await vscode.commands.executeCommand("notifications.clearAll");
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
    const editor = await startOver();
    putCursor(editor, 0);
    await until("colours", drawnBackgrounds, (all) => all.length > 0);
    await until("lenses", () => texts(".codelens-decoration"), (all) => all.some((text) => text.includes("%")));
    await pause(500);
    const heatPicture = await screenshot("picture-heat", { x: 52, y: 92, width: 960, height: 430 });
    putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.toggleSass");
    await until("a SASS document", sassEditor);
    await openSource();
    await waitForLitSass();
    const sassPicture = await screenshot("picture-sass", { x: 52, y: 92, width: 1290, height: 386 });
    for (const picture of [heatPicture, sassPicture]) {
      assert.ok(statSync(picture).size < 150_000, `${picture}: ${statSync(picture).size} bytes`);
    }
    await vscode.commands.executeCommand("workbench.action.toggleSidebarVisibility");
  }],
  ["the walkthrough opens at its first step", async () => {
    await startOver();
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", "gpa-lsp.gpa-lsp#start", false);
    await waitFor(".getting-started-category, .gettingStartedContainer", "Find Out Why Your Kernels Stall");
    await waitFor(".getting-started-step", "Record a profile");
    await pause(800);
    await screenshot("walkthrough-dark");
  }],
  ["the light theme", async () => {
    await vscode.workspace.getConfiguration("workbench").update("colorTheme", "Default Light Modern", vscode.ConfigurationTarget.Global);
    const editor = await startOver();
    putCursor(editor, 0);
    await until("colours", drawnBackgrounds, (all) => all.length > 0);
    await pause(500);
    await screenshot("heat-light");
    await openSass(lines.victim);
    await openSource();
    await waitForLitSass();
    await screenshot("sass-light");
  }],
];

export async function run(): Promise<void> {
  await runTests([...startUp, ...reading, ...heat, ...sass, ...jumps, ...changing, ...looks]);
}
