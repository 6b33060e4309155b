// Who sends how much to whom, as a heat map: rows send, columns receive.

class Matrix {
  static async start(page) {
    const values = {
      bytes: await column(page.matrix.bytes, Float32Array),
      messages: await column(page.matrix.messages, Float32Array),
    };
    return new Matrix(page, values);
  }

  constructor(page, values) {
    this.page = page;
    this.values = values;
    this.rows = page.matrix.rows;
    this.names = page.matrix.names;
    this.unit = "bytes";
    this.canvas = byId("matrix-canvas");
    this.cell = null;
    for (const radio of document.querySelectorAll("[name=matrix-unit]")) {
      radio.addEventListener("change", () => {
        this.unit = radio.value;
        this.paint();
      });
    }
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerdown", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    onResize(this.canvas, () => this.paint());
    this.list();
  }

  name(row) {
    return this.names[row];
  }

  text(value) {
    return this.unit === "bytes" ? bytes(value) : count(value);
  }

  paint() {
    const label = 44;
    const size = Math.min(this.canvas.parentElement.clientWidth, 560);
    this.canvas.style.width = `${size}px`;
    const { context, ratio } = fitCanvas(this.canvas, size);
    const shown = this.values[this.unit];
    const positive = shown.filter((value) => value > 0);
    const most = positive.reduce((a, b) => Math.max(a, b), 0);
    const least = positive.reduce((a, b) => Math.min(a, b), most);
    const range = Math.log(most / least) || 1;
    const side = (size - label - 8) / this.rows;
    Object.assign(this, { label, side });
    context.fillStyle = colors.soft;
    context.fillRect(label, label, side * this.rows, side * this.rows);
    const snap = (value) => Math.round(value * ratio) / ratio;
    const gap = side > 9 ? 1 : 0;
    for (let row = 0; row < this.rows; row += 1) {
      for (let at = 0; at < this.rows; at += 1) {
        const value = shown[row * this.rows + at];
        if (!(value > 0)) continue;
        context.fillStyle = heat(most > least ? 0.12 + 0.88 * (Math.log(value / least) / range) : 0.8);
        const [x, y] = [snap(label + at * side), snap(label + row * side)];
        context.fillRect(x, y, snap(label + (at + 1) * side) - x - gap, snap(label + (row + 1) * side) - y - gap);
      }
    }
    this.axes(context, label, side);
    if (this.cell) {
      context.strokeStyle = colors.ink;
      context.lineWidth = 2;
      context.strokeRect(label + this.cell[1] * side - 1, label + this.cell[0] * side - 1, side + 2, side + 2);
    }
    byId("matrix-least").textContent = most ? `${most > least ? "" : "each "}${this.text(least)}` : "nothing was sent";
    byId("matrix-most").textContent = most > least ? this.text(most) : "";
    byId("matrix-scale").hidden = !(most > least);
    byId("matrix-scale").style.background =
      `linear-gradient(90deg, ${[0.12, 0.34, 0.56, 0.78, 1].map(heat).join(", ")})`;
  }

  axes(context, label, side) {
    const step = [1, 2, 4, 8, 16, 32, 64].find((one) => one * side >= 26) || this.rows;
    context.fillStyle = colors.muted;
    context.font = `11px ${FONT}`;
    for (let row = 0; row < this.rows; row += step) {
      context.textAlign = "center";
      context.textBaseline = "alphabetic";
      const text = this.names[row].match(/\d+/)[0];
      context.fillText(text, label + (row + 0.5) * side, label - 7);
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(text, label - 7, label + (row + 0.5) * side);
    }
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    context.fillText("to rank →", label, 13);
    context.save();
    context.translate(12, label + side * this.rows);
    context.rotate(-Math.PI / 2);
    context.textAlign = "right";
    context.fillText("← from rank", side * this.rows, 0);
    context.restore();
    context.textAlign = "left";
  }

  lines([row, at]) {
    const index = row * this.rows + at;
    return [
      `${this.name(row)} → ${this.name(at)}`,
      bytes(this.values.bytes[index]),
      plural(this.values.messages[index], "message"),
    ];
  }

  hover(event) {
    const [at, row] = [event.offsetX, event.offsetY].map((one) => Math.floor((one - this.label) / this.side));
    if (row < 0 || at < 0 || row >= this.rows || at >= this.rows) {
      tip.hide();
      return;
    }
    tip.show(this.lines([row, at]), event.clientX, event.clientY);
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const from = this.cell || [0, -1];
    this.cell = [0, 1].map((i) => Math.min(Math.max(from[i] + move[i], 0), this.rows - 1));
    byId("matrix-detail").textContent = this.lines(this.cell).join(" · ");
    this.paint();
  }

  /** The pairs that send most. */
  list() {
    const all = this.values.bytes;
    const pairs = [...all.keys()].filter((index) => all[index] > 0).sort((a, b) => all[b] - all[a]);
    const whole = this.page.matrix.total_bytes || 1;
    const table = byId("matrix-pairs");
    table.append(
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...["from", "to"].map((name) => make("th", { class: "left", scope: "col" }, name)),
          ...["bytes", "share", "messages"].map((name) => make("th", { scope: "col" }, name)),
        ),
      ),
      make(
        "tbody",
        {},
        ...pairs.slice(0, 10).map((index) => {
          const [row, at] = [Math.floor(index / this.rows), index % this.rows];
          return make(
            "tr",
            {},
            make("td", { class: "left" }, this.name(row)),
            make("td", { class: "left" }, this.name(at)),
            make("td", { class: "number" }, bytes(all[index])),
            make("td", { class: "number" }, percent(all[index] / whole)),
            make("td", { class: "number" }, count(this.values.messages[index])),
          );
        }),
      ),
    );
    byId("matrix-count").textContent =
      `${plural(pairs.length, "pair")} of ${count(this.rows ** 2)} exchange something.`;
  }
}
