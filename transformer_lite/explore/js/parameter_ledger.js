// The parameter ledger: how many numbers a Transformer learns, part by part, beside table 3 of the paper.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/ledger.py.

const SIZES = ["d_model", "d_ff", "n_heads", "d_k", "n_layers", "vocab_size", "tied", "biases"];
const SYMBOLS = { d_model: "d_model", d_ff: "d_ff", n_heads: "h", d_k: "d_k", n_layers: "N", vocab_size: "V" };

const matrix = (rows, columns, bias) => rows * columns + (bias ? columns : 0);

/** {part: {each, count}}: counted matrix by matrix. */
export function ledger({ d_model: d, d_ff: dFf, n_heads: h, d_k: given, n_layers: n, vocab_size: v, tied, biases }) {
  const dV = d / h;
  const dK = given || dV;
  let head = 0;
  for (let i = 0; i < h; i += 1) head += 2 * matrix(d, dK, biases) + matrix(d, dV, biases); // W_i^Q, W_i^K, W_i^V
  const attention = head + matrix(h * dV, d, biases); // W^O
  const ffn = matrix(d, dFf, true) + matrix(dFf, d, true);
  const norm = d + d; // gain, bias
  const part = (each, count) => ({ each, count });
  return {
    embedding: part(v * d, tied ? 1 : 2),
    positions: part(0, 1),
    encoder_attention: part(attention, n),
    encoder_ffn: part(ffn, n),
    encoder_norm: part(norm, 2 * n),
    decoder_attention: part(attention, n),
    cross_attention: part(attention, n),
    decoder_ffn: part(ffn, n),
    decoder_norm: part(norm, 3 * n),
    output: part(v * d, tied ? 0 : 1),
  };
}

export const total = (setting) => Object.values(ledger(setting)).reduce((sum, { each, count }) => sum + each * count, 0);

/** How the numbers of one such part come about. */
export function formula(part, { d_k, biases }) {
  if (part === "embedding" || part === "output") return "V·d_model";
  if (part === "positions") return "0";
  if (part.endsWith("norm")) return "2·d_model";
  if (part.endsWith("ffn")) return "2·d_model·d_ff + d_ff + d_model";
  if (!d_k) return `4·d_model²${biases ? " + 4·d_model" : ""}`;
  return `2·d_model·h·d_k + 2·d_model²${biases ? " + 2·h·d_k + 2·d_model" : ""}`;
}

/** The sizes of a row of table 3, with the vocabulary, tying and biases of `setting`. */
export const ofRow = (row, base, { vocab_size, tied, biases }) => ({ ...base, vocab_size, tied, biases, ...row.changes });

/** The vocabulary with which the row's count is what the paper names. */
export function fittingVocab(row, base, setting) {
  const sizes = ofRow(row, base, setting);
  return (row.millions * 1e6 - total({ ...sizes, vocab_size: 0 })) / ((sizes.tied ? 1 : 3) * sizes.d_model);
}

/** How many rows come out as the paper's figure when rounded to millions. */
export const agreeing = (rows, base, setting) =>
  rows.filter((row) => row.millions !== null && Math.round(total(ofRow(row, base, setting)) / 1e6) === row.millions).length;

export const whole = (value) => value.toLocaleString("en-US").replace("-", "−");

