// The positional-encoding map: a cursor on (position, pair), the pair as a point on a circle, the rotation by k, and the word swap.
// common.js stands before it. The pure functions are compared with transformer_lite/explore/positions.py in the tests.

const MOST_ROWS = 70; // the largest n and the largest offset together
const WIDEST = 128;
const LISTED = 8;

/** The frequency of each component (d), in radians per position; null where the encoding follows no formula. */
export function frequencies(d, kind) {
  return Array.from({ length: d }, (_, component) => {
    const pair = Math.floor(component / 2);
    if (kind === "PE9") return null;
    const power = kind === "PE3" ? pair / d : kind === "PE4" ? component / d : (2 * pair) / d;
    return (kind === "PE6" ? 1000 : 10000) ** -power;
  });
}

let learned = null;

/** Random numbers between −1 and 1 (positions, widest d), the same as NumPy's: a linear congruential generator. */
function learnedTable() {
  if (learned) return learned;
  let seed = 1;
  learned = Array.from({ length: MOST_ROWS }, () =>
    Array.from({ length: WIDEST }, () => {
      seed = (Math.imul(1664525, seed) + 1013904223) >>> 0;
      return seed / 2 ** 31 - 1;
    }),
  );
  return learned;
}

/** The encoding (n, d) of one kind: the paper's, or what a trap makes of it. */
export function encode(n, d, kind) {
  if (kind === "PE9") return learnedTable().slice(0, n).map((row) => row.slice(0, d));
  const waves = frequencies(d, kind);
  const first = kind === "PE5" ? 1 : 0;
  const [even, odd] = kind === "PE1" ? [Math.cos, Math.sin] : [Math.sin, Math.cos];
  return Array.from({ length: n }, (_, p) => waves.map((wave, j) => (j % 2 === 0 ? even : odd)((p + first) * wave)));
}

/** The point [x, y] = [cos, sin] of one pair in one row of the encoding. */
function point(row, pair, kind) {
  const [a, b] = [row[2 * pair], row[2 * pair + 1]];
  return kind === "PE1" ? [a, b] : [b, a];
}

/** How far one pair turns between p and p + k at each of n positions: {angle (n), radius (n), same}. */
export function turns(n, d, pair, offset, kind) {
  const points = encode(n + offset, d, kind).map((row) => point(row, pair, kind));
  const angle = [];
  for (let p = 0; p < n; p += 1) {
    const [[x, y], [u, v]] = [points[p], points[p + offset]];
    angle.push(Math.atan2(x * v - y * u, x * u + y * v));
  }
  const same =
    angle.every((one) => Math.hypot(Math.cos(one) - Math.cos(angle[0]), Math.sin(one) - Math.sin(angle[0])) < 1e-9) &&
    points.every(([x, y]) => Math.abs(Math.hypot(x, y) - 1) < 1e-9);
  return { angle, radius: points.slice(0, n).map(([x, y]) => Math.hypot(x, y)), same };
}

/** The dot product of one position's encoding with that of each of n positions. */
export function similarities(n, d, position, kind) {
  const encoding = encode(n, d, kind);
  return encoding.map((row) => row.reduce((sum, value, j) => sum + value * encoding[position][j], 0));
}

/** Self-attention with Q = K = V = x (n, d): its outputs (n, d). */
export function attend(x) {
  return x.map((query) => {
    const scores = x.map((key) => key.reduce((sum, value, j) => sum + value * query[j], 0) / Math.sqrt(query.length));
    const largest = Math.max(...scores);
    const exponentials = scores.map((score) => Math.exp(score - largest));
    const total = exponentials.reduce((sum, value) => sum + value, 0);
    return query.map((_, j) => x.reduce((sum, value, row) => sum + (exponentials[row] / total) * value[j], 0));
  });
}

/** The outputs of each word in the first sentence and in the swapped one: {first (n, d), second (n, d), difference (n)}. */
export function swap(vectors, places, withPositions, kind) {
  const encoding = encode(vectors.length, vectors[0].length, kind);
  const enter = (rows) => rows.map((row, p) => row.map((value, j) => value + (withPositions ? encoding[p][j] : 0)));
  const first = attend(enter(vectors));
  const other = attend(enter(places.map((place) => vectors[place])));
  const second = vectors.map((_, place) => other[places.indexOf(place)]);
  const difference = first.map((row, i) => Math.max(...row.map((value, j) => Math.abs(value - second[i][j]))));
  return { first, second, difference };
}

