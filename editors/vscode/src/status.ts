/** The items in the status bar, what the server does and what lines show, and the menu behind the first. */

import { commands, type Disposable, type QuickPickItem, StatusBarAlignment, ThemeColor, window } from "vscode";
import type { Absence } from "./absence";
import { shorten } from "./brief";
import type { Connection } from "./client";
import { USUAL } from "./metrics";
import type { Status } from "./protocol";
import { SECTION } from "./settings";

/** A sentence fits the tooltip, not the bar. */
const MOST_CHARACTERS = 48;

const ICONS: Readonly<Record<Status["state"], string>> = { idle: "flame", reading: "sync~spin", measuring: "sync~spin", recording: "sync~spin", asking: "question", failed: "warning" };

interface Choice extends QuickPickItem {
  readonly command: string;
}

export class StatusItem implements Disposable {
  readonly #item = window.createStatusBarItem(`${SECTION}.status`, StatusBarAlignment.Right, 90);
  readonly #metric = window.createStatusBarItem(`${SECTION}.metric`, StatusBarAlignment.Right, 89.9);
  readonly #disposables: Disposable[];
  #status: Status | undefined;

  constructor(connection: Connection) {
    this.#item.name = "GPU Performance Advisor";
    this.#metric.name = "GPU Performance Advisor: What Is Shown";
    this.#metric.command = "gpa.chooseMetric";
    this.#disposables = [connection.onStatus((status) => this.#take(status)), connection.onRunning((isRunning) => !isRunning && this.#leave()), connection.onAbsence((absence) => this.#lack(absence))];
  }

  get present(): Status | undefined {
    return this.#status;
  }

  /** What stands in the status bar, for the tests. */
  get texts(): readonly string[] {
    return [this.#item.text, this.#metric.text];
  }

  /** What is said to whoever points at it, for the tests. */
  get tooltip(): string {
    return String(this.#item.tooltip);
  }

  dispose(): void {
    for (const disposable of [...this.#disposables, this.#item, this.#metric]) {
      disposable.dispose();
    }
  }

  #take(status: Status): void {
    this.#status = status;
    const isAsking = status.state === "asking";
    const tooltip = `${isAsking ? `${status.question} (click to answer)` : status.text}${status.detail === "" ? "" : `\n${status.detail}`}`;
    this.#show(`$(${ICONS[status.state]}) ${shorten(status.text, MOST_CHARACTERS)}`, status.text, tooltip, isAsking ? "gpa.answerMeasuring" : "gpa.menu", isAsking || status.state === "failed");
    this.#showMetric(status);
    void commands.executeCommand("setContext", `${SECTION}.hasKernels`, status.kernels > 0);
    void commands.executeCommand("setContext", `${SECTION}.measuring`, isRunning(status));
  }

  /** Where somebody chose, what they chose; where nobody did it would only take room. */
  #showMetric({ metric, kernels }: Status): void {
    this.#metric.text = `$(eye) ${metric.title}`;
    this.#metric.tooltip = `Hints, colours and lenses show: ${metric.title} (click to choose)`;
    this.#metric.accessibilityInformation = { label: `GPU lines show ${metric.title}`, role: "button" };
    if (metric.name !== USUAL && kernels > 0) {
      this.#metric.show();
    } else {
      this.#metric.hide();
    }
  }

  /** Without a server the item says why, until there is one. */
  #lack(absence: Absence | undefined): void {
    if (absence === undefined) {
      if (this.#status === undefined) {
        this.#show("$(sync~spin) GPU advisor: starting", "starting", "The server is starting (click for the log)", "gpa.showOutput", false);
      }
      return;
    }
    const [remedy] = absence.remedies;
    const tooltip = `${absence.reason}\n${absence.advice}\nClick for details and for "${remedy.title}".`;
    this.#show(`$(warning) GPU advisor: ${absence.brief}`, absence.brief, tooltip, "gpa.setUp", true);
  }

  #show(text: string, label: string, tooltip: string, command: string, isWarning: boolean): void {
    this.#item.text = text;
    this.#item.tooltip = `GPU Performance Advisor: ${tooltip}`;
    this.#item.accessibilityInformation = { label: `GPU Performance Advisor: ${label}`, role: "button" };
    this.#item.command = command;
    this.#item.backgroundColor = isWarning ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    this.#item.show();
  }

  /** What the server said counts no longer; the item goes on saying why there is none. */
  #leave(): void {
    this.#status = undefined;
    this.#metric.hide();
    void commands.executeCommand("setContext", `${SECTION}.measuring`, false);
  }
}

/** A command of the user's runs. */
function isRunning(status: Status | undefined): boolean {
  return status?.state === "measuring" || status?.state === "recording";
}

/** What can be done now, behind a click on the status bar. */
export async function showMenu(status: Status | undefined): Promise<void> {
  const isMeasuring = isRunning(status);
  const hasKernels = (status?.kernels ?? 0) > 0;
  const isAsking = (status?.question ?? "") !== "";
  const choices: Choice[] = [
    ...(isAsking ? [{ label: "$(question) Answer Whether a Command May Run…", command: "gpa.answerMeasuring" }] : []),
    ...(isMeasuring ? [{ label: "$(debug-stop) Cancel Measuring or Recording", command: "gpa.cancelMeasuring" }] : [
      { label: "$(play) Measure Now", command: "gpa.measure" },
      { label: "$(beaker) Simulate the Described Launches", command: "gpa.simulate" },
      { label: "$(record) Record Launches by Running…", command: "gpa.recordLaunches" },
    ]),
    ...(hasKernels
      ? [
          { label: "$(flame) List Hot Spots…", command: "gpa.listHotSpots" },
          { label: "$(list-unordered) List Kernels…", command: "gpa.listKernels" },
          { label: "$(graph) Show Report", command: "gpa.showPage" },
          { label: "$(history) Show History of Measurements", command: "gpa.showHistory" },
          { label: "$(versions) Choose Measurement…", command: "gpa.chooseMeasurement" },
          { label: "$(diff) Compare Measurement and Simulation", command: "gpa.compareSimulated" },
          { label: `$(eye) Choose What Is Shown… (now ${status?.metric.title ?? ""})`, command: "gpa.chooseMetric" },
          { label: "$(paintcan) Toggle Heat", command: "gpa.toggleHeat" },
          { label: "$(list-flat) Show All Hints, or as Many as a Screen Bears", command: "gpa.showAllHints" },
          { label: "$(question) Sources That May Have Changed…", command: "gpa.chooseSources" },
        ]
      : []),
    { label: "$(output) Show Output", command: "gpa.showOutput" },
    { label: "$(debug-restart) Restart Server", command: "gpa.restart" },
  ];
  const chosen = await window.showQuickPick(choices, { title: "GPU Performance Advisor", placeHolder: status?.text ?? "The server is not running" });
  if (chosen !== undefined) {
    await commands.executeCommand(chosen.command);
  }
}
