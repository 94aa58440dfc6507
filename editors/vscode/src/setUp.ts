/** What a person sees where no server runs: a notification, and a page that stays, both with the remedies. */

import { commands, type Disposable, ViewColumn, type WebviewPanel, window } from "vscode";
import { type Absence, drawAbsence, drawSentence, REMEDY_COMMANDS } from "./absence";
import type { Connection } from "./client";
import type { EnvironmentMaker } from "./environment";

const DETAILS = "Details";

export class SetUp implements Disposable {
  readonly #connection: Connection;
  readonly #environment: EnvironmentMaker;
  readonly #listener: Disposable;
  #panel: WebviewPanel | undefined;
  #told = "";

  constructor(connection: Connection, environment: EnvironmentMaker) {
    this.#connection = connection;
    this.#environment = environment;
    this.#listener = connection.onAbsence((absence) => this.#take(absence));
  }

  /** The page that says why no server runs. */
  show(): void {
    this.#panel ??= this.#open();
    this.#panel.reveal();
    this.#draw();
  }

  /** Make a Python environment, and start the server in it. */
  async createEnvironment(): Promise<void> {
    if (await this.#environment.create()) {
      await this.#connection.restart();
    }
  }

  dispose(): void {
    this.#listener.dispose();
    this.#panel?.dispose();
  }

  #open(): WebviewPanel {
    const panel = window.createWebviewPanel("gpa.setUp", "GPU Advisor: Set Up", ViewColumn.Active, { enableCommandUris: REMEDY_COMMANDS, localResourceRoots: [] });
    panel.onDidDispose(() => (this.#panel = undefined));
    return panel;
  }

  #draw(): void {
    if (this.#panel !== undefined) {
      const { absence, isRunning } = this.#connection;
      this.#panel.webview.html = absence !== undefined ? drawAbsence(absence) : drawSentence(isRunning ? "The server of the GPU advisor runs: open a source or a report." : "Looking for a server …");
    }
  }

  #take(absence: Absence | undefined): void {
    this.#draw();
    if (absence === undefined || !absence.isNews || absence.reason === this.#told) {
      return; // the status bar and the pages go on saying it
    }
    this.#told = absence.reason;
    void this.#offer(absence);
  }

  async #offer({ reason, advice, remedies: [first] }: Absence): Promise<void> {
    const chosen = await window.showErrorMessage(`The GPU advisor has no server to run. ${reason} ${advice}`, first.title, DETAILS);
    if (chosen === first.title) {
      await commands.executeCommand(first.command);
    } else if (chosen === DETAILS) {
      this.show();
    }
  }
}
