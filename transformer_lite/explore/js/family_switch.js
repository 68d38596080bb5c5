// The family switch: mask, head and loss turn one stack of blocks into BERT, GPT, ViT or the original Transformer.
// common.js stands before it. The pure functions are compared with transformer_lite/explore/families.py, which computes the stack with
// numbers; here only the pattern of what depends on what is put together. A setup is {tokens, mask, head, loss, at}.

const N = { words: 5, patches: 4 };
const SWITCHES = {
  mask: ["none", "causal", "cross"], head: ["vocabulary", "class", "none"], loss: ["hidden", "next", "class"], tokens: ["words", "patches"],
};

/** {own, source}: how many tokens the stack that predicts is fed (without its front), and how many the encoder beside it reads. */
export function sizes({ tokens, mask }) {
  return mask === "cross" ? { own: N.words, source: N[tokens] } : { own: N[tokens], source: 0 };
}

/** The chosen token; there are fewer patches than words. */
export function chosen(setup) {
  return Math.min(setup.at, sizes(setup).own - 1);
}

/** The token that [MASK] stands for, or −1. */
export function hidden(setup) {
  return setup.loss === "hidden" ? chosen(setup) : -1;
}

/** What stands before the tokens. */
export function front({ head, loss }) {
  return loss === "next" && head !== "class" ? "BOS" : "[CLS]";
}

/** The position, counted from the front, at which each prediction is read: for the next word one earlier, which is the right shift. */
export function readAt(setup) {
  if (setup.head === "class") return [0];
  const early = setup.head === "vocabulary" && setup.loss === "next";
  return Array.from({ length: sizes(setup).own }, (_, k) => (early ? k : k + 1));
}

/** Whether position p of the stack that predicts may attend to position q. */
export function allowed({ mask }, p, q) {
  return mask === "none" || q <= p;
}

/** [prediction][token]: whether the prediction moves when the true token does; those of the source come first. */
export function influence(setup) {
  const { own, source } = sizes(setup);
  const behind = hidden(setup);
  return readAt(setup).map((p) => [
    ...Array(source).fill(true), // cross-attention sees all that the encoder read
    ...Array.from({ length: own }, (_, j) => j !== behind && allowed(setup, p, j + 1)),
  ]);
}

/** What this combination is, and if it is nothing, why. */
export function verdict({ tokens, mask, head, loss }) {
  if (head === "none") return "no_head";
  if (head === "class" && loss !== "class") return "wants_words";
  if (head === "vocabulary" && tokens === "patches" && mask !== "cross") return "no_vocabulary";
  if (head === "vocabulary" && loss === "class") return "wants_class";
  if (head === "class") return { none: tokens === "patches" ? "vit" : "classifier", causal: "blind_cls", cross: "idle_decoder" }[mask];
  if (loss === "hidden") return { none: "bert", causal: "left_only", cross: "gap_decoder" }[mask];
  return { none: "leak", causal: "gpt", cross: tokens === "patches" ? "captioner" : "original" }[mask];
}

const SOUND = ["bert", "classifier", "vit", "gpt", "original", "captioner"];

/** Which predictions the loss marks. */
export function counted(setup) {
  const none = ["no_head", "no_vocabulary", "wants_words", "wants_class"].includes(verdict(setup));
  return readAt(setup).map((_, k) => !none && (setup.loss !== "hidden" || k === hidden(setup)));
}

/** [prediction][token]: "" it does not move it, "mask" [MASK] stands at its place, "answer", "later" (after it), else "used". */
export function kinds(setup) {
  const { source } = sizes(setup);
  const [marked, positions, behind] = [counted(setup), readAt(setup), hidden(setup)];
  return influence(setup).map((row, k) => row.map((moves, j) => {
    const own = j - source;
    if (own >= 0 && own === behind) return allowed(setup, positions[k], own + 1) ? "mask" : "";
    if (!moves) return "";
    if (own >= 0 && marked[k] && setup.head === "vocabulary") {
      if (own === k) return "answer";
      if (own > k && setup.loss === "next") return "later";
    }
    return "used";
  }));
}

/** How many of the marked predictions see their own answer. */
export function leaks(setup) {
  return kinds(setup).filter((row) => row.includes("answer")).length;
}

