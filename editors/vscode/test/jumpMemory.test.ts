import assert from "node:assert/strict";
import { test } from "node:test";
import { JumpMemory } from "../src/jumpMemory";
import type { Jump } from "../src/protocol";

const at = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 20 } });
const SASS = { uri: "gpa-sass:///k.nvsass", range: at(70) };
const JUMP: Jump = { uri: "file:///a.cu", range: at(12), text: "", ratio: 0.5, samples: 10, sass: SASS };

test("from where a jump landed the way to the SASS ends at the instruction meant", () => {
  const memory = new JumpMemory();
  memory.remember(JUMP, "file:///a.cu", 3);
  assert.deepEqual(memory.recall("file:///a.cu", 12, 3), SASS);
});

test("elsewhere, or after an edit, it is forgotten", () => {
  const memory = new JumpMemory();
  memory.remember(JUMP, "file:///a.cu", 3);
  assert.equal(memory.recall("file:///a.cu", 13, 3), undefined);
  assert.equal(memory.recall("file:///b.cu", 12, 3), undefined);
  assert.equal(memory.recall("file:///a.cu", 12, 4), undefined);
});

test("a jump without an instruction takes the place of the one before", () => {
  const memory = new JumpMemory();
  memory.remember(JUMP, "file:///a.cu", 3);
  memory.remember({ ...JUMP, sass: null }, "file:///a.cu", 3);
  assert.equal(memory.recall("file:///a.cu", 12, 3), undefined);
});

test("the way back leads through the places where jumps began", () => {
  const memory = new JumpMemory();
  const places = [1, 2, 3].map((line) => ({ uri: "file:///a.cu", range: at(line) }));
  places.forEach((place) => memory.leave(place));
  assert.deepEqual([memory.goBack(), memory.goBack(), memory.goBack(), memory.goBack()], [...places].reverse().concat([undefined as never]));
});

test("no more than a hundred of them are remembered", () => {
  const memory = new JumpMemory();
  for (let line = 0; line < 150; line++) {
    memory.leave({ uri: "file:///a.cu", range: at(line) });
  }
  const lines = Array.from({ length: 101 }, () => memory.goBack()?.range.start.line);
  assert.deepEqual([lines[0], lines[99], lines[100]], [149, 50, undefined]);
});
