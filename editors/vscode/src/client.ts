/** The connection to the server: found, started, stopped, asked. */

import * as path from "node:path";
import {
  type CancellationToken, commands, type Disposable, type DocumentFilter, EventEmitter, type ExtensionContext, type Hover, languages, type LogOutputChannel, type Position, type TextDocument, Uri,
  window, workspace,
} from "vscode";
import {
  type CallHierarchyItem,
  DidChangeConfigurationNotification,
  type Executable,
  ExecuteCommandRequest,
  HoverRequest,
  LanguageClient,
  type LanguageClientOptions,
  RequestType,
  State,
} from "vscode-languageclient/node";
import { type Absence, tellCrash, tellNothing } from "./absence";
import type { EnvironmentMaker } from "./environment";
import { cleanSearchPaths } from "./folders";
import { BUNDLED, readSurroundings } from "./interpreters";
import { placeDocument, toProtocol } from "./placement";
import { ASK_FOR_TEXT, CHOOSE_MEASUREMENT, type ClientAbilities, type Heat, HEAT, type Output, OUTPUT, type Page, SASS_SCHEME, SHOW_PAGE, SHOW_PREDICTION, type Status, STATUS, type TextQuestion } from "./protocol";
import { resolveServer, type ServerCommand } from "./python";
import { readAll, SECTION } from "./settings";

/** Files that may hold GPU code; the server is silent in those without a profile. */
const SUFFIXES = "cu,cuh,cpp,cc,cxx,c++,c,h,hpp,hh,hxx,h++,inl,ipp,tpp,py,jl,f,for,f90,f95,f03,F,F90,cuf,CUF,rs,mojo";

/** Descriptions of launches, which are emulated as they stand in the editor. */
const DESCRIPTIONS = "**/*.launch.toml";

/** What is ours to speak about. */
const DOCUMENTS: { scheme: string; pattern?: string }[] = [{ scheme: "file", pattern: `**/*.{${SUFFIXES}}` }, { scheme: "file", pattern: DESCRIPTIONS }, { scheme: "untitled" }, { scheme: SASS_SCHEME }];

/** VS Code puts the hovers of those first who name a language or a file, and of these whoever came last. Ours come after the language's own, whoever was started first. */
const AFTER_OTHERS: DocumentFilter = { language: "*" };

/** Commands that links in our hovers may run; nothing else. */
const LINKED_COMMANDS = ["gpaLsp.showLine", "gpaLsp.openSass", SHOW_PAGE, "gpaLsp.showHistory"];

export class Connection implements Disposable {
  readonly #context: ExtensionContext;
  readonly #log: LogOutputChannel;
  readonly #heat = new EventEmitter<Heat>();
  readonly #status = new EventEmitter<Status>();
  readonly #output = new EventEmitter<Output>();
  readonly #running = new EventEmitter<boolean>();
  readonly #page = new EventEmitter<Page>();
  readonly #absent = new EventEmitter<Absence | undefined>();
  readonly #hovers = languages.registerHoverProvider(AFTER_OTHERS, { provideHover: (document, position, token) => this.#findHover(document, position, token) });
  readonly #environment: EnvironmentMaker;
  #client: LanguageClient | undefined;
  #absence: Absence | undefined;
  #isWanted = false;
  #turn: Promise<void> = Promise.resolve();

  readonly onHeat = this.#heat.event;
  readonly onStatus = this.#status.event;
  readonly onOutput = this.#output.event;
  readonly onRunning = this.#running.event;
  /** A lens was clicked that shows a page. */
  readonly onPage = this.#page.event;
  /** Why there is no server; undefined once one is looked for again. */
  readonly onAbsence = this.#absent.event;

  constructor(context: ExtensionContext, log: LogOutputChannel, environment: EnvironmentMaker) {
    this.#context = context;
    this.#log = log;
    this.#environment = environment;
  }

  get isRunning(): boolean {
    return this.#client?.state === State.Running;
  }

  /** Why no server runs. */
  get absence(): Absence | undefined {
    return this.#absence;
  }

  /** Start the server unless that was done already, and wait until it runs or cannot. */
  start(): Promise<void> {
    return this.#isWanted ? this.#turn : this.restart();
  }

  /** Start the server, or restart it; one start or stop after the other. */
  restart(): Promise<void> {
    this.#isWanted = true;
    this.#turn = this.#turn.then(() => this.#stop()).then(() => this.#start()).catch((error: unknown) => this.#lack(tellCrash(String(error))));
    return this.#turn;
  }

  /** Restart the server where one runs or was looked for. */
  async restartIfWanted(): Promise<void> {
    if (this.#isWanted) {
      await this.restart();
    }
  }

  stop(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#stop());
    return this.#turn;
  }

