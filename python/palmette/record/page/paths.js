// Call paths as a table.

const PARTS = [
  ["waiting_s", "waiting"],
  ["bound_s", "bound"],
  ["excess_s", "excess"],
  ["in_call_s", "in_call"],
  ["completion_s", "completion"],
];

/** Columns of the parts of a path's time: key, title, meaning. A part that isn't known of any path has none. */
const SPLIT = [
  ["waiting_s", "waiting", "until the others have come"],
  ["bound_s", "bound", "what links and memory need at least"],
  ["excess_s", "excess", "longer than that"],
  ["in_call_s", "in the call", "besides waiting: what it needs at least isn't known"],
  ["completion_s", "completion", "after the first rank has left"],
];

function startPaths(page) {
  const longest = Math.max(...page.paths.map((path) => path.seconds), 1e-12);
  const name = (path) => page.functions[path.function];
  const place = (path) => page.places[path.place];
  const number = (key, title, text, title2) => ({
    name: title,
    title: title2,
    value: (path) => path[key],
    cell: (path) => text(path[key]),
  });
  const columns = [
    { name: "function", left: true, value: name, cell: (path) => swatch(page, path.function) },
    { name: "called at", left: true, value: place, cell: (path) => make("code", {}, place(path)) },
    number("calls", "calls", count),
    number("bytes", "bytes", bytes),
    number("seconds", "time", seconds, "of all ranks together"),
    { name: "", left: true, cell: (path) => splitBar(path, longest) },
    ...SPLIT.filter(([key]) => page.paths.some((path) => (path[key] ?? null) !== null)).map(([key, title, meaning]) =>
      number(key, title, seconds, meaning),
    ),
    number("longest_s", "longest", seconds, "one call"),
    number("ranks", "ranks", count),
  ];
  const table = sortableTable(byId("paths-table"), columns, 4, 20);
  const words = page.paths.map((path) => `${name(path)} ${place(path)}`.toLowerCase());
  const show = () => {
    const wanted = byId("paths-filter").value.toLowerCase().split(/\s+/);
    table.show(page.paths.filter((_, i) => wanted.every((word) => words[i].includes(word))));
  };
  byId("paths-filter").addEventListener("input", show);
  show();
}

/** A function's name with its color. */
const swatch = (page, index) =>
  make(
    "span",
    { class: "swatch" },
    make("i", { style: `background:${functionColor(page, index)}` }),
    page.functions[index],
  );

/** A path's time as a bar, as long as it is of the costliest one's, in its parts where they are known. */
function splitBar(path, longest) {
  const bar = make("span", {
    class: "split",
    "aria-hidden": "true",
    style: `width:${Math.max(1, (path.seconds / longest) * 100)}%`,
  });
  for (const [key, style] of PARTS) {
    if (path[key] > 0) bar.append(make("i", { class: `part ${style}`, style: `flex:${path[key] / path.seconds}` }));
  }
  const judged = PARTS.reduce((sum, [key]) => sum + (path[key] ?? 0), 0);
  const rest = path.seconds > 0 ? 1 - judged / path.seconds : 1;
  if (rest > 0.005) bar.append(make("i", { class: "part other", style: `flex:${rest}` }));
  return make("span", { class: "splits" }, bar);
}
