/** What it looks like, in either theme. */

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import * as vscode from "vscode";
import { screenshot, styles, texts, waitFor } from "../desk";
import { api, drawnBackgrounds, facts, openSass, openSource, putCursor, sassEditor, startOver } from "../editor";
import { type Test, until } from "../runner";

const { lines } = facts;

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

export const looks: readonly Test[] = [
  ["the pictures of the README", async () => {
    await vscode.commands.executeCommand("notifications.clearAll");
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
    const editor = await startOver();
    await putCursor(editor, 0);
    await until("colours", drawnBackgrounds, (all) => all.length > 0);
    await until("lenses", () => texts(".codelens-decoration"), (all) => all.some((text) => text.includes("%")));
    const heatPicture = await screenshot("picture-heat", { x: 52, y: 92, width: 960, height: 430 });
    await putCursor(editor, lines.victim);
    await vscode.commands.executeCommand("gpa.toggleSass");
    await until("a SASS document", sassEditor);
    await openSource();
    await waitForLitSass();
    const sassPicture = await screenshot("picture-sass", { x: 52, y: 92, width: 1290, height: 367 });
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
    await screenshot("walkthrough-dark");
  }],
  ["the light theme", async () => {
    await vscode.workspace.getConfiguration("workbench").update("colorTheme", "Default Light Modern", vscode.ConfigurationTarget.Global);
    const editor = await startOver();
    await putCursor(editor, 0);
    await until("colours", drawnBackgrounds, (all) => all.length > 0);
    await until("hints that can be read", () => styles(".view-line span[class*=dyn-rule]", "color"), (all) => all.includes("rgb(86, 86, 86)"));
    await screenshot("heat-light");
    const customized = vscode.workspace.getConfiguration("workbench");
    await customized.update("colorCustomizations", { "editorInlayHint.foreground": "#123456" }, vscode.ConfigurationTarget.Global);
    await until("hints in the user's colour", () => styles(".view-line span[class*=dyn-rule]", "color"), (all) => all.includes("rgb(18, 52, 86)") && !all.includes("rgb(86, 86, 86)"));
    await customized.update("colorCustomizations", undefined, vscode.ConfigurationTarget.Global);
    await openSass(lines.victim);
    await openSource();
    await waitForLitSass();
    await screenshot("sass-light");
  }],
];
