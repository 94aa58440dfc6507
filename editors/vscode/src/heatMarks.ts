/** Heat as data: which lines get which look, and where the next hot line is. */

import type { Heat, HeatKind, HeatMark } from "./protocol";

export const LEVELS = 10;
export const KINDS: readonly HeatKind[] = ["suffers", "causes"];

/** Lines for each look, numbered kind by kind: look = kind * LEVELS + level; then the same again for lines that need care: of unverified sources, and simulated ones. */
export function groupByLook(marks: readonly HeatMark[], lineCount: number, careful: readonly number[] = []): readonly (readonly number[])[] {
  const groups: number[][] = Array.from({ length: 2 * KINDS.length * LEVELS }, () => []);
  const doubted = new Set(careful);
  for (const mark of marks) {
    if (mark.line >= 0 && mark.line < lineCount) {
      groups[lookOf(mark) + (doubted.has(mark.line) ? KINDS.length * LEVELS : 0)]?.push(mark.line);
    }
  }
  return groups;
}

export function lookOf(mark: Pick<HeatMark, "kind" | "level">): number {
  const level = Math.max(0, Math.min(LEVELS - 1, Math.round(mark.level)));
  return Math.max(0, KINDS.indexOf(mark.kind)) * LEVELS + level;
}

/** Whether a message speaks of the text as it is now; null versions always do. */
export function isCurrent(heat: Heat, version: number): boolean {
  return heat.version === null || heat.version >= version;
}

/** The nearest hot line after or before a line; from the end it starts over. Undefined when there is none. `hot` ascends. */
export function findNextHotLine<T extends { readonly line: number }>(hot: readonly T[], line: number, step: 1 | -1): T | undefined {
  const ordered = step === 1 ? hot : [...hot].reverse();
  return ordered.find((one) => (one.line - line) * step > 0) ?? ordered[0];
}
