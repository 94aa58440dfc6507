/** The suite of the packaged extension where no Python has the server's packages: from the reason to numbers on lines by clicks alone. */

import assert from "node:assert/strict";
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import { attributes, click, clickInPage, count, hover, screenshot, texts, textsInPage } from "./desk";
import { answerNotification, api, facts as allFacts, openExtension, openSource, source, waitForNotification, waitForServer } from "./editor";
import { runTests, type Test, until } from "./runner";

const NOTIFICATION = ".notifications-center .notification-list-item";
const STATUS = ".statusbar-item a";
const NEEDED = "GPU Performance Advisor: Python packages are missing";

const facts = { ...allFacts, index: allFacts.index ?? "", storage: allFacts.storage ?? "" };

const report = (): vscode.Uri => vscode.Uri.file(join(dirname(facts.source), "..", "build", "relax.gpa-profile.json"));
const page = (): string => api.report.files.find(report())?.html ?? "";

/** How the package index behaves from now on. */
const behave = (how: "refuse" | "hang" | "serve"): void => writeFileSync(facts.index, how);

/** What lies in the storage of the extension. */
function stored(): readonly string[] {
  try {
    return readdirSync(facts.storage).filter((name) => /^(environment|partial)/.test(name));
  } catch {
    return []; // nothing was ever stored
  }
}

const interpret = (program: string | undefined): Thenable<void> =>
  vscode.workspace.getConfiguration("gpaLsp").update("interpreter", program, vscode.ConfigurationTarget.Workspace);

const agree = (): Promise<void> => answerNotification("Create a Python environment for the GPU advisor?", "Create");

const tests: readonly Test[] = [
  ["a report that is opened says why it is not shown, with the button that helps first", async () => {
    await vscode.commands.executeCommand("vscode.openWith", report(), "gpaLsp.reportFile");
    await openExtension();
    await until("the reason", page, (html) => html.includes("lacks what the server that comes with the extension needs"));
    await until("the buttons", () => textsInPage("a.button"), ([first]) => first === "Create Environment…");
    await screenshot("setup-report-dark");
  }],
  ["a notification says so once, and its first button is the same", async () => {
    await waitForNotification("The GPU advisor has no server to run");
    await hover(NOTIFICATION, "The GPU advisor has no server to run");
    await until("its buttons", () => texts(`${NOTIFICATION} .monaco-button`), (all) => all[0] === "Create Environment…");
    await screenshot("setup-notification-dark");
    await vscode.commands.executeCommand("notifications.clearAll");
  }],
  ["when the notification is gone the status bar goes on saying it, and leads to a page with the button", async () => {
    await until("the item", () => attributes(STATUS, "aria-label"), (all) => all.includes(NEEDED));
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await click(STATUS, "Python packages are missing");
    await until("the page", () => textsInPage("a.button"), ([first]) => first === "Create Environment…");
    assert.match((await textsInPage("main")).join(""), /lacks what the server/);
    await screenshot("setup-page-dark");
  }],
  ["a command that needs the server leads to the page as well", async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.commands.executeCommand("gpa.listHotSpots");
    await until("the page", () => textsInPage("a.button"), ([first]) => first === "Create Environment…");
  }],
  ["without a network that is said, nothing is left, and the reason stays", async () => {
    behave("refuse");
    await clickInPage("a.button", "Create Environment");
    await agree();
    await waitForNotification("The package index cannot be reached");
    await screenshot("setup-no-network-dark");
    await vscode.commands.executeCommand("notifications.clearAll");
    assert.deepEqual(stored(), []);
    await until("the item", () => attributes(STATUS, "aria-label"), (all) => all.includes(NEEDED));
  }],
  ["who cancels is left as before", async () => {
    behave("hang");
    await clickInPage("a.button", "Create Environment");
    await agree();
    await waitForNotification("Installing the packages");
    await screenshot("setup-progress-dark");
    await click(`${NOTIFICATION} .monaco-button`, "Cancel");
    await until("nothing is left", stored, (all) => all.length === 0);
    assert.equal(await count(NOTIFICATION, "was not made"), 0);
    await until("the item", () => attributes(STATUS, "aria-label"), (all) => all.includes(NEEDED));
  }],
  ["with the index the environment is made, and numbers stand on the lines", async () => {
    behave("serve");
    await openSource();
    await vscode.commands.executeCommand("gpa.restart");
    await vscode.commands.executeCommand("gpa.setUp");
    await clickInPage("a.button", "Create Environment");
    await agree();
    await openSource();
    await waitForServer(api);
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    assert.equal(api.absence, undefined);
    assert.match(stored().join(), /^environment-[0-9a-f]{16}$/);
    await screenshot("setup-done-dark");
  }],
  ["an environment of another version serves and is renewed", async () => {
    const [present = ""] = stored();
    renameSync(join(facts.storage, present), join(facts.storage, "environment-0123456789abcdef"));
    await vscode.commands.executeCommand("gpa.restart");
    await until("the renewed one", stored, (all) => all.includes(present));
    await waitForServer(api);
  }],
  ["one that is broken is said to be, and is offered anew", async () => {
    for (const name of stored()) {
      rmSync(join(facts.storage, name, "bin", "python"));
    }
    await vscode.commands.executeCommand("gpa.restart");
    assert.match(api.absence?.reason ?? "", /lacks/); // of the Python on the path: the one that can be helped
    await vscode.commands.executeCommand("gpa.setUp");
    assert.match((await until("the page", () => textsInPage("main"), (all) => all.length > 0)).join(""), /environment made by this extension\) does not start/);
    await until("the button", () => textsInPage("a.button"), ([first]) => first === "Create Environment…");
  }],
  ["an interpreter of the user's without the packages is named, one that has them serves", async () => {
    await interpret(facts.bareInterpreter);
    await waitForNotification("lacks");
    await waitForNotification("The extension can make a Python environment of its own");
    assert.equal(api.isRunning, false);
    assert.deepEqual(api.heatOf(source).marks, []);
    await interpret(facts.interpreter);
    await waitForServer(api);
  }],
  ["a server that ends at once is said to, where the reports are as well", async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.workspace.getConfiguration("gpaLsp").update("path", [join(facts.control, "no-server")], vscode.ConfigurationTarget.Workspace);
    await until("the item", () => attributes(STATUS, "aria-label"), (all) => all.includes("GPU Performance Advisor: the server does not run"));
    await vscode.commands.executeCommand("vscode.openWith", report(), "gpaLsp.reportFile");
    await until("the buttons", () => textsInPage("a.button"), ([first]) => first === "Restart Server");
    await screenshot("setup-crash-dark");
    await vscode.workspace.getConfiguration("gpaLsp").update("path", undefined, vscode.ConfigurationTarget.Workspace);
    await until("the report", () => api.report.files.find(report())?.isReady);
  }],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
