"use strict";
// Source and SASS of the kernel that is open, and the links between the two.
class CodeView {
  constructor(section, kernel, data, onChoose) {
    this.kernel = kernel;
    this.data = data;
    this.onChoose = onChoose;
    this.pool = data.pool;
    this.tools = section.querySelector(".code-tools");
    this.panel = section.querySelector(".chosen");
    this.sourcePane = section.querySelector(".source-pane");
    this.sassPane = section.querySelector(".sass-pane");
    this.chosen = { rows: new Set(), lines: new Set() };
    this.related = { rows: new Set(), lines: new Set() };
    this.#indexCode();
    this.panes = section.querySelector(".panes");
    this.#makeTools();
    this.#makeSass();
    this.#makeSource(0);
  }

  // --- What stands where. ---
  #indexCode() {
    const code = this.data.code;
    this.positions = new Map(); // row of the report → position in the columns
    for (let position = 0; position < code.offset.length; position += 1)
      this.positions.set(code.rows ? code.rows[position] : position, position);
    this.chainsOfLine = new Map(); // "file:line" → chains through it
    code.chains.forEach((chain, number) => {
      for (let at = 0; at < chain.length; at += 2) {
        const key = `${chain[at]}:${chain[at + 1]}`;
        if (!this.chainsOfLine.has(key)) this.chainsOfLine.set(key, new Set());
        this.chainsOfLine.get(key).add(number);
      }
    });
    this.positionsOfChain = new Map();
    code.chain.forEach((chain, position) => {
      if (!this.positionsOfChain.has(chain)) this.positionsOfChain.set(chain, []);
      this.positionsOfChain.get(chain).push(position);
    });
    this.mostSamples = Math.max(1, ...this.#sampleMaximum(code.samples));
    this.marksOfRow = new Map();
    this.marksOfLine = new Map();
    for (const [row, file, line, words] of this.data.marks) {
      if (row >= 0) CodeView.#add(this.marksOfRow, row, words);
      if (file >= 0) CodeView.#add(this.marksOfLine, `${file}:${line}`, words);
    }
    this.causes = new Map();
    this.stalled = new Map();
    for (const link of this.data.rowCauses) {
      CodeView.#add(this.causes, link[0], link);
      CodeView.#add(this.stalled, link[1], link);
    }
    this.lineLinks = new Map();
    for (const link of this.data.lineCauses) CodeView.#add(this.lineLinks, `${link[0]}:${link[1]}`, link);
  }