const PUOR = [[127, 59, 8], [179, 88, 6], [224, 130, 20], [253, 184, 99], [254, 224, 182], [247, 247, 247], [216, 218, 235],
  [178, 171, 210], [128, 115, 172], [84, 39, 136], [45, 0, 75]];

/** The colour [r, g, b] of a value from −1 (brown) over 0 (white) to 1 (purple): ColorBrewer's PuOr. */
export function signedShade(value) {
  const place = (Math.min(Math.max(value, -1), 1) + 1) * 5;
  const low = Math.min(Math.floor(place), 9);
  return PUOR[low].map((channel, i) => Math.round(channel + (place - low) * (PUOR[low + 1][i] - channel)));
}

/** The pairs that the table lists: all, or eight from the fastest to the slowest and the one under the cursor. */
export function listedPairs(d, pair) {
  const pairs = d / 2;
  const step = Math.max(Math.floor(pairs / LISTED), 1);
  const listed = new Set([pairs - 1, pair]);
  for (let i = 0; i < pairs; i += step) listed.add(i);
  return [...listed].sort((a, b) => a - b);
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const MAP = { width: 560, height: 330, left: 46, top: 10, right: 544, bottom: 286 };
const THIN = 10; // a row or pair narrower than this is outlined from outside, so that its cells stay visible
const CIRCLE = { size: 280, middle: 140, radius: 104 };
const CURVE = { width: 340, height: 190, left: 40, top: 12, right: 332, bottom: 152 };
const ROLES = ["tl-pe-edge-under", "tl-pe-edge"];

function ticks(count, step) {
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

/** A line that turns from one angle by another, growing outwards so that whole turns can be counted. */
function spiral(from, by) {
  const steps = Math.max(Math.ceil(Math.abs(by) * 12), 2);
  const at = (i) => {
    const radius = 34 + (Math.min(Math.abs(by), 21) * 2.2 * i) / steps;
    const angle = from + (by * i) / steps;
    return `${CIRCLE.middle + radius * Math.cos(angle)},${CIRCLE.middle - radius * Math.sin(angle)}`;
  };
  return Array.from({ length: steps + 1 }, (_, i) => at(i)).join(" ");
}

function build(model, element) {
  const kit = toolkit(model, "tl-positions");
  const { words, root, listen, set } = kit;
  const sentence = model.get("sentence");
  const places = model.get("places");
  const otherLang = model.get("lang") === "ja" ? "en" : "ja";
  const named = (entry) => [entry.word, html("span", { class: "tl-gloss", lang: otherLang }, entry.gloss)];

  // The map
  const map = focusable(svg("svg", { viewBox: `0 0 ${MAP.width} ${MAP.height}`, class: "tl-plane tl-pe-map", tabindex: 0,
    role: "application", "aria-roledescription": words.map_role }));
  const image = svg("image", { x: MAP.left, y: MAP.top, width: MAP.right - MAP.left, height: MAP.bottom - MAP.top, preserveAspectRatio: "none" });
  const cellNumbers = svg("g", { class: "tl-cell-numbers" });
  const axes = svg("g");
  const arrows = ["tl-arrow-here", "tl-arrow-there"].map((name) => [MAP.left, MAP.right].map(() => svg("path", { class: name })));
  const marks = ["row", "there", "column", "cell"].map((name) =>
    ROLES.map((role) => svg("rect", { class: `${role} tl-mark-${name}`, fill: "none" })));
  map.append(image, cellNumbers, axes, ...marks.flat(), ...arrows.flat(),
    svg("text", { x: (MAP.left + MAP.right) / 2, y: MAP.height - 8, "text-anchor": "middle" }, words.map_component),
    svg("text", { x: 11, y: (MAP.top + MAP.bottom) / 2, "text-anchor": "middle",
      transform: `rotate(-90 11 ${(MAP.top + MAP.bottom) / 2})` }, words.map_position));
  const legend = html("p", { class: "tl-scale-bar", "aria-hidden": "true" }, "−1 ", html("span"), " 1");
  legend.firstElementChild.style.background = `linear-gradient(to right, ${ticks(11, 1).map((i) => `rgb(${signedShade(i / 5 - 1)})`).join(", ")})`;

  // The circle
  const { middle, radius } = CIRCLE;
  const circle = svg("svg", { viewBox: `0 0 ${CIRCLE.size} ${CIRCLE.size}`, class: "tl-plane", role: "img" });
  circle.append(
    svg("circle", { cx: middle, cy: middle, r: radius, class: "tl-ring" }),
    svg("line", { x1: 12, x2: CIRCLE.size - 12, y1: middle, y2: middle, class: "tl-axis" }),
    svg("line", { y1: 12, y2: CIRCLE.size - 12, x1: middle, x2: middle, class: "tl-axis" }),
    svg("text", { x: CIRCLE.size - 6, y: middle + 14, "text-anchor": "end", class: "tl-tick" }, "cos"),
    svg("text", { x: middle + 5, y: 14, class: "tl-tick" }, "sin"),
  );
  const others = svg("g");
  const turning = svg("polyline", { class: "tl-turning", fill: "none" });
  const handA = svg("line", { x1: middle, y1: middle, class: "tl-hand-a" });
  const handB = svg("line", { x1: middle, y1: middle, class: "tl-hand-b" });
  const here = svg("circle", { r: 7, class: "tl-here" });
  const there = svg("rect", { width: 20, height: 20, class: "tl-there" });
  circle.append(others, turning, handA, handB, there, here);
  const circleName = html("p", { class: "tl-heading" });
  const key = html("p", { class: "tl-key" });
  const keyHere = html("span");
  const keyThere = html("span");
  key.append(html("span", { class: "tl-key-here", "aria-hidden": "true" }), keyHere, html("span", { class: "tl-key-there", "aria-hidden": "true" }), keyThere);
  const wave = html("p");
  const turn = html("p");

  // The curve
  const curve = svg("svg", { viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, class: "tl-plane", role: "img" });
  const curveFrame = svg("g");
  const curveLine = svg("polyline", { class: "tl-curve", fill: "none" });
  const curveMarks = svg("g");
  curve.append(curveFrame, curveLine, curveMarks);
  const curveNote = html("p");

  // The swap
  const withPositions = kit.tick(words.swap_on, "tl-with-positions", (on) => set({ with_positions: on }));
  const spoken = (order) => order.map((place) => sentence[place].word).join(" ");
  const how = fill(words.swap_how, { first: spoken(sentence.map((_, i) => i)), second: spoken(places) });
  const heading = html("tr");
  for (const name of [words.word, words.first_output, words.second_output, words.difference]) heading.append(html("th", { scope: "col" }, name));
  const swapBody = html("tbody");
  const swapRows = sentence.map((entry) => {
    const cells = [html("td"), html("td"), html("td", { class: "tl-difference" })];
    swapBody.append(html("tr", {}, html("th", { scope: "row" }, ...named(entry)), ...cells));
    return cells;
  });
  const swapTable = html("table", { class: "tl-swap-table" }, html("caption", {}, words.swap), html("thead", {}, heading), swapBody);
  const swapNote = html("p", { class: "tl-swap-note" });

  // Controls
  const n = kit.slider(words.n, "tl-n", { min: 2, max: 50 }, (value) => set({ n: value, position: Math.min(model.get("position"), value - 1) }));
  const offset = kit.slider(words.offset, "tl-offset", { min: 0, max: 20 }, (value) => set({ offset: value }));
  const width = kit.choice(words.d_model, "tl-d-model", [4, 8, 16, 64, 128].map((d) => [d, d]), (value) =>
    set({ d_model: Number(value), pair: Math.min(model.get("pair"), value / 2 - 1) }));
  const kinds = ["paper", "PE1", "PE3", "PE4", "PE5", "PE6", "PE9"];
  const kindChoice = kit.choice(words.encoding, "tl-encoding", kinds.map((one) => [one, words[`encoding_${one}`]]), (value) => set({ encoding: value }));
  const note = html("p", { class: "tl-note" });

  const pairHead = html("tr");
  const pairBody = html("tbody");
  const pairTable = html("details", {}, focusable(html("summary", {}, words.pairs)),
    html("div", { class: "tl-numbers" }, html("table", { class: "tl-pair-table" }, html("caption", {}, words.pairs), html("thead", {}, pairHead), pairBody)));

  root.append(
    kit.question(),
    html("div", { class: "tl-pe-top" },
      html("div", { class: "tl-panel" }, html("div", { class: "tl-pe-map-head" }, html("p", { class: "tl-heading" }, words.map), legend), map,
        html("div", { class: "tl-pe-controls tl-controls" }, offset.label, n.label, width.label, kindChoice.label)),
      html("div", { class: "tl-panel" }, circleName, circle, key, wave, turn)),
    kit.presets(), note,
    html("div", { class: "tl-pe-bottom" },
      html("div", { class: "tl-panel" }, html("p", { class: "tl-heading" }, words.curve), curve, curveNote),
      html("div", { class: "tl-panel" }, html("div", { class: "tl-numbers" }, swapTable),
        html("div", { class: "tl-controls" }, withPositions.label), swapNote, html("p", { class: "tl-small" }, how))),
    pairTable, kit.status);

  // Keyboard and pointer on the map
  const move = (position, pair) => set({
    position: Math.min(Math.max(position, 0), model.get("n") - 1), pair: Math.min(Math.max(pair, 0), model.get("d_model") / 2 - 1),
  });
  listen(map, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [p, i] = [model.get("position"), model.get("pair")];
    const to = { ArrowUp: [p - 1, i], ArrowDown: [p + 1, i], ArrowLeft: [p, i - 1], ArrowRight: [p, i + 1], PageUp: [p - 10, i],
      PageDown: [p + 10, i], Home: [p, 0], End: [p, WIDEST] }[event.key];
    if (!to) return;
    event.preventDefault();
    move(...to);
  });
  const follow = (event) => {
    const box = map.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * MAP.width;
    const y = ((event.clientY - box.top) / box.height) * MAP.height;
    move(Math.floor(((y - MAP.top) / (MAP.bottom - MAP.top)) * model.get("n")),
      Math.floor(((x - MAP.left) / (MAP.right - MAP.left)) * (model.get("d_model") / 2)));
  };
  let dragging = false;
  listen(map, "pointerdown", (event) => {
    if (event.button !== 0) return;
    dragging = true;
    map.setPointerCapture(event.pointerId);
    follow(event);
  });
  listen(map, "pointermove", (event) => dragging && follow(event));
  for (const end of ["pointerup", "pointercancel"]) listen(map, end, () => (dragging = false));

  const outline = (pair, x, y, wide, high, shown = true) => {
    const [outX, outY] = [wide < THIN ? 2 : 0, high < THIN ? 2 : 0];
    [x, y, wide, high] = [x - outX, y - outY, wide + 2 * outX, high + 2 * outY];
    for (const rect of pair) {
      for (const [name, value] of Object.entries({ x, y, width: wide, height: high })) rect.setAttribute(name, value);
      rect.style.display = shown ? "" : "none";
    }
  };

  /** Two arrowheads that point at a row from the sides. */
  const aimAt = (pair, y, shown) => pair.forEach((arrow, side) => {
    const [tip, way] = side ? [MAP.right + 3, 1] : [MAP.left - 3, -1];
    arrow.setAttribute("d", `M ${tip} ${y} l ${way * 9} -5 v 10 Z`);
    arrow.style.display = shown ? "" : "none";
  });

  let painted = "";
  /** The cells change only with the encoding and its size, not with the cursor. */
  const paint = (encoding, count, d, kind) => {
    const name = `${kind} ${count} ${d}`;
    if (painted === name) return;
    painted = name;
    const canvas = document.createElement("canvas");
    const [wide, high] = [MAP.right - MAP.left, MAP.bottom - MAP.top].map((length) => 2 * length);
    [canvas.width, canvas.height] = [wide, high];
    const brush = canvas.getContext("2d");
    const cell = [wide / d, high / count];
    for (let p = 0; p < count; p += 1) {
      for (let j = 0; j < d; j += 1) {
        const [x, y] = [Math.floor(j * cell[0]), Math.floor(p * cell[1])];
        brush.fillStyle = `rgb(${signedShade(encoding[p][j])})`;
        brush.fillRect(x, y, Math.ceil((j + 1) * cell[0]) - x, Math.ceil((p + 1) * cell[1]) - y);
      }
    }
    image.setAttribute("href", canvas.toDataURL());
    const [w, h] = [cell[0] / 2, cell[1] / 2];
    cellNumbers.replaceChildren();
    if (w >= 30 && h >= 14) {
      encoding.slice(0, count).forEach((row, p) => row.forEach((value, j) => {
        const ink = Math.abs(value) > 0.55 ? "#fff" : "#000";
        cellNumbers.append(svg("text", { x: MAP.left + (j + 0.5) * w, y: MAP.top + (p + 0.5) * h + 4, "text-anchor": "middle", style: `fill:${ink};stroke:none` }, number(value)));
      }));
    }
    axes.replaceChildren();
    for (const j of ticks(d, Math.max(d / 8, 1))) {
      axes.append(svg("text", { x: MAP.left + (j + 0.5) * w, y: MAP.bottom + 14, class: "tl-tick", "text-anchor": "middle" }, j));
    }
    for (const p of ticks(count, count > 20 ? 10 : count > 10 ? 5 : 1)) {
      axes.append(svg("text", { x: MAP.left - 14, y: MAP.top + (p + 0.5) * h + 4, class: "tl-tick", "text-anchor": "end" }, p));
    }
  };

  const drawCurve = (count, d, p, k, kind) => {
    const dots = similarities(count, d, p, kind);
    const [low, high] = [Math.min(0, ...dots), Math.max(...dots)];
    const x = (offsetAt) => CURVE.left + ((offsetAt + count - 1) / (2 * count - 2)) * (CURVE.right - CURVE.left);
    const y = (value) => CURVE.bottom - ((value - low) / (high - low)) * (CURVE.bottom - CURVE.top);
    curveFrame.replaceChildren(
      svg("line", { x1: CURVE.left, x2: CURVE.right, y1: y(0), y2: y(0), class: "tl-axis" }),
      svg("line", { x1: x(0), x2: x(0), y1: CURVE.top, y2: CURVE.bottom, class: "tl-axis" }),
      svg("text", { x: CURVE.left - 5, y: y(high) + 4, class: "tl-tick", "text-anchor": "end" }, number(high, 1)),
      svg("text", { x: CURVE.left - 5, y: y(0) + 4, class: "tl-tick", "text-anchor": "end" }, "0"),
      svg("text", { x: (CURVE.left + CURVE.right) / 2, y: CURVE.height - 6, "text-anchor": "middle" }, words.curve_k),
      ...[1 - count, 0, count - 1].map((at) => svg("text", { x: x(at), y: CURVE.bottom + 15, class: "tl-tick", "text-anchor": at > 0 ? "end" : at < 0 ? "start" : "middle" }, number(at, 0))),
    );
    curveLine.setAttribute("points", dots.map((value, q) => `${x(q - p)},${y(value)}`).join(" "));
    curveMarks.replaceChildren(svg("circle", { cx: x(0), cy: y(dots[p]), r: 4.5, class: "tl-here" }));
    for (const at of k > 0 ? [-k, k] : []) {
      if (p + at < 0 || p + at >= count) continue;
      curveMarks.append(svg("rect", { x: x(at) - 5, y: y(dots[p + at]) - 5, width: 10, height: 10, class: "tl-there" }));
    }
    return dots[p];
  };

  const draw = () => {
    const [kind, count, d] = [model.get("encoding"), model.get("n"), model.get("d_model")];
    const [p, i, k] = [Math.min(model.get("position"), count - 1), Math.min(model.get("pair"), d / 2 - 1), model.get("offset")];
    const encoding = encode(count + k, d, kind);
    paint(encoding, count, d, kind);
    const [w, h] = [(MAP.right - MAP.left) / d, (MAP.bottom - MAP.top) / count];
    outline(marks[0], MAP.left, MAP.top + p * h, MAP.right - MAP.left, h);
    outline(marks[1], MAP.left, MAP.top + (p + k) * h, MAP.right - MAP.left, h, k > 0 && p + k < count && h >= THIN);
    aimAt(arrows[0], MAP.top + (p + 0.5) * h, true);
    aimAt(arrows[1], MAP.top + (p + k + 0.5) * h, k > 0 && p + k < count);
    outline(marks[2], MAP.left + 2 * i * w, MAP.top, 2 * w, MAP.bottom - MAP.top);
    outline(marks[3], MAP.left + 2 * i * w, MAP.top + p * h, 2 * w, h);

    const at = (q) => point(encoding[q], i, kind).map((value, axis) => middle + (axis ? -1 : 1) * radius * value);
    others.replaceChildren(...Array.from({ length: count }, (_, q) => svg("circle", { cx: at(q)[0], cy: at(q)[1], r: 2.5, class: "tl-other" })));
    const [a, b] = [at(p), at(p + k)];
    for (const [hand, [x, y]] of [[handA, a], [handB, b]]) {
      hand.setAttribute("x2", x);
      hand.setAttribute("y2", y);
    }
    here.setAttribute("cx", a[0]);
    here.setAttribute("cy", a[1]);
    there.setAttribute("x", b[0] - 10);
    there.setAttribute("y", b[1] - 10);
    const measured = turns(count, d, i, k, kind);
    const wave0 = frequencies(d, kind)[2 * i];
    const paper = frequencies(d, "paper")[2 * i];
    const angle = Math.atan2(middle - a[1], a[0] - middle);
    const whole = measured.same && wave0 !== null ? wave0 * k : measured.angle[p];
    turning.setAttribute("points", k > 0 ? spiral(angle, whole) : "");
    circleName.textContent = fill(words.circle, { pair: i });
    keyHere.textContent = fill(words.dot_here, { position: p });
    keyThere.textContent = fill(words.dot_there, { position: p + k });
    const lengthOf = (frequency) => ((2 * Math.PI) / frequency).toFixed(1);
    const waves = frequencies(d, kind).slice(2 * i, 2 * i + 2); // PE4's sine and cosine have a frequency each
    const both = (show) => [...new Set(waves.map(show))].join(" / ");
    const lines = wave0 === null ? [words.wave_none] : [fill(words.wave_line, { wavelength: both(lengthOf), frequency: both((one) => one.toFixed(4)) })];
    if (wave0 !== null && Math.abs(wave0 - paper) > 1e-12) lines.push(fill(words.wave_paper, { wavelength: lengthOf(paper) }));
    wave.textContent = lines.join(model.get("lang") === "ja" ? "" : " ");
    const low = number(Math.min(...measured.angle));
    const high = number(Math.max(...measured.angle));
    turn.textContent = fill(measured.same ? words.turn_same : words.turn_differs, { k, turn: number(measured.angle[p], 4), low, high });

    const top = drawCurve(count, d, p, k, kind);
    curveNote.textContent = fill(kind === "PE4" || kind === "PE9" ? words.curve_moves : words.curve_note, { top: number(top, 1) });
    curve.setAttribute("aria-label", `${words.curve}: ${curveNote.textContent}`);

    const on = model.get("with_positions");
    const { first, second, difference } = swap(sentence.map((entry) => entry.vector), places, on, kind);
    swapRows.forEach((cells, row) => {
      const list = (vector) => `(${vector.map((value) => number(value)).join(", ")})`;
      [list(first[row]), list(second[row]), number(difference[row], 3)].forEach((text, j) => (cells[j].textContent = text));
      cells[2].classList.toggle("tl-moved", difference[row] >= 0.0005);
    });
    const swapText = fill(on ? words.swap_differs : words.swap_same, { difference: number(Math.max(...difference), 3) });
    swapNote.textContent = swapText;
    withPositions.input.checked = on;

    n.show(count);
    offset.show(k);
    width.select.value = d;
    kindChoice.select.value = kind;
    note.textContent = kit.note();
    pairHead.replaceChildren(...[words.pair, words.frequency, words.wavelength, fill(words.here, { position: p }), fill(words.there, { position: p + k }), fill(words.turn, { k })]
      .map((name) => html("th", { scope: "col" }, name)));
    pairBody.replaceChildren(...listedPairs(d, i).map((one) => {
      const frequency = frequencies(d, kind)[2 * one];
      const values = (q) => `(${number(encoding[q][2 * one], 3)}, ${number(encoding[q][2 * one + 1], 3)})`;
      const cells = [frequency === null ? words.none : frequency.toFixed(4), frequency === null ? words.none : lengthOf(frequency), values(p), values(p + k), number(turns(count, d, one, k, kind).angle[p], 4)];
      const row = html("tr", {}, html("th", { scope: "row" }, one), ...cells.map((text) => html("td", {}, text)));
      row.classList.toggle("tl-current", one === i);
      return row;
    }));

    const state = fill(words.state, { encoding: words[`encoding_${kind}`], position: p, pair: i,
      first: number(encoding[p][2 * i], 3), second: number(encoding[p][2 * i + 1], 3) });
    map.setAttribute("aria-label", `${words.map}: ${state}`);
    circle.setAttribute("aria-label", `${circleName.textContent}: ${wave.textContent} ${turn.textContent}`);
    kit.speak(`${state} ${turn.textContent} ${swapText}`);
  };
  kit.watch(["encoding", "n", "d_model", "position", "pair", "offset", "with_positions", "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "sentence"]) };
