import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAbsence, REMEDY_COMMANDS, tellCrash, tellNothing } from "../src/absence";
import { type Probe, resolveServer, type Resolution, type Surroundings } from "../src/python";

const WITH_SERVER: Probe = { version: [3, 12], server: "0.1.0", missing: ["tree-sitter"] };
const WITH_LIBRARIES: Probe = { version: [3, 11], server: null, missing: [] };
const BARE: Probe = { version: [3, 13], server: null, missing: ["protobuf", "zstandard"] };
const OLD: Probe = { version: [3, 10], server: "0.1.0", missing: [] };

interface World {
  readonly settings?: Partial<Pick<Surroundings, "path" | "interpreter" | "importStrategy">>;
  readonly selected?: string;
  readonly own?: string;
  readonly outdated?: string;
  readonly programs?: Readonly<Record<string, string>>;
  readonly probes?: Readonly<Record<string, Probe>>;
}

async function resolve(world: World): Promise<{ readonly found: Resolution; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const found = await resolveServer({
    path: [], interpreter: "", importStrategy: "fromEnvironment", ...world.settings,
    selectedInterpreter: world.selected, ownEnvironments: [...(world.own === undefined ? [] : [{ interpreter: world.own, isOutdated: false }]), ...(world.outdated === undefined ? [] : [{ interpreter: world.outdated, isOutdated: true }])],
    find: (program) => world.programs?.[program],
    probe: async (interpreter) => (asked.push(interpreter), world.probes?.[interpreter]),
  });
  return { found, asked };
}

const EVERYTHING: World = {
  selected: "/selected/python", own: "/own/python",
  programs: { "gpa-lsp": "/bin/gpa-lsp", python3: "/bin/python3", python: "/bin/python" },
  probes: { "/set/python": WITH_SERVER, "/selected/python": WITH_SERVER, "/own/python": WITH_LIBRARIES, "/bin/python3": WITH_SERVER, "/bin/python": WITH_SERVER },
};

test("path comes first, is taken as it stands, and asks nobody", async () => {
  const { found, asked } = await resolve({ ...EVERYTHING, settings: { path: ["/opt/gpa-lsp", "serve", "--x"], interpreter: "/set/python" } });
  assert.deepEqual(found, { kind: "command", command: "/opt/gpa-lsp", args: ["serve", "--x"], isBundled: false, origin: "gpaLsp.path" });
  assert.deepEqual(asked, []);
});

test("then interpreter, and nothing else even when it fails", async () => {
  const { found } = await resolve({ ...EVERYTHING, settings: { interpreter: "/set/python" } });
  assert.equal(found.kind === "command" && found.command, "/set/python");
  const { found: failed, asked } = await resolve({ ...EVERYTHING, settings: { interpreter: "/gone/python" } });
  assert.equal(failed.kind, "nothing");
  assert.deepEqual(asked, ["/gone/python"]);
});

test("then the selected one, our own, gpa-lsp, python3, python", async () => {
  const order: string[] = [];
  let world = EVERYTHING;
  for (let step = 0; step < 5; step++) {
    const { found } = await resolve(world);
    assert.equal(found.kind, "command");
    const command = found.kind === "command" ? found.command : "";
    order.push(command);
    const programs = Object.fromEntries(Object.entries(world.programs ?? {}).filter(([, path]) => path !== command));
    const probes = Object.fromEntries(Object.entries(world.probes ?? {}).filter(([path]) => path !== command));
    world = { ...world, programs, probes };
  }
  assert.deepEqual(order, ["/selected/python", "/own/python", "/bin/gpa-lsp", "/bin/python3", "/bin/python"]);
});

test("an interpreter with the server runs that one, unless the bundled one is asked for", async () => {
  const world: World = { selected: "/a/python", probes: { "/a/python": { ...WITH_SERVER, missing: [] } } };
  const { found } = await resolve(world);
  assert.deepEqual(found, { kind: "command", command: "/a/python", args: ["-P", "-m", "gpa_lsp", "serve"], isBundled: false, origin: "the Python extension" });
  const { found: bundled } = await resolve({ ...world, settings: { importStrategy: "useBundled" } });
  assert.equal(bundled.kind === "command" && bundled.isBundled, true);
});

test("the bundled server ignores a program on the path", async () => {
  const { found } = await resolve({ ...EVERYTHING, settings: { importStrategy: "useBundled" }, probes: { "/bin/python3": WITH_LIBRARIES } });
  assert.equal(found.kind === "command" && found.command, "/bin/python3");
});

test("without anything that can serve, the answer names what is missing in the one that can be helped", async () => {
  const { found } = await resolve({ selected: "/old/python", programs: { python3: "/bin/python3" }, probes: { "/old/python": OLD, "/bin/python3": BARE } });
  assert.deepEqual(found.kind === "nothing" && [found.interpreter, found.missing], ["/bin/python3", ["protobuf", "zstandard"]]);
  assert.match(found.kind === "nothing" ? found.reason : "", /lacks what .* needs: protobuf, zstandard/);
});

test("an old Python is told so", async () => {
  const { found } = await resolve({ settings: { interpreter: "/old/python" }, probes: { "/old/python": OLD } });
  assert.match(found.kind === "nothing" ? found.reason : "", /Python 3\.10; the server needs 3\.11/);
});

test("a Python that is too old does not hide a later one under its full name", async () => {
  const { found } = await resolve({ programs: { python3: "/bin/python3", "python3.12": "/bin/python3.12" }, probes: { "/bin/python3": OLD, "/bin/python3.12": WITH_LIBRARIES } });
  assert.equal(found.kind === "command" && found.command, "/bin/python3.12");
});

test("the environment of another version of the extension serves, and is known as such", async () => {
  const { found } = await resolve({ own: "/own/python", outdated: "/before/python", probes: { "/before/python": WITH_LIBRARIES } });
  assert.deepEqual(found.kind === "command" && [found.command, found.isOutdated], ["/before/python", true]);
  const { found: present } = await resolve({ own: "/own/python", outdated: "/before/python", probes: { "/own/python": WITH_LIBRARIES, "/before/python": WITH_LIBRARIES } });
  assert.deepEqual(present.kind === "command" && [present.command, present.isOutdated], ["/own/python", undefined]);
});

for (const [brief, world] of [
  ["no Python", {}],
  ["Python 3.10 is too old", { programs: { python3: "/bin/python3" }, probes: { "/bin/python3": OLD } }],
  ["Python packages are missing", { programs: { python3: "/bin/python3" }, probes: { "/bin/python3": BARE } }],
  ["Python does not start", { own: "/own/python" }],
] as const) {
  test(`without a server (${brief}) the first remedy makes an environment, and the page has it first`, async () => {
    const { found } = await resolve(world);
    assert.equal(found.kind, "nothing");
    if (found.kind === "nothing") {
      const absence = tellNothing(found);
      assert.equal(absence.brief, brief);
      assert.equal(absence.remedies[0].command, "gpa.createEnvironment");
      const page = drawAbsence(absence);
      assert.match(page, /<a class="button"[^>]*>Create Environment…<\/a>/);
      assert.equal(/command:([\w.]+)/.exec(page)?.[1], "gpa.createEnvironment");
      assert.ok(page.includes(found.reason));
      assert.ok([...page.matchAll(/command:([\w.]+)/g)].every(([, command]) => REMEDY_COMMANDS.includes(command ?? "")));
    }
  });
}

test("a page shows names of files as text", () => {
  assert.ok(!drawAbsence(tellCrash("<script>"), "<b>.ncu-rep").match(/<script|<b>/));
});
