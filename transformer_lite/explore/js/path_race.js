// The path race: how many steps a signal needs from one word to another, as four lanes that run side by side.
// common.js stands before it. The pure functions are compared with transformer_lite/explore/path_race.py in the tests.

const LANES = ["rnn", "convolution", "dilated", "attention"];

/** Where what stands at a position can be after one more step or layer. */
export function passesTo(lane, n, position, layer, kernel) {
  if (lane === "attention") return Array.from({ length: n }, (_, p) => p);
  if (lane === "rnn") return position + 1 < n ? [position + 1] : [];
  const radius = (kernel - 1) / 2;
  const dilation = lane === "dilated" ? (radius + 1) ** layer : 1;
  return Array.from({ length: kernel }, (_, i) => position + (i - radius) * dilation).filter((p) => p >= 0 && p < n);
}

/** The positions of a shortest way from source to target, one step apart; null if there is none. */
export function path(lane, n, source, target, kernel) {
  const layers = [];
  let reached = new Set([source]);
  while (!reached.has(target)) {
    const came = new Map();
    const nearest = [...reached].sort((a, b) => Math.abs(a - source) - Math.abs(b - source) || a - b);
    for (const position of nearest) {
      for (const p of passesTo(lane, n, position, layers.length, kernel)) if (!came.has(p)) came.set(p, position);
    }
    if (!came.size) return null;
    layers.push(came);
    reached = new Set(came.keys());
  }
  const found = [target];
  for (const came of layers.reverse()) found.unshift(came.get(found[0]));
  return found;
}

/** The maximum path length: between the words that are farthest apart. */
export const longest = (lane, n, kernel) => path(lane, n, 0, n - 1, kernel).length - 1;

/** How many steps wait for one another until the whole sentence is computed. */
export const sequentialSteps = (lane, n, kernel) => (lane === "rnn" ? n : longest(lane, n, kernel));

/** Source and target inside a sentence of n words, and different. */
export function clampPair(n, source, target) {
  const from = Math.min(Math.max(source, 0), n - 1);
  const to = Math.min(Math.max(target, 0), n - 1);
  return from === to ? [from, from ? from - 1 : 1] : [from, to];
}

// --- drawing ------------------------------------------------------------------------------------------------------------------

const TRACK = { width: 560, height: 76, left: 16, right: 544, ground: 62 };
const TIME = { size: 76, wide: 112 };
const TICK = 380; // milliseconds a step while it plays

