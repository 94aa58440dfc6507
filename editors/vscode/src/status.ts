/** The item in the status bar, and the menu behind it. */

import { commands, type Disposable, type QuickPickItem, StatusBarAlignment, ThemeColor, window } from "vscode";
import type { Connection } from "./client";
import type { Status } from "./protocol";
import { SECTION } from "./settings";

/** A sentence fits the tooltip, not the bar. */
const MOST_CHARACTERS = 48;

const ICONS: Readonly<Record<Status["state"], string>> = { idle: "flame", reading: "sync~spin", measuring: "sync~spin", failed: "warning" };

interface Choice extends QuickPickItem {
  readonly command: string;
}

export class StatusItem implements Disposable {
  readonly #item = window.createStatusBarItem(`${SECTION}.status`, StatusBarAlignment.Right, 90);
  readonly #disposables: Disposable[];
  #status: Status | undefined;

  constructor(connection: Connection) {
    this.#item.name = "GPU Performance Advisor";
    this.#item.command = "gpa.menu";
    this.#disposables = [connection.onStatus((status) => this.#take(status)), connection.onRunning((isRunning) => !isRunning && this.#leave())];
  }

  get present(): Status | undefined {
    return this.#status;
  }

  dispose(): void {
    for (const disposable of [...this.#disposables, this.#item]) {
      disposable.dispose();
    }
  }

  #take(status: Status): void {
    this.#status = status;
    const text = status.text.length > MOST_CHARACTERS ? `${status.text.slice(0, MOST_CHARACTERS - 1).trimEnd()}…` : status.text;
    this.#item.text = `$(${ICONS[status.state]}) ${text}`;
    this.#item.tooltip = `GPU Performance Advisor: ${status.text}`;
    this.#item.backgroundColor = status.state === "failed" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    this.#item.show();
    void commands.executeCommand("setContext", `${SECTION}.hasKernels`, status.kernels > 0);
    void commands.executeCommand("setContext", `${SECTION}.measuring`, status.state === "measuring");
  }

  #leave(): void {
    this.#status = undefined;
    this.#item.hide();
    void commands.executeCommand("setContext", `${SECTION}.measuring`, false);
  }
}

/** What can be done now, behind a click on the status bar. */
export async function showMenu(status: Status | undefined): Promise<void> {
  const isMeasuring = status?.state === "measuring";
  const hasKernels = (status?.kernels ?? 0) > 0;
  const choices: Choice[] = [
    ...(isMeasuring ? [{ label: "$(debug-stop) Cancel Measuring", command: "gpa.cancelMeasuring" }] : [{ label: "$(play) Measure Now", command: "gpa.measure" }]),
    ...(hasKernels
      ? [
          { label: "$(flame) List Hot Spots…", command: "gpa.listHotSpots" },
          { label: "$(list-unordered) List Kernels…", command: "gpa.listKernels" },
          { label: "$(graph) Show Report", command: "gpa.showPage" },
          { label: "$(history) Show History of Measurements", command: "gpa.showHistory" },
          { label: "$(pin) Compare With the Present Measurement From Now On", command: "gpa.pinBaseline" },
          { label: "$(paintcan) Toggle Heat", command: "gpa.toggleHeat" },
          { label: "$(list-flat) Show All Hints, or as Many as a Screen Bears", command: "gpa.showAllHints" },
          { label: "$(question) Sources That May Have Changed…", command: "gpa.chooseSources" },
        ]
      : []),
    { label: "$(refresh) Read All Profiles Again", command: "gpa.reload" },
    { label: "$(output) Show Output", command: "gpa.showOutput" },
    { label: "$(debug-restart) Restart Server", command: "gpa.restart" },
  ];
  const chosen = await window.showQuickPick(choices, { title: "GPU Performance Advisor", placeHolder: status?.text ?? "The server is not running" });
  if (chosen !== undefined) {
    await commands.executeCommand(chosen.command);
  }
}
