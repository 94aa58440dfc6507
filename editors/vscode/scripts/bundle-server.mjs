// Puts the server and its pure Python libraries into bundled/: the package itself, what it needs to speak the protocol, and the list of what
// the user's interpreter must have.
//
//   node scripts/bundle-server.mjs [PYTHON]     PYTHON: any with pip; default $PYTHON, or python3
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { basename, join } from "node:path";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const REPOSITORY = join(HERE, "..", "..");
const BUNDLED = join(HERE, "bundled");
const python = process.argv[2] ?? process.env.PYTHON ?? "python3";

/** Only needed to speak the protocol, and of pure Python: these come along. */
const PURE = ["pygls", "lsprotocol", "cattrs", "attrs", "typing_extensions"];

/** Only the command line needs these. */
const COMMAND_LINE_ONLY = ["rich"];

/** Programs, not modules: what needs SASS text says so when they are missing. */
const PROGRAMS = ["nvidia-cuda-nvdisasm", "nvidia-cuda-cuobjdump"];

/** Where the name to import is not the name of the package. */
const MODULES = { protobuf: "google.protobuf" };

function readRequirements() {
  const text = readFileSync(join(REPOSITORY, "pyproject.toml"), "utf8");
  const [, list] = /^dependencies = \[\n([\s\S]*?)^\]/m.exec(text);
  return [...list.matchAll(/^\s*"([^"]+)"/gm)].map(([, requirement]) => requirement);
}

const nameOf = (requirement) => /^[\w.-]+/.exec(requirement)[0];

rmSync(join(BUNDLED, "server"), { recursive: true, force: true });
rmSync(join(BUNDLED, "libs"), { recursive: true, force: true });
mkdirSync(BUNDLED, { recursive: true });

const requirements = readRequirements();
const fromInterpreter = requirements.filter((requirement) => ![...PURE, ...COMMAND_LINE_ONLY].includes(nameOf(requirement)));
const modules = fromInterpreter.map(nameOf).filter((name) => !PROGRAMS.includes(name));
writeFileSync(join(BUNDLED, "requirements.txt"), `${fromInterpreter.join("\n")}\n`);
writeFileSync(join(BUNDLED, "native.json"), `${JSON.stringify(Object.fromEntries(modules.map((name) => [name, MODULES[name] ?? name.replaceAll("-", "_")])), null, 2)}\n`);

cpSync(join(REPOSITORY, "gpa_lsp"), join(BUNDLED, "server", "gpa_lsp"), {
  recursive: true, filter: (source) => !["__pycache__", ".mypy_cache"].includes(basename(source)),
});

const bounds = PURE.map((name) => requirements.find((requirement) => nameOf(requirement) === name) ?? name);
execFileSync(
  python,
  ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--only-binary", ":all:", "--implementation", "py", "--abi", "none",
    "--platform", "any", "--python-version", "3.11", "--target", join(BUNDLED, "libs"), ...bounds],
  { stdio: ["ignore", "inherit", "inherit"] },
);
rmSync(join(BUNDLED, "libs", "bin"), { recursive: true, force: true });
