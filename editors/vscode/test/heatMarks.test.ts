import assert from "node:assert/strict";
import { test } from "node:test";
import { findNextHotLine, groupByLook, isCurrent, KINDS, LEVELS, lookOf } from "../src/heatMarks";
import type { HeatKind, HeatMark } from "../src/protocol";

const mark = (line: number, level: number, kind: HeatKind = "suffers"): HeatMark => ({ line, level, kind, ratio: level / 9, kernel: "k", text: "" });

test("each mark goes to one look, by kind and level", () => {
  const groups = groupByLook([mark(1, 0), mark(2, 9), mark(3, 9, "causes"), mark(5, 9)], 10);
  assert.equal(groups.length, 2 * KINDS.length * LEVELS);
  assert.deepEqual(groups[0], [1]);
  assert.deepEqual(groups[9], [2, 5]);
  assert.deepEqual(groups[19], [3]);
  assert.equal(groups.flat().length, 4);
});

test("lines of unverified sources have looks of their own", () => {
  const groups = groupByLook([mark(1, 0), mark(2, 9), mark(3, 9, "causes")], 10, [2, 3, 7]);
  assert.deepEqual([groups[0], groups[9], groups[29], groups[39]], [[1], [], [2], [3]]);
});

test("levels off the scale end at its ends, and lines behind the text are dropped", () => {
  assert.equal(lookOf({ kind: "suffers", level: 12 }), 9);
  assert.equal(lookOf({ kind: "causes", level: -1 }), 10);
  assert.deepEqual(groupByLook([mark(10, 1), mark(-1, 1)], 10).flat(), []);
});

test("messages for an older text are not current, those without a version always are", () => {
  const heat = (version: number | null) => ({ uri: "u", version, marks: [], stale: [] });
  assert.deepEqual([isCurrent(heat(3), 4), isCurrent(heat(4), 4), isCurrent(heat(null), 4)], [false, true, true]);
});

test("the next hot line is the nearest one that way, and from the last the first", () => {
  const marks = [mark(3, 1), mark(8, 2), mark(20, 3)];
  const lines = ([from, step]: [number, 1 | -1]) => findNextHotLine(marks, from, step)?.line;
  assert.deepEqual(([[0, 1], [3, 1], [20, 1], [20, -1], [3, -1], [9, -1]] as [number, 1 | -1][]).map(lines), [3, 8, 3, 8, 20, 8]);
  assert.equal(findNextHotLine([], 3, 1), undefined);
});
