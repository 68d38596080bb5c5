// The shift viewer: the decoder's input above its labels, right shift and causal mask to be switched, and where the answer leaks.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/shifting.py.

const square = (n, value) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => value(i, j)));

/** [p][j]: whether the input of position p is label j. With the shift, position 0 holds BOS, which is no label. */
export function placed(n, shift) {
  return square(n, (p, j) => j === (shift ? p - 1 : p));
}

/** [p][q]: whether position p may attend to input q. */
export function allowed(n, causal) {
  return square(n, (p, q) => !causal || q <= p);
}

/** [i][j]: whether the prediction of label i moves when label j does: some input that i may attend to is label j. */
export function seen(n, shift, causal) {
  const [may, holds] = [allowed(n, causal), placed(n, shift)];
  return square(n, (i, j) => may[i].some((yes, q) => yes && holds[q][j]));
}

/** [i][j]: "" where label j is not seen by the position that predicts label i, else where it stands. */
export function kinds(moved) {
  return moved.map((row, i) => row.map((yes, j) => (!yes ? "" : j < i ? "earlier" : j === i ? "answer" : "later")));
}

/** The positions whose own label, their answer, is among what they see. */
export function leaking(moved) {
  return moved.flatMap((row, i) => (row[i] ? [i] : []));
}

/** The name of the two switches. */
export function setting(shift, causal) {
  return ["both", "no_shift", "no_mask", "neither"][Number(!shift) + 2 * Number(!causal)];
}

/** Where the answer of a position is. */
export function whereabouts(n, { shift, causal, position }) {
  if (!shift) return "own";
  if (position === n - 1) return "nowhere";
  return causal ? "next_hidden" : "next_seen";
}

