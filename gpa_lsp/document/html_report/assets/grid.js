"use strict";
// A long table whose rows are made when they come into view: groups of rows stand as empty groups of the same height until then.
class LongGrid {
  static GROUP = 100;

  // columns: [{ name, width (in characters), isNumber }]; items: anything; render(item, row) fills a row; rows are as high as one line.
  constructor(pane, label, columns, items, render, choose) {
    this.pane = pane;
    this.items = items;
    this.render = render;
    this.choose = choose;
    this.width = columns.length;
    this.current = 0;
    this.groups = [];
    this.table = document.createElement("table");
    this.table.setAttribute("role", "grid");
    this.table.setAttribute("aria-label", label);
    this.table.setAttribute("aria-rowcount", String(items.length + 1));
    this.#makeHead(columns);
    this.observer = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) this.#fill(Number(one.target.dataset.group));
    }, { root: pane, rootMargin: "800px 0px" });
    for (let start = 0, number = 0; start < items.length; start += LongGrid.GROUP, number += 1) this.#makeGroup(start, number);
    pane.replaceChildren(this.table);
    if (items.length) this.#fill(0);
    this.table.addEventListener("keydown", (event) => this.#onKey(event));
    this.table.addEventListener("click", (event) => this.#onClick(event));
  }

  #makeHead(columns) {
    const group = document.createElement("colgroup");
    const row = document.createElement("tr");
    for (const column of columns) {
      const col = document.createElement("col");
      col.style.width = `${column.width + 2}ch`;
      group.append(col);
      const heading = document.createElement(column.name ? "th" : "td"); // the bar has no heading: its number has
      if (column.name) heading.scope = "col";
      heading.textContent = column.name;
      if (column.isNumber) heading.className = "number";
      row.append(heading);
    }
    const head = document.createElement("thead");
    head.append(row);
    row.setAttribute("aria-rowindex", "1");
    this.table.style.width = `${columns.reduce((sum, column) => sum + column.width + 2, 0)}ch`;
    this.table.append(group, head);
  }

  #makeGroup(start, number) {
    const body = document.createElement("tbody");
    const count = Math.min(LongGrid.GROUP, this.items.length - start);
    body.dataset.group = String(number);
    const filler = body.insertRow();
    filler.style.height = `calc(${count} * var(--row))`;
    filler.setAttribute("aria-hidden", "true");
    filler.insertCell().colSpan = this.width;
    this.groups.push({ body, start, count, isFilled: false });
    this.table.append(body);
    this.observer.observe(body);
  }

  #fill(number) {
    const group = this.groups[number];
    if (group.isFilled) return;
    group.isFilled = true;
    this.observer.unobserve(group.body);
    const rows = [];
    for (let index = group.start; index < group.start + group.count; index += 1) {
      const row = document.createElement("tr");
      row.dataset.index = String(index);
      row.setAttribute("aria-rowindex", String(index + 2));
      row.tabIndex = index === this.current ? 0 : -1;
      this.render(this.items[index], row, this.width);
      rows.push(row);
    }
    group.body.replaceChildren(...rows);
  }

  rowAt(index) {
    const group = this.groups[Math.floor(index / LongGrid.GROUP)];
    return group?.isFilled ? group.body.rows[index - group.start] : null;
  }

  // Bring a row into view, in the middle of its pane; the page itself does not move.
  show(index) {
    if (index < 0 || index >= this.items.length) return null;
    this.#fill(Math.floor(index / LongGrid.GROUP));
    const row = this.rowAt(index);
    const place = row.getBoundingClientRect(), frame = this.pane.getBoundingClientRect();
    const head = this.table.tHead.getBoundingClientRect().height;
    if (place.top < frame.top + head || place.bottom > frame.bottom)
      this.pane.scrollTop += place.top - frame.top - (frame.height - place.height) / 2;
    return row;
  }

  setCurrent(index, { focus = false } = {}) {
    const before = this.rowAt(this.current);
    if (before) before.tabIndex = -1;
    this.current = Math.max(0, Math.min(index, this.items.length - 1));
    const row = this.show(this.current);
    row.tabIndex = 0;
    if (focus) row.focus({ preventScroll: true });
  }

  // Classes of all rows that are made; the others get theirs when they are.
  refresh(dress) {
    for (const group of this.groups)
      if (group.isFilled) for (const row of group.body.rows) dress(this.items[Number(row.dataset.index)], row);
  }

  #onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName !== "TR") return;
    const page = Math.max(1, Math.floor(this.pane.clientHeight / event.target.offsetHeight) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.setCurrent(this.current + steps[event.key], { focus: true });
    else if (event.key === "Enter" || event.key === " ") this.choose(this.items[this.current]);
    else return;
    event.preventDefault();
  }

  #onClick(event) {
    const row = event.target.closest("tbody tr[data-index]");
    if (!row || String(getSelection())) return; // who selects text does not mean to choose
    this.setCurrent(Number(row.dataset.index), { focus: true });
    this.choose(this.items[this.current]);
  }

  close() {
    this.observer.disconnect();
  }
}
