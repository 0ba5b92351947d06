// Tables that are brought up to date in place: text that somebody has selected stays selected. All that comes from the
// daemon is set as text, never as HTML.

import { drawSpark } from './chart.js';

export function make(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A small screen lays rows out as grids, which makes browsers forget what the elements are. */
function withRole(element, role) {
  element.setAttribute('role', role);
  return element;
}

/** A cell of {text, note, small, bar: {share, guarantee}, spark: {points, now, top}}; all but `text` may be absent. */
function fill(cell, { text = '', note = '', small = '', bar = null, spark = null }) {
  const part = (name, tag, wanted) => {
    let found = cell.querySelector(`.${name}`);
    if (wanted && !found) cell.append((found = make(tag, name)));
    if (!wanted && found) found.remove();
    return wanted ? found : null;
  };
  setText(part('text', 'span', true), text);
  const noteIn = part('cell-note', 'span', note !== '');
  if (noteIn) setText(noteIn, note);
  const smallIn = part('narrow-only', 'span', small !== '');
  if (smallIn) setText(smallIn, small);
  const barIn = part('gauge', 'div', bar !== null);
  if (barIn) fillBar(barIn, bar);
  let line = cell.querySelector('svg');
  if (spark && !line) {
    line = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    line.setAttribute('class', 'spark');
    line.setAttribute('aria-hidden', 'true');
    cell.append(line);
  }
  if (spark) drawSpark(line, spark.points, spark.now, spark.top);
  if (!spark && line) line.remove();
}

function fillBar(box, { share, guarantee = null }) {
  if (!box.firstChild) box.append(make('div', 'used'), make('div', 'tick'));
  const [used, tick] = box.children;
  used.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
  used.classList.toggle('full', share >= 0.95);
  tick.hidden = guarantee === null || guarantee >= 1;
  if (!tick.hidden) tick.style.left = `${(100 * guarantee).toFixed(1)}%`;
}

export class Table {
  #columns;
  #body = withRole(make('tbody'), 'rowgroup');

  /** `columns` are {title, cell, numeric, wide, head}: `cell` makes a cell of a row, `wide` is for wide screens only. */
  constructor(table, caption, columns) {
    this.#columns = columns;
    const line = withRole(make('tr'), 'row');
    for (const column of columns) {
      const title = withRole(make('th', this.#classes(column), column.title), 'columnheader');
      title.scope = 'col';
      line.append(title);
    }
    const head = withRole(make('thead'), 'rowgroup');
    head.append(line);
    withRole(table, 'table');
    table.append(make('caption', 'unseen', caption), head, this.#body);
  }

  #classes(column) {
    return [column.numeric ? 'number' : '', column.wide ? 'wide' : '', column.name ?? ''].join(' ').trim();
  }

  /** `rows` are what `cell` gets; `kind` of a row is the class of its line. */
  update(rows) {
    while (this.#body.rows.length > rows.length) this.#body.deleteRow(-1);
    rows.forEach((row, index) => {
      const line = this.#body.rows[index] ?? this.#addRow();
      line.className = row.kind ?? '';
      this.#columns.forEach((column, at) => fill(line.cells[at], column.cell(row)));
    });
  }

  #addRow() {
    const line = withRole(this.#body.insertRow(), 'row');
    for (const column of this.#columns) {
      const cell = make(column.head ? 'th' : 'td', this.#classes(column));
      withRole(cell, column.head ? 'rowheader' : 'cell');
      if (column.head) cell.scope = 'row';
      line.append(cell);
    }
    return line;
  }
}

/** Brings a list of sentences up to date: {text, level}. */
export function updateList(list, items) {
  list.hidden = items.length === 0;
  while (list.children.length > items.length) list.lastChild.remove();
  items.forEach((item, index) => {
    const line = list.children[index] ?? list.appendChild(make('li'));
    line.dataset.level = item.level;
    if (!line.firstChild) line.append(make('strong'), ' ', make('span'));
    setText(line.children[0], item.name ?? '');
    setText(line.children[1], item.text);
  });
}
