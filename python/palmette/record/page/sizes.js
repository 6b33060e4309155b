// Histograms: calls and time by size, calls by duration.

function startSizes(page) {
  const choice = byId("sizes-function");
  const known = page.functionOrder.filter((index) =>
    [...page.sizes, ...page.durations].some((one) => one.function === index),
  );
  choice.append(
    make("option", { value: "-1" }, "all functions"),
    ...known.map((index) => make("option", { value: index }, page.functions[index])),
  );
  const sizeLabel = (row) => sizeName(row.bytes_from);
  const show = () => {
    const wanted = Number(choice.value);
    const own = (rows) => rows.filter((row) => wanted < 0 || row.function === wanted);
    const sizes = classes(own(page.sizes), "bytes_from", "bytes_to", ["calls", "seconds"]);
    const durations = classes(own(page.durations), "from_s", "to_s", ["calls"]);
    const color = wanted < 0 ? colors.accent : functionColor(page, wanted);
    bars(byId("sizes-calls"), sizes, "calls", prefixed, sizeLabel, color, "calls by bytes of a call");
    bars(byId("sizes-time"), sizes, "seconds", seconds, sizeLabel, color, "time by bytes of a call");
    bars(byId("sizes-durations"), durations, "calls", prefixed, durationLabel, color, "calls by their duration");
  };
  choice.addEventListener("change", show);
  onResize(byId("sizes-calls").parentElement, show);
}

const durationLabel = (row) => seconds(+row.from_s.toPrecision(2)).replace(" ", "\u202f");

/** Rows of one class, of whichever function, added up; in order, with the empty classes between them. */
function classes(rows, from, to, sums) {
  const found = new Map();
  for (const row of rows) {
    const key = row[from];
    if (!found.has(key)) found.set(key, { ...row });
    else for (const name of sums) found.get(key)[name] += row[name];
  }
  const filled = [];
  for (const row of [...found.values()].sort((a, b) => a[from] - b[from])) {
    let last = filled[filled.length - 1];
    while (last && last[from] > 0 && last[to] < row[from] * 0.999 && last[to] > last[from] && filled.length < 100) {
      last = {
        ...Object.fromEntries(sums.map((name) => [name, 0])),
        [from]: last[to],
        [to]: last[to] ** 2 / last[from],
      };
      filled.push(last);
    }
    filled.push(row);
  }
  return filled;
}

/** A bar for each row, with its value above it where there is room. */
function bars(holder, rows, key, text, label, color, title) {
  const width = Math.max(200, holder.clientWidth);
  const height = 172;
  const base = height - 22;
  const most = Math.max(...rows.map((row) => row[key]), 1e-300);
  const slot = Math.min(64, width / Math.max(1, rows.length));
  const picture = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  const each = Math.ceil(38 / slot);
  rows.forEach((row, at) => {
    const high = row[key] > 0 ? Math.max(1.5, (row[key] / most) * (base - 20)) : 0;
    const x = at * slot;
    const bar = make("rect", {
      x: x + slot * 0.1,
      y: base - high,
      width: slot * 0.8,
      height: high,
      rx: Math.min(2, high / 2),
      fill: color,
    });
    bar.append(make("title", {}, `${label(row)}: ${text(row[key])}`));
    picture.append(bar);
    const alone = !rows[at - 1]?.[key] && !rows[at + 1]?.[key];
    if (row[key] > 0 && (slot >= 34 || alone || row[key] === most)) {
      const middle = Math.min(Math.max(x + slot / 2, 20), width - 22);
      picture.append(make("text", { x: middle, y: base - high - 5, class: "tick ink" }, text(row[key])));
    }
    if (at % each === 0)
      picture.append(make("text", { x: Math.max(x + slot / 2, 16), y: height - 7, class: "tick" }, label(row)));
  });
  picture.append(make("line", { x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5, class: "grid" }));
  holder.replaceChildren(rows.length ? picture : make("p", { class: "none" }, "no calls"));
}
