// The attention map: every head of every layer at a glance, and one map to read row by row.
// common.js and looking.js stand before it. The pure functions are compared with transformer_lite/explore/attending.py.

const LISTED = 5; // of the columns of a row, in the table of numbers where it would be too wide
const WIDE = 16; // columns that the table of numbers holds at most
const KINDS = ["cross", "decoder", "encoder"];

/** (n_q, n_k): one head of one layer, or the mean of the heads. */
export function mapOf(looked, kind, layer, head) {
  const heads = looked[kind][layer];
  return heads[0].map((_, i) => rowOf(heads, head, i));
}

/** Whether the causal mask hides this cell. */
export function masked(kind, row, column) {
  return kind === "decoder" && column > row;
}

/** The cell that a key goes to from [row, column] of a map of n_q rows and n_k columns; null where the key means nothing. */
export function moved(key, [row, column], [rows, columns], best) {
  const to = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: [row, 0], End: [row, columns - 1], PageUp: [0, column], PageDown: [rows - 1, column], Enter: [row, best],
  }[key];
  return to ? [Math.min(Math.max(to[0], 0), rows - 1), Math.min(Math.max(to[1], 0), columns - 1)] : null;
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

/** A small picture of a map: one pixel a cell, clear where the mask hides it. */
function thumbnail(canvas, values, kind) {
  canvas.width = values[0].length;
  canvas.height = values.length;
  const pen = canvas.getContext("2d");
  values.forEach((row, i) => row.forEach((weight, j) => {
    if (masked(kind, i, j)) return;
    pen.fillStyle = shade(weight).paper;
    pen.fillRect(j, i, 1, 1);
  }));
}

