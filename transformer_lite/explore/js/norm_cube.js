// The normalisation cube: which numbers of (batch, position, feature) share one mean, and what becomes of them.
// common.js stands before it. The pure functions are compared with transformer_lite/explore/norms.py in the tests.

const EPSILON = 1e-5;

/** Normalise x (B, n, d) over the chosen axes: {values, groups} (B, n, d) each, {mean, variance} of each group. */
export function normalise(x, axes, rms) {
  const sizes = [x.length, x[0].length, x[0][0].length];
  const strides = [];
  let count = 1;
  for (let axis = 2; axis >= 0; axis -= 1) {
    strides[axis] = axes[axis] ? 0 : count;
    if (!axes[axis]) count *= sizes[axis];
  }
  const groups = x.map((sentence, b) => sentence.map((token, t) => token.map((_, i) => b * strides[0] + t * strides[1] + i * strides[2])));
  const members = Array.from({ length: count }, () => []);
  x.forEach((sentence, b) => sentence.forEach((token, t) => token.forEach((value, i) => members[groups[b][t][i]].push(value))));
  const average = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const mean = members.map(average);
  const variance = members.map((list, g) => average(list.map((value) => (rms ? value : value - mean[g]) ** 2)));
  const values = x.map((sentence, b) => sentence.map((token, t) => token.map((value, i) => {
    const g = groups[b][t][i];
    return (rms ? value : value - mean[g]) / Math.sqrt(variance[g] + EPSILON);
  })));
  return { values, groups, mean, variance, members };
}

/** How far the first sentence's numbers move at most when the second sentence is replaced. */
export function largestChange(x, other, axes, rms) {
  const [before, after] = [x, [x[0], other]].map((batch) => normalise(batch, axes, rms).values[0]);
  return Math.max(...before.flatMap((token, t) => token.map((value, i) => Math.abs(value - after[t][i]))));
}

/** The name of a choice of axes, as in NAMES of norms.py. */
export function nameOf(axes) {
  return { 1: "layer", 6: "LN4", 2: "LN2", 4: "LN1", 3: "LN3", 7: "all", 5: "unnamed", 0: "none" }[4 * axes[0] + 2 * axes[1] + 1 * axes[2]];
}

export const letter = (group) => String.fromCharCode(65 + group);

// --- drawing ------------------------------------------------------------------------------------------------------------------

const TRAITS = ["batch", "position", "feature", "rms", "replaced", "sentence", "token", "component", "preset"];

/** A tint of one of six colours, and with more groups a pattern over it; the letter on the cell says the same. */
function dress(cell, group) {
  const colour = COLOURS[group % COLOURS.length];
  const line = `${colour}66`;
  const pattern = ["none", `repeating-linear-gradient(45deg, ${line} 0 2px, transparent 2px 7px)`,
    `repeating-linear-gradient(0deg, ${line} 0 2px, transparent 2px 6px)`,
    `repeating-linear-gradient(135deg, ${line} 0 2px, transparent 2px 7px)`][Math.floor(group / COLOURS.length) % 4];
  cell.style.backgroundColor = `${colour}2b`;
  cell.style.backgroundImage = pattern;
  cell.style.borderColor = colour;
}

