"use strict";
// A flame graph that is drawn, searched and walked: the chosen frame is said below it, with a link to its line.
class FlameView {
  constructor(box, spec) {
    this.box = box;
    this.chart = box.querySelector(".flame-chart");
    this.drawing = box.querySelector("[data-chart]");
    this.said = box.querySelector(".flame-chosen");
    this.whole = box.querySelector(".flame-whole");
    this.search = box.querySelector(".flame-search");
    this.found = box.querySelector(".flame-found");
    this.frames = spec.data[0].values;
    this.chosen = 0;
    this.#measure();
    this.drawing.addEventListener("gpa-drawn", ({ detail: view }) => this.#follow(view));
    this.chart.addEventListener("keydown", (event) => this.#onKey(event));
    this.chart.addEventListener("focus", () => this.choose(this.chosen));
    this.whole.addEventListener("click", () => { this.widen(0); this.chart.focus(); });
    this.search.addEventListener("input", () => this.#look());
  }

  // What is below each frame, widest first, and which part of the width it has: as the chart lays it out.
  #measure() {
    this.below = this.frames.map(() => []);
    this.totals = this.frames.map((frame) => frame.samples);
    for (let at = this.frames.length - 1; at > 0; at -= 1) this.totals[this.frames[at].parent] += this.totals[at];
    for (let at = 1; at < this.frames.length; at += 1) this.below[this.frames[at].parent].push(at);
    for (const children of this.below) children.sort((one, another) => this.totals[another] - this.totals[one] || one - another);
    this.left = this.frames.map(() => 0);
    for (let at = 0; at < this.frames.length; at += 1) {
      let left = this.left[at];
      for (const child of this.below[at]) {
        this.left[child] = left;
        left += this.totals[child] / this.totals[0];
      }
    }
  }

  #follow(view) {
    view.addEventListener("click", (event, item) => {
      if (item?.datum?.id === undefined) return;
      const isAgain = item.datum.id === this.chosen;
      this.choose(item.datum.id);
      if (isAgain) this.widen(item.datum.id);
    });
  }

  choose(number) {
    this.chosen = number;
    const frame = this.frames[number];
    this.said.textContent = frame.words;
    if (frame.link) {
      const link = document.createElement("a");
      link.href = frame.link;
      link.textContent = "Show in source";
      this.said.append(" ", link);
    }
    gpaPage.setSignal(this.drawing, "chosen", number);
  }

  widen(number) {
    const left = this.left[number];
    gpaPage.setSignal(this.drawing, "left", left);
    gpaPage.setSignal(this.drawing, "right", left + this.totals[number] / this.totals[0]);
    this.whole.disabled = number === 0;
    this.wide = number;
    this.choose(number);
  }

  #onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const parent = this.frames[this.chosen].parent;
    const beside = parent === null ? [0] : this.below[parent];
    const at = beside.indexOf(this.chosen);
    const steps = {
      ArrowDown: () => this.below[this.chosen][0],
      ArrowUp: () => parent,
      ArrowRight: () => beside[at + 1],
      ArrowLeft: () => beside[at - 1],
      Home: () => 0,
    };
    if (event.key in steps) {
      const next = steps[event.key]();
      if (next !== undefined && next !== null) this.choose(next);
    } else if (event.key === "Enter" || event.key === " ") this.widen(this.chosen);
    else if (event.key === "Escape") this.widen(this.frames[this.wide ?? 0].parent ?? 0);
    else return;
    event.preventDefault();
  }

  #look() {
    const wanted = this.search.value.trim().toLowerCase();
    const hits = wanted ? this.frames.filter((frame) => frame.words.toLowerCase().includes(wanted)).length : 0;
    this.found.textContent = wanted ? gpaPage.formatCount(hits, "frame") : "";
    gpaPage.setSignal(this.drawing, "wanted", wanted);
  }
}
