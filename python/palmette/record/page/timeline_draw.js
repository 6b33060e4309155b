// Drawing the timeline: shares as pixels, calls as bars, messages as lines, and the strip of the whole run above it.

const MOST_MESSAGES = 2000;
const MOST_CALLS = 20000;
const AXIS = 24;
const STRIP = 46;
/** Pixels in which at most so many changes of the critical path's rank are drawn: more would hide the calls. */
const CHANGES_PER = 12;
const MOST_CHANGES = 3;

class TimelinePicture {
  constructor(data, page, canvas, strip) {
    Object.assign(this, { data, page, canvas, strip });
    this.view = [0, data.span];
    this.selected = -1;
    this.row = -1;
    this.gutter = 0;
    this.options = { messages: true, waitingOnly: false, critical: true, tall: false };
  }

  get rowHeight() {
    const rows = this.data.rows.length;
    if (this.options.tall) return 18;
    return rows <= 12 ? 30 : rows <= 20 ? 22 : rows <= 40 ? 14 : rows <= 80 ? 8 : 5;
  }

  /** Names of rows, short ones where there is little room, and the width that they take. */
  layOut() {
    const narrow = this.canvas.clientWidth < 560;
    const context = this.canvas.getContext("2d");
    context.font = `600 11.5px ${FONT}`;
    const widest = (names) => names.reduce((most, name) => Math.max(most, context.measureText(name).width), 0);
    this.names = this.data.rows.map((row) => row.name);
    if (narrow || widest(this.names) > 110) this.names = this.names.map((name) => name.replace(/^ranks? /, ""));
    this.gutter = Math.round(Math.min(Math.max(widest(this.names), narrow ? 22 : 66), 110)) + 20;
  }

  get plotWidth() {
    return Math.max(20, this.canvas.clientWidth - this.gutter);
  }

  x(time) {
    return this.gutter + ((time - this.view[0]) / (this.view[1] - this.view[0])) * this.plotWidth;
  }

  time(x) {
    return this.view[0] + ((x - this.gutter) / this.plotWidth) * (this.view[1] - this.view[0]);
  }

  rowAt(y) {
    const row = Math.floor((y - AXIS) / this.rowHeight);
    return row >= 0 && row < this.data.rows.length ? row : -1;
  }

  laneAt(y) {
    return Math.floor((((y - AXIS) % this.rowHeight) / this.rowHeight) * this.data.lanes);
  }

  /** Whether calls are drawn one by one: most of their time is in calls two pixels wide, or bins are too coarse. */
  get single() {
    const [from, to] = this.view;
    const { finest, calls, span } = this.data;
    if (!calls.count) return false;
    const pixel = (to - from) / this.plotWidth;
    if (span / finest.bins > 8 * pixel) return true;
    const { number, share } = this.data.shareOfLong(from, to, 2 * pixel);
    return number <= MOST_CALLS && share > 0.7;
  }

  draw() {
    this.layOut();
    const height = AXIS + this.data.rows.length * this.rowHeight + 1;
    const { context, width, ratio } = fitCanvas(this.canvas, height);
    this.context = context;
    const single = this.single;
    this.drawnSingle = single;
    context.fillStyle = colors.idle;
    context.fillRect(this.gutter, AXIS, this.plotWidth, height - AXIS);
    this.drawShares(single ? this.data.others : null, ratio);
    if (this.rowHeight >= 8) this.drawRowLines(width);
    this.drawAxis(height);
    context.save();
    context.beginPath();
    context.rect(this.gutter, AXIS, this.plotWidth, height - AXIS);
    context.clip();
    const drawn = single ? this.drawCalls() : 0;
    const messages = this.drawMessages(single);
    const thinned = this.drawCritical();
    context.restore();
    this.drawLabels();
    this.drawStrip();
    return { single, drawn, messages, thinned };
  }

  color(index) {
    if (this.options.waitingOnly || index === NO_FUNCTION) return colors.other;
    return functionColor(this.page, index);
  }

