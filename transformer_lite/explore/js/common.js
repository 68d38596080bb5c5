// Shared by the explorers in the browser: every explorer's module is this text followed by its own (see `script` in controls.py).

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/** A number as a learner reads it: two decimals, a true minus sign, never −0.00. */
export function number(value, digits = 2) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** Fill {names} in a text from the message catalogue. */
export function fill(template, parameters) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => (name in parameters ? String(parameters[name]) : whole));
}

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children); // strings become text, never markup
  return element;
}

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function focusable(element) {
  // JupyterLab takes arrow keys and letters from any focused element that does not say this itself.
  element.dataset.lmSuppressShortcuts = "true";
  return element;
}

/**
 * What an explorer in the browser is built from: its root, listeners that are let go of when it closes, the question with its folded
 * answer, a row of presets, named sliders, and a line that is spoken. `strings` holds guess, question, open_answer, answer, presets, reset.
 */
function toolkit(model, kind) {
  const words = model.get("strings");
  const root = html("div", { class: `tl-root ${kind}`, lang: model.get("lang") });
  const cleanups = [];
  const listen = (target, event, handler) => {
    target.addEventListener(event, handler);
    cleanups.push(() => target.removeEventListener(event, handler));
  };
  listen(root, "keydown", (event) => event.stopPropagation());

  let changing = false;
  let draw = () => {};
  const redraw = () => changing || draw();
  /** Change several traits and draw once. */
  const set = (changes) => {
    changing = true;
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    changing = false;
    model.save_changes();
    draw();
  };
  /** Call `handler` now and whenever one of the traits changes. */
  const watch = (names, handler) => {
    draw = handler;
    for (const name of names) {
      model.on(`change:${name}`, redraw);
      cleanups.push(() => model.off(`change:${name}`, redraw));
    }
    draw();
  };

  const question = () => {
    const answer = html("details", {}, focusable(html("summary", {}, words.open_answer)), html("p", {}, words.answer));
    return html("div", { class: "tl-question" }, html("p", {}, html("strong", {}, words.guess), words.question), answer);
  };
  const button = (name, className, handler) => {
    const made = focusable(html("button", { type: "button", class: className }, name));
    listen(made, "click", handler);
    return made;
  };
  /** Buttons for the presets ({label, note, title, ...state}) and for going back to the first state; `note()` is what to say now. */
  const presets = () => {
    const row = html("div", { class: "tl-presets tl-row", role: "group", "aria-label": words.presets }, html("span", {}, words.presets));
    model.get("presets").forEach(({ label, note, title, ...state }, i) => {
      const one = button(label, "tl-preset", () => set({ preset: i, ...state }));
      if (title) one.title = title; // a tooltip
      row.append(one);
    });
    row.append(button(words.reset, "tl-reset", () => set({ preset: -1, ...model.get("initial") })));
    return row;
  };
  const note = () => model.get("presets")[model.get("preset")]?.note ?? words.hint;
  /** A range input with its name and its value beside it; `show(value, text)` sets both. */
  const slider = (name, className, attributes, handler) => {
    const input = focusable(html("input", { type: "range", class: className, "aria-label": name, ...attributes }));
    const shown = html("span", { class: "tl-shown", "aria-hidden": "true" }); // the input's aria-valuetext says it
    listen(input, "input", () => handler(Number(input.value)));
    const show = (value, text = String(value)) => {
      input.value = value;
      shown.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    return { input, label: html("label", {}, name, shown, input), show };
  };
  const choice = (name, className, options, handler) => {
    const select = focusable(html("select", { class: className, "aria-label": name }));
    for (const [value, label] of options) select.append(html("option", { value }, label));
    listen(select, "change", () => handler(select.value));
    return { select, label: html("label", {}, `${name} `, select) };
  };
  const tick = (name, className, handler) => {
    const input = focusable(html("input", { type: "checkbox", class: className }));
    listen(input, "change", () => handler(input.checked));
    return { input, label: html("label", {}, input, name) };
  };

  const status = html("span", { class: "tl-hidden", role: "status", "aria-live": "polite" });
  let speaking = 0;
  const speak = (text) => {
    clearTimeout(speaking); // a held key must not make a screen reader read every step
    speaking = setTimeout(() => (status.textContent = text), 500);
  };
  cleanups.push(() => clearTimeout(speaking));
  const close = () => cleanups.splice(0).forEach((clean) => clean());
  return { words, root, cleanups, listen, set, watch, question, button, presets, note, slider, choice, tick, status, speak, close };
}

/** The `render` of an explorer: `build(model, element)` draws it and returns how to close it; a change of language builds it anew. */
function mounted(build, structure = ["strings", "presets"]) {
  return ({ model, el }) => {
    let close = build(model, el);
    const rebuild = () => {
      close();
      close = build(model, el);
    };
    for (const name of structure) model.on(`change:${name}`, rebuild);
    return () => {
      close();
      for (const name of structure) model.off(`change:${name}`, rebuild);
    };
  };
}

// --- Maths on matrices (arrays of rows) ---

/** a (n, m) times b (m, p). */
function multiplied(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, i) => sum + x * b[i][j], 0)));
}