/** Another label that is the same word as the answer, and is seen; −1: there is none. */
export function twice(labels, moved, position) {
  return labels.findIndex((label, j) => j !== position && label === labels[position] && moved[position][j]);
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const SIGNS = { "": "", earlier: "●", answer: "!", later: "→" };
const COLUMN = 62; // of the diagram's 372 units; a box leaves 4 of them free
const ROWS = { heading: 12, number: 30, input: 36, label: 148, box: 40, mark: 202, below: 228, height: 234 };
const STATES = ["both", "no_shift", "no_mask", "neither"];

function build(model, element) {
  const kit = toolkit(model, "tl-shifting");
  const { words, root, listen, set } = kit;
  const lang = model.get("lang");
  const sentences = model.get("sentences");
  const state = () => Object.fromEntries(["sentence", "shift", "causal", "position"].map((name) => [name, model.get(name)]));
  const n = Object.values(sentences)[0].labels.length;
  const x = (i) => COLUMN * (i + 0.5);

  // Controls
  const spoken = ({ labels }) => labels.slice(0, -1).map(({ token }) => token).join(" ");
  const options = Object.entries(sentences).map(([name, given]) => [name, spoken(given)]);
  const sentence = kit.choice(words.sentence, "tl-sentence", options, (value) => set({ sentence: value }));
  const now = () => setting(model.get("shift"), model.get("causal"));
  const visited = () => STATES.filter((name) => name === now() || model.get("tried").includes(name));
  const turn = (change) => {
    const two = { shift: model.get("shift"), causal: model.get("causal"), ...change };
    const reached = setting(two.shift, two.causal);
    set({ ...change, tried: STATES.filter((name) => name === reached || visited().includes(name)) });
  };
  const shift = kit.tick(words.shift, "tl-shift", (on) => turn({ shift: on }));
  const causal = kit.tick(words.mask, "tl-causal", (on) => turn({ causal: on }));
  const reset = kit.button(words.reset, "tl-reset", () => set(model.get("initial")));
  const controls = html("div", { class: "tl-row tl-switches" }, shift.label, causal.label, sentence.label, html("span", { class: "tl-presets" }, reset));

  // The diagram: what is fed above what must be predicted
  const picture = focusable(svg("svg", { viewBox: `0 0 ${COLUMN * n} ${ROWS.height}`, class: "tl-rows", tabindex: 0, role: "application" }));
  picture.setAttribute("aria-roledescription", words.diagram_role);
  const heading = svg("text", { x: 2, y: ROWS.heading, class: "tl-row-name" });
  const copies = svg("g", { class: "tl-copies" });
  const lines = svg("g");
  const box = (i, y, kind) => {
    const group = svg("g", { class: kind });
    const frame = svg("rect", { x: COLUMN * i + 2, y, width: COLUMN - 4, height: ROWS.box, rx: 5 });
    const token = svg("text", { x: x(i), y: y + 19, "text-anchor": "middle", class: "tl-word" });
    const gloss = svg("text", { x: x(i), y: y + 33, "text-anchor": "middle", class: "tl-small" });
    group.append(frame, token, gloss);
    const show = (given) => {
      token.textContent = given.token;
      token.setAttribute("lang", given.own);
      gloss.textContent = given.gloss;
      gloss.setAttribute("lang", given.own === "ja" ? "en" : "ja");
    };
    return { group, show };
  };
  const columns = Array.from({ length: n }, (_, i) => {
    const input = box(i, ROWS.input, "tl-input");
    const label = box(i, ROWS.label, "tl-label");
    const number = svg("text", { x: x(i), y: ROWS.number, "text-anchor": "middle", class: "tl-number" }, i + 1);
    const disc = svg("circle", { cx: x(i), cy: ROWS.mark, r: 9 });
    const sign = svg("text", { x: x(i), y: ROWS.mark + 4.5, "text-anchor": "middle" });
    const mark = svg("g", { class: "tl-mark" });
    mark.append(disc, sign);
    const hit = svg("rect", { x: COLUMN * i, y: 18, width: COLUMN, height: ROWS.mark - 6, class: "tl-hit" });
    hit.addEventListener("click", () => set({ position: i }));
    return { input, label, number, mark, sign, hit };
  });
  const below = svg("text", { x: 2, y: ROWS.below, class: "tl-row-name" }, words.labels);
  const marks = html("ul", { class: "tl-legend" }, ...["leak", "line", "copy"].map((name) => html("li", {}, words[`mark_${name}`])));
  picture.append(heading, copies, lines,
    ...columns.flatMap(({ input, label, number, mark }) => [number, input.group, label.group, mark]), below, ...columns.map(({ hit }) => hit));
  listen(picture, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = model.get("position");
    const next = { ArrowRight: Math.min(at + 1, n - 1), ArrowLeft: Math.max(at - 1, 0), Home: 0, End: n - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    set({ position: next });
  });

  // Matrices; their heads are made anew with another sentence or another input
  const influencePlace = html("div");
  const products = html("div", { class: "tl-matrices" });
  const product = html("details", { class: "tl-product" }, focusable(html("summary", {}, words.product)), html("p", {}, words.product_note), products);
  const legend = html("ul", { class: "tl-legend" }, ...["earlier", "answer", "later"].map((kind) => html("li", {}, words[`legend_${kind}`])));
  const numbered = (list) => list.map((given, i) => ({ ...given, token: `${i + 1} ${given.token}` }));
  const matrix = (caption, corner, rows, heads) => {
    const made = matrixTable({ caption, corner, rows, columns: heads, lang });
    made.table.classList.add("tl-signs");
    return made;
  };
  let tables = null;
  const remake = (labels, inputs, key) => {
    const [named, fed] = [numbered(labels), numbered(inputs)];
    const positions = labels.map((_, i) => ({ token: String(i + 1) }));
    tables = {
      key, named, fed,
      influence: matrix(words.influence, `${words.row_label}\n${words.column_label}`, named, named),
      mask: matrix(words.mask_matrix, `${words.row_position}\n${words.column_input}`, positions, fed),
      shift: matrix(words.shift_matrix, `${words.row_input}\n${words.column_held}`, fed, named),
    };
    influencePlace.replaceChildren(tables.influence.table, legend);
    products.replaceChildren(html("div", {}, tables.mask.table), html("div", {}, tables.shift.table));
    columns.forEach(({ input, label }, i) => {
      input.show(inputs[i]);
      label.show(labels[i]);
    });
  };
  const put = (cell, sign, kind, label) => {
    cell.textContent = sign;
    cell.className = `tl-cell${kind ? ` tl-is-${kind}` : ""}`;
    cell.setAttribute("aria-label", label);
  };

  // What it says
  const lamp = html("span", { class: "tl-lamp", "aria-hidden": "true" });
  const summary = html("strong");
  const view = html("p", { class: "tl-view" });
  const learns = html("p", { class: "tl-learns" });
  const teaching = html("p", { class: "tl-teaching" }, fill(words.teaching, { n }));
  const says = html("div", { class: "tl-verdict" }, html("p", { class: "tl-is" }, lamp, summary), view, learns, teaching);

  // How many positions leak with the settings tried so far
  const counts = {};
  const line = (name, ...settings) => {
    const cells = settings.map((key) => (counts[key] = html("td")));
    return html("tr", {}, html("th", { scope: "row" }, name), ...cells);
  };
  const head = html("tr", {}, html("td"), ...[words.tried_no_shift, words.tried_shift].map((name) => html("th", { scope: "col" }, name)));
  const tried = html("table", { class: "tl-tried" }, html("caption", {}, words.tried), html("thead", {}, head),
    html("tbody", {}, line(words.tried_no_mask, "neither", "no_mask"), line(words.tried_mask, "no_shift", "both")));

  const note = html("p", { class: "tl-note" }, words.hint);
  root.append(
    kit.question(), controls, html("div", { class: "tl-matrices tl-stage" }, html("div", { class: "tl-diagram" }, picture, marks), influencePlace),
    html("div", { class: "tl-matrices tl-below" }, says, html("div", {}, tried)), note, product, kit.status);

  const drawRows = ({ shift: shifted, causal: masked, position }, leaks) => {
    const [may, holds] = [allowed(n, masked), placed(n, shifted)];
    heading.textContent = shifted ? words.fed_shifted : words.fed_as_is;
    const [top, bottom] = [ROWS.input + ROWS.box, ROWS.label];
    columns.forEach(({ input, label, number, mark, sign }, i) => {
      const visible = may[position][i];
      input.group.setAttribute("class", `tl-input ${!visible ? "tl-hidden-from" : holds[i][position] ? "tl-answer" : "tl-seen"}`);
      label.group.classList.toggle("tl-at", i === position);
      number.classList.toggle("tl-at", i === position);
      mark.setAttribute("class", `tl-mark ${leaks.includes(i) ? "tl-leaks" : "tl-clean"}`);
      sign.textContent = leaks.includes(i) ? "!" : "✓";
    });
    // Thin and dashed: which label has been put where. Solid: what the chosen position sees.
    copies.replaceChildren(...holds.flatMap((row, p) => row.flatMap((yes, j) => {
      if (!yes) return [];
      const off = shifted ? 0 : 14; // beside the line down to the same label
      const [from, to] = [x(j) + off, x(p) + off];
      const turn = (Math.atan2(to - from, bottom - top) * 180) / Math.PI;
      const tip = svg("path", { d: "M 0 0 l -3 7 h 6 z", transform: `translate(${to} ${top}) rotate(${turn})` });
      return [svg("line", { x1: from, y1: bottom, x2: to, y2: top }), tip];
    })));
    lines.replaceChildren(...may[position].flatMap((yes, q) => {
      if (!yes) return [];
      const kind = holds[q][position] ? "tl-line tl-answer" : "tl-line";
      return [svg("line", { x1: x(q), y1: top, x2: x(position), y2: bottom, class: kind })];
    }));
  };

  const draw = () => {
    const one = state();
    const { labels, start } = sentences[one.sentence];
    const inputs = one.shift ? [start, ...labels.slice(0, -1)] : labels;
    const key = `${one.sentence} ${one.shift}`;
    if (tables?.key !== key) remake(labels, inputs, key);
    const moved = seen(n, one.shift, one.causal);
    const leaks = leaking(moved);
    drawRows(one, leaks);

    const { influence, mask, shift: held, named, fed } = tables;
    kinds(moved).forEach((row, i) => row.forEach((kind, j) =>
      put(influence.cells[i][j], SIGNS[kind], kind, fill(words[`cell_${kind || "none"}`], { row: named[i].token, column: named[j].token }))));
    const digits = (made, values, yes, no, rows, heads) => values.forEach((row, i) => row.forEach((on, j) =>
      put(made.cells[i][j], on ? "1" : "", on ? "one" : "", fill(on ? yes : no, { row: rows[i].token, column: heads[j].token }))));
    digits(mask, allowed(n, one.causal), words.cell_may, words.cell_may_not, labels.map((_, i) => ({ token: String(i + 1) })), fed);
    digits(held, placed(n, one.shift), words.cell_holds, words.cell_holds_not, fed, named);
    for (const made of [influence, mask]) made.lines.forEach((row, i) => row.classList.toggle("tl-on", i === one.position));

    says.classList.toggle("tl-lit", leaks.length > 0);
    lamp.textContent = leaks.length ? "!" : "✓";
    summary.textContent = fill(leaks.length ? words.leaks : words.clean, { leaks: leaks.length, n });
    const label = labels[one.position].token;
    const visible = inputs.filter((_, q) => allowed(n, one.causal)[one.position][q]).map(({ token }) => token);
    const other = twice(labels.map(({ token }) => token), moved, one.position);
    const told = [
      fill(words.sees, { position: one.position + 1, label, inputs: visible.join(words.comma) }),
      fill(words[`where_${whereabouts(n, one)}`], { label, next: one.position + 2 }),
      ...(other < 0 ? [] : [fill(words.twice, { other: other + 1, label })]),
    ];
    view.textContent = told.join(lang === "ja" ? "" : " ");
    learns.textContent = words.learns + words[`learns_${now()}`];

    for (const [name, cell] of Object.entries(counts)) {
      const known = visited().includes(name);
      const [shifted, masked] = [name === "both" || name === "no_mask", name === "both" || name === "no_shift"];
      const found = leaking(seen(n, shifted, masked)).length;
      cell.textContent = known ? found : words.untried;
      cell.setAttribute("aria-label", known ? fill(words.tried_cell, { leaks: found, n }) : words.untried_cell);
      cell.className = name === now() ? "tl-current" : "";
    }
    shift.input.checked = one.shift;
    causal.input.checked = one.causal;
    sentence.select.value = one.sentence;
    picture.setAttribute("aria-label", `${words.diagram}: ${view.textContent}`);
    kit.speak([summary.textContent, view.textContent, learns.textContent].join(" "));
  };
  kit.watch(["sentence", "shift", "causal", "position", "tried"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "sentences"]) };
