"use strict";
// What every page has: the theme, data that is embedded, charts, and the way into an editor. Offers `gpaPage` to the scripts after it.
const gpaPage = (() => {
  const root = document.documentElement;
  const editor = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : null;
  const darkness = matchMedia("(prefers-color-scheme: dark)");

  // --- Theme: the editor's where there is one, else the reader's choice, else the system's. ---
  const KEY = "gpa-lsp-theme";

  function readChoice() {
    try { return localStorage.getItem(KEY); } catch { return null; } // pages from disk may have no storage
  }

  function keepChoice(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* remembered until the page is closed */ }
  }

  function theme() {
    return root.dataset.theme ?? (darkness.matches ? "dark" : "light");
  }

  function setTheme(chosen) {
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
    nameButton();
    document.dispatchEvent(new CustomEvent("gpa-theme", { detail: theme() }));
  }

  function nameButton() {
    const button = document.getElementById("theme");
    if (button) button.textContent = theme() === "dark" ? "Light colours" : "Dark colours";
  }

  function followEditor() {
    const kind = document.body.dataset.vscodeThemeKind ?? "";
    if (kind) setTheme(kind.endsWith("light") ? "light" : "dark");
  }

  function startTheme() {
    const button = document.getElementById("theme");
    if (editor) {
      followEditor();
      new MutationObserver(followEditor).observe(document.body, { attributeFilter: ["data-vscode-theme-kind"] });
      return;
    }
    setTheme(readChoice());
    darkness.addEventListener("change", () => setTheme(root.dataset.theme));
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = theme() === "dark" ? "light" : "dark";
      setTheme(next);
      keepChoice(next);
    });
  }

  // --- Data in the page. ---
  function readJson(id) {
    return JSON.parse(document.getElementById(id).textContent);
  }

  async function readCompressed(id) {
    if (typeof DecompressionStream !== "function")
      throw new Error("This browser cannot unpack the page's data; any of 2023 or later can (Chrome 80, Firefox 113, Safari 16.4).");
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  // --- The way into an editor: a panel that shows this page hears where the reader wants to go. ---
  function openPlace(place) {
    if (editor) editor.postMessage({ command: "open", ...place });
  }

  function tellReady() {
    if (editor) editor.postMessage({ command: "ready" });
  }

  // --- Numbers: all that scripts write themselves. What is measured comes written, by gpa_lsp.foundation.numbers. ---
  function formatCount(count, noun = "", nouns = `${noun}s`) {
    const number = String(count).replace(/\B(?=(\d{3})+$)/g, ",");
    return noun ? `${number} ${count === 1 ? noun : nouns}` : number;
  }

  // --- What screen readers are told. ---
  function announce(text) {
    document.getElementById("announcement").textContent = text;
  }

  // --- What scrolls sideways must be reached by keyboard; what does not should not be stopped at. ---
  const settled = new ResizeObserver((changes) => { for (const change of changes) settleOne(change.target); });

  function settleOne(element) {
    const scrolls = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight;
    if (!scrolls) {
      for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name);
      return;
    }
    if (element.getAttribute("role") === "region") return; // its label stays: another one like it may have been told apart from it
    element.tabIndex = 0;
    element.setAttribute("role", "region");
    element.setAttribute("aria-label", labelOf(element));
  }

  function labelOf(element) { // different for different regions, so that they can be told apart
    const caption = element.querySelector("caption")?.textContent.trim() || "Table";
    const part = element.closest("section")?.querySelector("h2, h3")?.textContent.trim() ?? "";
    const label = part && part !== caption ? `${part}: ${caption}` : caption;
    const alike = [...document.querySelectorAll(".scroll[role]")].filter((other) => other !== element && other.ariaLabel?.startsWith(label));
    return alike.length ? `${label} (${alike.length + 1})` : label;
  }

  function settle(container) {
    for (const element of container.querySelectorAll(".scroll")) settled.observe(element);
  }

  // --- Charts: Vega-Lite, in the page's colours, drawn again when these change. ---
  const drawn = new Map();
  const configs = document.getElementById("chart-configs") ? readJson("chart-configs") : {};

  // Draw a chart; what was set with setSignal before is kept when it is drawn again.
  async function drawChart(element, spec) {
    forgetGone();
    const before = drawn.get(element);
    before?.view?.finalize();
    const known = { spec, view: null, signals: before?.signals ?? new Map() };
    drawn.set(element, known);
    const config = { ...configs[theme()], background: "transparent", ...(spec.config ?? {}) };
    // Level 1 is errors: that a layer has nothing to draw is no matter for the console.
    const options = { actions: false, renderer: "svg", ast: true, logLevel: 1, tooltip: { theme: theme() } };
    const result = await vegaEmbed(element, { ...spec, config }, options);
    if (drawn.get(element) !== known) result.view.finalize(); // drawn again meanwhile
    known.view = result.view;
    for (const [name, value] of known.signals) result.view.signal(name, value);
    if (known.signals.size) await result.view.runAsync();
    element.dispatchEvent(new CustomEvent("gpa-drawn", { detail: result.view }));
    return result.view;
  }

  // Draw the charts of a part of the page as they come into view, and those that are not folded away when there is time: a page is also printed.
  function drawWhenSeen(part, charts) {
    const left = new Set(part.querySelectorAll("[data-chart]"));
    const draw = (element) => {
      observer.unobserve(element);
      left.delete(element);
      drawChart(element, charts[element.dataset.chart]).catch((error) => { element.textContent = error.message; });
    };
    const observer = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting && left.has(one.target)) draw(one.target);
    }, { rootMargin: "400px" });
    for (const element of left) observer.observe(element);
    const drawNext = () => {
      const next = [...left].find((element) => element.isConnected && element.getClientRects().length);
      if (!next) return;
      draw(next);
      setTimeout(drawNext, 50);
    };
    setTimeout(drawNext, 300);
  }

  function setSignal(element, name, value) {
    const known = drawn.get(element) ?? { spec: null, view: null, signals: new Map() }; // kept until it is drawn
    drawn.set(element, known);
    known.signals.set(name, value);
    known.view?.signal(name, value).runAsync();
  }

  function forgetGone() {
    for (const [element, known] of drawn) {
      if (element.isConnected) continue;
      known.view?.finalize();
      drawn.delete(element);
    }
  }

  document.addEventListener("gpa-theme", () => {
    for (const [element, known] of [...drawn]) if (element.isConnected && known.spec) drawChart(element, known.spec);
  });

  startTheme();
  settle(document);
  return {
    theme, settle, readJson, readCompressed, openPlace, tellReady, announce, formatCount, drawChart, drawWhenSeen, setSignal, hasEditor: editor !== null,
  };
})();
