// The block builder: snap sub-layers into a layer, and see which outputs its input and the memory move.
// common.js stands before it. The pure functions are compared with transformer_lite/explore/blocks.py, which computes the layer
// with numbers; here only the patterns of what depends on what are put together.

const PIECES = ["masked", "unmasked", "cross", "ffn", "norm"];
const PAPER = {
  encoder: ["unmasked", "norm", "ffn", "norm", "", ""],
  decoder: ["masked", "norm", "cross", "norm", "ffn", "norm"],
};
const FINDINGS = ["empty", "BL1", "MC22", "cross_in_encoder", "BL5", "no_self", "BL3", "BL4", "BL2", "BL8", "ffn_between", "repeated",
  "no_add_norm", "idle_norm", "BL6", "BL9", "BL7"];

// A pattern holds a whole number per position: bit j is set where the vector depends on column j (first the n columns of the
// layer's own input, then those of the memory).
const joinedRows = (a, b) => a.map((row, i) => row | b[i]);

/** The pattern after one more sub-layer. */
function through(piece, pattern, n, nMemory) {
  if (piece === "ffn") return pattern;
  if (piece === "cross") return pattern.map((row) => row | (((1 << nMemory) - 1) << n));
  let seen = 0;
  if (piece === "masked") return pattern.map((row) => (seen |= row));
  const all = pattern.reduce((one, other) => one | other, 0);
  return pattern.map(() => all);
}

/** One more piece on top, as `put_on` in blocks.py does it with numbers. Normalising a vector changes nothing here. */
function putOn({ start, x, branch, kept }, piece, joined, n, nMemory) {
  if (piece === "norm") {
    const sum = joinedRows(kept, branch);
    if (joined === "parallel") return { start, x: sum, branch: start, kept: sum };
    return { start, x: sum, branch: sum, kept: joined === "input" ? start : sum };
  }
  const made = through(piece, branch, n, nMemory);
  const alone = joined === "parallel" || joined === "before" ? through(piece, x, n, nMemory) : made;
  return { start, x: alone, branch: made, kept };
}

/** [i][j]: whether output i moves when row j of [own input; memory] does; null where an encoder layer would need a memory. */
export function influence({ goal, slots, joined }, n, nMemory) {
  const decoder = goal === "decoder";
  if (!decoder && slots.includes("cross")) return null;
  const width = decoder ? nMemory : 0;
  const start = Array.from({ length: n }, (_, i) => 1 << i);
  let stream = { start, x: start, branch: start, kept: start };
  for (const piece of slots) if (piece) stream = putOn(stream, piece, joined, n, width);
  return stream.x.map((row) => Array.from({ length: n + width }, (_, j) => Boolean((row >> j) & 1)));
}

/** In what the layer differs from the paper's; empty: it is the paper's layer. */
export function findings({ goal, slots, joined }) {
  const pieces = slots.filter(Boolean);
  if (!pieces.length) return ["empty"];
  const decoder = goal === "decoder";
  const kinds = pieces.filter((piece) => piece !== "norm").map((piece) => (piece === "masked" || piece === "unmasked" ? "self" : piece));
  const has = (kind) => kinds.includes(kind);
  const lastAttention = Math.max(kinds.lastIndexOf("self"), kinds.lastIndexOf("cross"));
  const early = has("ffn") && kinds.indexOf("ffn") < lastAttention;
  const norms = pieces.filter((piece) => piece === "norm").length;
  const found = {
    BL1: decoder && pieces.includes("unmasked"),
    MC22: !decoder && pieces.includes("masked"),
    cross_in_encoder: !decoder && has("cross"),
    BL5: decoder && !has("self"),
    no_self: !decoder && !has("self"),
    BL3: decoder && !has("cross"),
    BL4: !has("ffn"),
    BL2: decoder && has("self") && has("cross") && kinds.indexOf("cross") < kinds.indexOf("self"),
    BL8: early && kinds[0] === "ffn",
    ffn_between: early && kinds[0] !== "ffn",
    repeated: new Set(kinds).size < kinds.length,
    no_add_norm: pieces.some((piece, i) => piece !== "norm" && pieces[i + 1] !== "norm"),
    idle_norm: pieces.some((piece, i) => piece === "norm" && (pieces[i - 1] ?? "norm") === "norm"),
    BL6: joined === "before" && norms > 0,
    BL9: joined === "input" && norms > 1,
    BL7: joined === "parallel" && norms > 1,
  };
  return FINDINGS.filter((key) => found[key]);
}

