// Drawing the machine's links: its tree, a link's bytes over time, and the table of the busiest.

const CELL = 10;
const NODE = 24;
const STEP = 92;
const CHART = 150;

class Links {
  constructor(data) {
    this.data = data;
    this.canvas = byId("links-canvas");
    this.chart = byId("links-chart");
    this.top = data.root;
    this.range = null;
    this.unit = data.rated ? "share" : "bytes";
    const busy = (node) => Math.max(this.value(node, "up") ?? 0, this.value(node, "down") ?? 0);
    this.picked = [...data.links].sort((a, b) => busy(b) - busy(a))[0]?.number ?? data.root;
    this.draw = throttled(() => this.paint());
    this.listen();
    this.list();
    onResize(this.canvas, () => this.paint());
  }

  value(node, side) {
    return this.unit === "share" ? this.data.share(node, side, this.range) : this.data.bytes(node, side, this.range);
  }

  listen() {
    for (const radio of document.querySelectorAll("[name=links-unit]")) {
      radio.checked = radio.value === this.unit;
      radio.disabled = radio.value === "share" && !this.data.rated;
      radio.addEventListener("change", () => {
        this.unit = radio.value;
        this.draw();
      });
    }
    this.canvas.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const box = this.boxAt(event.offsetX, event.offsetY);
      if (box) this.pick(box.node);
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const box = this.boxAt(event.offsetX, event.offsetY);
      if (box) this.open(box.node);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    byId("links-open").addEventListener("click", () => this.open(this.picked));
    byId("links-whole").addEventListener("click", () => this.setRange(null));
    byId("links-time").hidden = !this.data.timed;
    this.listenToChart();
  }