  /** Shares of each column of pixels: stacked where rows are high enough, else mixed into one color. */
  drawShares(level, ratio) {
    const [from, to] = this.view;
    const columns = Math.round(this.plotWidth * ratio);
    const lines = Math.round(this.data.rows.length * this.rowHeight * ratio);
    const source = level || this.data.levelFor((1.5 * (to - from)) / this.plotWidth);
    if (!source || columns < 1 || lines < 1) return;
    const { bins } = source;
    const image = this.context.createImageData(columns, lines);
    const pixels = new Uint32Array(image.data.buffer);
    const idle = rgb(colors.idle);
    const red = rgb(colors.waiting);
    const palette = new Map();
    const mixed = (low, mid, high) => {
      const [m, w] = [Math.max(0, mid - high), high];
      const parts = [0, 1, 2].map((i) => idle[i] * (1 - m - w) + low[i] * m + red[i] * w);
      return (255 << 24) | (parts[2] << 16) | (parts[1] << 8) | parts[0];
    };
    const perColumn = (((to - from) / this.data.span) * bins) / columns;
    const start = (from / this.data.span) * bins;
    const gap = this.rowHeight >= 14 ? Math.round(ratio) : 0;
    for (let row = 0; row < this.data.rows.length; row += 1) {
      const top = Math.round(row * this.rowHeight * ratio) + gap;
      const bottom = Math.round((row + 1) * this.rowHeight * ratio) - gap;
      for (let at = 0; at < columns; at += 1) {
        const first = Math.min(bins - 1, Math.floor(start + at * perColumn));
        const last = Math.min(bins, Math.max(first + 1, Math.floor(start + (at + 1) * perColumn)));
        let mpi = 0;
        let waiting = 0;
        let most = 0;
        let index = NO_FUNCTION;
        for (let bin = row * bins + first; bin < row * bins + last; bin += 1) {
          mpi += source.mpi[bin];
          waiting += source.waiting[bin];
          if (source.mpi[bin] > most) [most, index] = [source.mpi[bin], source.function[bin]];
        }
        if (mpi <= 0) continue;
        mpi = Math.min(1, mpi / (255 * (last - first)));
        waiting = Math.min(mpi, waiting / (255 * (last - first)));
        if (!palette.has(index)) palette.set(index, rgb(this.color(index)));
        const own = palette.get(index);
        if (bottom - top < 12 * ratio) {
          const pixel = mixed(own, mpi, waiting);
          for (let y = top; y < bottom; y += 1) pixels[y * columns + at] = pixel;
          continue;
        }
        const [all, wait] = [Math.round(mpi * (bottom - top)), Math.round(waiting * (bottom - top))];
        const [plain, hot] = [mixed(own, 1, 0), mixed(own, 1, 1)];
        for (let y = bottom - all; y < bottom; y += 1) pixels[y * columns + at] = y < bottom - wait ? plain : hot;
      }
    }
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = [columns, lines];
    layer.getContext("2d").putImageData(image, 0, 0);
    this.context.drawImage(layer, this.gutter, AXIS, this.plotWidth, this.data.rows.length * this.rowHeight);
  }

  drawRowLines(width) {
    const thick = this.rowHeight >= 14 ? 2 : 1;
    this.context.fillStyle = colors.card;
    for (let row = 0; row <= this.data.rows.length; row += 1) {
      this.context.fillRect(this.gutter, AXIS + row * this.rowHeight - thick / 2, width - this.gutter, thick);
    }
  }

