/** A kernel that is emulated: nothing of it was measured. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { click, screenshot, waitFor } from "../desk";
import { api, hoverTexts, lensTitles, ourDiagnostics, putCursor, source, startOver } from "../editor";
import { type Test, until } from "../runner";

const SOURCE = `__global__ void transpose(const float *in, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * n + x] = in[x * n + y];
}
`;
const DESCRIPTION = `[[launch]]
kernel = "transpose"
block = [32, 8]
threads = [256, 256]
arguments = [
  { name = "in", type = "float", count = 65536 },
  { name = "out", type = "float", count = 65536 },
  { name = "n", type = "int", value = 256 },
]
`;
const ACCESS = 4;
const place = (name: string): vscode.Uri => vscode.Uri.joinPath(source, "..", name);

async function findTrial(uri: vscode.Uri): Promise<vscode.CodeAction | undefined> {
  const range = new vscode.Range(ACCESS, 4, ACCESS, 4);
  const found = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", uri, range);
  return found.find(({ title }) => title.startsWith("Try block"));
}

export const predicting: readonly Test[] = [
  ["a described kernel is emulated: lens, hints, problems, hover, a page, and a block that is tried", async () => {
    await startOver();
    const [kernel, description] = [place("moving.cu"), place("moving.launch.toml")];
    await vscode.workspace.fs.writeFile(kernel, Buffer.from(SOURCE));
    await vscode.workspace.fs.writeFile(description, Buffer.from(DESCRIPTION));
    const editor = await vscode.window.showTextDocument(kernel, { viewColumn: vscode.ViewColumn.One, preview: false });
    await until("the lens", () => lensTitles(kernel), (all) => all.some((title) => title.startsWith("predicted: ")));
    const problems = await until("problems", () => ourDiagnostics(kernel), (all) => all.length > 0);
    assert.deepEqual(problems.map(({ range, code }) => [range.start.line, code]), [[ACCESS, "emulated uncoalesced"]]);
    await putCursor(editor, ACCESS);
    await until("the hover", () => hoverTexts(kernel, editor.selection.active), (all) => /\*\*Emulated\*\*[^]*32 sectors per request/.test(all.join("\n")));
    await waitFor(".view-line", "32 sectors/req · emulated");
    await vscode.commands.executeCommand("editor.action.showHover");
    await screenshot("prediction-dark");

    const trial = await until("a block worth a try", () => findTrial(kernel));
    assert.ok(trial?.edit !== undefined);
    await vscode.workspace.applyEdit(trial.edit);
    const text = (): string => vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === description.toString())?.getText() ?? "";
    await until("the edit", text, (now) => now !== "" && !now.includes("[32, 8]"));
    await until("another emulation of what is not saved", () => lensTitles(kernel), (all) => all.some((title) => /DRAM limits/.test(title)));

    await waitFor(".codelens-decoration a", "predicted: ");
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
    await vscode.window.showTextDocument(kernel, { viewColumn: vscode.ViewColumn.One, preview: false });
    const ask = (): Thenable<vscode.CodeAction[]> => vscode.commands.executeCommand("vscode.executeCodeActionProvider", kernel, new vscode.Range(0, 0, 0, 0));
    const actions = await until("the action", ask, (all) => all.some(({ title }) => title === "Describe a launch of lone"));
    const command = actions.find(({ title }) => title === "Describe a launch of lone")?.command;
    assert.ok(command !== undefined);
    const described = vscode.commands.executeCommand<string>(command.command, ...(command.arguments ?? []));
    await waitFor(".quick-input-widget", "How large is a launch of lone?");
    await screenshot("sizes-asked-dark");
    await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
    assert.match(await described, /threads = \d+/);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }],
];
