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
