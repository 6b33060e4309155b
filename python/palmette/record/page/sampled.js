// Where computing is: the tree of calling contexts with its sums, from the top, from the bottom and flat; each rank's
// part of a row; and the source beside it.

const NO_LINES = "its source can't be read here, or has no line in which time was spent";

class Sampled {
  static async start(page) {
    const { tree, functions } = page.viewed;
    const unpacked = async (one) => ({
      seconds: await column(one.seconds, Float32Array),
      histogram: await column(one.histogram, Uint32Array),
      least: await column(one.least, Float32Array),
      most: await column(one.most, Float32Array),
    });
    return new Sampled(page, await unpacked(tree), await unpacked(functions));
  }

  constructor(page, tree, functions) {
    this.viewed = page.viewed;
    this.whole = page.sampled.computing_s + page.sampled.in_mpi_s;
    this.columns = page.viewed.columns.length;
    this.isBeside = page.sampled.tree.some((one) => one.before_s !== undefined);
    const of = (values) => (row, at) => {
      const own = row.index === undefined ? at : row.index;
      return own === null ? null : { values, at: own };
    };
    const ofFunction = of(functions);
    const name = (row) => `${row.function}\n${row.file}`;
    const byName = new Map(page.sampled.functions.map((one, at) => [name(one), ofFunction(one, at)]));
    this.views = {
      down: this.rows(page.sampled.tree, of(tree)),
      up: this.rows(page.sampled.callers, (row) => (row.depth ? null : (byName.get(name(row)) ?? null))),
      flat: this.rows(page.sampled.functions, ofFunction),
    };
    this.view = "down";
    this.chosen = null;
    this.body = make("tbody");
    this.canvas = byId("sampled-canvas");
    byId("sampled-table").append(this.head(), this.body);
    for (const radio of document.querySelectorAll("[name=sampled-view]")) {
      radio.addEventListener("change", () => {
        this.view = radio.value;
        this.open();
      });
    }
    byId("sampled-filter").addEventListener("input", () => this.fill());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const row = this.drawn[this.cell(event)[0]];
      if (row) this.choose(row);
    });
    onResize(this.canvas, () => this.paint());
    this.open();
  }

  /** Rows of a view with what is below each; `ranks` says where each has its ranks' values. */
  rows(told, ranks) {
    const above = [];
    return told.map((one, at) => {
      const row = { ...one, depth: one.depth ?? 0, below: [], isOpen: false, ranks: ranks({ depth: 0, ...one }, at) };
      above.length = row.depth;
      row.above = above[row.depth - 1] ?? null;
      if (row.above) row.above.below.push(row);
      above.push(row);
      return row;
    });
  }

  /** Open what is heaviest, and choose its end. */
  open() {
    const roots = this.views[this.view].filter((row) => !row.above);
    for (const row of this.views[this.view]) row.isOpen = row.is_hot ?? false;
    let last = roots[0] ?? null;
    if (this.view === "down") for (const row of this.views.down) if (row.is_hot) last = row;
    this.chosen = last;
    this.fill();
    this.choose(last);
  }

  head() {
    const columns = [
      ["function or loop", "left", ""],
      ["time", "", "on a processor, of all ranks, with what it calls"],
      ["share", "", "of all processor time"],
      ...(this.isBeside ? [["before", "", "time in the run before"], ["change", "", ""]] : []),
      ["own", "", "without what it calls"],
      ["mean", "", "of a rank"],
      ["deviation", "", "over ranks"],
      ["most (rank)", "", ""],
      ["least (rank)", "", ""],
    ];
    const cells = columns.map(([name, side, title]) => make("th", { scope: "col", class: side, title }, name));
    return make("thead", {}, make("tr", {}, ...cells));
  }

  fill() {
    const words = byId("sampled-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) => words.every((word) => `${row.function} ${row.file ?? ""}`.toLowerCase().includes(word));
    const rows = this.views[this.view];
    if (words.length) this.shown = rows.filter(matches);
    else {
      const isShown = (row) => !row.above || (row.above.isOpen && isShown(row.above));
      this.shown = rows.filter(isShown);
    }
    this.shown = this.shown.slice(0, 400);
    this.body.replaceChildren(...this.shown.map((row) => this.line(row, words.length > 0)));
    const none = make("tr", {}, make("td", { colspan: 10, class: "none" }, "nothing matches"));
    if (!this.shown.length) this.body.append(none);
    this.paint();
  }

  line(row, flat) {
    const opens = row.below.length > 0 && !flat;
    const name = row.function.length > 90 ? `${row.function.slice(0, 88)}…` : row.function;
    const button = make(
      "button",
      {
        type: "button",
        class: "fold",
        "aria-expanded": opens ? String(row.isOpen) : null,
        title: row.function,
        onclick: () => {
          if (opens) row.isOpen = this.chosen === row ? !row.isOpen : true;
          this.choose(row, true);
        },
      },
      make("i", { "aria-hidden": "true" }, opens ? (row.isOpen ? "▾" : "▸") : ""),
      make("span", { class: row.kind }, name),
    );
    const share = this.whole > 0 ? row.cpu_s / this.whole : 0;
    const rank = (time, at) => (time === undefined ? "–" : `${seconds(time)} (${at})`);
    const bar = make("i", { class: "weight", "aria-hidden": "true", style: `width:${(share * 100).toFixed(1)}%` });
    const change = row.cpu_s - (row.before_s ?? 0);
    const texts = [
      ...(this.isBeside ? [seconds(row.before_s), `${change > 0 ? "+" : ""}${seconds(change)}`] : []),
      seconds(row.own_s ?? (row.above ? null : row.cpu_s)),
      seconds(row.mean_s),
      seconds(row.deviation_s),
      rank(row.most_s, row.most_rank),
      rank(row.least_s, row.least_rank),
    ];
    const found = make(
      "tr",
      { class: row === this.chosen ? "chosen" : null, onclick: () => row === this.chosen || this.choose(row) },
      make("td", { class: "left", style: `padding-left:${8 + (flat ? 0 : row.depth * 14)}px` }, button),
      make("td", { class: "number" }, seconds(row.cpu_s)),
      make("td", { class: "number share" }, bar, percent(share)),
      ...texts.map((text) => make("td", { class: "number" }, text)),
    );
    row.button = button;
    return found;
  }

  choose(row, focus = false) {
    this.chosen = row;
    this.fill();
    if (!row) return;
    if (focus && row.button) row.button.focus({ preventScroll: true });
    this.histogram(row);
    this.source(row);
  }

  key(event) {
    const at = this.shown.indexOf(this.chosen);
    if (at < 0) return;
    const row = this.chosen;
    let next = row;
    if (event.key === "ArrowDown") next = this.shown[at + 1] ?? row;
    else if (event.key === "ArrowUp") next = this.shown[at - 1] ?? row;
    else if (event.key === "ArrowRight") row.isOpen = true;
    else if (event.key === "ArrowLeft" && row.isOpen) row.isOpen = false;
    else if (event.key === "ArrowLeft") next = row.above ?? row;
    else return;
    event.preventDefault();
    this.choose(next, true);
  }

  /** Ranks by their time in a row: how many have how much. */
  histogram(row) {
    const place = byId("sampled-histogram");
    place.replaceChildren();
    const title = byId("sampled-ranks");
    title.textContent = row.function;
    if (!row.ranks || this.columns < 2) {
      place.append(make("p", { class: "status" }, "Only sums over ranks are known of callers."));
      if (this.columns < 2) place.replaceChildren(make("p", { class: "status" }, "There is one rank."));
      return;
    }
    const { values, at } = row.ranks;
    const bins = this.viewed.bins;
    const counts = [...values.histogram.subarray(at * bins, (at + 1) * bins)];
    const most = Math.max(...counts);
    const [width, height] = [380, 96];
    const label = "ranks by their time";
    const drawing = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    counts.forEach((number, bin) => {
      const tall = (number / most) * (height - 34);
      const box = { x: bin * (width / bins) + 1, y: height - 18 - tall, width: width / bins - 2, height: tall };
      drawing.append(make("rect", { ...box, fill: colors.accent }, make("title", {}, plural(number, "rank"))));
      if (number && bins <= 24)
        drawing.append(make("text", { x: box.x + box.width / 2, y: box.y - 3, class: "tick ink" }, count(number)));
    });
    drawing.append(
      make("text", { x: 0, y: height - 3, class: "tick", style: "text-anchor:start" }, seconds(values.least[at])),
      make("text", { x: width, y: height - 3, class: "tick", style: "text-anchor:end" }, seconds(values.most[at])),
    );
    place.append(drawing);
  }

  /** The source around a row's lines, with the time of each. */
  source(row) {
    const place = byId("sampled-source");
    const lines = row.lines ?? [];
    const pieces = this.viewed.sources.filter(
      (one) =>
        one.file === row.file &&
        (!lines.length || lines.some((line) => line >= one.first && line < one.first + one.lines.length)),
    );
    if (!pieces.length) {
      place.replaceChildren(make("p", { class: "status" }, `${row.function}: ${NO_LINES}`));
      return;
    }
    const wanted = new Set(lines);
    const most = Math.max(...pieces.flatMap((one) => Object.values(one.seconds)), 1e-12);
    const parts = [make("p", { class: "status" }, pieces[0].file)];
    const changed = "It was changed after the run: lines may be others.";
    if (pieces[0].is_newer) parts.push(make("p", { class: "status changed" }, changed));
    for (const piece of pieces) {
      const rows = piece.lines.map((text, i) => {
        const number = piece.first + i;
        const time = piece.seconds[number];
        const style = time ? `--share:${((time / most) * 100).toFixed(0)}%` : null;
        return make(
          "tr",
          { class: wanted.has(number) ? "here" : null, style },
          make("td", { class: "number" }, time ? seconds(time) : ""),
          make("td", { class: "number" }, String(number)),
          make("td", { class: "left" }, make("code", {}, text || " ")),
        );
      });
      parts.push(make("table", { class: "source" }, make("tbody", {}, ...rows)));
    }
    place.replaceChildren(...parts);
    const first = place.querySelector(".here");
    if (first) place.scrollTop = Math.max(0, first.offsetTop - 60);
  }

  /** Ranks from left to right, the rows of the table from top to bottom. */
  paint() {
    const most = 40;
    const drawn = this.shown.slice(0, most).filter((row) => row.ranks);
    this.drawn = drawn;
    const [label, height] = [220, 15];
    const { context, width } = fitCanvas(this.canvas, drawn.length * height + 22);
    if (!drawn.length) return;
    const side = (width - label) / this.columns;
    Object.assign(this, { label, side, height });
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    drawn.forEach((row, at) => {
      const { values, at: index } = row.ranks;
      const own = values.seconds.subarray(index * this.columns, (index + 1) * this.columns);
      const largest = own.reduce((a, b) => Math.max(a, b), 0);
      context.fillStyle = row === this.chosen ? colors.ink : colors.muted;
      const indent = Math.min(row.depth * 6, 90);
      context.fillText(clipped(context, row.function, label - 12 - indent), indent, (at + 0.5) * height);
      for (let one = 0; one < this.columns; one += 1) {
        context.fillStyle = own[one] > 0 ? heat(0.08 + 0.92 * (own[one] / largest)) : colors.soft;
        context.fillRect(label + one * side, at * height + 1, Math.max(side - (side > 6 ? 1 : 0), 0.5), height - 2);
      }
    });
    context.fillStyle = colors.muted;
    context.textAlign = "left";
    context.fillText(this.viewed.columns[0], label, drawn.length * height + 12);
    context.textAlign = "right";
    context.fillText(this.viewed.columns[this.columns - 1], width, drawn.length * height + 12);
    context.textAlign = "left";
  }

  cell(event) {
    return [Math.floor(event.offsetY / this.height), Math.floor((event.offsetX - this.label) / this.side)];
  }

  hover(event) {
    const [at, one] = this.cell(event);
    const row = this.drawn[at];
    if (!row) {
      tip.hide();
      return;
    }
    const { values, at: index } = row.ranks;
    const isCell = one >= 0 && one < this.columns;
    const time = isCell ? seconds(values.seconds[index * this.columns + one]) : seconds(row.cpu_s);
    const who = isCell ? this.viewed.columns[one] : "all ranks";
    tip.show([row.function, `${who}: ${time}`], event.clientX, event.clientY);
  }
}
