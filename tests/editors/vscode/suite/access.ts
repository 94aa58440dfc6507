/** By keyboard alone, and for those who hear the screen; on every ground; among a hundred reports. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { attributes, press, screenshot, texts, waitFor, waitForPicker } from "./desk";
import { activeLine, activeScheme, api, drawnBackgrounds, facts, focusText, lensTitles, openExtension, openSource, ourDiagnostics, pressInText, putCursor, ROW, source, startOver, textOfLine, waitForServer } from "./editor";
import { pause, runTests, type Test, until } from "./runner";

const { lines } = facts;
const THEMES = { dark: "Default Dark Modern", light: "Default Light Modern", "high-contrast": "Default High Contrast", "high-contrast-light": "Default High Contrast Light" };
/** What the window says of itself when it has a theme. */
const GROUNDS = { dark: "vs-dark", light: "vs", "high-contrast": "hc-black", "high-contrast-light": "hc-light" };
/** Colours of a theme and of the server's tokens come a little after the text; nothing says when the last was drawn. */
const DRAWN_MS = 1_500;

async function look(theme: keyof typeof THEMES): Promise<void> {
  await vscode.workspace.getConfiguration("workbench").update("colorTheme", THEMES[theme], vscode.ConfigurationTarget.Global);
  await putCursor(await openSource(), 0);
  await waitFor(`.monaco-workbench.${GROUNDS[theme]}`);
  await until("colours", drawnBackgrounds, (all) => new Set(all).size > 2);
  await pause(process.env.GPA_LSP_SCREENSHOTS ? DRAWN_MS : 0); // elsewhere none is taken
  await screenshot(`ground-${theme}`);
}

const tests: readonly Test[] = [
  ["of a hundred reports the newest measurement of each kernel is shown, and the others are its past", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    assert.equal(api.status?.kernels, 2);
    assert.equal(api.status?.profiles, 1);
    const titles = await until("lenses", () => lensTitles(source), (all) => all.some((title) => title.startsWith("relax")));
    assert.deepEqual(titles.filter((title) => /^(relax|normalise) ·/.test(title)).map((title) => title.split(" · ")[1]), ["186 µs", "41.2 µs"]);
    const readPage = async () => {
      const text = String(await vscode.commands.executeCommand("gpaLsp.showLine", source.toString(), lines.victim));
      const isPage = (tab: vscode.Tab | undefined): boolean => tab?.input instanceof vscode.TabInputWebview;
      const page = await until("the page", () => vscode.window.tabGroups.all.flatMap((group) => group.tabs).find(isPage), isPage);
      assert.ok(page !== undefined && await vscode.window.tabGroups.close(page));
      return text;
    };
    await until("what went before", readPage, (text) => /over \d\d+ runs/.test(text));
  }],
  ["another of a kernel's measurements is shown by its lens, and the newest again", async () => {
    await putCursor(await openSource(), lines.victim);
    const titles = () => lensTitles(source);
    await until("the lens", titles, (all) => all.some((title) => /^shown: .* ▾$/.test(title)));
    for (const [row, time] of [[1, false], [0, true]] as const) {
      const chosen = vscode.commands.executeCommand("gpa.chooseMeasurement");
      await waitFor(ROW, "186 µs");
      await waitForPicker();
      await screenshot(`choose-measurement-${row}`);
      for (let step = 0; step < row; step++) {
        await press("ArrowDown");
      }
      await press("Enter");
      await chosen;
      await until("the time", titles, (all) => all.some((title) => title.startsWith("relax · 186 µs")) === time);
    }
  }],
  ["the status bar is read whole, without the name of its icon", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await until("the item", () => attributes(".statusbar-item a", "aria-label"), (all) => all.includes(`GPU Performance Advisor: ${api.status?.text}`));
  }],
  ["from the hottest line to its cause, its SASS and back, without a mouse", async () => {
    const editor = await openSource();
    await putCursor(editor, 0);
    await pressInText("Control+F8");
    await until("a hot line", activeLine, (line) => line !== undefined && line !== 0);
    await putCursor(editor, lines.victim);
    await pressInText("Alt+J");
    await until("the cause", activeLine, (line) => line === lines.cause);
    await pressInText("Alt+M");
    await until("the SASS", activeScheme, (scheme) => scheme === "gpa-sass");
    await until("the instruction", () => textOfLine(), (text) => /LDG/.test(text));
    await pressInText("Alt+M");
    await until("the source", activeScheme, (scheme) => scheme === "file");
    await until("its line", activeLine, (line) => line === lines.cause);
  }],
  ["a problem of ours is reached and read by its key", async () => {
    await putCursor(await openSource(), lines.loop);
    await until("problems", () => ourDiagnostics(source), (all) => all.some(({ range }) => range.start.line > lines.loop));
    await focusText();
    await press("Alt+F8");
    await until("the problem", () => texts(".marker-widget"), (all) => all.some((text) => text.includes("long_scoreboard")));
    await press("Escape");
    await waitFor(".marker-widget", undefined, "hidden");
  }],
  ["the menu of the status bar is a list that keys walk", async () => {
    const chosen = vscode.commands.executeCommand("gpa.menu");
    await waitFor(ROW, "List Hot Spots");
    await waitForPicker();
    const labels = await attributes(ROW, "aria-label");
    assert.ok(labels.length >= 5 && labels.every((label) => label.length > 3 && !label.includes("$(")), labels.join("\n"));
    await press("ArrowDown");
    await press("Escape");
    await chosen;
  }],
  ["an entry of the chain says what it is", async () => {
    await putCursor(await openSource(), lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const [heading] = await until("the chain", () => api.chain.getChildren(), (all) => all.length > 0);
    const [link] = await api.chain.getChildren(heading);
    const label = api.chain.getTreeItem(link).accessibilityInformation?.label ?? "";
    assert.match(label, /\bStalled on\b.*%|%.*\bStalled on\b/i);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
  }],
  ["the page of a report has a language, a name and headings", async () => {
    await vscode.commands.executeCommand("gpa.showPage");
    await until("the page", () => api.report.isReady, Boolean);
    const html = api.report.html ?? "";
    assert.match(html, /<html[^>]* lang="en"/);
    assert.match(html, /<title>[^<]+<\/title>/);
    assert.match(html, /<main\b/);
    await startOver();
  }],
  ["heat and hints on dark ground", async () => look("dark")],
  ["heat and hints on light ground", async () => look("light")],
  ["heat and hints with high contrast", async () => look("high-contrast")],
  ["heat and hints with high contrast on light ground", async () => look("high-contrast-light")],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
