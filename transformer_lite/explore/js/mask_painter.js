// The mask painter: paint who may attend to whom, and see the weights, the influence matrix and the leaks.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/masks.py.

/** Self-attention of x (n, d) under mask (n, n); `way` says how hidden cells are hidden: "before", "after" or "zero". */
export function layer(x, [wQ, wK, wV, wO], mask, way) {
  const hidden = way === "zero" ? 0 : -Infinity;
  const weights = scoresOf(multiplied(x, wQ), multiplied(x, wK)).map((scores, i) => {
    const row = rowSoftmax(scores.map((score, j) => (mask[i][j] || way === "after" ? score : hidden)));
    return way === "after" ? row.map((weight, j) => (mask[i][j] ? weight : 0)) : row;
  });
  return { weights, output: multiplied(multiplied(weights, multiplied(x, wV)), wO) };
}

/** Which outputs (rows) of the stacked layers move when an input (column) moves. */
export function influence(x, stack, mask, way) {
  return influenceOf((start) => stack.reduce((output, projections) => layer(output, projections, mask, way).output, start), x);
}

/** How many pairs leak: {future: real tokens that see a later one, pad: real tokens that see PAD}. */
export function leaks(moved, nReal) {
  let [future, pad] = [0, 0];
  moved.slice(0, nReal).forEach((row, i) =>
    row.forEach((yes, j) => {
      if (yes && j >= nReal) pad += 1;
      else if (yes && j > i) future += 1;
    }),
  );
  return { future, pad };
}

/** The mask with `n` rows: what was painted stays, what is new is open. */
export function resize(mask, n) {
  return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => mask[i]?.[j] ?? true));
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

