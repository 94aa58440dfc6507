/** The report as a panel: the page the server wrote, shown as it is. */

import { type Disposable, Uri, ViewColumn, type WebviewPanel, window, workspace } from "vscode";
import type { Connection } from "./client";
import { type Page, SHOW_PREDICTION } from "./protocol";

const VIEW_TYPE = "gpa.report";

/** What the page says: it is there, or somebody wants to see a line of a source. */
interface Said {
  readonly command?: unknown;
  readonly file?: unknown;
  readonly line?: unknown;
}

export class ReportPanel implements Disposable {
  readonly #connection: Connection;
  #panel: WebviewPanel | undefined;
  #place = "";
  #isReady = false;

  readonly #listener: Disposable;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#listener = connection.onPage((page) => void this.#load(page));
  }

  /** The page's HTML; undefined while none is shown. */
  get html(): string | undefined {
    return this.#panel?.webview.html;
  }

  /** The page has loaded and said so. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Show the page of all kernels, at one of them when its mangled name is given. */
  async show(mangled?: string): Promise<void> {
    const page = await this.#connection.run<Page | null>("gpaLsp.showPage", ...(mangled === undefined ? [] : [mangled]));
    await this.#load(page);
  }

  /** Show what was predicted of a source. */
  async showPrediction(uri: string): Promise<void> {
    await this.#load(await this.#connection.run<Page | null>(SHOW_PREDICTION, uri));
  }

  async #load(page: Page | null | undefined): Promise<void> {
    if (!page) {
      return;
    }
    const html = Buffer.from(await workspace.fs.readFile(Uri.parse(page.uri, true))).toString("utf8");
    this.#place = page.place;
    this.#isReady = false;
    this.#open().webview.html = html;
  }

  dispose(): void {
    this.#listener.dispose();
    this.#panel?.dispose();
  }

  #open(): WebviewPanel {
    if (this.#panel !== undefined) {
      this.#panel.reveal(undefined, false);
      return this.#panel;
    }
    // The page brings its own policy: no network, and no scripts but its own. It needs no file of ours.
    const panel = window.createWebviewPanel(VIEW_TYPE, "GPU Report", ViewColumn.Beside, { enableScripts: true, retainContextWhenHidden: true, localResourceRoots: [] });
    panel.webview.onDidReceiveMessage((said: Said) => void this.#hear(said));
    panel.onDidDispose(() => {
      this.#panel = undefined;
      this.#isReady = false;
    });
    this.#panel = panel;
    return panel;
  }

  async #hear(said: Said): Promise<void> {
    if (said.command === "ready") {
      this.#isReady = true;
      await this.#panel?.webview.postMessage({ command: "show", address: this.#place });
    } else if (said.command === "open" && typeof said.file === "string" && typeof said.line === "number") {
      await this.#connection.run("gpaLsp.openPlace", said.file, said.line);
    }
  }
}
