// "What is slow": sentences about classes that wait or drop, and about limits that lost their Redis.

import { bytes, delay, perSecond, rate, rateOf } from './format.js';

const OFTEN = 0.3; // of the looks of ten seconds
const FULL = 0.9; // of a rate

const isFull = (row) => row.limit_bps !== null && row.rate_bps >= FULL * row.limit_bps;

/** What a class that holds packets waits for. */
function cause(row, status) {
  const link = status.links.find((each) => each.name === row.link);
  if (isFull(row)) return `is at its limit: ${rateOf(row.rate_bps, row.limit_bps)}`;
  if (link && isFull(link)) {
    return `has ${rate(row.rate_bps)}: ${link.name} is full, ${rateOf(link.rate_bps, link.limit_bps)}`;
  }
  if (row.each) return `has ${rate(row.rate_bps)}: each ${row.each.by} gets at most ${rate(row.each.limit_bps)}`;
  const held = row.held_by;
  return held ? `has ${rate(row.rate_bps)}: waits for ${held.bucket} ${held.name}` : `has ${rate(row.rate_bps)}`;
}

export function dropsText(drops) {
  const parts = Object.entries(drops).sort((a, b) => b[1] - a[1]);
  return parts.map(([reason, number]) => `${reason} ${perSecond(number)}`).join(', ');
}

function ofClass(row, recent, status) {
  const waits = recent.waiting >= OFTEN;
  const drops = dropsText(recent.drops);
  if (!waits && drops === '') return null;
  const parts = [cause(row, status)];
  if (waits) parts.push(`${bytes(Math.round(recent.backlog))} wait, delay ${delay(recent.p50)} (p50), ${delay(recent.p99)} (p99)`);
  if (drops !== '') parts.push(`drops ${drops}`);
  return { name: `${row.name} on ${row.link}`, text: parts.join('; '), level: 'slow', order: recent.p99 ?? 0 };
}

function ofLimit(limit, cluster) {
  const name = `limit ${limit.name}`;
  if (limit.state === 'active' || limit.state === 'leased') {
    if (limit.by !== null || !isFull(limit)) return null;
    return { name, text: `is used up: ${rateOf(limit.rate_bps, limit.limit_bps)}`, level: 'slow', order: -1 };
  }
  const reason = cluster?.limits.find((each) => each.name === limit.name)?.reason;
  const state = limit.state === 'fallback' ? 'lives without Redis' : 'was granted nothing yet';
  return { name, text: reason ? `${state}: ${reason}` : state, level: 'slow', order: Infinity };
}

export function findings(status, cluster, history) {
  const found = [
    ...status.limits.map((limit) => ofLimit(limit, cluster)),
    ...status.classes.map((row) => ofClass(row, history.recent(row, status.delay_bounds_us), status)),
  ].filter((each) => each !== null);
  found.sort((a, b) => b.order - a.order);
  found.push(...status.advice.map((text) => ({ name: 'Advice', text, level: 'slow', order: 0 })));
  return found.length > 0 ? found : [{ name: 'Nothing waits', text: 'and nothing is dropped.', level: 'ok' }];
}
