"use strict";
// The roofline page: one state (what is drawn, what is in focus), which the chart, the list and the details follow.
(() => {
  const chart = document.getElementById("chart");
  if (!chart) return; // nothing could be placed
  const controls = document.getElementById("controls");
  const list = document.querySelector("#kernels tbody");
  const looks = gpaPage.readJson("chart-configs");
  const state = { shown: new Set(), focused: null };
  let data = null;
  let rows = new Map();
  let view = null;
  let drawing = 0;

  // --- State. ---
  function readChecked(name) {
    return [...controls.querySelectorAll(`input[name="${name}"]:checked`)].map((input) => input.value);
  }

  function isChecked(name) {
    return controls.elements.namedItem(name)?.checked ?? false;
  }

  function currentView() {
    return readChecked("view")[0];
  }

  function withEarlier(ids) { // a kernel is drawn together with what it was before
    const symbols = new Set(ids.map((id) => rows.get(id)).filter((row) => row && !row.launch && !row.before).map((row) => row.symbol));
    const earlier = data.rows.filter((row) => row.before && !row.launch && symbols.has(row.symbol)).map((row) => row.id);
    return [...new Set([...ids, ...earlier])];
  }

  function collectSignals() {
    const shown = withEarlier([...state.shown]);
    const drawn = new Set(shown);
    const counts = currentView() === "instructions";
    const inPlay = new Set(data.charts[currentView()].datasets.points.filter((point) => drawn.has(point.row)).map((point) => point.kind));
    const kinds = counts ? [...inPlay] : readChecked("kind").filter((kind) => inPlay.has(kind));
    const first = rows.get(state.focused ?? shown[0]);
    return {
      shown_rows: shown,
      focused_row: state.focused,
      related_rows: state.focused === null ? [] : withEarlier([state.focused]),
      drawn_levels: readChecked("level"),
      drawn_kinds: kinds.length ? kinds : counts ? ["instruction issue"] : readChecked("kind"),
      all_peaks: isChecked("all_peaks"),
      show_movements: isChecked("show_movements"),
      shown_machine: first ? first.machine : 0,
    };
  }

  // --- Chart. ---
  async function draw() {
    const turn = ++drawing;
    const kinds = document.getElementById("kinds");
    if (kinds) kinds.hidden = currentView() === "instructions"; // there all types are one
    const spec = { ...data.charts[currentView()] };
    const signals = collectSignals();
    spec.params = spec.params.map((param) => ({ ...param, value: signals[param.name] }));
    const config = { ...looks[gpaPage.theme()], background: "transparent" };
    const made = await vegaEmbed(chart, spec, { actions: false, renderer: "svg", ast: true, logLevel: 1, config, tooltip: { theme: gpaPage.theme() } });
    if (turn !== drawing) return made.view.finalize(); // drawn again meanwhile
    view?.finalize();
    view = made.view;
    view.addEventListener("click", (event, item) => choose(item?.datum?.row ?? null));
    chart.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the list is the chart's other form
    chart.dataset.ready = currentView();
  }

  async function follow() {
    if (view === null) return;
    for (const [name, value] of Object.entries(collectSignals())) view.signal(name, value);
    await view.runAsync();
  }

  // --- Choice. ---
  function choose(id) {
    state.focused = id === state.focused ? null : id;
    if (state.focused !== null && !state.shown.has(id)) setShown(id, true);
    for (const button of list.querySelectorAll("button.name")) {
      const isChosen = button.dataset.row === state.focused;
      button.setAttribute("aria-pressed", String(isChosen));
      button.closest("tr").classList.toggle("chosen", isChosen);
    }
    showDetails();
    showCaption();
    gpaPage.announce(summarise());
    follow();
  }

  function setShown(id, isShown) {
    if (isShown) state.shown.add(id);
    else state.shown.delete(id);
    const box = list.querySelector(`input.draw[data-row="${id}"]`);
    if (box) box.checked = isShown;
  }

  function name(row) {
    return row.launch ? `${row.name}, ${row.launch}` : row.before ? `${row.name}, before` : row.name;
  }

  function summarise() {
    if (state.focused === null) return `${gpaPage.formatCount(state.shown.size)} drawn, none chosen.`;
    const row = rows.get(state.focused);
    return `${name(row)}: ${row.lines.filter((line) => line).join(". ")}.`;
  }

  function showCaption() {
    const machine = data.machines[collectSignals().shown_machine];
    const whole = [...state.shown].filter((id) => !rows.get(id).launch).length;
    const single = [...state.shown].length - whole;
    const parts = [`${gpaPage.formatCount(whole)} of ${gpaPage.formatCount(list.querySelectorAll("tr:not(.launch)").length, "kernel")} drawn`];
    if (single) parts.push(gpaPage.formatCount(single, "launch", "launches"));
    const others = new Set([...state.shown].map((id) => rows.get(id).machine)).size > 1;
    if (machine) parts.push(`ceilings of ${machine.name} at ${machine.basis}${others ? "; some kernels ran under others" : ""}`);
    const leftOut = data.charts[currentView()].usermeta.left_out;
    const below = withEarlier([...state.shown]).reduce((sum, id) => sum + (leftOut[id] ?? 0), 0);
    if (below) parts.push(`${gpaPage.formatCount(below, "point")} of negligible rate only in the tables`);
    const chart = data.charts[currentView()];
    if (chart.datasets.ridges.length) parts.push("shaded left: memory-bound, right: compute-bound, by the slowest level drawn");
    if (chart.datasets.points.some((point) => point.ring)) parts.push("rings: other levels with the same operations per byte");
    document.getElementById("caption").textContent = parts.join("; ");
  }

  // --- Details. ---
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function makeItem(html) { // written by gpa-lsp with everything escaped
    const item = document.createElement("li");
    item.innerHTML = html;
    return item;
  }

  function makeTable(caption, heads, body) {
    const head = make("tr", {}, ...heads.map(([title, isNumber]) => make("th", { scope: "col", class: isNumber ? "number" : "" }, title)));
    const lines = body.map((cells) =>
      make("tr", {}, ...cells.map((cell, at) => make(at ? "td" : "th", at ? { class: heads[at][1] ? "number" : "" } : { scope: "row" }, ...[cell].flat()))));
    const table = make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...lines));
    return make("div", { class: "scroll" }, table);
  }

  function makeMeter(ratio, ceiling) {
    const meter = make("span", { class: ratio >= 0.8 * ceiling ? "meter high" : "meter", "aria-hidden": "true" });
    const bar = make("i");
    bar.style.setProperty("--ratio", ratio);
    meter.append(bar);
    if (ceiling < 1) {
      const tick = make("b");
      tick.style.setProperty("--ceiling", ceiling);
      meter.append(tick);
    }
    return meter;
  }

  function showDetails() {
    const section = document.getElementById("details");
    section.hidden = state.focused === null;
    if (section.hidden) return;
    const row = rows.get(state.focused);
    document.getElementById("details-title").textContent = name(row);
    const parts = row.lines.filter((line) => line).map((line) => make("p", {}, `${line[0].toUpperCase()}${line.slice(1)}.`));
    const bars = makeTable("Ceilings", [["ceiling", false], ["used", true], ["amount", false]],
      row.bars.map(([label, ratio, ceiling, text, words]) => [label, [makeMeter(ratio, ceiling), ` ${text}`], words]));
    bars.classList.add("bars");
    const tables = make("div", { class: "tables" }, bars);
    if (row.points.length)
      tables.append(makeTable("Points", [["operations", false], ["bytes of", false], ["intensity", true], ["achieved", true],
        ["attainable", true], ["reached", true], ["limited by", false]], row.points));
    if (row.warp_points.length)
      tables.append(makeTable("Warp instructions", [["transactions of", false], ["instructions", true], ["achieved", true], ["attainable", true],
        ["reached", true]], row.warp_points));
    if (row.amounts.length) tables.append(makeTable("Amounts", [["what", false], ["amount", true], ["from", false]], row.amounts));
    parts.push(tables);
    if (row.movements.length)
      parts.push(make("h3", {}, "Where Starlight's suggestions would move the kernel"), make("ul", {}, ...row.movements.map((text) => make("li", {}, text))));
    if (row.suggestions.length)
      parts.push(makeTable("Starlight's suggestions and what our own advice makes of them", [["suggestion", false], ["our advice", false]], row.suggestions));
    if (row.missing.length) parts.push(make("h3", {}, "Unknown"), make("ul", {}, ...row.missing.map(makeItem)));
    document.getElementById("details-body").replaceChildren(...parts);
    gpaPage.settle(section);
  }

  // --- List. ---
  function toggleLaunches(button) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    const owner = button.closest("tr");
    if (isOpen) {
      for (const line of list.querySelectorAll("tr.launch")) if (line.dataset.owner === owner.dataset.row) line.remove();
      return;
    }
    const launches = data.rows.filter((row) => row.owner === owner.dataset.row && row.launch);
    const hasChange = owner.cells.length === 6;
    const lines = launches.map((row) => {
      const box = make("input", { type: "checkbox", class: "draw", "data-row": row.id, "aria-label": `draw ${name(row)}` });
      box.checked = state.shown.has(row.id);
      const isChosen = row.id === state.focused;
      const button = make("button", { type: "button", class: "name", "data-row": row.id, "aria-pressed": String(isChosen) }, row.launch);
      const nearest = make("span", { class: "nearest dim" }, row.nearest);
      return make("tr", { class: isChosen ? "launch chosen" : "launch", "data-owner": row.owner, "data-row": row.id },
        make("td", {}, box), make("th", { scope: "row" }, button, nearest), make("td", { class: "number" }, row.time),
        ...(hasChange ? [make("td")] : []),
        make("td", { class: "number" }, row.share), make("td", { class: "number" }, row.headroom));
    });
    owner.after(...lines);
  }

  function filter(text) {
    const wanted = text.trim().toLowerCase();
    let count = 0;
    for (const line of list.rows) {
      const button = list.querySelector(`button.name[data-row="${line.dataset.owner ?? line.dataset.row}"]`);
      line.hidden = !`${button.textContent} ${button.title}`.toLowerCase().includes(wanted);
      if (!line.hidden && !line.dataset.owner) count += 1;
    }
    document.getElementById("no-match").hidden = count > 0;
    gpaPage.announce(`${gpaPage.formatCount(count, "kernel")} in the list.`);
  }

  function showEvery(isShown) {
    for (const line of list.querySelectorAll("tr:not(.launch)")) if (!line.hidden || !isShown) setShown(line.dataset.row, isShown);
    if (!isShown) for (const id of [...state.shown]) setShown(id, false);
    if (!isShown && state.focused !== null) choose(state.focused);
    gpaPage.announce(`${gpaPage.formatCount(state.shown.size)} drawn.`);
    showCaption();
    follow();
  }

  function moveBetweenNames(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const line = event.target.closest("tr");
    if (!step || !line || !event.target.matches("button.name")) return;
    const lines = [...list.rows].filter((one) => !one.hidden);
    const next = lines[lines.indexOf(line) + step];
    if (!next) return;
    event.preventDefault();
    next.querySelector("button.name").focus();
  }

  function listen() {
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.matches(".name")) choose(button.dataset.row);
      else if (button?.matches(".launches")) toggleLaunches(button);
    });
    list.addEventListener("change", (event) => {
      if (!event.target.matches(".draw")) return;
      setShown(event.target.dataset.row, event.target.checked);
      if (!event.target.checked && event.target.dataset.row === state.focused) choose(state.focused);
      gpaPage.announce(`${gpaPage.formatCount(state.shown.size)} drawn.`);
      showCaption();
      follow();
    });
    list.addEventListener("keydown", moveBetweenNames);
    controls.addEventListener("change", (event) => {
      showCaption();
      if (event.target.name === "view") draw();
      else follow();
    });
    controls.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("filter").addEventListener("input", (event) => filter(event.target.value));
    document.getElementById("show-all").addEventListener("click", () => showEvery(true));
    document.getElementById("show-none").addEventListener("click", () => showEvery(false));
    document.addEventListener("gpa-theme", draw);
    let width = chart.clientWidth; // Vega looks at its container's size when the window changes; the container can change without it
    new ResizeObserver(() => {
      if (chart.clientWidth === width) return;
      width = chart.clientWidth;
      window.dispatchEvent(new Event("resize"));
    }).observe(chart);
  }

  async function start() {
    data = await gpaPage.readCompressed("roofline-data");
    rows = new Map(data.rows.map((row) => [row.id, row]));
    for (const box of list.querySelectorAll("input.draw:checked")) state.shown.add(box.dataset.row);
    listen();
    showCaption();
    await draw();
    if (list.querySelectorAll("button.name").length === 1) choose(list.querySelector("button.name").dataset.row);
  }

  start().catch((error) => {
    chart.textContent = error.message;
    chart.removeAttribute("role");
  });
})();