  dispose(): void {
    void this.stop();
    for (const disposable of [this.#heat, this.#status, this.#output, this.#running, this.#page, this.#absent, this.#hovers]) {
      disposable.dispose();
    }
  }

  /** Run a command of the server. Undefined when there is no server. */
  async run<T>(command: string, ...args: readonly unknown[]): Promise<T | undefined> {
    await this.#turn;
    if (this.#client === undefined || !this.isRunning) {
      return undefined;
    }
    return (await this.#client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [...args] as never[] })) as T | undefined;
  }

  /** Tell the server that settings have changed. */
  async sendSettings(): Promise<void> {
    await this.#turn;
    if (this.#client !== undefined && this.isRunning) {
      await this.#client.sendNotification(DidChangeConfigurationNotification.type, { settings: { [SECTION]: readAll() } });
    }
  }

  /** Expand an item of the call hierarchy. */
  async expand<T>(method: "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls", item: CallHierarchyItem): Promise<readonly T[]> {
    if (this.#client === undefined || !this.isRunning) {
      return [];
    }
    const request = new RequestType<{ item: CallHierarchyItem }, T[] | null, void>(method);
    return (await this.#client.sendRequest(request, { item })) ?? [];
  }

  async #start(): Promise<void> {
    this.#lack(undefined);
    const found = await resolveServer(await readSurroundings(this.#context, this.#log));
    if (found.kind === "nothing") {
      this.#lack(tellNothing(found));
      return;
    }
    this.#log.info(`Server from ${found.origin}: ${[found.command, ...found.args].join(" ")}${found.isBundled ? " (bundled)" : ""}`);
    const client = new LanguageClient(SECTION, "GPU Performance Advisor", this.#makeExecutable(found), this.#makeOptions());
    client.onNotification(HEAT, (heat: Heat) => this.#heat.fire(heat));
    client.onNotification(STATUS, (status: Status) => this.#status.fire(status));
    client.onNotification(OUTPUT, (output: Output) => this.#output.fire(output));
    client.onRequest(ASK_FOR_TEXT, async ({ text, value }: TextQuestion) => (await window.showInputBox({ prompt: text, value, ignoreFocusOut: true })) ?? null);
    client.onDidChangeState(({ newState }) => this.#follow(client, newState));
    this.#client = client;
    await client.start();
    if (found.isOutdated === true) {
      void this.#environment.renew(found.command).then((isMade) => (isMade ? this.restart() : undefined));
    }
  }

  /** A server that ends by itself is started again by the client, a few times. */
  #follow(client: LanguageClient, state: State): void {
    const isRunning = state === State.Running;
    this.#running.fire(isRunning);
    if (client === this.#client && state !== State.Starting) {
      this.#lack(isRunning ? undefined : tellCrash("It ended by itself."));
    }
  }

  #lack(absence: Absence | undefined): void {
    if (absence !== undefined) {
      this.#log.error(absence.reason);
    }
    this.#absence = absence;
    this.#absent.fire(absence);
  }

  #makeExecutable(found: ServerCommand): Executable {
    // It runs in the workspace, whose commands inherit its environment: once the workspace is trusted, as it is.
    const options = workspace.isTrusted ? {} : { options: { env: cleanSearchPaths(process.env) } };
    if (!found.isBundled) {
      return { command: found.command, args: [...found.args], ...options };
    }
    const tool = this.#context.asAbsolutePath(path.join(BUNDLED, "tool", "serve.py"));
    return { command: found.command, args: [tool, path.join(this.#context.globalStorageUri.fsPath, "server")], ...options };
  }

  #makeOptions(): LanguageClientOptions {
    const client: ClientAbilities = { heat: true, status: true, output: true, links: true, callHierarchyTree: true, pages: true, typing: true, questions: true, previews: true, trusted: workspace.isTrusted };
    return {
      documentSelector: DOCUMENTS,
      diagnosticCollectionName: SECTION,
      outputChannel: this.#log,
      initializationOptions: { ...readAll(), client },
      markdown: { isTrusted: { enabledCommands: LINKED_COMMANDS }, supportHtml: false },
      uriConverters: { code2Protocol: toProtocol, protocol2Code: (uri) => Uri.parse(uri, true) },
      middleware: {
        provideHover: () => undefined, // ours are asked for by #findHover
        window: { showDocument: (params, token, next) => placeDocument(params, () => next(params, token)) },
        executeCommand: async (command, args: unknown[], next) =>
          command === CHOOSE_MEASUREMENT && args.length === 1 ? commands.executeCommand("gpa.chooseMeasurement", ...args) : this.#showPage(command, await next(command, args as never[])),
      },
    };
  }

  async #findHover(document: TextDocument, position: Position, token: CancellationToken): Promise<Hover | undefined> {
    const client = this.#client;
    if (client === undefined || !this.isRunning || languages.match(DOCUMENTS, document) === 0) {
      return undefined;
    }
    const about = client.code2ProtocolConverter.asTextDocumentPositionParams(document, position);
    const found = await client.sendRequest(HoverRequest.type, about, token).catch((error: unknown) => client.handleFailedRequest(HoverRequest.type, token, error, null));
    return client.protocol2CodeConverter.asHover(found);
  }

  #showPage(command: string, result: unknown): unknown {
    if ((command === SHOW_PREDICTION || command === SHOW_PAGE) && result) {
      this.#page.fire(result as Page);
    }
    return result;
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) {
      await client.dispose(2_000).catch((error: unknown) => this.#log.warn(`The server did not stop in order: ${String(error)}`));
    }
  }
}
