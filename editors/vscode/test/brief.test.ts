import assert from "node:assert/strict";
import { test } from "node:test";
import { shorten } from "../src/brief";

for (const [text, most, shown] of [
  ["8 kernels from 16,384 profiles", 18, "8 kernels from…"],
  ["8 kernels from 16,384 profiles", 21, "8 kernels from…"],
  ["8 kernels from 16,384 profiles", 22, "8 kernels from…"],
  ["predicted · 22 of 16,384 blocks", 16, "predicted…"],
  ["unbreakable", 6, "unbre…"],
  ["short", 5, "short"],
] as const) {
  test(`${text} in ${most} characters`, () => assert.equal(shorten(text, most), shown));
}