function build(model, element) {
  const tools = toolkit(model, "tl-attention");
  const { words, root, listen, set } = tools;
  const lang = model.get("lang");
  const field = sentenceField(model, tools);
  const kindName = (kind) => words[`kind_${kind}`];
  const kind = tools.choice(words.kind, "tl-kind", KINDS.map((one) => [one, kindName(one)]), (value) => set({ kind: value, preset: -1 }));
  const shape = html("span", { class: "tl-shape" });

  // The small multiples: a row for each layer, a column for each head, the mean last
  const gridPlace = html("div", { class: "tl-grid-place" });
  const gridTitle = html("p", { class: "tl-heading" }, words.grid);

  // The large map
  const title = html("p", { class: "tl-heading tl-map-title" });
  const map = focusable(html("div", { class: "tl-large", tabindex: 0, role: "application", "aria-roledescription": words.map_role }));
  const scale = html("p", { class: "tl-legend tl-scale" }, "0", html("span", { class: "tl-ramp", "aria-hidden": "true" }), "1");
  const legends = ["top", "read", "below", "masked"].map((name) => {
    const one = html("span", {}, html("span", { class: `tl-sign tl-sign-${name}`, "aria-hidden": "true" }), words[`legend_${name}`]);
    return [name, one];
  });
  scale.append(...legends.map(([, one]) => one));
  const said = html("p", { class: "tl-said" });
  const readings = html("table", { class: "tl-reading-table" });
  const reading = html("p", { class: "tl-reading-note" });
  const numbers = html("details", { class: "tl-numbers" }, focusable(html("summary", {}, words.numbers)));
  const cut = html("p", { class: "tl-legend tl-cut" }, words.cut);
  const note = html("p", { class: "tl-note" });

  const large = html("div", { class: "tl-large-place" }, title, said, map, scale);
  const beside = html("div", { class: "tl-beside" }, gridTitle, gridPlace, readings, reading);
  const stage = html("div", { class: "tl-stage" },
    html("div", { class: "tl-row tl-controls" }, kind.label, shape), html("div", { class: "tl-matrices tl-maps-beside" }, large, beside), cut, numbers);
  root.append(tools.question(), field.element, stage, tools.presets(), note, tools.status);
  element.replaceChildren(root);

  // What is shown, within the sizes of the sentence that is there
  const state = () => {
    const looked = model.get("looked");
    const now = { kind: model.get("kind"), looked };
    const weights = looked[now.kind];
    now.layer = Math.min(model.get("layer"), weights.length - 1);
    now.head = Math.min(model.get("head"), weights[0].length - 1);
    now.row = Math.min(model.get("row"), weights[0][0].length - 1);
    now.column = Math.min(model.get("column"), weights[0][0][0].length - 1);
    return now;
  };
  const sideOf = (one) => (one === "decoder" ? "target" : "source");
  const queriesOf = (looked, one) =>
    one === "encoder" ? looked.source.map((held) => ({ held })) : looked.held.map((held, i) => ({ held, predicted: looked.target[i] }));
  const keysOf = (looked, one) => (one === "decoder" ? looked.held : looked.source);
  const labelOf = ({ held, predicted }) => (predicted ? `${held.token} → ${predicted.token}` : held.token);
  const rowName = ({ held, predicted }) =>
    predicted
      ? fill(words.row, { held: held.token, predicted: named(predicted, "target", lang, words) })
      : named(held, "source", lang, words);

  // The grid is made anew for another sentence or kind; its buttons move by the arrow keys.
  let grid = null;
  const choose = (layer, head) => set({ layer, head, preset: -1 });
  const remakeGrid = ({ looked, kind: one }) => {
    const weights = looked[one];
    const heads = [...weights[0].keys(), MEAN];
    const top = html("tr", {}, html("td"),
      ...heads.map((head) => html("th", { scope: "col" }, head === MEAN ? words.grid_mean : headName(head, words))));
    const buttons = weights.map((_, layer) => heads.map((head) => {
      const canvas = html("canvas", { "aria-hidden": "true" });
      const button = focusable(html("button", { type: "button", class: "tl-thumb" }, canvas));
      button.setAttribute("aria-label", fill(words.thumb, { layer: layerName(layer, words), head: headName(head, words) }));
      button.addEventListener("click", () => choose(layer, head));
      thumbnail(canvas, mapOf(looked, one, layer, head), one);
      return button;
    }));
    const body = html("tbody", {}, ...buttons.map((row, layer) =>
      html("tr", {}, html("th", { scope: "row" }, layerName(layer, words)), ...row.map((button) => html("td", {}, button)))));
    gridPlace.replaceChildren(html("table", { class: "tl-grid" }, html("thead", {}, top), body));
    grid = { looked, kind: one, heads, buttons };
  };
  listen(gridPlace, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { layer, head } = state();
    const at = grid.heads.indexOf(head);
    const to = moved(event.key, [layer, at], [grid.buttons.length, grid.heads.length], at);
    if (!to || event.key === "Enter") return;
    event.preventDefault();
    choose(to[0], grid.heads[to[1]]);
    grid.buttons[to[0]][to[1]].focus();
  });

  // The large map is made anew for another sentence or kind, painted for another head, and marked when the cursor moves.
  let shown = null;
  let pointed = null; // the cell under the pointer
  const remakeMap = ({ looked, kind: one }) => {
    const queries = queriesOf(looked, one);
    const keys = keysOf(looked, one);
    const [querySide, keySide] = [one === "encoder" ? "source" : "target", sideOf(one)];
    const many = Math.max(queries.length, keys.length);
    const corner = `${words[one === "encoder" ? "corner_encoder" : "corner_decoder"]}\n${words[`column_${one}`]}`;
    const rows = queries.map((query) => ({ token: labelOf(query), gloss: (query.predicted ?? query.held).gloss, own: SIDES[querySide] }));
    const columns = keys.map(({ token, gloss }) => ({ token, gloss, own: SIDES[keySide] }));
    const table = matrixTable({ caption: "", corner, rows, columns, lang });
    table.title.remove(); // the heading above says it
    for (const gloss of table.table.querySelectorAll(".tl-gloss")) {
      const side = gloss.closest("thead") ? keySide : querySide;
      gloss.lang = glossLang(gloss.textContent, side, lang);
    }
    table.table.classList.add(many <= 8 ? "tl-few" : many <= 12 ? "tl-some" : many <= 20 ? "tl-lots" : "tl-most");
    map.replaceChildren(table.table);
    shown = { looked, kind: one, queries, keys, keySide, table, numbered: many <= 12, marks: [] };
  };
  const paintMap = ({ looked, kind: one, layer, head }) => {
    const values = mapOf(looked, one, layer, head);
    values.forEach((row, i) => {
      const best = heaviest(row);
      row.forEach((weight, j) => {
        const cell = shown.table.cells[i][j];
        cell.classList.toggle("tl-top", j === best);
        if (masked(one, i, j)) cell.classList.add("tl-masked");
        else paint(cell, weight, shown.numbered ? number(weight) : "");
      });
    });
    Object.assign(shown, { layer, head, values });
    fillNumbers();
  };
  const fillNumbers = () => {
    if (!numbers.open) return;
    const { values, queries, keys, kind: one } = shown;
    const wide = keys.length > WIDE;
    const names = wide ? Array.from({ length: LISTED }, (_, i) => fill(words.numbers_rank, { rank: i + 1 })) : keys.map(({ token }) => token);
    const head = html("tr", {}, ...[words.numbers_corner, ...names].map((name) => html("th", { scope: "col" }, name)));
    const body = values.map((row, i) => {
      const cells = wide
        ? heaviestFirst(row, LISTED).map((j) => fill(words.numbers_cell, { token: keys[j].token, weight: number(row[j], 3) }))
        : row.map((weight, j) => (masked(one, i, j) ? "–" : number(weight, 3)));
      return html("tr", {}, html("th", { scope: "row" }, labelOf(queries[i])), ...cells.map((cell) => html("td", {}, cell)));
    });
    numbers.querySelector("table")?.remove();
    numbers.append(html("table", {}, html("caption", {}, title.textContent), html("thead", {}, head), html("tbody", {}, ...body)));
  };
  listen(numbers, "toggle", fillNumbers);

  const readout = (row, column) => {
    const { values, queries, keys, keySide, kind: one } = shown;
    const { held, predicted } = queries[row];
    const name = predicted
      ? fill(words.row_decoder, { held: named(held, "target", lang, words), predicted: named(predicted, "target", lang, words) })
      : fill(words.row_encoder, { token: named(held, "source", lang, words) });
    const given = { row: name, column: named(keys[column], keySide, lang, words), weight: number(values[row][column]) };
    return fill(masked(one, row, column) ? words.cell_masked : words.cell, given);
  };
  const most = (row) => {
    const { values, queries, keys, keySide } = shown;
    const best = heaviest(values[row]);
    return fill(words.most, { row: rowName(queries[row]), token: named(keys[best], keySide, lang, words), weight: number(values[row][best]) });
  };
  /** Mark the cell and its rows, and say them; the pointer's cell is shown without being chosen. */
  const mark = () => {
    const now = state();
    const [row, column] = pointed ?? [now.row, now.column];
    for (const [part, name] of shown.marks) part.classList.remove(name);
    const { table, values, kind: one } = shown;
    const marks = [[table.cells[row][column], "tl-cursor"], [table.lines[row], "tl-on"]];
    const heads = table.table.tHead.rows[0].cells;
    marks.push([heads[column + 1], "tl-on"]);
    const decodes = one !== "encoder";
    const below = decodes && row + 1 < values.length;
    if (below) marks.push([table.lines[row + 1], "tl-next-row"]);
    for (const [part, name] of marks) part.classList.add(name);
    shown.marks = marks;

    said.textContent = readout(row, column);
    map.setAttribute("aria-label", `${title.textContent}. ${said.textContent}`);
    const line = (name, className, told) => html("tr", { class: className }, html("th", { scope: "row" }, name), html("td", {}, told));
    readings.hidden = !decodes;
    readings.replaceChildren(html("caption", {}, words.reading), html("tbody", {},
      line(words.read_row, "tl-is-read", most(row)), line(words.row_below, "tl-is-below", below ? most(row + 1) : words.no_row_below)));
    reading.textContent = { cross: words.which, decoder: words.which_decoder, encoder: words.reading_encoder }[one];
  };
  const cellOf = (event) => {
    const cell = event.target.closest?.(".tl-cell");
    return cell ? [cell.parentElement.rowIndex - 1, cell.cellIndex - 1] : null;
  };
  listen(map, "pointerover", (event) => {
    pointed = cellOf(event);
    mark();
  });
  listen(map, "pointerleave", () => {
    pointed = null;
    mark();
  });
  listen(map, "click", (event) => {
    const cell = cellOf(event);
    if (cell) set({ row: cell[0], column: cell[1] });
  });
  listen(map, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { row, column } = state();
    const { values } = shown;
    const to = moved(event.key, [row, column], [values.length, values[0].length], heaviest(values[row]));
    if (!to) return;
    event.preventDefault();
    pointed = null;
    set({ row: to[0], column: to[1] });
  });

  const draw = () => {
    const now = state();
    if (shown?.looked === now.looked && shown.kind !== now.kind) {
      // Another attention has other columns: the cursor goes to the heaviest of its row.
      const best = heaviest(mapOf(now.looked, now.kind, now.layer, now.head)[now.row]);
      if (best !== model.get("column")) return set({ row: now.row, column: best });
    }
    field.show();
    if (grid?.looked !== now.looked || grid.kind !== now.kind) remakeGrid(now);
    kind.select.value = now.kind;
    shape.textContent = fill(words[`shape_${now.kind}`], { n: now.looked.source.length, m: now.looked.held.length });
    grid.buttons.forEach((row, layer) => row.forEach((button, i) => {
      const on = layer === now.layer && grid.heads[i] === now.head;
      button.setAttribute("aria-pressed", String(on));
      button.tabIndex = on ? 0 : -1;
    }));
    title.textContent = fill(words.map, { kind: kindName(now.kind), layer: layerName(now.layer, words), head: headName(now.head, words) });
    const differs = (name) => shown?.[name] !== now[name];
    if (["looked", "kind"].some(differs)) {
      pointed = null;
      remakeMap(now);
    }
    if (["layer", "head"].some(differs)) paintMap(now); // a map made anew has neither
    for (const [name, one] of legends) {
      one.hidden = name === "masked" ? now.kind !== "decoder" : name !== "top" && now.kind === "encoder";
    }
    cut.hidden = !now.looked.cropped;
    mark();
    note.textContent = tools.note();
    tools.speak([title.textContent, said.textContent, now.kind === "encoder" ? "" : most(now.row)].join(" "));
  };
  tools.watch(["kind", "layer", "head", "row", "column", "preset", "looked", "asked", "answered", "trouble", "doubts"], draw);
  return tools.close;
}

export default { render: mounted(build) };
