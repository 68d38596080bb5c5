// The answer sheet; comes after the quiz's common.js. Draws questions from `cards`, sends every choice to Python at once, and shows
// as saved only what Python has found in the file. Nothing is marked here: the browser does not know what is right.

let serial = 0;

function render({ model, el }) {
  const id = `tl-sheet${++serial}-`; // names must differ between two sheets on one page
  const view = Math.random().toString(36).slice(2); // and so must what this view asks for
  const words = model.get("words");
  const cards = model.get("cards");
  const file = model.get("file");
  const unsaved = {}; // by place: what has been chosen or typed and is not known to be in the file
  const sent = {}; // by place: the token of what is on its way
  const typing = {}; // by place: the timer until typed text is sent
  let tokens = 0;
  let slow = 0; // the timer of what is on its way
  let late = false; // whether it has run out
  let gone = false; // whether there is no kernel to send to
  let looked = 0;
  let shown = ""; // the draft that the controls show
  let index = Math.max(0, model.get("states").findIndex((state) => state.status !== "answered"));

  const state = (i) => model.get("states")[i];
  const draft = (i) => (i in unsaved ? unsaved[i] : state(i).draft);
  const answered = (i) => !(i in unsaved) && state(i).status === "answered";

  const root = element("section", { class: "tl-quiz tl-sheet", lang: model.get("lang"), "aria-label": words.sheet, "data-lm-suppress-shortcuts": "true" });
  for (const event of ["keydown", "keypress", "keyup"]) root.addEventListener(event, (e) => e.stopPropagation());

  // ------------------------------------------------------------------------------------------------ parts that stay
  const progress = element("span", { class: "tl-quiz-progress", role: "status", "aria-live": "polite" });
  const jump = element("select", { class: "tl-quiz-jump", "aria-label": words.jump, onchange: () => go(Number(jump.value), false) });
  const back = element("button", { type: "button", class: "tl-quiz-back", onclick: () => go(index - 1, false) }, words.previous_short);
  const forward = element("button", { type: "button", class: "tl-quiz-forward", onclick: () => go(index + 1, false) }, words.next_short);
  const summary = element("span", { class: "tl-quiz-summary" });
  const body = element("div", { class: "tl-quiz-body" });
  // The live regions exist before anything is said in them; otherwise screen readers stay silent.
  const status = element("p", { class: "tl-quiz-verdict", role: "status", "aria-live": "polite", tabindex: "-1" });
  const moved = element("p", { class: "tl-quiz-hidden", role: "status", "aria-live": "polite" });
  const actions = element("div", { class: "tl-quiz-actions" });
  root.append(
    element("div", { class: "tl-quiz-head" }, progress, summary),
    element("div", { class: "tl-quiz-head" }, back, jump, forward), body, status, actions, moved);
  el.append(root);

  // ---------------------------------------------------------------------------------------------------------- saving
  // A kernel that has been restarted does not know this sheet: sending fails at once.
  async function tell(content) {
    try {
      await model.send(content);
    } catch {
      gone = true;
      drawStatus();
    }
  }

  function send(i) {
    clearTimeout(typing[i]);
    delete typing[i];
    sent[i] = `${view}-${++tokens}`;
    late = false;
    clearTimeout(slow);
    slow = setTimeout(() => { late = true; drawStatus(); }, 4000);
    tell({ do: "write", card: i, answer: unsaved[i], token: sent[i] });
  }

  function choose(value, delay = 0) {
    const i = index;
    unsaved[i] = value;
    shown = JSON.stringify(value);
    clearTimeout(typing[i]);
    delete typing[i];
    if (delay) typing[i] = setTimeout(() => send(i), delay);
    else send(i);
    drawHead();
    drawStatus();
  }

  function flush() {
    for (const i of Object.keys(typing)) send(Number(i));
  }

  function saveAgain() {
    for (const i of Object.keys(unsaved)) send(Number(i));
    drawStatus();
    status.focus();
  }

  // Another notebook may have written meanwhile.
  function look() {
    if (gone || document.hidden || Date.now() - looked < 1000) return;
    looked = Date.now();
    tell({ do: "look" });
  }

  function go(to, focus = true) {
    if (to < 0 || to >= cards.length) return;
    flush();
    index = to;
    draw();
    look();
    if (focus) body.querySelector("input:checked, input, select, button")?.focus();
  }

  // -------------------------------------------------------------------------------------------------- kinds of cards
  const kinds = {
    single: (card, given) => options(card, "radio", (letter) => given === letter, (letter) => choose(letter)),

    multiple: (card, given) => options(card, "checkbox", (letter) => (given ?? []).includes(letter), () => {
      choose([...body.querySelectorAll("input:checked")].map((input) => input.value));
    }),

    numeric: (card, given) => element("p", { class: "tl-quiz-number" },
      element("label", { for: id + "number" }, words.answer),
      element("input", {
        id: id + "number", type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false", maxlength: model.get("longest"),
        value: given ?? "", "aria-describedby": id + "hint", oninput: (e) => choose(e.target.value, 500), onchange: flush,
      }),
      card.unit || null),

    ordering(card, given) {
      const order = given ? [...given] : card.options.map((option) => option.letter);
      const texts = Object.fromEntries(card.options.map((option) => [option.letter, option.text]));
      const list = element("ol", { class: "tl-quiz-order" });
      const move = (from, by) => {
        const to = from + by;
        if (to < 0 || to >= order.length) return;
        const [letter] = order.splice(from, 1);
        order.splice(to, 0, letter);
        fill();
        // The focus stays with the step that moved, so that one key pressed again moves it on.
        list.children[to].querySelector(by < 0 ? ".tl-quiz-up" : ".tl-quiz-down").focus();
        moved.replaceChildren(filled(words.moved, { text: texts[letter], place: to + 1 }));
        choose([...order]);
      };
      const fill = () => list.replaceChildren(...order.map((letter, at) => element("li", {}, element("div", {},
        element("span", { class: "tl-quiz-moves" },
          element("button", {
            type: "button", class: "tl-quiz-up", "aria-label": `${words.up}: ${texts[letter]}`, "aria-disabled": at === 0 ? "true" : null,
            onclick: () => move(at, -1),
          }, words.up),
          element("button", {
            type: "button", class: "tl-quiz-down", "aria-label": `${words.down}: ${texts[letter]}`,
            "aria-disabled": at === order.length - 1 ? "true" : null, onclick: () => move(at, 1),
          }, words.down)),
        element("span", { class: "tl-quiz-step" }, element("b", {}, letter + ". "), rich(texts[letter]))))));
      fill();
      return list;
    },

    matching(card, given) {
      const chosen = { ...given };
      const texts = Object.fromEntries(card.options.map((option) => [option.letter, option.text]));
      return element("div", { class: "tl-quiz-rows" }, ...card.rows.map((row) => {
        const name = `${id}row${row.number}`;
        // A closed list cuts what does not fit into it, so such a text is also written under it.
        const whole = element("span", { class: "tl-quiz-whole", "aria-hidden": "true" });
        const select = element("select", {
          id: name,
          onchange: (e) => {
            if (e.target.value) chosen[row.number] = e.target.value;
            else delete chosen[row.number];
            spell();
            choose({ ...chosen });
          },
        }, element("option", { value: "" }, words.choose), ...card.options.map((option) => element("option", { value: option.letter }, option.text)));
        const spell = () => {
          const text = texts[select.value] ?? "";
          whole.replaceChildren(width(text, select) > select.clientWidth - 40 ? text : "");
        };
        select.value = chosen[row.number] ?? "";
        new ResizeObserver(spell).observe(select);
        return element("p", { class: "tl-quiz-row" }, element("label", { for: name }, `${row.number}. `, rich(row.text)), element("span", {}, select, whole));
      }));
    },
  };

  function options(card, type, isChecked, onchange) {
    return element("div", { class: "tl-quiz-options" }, ...card.options.map((option) => element("div", {}, element("label", {},
      element("input", { type, name: id + "option", value: option.letter, checked: isChecked(option.letter), onchange: () => onchange(option.letter) }),
      element("span", { class: "tl-quiz-text" }, element("b", {}, option.letter + ". "), rich(option.text))))));
  }

  function question(card) {
    return element("form", { novalidate: true, onsubmit: (e) => { e.preventDefault(); flush(); } },
      element("fieldset", {},
        element("legend", {}, rich(card.stem)),
        card.code ? element("pre", {}, element("code", {}, card.code)) : null,
        element("p", { class: "tl-quiz-hint" }, element("span", { id: id + "hint" }, card.hint)),
        kinds[card.kind](card, draft(index))));
  }

  // --------------------------------------------------------------------------------------------------------- drawing
  // Said again only when it has changed: these are live regions.
  function say(node, ...texts) {
    const text = texts.filter(Boolean).join(model.get("lang") === "ja" ? "" : " ");
    if (node.textContent !== text) node.replaceChildren(text);
  }

  function drawHead() {
    jump.replaceChildren(...cards.map((card, i) => {
      const where = i in unsaved ? words.unsaved : { answered: words.answered, partial: words.partial, open: words.open }[state(i).status];
      return element("option", { value: String(i) }, filled(words.item, { place: i + 1, state: where }));
    }));
    jump.value = String(index);
    for (const [button, end] of [[back, index === 0], [forward, index === cards.length - 1]]) {
      if (end) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    say(progress, filled(words.progress, { place: index + 1, total: cards.length }));
    say(summary, filled(words.summary, { answered: cards.filter((_, i) => answered(i)).length, total: cards.length }));
  }

  function drawStatus() {
    const trouble = model.get("trouble");
    const waiting = Object.keys(sent).length > 0;
    const lost = gone || (waiting && late) || (!waiting && Object.keys(unsaved).length > Object.keys(typing).length);
    const { status: what, line } = state(index);
    status.className = "tl-quiz-verdict" + (lost ? " tl-quiz-incorrect tl-sheet-lost" : index in unsaved ? " tl-quiz-waiting" : "");
    if (lost) say(status, gone ? filled(words.gone, { file }) : waiting ? words.slow : trouble);
    else if (index in unsaved) say(status, words.saving);
    else if (what === "open") say(status, words.not_yet, trouble);
    else if (what === "partial") say(status, line, filled(words.saved_so, { file }));
    else say(status, filled(words.saved, { file }), trouble);
    drawActions(lost);
  }

  function drawActions(lost) {
    const all = cards.every((_, i) => answered(i));
    const next = cards.findIndex((_, i) => i > index && !answered(i));
    const open = next >= 0 ? next : cards.findIndex((_, i) => i !== index && !answered(i));
    const button = (name, text, onclick) => element("button", { type: "button", class: name, onclick }, text);
    const wanted = [
      lost && !gone ? ["tl-quiz-primary tl-sheet-again", words.save_again, saveAgain] : null,
      cards[index].kind === "ordering" && draft(index) === null
        ? ["tl-quiz-primary tl-sheet-keep", words.keep_order, () => { choose(cards[index].options.map((option) => option.letter)); status.focus(); }] : null,
      !lost && answered(index) && open >= 0 ? ["tl-quiz-primary tl-quiz-next", open === index + 1 ? words.next : words.to_open, () => go(open)] : null,
      draft(index) !== null ? ["tl-sheet-clear", words.clear, clear] : null,
    ].filter(Boolean);
    // What has the focus stays where it is.
    const kept = [...actions.querySelectorAll("button")];
    if (kept.map((node) => node.className).join() !== wanted.map(([name]) => name).join() || kept.some((node, i) => node.textContent !== wanted[i][1])) {
      const focused = actions.contains(document.activeElement) ? document.activeElement.className : null;
      actions.replaceChildren(...wanted.map((each) => button(...each)));
      if (focused) ([...actions.children].find((node) => node.className === focused) ?? status).focus();
    }
    const done = root.querySelector(".tl-sheet-done");
    if (all && !done) actions.before(element("p", { class: "tl-sheet-done" }, filled(words.all_answered, { total: cards.length, file })));
    else if (!all) done?.remove();
  }

  function clear() {
    choose(null);
    drawBody();
    body.querySelector("input, select, button")?.focus();
  }

  function drawBody() {
    shown = JSON.stringify(draft(index));
    moved.replaceChildren();
    body.replaceChildren(question(cards[index]));
  }

  function draw() {
    actions.replaceChildren();
    drawHead();
    drawBody();
    drawStatus();
  }

  function onHeard() {
    const { card, token, saved } = model.get("heard");
    if (sent[card] === token) {
      delete sent[card];
      // What was typed since is still on its way.
      if (saved && !(card in typing)) delete unsaved[card];
      if (!Object.keys(sent).length) { clearTimeout(slow); late = false; }
    }
    onStates();
  }

  function onStates() {
    if (JSON.stringify(draft(index)) !== shown) { // another notebook, or another view of this one, has answered it
      const inside = body.contains(document.activeElement);
      drawBody();
      if (inside) body.querySelector("input:checked, input, select, button")?.focus();
    }
    drawHead();
    drawStatus();
  }

  const heard = { "change:heard": onHeard, "change:states": onStates, "change:trouble": drawStatus };
  for (const [event, listener] of Object.entries(heard)) model.on(event, listener);
  root.addEventListener("pointerenter", look);
  root.addEventListener("focusin", look);
  window.addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
  draw();
  return () => {
    flush();
    clearTimeout(slow);
    window.removeEventListener("focus", look);
    document.removeEventListener("visibilitychange", look);
    for (const [event, listener] of Object.entries(heard)) model.off(event, listener);
  };
}

export default { render };
