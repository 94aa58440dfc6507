"use strict";
// The list of kernels: sorted by its headings, filtered as one types.
(() => {
  const table = document.getElementById("kernel-table");
  if (!table) return;
  const bodies = [...table.tBodies]; // one per program and GPU: what was measured apart is never compared
  const rows = bodies.flatMap((body) => [...body.querySelectorAll("tr[data-kernel]")]);

  function readValue(row, column) {
    const value = row.cells[column].dataset.value;
    const number = Number(value);
    return value !== "" && Number.isFinite(number) ? number : value;
  }

  function sortBy(heading) {
    const column = heading.cellIndex;
    const isText = typeof readValue(rows[0], column) === "string";
    const descending = heading.ariaSort ? heading.ariaSort === "ascending" : !isText;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    for (const body of bodies) {
      const order = rows.filter((row) => row.parentElement === body).map((row) => [readValue(row, column), row]);
      order.sort(([one], [another]) =>
        sign * (typeof one === "number" && typeof another === "number" ? one - another : String(one).localeCompare(String(another))));
      body.append(...order.map(([, row]) => row));
    }
    gpaPage.announce(`Sorted by ${heading.textContent.trim()}, ${heading.getAttribute("aria-sort")}`);
  }

  for (const heading of table.tHead.rows[0].cells) heading.querySelector("button").addEventListener("click", () => sortBy(heading));

  const filter = document.getElementById("filter");
  if (!filter) return;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.text.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    for (const body of bodies) body.hidden = !body.querySelector("tr[data-kernel]:not([hidden])");
    document.getElementById("filter-count").textContent = words.length ? `${gpaPage.formatCount(shown)} of ${gpaPage.formatCount(rows.length)}` : "";
    document.getElementById("no-match").hidden = shown > 0;
  });
})();
