/** Reports as pages: one that is opened as a file, the one beside a source, and a page that is saved. */

import assert from "node:assert/strict";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { doubleClick, screenshot, waitFor } from "../desk";
import { api, facts, openSource, putCursor, startOver } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;
const FILE_TYPE = "gpaLsp.reportFile";

function profile(): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(folder);
  return vscode.Uri.joinPath(folder, "build", "relax.gpa-profile.json");
}

const readText = async (file: vscode.Uri) => Buffer.from(await vscode.workspace.fs.readFile(file)).toString("utf8");

export const pages: readonly Test[] = [
  ["a double click on a report opens its page at the kernel of the cursor", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.dividing);
    await vscode.commands.executeCommand("revealInExplorer", profile());
    await waitFor(".explorer-folders-view .monaco-list-row", "relax.gpa-profile.json");
    await doubleClick(".explorer-folders-view .monaco-list-row", "relax.gpa-profile.json");
    await until("the page", () => api.report.files.find(profile())?.isReady);
    await until("its tab", () => vscode.window.tabGroups.activeTabGroup.activeTab?.input, (shown) => shown instanceof vscode.TabInputCustom && shown.viewType === FILE_TYPE);
    const page = api.report.files.find(profile());
    assert.equal(page?.place, "#k1", "the second kernel is the one that divides");
    assert.match(page?.html ?? "", /Content-Security-Policy" content="default-src (?:'|&#39;)none/, "the page may load nothing");
    await screenshot("report-file-dark");
  }],
  ["the page that has the focus is saved as it is", async () => {
    const target = vscode.Uri.file(path.join(os.tmpdir(), `gpa-page-${process.pid}.html`));
    await vscode.commands.executeCommand("gpa.exportPage", target);
    assert.equal(await readText(target), api.report.files.find(profile())?.html);
    await vscode.workspace.fs.delete(target);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await until("closed", () => api.report.files.find(profile()) === undefined);
  }],
  ["a file that is no report says so in its place", async () => {
    const broken = vscode.Uri.file(path.join(os.tmpdir(), `gpa-broken-${process.pid}.ncu-rep`));
    await vscode.workspace.fs.writeFile(broken, Buffer.from("<b>no report</b>"));
    await vscode.commands.executeCommand("vscode.openWith", broken, FILE_TYPE);
    await until("the sentence", () => api.report.files.find(broken)?.html.includes("ncu-rep") === true && !api.report.files.find(broken)?.html.includes("Reading "));
    assert.ok(!api.report.files.find(broken)?.html.includes("<b>"));
    await screenshot("report-file-broken");
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await vscode.workspace.fs.delete(broken);
  }],
  ["the report beside a source opens at the kernel of the cursor", async () => {
    const editor = await startOver();
    await putCursor(editor, lines.dividing);
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the page", () => api.report.isReady && api.report.place === "#k1");
  }],
  ["a page that is open goes to the kernel of the cursor, without being loaded again", async () => {
    const { html } = api.report;
    const editor = await openSource();
    await putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the first kernel", () => api.report.place, (place) => place === "#k0");
    assert.equal(api.report.isReady, true);
    assert.equal(api.report.html, html);
  }],
];