/** Whether the answer leaks. */
export function leakKind(setup) {
  if (!counted(setup).includes(true)) return "nothing";
  if (setup.head === "class") return "class";
  return leaks(setup) ? "yes" : "no";
}

/** Whether it can write on, and if not, why. */
export function writes(setup) {
  const special = {
    leak: "copies", bert: "fills", left_only: "fills_left", gap_decoder: "fills_left", no_head: "no_head",
    no_vocabulary: "no_vocabulary", wants_class: "untrained",
  };
  return special[verdict(setup)] ?? (setup.head === "class" ? "class_only" : "yes");
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const SIGNS = { "": "", used: "●", mask: "M", answer: "!", later: "→" };
const COLUMN = 62; // of the diagram's 372 units; a box leaves 4 of them free
const AT = { heading: 12, mark: 30, prediction: 44, input: 140, inputName: 194, source: 244, sourceName: 298 };
const BOX = 38;
let switches = 0; // groups of radio buttons need a name of their own

function build(model, element) {
  const kit = toolkit(model, "tl-families");
  const { words, root, listen, set } = kit;
  const lang = model.get("lang");
  const rows = model.get("rows");
  const id = (switches += 1);
  const names = ["tokens", "mask", "head", "loss", "at"];
  const state = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const shown = (setup) => {
    const read = setup.tokens === "patches" ? rows.patches : setup.mask === "cross" ? rows.source : rows.own;
    return setup.mask === "cross" ? { source: read, own: rows.target } : { source: [], own: read };
  };

  // Switches
  const radios = [];
  const fieldset = (name) => {
    const made = html("fieldset", { class: `tl-of-${name}` }, html("legend", {}, words[name]));
    for (const value of SWITCHES[name]) {
      const input = focusable(html("input", { type: "radio", name: `tl-family-${name}-${id}`, value }));
      listen(input, "change", () => set({ [name]: value, preset: -1 }));
      radios.push({ name, value, input });
      made.append(html("label", {}, input, words[`${name}_${value}`]));
    }
    return made;
  };
  const panel = html("div", { class: "tl-panel-of-switches" }, ...Object.keys(SWITCHES).map(fieldset));

  // The diagram, made anew with every change: predictions above the positions where they are read, the source below
  const picture = focusable(svg("svg", { class: "tl-flow", tabindex: 0, role: "application" }));
  picture.setAttribute("aria-roledescription", words.diagram_role);
  const marks = html("ul", { class: "tl-legend" });
  listen(picture, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [at, last] = [chosen(state()), sizes(state()).own - 1];
    const next = { ArrowRight: Math.min(at + 1, last), ArrowLeft: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    set({ at: next });
  });
  listen(picture, "click", (event) => {
    const word = event.target.dataset?.word;
    if (word !== undefined) set({ at: Number(word) });
  });

  const influencePlace = html("div", { class: "tl-matrix-place" });
  const legend = html("ul", { class: "tl-legend" });
  /** Only the signs that are there are explained. */
  const explain = (list, kind, all, present) => {
    list.replaceChildren(...all.filter((name) => present.has(name)).map((name) => html("li", {}, words[`${kind}_${name}`])));
  };

  // What is said about it
  const lamp = html("span", { class: "tl-lamp", "aria-hidden": "true" });
  const name = html("strong");
  const why = html("p", { class: "tl-why" });
  const view = html("p", { class: "tl-view" });
  const facts = html("dl", { class: "tl-facts" });
  const told = ["counted", "leak", "writes", "good"].map((key) => {
    const text = html("dd", { class: `tl-says-${key}` });
    facts.append(html("dt", {}, words[`is_${key}`]), text);
    return text;
  });
  const trap = html("p", { class: "tl-trap" });
  const is = html("p", { class: "tl-is" }, lamp, html("span", {}, `${words.is_name}: `, name));
  const says = html("div", { class: "tl-verdict" }, why, facts, trap, view);

  const note = html("p", { class: "tl-note" }, words.hint);
  root.append(
    kit.question(), panel, kit.presets(), is, html("div", { class: "tl-matrices tl-stage" },
      html("div", { class: "tl-diagram" }, picture, marks), influencePlace), says, note, kit.status);

  const middle = (i) => COLUMN * (i + 0.5);
  const box = (i, y, { token, gloss = "", own = lang }, className, patch = -1) => {
    const group = svg("g", { class: `tl-box ${className}` });
    const low = gloss || patch >= 0;
    group.append(svg("rect", { x: COLUMN * i + 2, y, width: COLUMN - 4, height: BOX, rx: 5 }));
    const word = svg("text", { x: middle(i), y: y + (low ? 17 : 23), "text-anchor": "middle", class: "tl-word", lang: own }, token);
    group.append(word);
    if (gloss) {
      const at = { x: middle(i), y: y + 31, "text-anchor": "middle", class: "tl-small" };
      group.append(svg("text", { ...at, lang: own === "ja" ? "en" : "ja" }, gloss));
    }
    for (let piece = 0; patch >= 0 && piece < 4; piece += 1) {
      const corner = { x: middle(i) - 7 + 7 * (piece % 2), y: y + 21 + 7 * Math.floor(piece / 2), width: 7, height: 7 };
      group.append(svg("rect", { ...corner, class: piece === patch ? "tl-piece-on" : "tl-piece-off" }));
    }
    return group;
  };
  const drawFlow = (setup, cells, marked) => {
    const { source, own } = shown(setup);
    const [positions, behind, row] = [readAt(setup), hidden(setup), setup.head === "class" ? 0 : chosen(setup)];
    const from = positions[row];
    const patches = setup.tokens === "patches";
    const parts = [];
    const line = (x1, y1, x2, y2, className) => svg("line", { x1, y1, x2, y2, class: `tl-line ${className}` });
    const inputs = [{ token: front(setup) }, ...own];
    const boxes = inputs.map((given, i) => {
      const kind = i ? cells[row][source.length + i - 1] : "used";
      const seen = allowed(setup, from, i);
      const look = !seen ? "tl-unseen" : kind === "answer" ? "tl-answer" : kind === "mask" ? "tl-masked" : "tl-seen";
      if (seen) parts.push(line(middle(i), AT.input, middle(from), AT.prediction + BOX, look));
      const hides = i > 0 && i - 1 === behind;
      const token = hides ? { token: "[MASK]", gloss: `(${given.token})`, own: given.own === "ja" ? "en" : "ja" } : given;
      return box(i, AT.input, token, look, i && patches && !source.length && !hides ? i - 1 : -1);
    });
    source.forEach((given, i) => {
      parts.push(line(middle(i + 1), AT.source, middle(from), AT.input + BOX, "tl-read"));
      boxes.push(box(i + 1, AT.source, given, "tl-read", patches ? i : -1));
    });
    const signs = new Set();
    positions.forEach((position, k) => {
      const leak = cells[k].includes("answer");
      signs.add(leak ? "leak" : marked[k] ? "counted" : "uncounted");
      const say = setup.head === "class" ? { token: words.class_token } : setup.head === "none" ? { token: words.vector } : own[k];
      boxes.push(box(position, AT.prediction, say, `tl-prediction ${marked[k] ? "" : "tl-unmarked"} ${k === row ? "tl-at" : ""}`));
      const mark = svg("g", { class: `tl-mark ${leak ? "tl-leaks" : marked[k] ? "tl-clean" : "tl-off"}` });
      mark.append(svg("circle", { cx: middle(position), cy: AT.mark, r: 9 }));
      mark.append(svg("text", { x: middle(position), y: AT.mark + 4.5, "text-anchor": "middle" }, leak ? "!" : marked[k] ? "✓" : "–"));
      boxes.push(mark);
    });
    const heading = (y, text) => svg("text", { x: 2, y, class: "tl-row-name" }, text);
    parts.push(heading(AT.heading, setup.head === "none" ? words.row_vectors : words.row_predictions));
    parts.push(heading(AT.inputName, source.length ? words.row_decoder : words.row_input));
    if (source.length) parts.push(heading(AT.sourceName, patches ? words.row_source_patches : words.row_source));
    const early = setup.head === "vocabulary" && setup.loss === "next";
    own.forEach((_, k) => {
      const hit = (i, y) => svg("rect", { x: COLUMN * i, y, width: COLUMN, height: BOX + 8, class: "tl-hit", "data-word": k });
      boxes.push(hit(k + 1, AT.input - 4));
      if (setup.head !== "class") boxes.push(hit(early ? k : k + 1, AT.prediction - 4));
    });
    picture.setAttribute("viewBox", `0 0 ${COLUMN * (N.words + 1)} ${(source.length ? AT.sourceName : AT.inputName) + 6}`);
    picture.replaceChildren(...parts, ...boxes);
    explain(marks, "mark", ["counted", "uncounted", "leak"], signs);
  };

  const drawInfluence = (setup, cells, marked) => {
    const { source, own } = shown(setup);
    const lines = setup.head === "class" ? [{ token: words.class_token, own: lang }] : own;
    const corner = `${setup.head === "none" ? words.row_vector : words.row_prediction}\n${words.column_token}`;
    const columns = [...source, ...own];
    const made = matrixTable({ caption: words.influence, corner, rows: lines, columns, more: [words.counted_column], lang });
    made.table.classList.add("tl-signs");
    if (source.length) {
      made.table.classList.add("tl-two");
      const group = (text, size) => html("th", { scope: "colgroup", colspan: size }, text);
      const read = setup.tokens === "patches" ? words.group_patches : words.group_source;
      const groups = html("tr", { class: "tl-groups" }, html("td"), group(read, source.length), group(words.group_own, own.length), html("td"));
      made.table.tHead.prepend(groups);
      made.table.querySelectorAll("tbody tr, thead tr:last-child").forEach((one) => one.children[source.length + 1].classList.add("tl-first"));
    }
    cells.forEach((row, k) => {
      made.lines[k].classList.toggle("tl-unmarked", !marked[k]);
      made.lines[k].classList.toggle("tl-on", setup.head === "class" || k === chosen(setup));
      made.more[k][0].textContent = marked[k] ? "✓" : "–";
      row.forEach((kind, j) => {
        const cell = made.cells[k][j];
        cell.textContent = SIGNS[kind];
        if (kind) cell.classList.add(`tl-is-${kind}`);
        cell.setAttribute("aria-label", fill(words[`cell_${kind || "none"}`], { row: lines[k].token, column: columns[j].token }));
      });
    });
    explain(legend, "legend", ["used", "mask", "answer", "later", "dim"], new Set([...cells.flat(), ...(marked.includes(false) ? ["dim"] : [])]));
    influencePlace.replaceChildren(made.table, legend);
  };

  const draw = () => {
    const setup = state();
    const [cells, marked, found] = [kinds(setup), counted(setup), verdict(setup)];
    drawFlow(setup, cells, marked);
    drawInfluence(setup, cells, marked);
    for (const radio of radios) radio.input.checked = setup[radio.name] === radio.value;

    const { source, own } = shown(setup);
    const many = marked.filter(Boolean).length;
    is.classList.toggle("tl-lit", !SOUND.includes(found));
    lamp.textContent = SOUND.includes(found) ? "✓" : "!";
    name.textContent = words[`name_${found}`];
    why.textContent = words[`why_${found}`];
    const texts = [
      fill(many ? words.counted : words.uncounted, { rows: marked.length, counted: many }),
      fill(words[`leak_${leakKind(setup)}`], { counted: many, leaks: leaks(setup) }),
      words[`writes_${writes(setup)}`], words[`good_${found}`],
    ];
    told.forEach((text, i) => (text.textContent = texts[i]));
    const known = model.get("traps")[found];
    trap.replaceChildren(...(known ? [fill(words.trap, known), " ", html("small", {}, `(${known.code})`)] : []));
    const row = setup.head === "class" ? 0 : chosen(setup);
    const used = [...source, ...own].filter((_, j) => !["", "mask"].includes(cells[row][j])).map(({ token }) => token);
    const about = setup.head === "class" ? words.class_token : own[chosen(setup)].token;
    view.textContent = fill(used.length ? words.sees : words.sees_nothing, { name: about, tokens: used.join(words.comma) });
    picture.setAttribute("aria-label", `${words.diagram}: ${view.textContent}`);
    kit.speak([name.textContent, ...texts, view.textContent].join(" "));
  };
  kit.watch([...names, "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "rows", "traps"]) };
