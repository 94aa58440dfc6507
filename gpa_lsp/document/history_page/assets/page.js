"use strict";
// The history page: charts are drawn as they come into view, and a filter leaves out kernels.
(async () => {
  const kernels = [...document.querySelectorAll(".kernel")];
  if (!kernels.length) return;
  const filter = document.getElementById("filter"), only = document.getElementById("only-regressions");

  function show() {
    const words = filter.value.trim().toLowerCase().split(/\s+/);
    let count = 0;
    for (const kernel of kernels) {
      const matches = words.every((word) => kernel.dataset.wanted.includes(word)) && (!only.checked || kernel.dataset.regressions !== "0");
      kernel.hidden = !matches;
      if (matches) count += 1;
    }
    document.getElementById("no-match").hidden = count > 0;
    gpaPage.announce(`${gpaPage.formatCount(count, "kernel")} shown.`);
  }

  filter.addEventListener("input", show);
  only.addEventListener("change", show);
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  try {
    gpaPage.drawWhenSeen(document, await gpaPage.readCompressed("history-data"));
  } catch (error) {
    gpaPage.announce(error.message);
  }
})();
