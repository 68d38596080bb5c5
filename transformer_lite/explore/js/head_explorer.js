// The head explorer: what h changes and what it does not, and four roles that one head blurs.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/heads.py.

const MOST_SHOWN = 4;
const ROLES = ["subject", "object", "neighbour", "verb"];

/** Sizes and multiply-adds of one multi-head attention over n tokens, counted head by head. */
export function ledger(h, d, n) {
  const dK = d / h;
  return {
    d_k: dK,
    divisor: Math.sqrt(dK),
    parameters: 3 * h * (d * dK) + h * dK * d, // W^Q, W^K, W^V of every head, and W^O
    projection_cost: 3 * h * (n * d * dK) + n * (h * dK) * d,
    score_cost: h * (n * n * dK) + h * (n * n * dK),
    weight_count: h * n * n,
  };
}

/** [head]: (n, d_k). Split by features (right), or by a reshape alone, which fills the numbers in anew. */
export function splitHeads(x, h, how) {
  const width = x[0].length / h;
  const heads = Array.from({ length: h }, (_, head) => head);
  if (how === "features") return heads.map((head) => x.map((row) => row.slice(head * width, (head + 1) * width)));
  const flat = x.flat();
  const filled = (at) => flat.slice(at * width, (at + 1) * width);
  return heads.map((head) => x.map((_, row) => filled(head * x.length + row)));
}

/** [head]: {weights (n, n), output (n, d_k)}. */
export function headsOf(x, [wQ, wK, wV], h, how) {
  const [queries, keys, values] = [wQ, wK, wV].map((w) => splitHeads(multiplied(x, w), h, how));
  return queries.map((query, head) => {
    const weights = scoresOf(query, keys[head]).map(rowSoftmax);
    return { weights, output: multiplied(weights, values[head]) };
  });
}

/** (n, d_model): the heads in their order or reversed, concatenated or added, times W^O, whose rows may follow the order. */
export function putTogether(x, projections, h, { split, together, reverse, rows }) {
  let outputs = headsOf(x, projections, h, split).map((head) => head.output);
  if (reverse) outputs = outputs.reverse();
  const width = x[0].length / h;
  const wO = projections[3];
  if (together === "sum") {
    const sum = outputs[0].map((row, i) => row.map((_, c) => outputs.reduce((total, head) => total + head[i][c], 0)));
    return multiplied(sum, wO.slice(0, width));
  }
  const blocks = Array.from({ length: h }, (_, head) => wO.slice(head * width, (head + 1) * width));
  const matrix = (reverse && rows ? blocks.reverse() : blocks).flat();
  if (split === "features") return multiplied(x.map((_, i) => outputs.flatMap((head) => head[i])), matrix);
  const flat = outputs.flat(2);
  return multiplied(x.map((row, i) => flat.slice(i * row.length, (i + 1) * row.length)), matrix);
}

/** By how much, at most, the output changes with the order of the heads. */
export function orderDifference(x, projections, h, state) {
  const [now, before] = [state, { ...state, reverse: false, rows: false }].map((one) => putTogether(x, projections, h, one));
  return Math.max(...now.flatMap((row, i) => row.map((value, c) => Math.abs(value - before[i][c]))));
}

