/** The pictures of the README, on dark and on light ground. They are cut so that nothing of the window's frame is left. */

import * as vscode from "vscode";
import { screenshot, texts } from "./desk";
import { activeLine, api, drawnBackgrounds, facts, openExtension, openSource, putCursor, sassEditor, startOver, waitForServer } from "./editor";
import { pause, runTests, type Test, until } from "./runner";

const { lines } = facts;
const CAUSE = { x: 53, y: 146, width: 1056, height: 378 };
const HEAT = { x: 53, y: 92, width: 1056, height: 560 };
const SASS = { x: 53, y: 146, width: 1056, height: 450 };
const PAGE = { x: 53, y: 72, width: 1077, height: 610 };
/** Colours of a theme and of the server's tokens come a little after the text; nothing says when the last was drawn. */
const DRAWN_MS = 1_500;

async function show(): Promise<vscode.TextEditor> {
  const editor = await startOver();
  await vscode.commands.executeCommand("notifications.clearAll");
  await until("colours", drawnBackgrounds, (all) => all.length > 0);
  await until("lenses", () => texts(".codelens-decoration"), (all) => all.some((text) => text.includes("%")));
  return editor;
}

async function takePictures(ground: string): Promise<void> {
  const editor = await show();
  await putCursor(editor, 0);
  await pause(DRAWN_MS);
  await screenshot(`heat-${ground}`, HEAT);
  await putCursor(editor, lines.victim);
  await vscode.commands.executeCommand("gpa.goToCause");
  await until("the jump", activeLine, (line) => line === lines.cause);
  await putCursor(editor, lines.loop);
  await vscode.commands.executeCommand("editor.action.marker.next");
  await until("the cause's message", () => texts(".marker-widget"), (all) => all.some((text) => text.includes("long_scoreboard")));
  await pause(DRAWN_MS);
  await screenshot(`cause-${ground}`, CAUSE);
  await vscode.commands.executeCommand("closeMarkersNavigation");
  await putCursor(editor, lines.victim);
  await vscode.commands.executeCommand("gpa.toggleSass");
  const sass = await until("a SASS document", sassEditor);
  await vscode.window.showTextDocument(sass?.document ?? editor.document, sass?.viewColumn);
  await vscode.commands.executeCommand("workbench.action.increaseViewWidth");
  await openSource();
  await pause(DRAWN_MS);
  await screenshot(`sass-${ground}`, SASS);
}

/** The page of a report as it is opened by a double click. */
async function takePage(ground: string): Promise<void> {
  await startOver();
  await vscode.commands.executeCommand("gpa.showPage");
  await until("the page", () => api.report.isReady);
  await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
  await vscode.commands.executeCommand("workbench.action.moveEditorToFirstGroup");
  await pause(2 * DRAWN_MS);
  await screenshot(`page-${ground}`, PAGE);
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
}

const tests: readonly Test[] = [
  ["the server has read the profile", async () => {
    await openSource();
    await openExtension();
    await waitForServer(api);
    await vscode.commands.executeCommand("workbench.action.closeSidebar");
  }],
  ["pictures on dark ground", async () => takePictures("dark")],
  ["the page on dark ground", async () => takePage("dark")],
  ["pictures on light ground", async () => {
    await vscode.workspace.getConfiguration("workbench").update("colorTheme", "Default Light Modern", vscode.ConfigurationTarget.Global);
    await takePictures("light");
  }],
  ["the page on light ground", async () => takePage("light")],
];

export async function run(): Promise<void> {
  await runTests(tests);
}
