// The timeline's controls: zoom, pan, hover, keyboard, and the words below the picture.

/** Units of the document's clock that the narrowest window holds. */
const CLOSEST = 64;

class Timeline {
  constructor(data, page) {
    this.data = data;
    this.page = page;
    this.section = byId("timeline");
    this.canvas = byId("timeline-canvas");
    this.strip = byId("timeline-strip");
    this.picture = new TimelinePicture(data, page, this.canvas, this.strip);
    this.draw = throttled(() => this.describe(this.picture.draw()));
    this.legend();
    this.listen();
    onResize(this.canvas, () => {
      this.legend();
      this.describe(this.picture.draw());
    });
  }

  get view() {
    return this.picture.view;
  }

  /** Show a window (seconds), as wide as it was asked for where the run's ends allow. */
  setView(from, to) {
    const width = Math.min(Math.max(to - from, CLOSEST * this.data.unit), this.data.span);
    const begin = Math.min(Math.max(from + (to - from - width) / 2, 0), this.data.span - width);
    this.picture.view = [begin, begin + width];
    this.draw();
  }

  /** Move to a window within a quarter of a second, so that the eye can follow. */
  glide(from, to) {
    if (REDUCED_MOTION) {
      this.setView(from, to);
      return;
    }
    const [fromA, toA] = this.view;
    const start = performance.now();
    const frame = (now) => {
      const part = Math.min(1, Math.max(0, (now - start) / 280));
      const eased = part * part * (3 - 2 * part);
      // Widths shrink by equal factors, as zooming does.
      const width = (toA - fromA) ** (1 - eased) * (to - from) ** eased;
      const whole = toA - fromA - (to - from);
      const share = Math.abs(whole) < 1e-15 ? eased : (toA - fromA - width) / whole;
      const begin = fromA + (from - fromA) * share;
      this.setView(begin, begin + width);
      if (part < 1) requestAnimationFrame(frame);
      else this.setView(from, to);
    };
    requestAnimationFrame(frame);
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [from, to] = this.view;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
  }

  pan(share) {
    const [from, to] = this.view;
    const by = (to - from) * share;
    const moved = Math.min(Math.max(by, -from), this.data.span - to);
    this.setView(from + moved, to + moved);
  }

  all() {
    this.glide(0, this.data.span);
  }