/** The softmax of one row; all zeros where every score is −∞. */
export function rowSoftmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const exponentials = scores.map((score) => Math.exp(score - largest));
  const total = exponentials.reduce((sum, x) => sum + x, 0);
  return exponentials.map((x) => x / total);
}

/** QKᵀ / √d_k: queries (n_q, d_k), keys (n_k, d_k). */
function scoresOf(queries, keys) {
  const root = Math.sqrt(queries[0].length);
  return queries.map((query) => keys.map((key) => query.reduce((sum, component, c) => sum + component * key[c], 0) / root));
}

/** [i][j]: whether row i of run(x) moves when row j of x does; each row is nudged twice, as in equations.influence_matrix. */
export function influenceOf(run, x) {
  const still = run(x);
  const d = x[0].length;
  const step = (from, to) => Array.from({ length: d }, (_, i) => from + ((to - from) * i) / (d - 1));
  const moved = still.map(() => x.map(() => false));
  x.forEach((_, j) => {
    for (const direction of [step(0.5, 1), step(-0.9, -0.3)]) {
      const output = run(x.map((row, i) => (i === j ? row.map((component, c) => component + direction[c]) : row)));
      output.forEach((row, i) => {
        moved[i][j] ||= row.some((component, c) => Math.abs(component - still[i][c]) > 1e-9);
      });
    }
  });
  return moved;
}

// --- Matrices: tables whose cells are weights, in a shade of cividis with the number on it ---

const CIVIDIS = [[0, 34, 78], [0, 49, 112], [42, 63, 109], [67, 78, 108], [87, 93, 109], [106, 108, 113], [125, 124, 120],
  [145, 139, 120], [165, 156, 116], [188, 174, 108], [210, 192, 96], [233, 211, 78], [254, 232, 56]];

/** The colour of a value from 0 to 1, and black or white, whichever can be read on it (WCAG relative luminance). */
export function shade(value) {
  const at = Math.min(Math.max(value, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const rgb = CIVIDIS[low].map((c, i) => Math.round(c + (at - low) * (CIVIDIS[low + 1][i] - c)));
  const linear = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return { paper: `rgb(${rgb.join(", ")})`, ink: luminance > 0.179 ? "black" : "white" };
}

/** A table cell that shows a weight: `paint(cell, weight)`. */
function paint(cell, weight, text = number(weight)) {
  const { paper, ink } = shade(weight);
  cell.textContent = text;
  cell.style.background = paper;
  cell.style.color = ink;
}

/** A token's header cell; `gloss` is the token in the other language than its own. Column heads stand upright to stay narrow. */
function tokenHead(scope, { token, gloss, own }, lang) {
  const name = html("span", { class: "tl-token", lang: own ?? lang }, token);
  if (gloss) name.append(html("span", { class: "tl-gloss", lang: (own ?? lang) === "ja" ? "en" : "ja" }, gloss));
  return html("th", { scope }, name);
}

/**
 * A matrix as a table. `rows` and `columns` hold {token, gloss, own: its language}; `more` names further columns. Gives
 * the table, its title, its cells [i][j] (td), the cells of the further columns [i][number], and its lines (tr).
 */
function matrixTable({ caption, corner = "", rows, columns, more = [], lang }) {
  const head = html("tr", {}, html("td", { class: "tl-corner" }, corner));
  head.append(...columns.map((column) => tokenHead("col", column, lang)));
  head.append(...more.map((name) => html("th", { scope: "col", class: "tl-more" }, name)));
  const body = html("tbody");
  const made = rows.map((row) => {
    const cells = columns.map(() => html("td", { class: "tl-cell" }));
    const extra = more.map(() => html("td", { class: "tl-more" }));
    const line = html("tr", {}, tokenHead("row", row, lang), ...cells, ...extra);
    body.append(line);
    return { cells, extra, line };
  });
  const title = html("caption", {}, caption);
  const table = html("table", { class: "tl-matrix" }, title, html("thead", {}, head), body);
  const all = (part) => made.map((row) => row[part]);
  return { table, title, cells: all("cells"), more: all("extra"), lines: all("line") };
}
