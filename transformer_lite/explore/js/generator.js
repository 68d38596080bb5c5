// The generator: a translation written token by token, with its probabilities, its cross-attention and its work.
// common.js and looking.js stand before it. The pure functions are compared with transformer_lite/explore/generating.py.

const COSTS = ["encoder", "decoder", "positions", "repeated", "source_rows", "scores"];

/** What pass number `step` computes for a source of n tokens, with a KV cache or without one, counted token by token. */
export function work(step, n, cache) {
  const cost = Object.fromEntries(COSTS.map((name) => [name, 0]));
  cost.encoder = step === 1 ? 1 : 0;
  cost.decoder = 1;
  cost.source_rows = step === 1 || !cache ? n : 0;
  for (let position = cache ? step : 1; position <= step; position += 1) {
    cost.positions += 1;
    if (position < step) cost.repeated += 1; // only the newest has never been computed before
    cost.scores += step; // its query meets every key; a mask hides some of the scores afterwards
  }
  return cost;
}

/** The sum over the passes 1 to `step`. */
export function workSoFar(step, n, cache) {
  const total = work(1, n, cache);
  for (let t = 2; t <= step; t += 1) {
    const more = work(t, n, cache);
    for (const name of COSTS) total[name] += more[name];
  }
  return total;
}

/** The product of the probabilities of what was written up to pass `step`. */
export function productOf(likely, step) {
  return likely.slice(0, step).reduce((product, row) => product * row[0].p, 1);
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const CELL = 10;
const wholeNumber = (value) => value.toLocaleString("en-US");

/** The passes as rows of squares: what each computes for the first time, again, or takes from the cache. */
function triangle(m, cache, name) {
  const size = m * CELL;
  const square = (row, column) => `M ${column * CELL + 1} ${row * CELL + 1} h ${CELL - 2} v ${CELL - 2} h ${2 - CELL} z`;
  const picture = svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "tl-triangle", role: "img" });
  const rows = Array.from({ length: m }, (_, row) => {
    const before = Array.from({ length: row }, (_, column) => square(row, column)).join(" ");
    const group = svg("g");
    if (before) group.append(svg("path", { d: before, class: cache ? "tl-kept" : "tl-again" }));
    group.append(svg("path", { d: square(row, row), class: "tl-new" }));
    picture.append(group);
    return group;
  });
  return { figure: html("figure", {}, html("figcaption", {}, name), picture), picture, rows };
}

