// Asks once a second while somebody looks, and shows what came.

import { drawCharts } from './charts.js';
import { findings } from './findings.js';
import { clock, count, delay } from './format.js';
import { History } from './history.js';
import { setText, updateList } from './table.js';
import { classRows, classTable, flowTable, limitRows, limitTable } from './tables.js';

const PERIOD = 1000;
const PATIENCE = 8000;
const FLOWS = 50;

const byId = (id) => document.getElementById(id);
const history = new History();
const tables = {
  classes: classTable(byId('classes')),
  limits: limitTable(byId('limits')),
  flows: flowTable(byId('flows')),
};
const title = document.title;
let shown = null; // the latest status, with its cluster and time
let showsFlows = true;
let flowsAsked = 0;
let timer = null;

/** {status, body} of a path; throws where nobody answers. */
async function ask(path) {
  const response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
  return { status: response.status, body: await response.json() };
}

function banner(level, text) {
  const element = byId('banner');
  element.dataset.level = level;
  setText(element, text);
  byId('main').classList.toggle('old', level === 'bad');
  document.title = level === 'ok' ? title : `! ${title}`;
}

function showBanner(status) {
  const rules = status.rules === null ? '' : `, rules ${status.rules}`;
  if (status.mode === 'shaping' && status.rules !== 'missing') banner('ok', `${status.mode}${rules}`);
  else banner('slow', `${status.mode}${rules}: traffic is not shaped`);
}

function showTrouble(text) {
  const since = shown ? `; shown is what was at ${clock(shown.time)}` : '';
  banner('bad', `${text}${since}`);
}

function queueLosses(status) {
  const lost = status.queues.filter((queue) => queue.kernel_dropped + queue.socket_dropped > 0);
  return lost.map((queue) => ({
    name: `queue ${queue.number}`,
    text: `packets lost since the start: ${count(queue.kernel_dropped)} as the kernel's queue was full, ${count(queue.socket_dropped)} as ours was`,
    level: 'slow',
  }));
}

function redisText(cluster) {
  if (!cluster) return '';
  if (cluster.trouble !== null) return `Redis at ${cluster.redis}: ${cluster.trouble}`;
  return `Redis at ${cluster.redis} answers in ${delay(cluster.round_trip_us)}, 99 of 100 times in ${delay(cluster.slow_round_trip_us)}`;
}

function draw() {
  const { status, cluster, time } = shown;
  byId('main').hidden = false;
  setText(byId('time'), `version ${status.version}, ${clock(time)}`);
  updateList(byId('findings'), findings(status, cluster, history));
  const warnings = status.warnings.map((text) => ({ name: 'warning', text, level: 'slow' }));
  updateList(byId('warnings'), [...warnings, ...queueLosses(status)]);
  drawCharts(status, history, time);
  tables.classes.update(classRows(status, history, time));
  byId('limits-section').hidden = status.limits.length === 0;
  tables.limits.update(limitRows(status, cluster));
  setText(byId('redis'), redisText(cluster));
}

async function lookAtFlows() {
  if (!showsFlows) return;
  const number = (flowsAsked += 1);
  const text = byId('filter').value;
  const query = new URLSearchParams({ sort: byId('sort').value, limit: FLOWS, match: text });
  const answer = await ask(`api/flows?${query}`).catch(() => null);
  if (answer === null || number !== flowsAsked || answer.status === 503) return; // or a later ask is on its way
  showsFlows = answer.status === 200;
  byId('flow-controls').hidden = !showsFlows;
  byId('flows').hidden = !showsFlows;
  if (!showsFlows) return setText(byId('flows-note'), answer.body.error);
  const { flows, total_flows: total } = answer.body;
  tables.flows.update(flows);
  const matching = flows.length < FLOWS ? count(flows.length) : `the first ${FLOWS}`;
  const which = text === '' ? `${matching} shown` : `${matching} shown that have \u201c${text}\u201d`;
  setText(byId('flows-note'), `${count(total)} flows, ${which}`);
}

async function look() {
  const answer = await ask('api/status').catch(() => null);
  if (answer === null) return showTrouble('shaper serve does not answer');
  if (answer.status !== 200) return showTrouble(answer.body.error);
  const status = answer.body;
  const overHosts = status.limits.some((limit) => limit.scope === 'cluster');
  const cluster = overHosts ? await ask('api/cluster').catch(() => null) : null;
  shown = { status, cluster: cluster?.status === 200 ? cluster.body : null, time: Date.now() };
  history.add(status, shown.time);
  showBanner(status);
  draw();
  await lookAtFlows();
}

async function tick() {
  const begin = Date.now();
  timer = null;
  try {
    await look();
  } catch (error) {
    showTrouble(`this page does not understand the answer (${error.message})`);
  }
  if (!document.hidden) schedule(Math.max(200, PERIOD - (Date.now() - begin)));
}

function schedule(wait) {
  clearTimeout(timer);
  timer = setTimeout(tick, wait);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else schedule(0);
});
byId('chosen').addEventListener('change', () => shown && draw());
byId('sort').addEventListener('change', lookAtFlows);
byId('flow-controls').addEventListener('submit', (event) => event.preventDefault());
let typing = null;
byId('filter').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(lookAtFlows, 200);
});
new ResizeObserver(() => shown && drawCharts(shown.status, history, shown.time)).observe(byId('rate-chart'));
schedule(0);
