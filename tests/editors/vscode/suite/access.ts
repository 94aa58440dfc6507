/** By keyboard alone, and for those who hear the screen; on every ground. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { attributes, press, screenshot, texts, waitFor } from "./desk";
import { activeLine, activeScheme, api, drawnBackgrounds, facts, openExtension, openSource, putCursor, source, textOfLine, waitForServer } from "./editor";
import { pause, runTests, type Test, until } from "./runner";

const { lines } = facts;
const THEMES = { dark: "Default Dark Modern", light: "Default Light Modern", "high-contrast": "Default High Contrast", "high-contrast-light": "Default High Contrast Light" };
const DRAWN_MS = 1_500;

async function look(theme: keyof typeof THEMES): Promise<void> {
  await vscode.workspace.getConfiguration("workbench").update("colorTheme", THEMES[theme], vscode.ConfigurationTarget.Global);
  putCursor(await openSource(), 0);
  await until("colours", drawnBackgrounds, (all) => new Set(all).size > 2);
  await pause(DRAWN_MS);
  await screenshot(`ground-${theme}`);
}

const tests: readonly Test[] = [
  ["the status bar is read whole, without the name of its icon", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await until("the item", () => attributes(".statusbar-item a", "aria-label"), (all) => all.includes(`GPU Performance Advisor: ${api.status?.text}`));
  }],
  ["from the hottest line to its cause, its SASS and back, without a mouse", async () => {
    const editor = await openSource();
    putCursor(editor, 0);
    await until("heat", () => api.heatOf(source).marks.length, (marks) => marks > 0);
    await press("Control+F8");
    await until("a hot line", activeLine, (line) => line !== 0);
    putCursor(editor, lines.victim);
    await press("Alt+J");
    await until("the cause", activeLine, (line) => line === lines.cause);
    await press("Alt+M");
    await until("the SASS", activeScheme, (scheme) => scheme === "gpa-sass");
    await until("the instruction", () => textOfLine(), (text) => /LDG/.test(text));
    await press("Alt+M");
    await until("the source", activeScheme, (scheme) => scheme === "file");
    assert.equal(activeLine(), lines.cause);
  }],
  ["a problem of ours is reached and read by its key", async () => {
    putCursor(await openSource(), lines.loop);
    await press("Alt+F8");
    await until("the problem", () => texts(".marker-widget"), (all) => all.some((text) => text.includes("long_scoreboard")));
    await press("Escape");
  }],
  ["the menu of the status bar is a list that keys walk", async () => {
    void vscode.commands.executeCommand("gpa.menu");
    await waitFor(".quick-input-widget .monaco-list-row", "List Hot Spots");
    const labels = await attributes(".quick-input-widget .monaco-list-row", "aria-label");
    assert.ok(labels.length >= 5 && labels.every((label) => label.length > 3 && !label.includes("$(")), labels.join("\n"));
    await press("ArrowDown");
    await press("Escape");
  }],
  ["an entry of the chain says what it is", async () => {
    putCursor(await openSource(), lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const [heading] = await until("the chain", () => api.chain.getChildren(), (all) => all.length > 0);
    const [link] = await api.chain.getChildren(heading);
    const label = api.chain.getTreeItem(link).accessibilityInformation?.label ?? "";
    assert.match(label, /\bWaits for\b.*%|%.*\bWaits for\b/i);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
  }],
  ["the page of a report has a language, a name and headings", async () => {
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the page", () => api.report.isReady, Boolean);
    const html = api.report.html ?? "";
    assert.match(html, /<html[^>]* lang="en"/);
    assert.match(html, /<title>[^<]+<\/title>/);
    assert.match(html, /<main\b/);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  }],
  ["heat and hints on dark ground", async () => look("dark")],
  ["heat and hints on light ground", async () => look("light")],
  ["heat and hints with high contrast", async () => look("high-contrast")],
  ["heat and hints with high contrast on light ground", async () => look("high-contrast-light")],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
