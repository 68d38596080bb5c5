// The wiring board: plug Q, K and V into their sources, and see which attention it is, its map and its influence matrix.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/wiring.py.

const SOURCES = ["x", "memory", "y"];
const SOCKETS = { query_from: "Q", key_from: "K", value_from: "V" };

/** {weights (n_q, n_k), output (n_q, d), or null where keys and values differ in number}. `vectors` holds x, memory and y. */
export function attend(vectors, [wQ, wK, wV, wO], { query_from, key_from, value_from, causal }) {
  const scores = scoresOf(multiplied(vectors[query_from], wQ), multiplied(vectors[key_from], wK));
  const weights = scores.map((row, i) => rowSoftmax(row.map((score, j) => (causal && j > i ? -Infinity : score))));
  const values = vectors[value_from];
  const fits = values.length === weights[0].length;
  return { weights, output: fits ? multiplied(multiplied(weights, multiplied(values, wV)), wO) : null };
}

/** [i][j]: whether output i moves when row j of x, memory and y (below one another) does; null where there is no output. */
export function influence(vectors, projections, wiring) {
  if (!attend(vectors, projections, wiring).output) return null;
  const rows = SOURCES.flatMap((name) => vectors[name]);
  const run = (moved) => {
    let from = 0;
    const cut = SOURCES.map((name) => [name, moved.slice(from, (from += vectors[name].length))]);
    return attend(Object.fromEntries(cut), projections, wiring).output;
  };
  return influenceOf(run, rows);
}

/** What this wiring is, whatever was wanted. */
export function unit({ query_from: q, key_from: k, value_from: v, causal }) {
  if ((k === "y") !== (v === "y")) return "impossible";
  if (k !== v) return "split";
  if (q === k && q === "y") return causal ? "self_decoder" : "self_unmasked";
  if (q === k) return causal ? "self_causal_encoder" : "self_encoder";
  if (q === "y") return "cross";
  return k === "y" ? "reversed" : "sided";
}

/** Whether the wiring is what was wanted, and if not, which trap it is. */
export function verdict({ goal, query_from: q, key_from: k, value_from: v, causal }) {
  if ((k === "y") !== (v === "y")) return "impossible";
  const same = q === k && k === v;
  if (goal === "encoder") {
    if ([q, k, v].includes("y")) return "encoder_y";
    if (!same) return "encoder_mixed";
    return causal ? "mc22" : q === "x" ? "right_encoder" : "next_layer";
  }
  if (goal === "decoder") {
    if (same && q === "y") return causal ? "right_decoder" : "cm4";
    return q === "y" && k === v ? "decoder_cross" : "decoder_other";
  }
  if (k === "y") return q === "y" ? "ca2" : "ca1";
  if (q !== "y") return "mc30";
  if (k !== v) return "ca5";
  if (k === "x") return "ca4";
  return causal ? "ca3" : "right_cross";
}

const RIGHT = ["right_encoder", "next_layer", "right_decoder", "right_cross"];

// --- drawing ------------------------------------------------------------------------------------------------------------------

const BOARD = { width: 250, height: 150, from: 92, to: 214 };
const LINES = { width: 234, left: 76, right: 134, top: 18, step: 32 };
const WIRE_DASHES = ["", "7 3", "2 3"];
let boards = 0; // groups of radio buttons need a name of their own

