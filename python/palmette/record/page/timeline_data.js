// The timeline's data: shares of time by bin, single calls by row, messages.

const UNITS = 2 ** 32;
const NO_FUNCTION = 255;

class TimelineData {
  /** Unpack a document's timeline. */
  static async read(timeline) {
    const data = new TimelineData();
    data.span = timeline.span_s || 1e-9;
    data.rows = timeline.rows.map((row) => ({ ...row, ...ranksOf(row.name) }));
    data.lanes = data.rows.reduce((most, row) => Math.max(most, row.last - row.first + 1), 1);
    data.levels = await Promise.all(
      timeline.levels.map(async (level) => ({
        bins: level.bins,
        mpi: await column(level.mpi, Uint8Array),
        waiting: await column(level.waiting, Uint8Array),
        function: await column(level.function, Uint8Array),
      })),
    );
    const [calls, messages] = [timeline.calls, timeline.messages];
    data.calls = { count: calls.count, total: calls.total };
    data.messages = { count: messages.count, total: messages.total };
    const kinds = {
      row: Uint16Array,
      begin: Uint32Array,
      length: Uint32Array,
      waiting: Uint32Array,
      function: Uint8Array,
      place: Uint16Array,
      bytes: Float32Array,
      waits_for: Int32Array,
    };
    for (const [name, kind] of Object.entries(kinds)) {
      data.calls[name] = calls.count ? await column(calls[name], kind) : new kind(0);
    }
    const sides = { from: Uint16Array, to: Uint16Array, sent: Uint32Array, received: Uint32Array, bytes: Float32Array };
    for (const [name, kind] of Object.entries(sides)) {
      data.messages[name] = messages.count ? await column(messages[name], kind) : new kind(0);
    }
    data.critical = { count: timeline.critical ? timeline.critical.count : 0 };
    for (const [name, kind] of Object.entries({ row: Uint16Array, begin: Uint32Array, end: Uint32Array })) {
      data.critical[name] = data.critical.count ? await column(timeline.critical[name], kind) : new kind(0);
    }
    data.unit = data.span / UNITS;
    data.sortByRow();
    data.subtractCalls();
    return data;
  }

  /** Of each row its calls by begin, and the latest end up to each: what's in a window is found by bisection. */
  sortByRow() {
    const sizes = new Uint32Array(this.rows.length);
    for (const row of this.calls.row) sizes[row] += 1;
    this.ofRow = this.rows.map((_, row) => ({
      calls: new Uint32Array(sizes[row]),
      reach: new Float64Array(sizes[row]),
    }));
    const filled = new Uint32Array(this.rows.length);
    const { row, begin, length } = this.calls;
    // Ranks that share a row: each call gets a lane that is free when it begins.
    this.lane = new Uint16Array(row.length);
    const free = this.rows.map(() => new Float64Array(this.lanes));
    for (let i = 0; i < row.length; i += 1) {
      const own = this.ofRow[row[i]];
      const at = filled[row[i]]++;
      own.calls[at] = i;
      own.reach[at] = Math.max(at ? own.reach[at - 1] : 0, begin[i] + length[i]);
      if (this.lanes > 1) {
        const ends = free[row[i]];
        let lane = ends.findIndex((end) => end <= begin[i]);
        if (lane < 0) lane = ends.indexOf(Math.min(...ends));
        ends[lane] = begin[i] + length[i];
        this.lane[i] = lane;
      }
    }
  }

  /** Shares of the finest bins without the calls that are drawn one by one: what the others take. */
  subtractCalls() {
    const finest = this.finest;
    if (!finest) return;
    const mpi = Float32Array.from(finest.mpi);
    const waiting = Float32Array.from(finest.waiting);
    const { row, begin, length, waiting: waited } = this.calls;
    const scale = finest.bins / UNITS;
    const take = (shares, row, from, to) => {
      const offset = row * finest.bins;
      const weight = 1 / (this.rows[row].last - this.rows[row].first + 1);
      const last = Math.min(Math.floor(to), finest.bins - 1);
      for (let bin = Math.floor(from); bin <= last; bin += 1) {
        shares[offset + bin] -= 255 * (Math.min(to, bin + 1) - Math.max(from, bin)) * weight;
      }
    };
    for (let i = 0; i < row.length; i += 1) {
      take(mpi, row[i], begin[i] * scale, (begin[i] + length[i]) * scale);
      take(waiting, row[i], begin[i] * scale, (begin[i] + waited[i]) * scale);
    }
    // Shares come in steps of 1/255: less than two of them may be rounding.
    for (let i = 0; i < mpi.length; i += 1) {
      mpi[i] = mpi[i] < 2 ? 0 : mpi[i];
      waiting[i] = Math.min(waiting[i] < 2 ? 0 : waiting[i], mpi[i]);
    }
    this.others = { bins: finest.bins, mpi, waiting, function: finest.function };
  }

