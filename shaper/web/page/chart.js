// A chart of lines over time, as SVG. Lines differ by dashes as well as by colour.

import { SPAN } from './history.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 190;
const EDGE = { left: 78, right: 10, top: 10, bottom: 20 };
const MINUTE = 60_000; // ms
const GAP = 4000; // ms without a sample: nothing is drawn

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A round number that is at least `value`, and the step between the lines of the scale. */
function scaleFor(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  const step = [0.25, 0.5, 1, 2, 2.5].map((n) => n * power).find((n) => value <= 4 * n) ?? 5 * power;
  return { top: Math.ceil(value / step - 1e-9) * step, step };
}

function path(points, x, y) {
  let text = '';
  let before = null;
  for (const [time, value] of points) {
    if (value === null) {
      before = null;
      continue;
    }
    text += `${before !== null && time - before < GAP ? 'L' : 'M'}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    before = time;
  }
  return text;
}

/** Whole minutes that hold all samples since `first`: one at least, five at most. */
const minutesSince = (first, now) => Math.min(SPAN / MINUTE, Math.max(1, Math.ceil((now - first) / MINUTE)));

/**
 * Draws into `box`. `lines` are {name, points, style}, `marks` {name, value}: levels. `format` writes a value of the
 * scale, `least` is the least height of it.
 */
export function drawChart(box, title, { lines, marks = [], format, least, now }) {
  const width = Math.max(240, box.clientWidth);
  const minutes = minutesSince(Math.min(now, ...lines.flatMap((line) => line.points[0]?.[0] ?? now)), now);
  const span = minutes * MINUTE;
  const from = now - span;
  const highest = Math.max(least, ...lines.flatMap((line) => line.points.map(([, value]) => value ?? 0)));
  const shown = marks.filter((mark) => mark.value <= 1.6 * highest);
  const scale = scaleFor(1.02 * Math.max(highest, ...shown.map((mark) => mark.value)));
  const x = (time) => EDGE.left + ((width - EDGE.left - EDGE.right) * (time - from)) / span;
  const y = (value) => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * value) / scale.top;

  const svg = element('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: 'img' });
  svg.append(element('title', {}, title));
  for (let value = 0; value <= scale.top * 1.001; value += scale.step) {
    svg.append(element('line', { class: 'grid', x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    svg.append(element('text', { class: 'tick', x: EDGE.left - 6, y: y(value) + 4, 'text-anchor': 'end' }, value === 0 ? '0' : format(value)));
  }
  const step = Math.min(60, 15 * minutes); // seconds
  for (let ago = 0; ago <= 60 * minutes; ago += step) {
    const text = ago === 0 ? 'now' : ago % 60 === 0 ? `\u2212${ago / 60} min` : `\u2212${ago} s`;
    const anchor = ago === 0 ? 'end' : 'middle';
    svg.append(element('text', { class: 'tick', x: x(now - 1000 * ago), y: HEIGHT - 4, 'text-anchor': anchor }, text));
  }
  for (const mark of shown) {
    svg.append(element('line', { class: 'mark', x1: EDGE.left, x2: width - EDGE.right, y1: y(mark.value), y2: y(mark.value) }));
    svg.append(element('text', { class: 'mark-name', x: EDGE.left + 4, y: y(mark.value) - 4 }, mark.name));
  }
  for (const line of lines) {
    const visible = line.points.filter(([time]) => time >= from);
    svg.append(element('path', { class: `line style-${line.style}`, d: path(visible, x, y) }));
  }
  box.replaceChildren(svg);
}

/** A small line beside a row. */
export function drawSpark(svg, points, now, top) {
  const [width, height] = [110, 22];
  const span = MINUTE * minutesSince(points[0]?.[0] ?? now, now);
  const x = (time) => (width * (time - now + span)) / span;
  const y = (value) => height - 1 - ((height - 2) * value) / Math.max(1, top);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  if (!svg.firstChild) svg.append(element('path', { class: 'line style-0' }));
  svg.firstChild.setAttribute('d', path(points.filter(([time]) => time >= now - span), x, y));
}

export function swatch(style) {
  const svg = element('svg', { class: 'swatch', viewBox: '0 0 28 8', 'aria-hidden': 'true' });
  svg.append(element('path', { class: `line style-${style}`, d: 'M1 4H27' }));
  return svg;
}
