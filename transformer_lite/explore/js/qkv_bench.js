// The Q·K·V bench: turn and stretch one query in the plane, and see dot products, scores, weights and output follow.
// common.js stands before it. The functions at the top are pure and are compared with transformer_lite/explore/maths.py in the tests.

const LIMIT = 4; // the query's greatest length, and the planes' range
const STEP = 0.1;

/** One query (d) against keys (n, d) and values (n, d_v): {products, scores, weights, output}. */
export function attention(query, keys, values, scaled) {
  const products = keys.map((key) => key.reduce((sum, component, i) => sum + component * query[i], 0));
  const scores = scaled ? products.map((product) => product / Math.sqrt(query.length)) : products.slice();
  const largest = Math.max(...scores); // subtracted so that exp cannot overflow
  const exponentials = scores.map((score) => Math.exp(score - largest));
  const total = exponentials.reduce((sum, x) => sum + x, 0);
  const weights = exponentials.map((x) => x / total);
  const output = values[0].map((_, i) => values.reduce((sum, value, row) => sum + weights[row] * value[i], 0));
  return { products, scores, weights, output };
}

/** The corners of the smallest convex polygon around points (n, 2), counter-clockwise (Andrew's monotone chain). */
export function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  const cross = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const chain = (list) => {
    const kept = [];
    for (const point of list) {
      while (kept.length > 1 && cross(kept[kept.length - 2], kept[kept.length - 1], point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.reverse())];
}

/** The query nearest to (x, y) that the bench allows: no longer than LIMIT, rounded to 0.001. */
export function clampQuery(x, y) {
  const length = Math.hypot(x, y);
  const shrink = length > LIMIT ? LIMIT / length : 1;
  const tidy = (value) => Math.round(value * shrink * 1000) / 1000 + 0; // + 0 turns -0 into 0
  return [tidy(x), tidy(y)];
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const SIZE = 300;
const UNIT = 32;
const px = (x) => SIZE / 2 + x * UNIT;
const py = (y) => SIZE / 2 - y * UNIT;

function plane(label) {
  const root = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "tl-plane", "aria-label": label });
  for (let i = -LIMIT; i <= LIMIT; i += 1) {
    const kind = i === 0 ? "tl-axis" : "tl-grid";
    root.append(svg("line", { x1: px(i), x2: px(i), y1: py(-LIMIT), y2: py(LIMIT), class: kind }));
    root.append(svg("line", { y1: py(i), y2: py(i), x1: px(-LIMIT), x2: px(LIMIT), class: kind }));
  }
  for (const i of [-4, -2, 2, 4]) {
    root.append(svg("text", { x: px(i), y: SIZE - 8, class: "tl-tick", "text-anchor": "middle" }, number(i, 0)));
    root.append(svg("text", { x: 19, y: py(i) + 4, class: "tl-tick", "text-anchor": "end" }, number(i, 0)));
  }
  return root;
}

function place(label, x, y, away = 9) {
  const anchor = px(x) > SIZE - 80 ? "end" : px(x) < 80 ? "start" : "middle";
  const above = y >= 0;
  label.setAttribute("x", Math.min(Math.max(px(x), 6), SIZE - 6));
  label.setAttribute("y", Math.min(Math.max(py(y) + (above ? -away : away + 10), 13), SIZE - 5));
  label.setAttribute("text-anchor", anchor);
}

function aim(line, head, [x, y], thickness) {
  const length = Math.hypot(x, y);
  const size = 7 + thickness;
  const [ux, uy] = length > 0 ? [x / length, -y / length] : [0, 0];
  const [tipX, tipY] = [px(x), py(y)];
  const [baseX, baseY] = [tipX - ux * size, tipY - uy * size];
  line.setAttribute("x2", length * UNIT > size ? baseX : px(0));
  line.setAttribute("y2", length * UNIT > size ? baseY : py(0));
  line.setAttribute("stroke-width", thickness);
  const side = size * 0.5;
  head.setAttribute(
    "points",
    length > 0 ? `${tipX},${tipY} ${baseX - uy * side},${baseY + ux * side} ${baseX + uy * side},${baseY - ux * side}` : "",
  );
}

