// Runs one suite in a real VS Code: its server, its web client in a headless Chromium, and the suite in the extension host.
//
//   node drive.mjs CONFIGURATION.json
//
// The suite asks for what only a person at the screen can do (click, press a key, look) over HTTP on the loopback interface. Results are JSON lines on stdout.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const configuration = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { editors, extension, neighbours, suite, workspace, scratch, screenshots, limitSeconds } = configuration;
const requireFromEditors = createRequire(join(editors, "playwright", "package.json"));
const { chromium } = requireFromEditors("playwright-core");

const LIMIT_MS = 600_000 * Number(process.env.GPA_LSP_TEST_PATIENCE ?? 1);
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const log = (text) => process.stderr.write(`${text}\n`);

/** A picture of what stands still: two in a row are the same. What never does is taken as it is in the end. */
async function takeStill(page, options) {
  let before = await page.screenshot({ ...options, animations: "disabled" });
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const now = await page.screenshot({ ...options, animations: "disabled" });
    if (now.equals(before)) break;
    before = now;
  }
  return before;
}

/** Answers the suite: every request is {action, …} and gets {result} or {error}. */
function openDesk(page) {
  const inWebview = () => page().frameLocator("iframe.webview.ready").first().frameLocator("iframe#active-frame");
  const find = ({ selector, text, webview }) => (webview ? inWebview() : page()).locator(selector, text === undefined ? undefined : { hasText: text });
  const actions = {
    result: async (request) => tell(request),
    screenshot: async ({ name, clip }) => {
      const path = join(screenshots, `${name}.png`);
      if (!clip && !name.startsWith("failed-") && !process.env.GPA_LSP_SCREENSHOTS) return path; // of the whole window it is for people: taken where they ask for it
      writeFileSync(path, await takeStill(page(), clip ? { clip } : {}));
      return path;
    },
    press: async ({ key }) => page().keyboard.press(key),
    type: async ({ text }) => page().keyboard.type(text),
    click: async (request) => find(request).first().click({ timeout: LIMIT_MS }),
    doubleClick: async (request) => find(request).first().dblclick({ timeout: LIMIT_MS }),
    hover: async (request) => find(request).first().hover({ timeout: LIMIT_MS }),
    waitFor: async (request) => find(request).first().waitFor({ state: request.state ?? "visible", timeout: LIMIT_MS }),
    texts: async (request) => find(request).allInnerTexts(),
    count: async (request) => find(request).count(),
    attributes: async ({ name, ...request }) => find(request).evaluateAll((elements, wanted) => elements.map((element) => element.getAttribute(wanted) ?? ""), name),
    styles: async ({ property, ...request }) =>
      find(request).evaluateAll((elements, name) => elements.map((element) => getComputedStyle(element).getPropertyValue(name)), property),
  };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", async () => {
      const answer = (value) => response.end(JSON.stringify(value));
      try {
        const asked = JSON.parse(body);
        answer({ result: (await actions[asked.action](asked)) ?? null });
      } catch (error) {
        answer({ error: String(error) });
      }
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function startServer(deskPort) {
  const root = join(editors, "vscode", "node_modules", "code-server", "lib", "vscode");
  const folders = ["user-data", "server-data", "extensions"].map((name) => join(scratch, name));
  folders.forEach((folder) => mkdirSync(folder, { recursive: true }));
  neighbours.forEach((path) => cpSync(path, join(folders[2], basename(path)), { recursive: true }));
  const child = spawn(
    join(editors, "node", "node_modules", "node", "bin", "node"),
    [
      join(root, "out", "server-main.js"), "--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--accept-server-license-terms",
      "--enable-smoke-test-driver", "--force-disable-user-env", "--telemetry-level", "off", "--user-data-dir", folders[0], "--server-data-dir", folders[1], "--extensions-dir", folders[2],
      ...(configuration.trusted ? ["--disable-workspace-trust"] : []),
    ],
    { detached: true, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...configuration.environment, GPA_TEST_DESK: String(deskPort) } },
  );
  return new Promise((resolve, reject) => {
    let output = "";
    const take = (chunk) => {
      output += chunk;
      if (process.env.GPA_TEST_VERBOSE) log(String(chunk));
      const found = /Extension host agent listening on (\d+)|http:\/\/(?:localhost|127\.0\.0\.1):(\d+)/.exec(output);
      if (found) resolve({ child, port: Number(found[1] ?? found[2]) });
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("exit", (code) => reject(new Error(`VS Code's server ended with ${code}: ${output.slice(-2000)}`)));
  });
}

function endGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

async function main() {
  let page;
  const desk = await openDesk(() => page);
  const { child, port } = await startServer(desk.address().port);
  const browser = await chromium.launch({
    executablePath: join(editors, "chromium"), headless: true, env: { ...process.env, HOME: scratch }, timeout: LIMIT_MS,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
  try {
    const context = await browser.newContext({ userAgent: configuration.userAgent, viewport: configuration.viewport ?? { width: 1400, height: 860 }, deviceScaleFactor: configuration.scale ?? 1 });
    context.setDefaultTimeout(LIMIT_MS);
    page = await context.newPage();
    let exit;
    const exitCode = new Promise((resolve) => (exit = resolve));
    await page.exposeFunction("codeAutomationExit", exit);
    await page.exposeFunction("codeAutomationLog", (type, values) => process.env.GPA_TEST_VERBOSE && log(`[${type}] ${values}`));
    if (process.env.GPA_TEST_VERBOSE) page.on("console", (message) => log(`page: ${message.text()}`));
    const remote = (path) => `vscode-remote://127.0.0.1:${port}${encodeURI(path)}`;
    const payload = [["extensionDevelopmentPath", remote(extension)], ["extensionTestsPath", remote(suite)], ["skipWelcome", "true"]];
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
    const code = await Promise.race([exitCode, new Promise((resolve) => setTimeout(resolve, limitSeconds * 1000, "time"))]);
    if (code !== 0) await page.screenshot({ path: join(screenshots, `${configuration.name}-failure.png`) });
    tell({ action: "end", code });
    return code === 0 ? 0 : 1;
  } finally {
    await browser.close();
    endGroup(child);
    desk.close();
    desk.closeAllConnections();
  }
}

process.exit(await main());