function build(model, element) {
  const tools = toolkit(model, "tl-wiring");
  const { words, root, listen, set } = tools;
  const lang = model.get("lang");
  const group = (boards += 1);
  const names = ["goal", "query_from", "key_from", "value_from", "causal"];
  const state = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const scene = () => model.get("scenes")[model.get("direction")];

  // Controls
  const options = (name, values) => values.map((value) => [value, words[`${name}_${value}`]]);
  const goals = options("goal", ["encoder", "decoder", "cross"]);
  const goal = tools.choice(words.goal, "tl-goal", goals, (value) => set({ goal: value, preset: -1 }));
  const ways = options("direction", ["ja-en", "en-ja"]);
  const direction = tools.choice(words.direction, "tl-direction", ways, (value) => set({ direction: value }));
  const causal = tools.tick(words.causal, "tl-causal", (on) => set({ causal: on, preset: -1 }));
  const controls = html("div", { class: "tl-row" }, goal.label, causal.label, direction.label);

  // The board: wires, and the radio buttons that move them
  const wires = svg("svg", { viewBox: `0 0 ${BOARD.width} ${BOARD.height}`, class: "tl-wires", "aria-hidden": "true" });
  const middle = (i) => 25 + i * 50;
  const boxes = SOURCES.map((name, i) => {
    wires.append(svg("rect", { x: 4, y: middle(i) - 17, width: BOARD.from - 4, height: 34, rx: 5, class: "tl-source" }));
    wires.append(svg("text", { x: 12, y: middle(i) - 1, class: "tl-source-name" }, name));
    const size = svg("text", { x: 12, y: middle(i) + 12, class: "tl-source-size" });
    wires.append(size);
    return size;
  });
  const plugs = Object.entries(SOCKETS).map(([name, socket], i) => {
    const wire = svg("path", { class: "tl-wire", stroke: COLOURS[i], "stroke-dasharray": WIRE_DASHES[i] });
    const hole = svg("circle", { cx: BOARD.to + 13, cy: middle(i), r: 13, fill: COLOURS[i] });
    const at = { x: BOARD.to + 13, y: middle(i) + 5, "text-anchor": "middle" };
    const letter = svg("text", { ...at, class: `tl-socket tl-socket-${i}` }, socket);
    wires.append(wire, hole, letter);
    return { name, wire, i };
  });
  const head = html("tr", {}, html("td"), ...SOURCES.map((name) => html("th", { scope: "col" }, name)));
  const body = html("tbody");
  const radios = [];
  for (const [name, socket] of Object.entries(SOCKETS)) {
    const row = html("tr", { role: "radiogroup", "aria-label": fill(words.from, { socket }) });
    row.append(html("th", { scope: "row" }, socket));
    for (const source of SOURCES) {
      const label = `${fill(words.from, { socket })} ${words[`source_${source}`]}`;
      const one = { type: "radio", name: `tl-${name}-${group}`, value: source, class: `tl-${name}` };
      const input = focusable(html("input", { ...one, "aria-label": label }));
      listen(input, "change", () => set({ [name]: source, preset: -1 }));
      radios.push({ name, source, input });
      row.append(html("td", {}, html("label", {}, input)));
    }
    body.append(row);
  }
  const plugTable = html("table", { class: "tl-plugs" }, html("caption", {}, words.board), html("thead", {}, head), body);
  const meanings = html("ul", { class: "tl-meanings" }, ...SOURCES.map((name) => html("li", {}, words[`source_${name}`])));
  const board = html("div", { class: "tl-board" }, plugTable, wires, meanings);

  // The map as lines, and as a matrix
  const lines = focusable(svg("svg", { class: "tl-lines", tabindex: 0, role: "application" }));
  lines.setAttribute("aria-roledescription", words.map_role);
  const map = html("div", { class: "tl-map" }, html("p", { class: "tl-heading" }, words.map), lines);
  const matrixPlace = html("div");
  const influencePlace = html("div", { class: "tl-influences" });

  // What it is
  const lamp = html("span", { class: "tl-lamp", "aria-hidden": "true" });
  const isWhat = html("strong");
  const shapes = html("p", { class: "tl-shapes" });
  const name = html("p", { class: "tl-unit" });
  const why = html("p", { class: "tl-why" });
  const says = html("div", { class: "tl-verdict" }, html("p", { class: "tl-is" }, lamp, isWhat), why, name, shapes);

  const note = html("p", { class: "tl-note" });
  root.append(
    tools.question(), controls, html("div", { class: "tl-matrices" }, board, map, matrixPlace),
    html("div", { class: "tl-matrices tl-below" }, says, influencePlace), tools.presets(), note, tools.status,
  );
  element.replaceChildren(root);

  // Rows of the map are chosen by pointing or by the keyboard.
  let pointed = null; // the row under the pointer
  let drawn = { rows: [], weights: [] };
  const label = ({ token, gloss, own }, x, y, anchor) => {
    const group = svg("g");
    const other = own === "ja" ? "en" : "ja";
    group.append(svg("text", { x, y: y - 1, "text-anchor": anchor, class: "tl-word", lang: own }, token));
    group.append(svg("text", { x, y: y + 11, "text-anchor": anchor, class: "tl-small", lang: other }, gloss));
    return group;
  };
  const height = (i) => LINES.top + i * LINES.step;
  const choose = (row) => set({ row });
  const emphasise = () => {
    const n = drawn.rows.length;
    const row = pointed ?? (model.get("row") < n ? model.get("row") : -1);
    drawn.rows.forEach(({ group, edges, line }, i) => {
      group.classList.toggle("tl-on", i === row);
      line.classList.toggle("tl-on", i === row);
      edges.forEach((edge) => edge.classList.toggle("tl-dim", row >= 0 && i !== row));
    });
    drawn.ends.forEach((end, j) => (end.textContent = row >= 0 ? number(drawn.weights[row][j]) : ""));
    const { query_from, key_from } = state();
    const tokens = scene().tokens;
    const spoken =
      row < 0
        ? words.queries
        : fill(words.state, {
            query: tokens[query_from][row].token,
            weights: tokens[key_from]
              .map(({ token }, j) => fill(words.state_weight, { token, weight: number(drawn.weights[row][j]) }))
              .join(words.comma),
          });
    lines.setAttribute("aria-label", `${words.map}: ${spoken}`);
    return row < 0 ? "" : spoken;
  };
  listen(lines, "keydown", (event) => {
    const n = drawn.rows.length;
    const row = model.get("row");
    const [up, down] = [Math.max(Math.min(row, n) - 1, 0), Math.min(row + 1, n - 1)];
    const next = { ArrowDown: down, ArrowUp: up, Home: 0, End: n - 1, Escape: -1 }[event.key];
    if (next === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    pointed = null;
    choose(next);
  });
  listen(lines, "pointerleave", () => {
    pointed = null;
    emphasise();
  });

  const redrawMap = (weights, { query_from, key_from }) => {
    const tokens = scene().tokens;
    const [queries, keys] = [tokens[query_from], tokens[key_from]];
    const tall = height(Math.max(queries.length, keys.length) - 1) + 22;
    lines.setAttribute("viewBox", `0 0 ${LINES.width} ${tall}`);
    const table = matrixTable({
      caption: words.weights, corner: `${words.row_query}\n${words.column_key}`, rows: queries, columns: keys,
      more: [words.row_sum], lang,
    });
    table.table.classList.add("tl-shown-weights");
    const ends = keys.map((_, j) => svg("text", { x: LINES.width - 2, y: height(j) + 4, "text-anchor": "end", class: "tl-end" }));
    const rows = queries.map((query, i) => {
      const group = svg("g", { class: "tl-query-row" });
      const edges = keys.map((_, j) => {
        const weight = weights[i][j];
        const edge = svg("line", { x1: LINES.left + 4, y1: height(i), x2: LINES.right - 4, y2: height(j), class: "tl-edge" });
        edge.setAttribute("stroke-width", weight === 0 ? 0 : 0.6 + 7 * weight);
        edge.style.opacity = 0.15 + 0.85 * weight;
        return edge;
      });
      const hit = svg("rect", { x: 0, y: height(i) - 16, width: LINES.left + 20, height: LINES.step, class: "tl-hit" });
      group.append(...edges, label(query, LINES.left, height(i), "end"), hit);
      group.addEventListener("pointerenter", () => {
        pointed = i;
        emphasise();
      });
      group.addEventListener("click", () => choose(i));
      weights[i].forEach((weight, j) => paint(table.cells[i][j], weight, weight === 0 ? "0" : number(weight)));
      table.more[i][0].textContent = number(weights[i].reduce((sum, weight) => sum + weight, 0));
      return { group, edges, line: table.lines[i] };
    });
    const names = keys.map((key, j) => label(key, LINES.right, height(j), "start"));
    lines.replaceChildren(...rows.map((row) => row.group), ...names, ...ends);
    matrixPlace.replaceChildren(table.table);
    drawn = { rows, weights, ends };
  };

  const redrawInfluence = (moved, wiring) => {
    const tokens = scene().tokens;
    if (!moved) {
      influencePlace.replaceChildren(html("p", { class: "tl-heading" }, words.influence), html("p", {}, words.influence_none));
      return;
    }
    const columns = SOURCES.flatMap((source) => tokens[source].map(({ token, own }) => ({ token, own, source })));
    const rows = tokens[wiring.query_from];
    const corner = `${words.row_output}\n${words.column_input}`;
    const table = matrixTable({ caption: words.influence, corner, rows, columns, lang });
    table.table.classList.add("tl-thin");
    const groups = html("tr", { class: "tl-groups" }, html("td"));
    for (const source of SOURCES) groups.append(html("th", { scope: "colgroup", colspan: tokens[source].length }, source));
    table.table.tHead.prepend(groups);
    moved.forEach((line, i) =>
      line.forEach((yes, j) => {
        const cell = table.cells[i][j];
        cell.textContent = yes ? "●" : "";
        cell.classList.toggle("tl-reached", yes);
        cell.classList.toggle("tl-first", j > 0 && columns[j].source !== columns[j - 1].source);
        const { token, source } = columns[j];
        const spoken = { source, column: token, row: rows[i].token, state: yes ? words.moves : words.stays };
        cell.setAttribute("aria-label", fill(words.influence_cell, spoken));
      }),
    );
    influencePlace.replaceChildren(table.table, html("p", { class: "tl-legend" }, words.legend));
  };

  let before = "";
  const draw = () => {
    const wiring = state();
    const { vectors } = scene();
    const now = JSON.stringify([wiring, model.get("direction")]);
    if (now !== before) {
      before = now;
      pointed = null;
      const { weights } = attend(vectors, model.get("projections"), wiring);
      redrawMap(weights, wiring);
      redrawInfluence(influence(vectors, model.get("projections"), wiring), wiring);
    }
    SOURCES.forEach((source, i) => (boxes[i].textContent = `(${vectors[source].length}, d_model)`));
    for (const { name: plug, wire, i } of plugs) {
      const from = middle(SOURCES.indexOf(wiring[plug])) + (i - 1) * 7;
      const bend = (BOARD.from + BOARD.to) / 2;
      wire.setAttribute("d", `M ${BOARD.from} ${from} C ${bend} ${from} ${bend} ${middle(i)} ${BOARD.to} ${middle(i)}`);
    }
    for (const { name: plug, source, input } of radios) input.checked = wiring[plug] === source;
    goal.select.value = wiring.goal;
    direction.select.value = model.get("direction");
    causal.input.checked = wiring.causal;

    const found = verdict(wiring);
    const right = RIGHT.includes(found);
    const [nQ, nK, nV] = [wiring.query_from, wiring.key_from, wiring.value_from].map((source) => vectors[source].length);
    says.classList.toggle("tl-lit", !right);
    lamp.textContent = right ? "✓" : "!";
    isWhat.textContent = fill(right ? words.right : words.trap, { goal: words[`goal_${wiring.goal}`] });
    why.textContent = words[`verdict_${found}`];
    name.textContent = fill(words.unit, { name: words[`unit_${unit(wiring)}`] });
    shapes.textContent = fill(nK === nV ? words.shapes : words.shapes_none, { n_q: nQ, n_k: nK, n_v: nV });
    note.textContent = words.hint;
    const row = emphasise();
    tools.speak([isWhat.textContent, why.textContent, shapes.textContent, row].join(" "));
  };
  tools.watch([...names, "direction", "row", "preset"], draw);
  return tools.close;
}

const render = mounted(build);
export default { render };