/** +1,024 or −1,024; ±0 for nothing. */
export function signed(value, digits = 0) {
  const text = Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return (Number(text.replaceAll(",", "")) === 0 ? "±" : value > 0 ? "+" : "−") + text;
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

function build(model, element) {
  const kit = toolkit(model, "tl-params");
  const { words, root, set } = kit;
  const choices = model.get("choices");
  const rows = model.get("table_3");
  const base = model.get("initial").reference;
  const setting = () => Object.fromEntries(SIZES.map((name) => [name, model.get(name)]));

  // Controls
  const sliders = ["d_model", "d_ff", "n_heads", "d_k", "n_layers"].map((name) => {
    const values = choices[name];
    const attributes = { min: 0, max: values.length - 1, step: 1 };
    return { name, values, ...kit.slider(words[name] ?? name, `tl-${name}`, attributes, (at) => set({ [name]: values[at], preset: -1 })) };
  });
  const [min, max, step] = choices.vocab_size;
  const vocab = kit.slider(words.vocab_size, "tl-vocab", { min, max, step }, (value) => set({ vocab_size: value, preset: -1 }));
  const tied = kit.tick(words.tied, "tl-tied", (on) => set({ tied: on, preset: -1 }));
  const biases = kit.tick(words.biases, "tl-biases", (on) => set({ biases: on, preset: -1 }));
  const pin = kit.button(words.pin, "tl-pin", () => set({ reference: setting(), preset: -1 }));
  const pinned = html("span", { class: "tl-pinned" });
  const controls = html("div", { class: "tl-controls tl-sizes" }, ...sliders.map(({ label }) => label), vocab.label);
  const switches = html("div", { class: "tl-row" }, tied.label, biases.label, pinned, pin);
  const says = html("p", { class: "tl-now" });

  // The ledger
  const column = (name) => html("th", { scope: "col", class: `tl-head-${name}` }, words[name]);
  const head = html("tr", {}, ...["part", "times", "total", "share", "difference"].map((name) => column(name)));
  const body = html("tbody");
  const lines = Object.keys(ledger(base)).map((part) => {
    const [times, count, difference] = ["tl-times", "tl-count", "tl-difference"].map((name) => html("td", { class: name }));
    const filled = html("span");
    const share = html("span", { class: "tl-percent" });
    const how = html("span", { class: "tl-formula" });
    const bar = html("td", { class: "tl-share" }, html("span", { class: "tl-bar", "aria-hidden": "true" }, filled), share);
    const line = html("tr", {}, html("th", { scope: "row" }, words[`part_${part}`], how), times, count, bar, difference);
    body.append(line);
    return { part, how, times, count, filled, share, difference, line };
  });
  const [sum, sumDifference] = ["tl-count", "tl-difference"].map((name) => html("td", { class: name }));
  const foot = html("tfoot", {}, html("tr", {}, html("th", { scope: "row" }, words.sum), html("td"), sum, html("td"), sumDifference));
  const table = html("table", { class: "tl-parts" }, html("caption", {}, words.ledger), html("thead", {}, head), body, foot);

  // Table 3
  const caption = html("caption");
  const paperHead = html("tr", {}, ...["row", "changes", "paper", "computed", "gap", "fit"].map((name) => column(name)));
  const paperBody = html("tbody");
  const published = rows.map((row) => {
    const load = () => {
      const { vocab_size, tied: shared, biases: with_ } = setting();
      set({ ...ofRow(row, base, { vocab_size, tied: shared, biases: with_ }), preset: -1 });
    };
    const button = kit.button(row.row, "tl-load", load);
    button.setAttribute("aria-label", fill(words.load, { row: row.row, changes: row.says }));
    const [computed, gap, fit] = ["tl-computed", "tl-gap", "tl-fit"].map((name) => html("td", { class: name }));
    const named = html("td", {}, row.millions ?? `(${rows[0].millions})`);
    const line = html("tr", {}, html("th", { scope: "row" }, button), html("td", { class: "tl-changes" }, row.says), named, computed, gap, fit);
    paperBody.append(line);
    return { row, computed, gap, fit, line };
  });
  const paper = html("table", { class: "tl-paper" }, caption, html("thead", {}, paperHead), paperBody);
  const fits = html("p", { class: "tl-fits" });
  const why = html("details", {}, focusable(html("summary", {}, words.why_title)), html("p", {}, words.why));
  const note = html("p", { class: "tl-note" });
  root.append(
    kit.question(), controls, switches, says,
    html("div", { class: "tl-books" }, html("div", {}, table), html("div", {}, paper, fits, why)),
    kit.presets(), note, kit.status);

  const text = (name, value) => {
    if (name === "tied" || name === "biases") return words[value ? "on" : "off"];
    if (name === "d_k" && !value) return "d_model / h";
    return name === "vocab_size" ? whole(value) : String(value);
  };
  const changed = (now, reference, all, before) => {
    const changes = SIZES.filter((name) => now[name] !== reference[name]).map((name) =>
      fill(words.change, { name: SYMBOLS[name] ?? words[name], before: text(name, reference[name]), after: text(name, now[name]) }));
    const key = !changes.length ? "same" : all === before ? "unchanged" : "changed";
    return fill(words[key], { changes: changes.join(words.comma), total: whole(all), difference: signed(all - before), ratio: number(all / before) });
  };

  const draw = () => {
    const now = setting();
    const reference = model.get("reference");
    const [parts, before] = [ledger(now), ledger(reference)];
    const [all, allBefore] = [total(now), total(reference)];
    const largest = Math.max(...Object.values(parts).map(({ each, count }) => each * count));
    for (const { name, values, show } of sliders) {
      const value = now[name];
      show(values.indexOf(value), name === "d_k" && !value ? `d_model / h = ${now.d_model / now.n_heads}` : String(value));
    }
    vocab.show(now.vocab_size, whole(now.vocab_size));
    tied.input.checked = now.tied;
    biases.input.checked = now.biases;
    pinned.textContent = fill(words.reference, { total: whole(allBefore) });
    for (const { part, how, times, count, filled, share, difference, line } of lines) {
      const { each, count: many } = parts[part];
      const change = each * many - before[part].each * before[part].count;
      how.textContent = formula(part, now);
      times.textContent = many || part !== "output" ? String(many) : words.shared;
      count.textContent = whole(each * many);
      filled.style.width = `${(100 * each * many) / largest}%`; // the largest part fills it
      share.textContent = `${number((100 * each * many) / all, 1)} %`;
      difference.textContent = signed(change);
      line.classList.toggle("tl-changed", change !== 0);
    }
    sum.textContent = whole(all);
    sumDifference.textContent = signed(all - allBefore);
    foot.classList.toggle("tl-changed", all !== allBefore);
    says.textContent = changed(now, reference, all, allBefore);

    caption.textContent = fill(words.table, { vocab: whole(now.vocab_size) });
    for (const { row, computed, gap, fit, line } of published) {
      const sizes = ofRow(row, base, now);
      const found = total(sizes);
      const named = row.millions !== null;
      computed.textContent = number(found / 1e6, 1);
      gap.textContent = named ? signed(found / 1e6 - row.millions, 1) : "–";
      fit.textContent = named ? whole(Math.round(fittingVocab(row, base, now) / 100) * 100) : "–";
      line.classList.toggle("tl-agrees", named && Math.round(found / 1e6) === row.millions);
      line.classList.toggle("tl-current", SIZES.every((name) => sizes[name] === now[name]));
    }
    const agree = agreeing(rows, base, now);
    fits.textContent = fill(words.fits, { n: agree, of: rows.filter((row) => row.millions !== null).length, vocab: whole(now.vocab_size) });
    note.textContent = kit.note();
    kit.speak(`${says.textContent} ${fits.textContent}`);
  };
  kit.watch([...SIZES, "reference", "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "table_3"]) };
