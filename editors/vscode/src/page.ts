/** The report as a page: what the server wrote, shown as it is, beside a source or in place of a report that was opened. */

import {
  type CancellationToken, commands, type CustomDocument, type CustomReadonlyEditorProvider, type Disposable, RelativePattern, Uri, ViewColumn, type Webview,
  type WebviewPanel, window, workspace,
} from "vscode";
import { drawAbsence, drawSentence, REMEDY_COMMANDS } from "./absence";
import type { Connection } from "./client";
import { toProtocol } from "./placement";
import { type Page, SHOW_PREDICTION } from "./protocol";

const PANEL_TYPE = "gpa.report";
const FILE_TYPE = "gpaLsp.reportFile";

/** Set while a page has the focus, so that its command is offered there. */
const CONTEXT_KEY = "gpaLsp.pageFocus";

const CHANGE_DELAY_MS = 500;

/** The page brings its own policy: no network, and no scripts but its own. It needs no file of ours. Where there is no server, a page in its place has remedies. */
const WEBVIEW_OPTIONS = { enableScripts: true, enableCommandUris: REMEDY_COMMANDS, localResourceRoots: [] };

/** What the page says: it is there, or somebody wants to see a line of a source. */
interface Said {
  readonly command?: unknown;
  readonly file?: unknown;
  readonly line?: unknown;
}

/** A place in a source as the server takes it; nothing when none was looked at. */
type AskedPlace = readonly [] | readonly [uri: string, line: number];

/** Where somebody looks in a text, or last did: a report that is opened from the explorer opens at the kernel there. */
class LastPlace implements Disposable {
  #place: AskedPlace = [];
  readonly #listeners: readonly Disposable[];

  constructor() {
    const note = () => this.#note();
    note();
    this.#listeners = [window.onDidChangeActiveTextEditor(note), window.onDidChangeTextEditorSelection(note)];
  }

  get place(): AskedPlace {
    this.#note(); // news of a cursor that has just been moved may be on their way
    return this.#place;
  }

  #note(): void {
    const editor = window.activeTextEditor;
    if (editor !== undefined && editor.document.uri.scheme !== "output") {
      this.#place = [toProtocol(editor.document.uri), editor.selection.active.line];
    }
  }

  dispose(): void {
    for (const listener of this.#listeners) {
      listener.dispose();
    }
  }
}

/** A page in a webview: loaded, taken to its place once it says that it is there, and heard when it names a line. */
class PageView implements Disposable {
  readonly #connection: Connection;
  readonly #webview: Webview;
  readonly #listener: Disposable;
  #place = "";
  #isReady = false;
  #turn = 0;

  constructor(connection: Connection, webview: Webview) {
    this.#connection = connection;
    this.#webview = webview;
    this.#listener = webview.onDidReceiveMessage((said: Said) => void this.#hear(said));
  }

  get html(): string {
    return this.#webview.html;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get place(): string {
    return this.#place;
  }

  /** Something is going to be asked for; the answer counts as long as nothing else was asked for since. */
  begin(): number {
    return ++this.#turn;
  }

  isLatest(turn: number): boolean {
    return turn === this.#turn;
  }

  async load(page: Page, turn = this.begin()): Promise<void> {
    const html = Buffer.from(await workspace.fs.readFile(Uri.parse(page.uri, true))).toString("utf8");
    if (!this.isLatest(turn)) {
      return;
    }
    this.#place = page.place;
    if (html === this.#webview.html) {
      this.#showPlace(); // VS Code loads no page that is there already; one that is still loading asks for its place itself
      return;
    }
    this.#isReady = false;
    this.#webview.html = html;
  }

  /** A sentence in place of a page. */
  say(text: string): void {
    this.#replace(drawSentence(text));
  }

  /** Why there is no page, with what helps, unless one is shown that was loaded before. */
  tellAbsence(name: string): void {
    const { absence } = this.#connection;
    if (absence !== undefined && !this.#isReady) {
      this.#replace(drawAbsence(absence, `${name} cannot be shown: the GPU advisor has no server to run`));
    }
  }

