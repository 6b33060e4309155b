// Parts that all sections share. The files of this folder are joined into one script and share one scope.

const REDUCED_MOTION = matchMedia("(prefers-reduced-motion: reduce)").matches;
const THOUSANDS = new Intl.NumberFormat("en-US");
const byId = (id) => document.getElementById(id);

/** The element `tag` with attributes, listeners (`onclick`) and children (elements or text). */
function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "rect", "path", "text", "line", "title", "circle"].includes(tag);
  const element = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** `13.2 ms`: four digits, as the command line writes them. */
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const [unit, factor] = size >= 1 ? ["s", 1] : size >= 1e-3 ? ["ms", 1e3] : size >= 1e-6 ? ["us", 1e6] : ["ns", 1e9];
  const scaled = value * factor;
  return `${Math.abs(scaled) >= 1000 ? THOUSANDS.format(Math.round(scaled)) : +scaled.toPrecision(4)} ${unit}`;
}

const PREFIXES = ["", "K", "M", "G", "T", "P", "E"];

/** A number with three digits and a decimal prefix: `1.25 M`. */
function prefixed(value, unit = "") {
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 999.5 && step < PREFIXES.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${+scaled.toPrecision(3)} ${PREFIXES[step]}${unit}`.trim();
}

const bytes = (value) => (value === null || value === undefined ? "–" : value === 0 ? "0" : prefixed(value, "B"));
const count = (value) => THOUSANDS.format(Math.round(value));
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const percent = (share) =>
  share > 0 && share < 0.001 ? "<0.1%" : `${+(share * 100).toPrecision(share < 0.0995 ? 2 : 3)}%`;

/** A size class's limit as sizes of messages are named: `64K`. */
function sizeName(value) {
  let scaled = value;
  let step = 0;
  while (scaled >= 1024 && scaled % 1024 === 0 && step < PREFIXES.length - 1) {
    scaled /= 1024;
    step += 1;
  }
  return `${scaled}${PREFIXES[step]}`;
}

/** A column of the document: base64 of gzip of little-endian values of the array type. */
async function column(text, Values) {
  const binary = atob(text);
  const zipped = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) zipped[i] = binary.charCodeAt(i);
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Values(await new Response(stream).arrayBuffer());
}

const canUnpack = () => typeof DecompressionStream === "function";

/** Colors of the style sheet, which follow the dark mode: pictures are drawn with them. */
const colors = {};

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "card", "ink", "muted", "line", "soft", "idle", "waiting", "other", "accent"];
  for (const name of names) colors[name] = style.getPropertyValue(`--${name}`).trim();
  colors.functions = [0, 1, 2, 3, 4, 5, 6].map((one) => style.getPropertyValue(`--f${one}`).trim());
  colors.heat = [0, 1, 2, 3, 4].map((one) => rgb(style.getPropertyValue(`--heat${one}`).trim()));
}

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The color of a value from 0 to 1 on the sequential scale. */
function heat(value) {
  const at = Math.min(Math.max(value, 0), 1) * (colors.heat.length - 1);
  const low = colors.heat[Math.floor(at)];
  const high = colors.heat[Math.ceil(at)];
  return `rgb(${low.map((part, i) => Math.round(part + (high[i] - part) * (at - Math.floor(at)))).join(",")})`;
}

/** Functions by their time: the costliest have colors of their own, the rest shares one. */
function rankFunctions(page) {
  const time = new Array(page.functions.length).fill(0);
  for (const path of page.paths) time[path.function] += path.seconds;
  const order = time.map((_, i) => i).sort((a, b) => time[b] - time[a]);
  const whole = time.reduce((a, b) => a + b, 0);
  page.slots = new Array(time.length).fill(-1);
  order.slice(0, colors.functions.length).forEach((index, slot) => {
    if (time[index] > whole / 500) page.slots[index] = slot;
  });
  page.functionOrder = order.filter((index) => time[index] > 0);
}

const functionColor = (page, index) => (page.slots[index] >= 0 ? colors.functions[page.slots[index]] : colors.other);

/** Size a canvas to its width on the page, and return a context in that unit. */
function fitCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

const FONT = 'Inter, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif';

/** Text cut to a width, with an ellipsis; nothing where not even three letters fit. */
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? "" : `${text.slice(0, low)}…`;
}

/** Round steps of an axis of time: { step, label(t) }. */
function timeSteps(from, to, most) {
  const raw = (to - from) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
  const largest = Math.max(Math.abs(to), step);
  const [unit, factor] = largest >= 1 ? ["s", 1] : largest >= 1e-3 ? ["ms", 1e3] : ["us", 1e6];
  const digits = Math.max(0, -Math.floor(Math.log10(step * factor) + 1e-9));
  return { step, label: (time) => `${(time * factor).toFixed(Math.min(digits, 12))} ${unit}` };
}

/** The box that follows the pointer, one for the page. */
const tip = {
  show(lines, x, y) {
    const box = byId("tip");
    box.replaceChildren(...lines.map((line, i) => make(i ? "div" : "b", {}, line)));
    box.hidden = false;
    const width = document.documentElement.clientWidth;
    const left = x + 14 + box.offsetWidth > width - 6 ? Math.max(6, x - 14 - box.offsetWidth) : x + 14;
    const top = y + 18 + box.offsetHeight > innerHeight - 6 ? Math.max(6, y - 12 - box.offsetHeight) : y + 18;
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
  },
  hide() {
    byId("tip").hidden = true;
  },
};

/** Draw now, and whenever the width or the colors change. */
function onResize(element, draw) {
  let width = -1;
  new ResizeObserver(() => {
    if (element.clientWidth === width || !element.clientWidth) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColors();
    draw();
  });
}

/** Run when the browser next draws, once however often it is asked for. */
function throttled(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/**
 * A table whose columns sort: columns are { name, title, value(row), cell(row), left }. Shows `most` rows until all are
 * asked for. Returns { show(rows) }.
 */
function sortableTable(table, columns, sorted, most) {
  let rows = [];
  let by = sorted;
  let down = true;
  let all = false;
  const body = make("tbody");
  const more = make("button", {
    type: "button",
    class: "more",
    onclick: () => {
      all = true;
      fill();
    },
  });
  const heads = columns.map((one, at) =>
    make(
      "th",
      { scope: "col", class: one.left ? "left" : null, title: one.title },
      one.value ? make("button", { type: "button", onclick: () => sort(at) }, one.name) : one.name,
    ),
  );
  table.append(make("thead", {}, make("tr", {}, ...heads)), body);
  table.parentElement.after(more);

  function sort(at) {
    down = by === at ? !down : !columns[at].left;
    by = at;
    fill();
  }
  function fill() {
    const value = columns[by].value;
    const order = [...rows].sort((a, b) => {
      const x = value(a);
      const y = value(b);
      const less = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : (x ?? -1) - (y ?? -1);
      return down ? -less : less;
    });
    heads.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : down ? "descending" : "ascending"));
    const shown = all ? order : order.slice(0, most);
    body.replaceChildren(
      ...shown.map((row) =>
        make("tr", {}, ...columns.map((one) => make("td", { class: one.left ? "left" : "number" }, one.cell(row)))),
      ),
    );
    if (!rows.length)
      body.append(make("tr", {}, make("td", { colspan: columns.length, class: "none" }, "nothing matches")));
    more.textContent = `Show all ${count(rows.length)}`;
    more.hidden = shown.length === rows.length;
  }
  return {
    show(given) {
      rows = given;
      fill();
    },
  };
}