function build(model, element) {
  const kit = toolkit(model, "tl-bench");
  const { words, root, listen, set } = kit;
  const lang = model.get("lang");
  const tokens = model.get("tokens");
  const glosses = model.get("glosses");
  const keys = model.get("key_vectors");
  const values = model.get("value_vectors");
  const colours = tokens.map((_, i) => COLOURS[i % COLOURS.length]);
  let angle = Math.atan2(model.get("query")[1], model.get("query")[0]); // remembered while q = 0 has no direction

  const move = (x, y) => set({ query: clampQuery(x, y) });

  // Plane 1: the query and the keys
  const left = focusable(plane(words.plane_keys));
  left.classList.add("tl-movable");
  for (const [name, value] of Object.entries({ tabindex: 0, role: "application", "aria-roledescription": words.plane_role })) {
    left.setAttribute(name, value);
  }
  const keyArrows = keys.map((key, i) => {
    const line = svg("line", { x1: px(0), y1: py(0), stroke: colours[i], "stroke-linecap": "round" });
    const head = svg("polygon", { fill: colours[i] });
    const label = svg("text", {}, tokens[i]);
    place(label, key[0], key[1]);
    left.append(line, head);
    return { line, head, label };
  });
  left.append(...keyArrows.map((arrow) => arrow.label));
  const queryLine = svg("line", { x1: px(0), y1: py(0), class: "tl-query" });
  const queryHead = svg("polygon", { class: "tl-head" });
  const handle = svg("circle", { r: 11, class: "tl-handle" });
  const queryLabel = svg("text", { class: "tl-query-label" }, "q");
  left.append(handle, queryLine, queryHead, queryLabel);

  // The numbers
  const head = html("tr");
  for (const name of [words.token, words.key, "q·k"]) head.append(html("th", { scope: "col" }, name));
  const scoreName = html("th", { scope: "col" });
  head.append(scoreName, html("th", { scope: "col" }, words.weight), html("th", { scope: "col" }, words.value));
  const pair = ([x, y]) => `(${number(x, 1)}, ${number(y, 1)})`;
  const body = html("tbody");
  const rows = tokens.map((token, i) => {
    const name = html("th", { scope: "row" }, html("span", { class: "tl-swatch", style: `background:${colours[i]}` }), token);
    if (glosses[i]) name.append(html("span", { class: "tl-gloss", lang: lang === "ja" ? "en" : "ja" }, glosses[i]));
    const product = html("td");
    const score = html("td");
    const fillBar = html("span", { style: `background:${colours[i]}` });
    const weight = html("span", { class: "tl-weight" });
    const bar = html("span", { class: "tl-bar", "aria-hidden": "true" }, fillBar);
    body.append(html("tr", {}, name, html("td", {}, pair(keys[i])), product, score, html("td", {}, bar, weight), html("td", {}, pair(values[i]))));
    return { product, score, fillBar, weight };
  });
  const total = html("td");
  const outputCell = html("td", { class: "tl-output-cell" });
  const foot = html("tr", {}, html("th", { scope: "row" }, words.total), html("td"), html("td"), html("td"), total, outputCell);
  const table = html("table", {}, html("caption", {}, words.table), html("thead", {}, head), body, html("tfoot", {}, foot));

  // Plane 2: the values and the output
  const right = plane(words.plane_values);
  right.setAttribute("role", "img");
  right.append(svg("polygon", { class: "tl-hull", points: hull(values).map(([x, y]) => `${px(x)},${py(y)}`).join(" ") }));
  const valuePoints = values.map((value, i) => {
    const pull = svg("line", { x1: px(value[0]), y1: py(value[1]), stroke: colours[i] });
    const point = svg("circle", { cx: px(value[0]), cy: py(value[1]), fill: colours[i] });
    const label = svg("text", {}, tokens[i]);
    place(label, value[0], value[1], 14);
    right.append(pull, point);
    return { pull, point, label };
  });
  right.append(...valuePoints.map((value) => value.label));
  const outputMark = svg("path", { class: "tl-output" });
  const outputLabel = svg("text", {}, words.output);
  right.append(outputMark, outputLabel);

  const panel = (name, content, kind) => html("div", { class: `tl-panel ${kind}` }, html("p", { class: "tl-heading" }, name), content);
  const side = html("div", { class: "tl-panel tl-side" });
  const panels = html("div", { class: "tl-panels" }, panel(words.plane_keys, left, "tl-keys"), panel(words.plane_values, right, "tl-values"), side);

  // Controls
  const stretch = (size) => move(size * Math.cos(angle), size * Math.sin(angle));
  const length = kit.slider(words.length, "tl-length", { min: 0, max: LIMIT, step: STEP }, stretch);
  const direction = kit.slider(words.direction, "tl-direction", { min: -180, max: 180, step: 1 }, (degrees) => {
    angle = (degrees * Math.PI) / 180;
    stretch(Number(length.input.value));
  });
  const scale = kit.tick(words.scale, "tl-scale", (scaled) => set({ scaled }));
  const presets = kit.presets();
  presets.classList.remove("tl-row"); // beside the planes they stand one below the other
  side.append(html("div", { class: "tl-controls" }, direction.label, length.label, scale.label), presets);
  const note = html("p", { class: "tl-note" });
  root.append(kit.question(), panels, note, html("div", { class: "tl-numbers" }, table), kit.status);

  // Keyboard and pointer on plane 1
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  listen(left, "keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const size = event.shiftKey ? 5 * STEP : STEP;
    const [x, y] = model.get("query");
    move(x + step[0] * size, y + step[1] * size);
  });
  const follow = (event) => {
    const box = left.getBoundingClientRect();
    const ratio = SIZE / box.width;
    const x = ((event.clientX - box.left) * ratio - SIZE / 2) / UNIT;
    const y = (SIZE / 2 - (event.clientY - box.top) * ratio) / UNIT;
    move(Math.round(x / STEP) * STEP, Math.round(y / STEP) * STEP);
  };
  let dragging = false;
  listen(left, "pointerdown", (event) => {
    if (event.button !== 0) return;
    dragging = true;
    left.setPointerCapture(event.pointerId);
    follow(event);
  });
  listen(left, "pointermove", (event) => dragging && follow(event));
  for (const end of ["pointerup", "pointercancel"]) listen(left, end, () => (dragging = false));

  const draw = () => {
    const query = model.get("query");
    const scaled = model.get("scaled");
    const { products, scores, weights, output } = attention(query, keys, values, scaled);
    const size = Math.hypot(...query);
    if (size > 0) angle = Math.atan2(query[1], query[0]);

    aim(queryLine, queryHead, query, 3.5);
    handle.setAttribute("cx", px(query[0]));
    handle.setAttribute("cy", py(query[1]));
    // The letter q stays on the side of the tip that the arrow does not cover.
    queryLabel.setAttribute("x", px(query[0]) + (size > 0 ? (query[0] / size) * 20 : 16));
    queryLabel.setAttribute("y", py(query[1]) - (size > 0 ? (query[1] / size) * 20 : 0) + 5);
    queryLabel.setAttribute("text-anchor", "middle");
    keyArrows.forEach((arrow, i) => aim(arrow.line, arrow.head, keys[i], 2 + 5 * weights[i]));

    rows.forEach((row, i) => {
      row.product.textContent = number(products[i]);
      row.score.textContent = number(scores[i]);
      row.fillBar.style.width = `${100 * weights[i]}%`;
      row.weight.textContent = number(weights[i]);
    });
    scoreName.textContent = scaled ? words.score_scaled : words.score_unscaled;
    total.textContent = number(weights.reduce((sum, weight) => sum + weight, 0));
    outputCell.textContent = `(${number(output[0])}, ${number(output[1])})`;

    valuePoints.forEach((value, i) => {
      value.point.setAttribute("r", 4 + 8 * Math.sqrt(weights[i]));
      value.pull.setAttribute("x2", px(output[0]));
      value.pull.setAttribute("y2", py(output[1]));
      value.pull.setAttribute("stroke-width", 1 + 6 * weights[i]);
    });
    const [x, y] = [px(output[0]), py(output[1])];
    outputMark.setAttribute("d", `M ${x} ${y - 9} L ${x + 9} ${y} L ${x} ${y + 9} L ${x - 9} ${y} Z`);
    outputLabel.setAttribute("x", x);
    outputLabel.setAttribute("y", y + 24);
    outputLabel.setAttribute("text-anchor", "middle");

    const degrees = Math.round((angle * 180) / Math.PI);
    direction.show(degrees, `${number(degrees, 0)}°`);
    length.show(size, number(size));
    scale.input.checked = scaled;
    note.textContent = kit.note();

    const list = tokens.map((token, i) => fill(words.state_weight, { token, weight: number(weights[i]) })).join(words.state_comma);
    const state = fill(words.state, {
      x: number(query[0]), y: number(query[1]), weights: list, out_x: number(output[0]), out_y: number(output[1]),
    });
    left.setAttribute("aria-label", `${words.plane_keys}: ${state}`);
    right.setAttribute("aria-label", `${words.plane_values}: ${state}`);
    kit.speak(state);
  };
  element.replaceChildren(root);
  kit.watch(["query", "scaled", "preset"], draw);
  return kit.close;
}

export default { render: mounted(build, ["strings", "tokens", "key_vectors", "value_vectors", "presets"]) };