  #replace(html: string): void {
    this.#isReady = false;
    this.#webview.html = html;
  }

  dispose(): void {
    this.#listener.dispose();
  }

  /** VS Code says whether a page took a message, but while the page has no screen it may say so never: nobody waits for that. */
  #showPlace(): void {
    void this.#webview.postMessage({ command: "show", address: this.#place });
  }

  async #hear(said: Said): Promise<void> {
    if (said.command === "ready") {
      this.#isReady = true;
      this.#showPlace();
    } else if (said.command === "open" && typeof said.file === "string" && typeof said.line === "number") {
      await this.#connection.run("gpaLsp.openPlace", said.file, said.line);
    }
  }
}

/** The page that has, or last had, the focus: what is exported. */
class FocusedPage {
  #view: PageView | undefined;
  #name = "";

  follow(view: PageView, panel: WebviewPanel, name: string): void {
    const note = () => {
      if (panel.active) {
        this.#view = view;
        this.#name = name;
      }
      void commands.executeCommand("setContext", CONTEXT_KEY, panel.active);
    };
    note();
    panel.onDidChangeViewState(note);
    panel.onDidDispose(() => {
      if (this.#view === view) {
        this.#view = undefined;
        void commands.executeCommand("setContext", CONTEXT_KEY, false);
      }
    });
  }

  /** Save the page as a file that opens in any browser. */
  async export(target?: Uri): Promise<void> {
    if (this.#view === undefined) {
      void window.showInformationMessage("Open a GPU report first: double-click an .ncu-rep file, or run GPU: Show Report.");
      return;
    }
    const folder = workspace.workspaceFolders?.[0]?.uri;
    const proposed = folder === undefined ? undefined : Uri.joinPath(folder, `${this.#name}.html`);
    const file = target ?? (await window.showSaveDialog({ filters: { "Web page": ["html"] }, ...(proposed === undefined ? {} : { defaultUri: proposed }) }));
    if (file !== undefined) {
      await workspace.fs.writeFile(file, Buffer.from(this.#view.html, "utf8"));
    }
  }
}

export class ReportPanel implements Disposable {
  readonly #connection: Connection;
  readonly #last = new LastPlace();
  readonly #focused = new FocusedPage();
  #panel: WebviewPanel | undefined;
  #view: PageView | undefined;

  /** Reports that were opened as files. */
  readonly files: ReportFiles;

  readonly #listeners: readonly Disposable[];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.files = new ReportFiles(connection, this.#last, this.#focused);
    this.#listeners = [connection.onPage((page) => void this.#load(page)), this.#last, this.files];
  }

  /** The page's HTML; undefined while none is shown. */
  get html(): string | undefined {
    return this.#view?.html;
  }

  /** The page has loaded and said so. */
  get isReady(): boolean {
    return this.#view?.isReady ?? false;
  }

  /** The fragment the page was opened at. */
  get place(): string {
    return this.#view?.place ?? "";
  }

  /** Show the page of all kernels: at one of them when its mangled name is given, else at the one the cursor is in. */
  async show(mangled?: string): Promise<void> {
    const where = mangled === undefined ? this.#last.place : [mangled];
    await this.#load(await this.#connection.run<Page | null>("gpaLsp.showPage", ...where));
  }

  /** Show what was predicted of a source. */
  async showPrediction(uri: string): Promise<void> {
    await this.#load(await this.#connection.run<Page | null>(SHOW_PREDICTION, uri));
  }

  /** Show the measured kernel that the cursor is in beside the same as it is simulated. */
  async showComparison(): Promise<void> {
    await this.#load(await this.#connection.run<Page | null>("gpaLsp.compareSimulated", ...this.#last.place));
  }

  /** Save the page that has the focus. */
  async export(target?: Uri): Promise<void> {
    await this.#focused.export(target);
  }

  async #load(page: Page | null | undefined): Promise<void> {
    if (page) {
      await this.#open().load(page);
    }
  }

