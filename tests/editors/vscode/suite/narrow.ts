/** Source and SASS beside each other in a narrow window, on dark, light and high-contrast ground. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { screenshot, texts } from "./desk";
import { api, drawnBackgrounds, facts, openExtension, openSass, openSource, sassEditor, waitForServer } from "./editor";
import { pause, runTests, type Test, until } from "./runner";

const THEMES = { dark: "Default Dark Modern", light: "Default Light Modern", "high-contrast": "Default High Contrast" };
/** Colours of a theme and of the server's tokens come a little after the text; nothing says when the last was drawn. */
const DRAWN_MS = 1_500;

async function look(theme: keyof typeof THEMES): Promise<void> {
  await vscode.workspace.getConfiguration("workbench").update("colorTheme", THEMES[theme], vscode.ConfigurationTarget.Global);
  await until("ties", () => api.ties, (all) => all.length === 2);
  await until("colours", drawnBackgrounds, (all) => all.length > 0);
  await pause(process.env.GPA_LSP_SCREENSHOTS ? DRAWN_MS : 0); // elsewhere none is taken
  await screenshot(`narrow-${theme}`);
}

const tests: readonly Test[] = [
  ["operands are seen in half of a narrow window", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
    await openSass(facts.lines.victim);
    const editor = sassEditor();
    assert.ok(editor);
    const shown = await until("instructions", () => texts(".editor-group-container:last-child .view-line"), (all) => all.some((line) => /\bLDG\b/.test(line)));
    assert.ok(shown.some((line) => /LDG\S*\s+R\d+/.test(line)), shown.join("\n"));
    const columns = editor.document.getText().split("\n").filter((line) => line.startsWith("/*")).map((line) => line.search(/[@A-Z]/));
    assert.ok(columns.every((column) => column < 24));
  }],
  ["on dark ground", async () => look("dark")],
  ["on light ground", async () => look("light")],
  ["with high contrast", async () => look("high-contrast")],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
