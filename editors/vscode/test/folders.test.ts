import assert from "node:assert/strict";
import * as path from "node:path";
import { test } from "node:test";
import { isInside, keepAbsolute, cleanSearchPaths } from "../src/folders";

test("a name that begins with dots is inside", () => {
  for (const name of ["", "python", ".venv/bin/python", "..venv/bin/python", ".../bin/python", "..", "a/../..venv/x"]) {
    assert.equal(isInside("/project", path.posix.join("/project", name), path.posix), name !== "..", name);
  }
  assert.equal(isInside("/project", "/project/..venv/bin/python", path.posix), true);
  assert.equal(isInside("/project/", "/project/..", path.posix), false);
  assert.equal(isInside("/project", "/projects/python", path.posix), false);
  assert.equal(isInside("/project", "/usr/bin/python", path.posix), false);
  assert.equal(isInside("/", "/usr/bin/python", path.posix), true);
});

test("another drive is outside, and case does not matter there", () => {
  assert.equal(isInside("C:\\work", "D:\\python\\python.exe", path.win32), false);
  assert.equal(isInside("C:\\work", "\\\\server\\share\\python.exe", path.win32), false);
  assert.equal(isInside("C:\\work", "c:\\WORK\\..venv\\python.exe", path.win32), true);
  assert.equal(isInside("C:\\work", "C:\\python.exe", path.win32), false);
});

test("search paths keep what is named in full", () => {
  assert.equal(keepAbsolute(":.:/usr/bin:bin::/opt/x:", path.posix), "/usr/bin:/opt/x");
  assert.equal(keepAbsolute(";.;C:\\bin;bin;\\\\server\\x", path.win32), "C:\\bin;\\\\server\\x");
});

test("only variables with relative folders are changed", () => {
  const full = path.resolve("/opt/x");
  const mixed = ["", full].join(path.delimiter);
  const found = cleanSearchPaths({ PATH: full, PYTHONPATH: mixed, LD_LIBRARY_PATH: ".", OTHER: mixed });
  assert.deepEqual(found, { PATH: full, PYTHONPATH: full, LD_LIBRARY_PATH: "", OTHER: mixed });
  assert.deepEqual(cleanSearchPaths({}), {});
});
