// Call paths as a flame graph, outermost on top: widths are times.

const FRAME = 22;

class Flame {
  constructor(page) {
    this.page = page;
    this.names = page.flame.names;
    this.canvas = byId("flame-canvas");
    this.root = this.read(page.flame.tree, null);
    this.top = this.root;
    this.picked = this.root;
    this.wanted = "";
    this.draw = throttled(() => this.paint());
    const byName = new Map(page.functions.map((name, index) => [name, index]));
    this.function = this.names.map((name) => byName.get(name) ?? -1);
    byId("flame-reset").addEventListener("click", () => this.zoom(this.root));
    byId("flame-search").addEventListener("input", (event) => {
      this.wanted = event.target.value.trim().toLowerCase();
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const frame = this.frameAt(event.offsetX, event.offsetY);
      if (frame) this.zoom(frame === this.top && frame.parent ? frame.parent : frame);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    onResize(this.canvas, () => this.paint());
  }

  /** The tree as frames; siblings by time. */
  read(root, parent) {
    const frameOf = ([name, self, calls, children], above) => ({
      name,
      self,
      calls,
      parent: above,
      depth: above ? above.depth + 1 : 0,
      total: self,
      all: calls,
      given: children,
    });
    const first = frameOf(root, parent);
    const order = [first];
    for (const frame of order) {
      frame.children = frame.given.map((child) => frameOf(child, frame));
      order.push(...frame.children);
      delete frame.given;
    }
    for (const frame of order.reverse()) {
      frame.children.sort((a, b) => b.total - a.total);
      if (frame.parent) {
        frame.parent.total += frame.total;
        frame.parent.all += frame.all;
      }
    }
    return first;
  }

  zoom(frame) {
    this.top = frame;
    this.pick(frame);
    tip.hide();
  }

  pick(frame) {
    this.picked = frame;
    byId("flame-detail").textContent = this.lines(frame).join(" · ");
    this.draw();
  }

  lines(frame) {
    const lines = [
      this.names[frame.name],
      `${seconds(frame.total)}, ${percent(frame.total / (this.root.total || 1))} of all time in MPI`,
      plural(frame.all, "call"),
    ];
    if (frame.self > 0 && frame.children.length) lines.splice(2, 0, `${seconds(frame.self)} in itself`);
    return lines;
  }

  color(frame) {
    const name = this.names[frame.name];
    const index = this.function[frame.name];
    if (index >= 0) return functionColor(this.page, index);
    let hash = 7;
    for (let i = 0; i < name.length; i += 1) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return `hsl(${150 + (hash % 60)} ${14 + (hash % 12)}% ${(dark ? 24 : 80) + (hash % 9)}%)`;
  }

  matches(frame) {
    return this.wanted !== "" && this.names[frame.name].toLowerCase().includes(this.wanted);
  }

  paint() {
    this.boxes = [];
    const ancestors = [];
    for (let frame = this.top; frame; frame = frame.parent) ancestors.unshift(frame);
    const width = this.canvas.clientWidth;
    ancestors.forEach((frame, depth) => this.boxes.push({ frame, x: 0, width, depth }));
    let deepest = ancestors.length;
    let matched = 0;
    const place = (frame, x, scale, depth, inside) => {
      const found = this.matches(frame);
      if (found && !inside) matched += frame.total;
      let left = x;
      for (const child of frame.children) {
        const wide = child.total * scale;
        if (wide < 0.4) break;
        this.boxes.push({ frame: child, x: left, width: wide, depth });
        deepest = Math.max(deepest, depth + 1);
        place(child, left, scale, depth + 1, inside || found);
        left += wide;
      }
    };
    if (this.top.total > 0) place(this.top, 0, width / this.top.total, ancestors.length, false);
    const { context } = fitCanvas(this.canvas, deepest * FRAME + 2);
    context.textBaseline = "middle";
    context.font = `12px ${FONT}`;
    for (const box of this.boxes) this.paintBox(context, box);
    byId("flame-reset").hidden = this.top === this.root;
    const whole = this.top === this.root;
    byId("flame-found").textContent = this.wanted
      ? `${percent(matched / (this.top.total || 1))} of ${whole ? "all time in MPI" : "this frame's time"} matches`
      : "";
  }

  paintBox(context, { frame, x, width, depth }) {
    const top = depth * FRAME;
    const faded = (this.wanted && !this.matches(frame)) || (!this.wanted && frame.depth < this.top.depth);
    context.globalAlpha = faded ? 0.35 : 1;
    context.fillStyle = this.color(frame);
    context.fillRect(x, top, Math.max(0.4, width - 1), FRAME - 1);
    context.globalAlpha = 1;
    if (frame === this.picked && frame !== this.root) {
      context.strokeStyle = colors.ink;
      context.lineWidth = 2;
      context.strokeRect(x + 1, top + 1, Math.max(1, width - 3), FRAME - 3);
    }
    if (width < 40) return;
    context.fillStyle = this.function[frame.name] >= 0 && !faded ? "#ffffff" : colors.ink;
    context.fillText(clipped(context, this.names[frame.name], width - 12), x + 6, top + FRAME / 2);
  }

  frameAt(x, y) {
    const depth = Math.floor(y / FRAME);
    return this.boxes?.find((box) => box.depth === depth && x >= box.x && x < box.x + box.width)?.frame;
  }

  hover(event) {
    const frame = this.frameAt(event.offsetX, event.offsetY);
    this.canvas.style.cursor = frame ? "pointer" : "default";
    if (frame) tip.show(this.lines(frame), event.clientX, event.clientY);
    else tip.hide();
  }

  key(event) {
    const { picked } = this;
    const siblings = picked.parent ? picked.parent.children : [picked];
    const beside = (step) => siblings[Math.min(Math.max(siblings.indexOf(picked) + step, 0), siblings.length - 1)];
    const keys = {
      ArrowDown: () => picked.children[0] && this.pick(picked.children[0]),
      ArrowUp: () => picked.parent && (this.top === picked ? this.zoom(picked.parent) : this.pick(picked.parent)),
      ArrowLeft: () => this.pick(beside(-1)),
      ArrowRight: () => this.pick(beside(1)),
      Enter: () => this.zoom(picked),
      Escape: () => this.zoom(this.root),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }
}
