// The machine's tree of links: a link leads from a node to its parent.

/** Bytes that a link carries by bin; null where they aren't known. */
async function overTime(text, total, bins) {
  if (text) return column(text, Float32Array);
  return total !== 0 || bins < 2 ? null : new Float32Array(bins);
}

class LinksData {
  static async read(links) {
    const data = new LinksData();
    Object.assign(data, { levels: links.levels, bins: links.bins, span: links.span_s });
    data.nodes = await Promise.all(
      links.nodes.map(async (node, number) => ({
        number,
        name: node.name,
        level: node.level,
        parent: node.parent,
        rate: node.rate_Bps,
        children: [],
        total: { up: node.up_bytes, down: node.down_bytes },
        up: await overTime(node.up, node.up_bytes, links.bins),
        down: await overTime(node.down, node.down_bytes, links.bins),
      })),
    );
    data.addRoot();
    for (const node of data.nodes) if (node.parent >= 0) data.nodes[node.parent].children.push(node.number);
    data.links = data.nodes.filter((node) => node.parent >= 0);
    data.rated = data.links.some((node) => node.rate);
    data.timed = data.bins > 1 && data.links.some((node) => node.up || node.down);
    for (const node of data.links) node.peak = { up: data.peakOf(node, "up"), down: data.peakOf(node, "down") };
    return data;
  }

  /** Where outermost nodes have links, too, these lead to a root that isn't in the document. */
  addRoot() {
    const outermost = this.nodes.filter((node) => node.parent < 0);
    this.root = outermost[0].number;
    if (outermost.length === 1 && !outermost[0].rate && !outermost[0].total.up && !outermost[0].total.down) return;
    this.root = this.nodes.length;
    for (const node of outermost) node.parent = this.root;
    const nothing = { rate: null, children: [], total: { up: 0, down: 0 }, up: null, down: null };
    this.nodes.push({ number: this.root, name: "network", level: -1, parent: -1, ...nothing });
  }

  levelName(node) {
    return this.levels[node.level] ?? "";
  }

  get binWidth() {
    return this.span / Math.max(1, this.bins);
  }

  /** The largest use of a link within a bin, as a share of its rate; null where it isn't known. */
  peakOf(node, side) {
    if (!node.rate || !node[side]) return null;
    return Math.min(1, node[side].reduce((a, b) => Math.max(a, b), 0) / (this.binWidth * node.rate));
  }

  /** Bytes of a link in bins from..to, of the whole run where no bins are given; null where it isn't known. */
  bytes(node, side, range) {
    if (!range) return node.total[side];
    if (!node[side]) return null;
    let sum = 0;
    for (let bin = range[0]; bin < range[1]; bin += 1) sum += node[side][bin];
    return sum;
  }

  /** The same as a share of what the link could carry in that time; null without a rate. */
  share(node, side, range) {
    const carried = this.bytes(node, side, range);
    if (!node.rate || carried === null) return null;
    const time = range ? (range[1] - range[0]) * this.binWidth : this.span;
    // A rest of what is sent at the very end may be left to be carried.
    return time > 0 ? Math.min(1, carried / (node.rate * time)) : null;
  }

  /** Nodes below one, by how many levels below: [[itself], children, ...]. */
  below(number) {
    const found = [[number]];
    for (let last = found[0]; last.length;) {
      last = last.flatMap((one) => this.nodes[one].children);
      if (last.length) found.push(last);
    }
    return found;
  }

  path(number) {
    const found = [];
    for (let one = number; one >= 0; one = this.nodes[one].parent) found.unshift(one);
    return found;
  }
}