  listen() {
    const { canvas } = this;
    const actions = {
      in: () => this.zoom(0.5),
      out: () => this.zoom(2),
      left: () => this.pan(-0.3),
      right: () => this.pan(0.3),
      all: () => this.all(),
    };
    for (const button of this.section.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", actions[button.dataset.zoom]);
    }
    for (const box of this.section.querySelectorAll("[data-option]")) {
      box.addEventListener("change", () => {
        this.picture.options[box.dataset.option] = box.checked;
        this.draw();
      });
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.picture.time(event.offsetX)));
    this.listenToStrip();
  }

  /** On the strip a drag picks the window, a click moves it. */
  listenToStrip() {
    const timeAt = (event) => {
      const share = (event.offsetX - this.picture.gutter) / this.picture.plotWidth;
      return Math.min(Math.max(share, 0), 1) * this.data.span;
    };
    let start = null;
    let moved = false;
    this.strip.addEventListener("pointerdown", (event) => {
      start = timeAt(event);
      moved = false;
      this.strip.setPointerCapture(event.pointerId);
    });
    this.strip.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const time = timeAt(event);
      moved ||= Math.abs(time - start) * this.picture.plotWidth > 4 * this.data.span;
      if (moved) this.setView(Math.min(start, time), Math.max(start, time));
    });
    this.strip.addEventListener("pointerup", (event) => {
      if (start !== null && !moved) {
        const half = (this.view[1] - this.view[0]) / 2;
        const middle = Math.min(Math.max(timeAt(event), half), this.data.span - half);
        this.setView(middle - half, middle + half);
      }
      start = null;
    });
  }

  key(event) {
    const keys = {
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.all(),
      Home: () => this.pan(-1e9),
      End: () => this.pan(1e9),
      ArrowLeft: () => (event.shiftKey ? this.step(-1) : this.pan(-0.2)),
      ArrowRight: () => (event.shiftKey ? this.step(1) : this.pan(0.2)),
      ArrowUp: () => this.moveRow(-1),
      ArrowDown: () => this.moveRow(1),
      Escape: () => this.select(-1),
    };
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  /** The wheel scrolls the page until the picture was clicked, so that nobody gets stuck in it. */
  wheel(event) {
    const unit = event.deltaMode ? 20 : 1;
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      this.pan((sideways * unit) / this.picture.plotWidth);
    } else if (event.ctrlKey || event.metaKey || document.activeElement === this.canvas) {
      event.preventDefault();
      this.zoom(Math.exp(Math.min(Math.max(event.deltaY * unit, -120), 120) * 0.004), this.picture.time(event.offsetX));
    }
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event.offsetX);
    if (this.pointers.size === 1)
      this.press = { x: event.offsetX, y: event.offsetY, view: [...this.view], moved: false };
    else this.press.moved = true;
  }

  move(event) {
    const { picture, press } = this;
    if (!this.pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") this.hover(event);
      return;
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
    if (others.length) {
      // Two fingers: the distance between them gives the width.
      const before = Math.max(20, Math.abs(this.pointers.get(event.pointerId) - others[0]));
      const now = Math.max(20, Math.abs(event.offsetX - others[0]));
      this.zoom(before / now, picture.time(others[0]));
    } else if (press.moved || Math.abs(event.offsetX - press.x) > 4) {
      press.moved = true;
      tip.hide();
      const shift = ((press.x - event.offsetX) / picture.plotWidth) * (press.view[1] - press.view[0]);
      const moved = Math.min(Math.max(shift, -press.view[0]), this.data.span - press.view[1]);
      if (others.length === 0) this.setView(press.view[0] + moved, press.view[1] + moved);
    }
    this.pointers.set(event.pointerId, event.offsetX);
  }

  up(event) {
    const tapped = this.pointers.delete(event.pointerId) && event.type === "pointerup" && !this.press.moved;
    if (tapped) this.tap(event);
  }

  tap(event) {
    const row = this.picture.rowAt(event.offsetY);
    this.picture.row = row;
    const call = this.callUnder(event, row);
    this.select(call);
    if (call < 0) byId("timeline-detail").textContent = row < 0 ? "" : this.shareLines(row, event.offsetX).join(" · ");
  }

  callUnder(event, row) {
    if (row < 0 || event.offsetX < this.picture.gutter || !this.picture.drawnSingle) return -1;
    const slack = ((event.pointerType === "touch" ? 8 : 3) / this.picture.plotWidth) * (this.view[1] - this.view[0]);
    return this.data.callAt(row, this.picture.laneAt(event.offsetY), this.picture.time(event.offsetX), slack);
  }

  hover(event) {
    const row = this.picture.rowAt(event.offsetY);
    if (row < 0 || event.offsetX < this.picture.gutter) {
      tip.hide();
      return;
    }
    const call = this.callUnder(event, row);
    tip.show(call >= 0 ? this.callLines(call) : this.shareLines(row, event.offsetX), event.clientX, event.clientY);
  }

  /** Everything about a call, a line each. */
  callLines(call) {
    const { calls, rows, unit } = this.data;
    const { functions, places } = this.page;
    const row = rows[calls.row[call]];
    const [begin, end] = this.data.times(call);
    const { label } = timeSteps(begin, begin + Math.max(end - begin, unit), 100);
    const lines = [
      `${functions[calls.function[call]]} at ${places[calls.place[call]]}`,
      `${row.name} on ${row.host}`,
      `begins at ${label(begin)}, takes ${seconds(end - begin)}`,
    ];
    const waited = calls.waiting[call] * unit;
    const whom = calls.waits_for[call] >= 0 ? ` for rank ${calls.waits_for[call]}` : "";
    if (waited > 0)
      lines.push(`waits ${seconds(waited)}${whom}, ${percent(waited / Math.max(end - begin, unit))} of it`);
    if (calls.bytes[call] > 0) lines.push(bytes(calls.bytes[call]));
    return lines;
  }

  /** What a row does around a place of the picture, from shares. */
  shareLines(row, x) {
    const level = this.data.levelFor((1.5 * (this.view[1] - this.view[0])) / this.picture.plotWidth);
    const width = this.data.span / level.bins;
    const bin = Math.min(level.bins - 1, Math.max(0, Math.floor(this.picture.time(x) / width)));
    const [mpi, waiting] = [level.mpi, level.waiting].map((shares) => shares[row * level.bins + bin] / 255);
    const index = level.function[row * level.bins + bin];
    return [
      `${this.data.rows[row].name} on ${this.data.rows[row].host}`,
      `${seconds(width)} at ${timeSteps(bin * width, bin * width + width, 3).label(bin * width)}`,
      `${percent(mpi)} in MPI${index !== NO_FUNCTION && mpi > 0 ? `, mostly ${this.page.functions[index]}` : ""}`,
      waiting > 0 ? `${percent(waiting)} waiting` : "no waiting",
    ];
  }

  select(call) {
    this.picture.selected = call;
    if (call >= 0) this.picture.row = this.data.calls.row[call];
    byId("timeline-detail").textContent = call >= 0 ? this.callLines(call).join(" · ") : "";
    this.draw();
  }

  /** From the keyboard: the next call of the row, and into view. */
  step(by) {
    const { picture, data } = this;
    const row = Math.max(0, picture.row);
    if (!data.ofRow[row].calls.length) return;
    if (picture.selected < 0 || data.calls.row[picture.selected] !== row) {
      const [first, last] = data.visible(row, ...this.view);
      this.select(data.ofRow[row].calls[Math.min(first, Math.max(last - 1, 0), data.ofRow[row].calls.length - 1)]);
    } else {
      this.select(data.neighbour(picture.selected, by));
    }
    const [begin, end] = data.times(picture.selected);
    const [from, to] = this.view;
    if (begin < from || end > to) {
      const half = Math.max((to - from) / 2, (end - begin) * 0.6);
      this.setView((begin + end) / 2 - half, (begin + end) / 2 + half);
    }
  }

  moveRow(by) {
    this.picture.row = Math.min(Math.max(this.picture.row + by, 0), this.data.rows.length - 1);
    this.select(-1);
    const row = this.data.rows[this.picture.row];
    byId("timeline-detail").textContent = `${row.name} on ${row.host}`;
  }

  legend() {
    const mark = (color, words, hatched) =>
      make("span", {}, make("i", { class: hatched ? "hatched" : null, style: `background-color:${color}` }), words);
    const own = this.page.functionOrder.filter((index) => this.page.slots[index] >= 0);
    byId("timeline-legend").replaceChildren(
      mark(colors.idle, "computing"),
      mark(colors.waiting, "waiting for others", true),
      ...own.map((index) => mark(functionColor(this.page, index), this.page.functions[index])),
      ...(this.page.functionOrder.length > own.length ? [mark(colors.other, "other MPI")] : []),
      ...(this.data.messages.count ? [make("span", {}, messageMark(), "message, from send to receive")] : []),
      ...(this.data.critical.count ? [make("span", {}, criticalMark(), "critical path")] : []),
    );
  }

  /** Say what the picture shows. */
  describe({ single, drawn, messages, thinned }) {
    const { calls } = this.data;
    const [from, to] = this.view;
    const { label } = timeSteps(from, to, 100);
    const held =
      calls.count < calls.total
        ? `the ${count(calls.count)} longest of ${plural(calls.total, "call")}`
        : `all ${plural(calls.total, "call")}`;
    const whole = to - from > this.data.span * 0.9999;
    const words = [
      whole ? `The whole run, ${seconds(to)}.` : `${label(from)} to ${label(to)} (${seconds(to - from)}).`,
    ];
    if (single) {
      words.push(
        calls.count < calls.total
          ? `${plural(drawn, "call")} one by one, of ${held}; the others as shares of time.`
          : `${plural(drawn, "call")} one by one.`,
      );
    } else if (calls.count) {
      words.push(`Shares of time; zoom in to see calls one by one (${held}).`);
    } else {
      words.push("Shares of time.");
    }
    const total =
      this.data.messages.total > this.data.messages.count
        ? ` (of ${count(this.data.messages.count)} that are kept of ${count(this.data.messages.total)})`
        : "";
    if (messages > 0) words.push(`${plural(messages, "message")} as lines${total}.`);
    else if (messages < 0)
      words.push(`${plural(-messages, "message")} here: lines where they are fewer than ${count(MOST_MESSAGES)}.`);
    if (thinned) words.push("Where the critical path often changes its rank, it stands as shares of time; zoom in.");
    byId("timeline-status").textContent = words.join(" ");
    this.canvas.setAttribute("aria-label", `Timeline of ${plural(this.data.rows.length, "row")}. ${words.join(" ")}`);
  }
}