function build(model, element) {
  const kit = toolkit(model, "tl-norms");
  const { words, root, listen, set } = kit;
  const [numbers, other, tokens] = ["numbers", "other", "tokens"].map((name) => model.get(name));
  const otherLang = model.get("lang") === "ja" ? "en" : "ja";
  const sizes = [numbers.length, numbers[0].length, numbers[0][0].length];

  /** One sentence before or after: its caption, the heads of its rows, and its cells. */
  const slice = (b, after) => {
    const caption = html("caption");
    const head = html("tr", {}, html("td", { class: "tl-corner" }));
    for (let i = 0; i < sizes[2]; i += 1) head.append(html("th", { scope: "col" }, fill(words.feature, { number: i + 1 })));
    const body = html("tbody");
    const names = [];
    const cells = Array.from({ length: sizes[1] }, (_, t) => {
      const row = html("tr", {}, (names[t] = html("th", { scope: "row" })));
      const made = Array.from({ length: sizes[2] }, (_, i) => {
        const value = html("span", { class: "tl-value" });
        const mark = html("span", { class: after ? "tl-was" : "tl-letter" });
        const cell = html("td", { class: "tl-norm-cell" }, value, mark);
        if (!after) listen(cell, "click", () => set({ sentence: b, token: t, component: i }));
        row.append(cell);
        return { cell, value, mark };
      });
      body.append(row);
      return made;
    });
    return { caption, names, cells, table: html("table", { class: "tl-slice" }, caption, html("thead", {}, head), body) };
  };
  const before = [0, 1].map((b) => slice(b, false));
  const after = [0, 1].map((b) => slice(b, true));

  // Controls
  const ticks = ["batch", "position", "feature"].map((axis) => kit.tick(words[`axis_${axis}`], `tl-axis-${axis}`, (on) => set({ [axis]: on })));
  const rms = kit.tick(words.rms, "tl-rms", (on) => set({ rms: on }));
  const axes = html("fieldset", {}, html("legend", {}, words.axes), ...ticks.map((one) => one.label));
  const now = html("p", { class: "tl-now" });
  const replace = kit.button("", "tl-replace", () => set({ replaced: !model.get("replaced") }));
  const change = html("p", { class: "tl-change" });
  const cellText = html("p", { class: "tl-cell-text" });
  const note = html("p", { class: "tl-note" });

  const groupHead = html("tr");
  const groupBody = html("tbody");
  const groupTable = html("table", { class: "tl-group-table" }, html("caption", {}, words.groups), html("thead", {}, groupHead), groupBody);

  const grid = focusable(html("div", { class: "tl-slices", tabindex: 0, role: "application", "aria-roledescription": words.cube_role },
    html("p", { class: "tl-heading" }, words.before), ...before.map((one) => one.table)));
  const results = html("div", { class: "tl-slices" }, html("p", { class: "tl-heading" }, words.after), ...after.map((one) => one.table));
  root.append(
    kit.question(),
    html("div", { class: "tl-controls tl-row" }, axes, rms.label), now,
    html("div", { class: "tl-cube" }, grid, results, html("div", { class: "tl-numbers" }, groupTable)),
    cellText,
    html("div", { class: "tl-swap-line" }, replace, change),
    kit.presets(), note, kit.status);

  listen(grid, "keydown", (event) => {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const line = model.get("sentence") * sizes[1] + model.get("token") + way[0]; // both sentences are one column of rows
    const component = model.get("component") + way[1];
    if (line < 0 || line >= sizes[0] * sizes[1] || component < 0 || component >= sizes[2]) return;
    set({ sentence: Math.floor(line / sizes[1]), token: line % sizes[1], component });
  });

  const draw = () => {
    const [overBatch, overPosition, overFeature, withoutMean, replaced] = TRAITS.slice(0, 5).map((name) => model.get(name));
    const at = ["sentence", "token", "component"].map((name) => model.get(name));
    const chosen = [overBatch, overPosition, overFeature];
    const x = [numbers[0], replaced ? other : numbers[1]];
    const found = normalise(x, chosen, withoutMean);
    const original = normalise(numbers, chosen, withoutMean).values;
    const group = found.groups[at[0]][at[1]][at[2]];

    x.forEach((sentence, b) => {
      const shownTokens = tokens[b === 1 && replaced ? 2 : b];
      for (const side of [before[b], after[b]]) {
        side.caption.textContent = fill(b === 1 && replaced ? words.replaced_sentence : words.sentence, { number: b + 1 });
        side.names.forEach((name, t) => name.replaceChildren(shownTokens[t].word, html("span", { class: "tl-gloss", lang: otherLang }, shownTokens[t].gloss)));
      }
      sentence.forEach((token, t) => token.forEach((value, i) => {
        const mine = found.groups[b][t][i];
        const [input, output] = [before[b].cells[t][i], after[b].cells[t][i]];
        input.value.textContent = number(value, 0);
        input.mark.textContent = letter(mine);
        output.value.textContent = number(found.values[b][t][i]);
        const moved = b === 0 && replaced && Math.abs(found.values[b][t][i] - original[b][t][i]) > 0.0005;
        output.mark.textContent = moved ? fill(words.change_mark, { value: number(original[b][t][i]) }) : "";
        output.cell.classList.toggle("tl-shifted", moved);
        for (const one of [input.cell, output.cell]) {
          dress(one, mine);
          one.classList.toggle("tl-same-group", mine === group);
          one.classList.toggle("tl-at", b === at[0] && t === at[1] && i === at[2]);
        }
      }));
    });

    const key = nameOf(chosen);
    const name = withoutMean ? (key === "layer" ? words.name_LN9 : words[`name_${key}`] + words.rms_suffix) : words[`name_${key}`];
    now.textContent = fill(words.now, { name });
    groupHead.replaceChildren(...[words.group, words.numbers, words.mean, withoutMean ? words.mean_square : words.variance].map((one) => html("th", { scope: "col" }, one)));
    groupBody.replaceChildren(...found.members.map((list, g) => {
      const head = html("th", { scope: "row" }, html("span", { class: "tl-group-chip" }, letter(g)));
      dress(head.firstElementChild, g);
      const shown = list.length > 6 ? `${list.slice(0, 6).map((value) => number(value, 0)).join(words.comma)}, …` : list.map((value) => number(value, 0)).join(words.comma);
      const row = html("tr", {}, head, ...[shown, number(found.mean[g]), number(found.variance[g])].map((text) => html("td", {}, text)));
      row.classList.toggle("tl-current", g === group);
      return row;
    }));
    cellText.textContent = fill(withoutMean ? words.cell_rms : words.cell, {
      group: letter(group), numbers: found.members[group].map((value) => number(value, 0)).join(words.comma), mean: number(found.mean[group]),
      variance: number(found.variance[group]), x: number(x[at[0]][at[1]][at[2]], 0), result: number(found.values[at[0]][at[1]][at[2]]),
    });
    const moved = largestChange(numbers, other, chosen, withoutMean);
    change.textContent = replaced ? fill(moved > 0.0005 ? words.changed : words.unchanged, { change: number(moved, 3) }) : words.waiting;
    replace.textContent = replaced ? words.restore : words.replace;
    ticks.forEach((one, axis) => (one.input.checked = chosen[axis]));
    rms.input.checked = withoutMean;
    note.textContent = kit.note();
    grid.setAttribute("aria-label", `${words.before}: ${cellText.textContent}`);
    kit.speak(`${now.textContent} ${cellText.textContent} ${change.textContent}`);
  };
  kit.watch(TRAITS, draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "tokens"]) };