  drawCalls() {
    const { context, data, rowHeight } = this;
    const { calls, unit } = data;
    const [from, to] = this.view;
    const gap = rowHeight >= 14 ? 1 : 0;
    const high = (rowHeight - 2 * gap) / data.lanes;
    // Lanes of many ranks may be thinner than a pixel: then some hide others.
    const ratio = window.devicePixelRatio || 1;
    const snapped = (y) => Math.round(y * ratio) / ratio;
    const tall = Math.max(1, Math.round(high * ratio)) / ratio;
    let drawn = 0;
    for (let row = 0; row < data.rows.length; row += 1) {
      const above = AXIS + row * rowHeight + gap;
      const [first, last] = data.visible(row, from, to);
      let free = -1;
      for (let at = first; at < last; at += 1) {
        const call = data.ofRow[row].calls[at];
        const left = this.x(calls.begin[call] * unit);
        const right = this.x((calls.begin[call] + calls.length[call]) * unit);
        drawn += 1;
        // Only the first of the calls that end in one pixel is seen.
        if (right < free && data.lanes === 1) continue;
        const top = snapped(above + data.lane[call] * high);
        // What is narrower than a pixel is drawn paler by the browser.
        const wide = Math.max(right - left, 0.35);
        free = left + wide;
        const wait = (calls.waiting[call] / Math.max(1, calls.length[call])) * wide;
        context.fillStyle = this.color(calls.function[call]);
        context.fillRect(left + wait, top, wide - wait, tall);
        if (wait > 0) this.drawWait(left, top, wait, tall);
        if (tall >= 12 && right - left > 34) this.drawName(call, left, wait, right, top, tall);
      }
    }
    this.drawSelected();
    return drawn;
  }

  /** Waiting is red, and hatched where there is room: not only the color tells it. */
  drawWait(left, top, width, height) {
    const { context } = this;
    context.fillStyle = colors.waiting;
    context.fillRect(left, top, width, height);
    if (width < 10 || height < 7) return;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.strokeStyle = "rgba(255,255,255,.34)";
    context.lineWidth = 1.4;
    context.beginPath();
    const begin = Math.max(left, this.gutter) - height;
    for (let x = begin - (begin % 7); x < Math.min(left + width, this.canvas.clientWidth); x += 7) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.stroke();
    context.restore();
  }

  drawName(call, left, wait, right, top, height) {
    const { context } = this;
    const name = this.page.functions[this.data.calls.function[call]].replace(/^MPI_/, "");
    // Beside the waiting part where that leaves room, else over all of it.
    const from = Math.max(right - left - wait > 40 ? left + wait : left, this.gutter);
    const room = Math.min(right, this.canvas.clientWidth) - from - 8;
    if (room < 24) return;
    context.font = `${height >= 18 ? 11.5 : 10}px ${FONT}`;
    context.textBaseline = "middle";
    context.fillStyle = "#ffffff";
    context.fillText(clipped(context, name, room), from + 4, top + height / 2 + 0.5);
  }

  drawSelected() {
    if (this.selected < 0) return;
    const { context, data } = this;
    const row = data.calls.row[this.selected];
    const [begin, end] = data.times(this.selected);
    const left = this.x(begin);
    const top = AXIS + row * this.rowHeight;
    context.strokeStyle = colors.ink;
    context.lineWidth = 2;
    context.strokeRect(left - 1, top, Math.max(this.x(end) - left, 1) + 2, this.rowHeight - 1);
    const other = this.data.rowOf(data.calls.waits_for[this.selected]);
    if (other < 0 || other === row || !data.calls.waiting[this.selected]) return;
    const x = this.x(begin + data.calls.waiting[this.selected] * data.unit);
    context.setLineDash([4, 3]);
    context.lineWidth = 1.6;
    context.beginPath();
    context.moveTo(x, top + this.rowHeight / 2);
    context.lineTo(x, AXIS + (other + 0.5) * this.rowHeight);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colors.ink;
    context.beginPath();
    context.arc(x, AXIS + (other + 0.5) * this.rowHeight, 4, 0, 2 * Math.PI);
    context.fill();
  }

