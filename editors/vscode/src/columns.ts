/** The columns of the SASS, of the person's choice, and its instructions in the order of one of them. */

import { type QuickPickItem, type TextEditor, ThemeIcon, window } from "vscode";
import type { Connection } from "./client";
import { pickWithPreview } from "./lists";
import { isSass, showPlace, toProtocol } from "./placement";
import type { Column, Instruction } from "./protocol";

const USUAL_BUTTON = { iconPath: new ThemeIcon("discard"), tooltip: "The usual columns" };
const ORDER_BUTTON = { iconPath: new ThemeIcon("sort-precedence"), tooltip: "In the order of another column" };

interface ColumnItem extends QuickPickItem {
  readonly column: Column;
}

interface InstructionItem extends QuickPickItem {
  readonly instruction: Instruction;
}

/** The SASS the person looks at: where the cursor is, or beside it. */
function findSass(): TextEditor | undefined {
  const active = window.activeTextEditor;
  return active !== undefined && isSass(active.document.uri) ? active : window.visibleTextEditors.find((editor) => isSass(editor.document.uri));
}

async function listColumns(connection: Connection, editor: TextEditor | undefined): Promise<readonly Column[]> {
  const about = editor === undefined ? [] : [toProtocol(editor.document.uri)];
  const columns = (await connection.run<readonly Column[] | null>("gpaLsp.listColumns", ...about)) ?? [];
  if (columns.length === 0) {
    window.setStatusBarMessage("$(info) No profile of this workspace has kernels", 4_000);
  }
  return columns;
}

/** Choose what stands beside the instructions; the server keeps the choice for this workspace. */
export async function chooseColumns(connection: Connection): Promise<void> {
  const columns = await listColumns(connection, findSass());
  if (columns.length === 0) {
    return;
  }
  const list = window.createQuickPick<ColumnItem>();
  list.title = "Columns of the SASS";
  list.placeholder = "The first number stands before the instruction, everything else behind it";
  list.canSelectMany = true;
  list.matchOnDescription = true;
  list.buttons = [USUAL_BUTTON];
  list.items = columns.map((column) => ({ label: column.title, description: column.detail, column }));
  list.selectedItems = list.items.filter(({ column }) => column.isShown);
  const chosen = await new Promise<readonly string[] | null | undefined>((resolve) => {
    list.onDidTriggerButton(() => resolve(null));
    list.onDidAccept(() => resolve(list.items.filter((item) => list.selectedItems.includes(item)).map(({ column }) => column.name)));
    list.onDidHide(() => resolve(undefined));
    list.show();
  });
  list.dispose();
  if (chosen !== undefined) {
    await connection.run("gpaLsp.chooseColumns", ...(chosen === null ? [] : [chosen]));
  }
}

/** The instructions of the SASS, hottest first; the one that is chosen is jumped to. `by` is the column they are sorted by. */
export async function listInstructions(connection: Connection, by = "share"): Promise<void> {
  const editor = findSass();
  if (editor === undefined) {
    window.setStatusBarMessage("$(info) Open the SASS of a line first (GPU: Toggle Source / SASS)", 4_000);
    return;
  }
  const uri = toProtocol(editor.document.uri);
  const found = (await connection.run<readonly Instruction[] | null>("gpaLsp.listInstructions", uri, by)) ?? [];
  const columns = await listColumns(connection, editor);
  const title = columns.find(({ name }) => name === by)?.detail ?? by;
  const items: InstructionItem[] = found.map((instruction) => ({
    label: `${instruction.value}  ${instruction.name}`, description: instruction.detail, instruction, buttons: [ORDER_BUTTON],
  }));
  if (items.length === 0) {
    window.setStatusBarMessage(`$(info) Nothing is known of: ${title}`, 4_000);
    return;
  }
  let wantsOrder = false;
  const chosen = await pickWithPreview(`Instructions by ${title}, largest first`, items, (item) => item.instruction, () => (wantsOrder = true));
  if (wantsOrder) {
    await chooseOrder(connection, columns);
  } else if (chosen !== undefined) {
    await showPlace(chosen.instruction);
  }
}

async function chooseOrder(connection: Connection, columns: readonly Column[]): Promise<void> {
  const items: ColumnItem[] = columns.filter(({ isNumber }) => isNumber).map((column) => ({ label: column.title, description: column.detail, column }));
  const chosen = items.length === 0 ? undefined : await window.showQuickPick(items, { title: "Sort the instructions by", matchOnDescription: true });
  if (chosen !== undefined) {
    await listInstructions(connection, chosen.column.name);
  }
}
