/** Lists to choose from: hot spots and kernels, each shown in the editor while the list is open. */

import { type QuickInputButton, type QuickPickItem, type QuickPickItemButtonEvent, ThemeIcon, TextEditorRevealType, Uri, window } from "vscode";
import type { Connection } from "./client";
import { placeOf, showPlace } from "./placement";
import type { HeatKind, HotSpot, Kernel, Place } from "./protocol";

const PREVIEW_DELAY_MS = 60;

const SASS_BUTTON: QuickInputButton = { iconPath: new ThemeIcon("file-binary"), tooltip: "Open SASS" };
const PAGE_BUTTON: QuickInputButton = { iconPath: new ThemeIcon("book"), tooltip: "Open Page" };

const ICONS: Readonly<Record<HeatKind, ThemeIcon>> = { suffers: new ThemeIcon("flame"), causes: new ThemeIcon("zap") };

interface HotSpotItem extends QuickPickItem {
  readonly spot: HotSpot;
}

interface KernelItem extends QuickPickItem {
  readonly kernel: Kernel;
}

/** A place in words: relax.cu:14. */
export function nameLine(place: Place): string {
  return `${Uri.parse(place.uri, true).path.split("/").pop() ?? ""}:${place.range.start.line + 1}`;
}

/** Let the user choose; what the highlighted item stands for is shown meanwhile, and what was shown before comes back when nothing is chosen. */
export async function pickWithPreview<T extends QuickPickItem>(
  title: string,
  items: readonly T[],
  findPlace: (item: T) => Place | null,
  onButton: (item: T, button: QuickInputButton) => unknown = () => undefined,
): Promise<T | undefined> {
  const before = window.activeTextEditor && placeOf(window.activeTextEditor);
  const list = window.createQuickPick<T>();
  list.title = title;
  list.items = items;
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  let timer: NodeJS.Timeout | undefined;
  let preview: Promise<unknown> = Promise.resolve();
  const show = (target: Place): void => {
    preview = showPlace(target, { preserveFocus: true, reveal: TextEditorRevealType.InCenter }).catch(() => undefined); // a file that is gone has no preview
  };
  list.onDidChangeActive(([item]) => {
    clearTimeout(timer);
    const target = item && findPlace(item);
    timer = target ? setTimeout(() => show(target), PREVIEW_DELAY_MS) : undefined;
  });
  let pressed: QuickPickItemButtonEvent<T> | undefined;
  list.onDidTriggerItemButton((event) => {
    pressed = event;
    list.hide();
  });
  const chosen = await new Promise<T | undefined>((resolve) => {
    list.onDidAccept(() => resolve(list.selectedItems[0] ?? list.activeItems[0])); // who is quick accepts before anything counts as selected
    list.onDidHide(() => resolve(undefined));
    list.show();
  });
  clearTimeout(timer);
  list.dispose();
  await preview; // one that is late would move the cursor away from what was chosen
  if (chosen === undefined && before !== undefined) {
    await showPlace(before);
  }
  if (pressed !== undefined) {
    await onButton(pressed.item, pressed.button); // last: what it opens is looked at
  }
  return chosen;
}

/** Choose among the hottest lines of all files, or of one. */
export async function listHotSpots(connection: Connection): Promise<void> {
  const spots = (await connection.run<readonly HotSpot[] | null>("gpaLsp.listHotSpots")) ?? [];
  const items: HotSpotItem[] = spots.map((spot) => ({
    label: spot.text,
    iconPath: ICONS[spot.kind],
    description: `${nameLine(spot)} · ${spot.kernel}`,
    spot,
  }));
  if (items.length === 0) {
    window.setStatusBarMessage("$(info) No profile of this workspace has hot lines", 4_000);
    return;
  }
  const chosen = await pickWithPreview("Hot spots, hottest first", items, (item) => item.spot);
  if (chosen !== undefined) {
    await showPlace(chosen.spot);
  }
}

/** Choose a kernel: its source, or with the buttons its SASS or its page, which `showPage` opens. */
export async function listKernels(connection: Connection, showPage: (mangled: string) => Promise<unknown>): Promise<void> {
  const kernels = (await connection.run<readonly Kernel[] | null>("gpaLsp.listKernels")) ?? [];
  if (kernels.length === 0) {
    window.setStatusBarMessage("$(info) No profile of this workspace has kernels", 4_000);
    return;
  }
  const items: KernelItem[] = kernels.map((kernel) => ({ label: kernel.name, detail: kernel.text, kernel, buttons: [SASS_BUTTON, PAGE_BUTTON] }));
  const chosen = await pickWithPreview("Kernels, longest first", items, (item) => item.kernel.location, (item, button) =>
    button === SASS_BUTTON ? showPlace(startOf(item.kernel.sassUri)) : showPage(item.kernel.mangled));
  if (chosen !== undefined) {
    await showPlace(chosen.kernel.location ?? startOf(chosen.kernel.sassUri));
  }
}

function startOf(uri: string): Place {
  const start = { line: 0, character: 0 };
  return { uri, range: { start, end: start } };
}
