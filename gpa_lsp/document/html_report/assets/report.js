"use strict";
// Which kernel is open: said by the address, #k3, #k3/advice, #k3/line/0/8 or #k3/row/12, so that links and the back button work.
(() => {
  const section = document.getElementById("kernel");
  const count = document.querySelectorAll("[id^=packed]").length;
  const kept = new Map(); // a few opened kernels, the last one last
  const MOST_KEPT = 4;
  let open = null; // { kernel, view }
  let turn = 0;

  async function read(kernel) {
    if (!kept.has(kernel)) kept.set(kernel, await gpaPage.readCompressed(`packed${kernel}`));
    const data = kept.get(kernel);
    kept.delete(kernel);
    kept.set(kernel, data);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    return data;
  }

  async function openKernel(kernel) {
    const mine = ++turn;
    section.setAttribute("aria-busy", "true");
    const data = await read(kernel);
    if (mine !== turn) return false; // another one was chosen meanwhile
    open?.view?.close();
    section.innerHTML = data.html; // written by gpa-lsp with everything escaped; scripts in it would not run
    open = { kernel, view: null };
    const code = section.querySelector(".code-section");
    if (code && data.code) open.view = new CodeView(code, kernel, data, (part, isClick) => noteChoice(kernel, part, isClick));
    for (const box of section.querySelectorAll("[data-flame]")) new FlameView(box, data.charts[box.dataset.flame]);
    gpaPage.drawWhenSeen(section, data.charts);
    startViews();
    gpaPage.settle(section);
    markRow(kernel);
    section.setAttribute("aria-busy", "false");
    gpaPage.announce(`Kernel ${data.name}`);
    return true;
  }

  function markRow(kernel) {
    for (const row of document.querySelectorAll("#kernel-table tr[data-kernel]")) {
      const isOpen = row.dataset.kernel === String(kernel);
      row.classList.toggle("current", isOpen);
      const link = row.querySelector("a");
      if (isOpen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  function startViews() {
    for (const views of section.querySelectorAll(".views")) {
      const buttons = [...views.querySelectorAll("[data-view]")], panels = [...views.querySelectorAll(".view")];
      views.querySelector(".show-movements")?.addEventListener("change", (event) => {
        gpaPage.setSignal(views.querySelector("[data-chart]"), "show_movements", event.target.checked);
      });
      for (const button of buttons) button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        panels.forEach((panel, number) => { panel.hidden = String(number) !== button.dataset.view; });
      });
    }
  }

  function noteChoice(kernel, part, isClick) {
    if (isClick) replaceAddress(`#k${kernel}/${part}`);
  }

  function replaceAddress(address) {
    try { history.replaceState(null, "", address); } catch { /* some panels have no history */ }
  }

  function pushAddress(address) {
    try { history.pushState(null, "", address); } catch { /* as above */ }
  }

  function parse(address) {
    const found = /^#k(\d+)(?:\/(.*))?$/.exec(address);
    return found && Number(found[1]) < count ? { kernel: Number(found[1]), part: found[2] ?? "" } : null;
  }

  // Open what an address says. Only what the reader asked for moves the page and the focus.
  async function go(address, { isAsked }) {
    const isAnother = open && address.length > 1; // of a part of the page that is no kernel's
    const target = parse(address) ?? (isAnother ? null : { kernel: 0, part: "" });
    if (!target || !count) return;
    try {
      if (open?.kernel !== target.kernel && !(await openKernel(target.kernel))) return;
      showPart(target, isAsked);
    } catch (error) {
      const notice = document.createElement("p");
      notice.className = "notice";
      notice.textContent = error.message;
      section.replaceChildren(notice);
      section.setAttribute("aria-busy", "false");
    }
  }

  function showPart({ kernel, part }, isAsked) {
    const [name, one, two] = part.split("/");
    if (open.view?.knows(name, Number(one), Number(two))) {
      document.getElementById(`k${kernel}-code`).scrollIntoView();
      if (name === "line") open.view.chooseLine(Number(one), Number(two), { focus: isAsked });
      else open.view.chooseRow(Number(one), { focus: isAsked });
      return;
    }
    const place = document.getElementById(part ? `k${kernel}-${part}` : `k${kernel}`);
    if (!place || !isAsked) return;
    const folded = part ? place.querySelector("details") : null;
    if (folded) folded.open = true;
    place.scrollIntoView();
    if (folded) folded.querySelector("summary").focus({ preventScroll: true });
    const heading = folded ? null : place;
    if (heading) {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#k']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !parse(link.getAttribute("href"))) return;
    event.preventDefault(); // an editor's panel would follow the link itself, and only to an element that is there
    event.stopPropagation();
    const address = link.getAttribute("href");
    if (location.hash !== address) pushAddress(address);
    go(address, { isAsked: true });
  }, true);
  if (gpaPage.hasEditor) {
    addEventListener("message", ({ data }) => { // the editor shows a place: { command: "show", address: "#k0/row/12" }
      if (data?.command === "show" && parse(String(data.address))) go(data.address, { isAsked: true });
    });
    gpaPage.tellReady();
  }
  addEventListener("popstate", () => go(location.hash, { isAsked: true }));

  go(location.hash, { isAsked: parse(location.hash) !== null });
})();