  /** Messages as lines, where they aren't too many. Returns how many there are, negative where they aren't drawn. */
  drawMessages(single) {
    if (!this.options.messages || !this.data.messages.count) return 0;
    const { context, data, rowHeight } = this;
    const { found, number } = data.visibleMessages(...this.view, MOST_MESSAGES);
    if (!found || !single) return -number;
    const { from, to, sent, received } = data.messages;
    context.strokeStyle = colors.ink;
    context.fillStyle = colors.ink;
    context.globalAlpha = number > 400 ? 0.22 : number > 100 ? 0.4 : 0.75;
    context.lineWidth = 1;
    context.beginPath();
    for (const i of found) {
      const [x, y] = [this.x(sent[i] * data.unit), AXIS + (from[i] + 0.5) * rowHeight];
      const [endX, endY] = [this.x(received[i] * data.unit), AXIS + (to[i] + 0.5) * rowHeight];
      context.moveTo(x, y);
      context.lineTo(endX, endY);
    }
    context.stroke();
    for (const i of number <= 400 ? found : []) {
      context.beginPath();
      context.arc(this.x(received[i] * data.unit), AXIS + (to[i] + 0.5) * rowHeight, 2.2, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
    return number;
  }

  /** The critical path: each rank's line is as dark as the share of a pixel's time that determines the end; changes from
   * rank to rank stand where they are few. Returns whether some aren't drawn. */
  drawCritical() {
    const { context, data, rowHeight } = this;
    const { count, row, begin, end } = data.critical;
    if (!this.options.critical || !count) return false;
    const low = this.view[0] / data.unit;
    const high = this.view[1] / data.unit;
    const first = bisect(count, (one) => end[one] >= low);
    const last = bisect(count, (one) => begin[one] > high);
    const y = (at) => AXIS + (row[at] + 1) * rowHeight - (rowHeight >= 14 ? 2.5 : 1);
    context.fillStyle = colors.ink;
    this.drawCriticalShares(first, last, y, rowHeight >= 14 ? 2.5 : 1.5);
    // Changes of rank, by the part of the picture that they are in.
    const changes = new Map();
    for (let at = Math.max(first, 1); at < last; at += 1) {
      if (row[at] === row[at - 1] || end[at - 1] < begin[at] - 1) continue;
      const part = Math.floor(this.x(begin[at] * data.unit) / CHANGES_PER);
      if (!changes.has(part)) changes.set(part, []);
      changes.get(part).push(at);
    }
    let left = false;
    for (const own of changes.values()) {
      if (own.length > MOST_CHANGES) left = true;
      else
        for (const at of own) {
          const [top, bottom] = [Math.min(y(at - 1), y(at)), Math.max(y(at - 1), y(at))];
          context.fillRect(this.x(begin[at] * data.unit) - 0.75, top, 1.5, bottom - top);
        }
    }
    return left;
  }

  /** Stretches `first` to `last` as lines of that height, in each column of pixels as dark as they fill it. */
  drawCriticalShares(first, last, y, thick) {
    const { context, data } = this;
    const { row, begin, end } = data.critical;
    const columns = Math.ceil(this.plotWidth);
    const shares = new Map();
    for (let at = first; at < last; at += 1) {
      const from = Math.max(0, this.x(begin[at] * data.unit) - this.gutter);
      const to = Math.min(columns, this.x(end[at] * data.unit) - this.gutter);
      if (!shares.has(row[at])) shares.set(row[at], { line: y(at), filled: new Float32Array(columns + 1) });
      const { filled } = shares.get(row[at]);
      for (let column = Math.floor(from); column < to; column += 1)
        filled[column] += Math.max(0, Math.min(to, column + 1) - Math.max(from, column));
    }
    for (const { line, filled } of shares.values()) {
      const darkness = (column) => Math.min(16, Math.ceil(filled[column] * 16 - 0.01));
      // Runs of one darkness as one, without seams.
      for (let column = 0, next = 0; column < columns; column = next) {
        for (next = column + 1; next < columns && darkness(next) === darkness(column);) next += 1;
        if (darkness(column) <= 0) continue;
        context.globalAlpha = darkness(column) / 16;
        context.fillRect(this.gutter + column, line - thick / 2, next - column, thick);
      }
    }
    context.globalAlpha = 1;
  }

  drawAxis(height) {
    const { context } = this;
    const [from, to] = this.view;
    const { step, label } = timeSteps(from, to, Math.max(3, this.plotWidth / 100));
    context.font = `11px ${FONT}`;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (let time = Math.ceil(from / step - 1e-9) * step; time <= to + step * 1e-6; time += step) {
      const x = this.x(time);
      context.fillStyle = colors.line;
      context.globalAlpha = 0.7;
      context.fillRect(Math.round(x), AXIS - 5, 1, height - AXIS + 5);
      context.globalAlpha = 1;
      context.fillStyle = colors.muted;
      const half = context.measureText(label(time)).width / 2;
      const most = this.gutter + this.plotWidth - half;
      if (x >= this.gutter - 1 && x <= most + half) {
        context.fillText(label(time), Math.min(Math.max(x, this.gutter + half - 6), most), AXIS - 9);
      }
    }
    context.textAlign = "left";
  }

  /** Names of rows as far as they fit, and hosts as bands beside them. */
  drawLabels() {
    const { context, data, rowHeight, gutter } = this;
    context.clearRect(0, AXIS, gutter, data.rows.length * rowHeight + 1);
    const each = Math.ceil(12 / rowHeight);
    context.textBaseline = "middle";
    const picked = this.selected >= 0 ? data.calls.row[this.selected] : this.row;
    const waited = this.selected >= 0 ? this.data.rowOf(data.calls.waits_for[this.selected]) : -1;
    let host = 0;
    data.rows.forEach((row, at) => {
      if (at && row.host !== data.rows[at - 1].host) host += 1;
      const top = AXIS + at * rowHeight;
      context.fillStyle = colors.muted;
      context.globalAlpha = host % 2 ? 0.2 : 0.45;
      context.fillRect(gutter - 6, top, 3, rowHeight);
      context.globalAlpha = 1;
      const special = at === picked || at === waited;
      const nearby = (one) => one >= 0 && one !== at && Math.abs(one - at) < each;
      if (!special && (at % each || nearby(picked) || nearby(waited))) return;
      context.fillStyle = special ? colors.ink : colors.muted;
      context.font = `${special ? "600 " : ""}${rowHeight >= 14 ? 11.5 : 10}px ${FONT}`;
      context.textAlign = "right";
      context.fillText(clipped(context, this.names[at], gutter - 11), gutter - 11, top + rowHeight / 2 + 0.5);
    });
    context.textAlign = "left";
  }

  /** The whole run: shares of all ranks, the findings' places and the window that's shown. */
  drawStrip() {
    const { context, width } = fitCanvas(this.strip, STRIP);
    const plot = this.plotWidth;
    const parts = Math.max(10, Math.floor(plot / 2));
    if (!this.sums || this.sums.mpi.length !== parts) this.sums = this.data.overview(parts);
    const [top, bottom] = [14, STRIP - 2];
    context.fillStyle = colors.idle;
    context.fillRect(this.gutter, top, plot, bottom - top);
    for (let part = 0; part < parts; part += 1) {
      const x = this.gutter + (part / parts) * plot;
      const [mpi, waiting] = [this.sums.mpi[part], this.sums.waiting[part]].map((one) => one * (bottom - top));
      context.fillStyle = colors.other;
      context.fillRect(x, bottom - mpi, plot / parts + 0.3, mpi);
      context.fillStyle = colors.waiting;
      context.fillRect(x, bottom - waiting, plot / parts + 0.3, waiting);
    }
    const at = (time) => this.gutter + (time / this.data.span) * plot;
    context.font = `600 10px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    let free = -1;
    for (const { number, window } of [...this.page.findings].sort(
      (a, b) => (a.window?.[0] ?? 0) - (b.window?.[0] ?? 0),
    )) {
      if (!window) continue;
      const x = Math.max((at(window[0]) + at(window[1])) / 2, free);
      free = x + 11;
      context.fillStyle = colors.ink;
      context.fillText(String(number), x, top - 4);
    }
    const [left, right] = [at(this.view[0]), at(this.view[1])];
    context.fillStyle = colors.card;
    context.globalAlpha = 0.72;
    context.fillRect(this.gutter, top, left - this.gutter, bottom - top);
    context.fillRect(right, top, this.gutter + plot - right, bottom - top);
    context.globalAlpha = 1;
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.5;
    context.strokeRect(Math.min(left, width - 3), top, Math.max(right - left, 2), bottom - top);
    context.textAlign = "right";
    context.fillStyle = colors.muted;
    context.font = `10px ${FONT}`;
    if (this.gutter > 75) context.fillText("whole run", this.gutter - 11, top + 19);
    context.textAlign = "left";
  }
}
