/** Themes, the walkthrough, and what those read who hear the screen. */

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { attributes, screenshot, styles, waitFor } from "../desk";
import { api, drawnBackgrounds, facts, openSource, putCursor, startOver } from "../editor";
import { pause, type Test, until } from "../runner";

const { lines } = facts;
/** A theme, and the class of the window that has it. */
const GROUNDS = { "Default High Contrast": "hc-black", "Default High Contrast Light": "hc-light", "Default Light Modern": "vs" };
/** Colours of a theme and of the server's tokens come a little after the text; nothing says when the last was drawn. */
const DRAWN_MS = 1_500;

export const looks: readonly Test[] = [
  ["the status bar is read whole, without the name of its icon", async () => {
    await startOver();
    await until("the item", () => attributes(".statusbar-item a", "aria-label"), (all) => all.includes(`GPU Performance Advisor: ${api.status?.text}`));
  }],
  ["an entry of the chain says what it is", async () => {
    await putCursor(await startOver(), lines.victim);
    await vscode.commands.executeCommand("gpa.showChain");
    const [heading] = await until("the chain", () => api.chain.getChildren(), (all) => all.length > 0);
    const [link] = await api.chain.getChildren(heading);
    const label = api.chain.getTreeItem(link).accessibilityInformation?.label ?? "";
    assert.match(label, /\bStalled on\b.*%|%.*\bStalled on\b/i);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
  }],
  ["the walkthrough opens at its first step", async () => {
    await startOver();
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", "gpa-lsp.gpa-lsp#start", false);
    await waitFor(".getting-started-category, .gettingStartedContainer", "Find Out Why Your Kernels Stall");
    await waitFor(".getting-started-step", "Record a profile");
    await screenshot("walkthrough-dark");
  }],
  ["heat is drawn on every ground", async () => {
    await putCursor(await startOver(), 0);
    for (const [theme, ground] of Object.entries(GROUNDS)) {
      await vscode.workspace.getConfiguration("workbench").update("colorTheme", theme, vscode.ConfigurationTarget.Global);
      await waitFor(`.monaco-workbench.${ground}`);
      await until("colours", drawnBackgrounds, (all) => new Set(all).size > 2);
      await pause(process.env.GPA_LSP_SCREENSHOTS ? DRAWN_MS : 0); // elsewhere no picture is taken
      await screenshot(`ground-${ground}`);
    }
  }],
  ["hints can be read on light ground, in the extension's colour or the user's", async () => {
    await openSource();
    await until("hints that can be read", () => styles(".view-line span[class*=dyn-rule]", "color"), (all) => all.includes("rgb(86, 86, 86)"));
    const customized = vscode.workspace.getConfiguration("workbench");
    await customized.update("colorCustomizations", { "editorInlayHint.foreground": "#123456" }, vscode.ConfigurationTarget.Global);
    await until("hints in the user's colour", () => styles(".view-line span[class*=dyn-rule]", "color"), (all) => all.includes("rgb(18, 52, 86)") && !all.includes("rgb(86, 86, 86)"));
  }],
];
