// The columns of the page's tables.

import { bytes, clock, count, delay, percent, rate, rateOf } from './format.js';
import { classKey } from './history.js';
import { Table } from './table.js';

/** The rate beside its limit, with a bar; a class without a limit of its own is measured by its link. */
function rateCell(row, whole) {
  const limit = row.limit_bps ?? null;
  if (limit === null && !whole) return { text: rate(row.rate_bps) };
  const share = row.rate_bps / (limit ?? whole);
  const full = share >= 0.95 ? 'full' : percent(share);
  const guarantee = row.guarantee_bps ? row.guarantee_bps / (limit ?? whole) : null;
  const text = limit === null ? rate(row.rate_bps) : rateOf(row.rate_bps, limit);
  return { text, note: limit === null ? `${full} of the link` : full, bar: { share, guarantee } };
}

function dropsCell(row) {
  if (row.dropped_packets === 0) return { text: '0' };
  const reasons = Object.entries(row.drops ?? {}).map(([reason, number]) => `${reason} ${count(number)}`);
  return { text: count(row.dropped_packets), note: reasons.join('\n') };
}

const onlyClass = (cell) => (row) => (row.kind === 'link' ? {} : cell(row));

export const classTable = (table) =>
  new Table(table, 'Links, and the classes of each', [
    {
      title: 'Name',
      head: true,
      name: 'name',
      cell: (row) => ({ text: row.name, note: row.kind === 'link' ? `${row.interface}, ${row.direction}` : '' }),
    },
    { title: 'Priority', numeric: true, wide: true, cell: onlyClass((row) => ({ text: String(row.priority) })) },
    { title: 'Rate and limit', name: 'rate', cell: (row) => rateCell(row, row.whole) },
    {
      title: 'Guaranteed',
      numeric: true,
      wide: true,
      cell: onlyClass((row) => ({ text: row.guarantee_bps ? rate(row.guarantee_bps) : '\u2013' })),
    },
    { title: 'Rate over time', wide: true, name: 'spark-cell', cell: onlyClass((row) => ({ spark: row.spark })) },
    { title: 'Backlog', numeric: true, cell: (row) => ({ text: bytes(row.backlog_bytes) }) },
    { title: 'Delay p50', numeric: true, wide: true, cell: onlyClass((row) => ({ text: delay(row.recent.p50) })) },
    { title: 'Delay p99', numeric: true, cell: onlyClass((row) => ({ text: delay(row.recent.p99) })) },
    { title: 'Dropped', numeric: true, name: 'drops', cell: dropsCell },
    { title: 'Marked', numeric: true, wide: true, cell: onlyClass((row) => ({ text: count(row.marked_packets) })) },
    { title: 'Flows', numeric: true, wide: true, cell: onlyClass((row) => ({ text: count(row.flows) })) },
  ]);

/** Each link, and behind it its classes. */
export function classRows(status, history, now) {
  const rows = [];
  for (const link of status.links) {
    rows.push({ ...link, kind: 'link' });
    for (const row of status.classes.filter((each) => each.link === link.name)) {
      const points = history.points(classKey(row), 'rate');
      const top = Math.max(row.limit_bps ?? link.limit_bps ?? 0, ...points.map(([, value]) => value));
      const recent = history.recent(row, status.delay_bounds_us);
      rows.push({ ...row, kind: 'class', whole: link.limit_bps, spark: { points, now, top }, recent });
    }
  }
  return rows;
}

function stateText(limit) {
  const where = limit.scope === 'cluster' ? 'all hosts' : 'this host';
  return limit.state === 'active' ? where : `${where}, ${limit.state}`;
}

export const limitTable = (table) =>
  new Table(table, 'Limits that classes share, and those set while the daemon runs', [
    {
      title: 'Name',
      head: true,
      name: 'name',
      cell: (limit) => ({ text: limit.name, note: limit.selector ?? (limit.by ? `each ${limit.by}` : '') }),
    },
    {
      title: 'Rate and limit',
      name: 'rate',
      cell: (limit) =>
        limit.by === null
          ? rateCell(limit)
          : { text: rate(limit.rate_bps), note: `${count(limit.keys)} of ${rate(limit.limit_bps)} each` },
    },
    { title: 'Holds for', cell: (limit) => ({ text: stateText(limit) }) },
    {
      title: 'Hosts',
      numeric: true,
      wide: true,
      cell: ({ there }) => ({ text: there ? count(there.members) : '\u2013' }),
    },
    {
      title: 'Share of this host',
      numeric: true,
      wide: true,
      cell: ({ there }) => ({ text: there?.share_bps ? rate(there.share_bps) : '\u2013' }),
    },
    { title: 'Ends', wide: true, cell: (limit) => ({ text: limit.expires ? clock(limit.expires) : '\u2013' }) },
  ]);

/** Each limit; `there` is what is known of it on all hosts. */
export const limitRows = (status, cluster) =>
  status.limits.map((limit) => ({ ...limit, there: cluster?.limits.find((each) => each.name === limit.name) }));

function endPoint(address, port) {
  if (port === null) return address;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The bucket that the flow waits for. */
const holder = ({ held_by: held }) => (held ? `${held.bucket} ${held.name}` : null);

export const flowTable = (table) =>
  new Table(table, 'Flows, the first fifty in the chosen order', [
    {
      title: 'Flow',
      head: true,
      name: 'flow',
      cell: (flow) => ({
        text: `${flow.protocol} ${endPoint(flow.source, flow.source_port)} \u2192 ${endPoint(flow.destination, flow.destination_port)}`,
        small: [flow.class, flow.owner ?? flow.user, holder(flow) ?? flow.state].filter((word) => word !== null).join(' \u00b7 '),
      }),
    },
    { title: 'Class', wide: true, cell: (flow) => ({ text: flow.class }) },
    { title: 'User', wide: true, cell: (flow) => ({ text: flow.user ?? '\u2013' }) },
    { title: 'Owner', wide: true, cell: (flow) => ({ text: flow.owner ?? '\u2013' }) },
    { title: 'Waits for', wide: true, cell: (flow) => ({ text: holder(flow) ?? flow.state }) },
    { title: 'Rate', numeric: true, cell: (flow) => ({ text: rate(flow.rate_bps) }) },
    { title: 'Backlog', numeric: true, wide: true, cell: (flow) => ({ text: bytes(flow.backlog_bytes) }) },
    { title: 'Delay p99', numeric: true, cell: (flow) => ({ text: delay(flow.delay_us.p99) }) },
    { title: 'Dropped', numeric: true, cell: (flow) => ({ text: count(flow.dropped_packets) }) },
    { title: 'Sent', numeric: true, wide: true, cell: (flow) => ({ text: bytes(flow.wire_bytes) }) },
  ]);
