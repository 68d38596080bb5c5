// The crossover: what four kinds of layers cost as a sequence grows, and where one overtakes another.
// common.js stands before it. The functions at the top are pure; the tests compare them with transformer_lite/explore/crossover.py.

const KINDS = ["attention", "recurrent", "convolution", "restricted"];
const TERMS = ["projections", "scores", "weighted_sum", "feed_forward"];
const SIZES = ["n", "d_model", "kernel", "neighbours", "ratio"];
const LENGTHS = [4, 131072];

/** {kind: multiply-adds of table 1}; a neighbourhood longer than the sequence is the whole sequence. */
export function complexity({ n, d_model: d, kernel, neighbours }) {
  return { attention: n * n * d, recurrent: n * d * d, convolution: kernel * n * d * d, restricted: Math.min(neighbours, n) * n * d };
}

/** {kind: steps of one layer that wait for one another}. */
export const sequential = ({ n }) => ({ attention: 1, recurrent: n, convolution: 1, restricted: 1 });

/** {kind: maximum path length, in whole layers}. */
export function path({ n, kernel, neighbours }) {
  let layers = 1;
  for (let reach = kernel; reach < n; reach *= kernel) layers += 1; // a logarithm in floating point would round 3 up to 4
  return { attention: 1, recurrent: n, convolution: layers, restricted: Math.ceil(n / neighbours) };
}

/** {kind: the n from which on self-attention takes at least as much}. */
export const crossings = ({ d_model: d, kernel, neighbours }) => ({ recurrent: d, convolution: kernel * d, restricted: neighbours });

/** {term: multiply-adds} of a whole encoder layer. */
export function layer({ n, d_model: d, ratio }) {
  return { projections: 4 * n * d * d, scores: n * n * d, weighted_sum: n * n * d, feed_forward: 2 * n * d * ratio * d };
}

const summed = (parts) => Object.values(parts).reduce((sum, part) => sum + part, 0);
export const quadratic = ({ n, d_model: d }) => 2 * n * n * d;
export const share = (setting) => quadratic(setting) / summed(layer(setting));

/** The n at which the quadratic part is half of the layer. */
export const overtakes = ({ d_model: d, ratio }) => 2 * d + ratio * d;

/** The weights of a layer's matrices. */
export const weights = ({ d_model: d, ratio }) => 4 * d * d + 2 * d * ratio * d;

export const whole = (value) => value.toLocaleString("en-US");
export const percent = (value) => `${number(100 * value, 1)} %`;

/** How many times as much: ×4.00, ×0.059, ×195. */
export function factor(ratio) {
  if (ratio >= 99.5) return `×${whole(Math.round(ratio))}`;
  return `×${ratio.toFixed(ratio < 0.0995 ? 3 : 2)}`;
}

/** What the state shows in words. `before` holds what n or d_model was before it doubled, or nothing. */
export function sentence(words, lang, setting, before) {
  const say = (key, parameters = {}) => fill(words[key], parameters);
  const { n, d_model: d, view } = setting;
  const both = { n: whole(n), d: whole(d) };
  const parts = [];
  if (view === "table") {
    const costs = complexity(setting);
    const highest = Math.max(...Object.values(costs));
    const most = KINDS.filter((kind) => costs[kind] === highest).map((kind) => words[`short_${kind}`]);
    parts.push(say("now_table", { ...both, times: factor(costs.attention / costs.recurrent).slice(1) }));
    parts.push(say("most", { kinds: most.join(words.and) }), say("least_waiting", both));
    if (setting.neighbours >= n) parts.push(say("whole_sequence", { r: setting.neighbours }));
  } else {
    const at = overtakes(setting);
    parts.push(say("now_layer", { ...both, percent: percent(share(setting)) }));
    parts.push(say(n === at ? "level" : n > at ? "ahead" : "behind", { at: whole(at) }));
  }
  if (Object.keys(before).length) parts.push(doubled(words, lang, setting, { ...setting, ...before }));
  return parts.join(lang === "ja" ? "" : " ");
}