/** The (token, part) that row `row` of head `head` holds after a reshape alone. */
export function piece(head, row, h, n) {
  const at = head * n + row;
  return [Math.floor(at / h), at % h];
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const whole = (value) => value.toLocaleString("en-US");

function build(model, element) {
  const tools = toolkit(model, "tl-heads");
  const { words, root, set } = tools;
  const lang = model.get("lang");
  const x = model.get("vectors");
  const projections = model.get("projections");
  const choices = model.get("choices");
  const tokens = model.get("tokens").map((token, i) => ({ token, gloss: model.get("glosses")[i] }));
  const n = tokens.length;

  // Sizes
  const heads = tools.slider(words.heads, "tl-h", { min: 0, max: choices.heads.length - 1, step: 1 }, (at) =>
    set({ n_heads: choices.heads[at], preset: -1 }),
  );
  const sized = (name, className, trait, values) =>
    tools.choice(
      name, className, values.map((value) => [value, whole(value)]), (value) => set({ [trait]: Number(value), preset: -1 }),
    );
  const width = sized(words.width, "tl-width", "d_model", choices.widths);
  const length = sized(words.length, "tl-length", "n", choices.lengths);
  const sizes = html("div", { class: "tl-row tl-controls tl-sizes" }, heads.label, width.label, length.label);

  // The ledger
  const nowHead = html("th", { scope: "col" });
  const head = html("tr", {}, html("th", { scope: "col" }, words.what), html("th", { scope: "col" }, words.one), nowHead);
  head.append(html("th", { scope: "col" }, words.times));
  const body = html("tbody");
  const shapes = {
    projected: () => `(B, n, ${model.get("d_model")})`,
    split_shape: (h, d) => `(B, ${h}, n, ${d / h})`,
    scores_shape: (h) => `(B, ${h}, n, n)`,
    concat_shape: () => `(B, n, ${model.get("d_model")})`,
  };
  const order = ["projected", "d_k", "split_shape", "divisor", "scores_shape", "concat_shape"];
  const lines = [...order, "parameters", "projection_cost", "score_cost", "weight_count"].map((name) => {
    const cells = [html("td"), html("td"), html("td", { class: "tl-ratio" })];
    const line = html("tr", {}, html("th", { scope: "row" }, words[name]), ...cells);
    body.append(line);
    return { name, cells, line };
  });
  const ledgerTable = html("table", { class: "tl-ledger" }, html("caption", {}, words.ledger), html("thead", {}, head), body);

  // The paper's table 3
  const bleuBody = html("tbody");
  const bleuRows = choices.table_3.map(([h, dK, perplexity, bleu]) => {
    const filled = html("span", { style: `width:${((bleu - 24) / 2) * 100}%` }); // from 24 to 26, as the caption says
    const bar = html("span", { class: "tl-bar", "aria-hidden": "true" }, filled);
    const line = html("tr", {}, html("th", { scope: "row" }, String(h)), html("td", {}, String(dK)));
    line.append(html("td", {}, number(perplexity)), html("td", {}, bar, number(bleu, 1)));
    bleuBody.append(line);
    return { h, line };
  });
  const bleuNames = [words.bleu_h, "d_k", words.bleu_ppl, words.bleu_score];
  const bleuHead = html("tr", {}, ...bleuNames.map((name) => html("th", { scope: "col" }, name)));
  const bleuTable = html("table", { class: "tl-bleu" }, html("caption", {}, words.bleu), html("thead", {}, bleuHead), bleuBody);

  // The maps, and the test of the order
  const maps = html("div", { class: "tl-matrices tl-maps" });
  const mapsTitle = html("p", { class: "tl-heading" }, words.maps);
  const few = html("p", { class: "tl-legend" });
  const queries = tokens.map(({ token, gloss }, i) => [i, `${token} ${gloss}`]);
  const query = tools.choice(words.row, "tl-query-choice", queries, (i) => set({ row: Number(i) }));
  const said = html("p", { class: "tl-said" });
  const ways = (name, values) => values.map((value) => [value, words[`${name}_${value}`]]);
  const splits = ways("split", ["features", "reshape"]);
  const split = tools.choice(words.split, "tl-split", splits, (value) => set({ split: value, preset: -1 }));
  const sums = ways("together", ["concat", "sum"]);
  const together = tools.choice(words.together, "tl-together", sums, (value) => set({ together: value, preset: -1 }));
  const reverse = tools.tick(words.reverse, "tl-reverse", (on) => set({ reverse: on, preset: -1 }));
  const rows = tools.tick(words.rows, "tl-rows", (on) => set({ rows: on, preset: -1 }));
  const difference = html("strong", { class: "tl-difference" });
  const test = html("div", { class: "tl-row tl-test", role: "group", "aria-label": words.order }, split.label, together.label);
  test.append(reverse.label, rows.label, difference);
  const note = html("p", { class: "tl-note" });
  root.append(
    tools.question(), sizes, html("div", { class: "tl-matrices" }, html("div", {}, ledgerTable), html("div", {}, bleuTable)),
    mapsTitle, maps, few, html("div", { class: "tl-row" }, query.label, said), test, tools.presets(), note, tools.status,
  );
  element.replaceChildren(root);

  let before = "";
  let shown = [];
  const redrawMaps = (h, how) => {
    const corner = `${words.row_query}\n${words.column_key}`;
    shown = headsOf(x, projections, h, how).map(({ weights }, i) => {
      const cut = how === "reshape" && h > 1;
      const share = ROLES.length / h;
      const roles = ROLES.slice(i * share, (i + 1) * share).map((role) => words[`role_${role}`]);
      const role = cut ? fill(words.role_piece, { part: i + 1, h }) : roles.join(words.role_joined);
      const named = tokens.map((token, row) => {
        if (!cut) return token;
        const [place, part] = piece(i, row, h, n);
        return { token: `${tokens[place].token} ${part + 1}/${h}`, gloss: tokens[place].gloss };
      });
      const caption = fill(words.head, { number: i + 1, role });
      const columns = cut ? named.map(({ token }) => ({ token })) : named; // pieces are long names; the rows carry the glosses
      const table = matrixTable({ caption, corner, rows: named, columns, lang });
      weights.forEach((row, q) => row.forEach((weight, k) => paint(table.cells[q][k], weight)));
      return { table, weights, cut };
    });
    maps.replaceChildren(...shown.map(({ table }) => html("div", {}, table.table)));
  };

  const draw = () => {
    const h = model.get("n_heads");
    const d = model.get("d_model");
    const state = Object.fromEntries(["split", "together", "reverse", "rows"].map((name) => [name, model.get(name)]));
    const small = Math.min(h, MOST_SHOWN);
    heads.show(choices.heads.indexOf(h), String(h));
    width.select.value = d;
    length.select.value = model.get("n");

    nowHead.textContent = fill(words.now, { h });
    const [one, many] = [ledger(1, d, model.get("n")), ledger(h, d, model.get("n"))];
    for (const { name, cells, line } of lines) {
      if (shapes[name]) {
        const [first, second] = [shapes[name](1, d), shapes[name](h, d)];
        cells[0].textContent = first;
        cells[1].textContent = second;
        cells[2].textContent = first === second ? "=" : "≠";
        line.classList.toggle("tl-changed", first !== second);
      } else {
        const ratio = many[name] / one[name];
        const text = (value) => (name === "divisor" ? number(value) : whole(value));
        cells[0].textContent = text(one[name]);
        cells[1].textContent = text(many[name]);
        const inverse = 1 / ratio;
        const digits = Math.abs(inverse - Math.round(inverse)) < 1e-9 ? 0 : 2;
        cells[2].textContent = ratio === 1 ? "=" : ratio > 1 ? `× ${whole(ratio)}` : `÷ ${number(inverse, digits)}`;
        line.classList.toggle("tl-changed", ratio !== 1);
      }
    }
    for (const row of bleuRows) row.line.classList.toggle("tl-changed", row.h === h);

    const now = JSON.stringify([small, state.split]);
    if (now !== before) {
      before = now;
      redrawMaps(small, state.split);
    }
    few.textContent = h > MOST_SHOWN ? words.maps_few : "";
    few.hidden = h <= MOST_SHOWN;
    const row = model.get("row");
    query.select.value = row;
    const cut = shown.some((map) => map.cut);
    query.select.disabled = cut;
    shown.forEach(({ table }) => table.lines.forEach((line, i) => line.classList.toggle("tl-on", !cut && i === row)));
    said.textContent = cut
      ? words.row_pieces
      : fill(words.query, {
          token: tokens[row].token,
          heads: shown
            .map(({ weights }, i) => {
              const strong = weights[row].flatMap((weight, j) =>
                weight >= 0.15 ? [fill(words.row_weight, { token: tokens[j].token, weight: number(weight) })] : [],
              );
              return fill(words.row_head, { number: i + 1, weights: strong.join(" ") });
            })
            .join(words.comma),
        });

    split.select.value = state.split;
    together.select.value = state.together;
    reverse.input.checked = state.reverse;
    rows.input.checked = state.rows;
    rows.input.disabled = state.together === "sum" || !state.reverse;
    const changed = orderDifference(x, projections, small, state);
    if (small === 1) difference.textContent = words.difference_one;
    else if (!state.reverse) difference.textContent = words.difference_none;
    else difference.textContent = changed > 1e-9 ? fill(words.difference, { value: number(changed) }) : words.difference_zero;
    note.textContent = tools.note();
    tools.speak([`h = ${h}.`, said.textContent, difference.textContent].join(" "));
  };
  tools.watch(["n_heads", "d_model", "n", "split", "together", "reverse", "rows", "row", "preset"], draw);
  return tools.close;
}

const render = mounted(build);
export default { render };