const messageMark = () =>
  make(
    "svg",
    { width: 22, height: 12, "aria-hidden": "true" },
    make("line", { x1: 1, y1: 2, x2: 18, y2: 9, stroke: "currentColor" }),
    make("circle", { cx: 18, cy: 9, r: 2.4, fill: "currentColor" }),
  );

const criticalMark = () =>
  make(
    "svg",
    { width: 22, height: 12, "aria-hidden": "true" },
    make("path", { d: "M1 3h9v6h11", fill: "none", stroke: "currentColor", "stroke-width": 2 }),
  );

/** Unpack the timeline and start it; buttons of findings lead into it. */
async function startTimeline(page) {
  if (!page.timeline) return;
  const timeline = new Timeline(await TimelineData.read(page.timeline), page);
  for (const button of document.querySelectorAll("[data-window]")) {
    button.addEventListener("click", () => {
      const [from, to] = JSON.parse(button.dataset.window);
      const margin = Math.max((to - from) * 0.05, 1e-9);
      timeline.section.scrollIntoView({ behavior: REDUCED_MOTION ? "auto" : "smooth" });
      timeline.canvas.focus({ preventScroll: true });
      timeline.picture.row = button.dataset.rank ? timeline.data.rowOf(Number(button.dataset.rank)) : -1;
      timeline.select(-1);
      timeline.glide(Math.max(0, from - margin), Math.min(timeline.data.span, to + margin));
    });
  }
}