  /** The row of a rank; -1 where there is none. */
  rowOf(rank) {
    return this.rows.findIndex((row) => rank >= row.first && rank <= row.last);
  }

  get finest() {
    return this.levels[this.levels.length - 1];
  }

  /** The coarsest level whose bins aren't wider than that many seconds, or the finest. */
  levelFor(width_s) {
    return this.levels.find((level) => this.span / level.bins <= width_s) || this.finest;
  }

  /** Positions in a row's list of calls that may be seen from `from` to `to` (seconds): first and one past the last. */
  visible(row, from, to) {
    const { calls, reach } = this.ofRow[row];
    const low = from / this.unit;
    const high = to / this.unit;
    const first = bisect(reach.length, (at) => reach[at] >= low);
    return [
      first,
      Math.max(
        first,
        bisect(calls.length, (at) => this.calls.begin[calls[at]] > high),
      ),
    ];
  }

  /** Of the visible calls how many they are, and which share of their time is in calls of `least` seconds and more. */
  shareOfLong(from, to, least) {
    let [all, long, number] = [0, 0, 0];
    for (let row = 0; row < this.rows.length; row += 1) {
      const [first, last] = this.visible(row, from, to);
      number += last - first;
      for (let at = first; at < last; at += 1) {
        const length = this.calls.length[this.ofRow[row].calls[at]];
        all += length;
        if (length * this.unit >= least) long += length;
      }
    }
    return { number, share: all ? long / all : 1 };
  }

  /** Indices of messages that touch the window; null where they are more than `most`, and how many they are. */
  visibleMessages(from, to, most) {
    const { sent, received } = this.messages;
    const low = from / this.unit;
    const high = to / this.unit;
    const found = [];
    let number = 0;
    for (let i = 0; i < sent.length; i += 1) {
      if (sent[i] > high || Math.max(received[i], sent[i]) < low) continue;
      number += 1;
      if (number <= most) found.push(i);
    }
    return { found: number <= most ? found : null, number };
  }

  /** The call of a row's lane at a time, or the nearest within `slack` seconds; -1 where there is none. */
  callAt(row, lane, time, slack) {
    const [first, last] = this.visible(row, time - slack, time + slack);
    let best = -1;
    let nearest = Infinity;
    for (let at = first; at < last; at += 1) {
      const call = this.ofRow[row].calls[at];
      if (this.lane[call] !== lane) continue;
      const [begin, end] = this.times(call);
      const distance = time < begin ? begin - time : time > end ? time - end : 0;
      if (distance <= slack && distance <= nearest) [best, nearest] = [call, distance];
    }
    return best;
  }

  /** The call that stands `step` calls after (before) another one in its row; the same at the ends. */
  neighbour(call, step) {
    const { calls } = this.ofRow[this.calls.row[call]];
    const at = bisect(calls.length, (one) => calls[one] >= call);
    return calls[Math.min(Math.max(at + step, 0), calls.length - 1)];
  }

  /** Begin and end of a call, seconds. */
  times(call) {
    const { begin, length } = this.calls;
    return [begin[call] * this.unit, (begin[call] + length[call]) * this.unit];
  }

  /** All ranks' shares of `parts` equal parts of the whole time: { mpi, waiting }, each from 0 to 1. */
  overview(parts) {
    const level = this.levelFor(this.span / parts);
    const sums = { mpi: new Float64Array(parts), waiting: new Float64Array(parts) };
    const scale = level.bins / parts;
    for (let part = 0; part < parts; part += 1) {
      const first = Math.floor(part * scale);
      const last = Math.max(first + 1, Math.floor((part + 1) * scale));
      for (let row = 0; row < this.rows.length; row += 1) {
        for (let bin = first; bin < last; bin += 1) {
          sums.mpi[part] += level.mpi[row * level.bins + bin];
          sums.waiting[part] += level.waiting[row * level.bins + bin];
        }
      }
      const whole = 255 * (last - first) * this.rows.length;
      sums.mpi[part] /= whole;
      sums.waiting[part] /= whole;
    }
    return sums;
  }
}

/** First and last rank of a row called `rank 3` or `ranks 8-15`. */
function ranksOf(name) {
  const [first, last] = name.match(/\d+/g) ?? [-1];
  return { first: Number(first), last: Number(last ?? first) };
}

/** The first of `length` positions for which `is` holds; it holds for all after it. */
function bisect(length, is) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