  dispose(): void {
    for (const listener of this.#listeners) {
      listener.dispose();
    }
    this.#panel?.dispose();
  }

  #open(): PageView {
    if (this.#panel !== undefined && this.#view !== undefined) {
      this.#panel.reveal(undefined, false);
      return this.#view;
    }
    const panel = window.createWebviewPanel(PANEL_TYPE, "GPU Report", ViewColumn.Beside, { ...WEBVIEW_OPTIONS, retainContextWhenHidden: true });
    const view = new PageView(this.#connection, panel.webview);
    panel.onDidDispose(() => {
      view.dispose();
      this.#panel = this.#view = undefined;
    });
    this.#focused.follow(view, panel, "gpu-report");
    this.#panel = panel;
    this.#view = view;
    return view;
  }
}

/** Reports opened as files: a double click on one shows its page. */
export class ReportFiles implements CustomReadonlyEditorProvider, Disposable {
  readonly #connection: Connection;
  readonly #last: LastPlace;
  readonly #focused: FocusedPage;
  readonly #views = new Map<string, PageView>();
  readonly #registration: Disposable;

  constructor(connection: Connection, last: LastPlace, focused: FocusedPage) {
    this.#connection = connection;
    this.#last = last;
    this.#focused = focused;
    this.#registration = window.registerCustomEditorProvider(FILE_TYPE, this, { webviewOptions: { retainContextWhenHidden: true } });
  }

  /** The page of a file that is open. */
  find(file: Uri): { readonly html: string; readonly isReady: boolean; readonly place: string } | undefined {
    return this.#views.get(file.toString());
  }

  openCustomDocument(uri: Uri): CustomDocument {
    return { uri, dispose: () => undefined };
  }

  async resolveCustomEditor(document: CustomDocument, panel: WebviewPanel, cancelled: CancellationToken): Promise<void> {
    panel.webview.options = WEBVIEW_OPTIONS;
    const view = new PageView(this.#connection, panel.webview);
    const key = document.uri.toString();
    const name = document.uri.path.split("/").pop() ?? "report";
    const where = this.#last.place; // before the page itself has the focus
    this.#views.set(key, view);
    this.#focused.follow(view, panel, name);
    const load = () => void this.#load(document.uri, name, where, view, cancelled);
    const watcher = workspace.createFileSystemWatcher(new RelativePattern(Uri.joinPath(document.uri, ".."), name), false, false, true);
    let timer: NodeJS.Timeout | undefined;
    const again = () => {
      clearTimeout(timer);
      timer = setTimeout(load, CHANGE_DELAY_MS); // a profiler writes its file in parts
    };
    const listeners = [watcher, watcher.onDidChange(again), watcher.onDidCreate(again), this.#connection.onRunning((isRunning) => isRunning && load()), this.#connection.onAbsence(() => view.tellAbsence(name))];
    panel.onDidDispose(() => {
      clearTimeout(timer);
      this.#views.delete(key);
      for (const listener of [...listeners, view]) {
        listener.dispose();
      }
    });
    view.say(`Reading ${name} …`);
    void this.#connection.start().then(load);
  }

  async #load(uri: Uri, name: string, where: AskedPlace, view: PageView, cancelled: CancellationToken): Promise<void> {
    const turn = view.begin();
    try {
      const page = await this.#connection.run<Page | { readonly failure: string } | null>("gpaLsp.openReport", toProtocol(uri), ...where);
      if (cancelled.isCancellationRequested || !view.isLatest(turn)) {
        return; // it was closed, or it is being asked for again
      }
      if (page === undefined) {
        view.tellAbsence(name); // it is asked for once there is a server
        return;
      }
      if (page === null || "failure" in page) {
        view.say(page === null ? `${name} is not a file on the disk of the server.` : page.failure);
      } else {
        await view.load(page, turn);
      }
    } catch (error) {
      view.say(`${name} cannot be shown: ${String(error)}`);
    }
  }

  dispose(): void {
    this.#registration.dispose();
  }
}
