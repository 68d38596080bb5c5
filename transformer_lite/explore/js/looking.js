// Shared by the explorers that ask a trained translator what it does with a sentence (see looking.py): common.js stands before it,
// the explorer's own text after it.

const MEAN = -1; // the "head" that stands for the mean of all
const SIDES = { source: "en", target: "ja" };
const BARE = ["BOS", "EOS"]; // names that need no gloss within a sentence
const LATE = 10000; // milliseconds after which a silent kernel is spoken of

/** Row i of one head's weights, heads[h][n_q][n_k], or of the mean of the heads. */
export function rowOf(heads, head, i) {
  if (head !== MEAN) return heads[head][i];
  return heads[0][i].map((_, j) => heads.reduce((sum, weights) => sum + weights[i][j], 0) / heads.length);
}

/** The place of the largest weight, the first of them if there are several. */
export function heaviest(row) {
  return row.indexOf(Math.max(...row));
}

/** The places of the `count` largest weights, in their order. */
export function heaviestFirst(row, count) {
  return row.map((_, j) => j).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}

/** A token within a sentence: with its gloss if the learner may not read it. */
function named({ token, gloss }, side, lang, words) {
  if (SIDES[side] === lang || !gloss || BARE.includes(token)) return token;
  return fill(words.named, { token, gloss: gloss.replace(/^\(|\)$/g, "") });
}

/** A gloss is a word of the other language; in brackets it says, in the learner's, what the token does. */
const glossLang = (gloss, side, lang) => (gloss.startsWith("(") ? lang : SIDES[side] === "ja" ? "en" : "ja");

/** A token with its gloss. */
function glossed({ token, gloss }, side, lang) {
  const made = html("span", { class: "tl-token", lang: SIDES[side] }, token);
  if (gloss) made.append(html("span", { class: "tl-gloss", lang: glossLang(gloss, side, lang) }, gloss));
  return made;
}

const headName = (head, words) => (head === MEAN ? words.mean : fill(words.head, { number: head + 1 }));
const layerName = (layer, words) => fill(words.layer, { number: layer + 1 });

/** Selects for the layer and the head; `show(layers, heads)` fills them for a translator of that size and sets both. */
function layerAndHead(model, tools) {
  const { words, set } = tools;
  const layer = tools.choice(words.layer_choice, "tl-layer", [], (value) => set({ layer: Number(value) }));
  const head = tools.choice(words.head_choice, "tl-head-choice", [], (value) => set({ head: Number(value) }));
  const options = (select, names) => {
    if (select.options.length === names.length) return;
    select.replaceChildren(...names.map(([value, name]) => html("option", { value }, name)));
  };
  const show = (layers, heads) => {
    options(layer.select, Array.from({ length: layers }, (_, i) => [i, String(i + 1)]));
    options(head.select, [[MEAN, words.mean], ...Array.from({ length: heads }, (_, i) => [i, String(i + 1)])]);
    layer.select.value = Math.min(model.get("layer"), layers - 1);
    head.select.value = Math.min(model.get("head"), heads - 1);
  };
  return { labels: [layer.label, head.label], show };
}

/**
 * The field for a sentence of one's own: Enter sends it to Python, which answers by `answered`. While it computes the root says so;
 * what went wrong, or speaks against the translation, stands below the field. `show()` follows the model.
 */
function sentenceField(model, tools) {
  const { words, root, listen, set } = tools;
  const which = html("span", { class: "tl-which" });
  const told = html("p", { class: "tl-told", role: "status", "aria-live": "polite" });
  const input = html("input", { type: "text", class: "tl-sentence", maxlength: 300, lang: "en" });
  for (const [name, value] of [["autocomplete", "off"], ["autocapitalize", "off"], ["spellcheck", "false"]]) input.setAttribute(name, value);
  focusable(input);
  const working = () => model.get("asked") !== model.get("answered");
  let late = false;
  let timer = 0;
  tools.cleanups.push(() => clearTimeout(timer));

  const show = () => {
    const { own } = model.get("looked");
    const [trouble, doubts] = [model.get("trouble"), model.get("doubts")];
    which.textContent = own === null ? words.stored : own ? words.own : words.shipped;
    root.setAttribute("aria-busy", String(working()));
    if (!working()) {
      clearTimeout(timer);
      late = false;
    }
    told.classList.toggle("tl-working", working());
    told.classList.toggle("tl-warns", !working() && Boolean(trouble || doubts));
    if (working()) told.textContent = late ? words.late : words.working;
    else told.textContent = trouble ? fill(words.kept, { trouble }) : doubts;
  };
  const ask = (text) => {
    if (working() && !late) return;
    input.value = text;
    late = false;
    clearTimeout(timer);
    timer = setTimeout(() => {
      late = true;
      show();
    }, LATE);
    set({ sentence: text, asked: model.get("asked") + 1 });
  };
  listen(input, "keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return; // Enter also ends the choice of Japanese characters
    event.preventDefault();
    ask(input.value.trim());
  });
  input.value = model.get("sentence");
  const go = tools.button(words.go, "tl-go", () => ask(input.value.trim()));
  const examples = html("div", { class: "tl-presets tl-row tl-examples", role: "group", "aria-label": words.examples });
  examples.append(html("span", {}, words.examples));
  for (const text of model.get("examples")) {
    const example = tools.button(text, "tl-example", () => ask(text));
    example.lang = "en";
    examples.append(example);
  }
  const element = html("div", { class: "tl-field" });
  if (model.get("can_ask")) {
    element.append(html("label", {}, words.sentence, html("span", { class: "tl-line" }, input, go)), examples);
  }
  element.append(told, which);
  return { element, show };
}
