/** Launches that are described or recorded: emulated as they are edited, simulated and timed with a save, compared with what was measured. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import * as vscode from "vscode";
import { click, press, screenshot, type, waitFor } from "./desk";
import { answerNotification, api, facts, hoverTexts, lensTitles, openExtension, openSource, ourDiagnostics, putCursor, source, startOver, waitForNotification, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const place = (name: string): vscode.Uri => vscode.Uri.joinPath(source, "..", "..", name);
const [moving, description, program] = [place("moving.cu"), place("moving.launch.toml"), place("symbols.cu")];
const ACCESS = "in[x * n + y]";
const INPUT = ".quick-input-widget input:focus";

const open = (uri: vscode.Uri): Thenable<vscode.TextEditor> => vscode.window.showTextDocument(uri, { viewColumn: vscode.ViewColumn.One, preview: false });
const set = (name: string, value: boolean): Thenable<void> => vscode.workspace.getConfiguration("gpaLsp").update(name, value, vscode.ConfigurationTarget.Workspace);

function findLine(editor: vscode.TextEditor, text: string): number {
  return editor.document.positionAt(editor.document.getText().indexOf(text)).line;
}

async function insert(editor: vscode.TextEditor, position: vscode.Position, text: string): Promise<void> {
  await editor.edit((edit) => edit.insert(position, text));
  await editor.document.save();
}

const waitForLens = (uri: vscode.Uri, words: RegExp): Promise<readonly string[]> =>
  until(`a lens with ${words}`, () => lensTitles(uri), (all) => all.some((title) => words.test(title)));

async function listHints(uri: vscode.Uri): Promise<readonly string[]> {
  const hints = await vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", uri, new vscode.Range(0, 0, 9, 0));
  return hints.map(({ label }) => (typeof label === "string" ? label : label.map(({ value }) => value).join("")));
}

/** Wait for an action on a line whose title begins with some words. */
async function findAction(uri: vscode.Uri, line: number, words: string): Promise<vscode.CodeAction> {
  const at = new vscode.Range(line, 4, line, 4);
  const ask = async (): Promise<vscode.CodeAction | undefined> =>
    (await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", uri, at)).find(({ title }) => title.startsWith(words));
  return (await until(words, ask)) as vscode.CodeAction;
}

function runAction({ command }: vscode.CodeAction): Thenable<unknown> {
  assert.ok(command !== undefined);
  return vscode.commands.executeCommand(command.command, ...(command.arguments ?? []));
}

const tests: readonly Test[] = [
  ["a described kernel is emulated: lens, hints, problems, hover, a page, and a block that is tried", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    const editor = await open(moving);
    await waitForLens(moving, /^predicted: /);
    const access = findLine(editor, ACCESS);
    const findProblem = (): vscode.Diagnostic | undefined => ourDiagnostics(moving).find(({ code }) => code === "emulated uncoalesced");
    assert.equal((await until("the problem", findProblem))?.range.start.line, access);
    await putCursor(editor, access);
    await until("the hover", () => hoverTexts(moving, editor.selection.active), (all) => /\*\*Emulated\*\*[^]*32 sectors per request/.test(all.join("\n")));
    await waitFor(".view-line", "32 sectors/req · emulated");
    await screenshot("prediction-dark");

    const trial = await findAction(moving, access, "Try block");
    assert.ok(trial.edit !== undefined);
    await vscode.workspace.applyEdit(trial.edit);
    const text = (): string => vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === description.toString())?.getText() ?? "";
    await until("the edit", text, (now) => now !== "" && !now.includes("[32, 8]"));
    await waitForLens(moving, /limited by DRAM/); // of what is not saved

    await click(".codelens-decoration a", "predicted: ");
    await until("the page", () => api.report.isReady && api.report.html?.includes("Predictions for moving.cu") === true);
    await screenshot("prediction-page-dark");
    await vscode.window.showTextDocument(description);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["sizes that nothing in the source says are asked for, in a line that begins with guesses", async () => {
    await startOver();
    const kernel = place("asked.cu");
    await vscode.workspace.fs.writeFile(kernel, Buffer.from("__global__ void lone(float *out) { out[threadIdx.x] = 1; }\n"));
    await open(kernel);
    const described = runAction(await findAction(kernel, 0, "Describe a launch of lone"));
    await waitFor(".quick-input-widget", "How large is a launch of lone?");
    await screenshot("sizes-asked-dark");
    await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
    assert.match(String(await described), /threads = \d+/);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
  ["a save simulates what is described, and lines and lens say so", async () => {
    await startOver();
    const editor = await open(moving);
    await insert(editor, new vscode.Position(0, 0), "// saved\n");
    await waitForLens(moving, /transpose · .* simulated/);
    await until("the heat", () => api.heatOf(moving).simulated, (lines) => lines.includes(findLine(editor, ACCESS)));
    const labels = await until("a hint", () => listHints(moving), (all) => all.some((label) => label.endsWith(", simulated")));
    assert.ok(labels.filter((label) => label.endsWith(", simulated")).every((label) => label.length <= 43), labels.join("\n"));
    await screenshot("simulated-dark");
  }],
  ["the code action says what came of it", async () => {
    const editor = await open(moving);
    await runAction(await findAction(moving, findLine(editor, "__global__"), "Simulate the described launches of transpose"));
    await waitForNotification("transpose on ");
    await screenshot("simulated-message-dark");
    await vscode.commands.executeCommand("notifications.clearAll");
  }],
  ["a measured kernel is shown beside its simulation", async () => {
    await putCursor(await openSource(), facts.lines.victim);
    await vscode.commands.executeCommand("gpa.compareSimulated");
    await until("the page", () => api.report.isReady && api.report.html?.includes("relax: measured and simulated"));
    assert.match(api.report.html ?? "", /relax\.cu:\d+ as measured and relax\.cu:\d+ as simulated/);
    await screenshot("comparison-dark");
  }],
  ["the first save that may time a launch asks, and then it is timed", async () => {
    await set("simulation.onSave", false);
    await set("timing.onSave", true);
    await startOver();
    await insert(await open(moving), new vscode.Position(0, 0), "// again\n");
    await answerNotification("Timing runs kernels on Made-up GPU", "Always in this workspace");
    await waitForLens(moving, /^measured 41\.2 µs ± 0\.05/);
    await screenshot("timed-dark");
  }],
  ["an edit is compared with before it", async () => {
    writeFileSync(facts.times ?? "", "36256");
    const editor = await open(moving);
    const at = editor.document.getText().indexOf("= in[");
    await insert(editor, editor.document.positionAt(at + 2), "2 * ");
    await waitForLens(moving, /^measured 36\.3 µs ± 0\.05, 12 % faster than before your edit/);
    await until("the status", () => api.statusBar[0], (text) => text?.includes("transpose measured 36.3 µs") === true);
    await until("the hint", () => listHints(moving), (all) => all.some((label) => /^(measured|·) 36\.3 µs/.test(label)));
    const kernel = findLine(editor, "__global__");
    await until("the hover", () => hoverTexts(moving, new vscode.Position(kernel, 20)), (all) => all.some((text) => text.includes("before 41.2 µs")));
    await screenshot("timed-edit-dark");
  }],
  ["a program that is typed runs when it is allowed, and its kernels are emulated", async () => {
    await open(program);
    const recorded = vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await type("./symbols");
    await screenshot("record-dark");
    await press("Enter");
    await answerNotification("Recording launches runs a program", "Run once");
    assert.equal(await recorded, true); // it is built, with a runtime library of ours, and run: what that takes is the test's own limit
    await waitForNotification("recorded launches of 1 kernel: filter");
    await waitForLens(program, /^predicted: /);
    await screenshot("recorded-dark");
    await until("what it printed", () => api.measuringOutput, (text) => text.includes("symbols: right"));
  }],
  ["what was run last is offered again, and nothing runs against the answer", async () => {
    const recorded = vscode.commands.executeCommand("gpa.recordLaunches");
    await waitFor(INPUT);
    await press("Enter");
    await answerNotification("-- ./symbols", "Never");
    await recorded;
    await until("the end of the question", () => api.status?.question, (question) => question === "");
    assert.notEqual(api.status?.state, "recording");
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