function build(model, element) {
  const tools = toolkit(model, "tl-generator");
  const { words, root, listen, set } = tools;
  const lang = model.get("lang");
  const field = sentenceField(model, tools);
  const count = () => model.get("looked").target.length;
  const at = () => Math.min(model.get("step"), count());
  const go = (step) => set({ step: Math.min(Math.max(step, 1), count()) });

  // Going from pass to pass
  const moves = { first: () => go(1), back: () => go(at() - 1), next: () => go(at() + 1), last: () => go(count()) };
  const buttons = Object.fromEntries(Object.entries(moves).map(([name, move]) => [name, tools.button(words[name], `tl-${name}`, move)]));
  const nav = html("div", { class: "tl-nav tl-row", role: "group", "aria-label": words.steps }, ...Object.values(buttons));
  const step = tools.slider(words.step, "tl-step", { min: 1, max: 1, step: 1 }, go);
  const keys = { ArrowLeft: "back", ArrowUp: "back", ArrowRight: "next", ArrowDown: "next", Home: "first", End: "last" };
  listen(nav, "keydown", (event) => {
    const move = moves[keys[event.key]];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    move();
  });
  const choices = layerAndHead(model, tools);
  const controls = html("div", { class: "tl-row tl-controls tl-steps" }, nav, step.label, ...choices.labels);

  // Source and decoder's input, side by side with what comes next
  const source = html("div", { class: "tl-chips", role: "group", "aria-label": words.source });
  const target = html("div", { class: "tl-chips", role: "group", "aria-label": words.target });
  const product = html("span", { class: "tl-product" });
  const strip = (name, note, chips) =>
    html("div", { class: "tl-strip" }, html("p", { class: "tl-heading" }, name, html("span", { class: "tl-legend" }, note)), chips);
  const said = html("p", { class: "tl-said" });

  // What is probable, and where the row that predicts it looks
  const headRow = (...names) => html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, name)));
  const probableBody = html("tbody");
  const probable = html("table", { class: "tl-probable" }, html("caption", {}, words.probabilities),
    html("thead", {}, headRow(words.rank, words.token, words.probability)), probableBody);
  const attentionTitle = html("caption");
  const attentionHead = html("thead");
  const attentionBody = html("tbody");
  const attention = html("table", { class: "tl-attended tl-matrix" }, attentionTitle, attentionHead, attentionBody);

  // The work
  const parts = ["in_this", "in_all"];
  const workHead = html("thead", {},
    html("tr", {}, html("td"), ...parts.map((name) => html("th", { scope: "colgroup", colspan: 2 }, words[name]))),
    html("tr", {}, html("td"), ...parts.flatMap(() => [words.without, words.with].map((name) => html("th", { scope: "col" }, name)))));
  const workBody = html("tbody");
  const costs = COSTS.map((name) => {
    const cells = Array.from({ length: 4 }, () => html("td"));
    const line = html("tr", { class: `tl-cost-${name}` }, html("th", { scope: "row" }, words[name]), ...cells);
    workBody.append(line);
    return { name, cells, line };
  });
  const workTable = html("table", { class: "tl-work" }, html("caption", {}, words.work), workHead, workBody);
  const triangles = html("div", { class: "tl-triangles" });
  const legend = html("p", { class: "tl-legend tl-key" }, ...["new", "again", "kept"].map((name) =>
    html("span", {}, html("span", { class: `tl-sign tl-sign-${name}`, "aria-hidden": "true" }), words[`legend_${name}`])));
  const drawn = html("div", { class: "tl-drawn" }, html("p", { class: "tl-heading" }, words.triangle), triangles, legend);

  const stage = html("div", { class: "tl-stage" },
    controls, strip(words.source, words.source_note, source), strip(words.target, words.target_note, target), product, said,
    html("div", { class: "tl-matrices" }, html("div", {}, probable), html("div", {}, attention)),
    html("div", { class: "tl-matrices tl-below" }, html("div", {}, workTable), drawn));
  root.append(tools.question(), field.element, stage, html("p", { class: "tl-note" }, words.hint), tools.status);
  element.replaceChildren(root);

  // What follows from the sentence is made when it changes.
  let shown = null;
  const chip = (token, side, className = "") => html("span", { class: `tl-chip ${className}` }, glossed(token, side, lang));
  const remake = (looked) => {
    const m = looked.target.length;
    step.input.max = m;
    const sources = looked.source.map((token) => chip(token, "source"));
    source.replaceChildren(...sources);
    const heads = looked.cross[0].length;
    const over = html("tr", {}, html("td"), html("td"), html("th", { scope: "colgroup", colspan: heads }, words.head_choice));
    attentionHead.replaceChildren(over, headRow(words.source_word, words.weight, ...Array.from({ length: heads }, (_, i) => String(i + 1))));
    const lines = looked.source.map((token) => {
      const filled = html("span");
      const weight = html("span", { class: "tl-percent" });
      const bar = html("td", { class: "tl-weight" }, html("span", { class: "tl-bar", "aria-hidden": "true" }, filled), weight);
      const cells = Array.from({ length: heads }, () => html("td", { class: "tl-cell" }));
      const line = html("tr", {}, html("th", { scope: "row" }, glossed(token, "source", lang)), bar, ...cells);
      return { line, filled, weight, cells };
    });
    attentionBody.replaceChildren(...lines.map(({ line }) => line));
    attention.classList.toggle("tl-many-rows", looked.source.length > 12);
    const pictures = [false, true].map((cache) => triangle(m, cache, words[cache ? "triangle_with" : "triangle_without"]));
    triangles.replaceChildren(...pictures.map(({ figure }) => figure));
    shown = { looked, sources, lines, heads: [...attentionHead.rows[1].cells].slice(2), pictures };
  };

  const draw = () => {
    const looked = model.get("looked");
    if (shown?.looked !== looked) remake(looked);
    field.show();
    const { sources, lines, heads, pictures } = shown;
    const [t, m, n] = [at(), looked.target.length, looked.source.length];
    const layer = Math.min(model.get("layer"), looked.cross.length - 1);
    const head = Math.min(model.get("head"), heads.length - 1);
    choices.show(looked.cross.length, heads.length);
    step.show(t, fill(words.step_of, { t, m }));
    for (const [name, off] of [["first", t === 1], ["back", t === 1], ["next", t === m], ["last", t === m]]) {
      buttons[name].setAttribute("aria-disabled", String(off)); // a disabled button would lose the focus, and with it the keys
    }

    const row = rowOf(looked.cross[layer], head, t - 1);
    const best = heaviest(row);
    sources.forEach((one, j) => {
      const { paper, ink } = shade(row[j]);
      one.style.background = paper;
      one.style.color = ink;
      one.classList.toggle("tl-best", j === best);
    });
    const written = looked.held.slice(0, t).map((token, i) => chip(token, "target", i === t - 1 ? "tl-reading" : ""));
    const next = chip(looked.target[t - 1], "target", "tl-next");
    next.setAttribute("aria-label", `${words.written}: ${looked.target[t - 1].token}`);
    target.replaceChildren(...written, html("span", { class: "tl-arrow", "aria-hidden": "true" }, "→"), next);
    product.textContent = fill(words.so_far, { product: number(productOf(looked.likely, t), 3) });

    probableBody.replaceChildren(...looked.likely[t - 1].map(({ p, ...token }, i) => {
      const filled = html("span", { style: `width:${100 * p}%` });
      const bar = html("td", {}, html("span", { class: "tl-bar", "aria-hidden": "true" }, filled), number(p, 3));
      const line = html("tr", {}, html("th", { scope: "row" }, String(i + 1)), html("td", {}, glossed(token, "target", lang)), bar);
      line.classList.toggle("tl-chosen", i === 0);
      return line;
    }));

    attentionTitle.textContent = fill(words.attention, {
      held: looked.held[t - 1].token, layer: layerName(layer, words), head: headName(head, words),
    });
    lines.forEach(({ line, filled, weight, cells }, j) => {
      filled.style.width = `${100 * row[j]}%`;
      weight.textContent = number(row[j]);
      line.classList.toggle("tl-best", j === best);
      cells.forEach((cell, h) => {
        paint(cell, looked.cross[layer][h][t - 1][j]);
        cell.classList.toggle("tl-at", h === head);
      });
    });
    heads.forEach((cell, h) => cell.classList.toggle("tl-at", h === head));

    const figures = [work, workSoFar].flatMap((of) => [of(t, n, false), of(t, n, true)]);
    for (const { name, cells, line } of costs) {
      cells.forEach((cell, i) => (cell.textContent = wholeNumber(figures[i][name])));
      line.classList.toggle("tl-differs", figures[2][name] !== figures[3][name]);
    }
    const spoken = fill(words.pass_work, { t, without: figures[0].positions, with: figures[1].positions });
    for (const { picture, rows } of pictures) {
      picture.setAttribute("aria-label", spoken);
      rows.forEach((group, i) => {
        group.classList.toggle("tl-future", i >= t);
        group.classList.toggle("tl-now", i === t - 1);
      });
    }

    const told = fill(words[t === 1 ? "said_first" : "said"], {
      t, held: named(looked.held[t - 1], "target", lang, words), token: named(looked.target[t - 1], "target", lang, words),
      p: number(looked.likely[t - 1][0].p, 3), source: named(looked.source[best], "source", lang, words), weight: number(row[best]),
    });
    const ends = t < m ? "" : (lang === "ja" ? "" : " ") + words[looked.ended ? "said_end" : "said_cut"];
    said.textContent = told + ends;
    tools.speak(said.textContent);
  };
  tools.watch(["step", "layer", "head", "looked", "asked", "answered", "trouble", "doubts"], draw);
  return tools.close;
}

export default { render: mounted(build, ["strings"]) };