function build(model, element) {
  const tools = toolkit(model, "tl-masks");
  const { words, root, listen, set } = tools;
  const lang = model.get("lang");
  const nReal = model.get("n_real");
  const nPadded = model.get("tokens").length;
  const tokens = model.get("tokens").map((token, i) => ({ token, gloss: model.get("glosses")[i] }));
  const name = (i) => tokens[i].token;
  const place = html("div", { class: "tl-matrices" });
  let shown = null; // the tables of the mask's present size
  let cursor = [0, nReal - 1];

  const toggle = (i, j, value = !model.get("mask")[i][j]) => {
    const mask = model.get("mask").map((row) => row.slice());
    if (mask[i][j] === value) return;
    mask[i][j] = value;
    set({ mask, preset: -1 });
  };

  const moveCursor = (i, j, focus = true) => {
    const n = shown.cells.length;
    shown.buttons[cursor[0]]?.[cursor[1]]?.setAttribute("tabindex", -1);
    cursor = [Math.min(Math.max(i, 0), n - 1), Math.min(Math.max(j, 0), n - 1)];
    const button = shown.buttons[cursor[0]][cursor[1]];
    button.setAttribute("tabindex", 0);
    if (focus) button.focus();
    mark();
  };
  const mark = () => {
    for (const table of [shown.mask, shown.weights, shown.influence]) {
      table.lines.forEach((line, i) => line.classList.toggle("tl-on", i === cursor[0]));
    }
  };

  const tables = (n) => {
    const here = tokens.slice(0, n);
    const parts = { rows: here, columns: here, lang };
    const corner = `${words.row_query}\n${words.column_key}`;
    const mask = matrixTable({ ...parts, caption: words.mask, corner });
    const weights = matrixTable({ ...parts, caption: "", corner, more: [words.row_sum] });
    const moved = matrixTable({ ...parts, caption: "", corner: `${words.row_output}\n${words.column_input}` });
    mask.table.classList.add("tl-paint");
    weights.table.classList.add("tl-shown-weights");
    moved.table.classList.add("tl-reach");
    const buttons = mask.cells.map((row, i) =>
      row.map((cell, j) => {
        const button = focusable(html("button", { type: "button", tabindex: -1, "data-row": i, "data-column": j }));
        cell.append(button);
        return button;
      }),
    );
    place.classList.toggle("tl-many", n > nReal);
    const legend = html("p", { class: "tl-legend" }, words.legend);
    place.replaceChildren(html("div", {}, mask.table), html("div", {}, weights.table), html("div", {}, moved.table, legend));
    shown = { cells: mask.cells, mask, weights, influence: moved, buttons };
    moveCursor(...cursor, false);

    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -n], End: [0, n] };
    listen(mask.table, "keydown", (event) => {
      const step = steps[event.key];
      if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      moveCursor(cursor[0] + step[0], cursor[1] + step[1]);
    });
    let brush = null; // the value that a drag paints
    let painted = false; // the click that follows a press must not undo it
    const cellAt = (event) => {
      const hit = document.elementFromPoint(event.clientX, event.clientY)?.closest("button[data-row]");
      return hit && mask.table.contains(hit) ? [Number(hit.dataset.row), Number(hit.dataset.column)] : null;
    };
    listen(mask.table, "pointerdown", (event) => {
      const cell = event.button === 0 && cellAt(event);
      if (!cell) return;
      event.preventDefault();
      brush = !model.get("mask")[cell[0]][cell[1]];
      painted = true;
      moveCursor(...cell);
      toggle(...cell, brush);
    });
    listen(mask.table, "pointermove", (event) => {
      const cell = brush !== null && cellAt(event);
      if (!cell) return;
      if (cell[0] !== cursor[0] || cell[1] !== cursor[1]) moveCursor(...cell);
      toggle(...cell, brush);
    });
    listen(mask.table, "click", (event) => {
      const hit = event.target.closest("button[data-row]");
      if (hit && !painted) toggle(Number(hit.dataset.row), Number(hit.dataset.column));
      painted = false;
    });
  };
  // A press may end outside the table.
  let letGo = () => {};
  for (const end of ["pointerup", "pointercancel"]) listen(window, end, () => letGo());

  // Lights
  const light = (className) => {
    const lamp = html("span", { class: "tl-lamp", "aria-hidden": "true" });
    const text = html("span");
    const line = html("span", { class: `tl-light ${className}` }, lamp, text);
    const show = (on, words) => {
      line.classList.toggle("tl-lit", on);
      lamp.textContent = on ? "!" : "✓";
      text.textContent = words;
    };
    return { line, show };
  };
  const future = light("tl-future");
  const pad = light("tl-pad");
  const empty = html("span", { class: "tl-empty" });
  const lamps = html("div", { class: "tl-row tl-lamps", role: "group", "aria-label": words.lamps }, future.line, pad.line, empty);

  // Controls
  const group = `tl-layers-${Math.random().toString(36).slice(2)}`;
  const radios = [1, 2].map((layers) => {
    const input = focusable(html("input", { type: "radio", name: group, value: layers, class: `tl-layers-${layers}` }));
    listen(input, "change", () => set({ layers }));
    return { input, label: html("label", {}, input, words[`layer_${layers}`]) };
  });
  const layerChoice = html("fieldset", {}, html("legend", {}, words.layers), ...radios.map((radio) => radio.label));
  const ways = ["before", "after", "zero"].map((way) => [way, words[`way_${way}`]]);
  const way = tools.choice(words.way, "tl-way", ways, (value) => set({ way: value }));
  const pads = tools.tick(words.pads, "tl-pads", (on) =>
    set({ mask: resize(model.get("mask"), on ? nPadded : nReal), preset: -1 }),
  );
  const controls = html("div", { class: "tl-row" }, layerChoice, way.label, pads.label);
  const note = html("p", { class: "tl-note" });
  root.append(tools.question(), place, lamps, controls, tools.presets(), note, tools.status);
  element.replaceChildren(root);

  const draw = () => {
    const mask = model.get("mask");
    const n = mask.length;
    if (shown?.cells.length !== n) tables(n);
    const layers = model.get("layers");
    const x = model.get("vectors").slice(0, n);
    const stack = model.get("projections").slice(0, layers);
    const { weights } = layer(x, stack[0], mask, model.get("way"));
    const moved = influence(x, stack, mask, model.get("way"));
    const found = leaks(moved, nReal);

    shown.weights.title.textContent = words[`weights_${layers}`];
    shown.influence.title.textContent = words[`influence_${layers}`];
    mask.forEach((row, i) =>
      row.forEach((open, j) => {
        const button = shown.buttons[i][j];
        button.textContent = open ? "✓" : "×";
        button.classList.toggle("tl-may", open);
        button.setAttribute("aria-pressed", open);
        const label = { row: name(i), column: name(j), state: open ? words.open : words.closed };
        button.setAttribute("aria-label", fill(words.cell, label));
        paint(shown.weights.cells[i][j], weights[i][j], weights[i][j] === 0 ? "0" : number(weights[i][j]));
        const cell = shown.influence.cells[i][j];
        const leak = moved[i][j] && i < nReal && j > i;
        cell.textContent = leak ? "!" : moved[i][j] ? "●" : "";
        cell.classList.toggle("tl-reached", moved[i][j]);
        cell.classList.toggle("tl-leaking", leak);
        const spoken = { row: name(i), column: name(j), state: moved[i][j] ? words.moves : words.stays };
        cell.setAttribute("aria-label", fill(words.influence_cell, spoken));
      }),
    );
    const sums = weights.map((row) => row.reduce((sum, weight) => sum + weight, 0));
    sums.forEach((sum, i) => {
      shown.weights.more[i][0].textContent = number(sum);
      shown.weights.more[i][0].classList.toggle("tl-off", Math.abs(sum - 1) > 1e-6);
    });

    const blank = sums.flatMap((sum, i) => (sum === 0 ? [name(i)] : []));
    const lines = [found.future ? fill(words.leak, { n: found.future }) : words.clean];
    future.show(found.future > 0, lines[0]);
    if (n > nReal) lines.push(found.pad ? fill(words.pad_leak, { n: found.pad }) : words.pad_clean);
    pad.show(found.pad > 0, lines[1] ?? "");
    pad.line.hidden = n === nReal;
    if (blank.length) lines.push(fill(words.empty, { tokens: blank.join(words.comma) }));
    empty.textContent = blank.length ? lines[lines.length - 1] : "";

    radios.forEach((radio, i) => (radio.input.checked = i + 1 === layers));
    way.select.value = model.get("way");
    pads.input.checked = n > nReal;
    note.textContent = tools.note();
    tools.speak(lines.join(" "));
  };
  tools.watch(["mask", "layers", "way", "preset"], draw);
  return tools.close;
}

const render = mounted(build);
export default { render };