function build(model, element) {
  const kit = toolkit(model, "tl-race");
  const { words, root, listen, set } = kit;
  const sentence = model.get("sentence");
  const otherLang = model.get("lang") === "ja" ? "en" : "ja";
  const wordAt = (n, p) => (n <= sentence.length ? sentence[p].word : fill(words.word, { number: p + 1 }));
  const nameOf = (lane, kernel) => fill(words[`lane_${lane}`], { kernel });
  const xAt = (n, p) => TRACK.left + (p / (n - 1)) * (TRACK.right - TRACK.left);
  const now = () => {
    const n = model.get("n");
    const [source, target] = clampPair(n, model.get("source"), model.get("target"));
    const kernel = model.get("kernel");
    const ways = LANES.map((lane) => path(lane, n, source, target, kernel));
    const last = Math.max(...ways.map((way) => (way ? way.length - 1 : 0)));
    return { n, source, target, kernel, ways, last, step: Math.min(model.get("step"), last) };
  };

  // Moving the two words; a step that would put one on the other goes past it
  const place = (which, position) => {
    const { n, source, target } = now();
    const [mine, other] = which === "source" ? [source, target] : [target, source];
    let wanted = Math.min(Math.max(position, 0), n - 1);
    if (wanted === other) wanted += position >= mine ? 1 : -1;
    if (wanted < 0 || wanted >= n) return;
    stop();
    set({ [which]: wanted });
  };

  const strip = focusable(svg("svg", { viewBox: `0 0 ${TRACK.width} 54`, class: "tl-plane tl-strip", tabindex: 0, role: "application", "aria-roledescription": words.strip_role }));

  const lanes = LANES.map((lane) => {
    const track = svg("svg", { viewBox: `0 0 ${TRACK.width} ${TRACK.height}`, class: "tl-plane tl-track", role: "img" });
    const time = svg("svg", { viewBox: `0 0 ${TIME.wide} ${TIME.size}`, class: "tl-plane tl-time", role: "img" });
    const name = html("p", { class: "tl-heading" });
    const result = html("p", { class: "tl-result" });
    return { lane, track, time, name, result, row: html("div", { class: "tl-lane" }, html("div", { class: "tl-lane-name" }, name, result), track, time) };
  });

  // Controls
  const source = kit.slider(words.source, "tl-source", { min: 1, max: 32 }, (value) => place("source", value - 1));
  const target = kit.slider(words.target, "tl-target", { min: 1, max: 32 }, (value) => place("target", value - 1));
  const count = kit.slider(words.n, "tl-count", { min: 2, max: 32 }, (value) => {
    stop();
    const [from, to] = clampPair(value, model.get("source"), model.get("target"));
    set({ n: value, source: from, target: to });
  });
  const step = kit.slider(words.step, "tl-step", { min: 0, max: 31 }, (value) => {
    stop();
    set({ step: value });
  });
  const kernel = kit.choice(words.kernel, "tl-kernel", [3, 5, 7].map((k) => [k, k]), (value) => set({ kernel: Number(value) }));
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = words.play;
  };
  const play = kit.button(words.play, "tl-play", () => {
    if (timer) return stop();
    const { last } = now();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return set({ step: last }); // no motion: straight to the end
    play.textContent = words.pause;
    set({ step: now().step >= last ? 0 : now().step });
    timer = setInterval(() => {
      const { step: at, last: end } = now();
      if (at >= end) return stop();
      set({ step: at + 1 });
    }, TICK);
  });
  kit.cleanups.push(() => clearInterval(timer));
  const presets = kit.presets();
  listen(presets, "click", () => stop());
  const note = html("p", { class: "tl-note" });

  const head = html("tr");
  for (const name of ["lane", "now", "longest", "sequential", "path", "operations"]) head.append(html("th", { scope: "col" }, words[`column_${name}`]));
  const body = html("tbody");
  const table = html("table", { class: "tl-race-table" }, html("caption", {}, words.table), html("thead", {}, head), body);
  const counting = html("details", {}, focusable(html("summary", {}, words.counting)), html("p", {}, words.counting_text));

  root.append(
    kit.question(),
    html("div", { class: "tl-lane tl-lane-head" }, html("p", { class: "tl-heading tl-lane-name" }, words.strip), strip,
      html("p", { class: "tl-small" }, html("strong", {}, words.timeline), html("br"), words.timeline_label)),
    ...lanes.map((lane) => lane.row),
    html("div", { class: "tl-race-controls tl-controls" }, html("div", { class: "tl-race-time" }, play, step.label), kernel.label, source.label, target.label, count.label),
    presets, note, html("div", { class: "tl-numbers" }, table), counting, kit.status);

  listen(strip, "keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const which = event.shiftKey ? "source" : "target";
    place(which, now()[which] + way);
  });
  listen(strip, "pointerdown", (event) => {
    if (event.button !== 0) return;
    const box = strip.getBoundingClientRect();
    const { n } = now();
    const x = ((event.clientX - box.left) / box.width) * TRACK.width;
    place(event.shiftKey ? "source" : "target", Math.round(((x - TRACK.left) / (TRACK.right - TRACK.left)) * (n - 1)));
  });

  const ends = (n, from, to, y) => [
    svg("rect", { x: xAt(n, from) - 6, y: y - 6, width: 12, height: 12, class: "tl-from" }),
    svg("circle", { cx: xAt(n, to), cy: y, r: 8, class: "tl-to" }),
  ];

  const drawStrip = ({ n, source: from, target: to }) => {
    strip.replaceChildren();
    const few = n <= sentence.length;
    for (let p = 0; p < n; p += 1) {
      const x = xAt(n, p);
      strip.append(svg("circle", { cx: x, cy: 16, r: 3, class: "tl-place" }));
      const anchor = few && p === 0 ? "start" : few && p === n - 1 ? "end" : "middle";
      const shift = anchor === "start" ? -12 : anchor === "end" ? 12 : 0;
      if (few) {
        const label = svg("text", { x: x + shift, y: 40, "text-anchor": anchor }, sentence[p].word);
        const gloss = svg("tspan", { lang: otherLang, class: "tl-gloss", dx: 4 }, sentence[p].gloss);
        label.append(gloss);
        strip.append(label);
      } else if (p === from || p === to || (p % 4 === 3 && Math.min(Math.abs(p - from), Math.abs(p - to)) > 1)) {
        strip.append(svg("text", { x, y: 40, class: p === from || p === to ? "" : "tl-tick", "text-anchor": "middle" }, p + 1));
      }
    }
    strip.append(...ends(n, from, to, 16));
  };

  const drawTrack = (track, way, { n, source: from, target: to, step: at }) => {
    const ground = TRACK.ground;
    track.replaceChildren(...Array.from({ length: n }, (_, p) => svg("circle", { cx: xAt(n, p), cy: ground, r: 2.5, class: "tl-place" })));
    const taken = [];
    (way ?? []).slice(1).forEach((next, i) => {
      const [a, b] = [xAt(n, way[i]), xAt(n, next)];
      const rise = Math.min(10 + Math.abs(b - a) * 0.3, 96);
      const d = a === b ? `M ${a} ${ground - 4} c -13 -20 13 -20 0 0` : `M ${a} ${ground - 4} Q ${(a + b) / 2} ${ground - 4 - rise} ${b} ${ground - 4}`;
      const arc = svg("path", { d, fill: "none", class: i < at ? "tl-taken" : "tl-ahead" });
      if (i < at) taken.push(arc);
      else track.append(arc);
    });
    track.append(...taken, ...ends(n, from, to, ground));
    const here = way ? way[Math.min(at, way.length - 1)] : from;
    track.append(svg("circle", { cx: xAt(n, here), cy: ground, r: 6, class: "tl-signal" }));
  };

  const drawTime = (time, lane, n, steps) => {
    const [wide, high] = [TIME.wide / Math.max(n, 5), TIME.size / n];
    const gap = wide > 6 ? 1 : 0.5;
    const cells = lane === "rnn"
      ? Array.from({ length: n }, (_, p) => [p, p])
      : Array.from({ length: n * steps }, (_, i) => [Math.floor(i / n), i % n]);
    time.replaceChildren(...cells.map(([t, p]) => svg("rect", { x: t * wide, y: p * high, width: wide - gap, height: high - gap, class: "tl-work" })));
  };

  const draw = () => {
    const state = now();
    const { n, source: from, target: to, kernel: k, ways, step: at, last } = state;
    drawStrip(state);
    const said = [];
    body.replaceChildren();
    lanes.forEach(({ lane, track, time, name, result }, i) => {
      const way = ways[i];
      const hops = way ? way.length - 1 : null;
      const steps = sequentialSteps(lane, n, k);
      drawTrack(track, way, state);
      drawTime(time, lane, n, steps);
      name.textContent = nameOf(lane, k);
      result.textContent = way ? fill(at >= hops ? words.arrived : words.running, { hops, step: Math.min(at, hops) }) : words.never;
      result.classList.toggle("tl-done", way !== null && at >= hops);
      track.setAttribute("aria-label", `${name.textContent}: ${result.textContent}`);
      const serial = fill(lane === "rnn" ? words.serial : words.layers, { steps });
      time.setAttribute("aria-label", `${words.timeline}, ${name.textContent}: ${serial}`);
      const order = model.get("orders")[i];
      const row = html("tr", {}, html("th", { scope: "row" }, name.textContent));
      for (const cell of [hops ?? "—", longest(lane, n, k), serial, order.path, order.operations]) row.append(html("td", {}, String(cell)));
      body.append(row);
      said.push(fill(way ? words.state_lane : words.state_never, { lane: name.textContent, hops }));
    });
    for (const [slider, value] of [[source, from], [target, to]]) {
      slider.input.max = n;
      slider.show(value + 1, wordAt(n, value));
    }
    count.show(n);
    step.input.max = Math.max(last, 1);
    step.show(at);
    kernel.select.value = k;
    note.textContent = kit.note();
    let text = fill(words.state, { source: wordAt(n, from), target: wordAt(n, to), lanes: said.join(words.comma) });
    if (to < from) text += (model.get("lang") === "ja" ? "" : " ") + words.backwards;
    strip.setAttribute("aria-label", `${words.strip}: ${text}`);
    kit.speak(text);
  };
  kit.watch(["n", "source", "target", "kernel", "step", "preset"], draw);
  element.replaceChildren(root);
  return kit.close;
}

export default { render: mounted(build, ["strings", "presets", "sentence", "orders"]) };