function doubled(words, lang, setting, old) {
  const name = old.n !== setting.n ? "n" : "d_model";
  const [rows, names, prefix] = setting.view === "table" ? [complexity, KINDS, "short"] : [layer, TERMS, "term"];
  const [now, then] = [rows(setting), rows(old)];
  const groups = new Map();
  for (const row of names) {
    const times = factor(now[row] / then[row]).slice(1);
    groups.set(times, [...(groups.get(times) ?? []), words[`${prefix}_${row}`]]);
  }
  const latin = (text) => lang === "ja" && /^[\x00-\x7f]*$/.test(text); // parted from a particle by a space
  const spaced = (members) => members.join(words.and) + (latin(members.at(-1)) ? " " : "");
  const listed = [...groups].map(([times, members]) => fill(words.group, { rows: spaced(members), times }));
  return fill(words[`doubled_${setting.view}`], {
    name: name === "n" ? "n" : "d", before: whole(old[name]), after: whole(setting[name]), groups: listed.join(words.comma),
    total: factor(summed(now) / summed(then)).slice(1),
  });
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const PLOT = { width: 470, height: 330, left: 46, right: 458, top: 12, bottom: 292, low: 3, high: 14 }; // decades of multiply-adds
const DASHES = ["", "9 5", "2 4", "9 4 2 4"];
const POINTS = 120;
let plots = 0; // groups of radio buttons need a name of their own

const xOf = (n) => PLOT.left + (Math.log(n / LENGTHS[0]) / Math.log(LENGTHS[1] / LENGTHS[0])) * (PLOT.right - PLOT.left);
const nOf = (x) => LENGTHS[0] * (LENGTHS[1] / LENGTHS[0]) ** ((x - PLOT.left) / (PLOT.right - PLOT.left));
const yOf = (cost) => PLOT.bottom - ((Math.log10(cost) - PLOT.low) / (PLOT.high - PLOT.low)) * (PLOT.bottom - PLOT.top);

/** The place in a sorted list of what is nearest to a value, as distances on a log scale. */
export function nearest(values, value) {
  const far = (one) => Math.abs(Math.log(one / value));
  return values.reduce((best, one, i) => (far(one) < far(values[best]) ? i : best), 0);
}

function build(model, element) {
  const kit = toolkit(model, "tl-cross");
  const { words, root, listen, set } = kit;
  const lang = model.get("lang");
  const choices = model.get("choices");
  const initial = model.get("initial");
  const { kinds: orders, terms: formulas } = model.get("orders");
  const sizes = () => Object.fromEntries([...SIZES, "view"].map((name) => [name, model.get(name)]));
  const change = (changes) => set({ ...changes, before: {}, preset: -1 });

  // Controls
  const group = (plots += 1);
  const views = ["table", "layer"].map((view) => {
    const input = focusable(html("input", { type: "radio", name: `tl-view-${group}`, value: view, class: `tl-view-${view}` }));
    listen(input, "change", () => set({ view, preset: -1 }));
    return { view, input, label: html("label", {}, input, words[`view_${view}`]) };
  });
  const chosen = html("fieldset", {}, html("legend", {}, words.view), ...views.map(({ label }) => label));
  const sliders = ["n", "d_model", "kernel", "neighbours"].map((name) => {
    const values = choices[name];
    const attributes = { min: 0, max: values.length - 1, step: 1 };
    return { name, values, ...kit.slider(words[name], `tl-${name}`, attributes, (at) => change({ [name]: values[at] })) };
  });
  const ratio = kit.choice(words.ratio, "tl-ratio", choices.ratio.map((times) => [times, times === 1 ? "d" : `${times}·d`]),
    (value) => change({ ratio: Number(value) }));
  const doubling = ["n", "d_model"].map((name) => {
    const most = choices[name].at(-1);
    const button = kit.button(words[`double_${name}`], `tl-double tl-double-${name}`, () => {
      const { n, d_model } = sizes();
      const now = { n, d_model };
      if (2 * now[name] <= most) set({ before: now, [name]: 2 * now[name], preset: -1 });
    });
    return { name, most, button };
  });
  const controls = html("div", { class: "tl-controls tl-cross-sizes" }, ...sliders.map(({ label }) => label));
  const switches = html("div", { class: "tl-row" }, chosen, ratio.label, ...doubling.map(({ button }) => button));
  const says = html("p", { class: "tl-now" });

  // The plot
  const plot = focusable(svg("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, class: "tl-plane tl-movable tl-cross-plot", tabindex: 0, role: "application", "aria-roledescription": words.plot_role }));
  const heading = html("p", { class: "tl-heading" });
  const legend = html("ul", { class: "tl-cross-legend" });
  const bar = html("div", { class: "tl-cross-bar", role: "img" });
  const barNames = html("p", { class: "tl-cross-bar-names" });
  const barPlace = html("div", { class: "tl-cross-share" }, html("p", { class: "tl-heading" }, words.bar), bar, barNames);
  const left = html("div", { class: "tl-cross-left" }, heading, plot, legend, barPlace);

  const tablePlace = html("div", { class: "tl-numbers tl-cross-table" });
  const counting = html("details", {}, focusable(html("summary", {}, words.counting)), html("p", {}, words.counting_text));
  const note = html("p", { class: "tl-note" });
  root.append(
    kit.question(), switches, controls, says,
    html("div", { class: "tl-cross-panels" }, left, html("div", { class: "tl-cross-right" }, tablePlace, counting)),
    kit.presets(), note, kit.status);

  // n is moved on the plot, too
  const move = (step) => {
    const values = choices.n;
    const n = model.get("n");
    const at = step > 0 ? values.findIndex((value) => value > n) : values.findLastIndex((value) => value < n);
    if (at >= 0) change({ n: values[at] });
  };
  listen(plot, "keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const end = { Home: choices.n[0], End: choices.n.at(-1) }[event.key];
    if ((step === undefined && end === undefined) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (step) move(step);
    else change({ n: end });
  });
  const point = (event) => {
    const box = plot.getBoundingClientRect();
    const wanted = nOf(((event.clientX - box.left) / box.width) * PLOT.width);
    const n = choices.n[nearest(choices.n, wanted)];
    if (n !== model.get("n")) change({ n });
  };
  let dragging = false;
  listen(plot, "pointerdown", (event) => {
    if (event.button !== 0) return;
    dragging = true;
    plot.setPointerCapture(event.pointerId);
    point(event);
  });
  listen(plot, "pointermove", (event) => dragging && point(event));
  for (const end of ["pointerup", "pointercancel"]) listen(plot, end, () => (dragging = false));

  const line = (costs, i, more = "") => {
    const points = Array.from({ length: POINTS }, (_, p) => LENGTHS[0] * (LENGTHS[1] / LENGTHS[0]) ** (p / (POINTS - 1)));
    const d = points.map((n, p) => `${p ? "L" : "M"} ${xOf(n).toFixed(1)} ${yOf(costs(n)).toFixed(1)}`).join(" ");
    const colour = i < 4 ? COLOURS[i] : "var(--tl-ink)";
    return svg("path", { d, class: `tl-curve ${more}`, stroke: colour, "stroke-dasharray": DASHES[i] ?? "", fill: "none" });
  };
  const crossing = (n, cost, text, above) => {
    const [x, y] = [xOf(n), yOf(cost)];
    const place = above ? { x: x - 8, y: y - 9, "text-anchor": "end" } : { x: x + 9, y: y + 17, "text-anchor": "start" };
    return [svg("circle", { cx: x, cy: y, r: 6, class: "tl-crossing" }), svg("text", { ...place, class: "tl-crossing-name" }, text)];
  };
  const shapes = [
    (x, y) => svg("circle", { cx: x, cy: y, r: 5 }),
    (x, y) => svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10 }),
    (x, y) => svg("path", { d: `M ${x} ${y - 6} L ${x + 6} ${y + 5} L ${x - 6} ${y + 5} Z` }),
    (x, y) => svg("path", { d: `M ${x} ${y - 7} L ${x + 7} ${y} L ${x} ${y + 7} L ${x - 7} ${y} Z` }),
  ];
  const marker = (i, n, cost) => {
    const made = shapes[i](xOf(n), yOf(cost));
    made.setAttribute("class", "tl-marker");
    made.setAttribute("fill", COLOURS[i]);
    return made;
  };
  const axes = () => {
    const parts = [];
    for (let power = 3; power <= 15; power += 2) {
      const n = 2 ** power;
      const x = xOf(n);
      parts.push(svg("line", { x1: x, x2: x, y1: PLOT.top, y2: PLOT.bottom, class: "tl-grid" }));
      parts.push(svg("text", { x, y: PLOT.bottom + 14, "text-anchor": "middle", class: "tl-tick" }, whole(n)));
    }
    for (let decade = PLOT.low; decade <= PLOT.high; decade += 1) {
      const y = yOf(10 ** decade);
      parts.push(svg("line", { x1: PLOT.left, x2: PLOT.right, y1: y, y2: y, class: "tl-grid" }));
      if (decade % 2 === 0) {
        const label = svg("text", { x: PLOT.left - 5, y: y + 4, "text-anchor": "end", class: "tl-tick" }, "10");
        label.append(svg("tspan", { dy: -4, class: "tl-power" }, decade));
        parts.push(label);
      }
    }
    parts.push(svg("text", { x: (PLOT.left + PLOT.right) / 2, y: PLOT.bottom + 31, "text-anchor": "middle" }, words.n_axis));
    parts.push(svg("text", { x: 0, y: 0, transform: `translate(11 ${(PLOT.top + PLOT.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, words.cost_axis));
    return parts;
  };

  const now = { table: {}, layer: {} };
  now.table.curves = (setting) => KINDS.map((kind) => [kind, (n) => complexity({ ...setting, n })[kind]]);
  now.layer.curves = (setting) => [
    ["quadratic", (n) => quadratic({ ...setting, n })],
    ["linear", (n) => summed(layer({ ...setting, n })) - quadratic({ ...setting, n })],
  ];
  now.table.crossed = (setting) => {
    const names = { recurrent: "n = d", convolution: "n = k·d", restricted: "n = r" };
    return Object.entries(crossings(setting)).map(([kind, n]) => [n, complexity({ ...setting, n }).attention, `${names[kind]} = ${whole(n)}`, kind === "convolution"]);
  };
  now.layer.crossed = (setting) => {
    const n = overtakes(setting);
    return [[n, quadratic({ ...setting, n }), `n = 2d + d_ff = ${whole(n)}`]];
  };
  const drawPlot = (setting, old) => {
    const view = now[setting.view];
    const curves = view.curves(setting);
    const parts = axes();
    if (old) for (const [i, [, costs]] of view.curves(old).entries()) if (old.d_model !== setting.d_model) parts.push(line(costs, i, "tl-old"));
    if (setting.view === "layer") parts.push(line((n) => summed(layer({ ...setting, n })), 4, "tl-sum"));
    parts.push(...curves.map(([, costs], i) => line(costs, i)));
    const x = xOf(setting.n);
    if (old && old.n !== setting.n) parts.push(svg("line", { x1: xOf(old.n), x2: xOf(old.n), y1: PLOT.top, y2: PLOT.bottom, class: "tl-old-n" }));
    parts.push(svg("line", { x1: x, x2: x, y1: PLOT.top, y2: PLOT.bottom, class: "tl-now-n" }));
    // As long as nothing has been moved, the question is open: where the curves cross is seen, at which n is not said.
    const open = setting.view === "table" && SIZES.every((name) => setting[name] === initial[name]);
    const crossed = view.crossed(setting).map(([n, cost, text, above]) => crossing(n, cost, open ? "n = ?" : text, above));
    parts.push(...crossed.map(([circle]) => circle));
    parts.push(...curves.map(([, costs], i) => marker(i, setting.n, costs(setting.n))));
    plot.replaceChildren(...parts, ...crossed.map(([, name]) => name));
    const names = setting.view === "table" ? KINDS.map((kind) => words[`kind_${kind}`]) : [words.quadratic, words.linear, words.sum];
    legend.replaceChildren(...names.map((name, i) => {
      const sample = svg("svg", { viewBox: "0 0 34 12", class: "tl-sample", "aria-hidden": "true" });
      const thin = setting.view === "layer" && i === 2;
      const stroke = thin ? "var(--tl-ink)" : COLOURS[i];
      sample.append(svg("path", { d: "M 0 6 L 34 6", stroke, "stroke-dasharray": thin ? "" : DASHES[i], class: `tl-curve${thin ? " tl-sum" : ""}` }));
      if (!thin) {
        const mark = shapes[i](17, 6);
        mark.setAttribute("fill", COLOURS[i]);
        mark.setAttribute("class", "tl-marker");
        sample.append(mark);
      }
      return html("li", {}, sample, name);
    }));
  };

  const cell = (text, className = "") => html("td", className ? { class: className } : {}, text);
  const row = (name, formula, cells, className = "") => {
    const head = html("th", { scope: "row" }, name);
    if (formula) head.append(html("span", { class: "tl-formula" }, formula));
    return html("tr", className ? { class: className } : {}, head, ...cells);
  };
  const grown = (after, before, old) => {
    const times = after / before;
    return cell(old ? factor(times) : "–", old && times > 1 ? `tl-grown tl-times-${Math.round(times)}` : "tl-grown");
  };
  const withOrder = (value, order) => {
    const made = cell(whole(value));
    made.append(html("span", { class: "tl-formula" }, order));
    return made;
  };
  const tableOf = (caption, names, rows) => {
    const head = html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, words[name])));
    return html("table", {}, html("caption", {}, words[caption]), html("thead", {}, head), html("tbody", {}, ...rows));
  };
  const drawTable = (setting, old) => {
    const before = old ?? setting;
    if (setting.view === "table") {
      const [costs, then, waits, hops] = [complexity(setting), complexity(before), sequential(setting), path(setting)];
      const rows = KINDS.map((kind) => {
        const [work, wait, hop] = orders[kind];
        return row(words[`kind_${kind}`], work,
          [cell(whole(costs[kind]), "tl-cost"), grown(costs[kind], then[kind], old), withOrder(waits[kind], wait), withOrder(hops[kind], hop)]);
      });
      tablePlace.replaceChildren(tableOf("table", ["kind", "complexity", "grown", "sequential", "path"], rows));
      return;
    }
    const [parts, then] = [layer(setting), layer(before)];
    const [all, allThen] = [summed(parts), summed(then)];
    const rows = TERMS.map((term) => row(words[`term_${term}`], formulas[term],
      [cell(whole(parts[term]), "tl-cost"), grown(parts[term], then[term], old), cell(percent(parts[term] / all))]));
    rows.push(row(words.total, "", [cell(whole(all), "tl-cost"), grown(all, allThen, old), cell("100.0 %")], "tl-sum-row"));
    rows.push(row(words.quadratic, "2·n²·d", [cell(whole(quadratic(setting)), "tl-cost"), grown(quadratic(setting), quadratic(before), old), cell(percent(share(setting)))]));
    rows.push(row(words.weights, "4·d² + 2·d·d_ff", [cell(whole(weights(setting)), "tl-cost"), grown(weights(setting), weights(before), old), cell("")]));
    rows.push(row(words.waits, "O(1)", [cell(words.same, "tl-cost"), grown(1, 1, old), cell("")]));
    tablePlace.replaceChildren(tableOf("layer", ["term", "multiply_adds", "grown", "share"], rows));
  };
  const drawBar = (setting) => {
    barPlace.hidden = setting.view === "table";
    const part = share(setting);
    const pieces = [["quadratic", part], ["linear", 1 - part]];
    bar.replaceChildren(...pieces.map(([name, size]) => {
      const piece = html("span", { class: `tl-piece-${name}` }, size > 0.12 ? percent(size) : "");
      piece.style.width = `${100 * size}%`;
      return piece;
    }));
    barNames.textContent = pieces.map(([name, size]) => `${words[name]} ${percent(size)}`).join(words.comma);
    bar.setAttribute("aria-label", barNames.textContent);
  };

  const draw = () => {
    const setting = sizes();
    const before = model.get("before");
    const old = Object.keys(before).length ? { ...setting, ...before } : null;
    for (const { name, values, show } of sliders) show(nearest(values, setting[name]), whole(setting[name]));
    for (const { view, input } of views) input.checked = setting.view === view;
    ratio.select.value = setting.ratio;
    const table = setting.view === "table";
    ratio.label.hidden = table;
    for (const { name, label } of sliders) label.hidden = !table && (name === "kernel" || name === "neighbours");
    for (const { name, most, button } of doubling) button.setAttribute("aria-disabled", String(2 * setting[name] > most));
    heading.textContent = words[table ? "plot_table" : "plot_layer"];
    drawPlot(setting, old);
    drawTable(setting, old);
    drawBar(setting);
    says.textContent = sentence(words, lang, setting, before);
    note.textContent = kit.note();
    plot.setAttribute("aria-label", `${heading.textContent}: ${says.textContent}`);
    kit.speak(says.textContent);
  };
  kit.watch([...SIZES, "view", "before", "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets"]) };
