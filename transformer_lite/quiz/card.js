// The quiz card. Draws questions from `cards`, sends answers to Python, shows what Python says in `results`.
// Text of the question bank becomes text nodes only; nothing here parses HTML.

const CONTROLS = new Set(["input", "textarea", "select", "button", "summary", "a"]);

function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  // JupyterLab takes arrows and letters for itself unless the focused element says so.
  if (CONTROLS.has(name) || "tabindex" in properties) node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

// `text` with what stands between backticks as code.
function rich(text) {
  const fragment = document.createDocumentFragment();
  text.split(/`([^`\n]+)`/).forEach((part, i) => {
    if (part) fragment.append(i % 2 ? element("code", {}, part) : part);
  });
  return fragment;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

let serial = 0;

function render({ model, el }) {
  const id = `tl-quiz${++serial}-`; // names must differ between two quizzes on one page
  const words = model.get("words");
  const cards = model.get("cards");
  const prediction = cards[0].kind === "prediction";
  const drafts = {}; // what has been typed or ticked, by card, until it is answered
  let index = Math.min(Math.max(model.get("index"), 0), cards.length - 1);
  let waiting = 0; // the timer of an answer on its way
  let focusAfter = null; // where the focus goes once Python has answered
  let shownCount; // the count of the result on screen

  const result = (i) => model.get("results")[String(i)];
  const answered = (i) => Boolean(result(i)) && result(i).status !== "invalid" && result(i).status !== "unmarked";

  const root = element("section", {
    class: "tl-quiz", lang: model.get("lang"), "aria-label": prediction ? words.prediction : words.quiz, "data-lm-suppress-shortcuts": "true",
  });
  for (const event of ["keydown", "keypress", "keyup"]) root.addEventListener(event, (e) => e.stopPropagation());

  // ------------------------------------------------------------------------------------------------ parts that stay
  const jump = element("select", { class: "tl-quiz-jump", "aria-label": words.jump, onchange: () => go(Number(jump.value), false) });
  cards.forEach((_, i) => jump.append(element("option", { value: String(i) })));
  const back = element("button", { type: "button", class: "tl-quiz-back", onclick: () => go(index - 1, false) }, words.previous_short);
  const forward = element("button", { type: "button", class: "tl-quiz-forward", onclick: () => go(index + 1, false) }, words.next_short);
  const summary = element("span", { class: "tl-quiz-summary" });
  const head = element("div", { class: "tl-quiz-head" }, back, jump, forward, summary);
  const last = element("p", { class: "tl-quiz-last" });
  const body = element("div", { class: "tl-quiz-body" });
  // The live regions exist before anything is said in them; otherwise screen readers stay silent.
  const verdict = element("p", { class: "tl-quiz-verdict", role: "status", "aria-live": "polite", tabindex: "-1" });
  const moved = element("p", { class: "tl-quiz-hidden", role: "status", "aria-live": "polite" });
  const after = element("div", { class: "tl-quiz-after" });
  if (!prediction) root.append(head);
  root.append(last, body, verdict, after, moved);
  el.append(root);

  function send(content) {
    model.send({ card: index, ...content });
    clearTimeout(waiting);
    verdict.className = "tl-quiz-verdict tl-quiz-waiting";
    verdict.replaceChildren(words.marking);
    waiting = setTimeout(() => { waiting = 0; verdict.replaceChildren(words.slow); }, 4000);
  }

  function go(to, focus = true) {
    if (to < 0 || to >= cards.length) return;
    index = to;
    focusAfter = null;
    model.set("index", index);
    model.save_changes();
    draw();
    if (focus) body.querySelector("input:checked, input, select, textarea, button")?.focus();
  }

  // -------------------------------------------------------------------------------------------------- kinds of cards
  const kinds = {
    single: (card, draft, locked) => options(card, "radio", locked, (letter) => draft === letter, (letter) => { drafts[index] = letter; }),

    multiple: (card, draft = [], locked) => options(card, "checkbox", locked, (letter) => draft.includes(letter), () => {
      drafts[index] = [...body.querySelectorAll("input:checked")].map((input) => input.value);
    }),

    numeric: (card, draft = "", locked) => element("p", { class: "tl-quiz-number" },
      element("label", { for: id + "number" }, words.answer),
      element("input", {
        id: id + "number", type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false", value: draft, disabled: locked,
        "aria-describedby": id + "hint", oninput: (e) => { drafts[index] = e.target.value; },
      }),
      card.unit || null),

    ordering(card, draft, locked) {
      const order = draft ? [...draft] : card.options.map((option) => option.letter);
      if (!locked) drafts[index] = order;
      const texts = Object.fromEntries(card.options.map((option) => [option.letter, option.text]));
      const list = element("ol", { class: "tl-quiz-order" });
      const move = (place, by) => {
        const to = place + by;
        if (to < 0 || to >= order.length) return;
        const [letter] = order.splice(place, 1);
        order.splice(to, 0, letter);
        fill();
        // The focus stays with the step that moved, so that one key pressed again moves it on.
        list.children[to].querySelector(by < 0 ? ".tl-quiz-up" : ".tl-quiz-down").focus();
        moved.replaceChildren(filled(words.moved, { text: texts[letter], place: to + 1 }));
      };
      const fill = () => list.replaceChildren(...order.map((letter, place) => element("li", {},
        element("span", { class: "tl-quiz-step" }, element("b", {}, letter + ". "), rich(texts[letter])),
        locked ? null : element("span", { class: "tl-quiz-moves" },
          element("button", {
            type: "button", class: "tl-quiz-up", "aria-label": `${words.up}: ${texts[letter]}`, "aria-disabled": place === 0 ? "true" : null,
            onclick: () => move(place, -1),
          }, words.up),
          element("button", {
            type: "button", class: "tl-quiz-down", "aria-label": `${words.down}: ${texts[letter]}`,
            "aria-disabled": place === order.length - 1 ? "true" : null, onclick: () => move(place, 1),
          }, words.down)))));
      fill();
      return list;
    },

    matching(card, draft = {}, locked) {
      const chosen = { ...draft };
      return element("div", { class: "tl-quiz-rows" }, ...card.rows.map((row) => {
        const select = element("select", {
          id: `${id}row${row.number}`, disabled: locked, onchange: (e) => { chosen[row.number] = e.target.value; drafts[index] = { ...chosen }; },
        }, element("option", { value: "" }, words.choose),
        ...card.options.map((option) => element("option", { value: option.letter }, `${option.letter}. ${option.text}`)));
        select.value = chosen[row.number] ?? "";
        return element("p", { class: "tl-quiz-row" }, element("label", { for: `${id}row${row.number}` }, `${row.number}. `, rich(row.text)), select);
      }));
    },

    recall: (card, draft = "", locked) => element("textarea", {
      rows: "4", "aria-label": words.answer, "aria-describedby": id + "hint", value: draft, readonly: locked,
      oninput: (e) => { drafts[index] = e.target.value; },
    }),
  };

  function options(card, type, locked, isChecked, onchange) {
    return element("div", { class: "tl-quiz-options" }, ...card.options.map((option) => element("label", {},
      element("input", {
        type, name: id + "option", value: option.letter, checked: isChecked(option.letter), disabled: locked, onchange: () => onchange(option.letter),
      }),
      element("span", {}, element("b", {}, option.letter + ". "), rich(option.text)))));
  }

  function question(card) {
    const told = result(index);
    const locked = Boolean(told) && told.status !== "invalid";
    const draft = locked ? told.draft : drafts[index];
    const form = element("form", {
      novalidate: true,
      onsubmit: (e) => {
        e.preventDefault();
        if (locked || waiting) return;
        focusAfter = "verdict";
        send({ do: "answer", answer: drafts[index] ?? null });
      },
    },
    element("fieldset", {},
      element("legend", {}, rich(card.stem)),
      card.code ? element("pre", {}, element("code", {}, card.code)) : null,
      picture(card),
      element("p", { class: "tl-quiz-hint", id: id + "hint" }, card.hint),
      card.kind === "matching"
        ? element("p", { class: "tl-quiz-hint" }, ...card.options.map((option) => element("span", { class: "tl-quiz-target" }, `${option.letter}. `, rich(option.text))))
        : null,
      kinds[card.kind](card, draft, locked)));
    if (!locked) form.append(element("button", { type: "submit", class: "tl-quiz-primary" }, card.kind === "recall" ? words.reveal : words.check));
    return form;
  }

  function picture(card) {
    if (!card.picture) return null;
    if (!card.picture.png) return element("p", {}, card.picture.alt);
    return element("img", { src: "data:image/png;base64," + card.picture.png, alt: card.picture.alt });
  }

  function guess(card) {
    const told = result(index);
    const locked = Boolean(told) && told.status !== "invalid";
    return element("div", { role: "group", "aria-labelledby": id + "stem" },
      element("p", { class: "tl-quiz-stem", id: id + "stem" }, rich(card.stem)),
      element("p", { class: "tl-quiz-hint" }, words.prediction_hint),
      element("div", { class: "tl-quiz-guesses" }, ...card.options.map((option) => element("button", {
        type: "button", "aria-pressed": String(locked && told.draft === option.letter), "aria-disabled": locked ? "true" : null,
        onclick: () => { if (!locked && !waiting) { focusAfter = "verdict"; send({ do: "answer", answer: option.letter }); } },
      }, element("b", {}, option.letter + ". "), rich(option.text)))));
  }

  // ------------------------------------------------------------------------------------------------ what Python said
  function reasons(list) {
    // No <dl>: JupyterLab floats every <dt>.
    return element("div", {}, ...list.map(([heading, why]) => element("div", { class: "tl-quiz-reason" },
      element("p", { class: "tl-quiz-about" }, rich(heading)), element("p", { class: "tl-quiz-why" }, rich(why)))));
  }

  function section(told) {
    const target = [...document.querySelectorAll("[id], [data-jupyter-id]")].find(
      (node) => node.id === told.section || node.dataset.jupyterId === told.section);
    if (!target) return element("p", {}, told.sectionTitle);
    return element("p", {}, element("a", {
      href: "#" + encodeURIComponent(told.section),
      onclick: (e) => { e.preventDefault(); target.scrollIntoView({ block: "start" }); },
    }, told.sectionTitle));
  }

  function explanation(told) {
    const parts = [];
    if (told.after) parts.push(element("p", {}, rich(told.after)));
    if (told.reasons?.length) parts.push(reasons(told.reasons));
    for (const trap of told.traps ?? []) parts.push(element("p", { class: "tl-quiz-trap" }, rich(trap)));
    if (told.status === "incorrect") parts.push(section(told));
    if (told.note) parts.push(element("p", { class: "tl-quiz-note" }, told.note));
    if (told.status === "unmarked") {
      parts.push(element("div", { class: "tl-quiz-actions", role: "group", "aria-label": words.mark_yourself },
        element("span", {}, words.mark_yourself),
        ...[2, 1, 0].map((mark) => element("button", {
          type: "button", class: `tl-quiz-mark${mark}`,
          onclick: () => { focusAfter = "next"; send({ do: "answer", answer: { text: told.draft, mark } }); },
        }, words["mark" + mark]))));
    } else if (!prediction) {
      const actions = element("div", { class: "tl-quiz-actions" });
      const open = cards.findIndex((_, i) => !answered(i));
      if (index + 1 < cards.length) actions.append(element("button", { type: "button", class: "tl-quiz-primary tl-quiz-next", onclick: () => go(index + 1) }, words.next));
      else if (open >= 0) actions.append(element("button", { type: "button", class: "tl-quiz-primary tl-quiz-next", onclick: () => go(open) }, words.first_open));
      actions.append(element("button", {
        type: "button", class: "tl-quiz-again", onclick: () => { delete drafts[index]; focusAfter = "form"; send({ do: "again" }); },
      }, words.again));
      parts.push(actions);
      if (open < 0) parts.push(element("p", { class: "tl-quiz-done" }, filled(words.all_done, { count: cards.length, right: rightOnes() })));
    }
    if (told.others?.length) parts.push(element("details", {}, element("summary", {}, told.othersTitle), reasons(told.others)));
    return parts;
  }

  const rightOnes = () => cards.filter((_, i) => answered(i) && result(i).right).length;

  function drawHead() {
    cards.forEach((_, i) => {
      const state = answered(i) ? (result(i).status === "marked" ? result(i).verdict : words[result(i).status]) : words.open;
      jump.options[i].textContent = `${i + 1} / ${cards.length}  ${state}`;
    });
    jump.value = String(index);
    for (const [button, end] of [[back, index === 0], [forward, index === cards.length - 1]]) {
      if (end) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    summary.replaceChildren(filled(words.summary, { right: rightOnes(), answered: cards.filter((_, i) => answered(i)).length }));
  }

  function drawVerdict() {
    clearTimeout(waiting);
    waiting = 0;
    const told = result(index);
    shownCount = told?.count;
    verdict.className = "tl-quiz-verdict" + (told ? " tl-quiz-" + told.status : "");
    verdict.replaceChildren(...(told ? [element("strong", {}, rich(told.verdict)), told.answer ? `　${told.answer}` : ""] : []));
    after.replaceChildren(...(told && told.status !== "invalid" ? explanation(told) : []));
  }

  function draw() {
    const card = cards[index];
    const told = result(index);
    last.replaceChildren(told?.last ?? "");
    moved.replaceChildren();
    drawHead();
    body.replaceChildren(prediction ? guess(card) : question(card));
    drawVerdict();
  }

  function onResults() {
    if (result(index)?.count === shownCount) return drawHead(); // it was another card's
    // An answer that could not be read leaves the form as it is, with what was typed.
    if (result(index)?.status === "invalid") {
      drawHead();
      drawVerdict();
      body.querySelector("input[type=text], textarea")?.setAttribute("aria-invalid", "true");
    } else draw();
    const wanted = focusAfter;
    focusAfter = null;
    if (wanted === "verdict") verdict.focus();
    else if (wanted === "next") (after.querySelector(".tl-quiz-next") ?? verdict).focus();
    else if (wanted === "form") body.querySelector("input, select, textarea, button")?.focus();
  }

  model.on("change:results", onResults);
  draw();
  return () => { clearTimeout(waiting); model.off("change:results", onResults); };
}

export default { render };
