// The quiz card; comes after common.js. Draws questions from `cards`, sends answers to Python, shows what Python says in `results`.
// Text of the question bank becomes text nodes only; nothing here parses HTML.

const EXAMS = ["g-kentei", "e-shikaku", "both"];

let serial = 0;

function render({ model, el }) {
  const id = `tl-quiz${++serial}-`; // names must differ between two quizzes on one page
  const words = model.get("words");
  const cards = model.get("cards");
  const prediction = cards[0].kind === "prediction";
  const drafts = {}; // what has been typed or ticked, by card, until it is answered
  let asking = prediction ? { session: [0] } : model.get("asking");
  let index = Math.min(Math.max(model.get("index"), 0), cards.length - 1);
  let waiting = 0; // the timer of an answer on its way
  let focusAfter = null; // where the focus goes once Python has answered
  let shownCount; // the count of the result on screen

  const result = (i) => model.get("results")[String(i)];
  const answered = (i) => Boolean(result(i)) && result(i).status !== "invalid" && result(i).status !== "unmarked";
  const earlier = (i) => model.get("lasts")[String(i)];
  const place = () => asking.session.indexOf(index);

  const root = element("section", {
    class: "tl-quiz", lang: model.get("lang"), "aria-label": prediction ? words.prediction : words.quiz, "data-lm-suppress-shortcuts": "true",
  });
  for (const event of ["keydown", "keypress", "keyup"]) root.addEventListener(event, (e) => e.stopPropagation());

  // ------------------------------------------------------------------------------------------------ parts that stay
  // Native radio buttons: one tab stop, arrows move and choose.
  const exams = element("div", { class: "tl-quiz-exams", role: "radiogroup", "aria-label": words.exams },
    ...(asking.counts?.both ? EXAMS : []).map((exam) => element("label", {},
      element("input", {
        type: "radio", name: id + "exam", value: exam, disabled: !asking.counts[exam],
        onchange: () => wish({ do: "exam", answer: exam }),
      }),
      element("span", {}, words[exam]))));
  const progress = element("span", { class: "tl-quiz-progress", role: "status", "aria-live": "polite" });
  const jump = element("select", { class: "tl-quiz-jump", "aria-label": words.jump, onchange: () => go(Number(jump.value), false) });
  const back = element("button", { type: "button", class: "tl-quiz-back", onclick: () => go(asking.session[place() - 1], false) }, words.previous_short);
  const forward = element("button", { type: "button", class: "tl-quiz-forward", onclick: () => go(asking.session[place() + 1], false) }, words.next_short);
  const summary = element("span", { class: "tl-quiz-summary" });
  const head = element("div", { class: "tl-quiz-top" },
    element("div", { class: "tl-quiz-head" }, exams.childElementCount ? exams : null, progress),
    element("div", { class: "tl-quiz-head" }, back, jump, forward, summary));
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

  // What changes the card without an answer to mark: the switch, the next ten, last time's answer.
  function wish(content) {
    model.send({ card: index, ...content });
    if (waiting) return;
    waiting = setTimeout(() => { waiting = 0; verdict.replaceChildren(words.slow_switch); }, 4000);
  }

  function go(to, focus = true) {
    if (!asking.session.includes(to)) return;
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
      card.unit || null,
      locked ? mark({ right: result(index).right, mark: result(index).verdict }) : null),

    ordering(card, draft, locked) {
      const order = draft ? [...draft] : card.options.map((option) => option.letter);
      if (!locked) drafts[index] = order;
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
      };
      const fill = () => list.replaceChildren(...order.map((letter, at) => {
        const row = result(index)?.rows?.[letter];
        return element("li", {}, element("div", { class: row ? "tl-quiz-told " + rowClass(row) : null },
          locked ? null : element("span", { class: "tl-quiz-moves" },
            element("button", {
              type: "button", class: "tl-quiz-up", "aria-label": `${words.up}: ${texts[letter]}`, "aria-disabled": at === 0 ? "true" : null,
              onclick: () => move(at, -1),
            }, words.up),
            element("button", {
              type: "button", class: "tl-quiz-down", "aria-label": `${words.down}: ${texts[letter]}`,
              "aria-disabled": at === order.length - 1 ? "true" : null, onclick: () => move(at, 1),
            }, words.down)),
          element("span", { class: "tl-quiz-step" }, element("b", {}, letter + ". "), rich(texts[letter])),
          locked ? mark(row) : null));
      }));
      fill();
      return list;
    },

    matching(card, draft = {}, locked) {
      const chosen = { ...draft };
      const texts = Object.fromEntries(card.options.map((option) => [option.letter, option.text]));
      return element("div", { class: "tl-quiz-rows" }, ...card.rows.map((row) => {
        const name = `${id}row${row.number}`;
        if (locked) {
          const told = result(index).rows[row.number];
          return element("div", { class: "tl-quiz-told " + rowClass(told) },
            element("div", { class: "tl-quiz-row" },
              element("span", {}, `${row.number}. `, rich(row.text)),
              element("span", { class: "tl-quiz-given" }, element("span", { class: "tl-quiz-chosen" }, rich(texts[chosen[row.number]])), mark(told))),
            reason(told));
        }
        // A closed list cuts what does not fit into it, so such a text is also written under it.
        const whole = element("span", { class: "tl-quiz-whole", "aria-hidden": "true" });
        const select = element("select", {
          id: name, onchange: (e) => { chosen[row.number] = e.target.value; drafts[index] = { ...chosen }; spell(); },
        }, element("option", { value: "" }, words.choose), ...card.options.map((option) => element("option", { value: option.letter }, option.text)));
        const spell = () => {
          const text = texts[select.value] ?? "";
          whole.replaceChildren(width(text, select) > select.clientWidth - 40 ? text : "");
        };
        select.value = chosen[row.number] ?? "";
        requestAnimationFrame(spell);
        return element("p", { class: "tl-quiz-row" }, element("label", { for: name }, `${row.number}. `, rich(row.text)), element("span", {}, select, whole));
      }));
    },

    recall: (card, draft = "", locked) => element("textarea", {
      rows: "4", "aria-label": words.answer, "aria-describedby": id + "hint", value: draft, readonly: locked,
      oninput: (e) => { drafts[index] = e.target.value; },
    }),
  };

  function options(card, type, locked, isChecked, onchange) {
    return element("div", { class: "tl-quiz-options" }, ...card.options.map((option) => {
      const told = locked ? result(index).rows[option.letter] : null;
      return element("div", { class: told ? "tl-quiz-told " + rowClass(told) : null },
        element("label", {},
          element("input", {
            type, name: id + "option", value: option.letter, checked: isChecked(option.letter), disabled: locked, onchange: () => onchange(option.letter),
          }),
          element("span", { class: "tl-quiz-text" }, element("b", {}, option.letter + ". "), rich(option.text)),
          told ? mark(told) : null),
        told ? reason(told) : null);
    }));
  }

  // ------------------------------------------------------------------------------------------ rows after an answer
  const rowClass = (row) => (row.plain ? "tl-quiz-plain" : row.right ? "tl-quiz-right" : "tl-quiz-wrong");

  const mark = (row) => element("span", { class: "tl-quiz-mark" }, element("span", { "aria-hidden": "true" }, row.right ? "✓ " : "✗ "), rich(row.mark));

  function reason(row) {
    return element("details", { class: "tl-quiz-reason", open: row.open },
      element("summary", {}, row.title), element("p", { class: "tl-quiz-why" }, rich(row.why)), ...row.traps.map(trap));
  }

  function trap([title, key]) {
    return element("p", { class: "tl-quiz-trap" }, rich(title), " ", element("small", {}, key));
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
      element("p", { class: "tl-quiz-hint" },
        element("span", { id: id + "hint" }, card.hint),
        asking.counts?.both && asking.exam === "both"
          ? element("span", { class: "tl-quiz-for" }, card.exams.map((exam) => words[exam]).join(words.and))
          : null),
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
    return element("div", {}, ...list.map(([heading, why]) => element("div", {},
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
    parts.push(...(told.traps ?? []).map(trap));
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
      const { session, left } = asking;
      const open = session.find((i) => !answered(i));
      const primary = (text, onclick) => actions.append(element("button", { type: "button", class: "tl-quiz-primary tl-quiz-next", onclick }, text));
      if (open === undefined) {
        const count = Math.min(left, 10);
        primary(count === 0 ? words.over_again : count === 10 ? words.next_session_10 : filled(words.next_session, { count }),
          () => { focusAfter = "form"; wish({ do: "session" }); });
      } else if (place() + 1 < session.length) primary(words.next, () => go(session[place() + 1]));
      else primary(words.first_open, () => go(open));
      actions.append(element("button", {
        type: "button", class: "tl-quiz-again", onclick: () => { focusAfter = "form"; send({ do: "again" }); },
      }, words.again));
      if (open === undefined) {
        const right = session.filter((i) => result(i).right).length;
        const all = asking.exam === "both" ? words.all_done : filled(words.all_done_exam, { exam: words[asking.exam] });
        parts.push(element("p", { class: "tl-quiz-done" }, filled(words.session_done, { count: session.length, right }), left ? "" : " " + all));
      }
      parts.push(actions);
    }
    if (told.others?.length) parts.push(element("details", {}, element("summary", {}, told.othersTitle), reasons(told.others)));
    return parts;
  }

  function drawHead() {
    if (prediction) return;
    const { session, total } = asking;
    jump.replaceChildren(...session.map((i, at) => {
      const state = answered(i) ? (result(i).status === "marked" ? result(i).verdict : words[result(i).status]) : words.open;
      return element("option", { value: String(i) }, filled(words.item, { place: at + 1, state }));
    }));
    jump.value = String(index);
    for (const input of exams.querySelectorAll("input")) input.checked = input.value === asking.exam;
    for (const [button, end] of [[back, place() === 0], [forward, place() === session.length - 1]]) {
      if (end) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    // Said again only when it has changed: it is a live region.
    const where = filled(words.progress, { place: place() + 1, session: session.length, total });
    if (progress.textContent !== where) progress.replaceChildren(where);
    const asked = cards.flatMap((card, i) => (asking.exam === "both" || card.exams.includes(asking.exam) ? [i] : []));
    const right = asked.filter((i) => (answered(i) ? result(i).right : earlier(i)?.right)).length;
    summary.replaceChildren(filled(words.summary, { right, answered: asked.filter((i) => answered(i) || earlier(i)).length }));
  }

  function drawLast() {
    const line = prediction || result(index) ? "" : earlier(index)?.line;
    last.replaceChildren(...(line ? [line + "　", element("button", {
      type: "button", class: "tl-quiz-recalled", onclick: () => { focusAfter = "verdict"; wish({ do: "last" }); },
    }, words.last_shown)] : []));
  }

  function drawVerdict() {
    clearTimeout(waiting);
    waiting = 0;
    const told = result(index);
    shownCount = told?.count;
    verdict.className = "tl-quiz-verdict" + (told ? " tl-quiz-" + told.status : "");
    verdict.replaceChildren(...(told ? [element("strong", {}, rich(told.verdict)), told.answer ? `　${told.answer}` : ""] : []));
    after.replaceChildren(...(told && told.status !== "invalid" ? explanation(told) : []));
    // The reason stands above, in the row of what was chosen; a screen reader hears it with the verdict.
    const why = [...body.querySelectorAll("details[open] .tl-quiz-why")];
    why.forEach((node, i) => { node.id = `${id}why${i}`; });
    if (why.length) verdict.setAttribute("aria-describedby", why.map((node) => node.id).join(" "));
    else verdict.removeAttribute("aria-describedby");
  }

  function draw() {
    const card = cards[index];
    drawLast();
    moved.replaceChildren();
    drawHead();
    body.replaceChildren(prediction ? guess(card) : question(card));
    drawVerdict();
  }

  function onResults() {
    if (!prediction && model.get("asking").count !== asking.count) return; // new questions come with it: onAsking draws them
    for (const i of Object.keys(drafts)) if (result(i) && result(i).status !== "invalid") delete drafts[i];
    if (result(index)?.count === shownCount) return drawHead(); // it was another card's
    // An answer that could not be read leaves the form as it is, with what was typed.
    if (result(index)?.status === "invalid") {
      drawHead();
      drawVerdict();
      body.querySelector("input[type=text], textarea")?.setAttribute("aria-invalid", "true");
    } else draw();
    focus();
  }

  function focus() {
    const wanted = focusAfter;
    focusAfter = null;
    if (wanted === "verdict") verdict.focus();
    else if (wanted === "next") (after.querySelector(".tl-quiz-next") ?? verdict).focus();
    else if (wanted === "form") body.querySelector("input, select, textarea, button")?.focus();
  }

  function onAsking() {
    asking = model.get("asking");
    index = asking.index;
    draw();
    focus();
  }

  model.on("change:results", onResults);
  model.on("change:asking", onAsking);
  draw();
  return () => {
    clearTimeout(waiting);
    model.off("change:results", onResults);
    model.off("change:asking", onAsking);
  };
}

export default { render };
