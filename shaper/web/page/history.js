// What was seen within the last five minutes. It is kept here, in the browser, and begins anew with the page.

export const SPAN = 300_000; // ms
const WINDOW = 10_000; // over which delays and drops are told as "now"

export const classKey = (row) => `${row.name} on ${row.link}`;

/**
 * The delay that `share` of the packets did not exceed, estimated from counts by bound and never above `most`; null:
 * there were none. Bounds grow by factors, so within one the estimate does too.
 */
export function percentile(counts, bounds, share, most) {
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total === 0) return null;
  let rest = share * total;
  for (let i = 0; i < counts.length; i += 1) {
    if (rest <= counts[i] && counts[i] > 0) {
      const low = i === 0 ? 0 : bounds[i - 1];
      const high = i < bounds.length ? bounds[i] : low;
      const part = rest / counts[i];
      return Math.min(most, low === 0 ? high * part : low * (high / low) ** part);
    }
    rest -= counts[i];
  }
  return Math.min(most, bounds[bounds.length - 1]);
}

function difference(after, before) {
  const result = after.map((n, i) => n - before[i]);
  return result.some((n) => n < 0) ? null : result; // counters that fall belong to another daemon
}

export class History {
  #samples = new Map(); // of each class, the oldest first

  add(status, now) {
    const seen = new Set();
    for (const row of status.classes) {
      const key = classKey(row);
      seen.add(key);
      if (!this.#samples.has(key)) this.#samples.set(key, []);
      const samples = this.#samples.get(key);
      samples.push(this.#sample(row, status.delay_bounds_us, samples.at(-1), now));
      while (samples[0].time < now - SPAN - WINDOW) samples.shift();
    }
    for (const key of this.#samples.keys()) if (!seen.has(key)) this.#samples.delete(key);
  }

  #sample(row, bounds, before, now) {
    const packets = row.delay_counts.packets;
    const since = before && now - before.time < 5000 ? difference(packets, before.packets) : null;
    return {
      time: now,
      rate: row.rate_bps,
      backlog: row.backlog_bytes,
      packets,
      drops: row.drops,
      p50: since && percentile(since, bounds, 0.5, row.delay_us.max),
      p99: since && percentile(since, bounds, 0.99, row.delay_us.max),
    };
  }

  /** [time, value] of each sample; the value is null where there was none. */
  points(key, field) {
    return (this.#samples.get(key) ?? []).map((sample) => [sample.time, sample[field]]);
  }

  mean(key, field) {
    const samples = this.#samples.get(key) ?? [];
    return samples.reduce((sum, sample) => sum + (sample[field] ?? 0), 0) / Math.max(1, samples.length);
  }

  /** The class within the last ten seconds: delays, drops in a second by reason, how often something waited, how much. */
  recent(row, bounds) {
    const samples = (this.#samples.get(classKey(row)) ?? []).filter((s) => s.time >= this.#newest(row) - WINDOW);
    if (samples.length < 2) return { p50: null, p99: null, drops: {}, waiting: 0, backlog: 0 };
    const [first, last] = [samples[0], samples.at(-1)];
    const counts = difference(last.packets, first.packets);
    const seconds = (last.time - first.time) / 1000;
    const drops = {};
    for (const [reason, number] of Object.entries(last.drops)) {
      const more = number - (first.drops[reason] ?? 0);
      if (more > 0) drops[reason] = more / seconds;
    }
    return {
      p50: counts && percentile(counts, bounds, 0.5, row.delay_us.max),
      p99: counts && percentile(counts, bounds, 0.99, row.delay_us.max),
      drops,
      waiting: samples.filter((s) => s.backlog > 0).length / samples.length,
      backlog: samples.reduce((sum, s) => sum + s.backlog, 0) / samples.length,
    };
  }

  #newest(row) {
    return this.#samples.get(classKey(row))?.at(-1)?.time ?? 0;
  }
}
