/** The tree of what a line is stalled on and what it stalls, opened level by level. */

import {
  type Command,
  type Disposable,
  EventEmitter,
  MarkdownString,
  ThemeColor,
  ThemeIcon,
  TreeItem,
  TreeItemCollapsibleState,
  type TextDocumentChangeEvent,
  type TreeDataProvider,
  Uri,
  window,
  commands,
  workspace,
} from "vscode";
import type { CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall } from "vscode-languageclient/node";
import type { Connection } from "./client";
import { isSass, showPlace, toProtocol } from "./placement";
import type { ChainItem, Direction } from "./protocol";

const VIEW = "gpaLsp.chain";

interface Heading {
  readonly kind: "heading";
  readonly direction: Direction;
  readonly links: readonly Link[];
}

interface Link {
  readonly kind: "link";
  readonly direction: Direction;
  readonly item: CallHierarchyItem;
  readonly text: string;
}

type Node = Heading | Link;

/** The line the tree is about. */
interface Origin {
  readonly uri: Uri;
  readonly line: number;
}

const TITLES: Readonly<Record<Direction, string>> = { incoming: "Stalled on", outgoing: "Stalls" };

export class ChainTree implements TreeDataProvider<Node>, Disposable {
  readonly #connection: Connection;
  readonly #changed = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#changed.event; // before the view, which reads it when it is made
  readonly #view = window.createTreeView<Node>(VIEW, { treeDataProvider: this, showCollapseAll: true });
  readonly #disposables: Disposable[];
  #roots: readonly Heading[] = [];
  #origin: Origin | undefined;
  #turn = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#disposables = [
      connection.onHeat((heat) => this.#refresh(Uri.parse(heat.uri))), // numbers have changed
      workspace.onDidChangeTextDocument((change) => this.#follow(change)),
    ];
  }

  dispose(): void {
    for (const disposable of [...this.#disposables, this.#view, this.#changed]) {
      disposable.dispose();
    }
  }

  /** Show the chain of the line under the cursor and bring the tree to the front. */
  async showChain(): Promise<void> {
    const editor = window.activeTextEditor;
    if (editor === undefined) {
      return;
    }
    if (await this.#ask({ uri: editor.document.uri, line: editor.selection.active.line })) {
      await commands.executeCommand(`${VIEW}.focus`);
    }
  }

  #refresh(uri: Uri): void {
    if (this.#origin?.uri.toString() === uri.toString()) {
      void this.#ask(this.#origin);
    }
  }

  /** Fill the tree. False when another line was asked about meanwhile. */
  async #ask(origin: Origin): Promise<boolean> {
    const turn = ++this.#turn;
    this.#origin = origin;
    const { uri, line } = origin;
    const headings: Heading[] = [];
    for (const direction of ["incoming", "outgoing"] as const) {
      const found = (await this.#connection.run<readonly ChainItem[] | null>("gpaLsp.findChain", toProtocol(uri), line, direction)) ?? [];
      if (found.length > 0) {
        headings.push({ kind: "heading", direction, links: found.map(({ item, text }) => ({ kind: "link", direction, item, text })) });
      }
    }
    if (turn !== this.#turn) {
      return false;
    }
    this.#roots = headings;
    const name = isSass(uri) ? "SASS" : (uri.path.split("/").pop() ?? "");
    this.#view.description = `${name}:${line + 1}`;
    this.#view.message = headings.length === 0 ? "This line is stalled on no other, and stalls none." : "";
    this.#changed.fire(undefined);
    return true;
  }

  /** Lines above the line of the tree come and go. */
  #follow({ document, contentChanges }: TextDocumentChangeEvent): void {
    if (this.#origin === undefined || document.uri.toString() !== this.#origin.uri.toString()) {
      return;
    }
    let { line } = this.#origin;
    for (const { range, text } of contentChanges) {
      if (range.end.line < line || (range.end.line === line && range.end.character === 0)) {
        line += text.split("\n").length - 1 - (range.end.line - range.start.line);
      }
    }
    this.#origin = { ...this.#origin, line };
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node === undefined) {
      return [...this.#roots];
    }
    return [...(node.kind === "heading" ? node.links : await this.#expand(node))];
  }

  getTreeItem(node: Node): TreeItem {
    if (node.kind === "heading") {
      const heading = new TreeItem(TITLES[node.direction], TreeItemCollapsibleState.Expanded);
      heading.iconPath = new ThemeIcon(node.direction === "incoming" ? "arrow-left" : "arrow-right");
      return heading;
    }
    const [share, ...details] = node.text.split(" · ");
    const item = new TreeItem(`${share} · ${node.item.name}`, TreeItemCollapsibleState.Collapsed); // first what is worth comparing, and where: views are narrow
    item.description = details.join(" · ");
    item.accessibilityInformation = { label: `${node.item.name}: ${node.text}, ${TITLES[node.direction]}` };
    item.tooltip = new MarkdownString().appendText(`${node.item.name}\n${node.text}`);
    item.iconPath = new ThemeIcon("circle-filled", new ThemeColor(node.direction === "incoming" ? "gpaLsp.heat.causesMarker" : "gpaLsp.heat.suffersMarker"));
    const open: Command = { command: "gpa.openLink", title: "Open", arguments: [node.item.uri, node.item.selectionRange] };
    item.command = open;
    return item;
  }

  async #expand(link: Link): Promise<readonly Link[]> {
    const toLink = (item: CallHierarchyItem): Link => ({ kind: "link", direction: link.direction, item, text: item.detail ?? "" });
    if (link.direction === "incoming") {
      const calls = await this.#connection.expand<CallHierarchyIncomingCall>("callHierarchy/incomingCalls", link.item);
      return calls.map((call) => toLink(call.from));
    }
    const calls = await this.#connection.expand<CallHierarchyOutgoingCall>("callHierarchy/outgoingCalls", link.item);
    return calls.map((call) => toLink(call.to));
  }
}

/** Open what a link of the tree stands for; the tree keeps the focus. */
export async function openLink(uri: string, range: CallHierarchyItem["selectionRange"]): Promise<void> {
  await showPlace({ uri: Uri.parse(uri, true).toString(), range }, { preserveFocus: true });
}