/** {moved, expected, leaks, missing}: the cells of one influence matrix, counted against those of the paper's layer. */
export function compared(moved, expected) {
  const pairs = moved.flatMap((row, i) => row.map((yes, j) => [yes, expected[i][j]]));
  const count = (wanted) => pairs.filter(wanted).length;
  return {
    moved: count(([yes]) => yes), expected: count(([, should]) => should), leaks: count(([yes, should]) => yes && !should),
    missing: count(([yes, should]) => !yes && should),
  };
}

/** [from below slot a, to slot b, lane] of every residual connection. */
export function residuals(slots, joined) {
  const norms = slots.flatMap((piece, i) => (piece === "norm" ? [i] : []));
  if (joined === "parallel") return norms.length ? [[0, norms.at(-1), 0]] : [];
  if (joined === "input") return norms.map((norm, lane) => [0, norm, lane]);
  return norms.map((norm, k) => [k ? norms[k - 1] + 1 : 0, norm, 0]);
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const STEP = 38; // height of a slot with its gap, as in block_builder.css
const STRIP = 34;
const DRAGGED = "application/x-tl-piece";

function build(model, element) {
  const kit = toolkit(model, "tl-blocks");
  const { words, root, listen, set } = kit;
  const lang = model.get("lang");
  const [tokens, mistakes] = [model.get("tokens"), model.get("mistakes")];
  const state = () => Object.fromEntries(["goal", "slots", "joined"].map((name) => [name, model.get(name)]));
  const many = model.get("slots").length;
  const nMemory = tokens.encoder.length;
  // Only Add is left where the Norm has gone below its sub-layer, or to the end of all.
  const onlyAdd = ({ slots, joined }, i) => joined === "before" || (joined === "parallel" && slots.slice(i + 1).includes("norm"));
  const nameOf = (now, i) => words[`piece_${now.slots[i] === "norm" && onlyAdd(now, i) ? "add" : now.slots[i] || "empty"}`];

  // Changing the slots
  const put = (at, piece, cursor = at) => {
    const slots = [...model.get("slots")];
    slots[at] = piece;
    set({ slots, cursor, preset: -1 });
  };
  const snap = (piece) => {
    const at = model.get("cursor");
    put(at, piece, Math.min(at + 1, many - 1));
  };
  const swap = (a, b) => {
    const slots = [...model.get("slots")];
    [slots[a], slots[b]] = [slots[b], slots[a]];
    set({ slots, cursor: b, preset: -1 });
  };

  // Controls
  const options = (name, values) => values.map((value) => [value, words[`${name}_${value}`]]);
  const goal = kit.choice(words.goal, "tl-goal", options("goal", ["encoder", "decoder"]), (value) => set({ goal: value, preset: -1 }));
  const ways = options("joined", ["after", "before", "input", "parallel"]);
  const joined = kit.choice(words.joined, "tl-joined", ways, (value) => set({ joined: value, preset: -1 }));
  const palette = html("div", { class: "tl-palette", role: "group", "aria-label": words.pieces }, html("p", { class: "tl-heading" }, words.pieces));
  PIECES.forEach((piece, i) => {
    const button = kit.button("", `tl-piece tl-is-${piece}`, () => snap(piece));
    button.append(html("kbd", { "aria-hidden": "true" }, i + 1), words[`piece_${piece}`]);
    button.setAttribute("draggable", "true");
    listen(button, "dragstart", (event) => event.dataTransfer.setData(DRAGGED, piece));
    palette.append(button);
  });
  palette.append(html("div", { class: "tl-row" },
    kit.button(words.remove, "tl-remove", () => put(model.get("cursor"), "")),
    kit.button(words.clear, "tl-clear", () => set({ slots: Array(many).fill(""), cursor: 0, preset: -1 }))));

  // The layer: the strip of residual connections, and the slots, the first at the bottom
  const strip = svg("svg", { viewBox: `0 0 ${STRIP} ${many * STEP}`, class: "tl-strip", "aria-hidden": "true" });
  const slots = Array.from({ length: many }, (_, i) => {
    const name = html("span", { class: "tl-name" });
    const [before, after] = [html("span", { class: "tl-before" }), html("span", { class: "tl-after" })];
    const box = html("div", { class: "tl-slot" }, before, name, after);
    listen(box, "click", () => set({ cursor: i }));
    listen(box, "dragstart", (event) => event.dataTransfer.setData(DRAGGED, String(i)));
    listen(box, "dragover", (event) => event.dataTransfer.types.includes(DRAGGED) && event.preventDefault());
    listen(box, "drop", (event) => {
      const what = event.dataTransfer.getData(DRAGGED);
      if (!what) return;
      event.preventDefault();
      if (PIECES.includes(what)) put(i, what);
      else swap(Number(what), i);
    });
    return { box, name, before, after };
  });
  const column = html("div", { class: "tl-slots" }, ...slots.map(({ box }) => box).reverse());
  const input = html("p", { class: "tl-end" });
  const stack = focusable(html("div", { class: "tl-stack", tabindex: 0, role: "application", "aria-roledescription": words.stack_role },
    html("p", { class: "tl-heading" }, words.stack), html("p", { class: "tl-end" }, words.output),
    html("div", { class: "tl-tower" }, strip, column), input));
  listen(stack, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = model.get("cursor");
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const end = { Home: 0, End: many - 1 }[event.key];
    if (way || end !== undefined) {
      const to = end ?? Math.min(Math.max(at + way, 0), many - 1);
      if (event.shiftKey && way && to !== at) swap(at, to);
      else set({ cursor: to });
    } else if (PIECES[event.key - 1]) snap(PIECES[event.key - 1]);
    else if (["Delete", "Backspace", "0"].includes(event.key)) put(at, "");
    else return;
    event.preventDefault();
  });

  // The influence matrices side by side, made anew when the other layer is wanted
  const place = html("div", { class: "tl-influences" });
  const legend = html("ul", { class: "tl-legend" }, ...["same", "leak", "missing"].map((name) => html("li", {}, words[`legend_${name}`])));
  let shown = null;
  const remake = (now) => {
    const corner = `${words.row_output}\n${words.column_input}`;
    const rows = tokens[now.goal];
    const from = (group, list) => list.map((token) => ({ ...token, group }));
    const columns = [...from("own", rows), ...from("memory", now.goal === "decoder" ? tokens.encoder : [])];
    const expected = influence({ ...now, slots: PAPER[now.goal], joined: "after" }, rows.length, nMemory);
    const table = matrixTable({ caption: words.influence, corner, rows, columns, lang });
    table.table.classList.add("tl-influence");
    const groups = html("tr", { class: "tl-groups" }, html("td"));
    for (const group of ["own", "memory"]) {
      const size = columns.filter((column) => column.group === group).length;
      const name = `${words[group]} (${rows.length}, ${size})`;
      if (size) groups.append(html("th", { scope: "colgroup", colspan: size, class: `tl-of-${group}` }, name));
    }
    table.table.tHead.prepend(groups);
    table.table.querySelectorAll("tbody tr, thead tr:last-child").forEach((line) => line.children[rows.length + 1]?.classList.add("tl-first"));
    place.replaceChildren(table.table, ...(columns.length > rows.length ? [] : [html("p", { class: "tl-legend" }, words.no_memory)]), legend);
    shown = { goal: now.goal, expected, rows, columns, cells: table.cells };
    input.textContent = words[`input_${now.goal}`];
  };
  const mark = (moved) => {
    const { rows, columns, expected, cells } = shown;
    cells.forEach((line, i) => line.forEach((cell, j) => {
      const [yes, should] = [moved?.[i][j], expected[i][j]];
      const kind = !moved ? "none" : yes ? (should ? "same" : "leak") : should ? "missing" : "none";
      for (const one of ["same", "leak", "missing"]) cell.classList.toggle(`tl-${one}`, one === kind);
      cell.textContent = { same: "●", leak: "!", missing: "□", none: "" }[kind];
      const column = (columns[j].group === "memory" ? "memory " : "") + columns[j].token;
      cell.setAttribute("aria-label", moved ? fill(words[`cell_${kind}`], { row: rows[i].token, column }) : words.impossible);
    }));
  };

  // What it is
  const lamp = html("span", { class: "tl-lamp", "aria-hidden": "true" });
  const verdict = html("strong");
  const list = html("ul", { class: "tl-mistakes" });
  const sights = html("p", { class: "tl-sights" });
  const says = html("div", { class: "tl-verdict" }, html("p", { class: "tl-is" }, lamp, verdict), list, sights);
  const note = html("p", { class: "tl-note" });
  root.append(
    kit.question(), html("div", { class: "tl-row" }, goal.label, joined.label),
    html("div", { class: "tl-matrices tl-workshop" }, palette, stack, place), says,
    kit.presets(), note, kit.status);

  const drawStack = (now) => {
    const at = model.get("cursor");
    const closed = now.slots.lastIndexOf("norm");
    now.slots.forEach((piece, i) => {
      const { box, name, before, after } = slots[i];
      box.className = `tl-slot tl-is-${piece || "empty"}`;
      box.classList.toggle("tl-at", i === at);
      box.draggable = piece !== "";
      name.textContent = nameOf(now, i);
      // With Pre-LN the norm stands below the first sub-layer of each residual connection.
      const below = now.slots.slice(0, i).filter(Boolean).at(-1) ?? "norm";
      const normed = now.joined === "before" && piece && piece !== "norm" && below === "norm" && i < closed;
      before.textContent = normed ? words.norm_before : "";
      after.textContent = piece === "cross" ? words.from_memory : "";
    });
    const height = (boundary) => many * STEP - boundary * STEP;
    const path = (d, dashed) => svg("path", { d, class: dashed ? "tl-side" : "tl-residual" });
    const lines = residuals(now.slots, now.joined).flatMap(([low, high, lane]) => {
      const [x, from, to] = [20 - 4 * lane, height(low) - 2, height(high + 0.5)];
      return [path(`M ${STRIP} ${from} H ${x} V ${to} H ${STRIP - 7}`), svg("path", { d: `M ${STRIP} ${to} l -8 -4 v 8 z`, class: "tl-tip" })];
    });
    if (now.joined === "parallel") {
      const norms = now.slots.flatMap((piece, i) => (piece === "norm" ? [i] : []));
      for (const norm of norms.slice(0, -1)) {
        const to = height(norm + 1);
        lines.push(path(`M ${STRIP} ${height(0) - 6} H 26 V ${to} H ${STRIP}`, true)); // the next sub-layer's input is the layer's
      }
    }
    strip.replaceChildren(...lines);
    const spoken = now.slots.map((_, i) => fill(words.slot, { number: i + 1, piece: nameOf(now, i) })).join(words.comma);
    stack.setAttribute("aria-label", `${fill(words.slot, { number: at + 1, piece: nameOf(now, at) })} / ${words.stack}: ${spoken}`);
  };

  const draw = () => {
    const now = state();
    if (shown?.goal !== now.goal) remake(now);
    const n = shown.rows.length;
    drawStack(now);
    const moved = influence(now, n, nMemory);
    const cut = (matrix, from, to) => matrix && matrix.map((row) => row.slice(from, to));
    const parts = [[0, n], [n, n + nMemory]].map(([from, to]) => [cut(moved, from, to), cut(shown.expected, from, to)]);
    mark(moved);

    const found = findings(now);
    says.classList.toggle("tl-lit", found.length > 0);
    lamp.textContent = found.length ? "!" : "✓";
    verdict.textContent = fill(found.length ? words.wrong : words.right, { goal: words[`goal_${now.goal}`], n: found.length });
    const told = found.map((key) => mistakes[now.goal][key]);
    list.replaceChildren(...told.map(({ title, code, why }) => {
      const name = html("strong", code ? { title: code } : {}, title); // the code as a tooltip: who writes no code knows none
      return html("li", {}, name, `: ${why}`);
    }));
    const seen = [];
    if (!moved) seen.push(words.impossible);
    else {
      const counted = parts.map(([are, should]) => compared(are, should));
      seen.push(fill(words.counts, counted[0]));
      if (now.goal === "decoder") seen.push(fill(words.counts_memory, counted[1]));
      const [leaks, missing] = ["leaks", "missing"].map((name) => counted[0][name] + counted[1][name]);
      if (leaks) seen.push(fill(words.leaks, { n: leaks }));
      if (missing) seen.push(fill(words.missing, { n: missing }));
      if (found.length && !leaks && !missing) seen.push(words.same);
    }
    sights.textContent = seen.join(lang === "ja" ? "" : " ");
    goal.select.value = now.goal;
    joined.select.value = now.joined;
    note.textContent = words.hint;
    kit.speak([verdict.textContent, ...told.map(({ title }) => title), sights.textContent].join(" "));
  };
  kit.watch(["goal", "slots", "joined", "cursor", "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "tokens", "mistakes"]) };