  #sampleMaximum(samples) {
    return [samples.reduce((most, count) => Math.max(most, count), 0)];
  }

  static #add(map, key, value) {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(value);
  }

  rowOf(position) {
    return this.data.code.rows ? this.data.code.rows[position] : position;
  }

  positionsOfLine(file, line) {
    const chains = this.chainsOfLine.get(`${file}:${line}`) ?? [];
    return [...chains].flatMap((chain) => this.positionsOfChain.get(chain) ?? []).sort((one, another) => one - another);
  }

  // --- Tools: which file, and what is missing. ---
  #makeTools() {
    const files = this.data.sources;
    if (files.length) {
      const label = document.createElement("label");
      label.textContent = "File ";
      this.chooser = document.createElement("select");
      files.forEach((file, number) => {
        const option = new Option(file.share ? `${file.name} (${file.share})` : file.name, String(number));
        option.title = file.path;
        this.chooser.add(option);
      });
      this.chooser.addEventListener("change", () => this.#makeSource(Number(this.chooser.value)));
      label.append(this.chooser);
      this.tools.append(label);
    } else {
      this.panes.dataset.layout = "SASS";
    }
    const hottest = document.createElement("button");
    hottest.type = "button";
    hottest.textContent = "Hottest instruction";
    hottest.addEventListener("click", () => this.chooseRow(this.rowOf(this.#findHottest()), { focus: true }));
    this.tools.append(hottest);
    if (files.length) this.tools.append(this.#makeLayouts());
    this.note = CodeView.#say("");
    this.tools.append(this.note);
  }

  #makeLayouts() {
    const group = document.createElement("span");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "What is shown");
    const buttons = ["Both", "Source", "SASS"].map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => this.#show(name, buttons));
      return button;
    });
    group.append(...buttons);
    this.#show(CodeView.layout, buttons);
    return group;
  }

  static layout = "Both"; // stays as chosen from kernel to kernel

  #show(name, buttons) {
    CodeView.layout = name;
    this.panes.dataset.layout = name;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === name));
  }

  #findHottest() {
    const samples = this.data.code.samples;
    let best = 0;
    samples.forEach((count, position) => { if (count > samples[best]) best = position; });
    return best;
  }

  static #say(text) {
    const paragraph = document.createElement("p");
    paragraph.className = "dim";
    paragraph.textContent = text;
    return paragraph;
  }

  // --- Source. ---
  #makeSource(number) {
    const file = this.data.sources[number];
    if (!file) return;
    this.sourceGrid?.close();
    this.file = file;
    if (this.chooser) this.chooser.value = String(number);
    const items = [];
    file.line.forEach((line, at) => {
      if (at && file.text && line > file.line[at - 1] + 1) items.push({ gap: true });
      items.push({ at, line });
    });
    this.lineItems = new Map(items.map((item, index) => [item.line, index]).filter(([line]) => line !== undefined));
    const most = file.samples.reduce((top, count) => Math.max(top, count), 1);
    const columns = [
      { name: "", width: 5 },
      { name: "share", width: Math.max(6, this.#longest(file.shares)), isNumber: true },
      { name: "line", width: Math.max(4, String(file.line.at(-1) ?? "").length), isNumber: true },
      { name: file.name, width: Math.min(140, this.#longest(file.text) || 6) },
      { name: "mostly", width: this.#longest(file.reasons) + 12 },
    ];
    this.sourceGrid = new LongGrid(this.sourcePane, `Source lines of ${file.name}`, columns, items,
      (item, row, width) => this.#renderLine(item, row, width, most), (item) => this.#pickLine(item));
    this.note.textContent = [file.why, file.leftOut, this.data.code.leftOut].filter(Boolean).join(" ");
    let hottest = 0;
    file.samples.forEach((count, at) => { if (count > file.samples[hottest]) hottest = at; });
    if (items.length) this.sourceGrid.setCurrent(this.lineItems.get(file.line[hottest]));
  }

  #longest(numbers) {
    return (numbers ?? []).reduce((most, number) => Math.max(most, this.#untab(this.pool[number]).length), 0);
  }

  #untab(text) {
    return text.replaceAll("\t", "    ");
  }

  #renderLine(item, row, width, most) {
    if (item.gap) return CodeView.#renderBreak(row, width, "⋯", "gap");
    const file = this.file, at = item.at;
    this.#addShare(row, this.pool[file.shares[at]], file.samples[at] / most);
    CodeView.#addCell(row, String(item.line), file.hasCode[at] ? "number has-code" : "number dim");
    CodeView.#addCell(row, file.text ? this.#untab(this.pool[file.text[at]]) : "", "text");
    this.#addReasons(row, this.pool[file.reasons[at]], this.marksOfLine.get(`${file.number}:${item.line}`));
    this.#dressLine(item, row);
  }

  #dressLine(item, row) {
    if (item.gap) return;
    CodeView.#dress(row, `${this.file.number}:${item.line}`, this.chosen.lines, this.related.lines);
  }

  #pickLine(item) {
    if (item.gap) return;
    this.chooseLine(this.file.number, item.line, { isClick: true });
  }

  // --- SASS. ---
  #makeSass() {
    const code = this.data.code;
    const heads = new Map();
    for (const [row, kind, text] of code.heads) CodeView.#add(heads, row, { kind, text });
    const items = [];
    let before = -1;
    for (let position = 0; position < code.offset.length; position += 1) {
      const row = this.rowOf(position);
      if (row !== before + 1) items.push({ gap: true });
      for (const head of heads.get(row) ?? []) items.push({ head });
      items.push({ position });
      before = row;
    }
    this.positionItems = new Map(items.map((item, index) => [item.position, index]).filter(([position]) => position !== undefined));
    const deepest = code.depth.reduce((most, depth) => Math.max(most, depth), 0);
    const columns = [
      { name: "", width: 5 },
      { name: "share", width: 7, isNumber: true },
      { name: "offset", width: code.offset.reduce((most, text) => Math.max(most, text.length), 5) + 2, isNumber: true },
      { name: "instruction", width: Math.min(90, this.#longest(code.text) + Math.min(deepest, 12)) },
      { name: "mostly", width: this.#longest(code.reasons) + 12 },
      { name: "scheduling", width: Math.max(10, this.#longest(code.control)) },
      { name: "executed", width: Math.max(8, this.#longest(code.executed)), isNumber: true },
    ];
    this.sassGrid = new LongGrid(this.sassPane, "Instructions", columns, items,
      (item, row, width) => this.#renderInstruction(item, row, width), (item) => this.#pickInstruction(item));
    if (items.length) this.sassGrid.setCurrent(this.positionItems.get(this.#findHottest()));
  }

  #renderInstruction(item, row, width) {
    if (item.gap) return CodeView.#renderBreak(row, width, "⋯ not shown", "gap");
    if (item.head) return CodeView.#renderBreak(row, width, item.head.text, item.head.kind);
    const code = this.data.code, position = item.position;
    this.#addShare(row, this.pool[code.share[position]], code.samples[position] / this.mostSamples);
    CodeView.#addCell(row, `0x${code.offset[position]}`, "number dim");
    const text = CodeView.#addCell(row, "", "text");
    if (code.depth[position]) {
      const depth = document.createElement("span");
      depth.className = "depth";
      depth.setAttribute("aria-hidden", "true");
      depth.textContent = "│".repeat(Math.min(code.depth[position], 12));
      text.append(depth);
    }
    text.append(this.pool[code.text[position]]);
    this.#addReasons(row, this.pool[code.reasons[position]], this.marksOfRow.get(this.rowOf(position)));
    CodeView.#addCell(row, this.pool[code.control[position]], "dim");
    CodeView.#addCell(row, this.pool[code.executed[position]], "number dim");
    this.#dressInstruction(item, row);
  }

  #dressInstruction(item, row) {
    if (item.position === undefined) return;
    CodeView.#dress(row, item.position, this.chosen.rows, this.related.rows);
  }

  #pickInstruction(item) {
    if (item.position === undefined) return;
    this.chooseRow(this.rowOf(item.position), { isClick: true });
  }

  // --- Cells. ---
  static #addCell(row, text, name) {
    const cell = row.insertCell();
    cell.className = name;
    cell.textContent = text;
    return cell;
  }

  #addShare(row, text, ratio) {
    const cell = CodeView.#addCell(row, "", "bar");
    CodeView.#addCell(row, text, "number");
    if (!text) return;
    const bar = document.createElement("span");
    bar.className = "meter";
    bar.setAttribute("aria-hidden", "true");
    bar.style.setProperty("--ratio", ratio);
    bar.append(document.createElement("i"));
    cell.append(bar);
    row.style.setProperty("--heat", ratio);
  }

  #addReasons(row, text, marks) {
    const cell = CodeView.#addCell(row, text, "reasons");
    if (!marks) return;
    const mark = document.createElement("span");
    mark.className = "mark";
    mark.textContent = gpaPage.formatCount(marks.length, "remark");
    if (text) cell.append(" ");
    cell.append(mark);
  }

  static #renderBreak(row, width, text, kind) {
    row.className = `break ${kind}`;
    const cell = row.insertCell();
    cell.colSpan = width;
    cell.textContent = text;
  }

  static #dress(row, key, chosen, related) {
    const isChosen = chosen.has(key);
    row.classList.toggle("is-chosen", isChosen);
    row.classList.toggle("is-related", !isChosen && related.has(key));
    if (isChosen) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
  }

  #refresh() {
    this.sourceGrid?.refresh((item, row) => this.#dressLine(item, row));
    this.sassGrid.refresh((item, row) => this.#dressInstruction(item, row));
  }

  // --- Choosing. ---
  // Whether an address is of a place here; addresses can be older than the page.
  knows(kind, one, two) {
    if (kind === "line") return one in this.data.files && Number.isInteger(two);
    return kind === "row" && one >= 0;
  }

  chooseLine(file, line, { isClick = false, focus = false } = {}) {
    const number = this.data.sources.findIndex((one) => one.number === file);
    const positions = this.positionsOfLine(file, line);
    this.chosen = { rows: new Set(), lines: new Set([`${file}:${line}`]) };
    this.related = { rows: new Set(positions), lines: new Set() };
    if (number >= 0 && this.data.sources[number] !== this.file) this.#makeSource(number);
    const index = number >= 0 ? this.lineItems.get(line) : undefined;
    if (index !== undefined) this.sourceGrid.setCurrent(index, { focus });
    const samples = this.data.code.samples;
    const hottest = positions.reduce((best, one) => (best === undefined || samples[one] > samples[best] ? one : best), undefined);
    if (hottest !== undefined) this.sassGrid.setCurrent(this.positionItems.get(hottest));
    this.#refresh();
    this.#describeLine(file, line, number, index, positions.length);
    this.onChoose(`line/${file}/${line}`, isClick);
    if (isClick) gpaPage.openPlace({ file: this.data.files[file], line, kernel: this.data.mangled });
  }

  chooseRow(row, { isClick = false, focus = false } = {}) {
    const position = this.positions.get(row);
    if (position === undefined) {
      this.panel.replaceChildren(CodeView.#say("This instruction is not on the page; gpa-lsp report sass prints it."));
      return;
    }
    const code = this.data.code, chain = code.chains[code.chain[position]] ?? [];
    const lines = [];
    for (let at = 0; at < chain.length; at += 2) lines.push([chain[at], chain[at + 1]]);
    this.chosen = { rows: new Set([position]), lines: new Set() };
    this.related = { rows: new Set(), lines: new Set(lines.map(([file, line]) => `${file}:${line}`)) };
    const shown = lines.find(([file]) => file === this.file?.number) ?? lines[0];
    if (shown) {
      const number = this.data.sources.findIndex((one) => one.number === shown[0]);
      if (number >= 0 && this.data.sources[number] !== this.file) this.#makeSource(number);
      const index = number >= 0 ? this.lineItems.get(shown[1]) : undefined;
      if (index !== undefined) this.sourceGrid.setCurrent(index);
    }
    this.sassGrid.setCurrent(this.positionItems.get(position), { focus });
    this.#refresh();
    this.#describeRow(row, position, lines);
    this.onChoose(`row/${row}`, isClick);
    if (isClick) {
      const [file, line] = lines[0] ?? [];
      gpaPage.openPlace({
        file: file === undefined ? null : this.data.files[file], line: line ?? null, kernel: this.data.mangled,
        function: code.functions[code.function[position]], offset: parseInt(code.offset[position], 16),
      });
    }
  }

  // --- The panel that says what is known of the chosen place. ---
  #describeLine(file, line, number, index, count) {
    const source = this.data.sources[number];
    const parts = [this.#nameLine(file, line)];
    if (index !== undefined) {
      const at = this.sourceGrid.items[index].at;
      parts.push(this.pool[source.shares[at]], this.pool[source.own[at]], this.pool[source.reasons[at]]);
    }
    parts.push(gpaPage.formatCount(count, "instruction"));
    const links = this.lineLinks.get(`${file}:${line}`) ?? [];
    this.#fillPanel(parts, [], [
      ["Stalled on", links.filter((link) => link[2]).map((link) => this.#linkLine(link))],
      ["Stalls", links.filter((link) => !link[2]).map((link) => this.#linkLine(link))],
    ], this.marksOfLine.get(`${file}:${line}`));
  }

  #describeRow(row, position, lines) {
    const code = this.data.code;
    const parts = [`0x${code.offset[position]}`, this.pool[code.text[position]], this.pool[code.share[position]],
      this.pool[code.reasons[position]], this.pool[code.control[position]]];
    const executed = this.pool[code.executed[position]];
    if (executed) parts.push(`executed ${executed}`);
    this.#fillPanel(parts, lines, [
      ["Stalled on", (this.causes.get(row) ?? []).map((link) => this.#linkRow(link[1], link[2]))],
      ["Stalls", (this.stalled.get(row) ?? []).map((link) => this.#linkRow(link[0], link[2]))],
    ], this.marksOfRow.get(row));
  }

  #nameLine(file, line) {
    const source = this.data.sources.find((one) => one.number === file);
    return `${source?.name ?? this.data.files[file].split(/[\\/]/).at(-1)}:${line}`;
  }

  #linkLine([, , , file, line, words]) {
    const text = this.pool[words];
    return file < 0 ? [null, "code without lines", text] : [`line/${file}/${line}`, this.#nameLine(file, line), text];
  }

  #linkRow(row, words) {
    const position = this.positions.get(row);
    if (position === undefined) return [null, "an instruction not shown", this.pool[words]];
    return [`row/${row}`, `0x${this.data.code.offset[position]} ${this.pool[this.data.code.text[position]]}`, this.pool[words]];
  }

  #fillPanel(parts, lines, groups, marks) {
    const head = document.createElement("p");
    const name = document.createElement("strong");
    name.className = "code";
    name.textContent = parts[0];
    head.append(name, ` ${parts.slice(1).filter(Boolean).join(" · ")}`);
    const found = [head];
    if (lines.length) {
      const from = document.createElement("p");
      from.append("From ");
      lines.forEach(([file, line], at) => {
        if (at) from.append(", inlined into ");
        from.append(this.#makeLink(`line/${file}/${line}`, this.#nameLine(file, line)));
      });
      found.push(from);
    }
    const lists = document.createElement("div");
    lists.className = "lists";
    for (const [title, links] of groups) if (links.length) lists.append(this.#makeList(title, links.slice(0, 8)));
    if (marks) lists.append(this.#makeList("Remarks", marks.map((words) => [null, "", this.pool[words]])));
    this.panel.replaceChildren(...found, lists);
  }

  #makeList(title, links) {
    const heading = document.createElement("p");
    heading.className = "list-title";
    heading.textContent = title;
    const list = document.createElement("ul");
    for (const [target, text, words] of links) {
      const item = document.createElement("li");
      if (target) item.append(this.#makeLink(target, text), " ");
      else if (text) item.append(`${text} `);
      const facts = document.createElement("span");
      facts.className = text ? "dim" : "";
      facts.textContent = words;
      item.append(facts);
      list.append(item);
    }
    const group = document.createElement("div");
    group.append(heading, list);
    return group;
  }

  #makeLink(target, text) {
    const link = document.createElement("a");
    link.href = `#k${this.kernel}/${target}`;
    link.className = "code";
    link.textContent = text;
    return link;
  }

  close() {
    this.sourceGrid?.close();
    this.sassGrid.close();
  }
}