  /** A drag over the chart picks a time; arrow keys move it. */
  listenToChart() {
    const bins = this.data.bins;
    const binAt = (event) =>
      Math.min(bins - 1, Math.max(0, Math.floor((event.offsetX / this.chart.clientWidth) * bins)));
    let start = null;
    this.chart.addEventListener("pointerdown", (event) => {
      start = binAt(event);
      this.chart.setPointerCapture(event.pointerId);
      this.setRange([start, start + 1]);
    });
    this.chart.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = binAt(event);
      this.setRange([Math.min(start, now), Math.max(start, now) + 1]);
    });
    for (const name of ["pointerup", "pointercancel"])
      this.chart.addEventListener(name, () => {
        start = null;
      });
    this.chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") this.setRange(null);
      if (!step) return;
      event.preventDefault();
      const [from, to] = this.range || [step > 0 ? -1 : bins, step > 0 ? 0 : bins + 1];
      const wide = to - from;
      const begin = Math.min(Math.max(from + (event.shiftKey ? 0 : step), 0), bins - wide);
      this.setRange([begin, Math.min(bins, Math.max(begin + 1, begin + wide + (event.shiftKey ? step : 0)))]);
    });
  }

  setRange(range) {
    this.range = range;
    this.draw();
  }

  pick(number) {
    this.picked = number;
    this.draw();
  }

  /** Show the part of the tree below a node. */
  open(number) {
    const { nodes } = this.data;
    this.top = nodes[number].children.length ? number : Math.max(nodes[number].parent, this.data.root);
    this.picked = number;
    tip.hide();
    this.draw();
  }

  paint() {
    const { data } = this;
    let most = 0;
    let least = Infinity;
    for (const node of data.links) {
      for (const side of ["up", "down"]) {
        const value = this.value(node, side);
        if (value > 0) [most, least] = [Math.max(most, value), Math.min(least, value)];
      }
    }
    Object.assign(this, { most, least });
    this.layOut();
    const { context } = fitCanvas(this.canvas, this.height);
    this.context = context;
    context.textBaseline = "middle";
    this.paintLevels();
    for (const box of this.boxes) if (!box.cell && box.parent) this.paintLink(box);
    for (const box of this.boxes) box.cell ? this.paintCell(box) : this.paintNode(box);
    this.paintChart();
    this.describe();
  }

  /** Boxes of nodes: levels as trees where they are wide enough, the deeper ones as small cells below. */
  layOut() {
    const { data } = this;
    const levels = data.below(this.top);
    const width = this.canvas.clientWidth;
    const left = width < 560 ? 0 : 64;
    const plot = width - left;
    let deepest = 0;
    while (deepest + 1 < levels.length && plot / levels[deepest + 1].length >= 34) deepest += 1;
    this.boxes = [];
    this.marks = [];
    const byNode = new Map();
    const slots = levels[deepest].length;
    for (let depth = deepest; depth >= 0; depth -= 1) {
      const y = 18 + depth * STEP;
      levels[depth].forEach((node, at) => {
        const inner = data.nodes[node].children.map((child) => byNode.get(child)).filter(Boolean);
        const x =
          depth < deepest && inner.length
            ? (inner[0].x + inner[inner.length - 1].x) / 2
            : left + ((at + 0.5) / levels[depth].length) * plot;
        const slot = plot / (depth < deepest ? levels[depth].length : slots);
        const box = { node, x, y, wide: Math.min(slot - 6, 116), high: NODE };
        // Links end side by side, in their order.
        const room = Math.min(18, (box.wide - 8) / Math.max(1, inner.length));
        inner.forEach((child, i) =>
          Object.assign(child, { parent: box, room, ends: x + (i - (inner.length - 1) / 2) * room }),
        );
        byNode.set(node, box);
      });
      this.marks.push({ level: data.levelName(data.nodes[levels[depth][0]]), y: y + NODE / 2 });
    }
    this.boxes.push(...byNode.values());
    let bottom = 18 + deepest * STEP + NODE;
    const slot = plot / slots;
    const across = Math.max(1, Math.floor((slot - 4) / CELL));
    let under = levels[deepest].map((node) => [node]);
    for (let depth = deepest + 1; depth < levels.length; depth += 1) {
      under = under.map((nodes) => nodes.flatMap((node) => data.nodes[node].children));
      const y = bottom + 14;
      under.forEach((nodes, at) => {
        const x = Math.round(byNode.get(levels[deepest][at]).x - (Math.min(across, nodes.length) * CELL) / 2);
        nodes.forEach((node, i) => {
          const cell = { node, cell: true, x: x + (i % across) * CELL, y: y + Math.floor(i / across) * CELL };
          this.boxes.push(cell);
          bottom = Math.max(bottom, cell.y + CELL);
        });
      });
      this.marks.push({ level: data.levelName(data.nodes[levels[depth][0]]), y: y + CELL / 2 });
    }
    this.height = bottom + 12;
  }

  color(value) {
    if (value === null) return colors.line;
    if (!(value > 0)) return colors.soft;
    if (this.unit === "share") return heat(0.08 + (0.92 * value) / this.most);
    return heat(
      this.most > this.least ? 0.12 + (0.88 * Math.log(value / this.least)) / Math.log(this.most / this.least) : 0.8,
    );
  }

  paintLevels() {
    const { context } = this;
    if (this.canvas.clientWidth < 560) return;
    context.font = `11.5px ${FONT}`;
    context.fillStyle = colors.muted;
    context.textAlign = "left";
    for (const { level, y } of this.marks) context.fillText(clipped(context, level, 58), 0, y);
  }

  /** Two lines from a node to its parent: up on the left, down on the right. */
  paintLink(box) {
    const { context } = this;
    const node = this.data.nodes[box.node];
    const [from, to] = [box.y, box.parent.y + NODE];
    const picked = box.node === this.picked;
    for (const [side, shift] of [
      ["up", -1],
      ["down", 1],
    ]) {
      const value = this.value(node, side);
      const wide = 1.4 + 4.6 * Math.sqrt(Math.max(0, value ?? 0) / (this.most || 1));
      const x = box.x + shift * 4;
      const end = box.ends + shift * Math.min(4, box.room / 4);
      const curve = () => {
        context.beginPath();
        context.moveTo(x, from);
        context.bezierCurveTo(x, from - 34, end, to + 34, end, to);
      };
      if (picked) {
        curve();
        context.strokeStyle = colors.ink;
        context.lineWidth = wide + 3;
        context.stroke();
      }
      curve();
      context.strokeStyle = this.color(value);
      context.lineWidth = wide;
      context.stroke();
    }
  }

  paintNode({ node, x, y, wide, high }) {
    const { context } = this;
    context.fillStyle = colors.card;
    context.strokeStyle = node === this.picked ? colors.ink : colors.muted;
    context.lineWidth = node === this.picked ? 2.2 : 1;
    context.beginPath();
    context.roundRect(x - wide / 2, y, wide, high, 5);
    context.fill();
    context.stroke();
    context.fillStyle = colors.ink;
    context.font = `${wide < 60 ? 10 : 12}px ${FONT}`;
    context.textAlign = "center";
    const { name } = this.data.nodes[node];
    const number = name.match(/\d+$/)?.[0];
    context.fillText(
      clipped(context, name, wide - 6) === name ? name : number || clipped(context, name, wide - 6),
      x,
      y + high / 2 + 0.5,
    );
    context.textAlign = "left";
  }

  /** A link as a cell: its left half is up, its right half down. */
  paintCell({ node, x, y }) {
    const { context } = this;
    const half = CELL / 2 - 0.5;
    const found = this.data.nodes[node];
    if (node === this.picked) {
      context.fillStyle = colors.ink;
      context.fillRect(x - 1.5, y - 1.5, CELL + 1.5, CELL + 1.5);
    }
    context.fillStyle = this.color(this.value(found, "up"));
    context.fillRect(x, y, half, CELL - 1);
    context.fillStyle = this.color(this.value(found, "down"));
    context.fillRect(x + half, y, half, CELL - 1);
  }

  /** Bytes of the picked link over time: up above the line, down below. */
  paintChart() {
    if (!this.data.timed) return;
    const { data } = this;
    const { context, width } = fitCanvas(this.chart, CHART);
    const node = data.nodes[this.picked];
    const middle = CHART / 2 - 8;
    const sides = [node.up, node.down].map((one) => one || new Float32Array(data.bins));
    const most = Math.max(...sides.map((side) => side.reduce((a, b) => Math.max(a, b), 0)), 1e-300);
    const slot = width / data.bins;
    if (this.range) {
      context.fillStyle = colors.soft;
      const wide = (this.range[1] - this.range[0]) * slot;
      context.fillRect(this.range[0] * slot, 14, wide, CHART - 30);
      context.strokeStyle = colors.ink;
      context.lineWidth = 1;
      context.strokeRect(this.range[0] * slot + 0.5, 14.5, wide - 1, CHART - 31);
    }
    sides.forEach((side, below) => {
      context.fillStyle = below ? colors.other : colors.accent;
      side.forEach((value, bin) => {
        const high = (value / most) * (middle - 14);
        context.fillRect(bin * slot + 0.5, below ? middle : middle - high, Math.max(1, slot - 1), high);
      });
    });
    context.fillStyle = colors.line;
    context.fillRect(0, middle - 0.5, width, 1);
    context.font = `11px ${FONT}`;
    context.textBaseline = "alphabetic";
    context.fillStyle = colors.muted;
    if (!node.up && !node.down) {
      context.fillText("not known over time", 4, middle - 6);
      return;
    }
    const rate = most / data.binWidth;
    const used = node.rate ? ` (${percent(Math.min(1, rate / node.rate))} of ${prefixed(node.rate, "B/s")})` : "";
    context.fillText(`up, to ${prefixed(rate, "B/s")}${used}`, 4, 10);
    context.fillText("down", 4, CHART - 21);
    context.fillText("0", 0, CHART - 4);
    context.textAlign = "right";
    context.fillText(seconds(data.span), width, CHART - 4);
    context.textAlign = "left";
  }

  lines(number) {
    const node = this.data.nodes[number];
    if (node.parent < 0) return [node.name, this.data.levelName(node)].filter(Boolean);
    const lines = [`${node.name} — ${this.data.nodes[node.parent].name}`];
    for (const [side, arrow] of [
      ["up", "↑"],
      ["down", "↓"],
    ]) {
      const share = this.data.share(node, side, this.range);
      lines.push(
        `${arrow} ${bytes(this.data.bytes(node, side, this.range))}${share === null ? "" : `, ${percent(share)} used`}`,
      );
    }
    if (node.rate) lines.push(`carries ${prefixed(node.rate, "B/s")} each way`);
    return lines;
  }

  describe() {
    const { data } = this;
    const node = data.nodes[this.picked];
    byId("links-detail").textContent = this.lines(this.picked).join(" · ");
    byId("links-open").hidden = !node.children.length || this.picked === this.top;
    byId("links-open").textContent = `Only what's below ${node.name}`;
    byId("links-path").replaceChildren(
      ...data
        .path(this.top)
        .map((one) =>
          make(
            "button",
            { type: "button", "aria-current": one === this.top ? "true" : null, onclick: () => this.open(one) },
            data.nodes[one].name,
          ),
        ),
    );
    byId("links-path").hidden = this.top === data.root;
    const text = (value) => (this.unit !== "share" ? bytes(value) : value ? percent(value) : "0%");
    const [most, least] = [this.most, this.unit === "share" ? 0 : this.least];
    byId("links-scale").hidden = !(most > least);
    byId("links-least").textContent = most > least ? text(least) : most ? `each ${text(most)}` : "nothing was sent";
    byId("links-most").textContent = most > least ? text(most) : "";
    byId("links-scale").style.background = `linear-gradient(90deg, ${[0.1, 0.33, 0.55, 0.78, 1].map(heat).join(", ")})`;
    const width = data.binWidth;
    byId("links-range").textContent = this.range
      ? `${seconds(this.range[0] * width)} to ${seconds(this.range[1] * width)}`
      : "the whole run";
    byId("links-whole").hidden = !this.range;
  }

  boxAt(x, y) {
    return this.boxes?.find((box) =>
      box.cell
        ? x >= box.x && x < box.x + CELL && y >= box.y && y < box.y + CELL
        : Math.abs(x - box.x) <= box.wide / 2 && y >= box.y - 30 && y <= box.y + box.high,
    );
  }

  hover(event) {
    const box = this.boxAt(event.offsetX, event.offsetY);
    this.canvas.style.cursor = box ? "pointer" : "default";
    if (box) tip.show(this.lines(box.node), event.clientX, event.clientY);
    else tip.hide();
  }

  key(event) {
    const { nodes } = this.data;
    const node = nodes[this.picked];
    const siblings = node.parent >= 0 ? nodes[node.parent].children : [this.picked];
    const beside = (step) => siblings[Math.min(Math.max(siblings.indexOf(this.picked) + step, 0), siblings.length - 1)];
    const keys = {
      ArrowUp: () =>
        this.picked === this.top ? this.open(Math.max(node.parent, this.data.root)) : this.pick(node.parent),
      ArrowDown: () => node.children.length && this.pick(node.children[0]),
      ArrowLeft: () => this.picked !== this.top && this.pick(beside(-1)),
      ArrowRight: () => this.picked !== this.top && this.pick(beside(1)),
      Enter: () => this.open(this.picked),
      Escape: () => this.open(this.data.root),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  list() {
    const { data } = this;
    const rows = data.links.flatMap((node) =>
      ["up", "down"].map((side) => ({
        node,
        side,
        name: this.linkName(node, side),
        level: data.levelName(node),
        bytes: node.total[side],
        share: data.share(node, side, null),
        peak: node.peak[side],
      })),
    );
    const known = (value) => (value === null ? "–" : percent(value));
    const columns = [
      {
        name: "link",
        left: true,
        value: (row) => row.name,
        cell: (row) =>
          make("button", { type: "button", class: "plainly", onclick: () => this.show(row.node) }, row.name),
      },
      { name: "level", left: true, value: (row) => row.level, cell: (row) => row.level },
      { name: "bytes", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
      ...(data.rated
        ? [
            {
              name: "used",
              title: "mean over the whole run",
              value: (row) => row.share,
              cell: (row) => known(row.share),
            },
            {
              name: "at most",
              title: "in one interval of the chart",
              value: (row) => row.peak,
              cell: (row) => known(row.peak),
            },
          ]
        : []),
    ];
    sortableTable(byId("links-table"), columns, data.rated ? 3 : 2, 10).show(rows);
  }

  linkName(node, side) {
    const parent = this.data.nodes[node.parent].name;
    return side === "up" ? `${node.name} → ${parent}` : `${parent} → ${node.name}`;
  }

  /** Pick a link from the table, where the picture has it. */
  show(node) {
    if (!this.boxes.some((box) => box.node === node.number)) this.top = this.data.root;
    this.pick(node.number);
  }
}
