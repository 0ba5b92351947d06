// The two charts and their legend: the busiest classes, or one that was chosen.

import { drawChart, swatch } from './chart.js';
import { delay, rate } from './format.js';
import { classKey } from './history.js';
import { make, setText } from './table.js';

const MOST = 6; // lines that can be told apart
const byId = (id) => document.getElementById(id);

/** The classes to draw, in the order of the policy. */
function busiest(status, history) {
  const mean = new Map(status.classes.map((row) => [row, history.mean(classKey(row), 'rate')]));
  const chosen = new Set([...status.classes].sort((a, b) => mean.get(b) - mean.get(a)).slice(0, MOST));
  return status.classes.filter((row) => chosen.has(row));
}

function updateChoices(select, status) {
  const keys = ['', ...status.classes.map(classKey)];
  if (keys.join('\n') === [...select.options].map((option) => option.value).join('\n')) return;
  const before = select.value;
  const all = status.classes.length > MOST ? `the busiest ${MOST}` : 'all';
  select.replaceChildren(...keys.map((key) => new Option(key || all, key)));
  select.value = keys.includes(before) ? before : '';
}

function updateLegend(list, entries) {
  const names = entries.map((entry) => entry.name).join('\n');
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(
      ...entries.map((entry) => {
        const item = make('li');
        item.append(swatch(entry.style), make('span', '', entry.name), make('span', 'value'));
        return item;
      }),
    );
  }
  entries.forEach((entry, index) => setText(list.children[index].lastChild, entry.value));
}

function drawAll(status, history, now) {
  const rows = busiest(status, history);
  const lines = (field) => rows.map((row, style) => ({ style, points: history.points(classKey(row), field) }));
  const links = status.links.filter((link) => link.limit_bps !== null);
  const marks = links.map((link) => ({ name: `limit of ${link.name}`, value: link.limit_bps }));
  drawChart(byId('rate-chart'), 'Rate of each class', { lines: lines('rate'), marks, format: rate, least: 1000, now });
  drawChart(byId('delay-chart'), 'Delay of each class', { lines: lines('p99'), format: delay, least: 1000, now });
  setText(byId('delay-of'), 'that 99 of 100 packets stay below');
  updateLegend(
    byId('legend'),
    rows.map((row, style) => ({ style, name: status.links.length > 1 ? classKey(row) : row.name, value: rate(row.rate_bps) })),
  );
}

function drawOne(row, history, status, now) {
  const key = classKey(row);
  const recent = history.recent(row, status.delay_bounds_us);
  const marks = [
    { name: 'limit', value: row.limit_bps },
    { name: 'guaranteed', value: row.guarantee_bps },
  ].filter((mark, index, all) => mark.value !== null && all.findIndex((each) => each.value === mark.value) === index);
  const line = (field, style) => ({ style, points: history.points(key, field) });
  drawChart(byId('rate-chart'), `Rate of ${key}`, { lines: [line('rate', 0)], marks, format: rate, least: 1000, now });
  const delays = [line('p50', 1), line('p99', 0)];
  drawChart(byId('delay-chart'), `Delay of ${key}`, { lines: delays, format: delay, least: 1000, now });
  setText(byId('delay-of'), 'that half of the packets, and 99 of 100, stay below');
  updateLegend(byId('legend'), [
    { style: 0, name: 'rate; delay p99', value: `${rate(row.rate_bps)}; ${delay(recent.p99)}` },
    { style: 1, name: 'delay p50', value: delay(recent.p50) },
  ]);
}

export function drawCharts(status, history, now) {
  const select = byId('chosen');
  updateChoices(select, status);
  const row = status.classes.find((each) => classKey(each) === select.value);
  if (row) drawOne(row, history, status, now);
  else drawAll(status, history, now);
}
