"""What the explorers of generation share: the stored sentence, asking a translator, the field in the page that asks it."""

import json

import explore_support as support
import looked
import numpy as np
import pytest

from transformer_lite.explore import attending, explorer, generating, looking
from transformer_lite.explore.looking import MEAN, MOST, Token
from transformer_lite.language import current, use

EXPLORERS = {"generator": ("generator", generating), "attention-map": ("attention_map", attending)}  # module, room


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The sentence ---


def test_the_stored_sentence_is_what_the_shipped_translator_does():
    made, kept = looked.looked(), json.loads(looking.DATA.read_text("utf-8"))
    assert set(made) == set(kept)
    numbers = {name: (np.array(made.pop(name)), np.array(kept.pop(name))) for name in looking.WEIGHTS}
    probabilities = [[p for row in each.pop("likely") for _, p in row] for each in (made, kept)]
    glosses = [each.pop("glosses") for each in (made, kept)]
    assert made == kept, "another translator ships: python tests/explore/looked.py"
    assert set(glosses[0]["en"]) & set(glosses[1]["en"]) >= set(kept["target"])  # which words come last hangs on the last digit
    assert probabilities[0] == pytest.approx(probabilities[1], abs=2e-3)
    for name, (now, then) in numbers.items():
        assert now.shape == then.shape and now == pytest.approx(then, abs=2e-3), name


def test_what_the_lab_hands_over_can_be_asked_in_either_language():
    from transformer_lite.lab.translating import look

    use("ja")
    found = looking.asked(look, looking.EXAMPLE, "en")
    stored = looking.stored("en")
    assert found.source == stored.source and found.target == stored.target and found.own is False
    assert found.source[0] == Token("the", "(article)") and current() == "ja"
    assert looking.asked(look, looking.EXAMPLE, "ja").source[0] == Token("the", "(冠詞)")
    assert found.cross == pytest.approx(stored.cross, abs=2e-3)
    with pytest.raises(ValueError, match="The text is empty"):
        looking.asked(look, " ", "en")
    doubted = looking.asked(look, "the dog chased the penguin", "en")
    assert "penguin" in doubted.doubts and "<unk>" in [token.token for token in doubted.source]
    for text in looking.EXAMPLES:
        tried = looking.asked(look, text, "ja")
        assert tried.doubts == "" and tried.ended and len(tried.source) <= 12


def test_the_decoders_rows_hold_what_was_written_before():
    found = looking.stored("ja")
    assert [token.token for token in found.held] == ["BOS", "犬", "が", "猫", "を", "追いかけた"]
    assert [token.token for token in found.target] == ["犬", "が", "猫", "を", "追いかけた", "EOS"]
    assert found.held[0].gloss == "(文の始まり)" and found.held[1] == found.target[0] == Token("犬", "dog")
    assert all(row[0][0] == written for row, written in zip(found.likely, found.target, strict=True))


def test_a_sentence_that_ran_into_the_limit_was_cut_off_before_the_eos_that_was_never_chosen():
    n_source = 4  # with EOS
    for written, ended in ((n_source + 49, True), (n_source + 50, False)):  # without the EOS that look puts last
        found = looking.sentence(looked.made_up("a b c", n_target=written + 1), "a b c", "en")
        assert found.ended is ended and len(found.target) == written + ended
        assert (found.target[-1].token == "EOS") is ended and len(found.held) == len(found.likely) == len(found.target)
        assert found.cross.shape[2:] == (len(found.target), n_source)
        assert found.decoder.shape[2:] == (len(found.target),) * 2


def test_a_text_that_fits_no_map_is_refused_before_it_is_translated_where_that_can_be_known():
    calls = []

    def look(text):
        calls.append(text)
        return looked.made_up(text)

    assert len(looking.asked(look, "a " * (MOST - 1), "en").source) == MOST
    with pytest.raises(ValueError, match=rf"too long to be drawn: {MOST} tokens, and {MOST - 1} is the most"):
        looking.asked(look, "a " * MOST, "en")
    assert len(calls) == 1

    def subwords(text):
        return looked.made_up(" ".join(["part"] * MOST))

    with pytest.raises(ValueError, match=rf"収まりません（{MOST} トークン"):
        looking.asked(subwords, "oneword", "ja")


def test_weights_that_do_not_fit_the_tokens_are_refused():
    raw = looked.made_up("a b c")
    with pytest.raises(ValueError, match=r"cross must have shape \(layers, h, 4, 4\); got \(2, 4, 3, 4\)"):
        looking.sentence({**raw, "cross": raw["cross"][:, :, 1:]}, "a b c", "en")


def test_the_mean_of_the_heads_is_the_mean():
    found = looking.stored("ja")
    assert looking.head_weights(found.cross, 1, 2) == pytest.approx(found.cross[1, 2])
    assert looking.head_weights(found.cross, 1, MEAN) == pytest.approx(sum(found.cross[1]) / 4)


def test_a_token_within_a_sentence_has_its_gloss_where_the_learner_needs_it():
    dog, particle, end = Token("犬", "dog"), Token("が", "(subject)"), Token("EOS", "(end)")
    assert looking.named(dog, "target", "en") == "犬 (dog)" and looking.named(dog, "target", "ja") == "犬"
    assert looking.named(particle, "target", "en") == "が (subject)" and looking.named(end, "target", "en") == "EOS"
    assert (
        looking.named(Token("dog", "犬"), "source", "ja") == "dog（犬）" and looking.named(Token("x", ""), "source", "ja") == "x"
    )


def test_the_browsers_reading_of_rows_is_numpys():
    rng = np.random.default_rng(5)
    heads = rng.random((4, 3, 7))
    heads[0, 0, 2] = heads[0, 0, 5] = 2.0  # two that are equally large: the first counts
    module = ("looking", "generator")
    ways = f"[-1, 0, 1, 2, 3].map((head) => [0, 1, 2].map((i) => bench.rowOf({json.dumps(heads.tolist())}, head, i)))"
    found = np.array(support.in_node(module, ways))
    stack = np.concatenate([heads[None], heads.mean(axis=0)[None, None].repeat(4, axis=1)])  # [0] the heads, [1] their mean
    assert found == pytest.approx(np.stack([stack[1, 0], *heads]))
    rows = heads[:, 0].tolist()
    best = support.in_node(module, f"{json.dumps(rows)}.map((row) => [bench.heaviest(row), bench.heaviestFirst(row, 5)])")
    for row, (first, five) in zip(rows, best, strict=True):
        assert first == np.argmax(row) and five == np.argsort(-np.array(row), kind="stable")[:5].tolist()
    assert best[0][1][:2] == [2, 5]


# --- Asking, in Python ---


def doubtful(text):
    if not text:
        raise ValueError("empty, says the translator")
    if text == "broken":
        raise RuntimeError("the file is gone")
    return looked.made_up(text, doubts=f"doubts about {text}" if "penguin" in text else None)


@pytest.mark.parametrize("name", EXPLORERS)
def test_what_is_typed_is_answered_and_what_goes_wrong_is_said(name):
    shown = explorer(name)("en", look=doubtful)
    assert shown.can_ask and shown.looked["text"] == looking.EXAMPLE and shown.looked["own"] is True and shown.trouble == ""
    shown.set_state({"sentence": "a new sentence of six words", "asked": 1})
    assert shown.answered == 1 and shown.looked["text"] == "a new sentence of six words"
    assert [token["token"] for token in shown.looked["source"]] == ["a", "new", "sentence", "of", "six", "words", "EOS"]
    weights = np.array(shown.looked["cross"])
    assert weights.shape == (2, 4, 4, 7) and weights.sum(axis=-1) == pytest.approx(np.ones((2, 4, 4)), abs=1e-3)
    assert shown.twin()[0].endswith("a new sentence of six words")
    for number, (text, trouble) in enumerate(
        (("", "empty, says the translator"), ("broken", "could not be used (the file is gone)"), ("a " * 40, "too long")), 2
    ):
        shown.set_state({"sentence": text, "asked": number})
        assert shown.answered == number and trouble in shown.trouble
        assert shown.looked["text"] == "a new sentence of six words", "the sentence before stays"
    shown.set_state({"sentence": "the penguin", "asked": 5})
    assert (shown.answered, shown.trouble, shown.doubts) == (5, "", "doubts about the penguin")
    shown.set_state({"sentence": "the dog", "asked": 6})
    assert (shown.trouble, shown.doubts) == ("", "")


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_same_sentence_can_be_asked_again_after_another_training(name):
    answers = iter((4, 5))
    shown = explorer(name)("en", look=lambda text: looked.made_up(text, n_target=next(answers)))
    assert len(shown.looked["target"]) == 4
    shown.set_state({"sentence": looking.EXAMPLE, "asked": 1})
    assert len(shown.looked["target"]) == 5


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_first_sentence_that_is_refused_leaves_the_stored_one_and_the_reason(name, monkeypatch):
    shown = explorer(name)("en", look=doubtful, text="")
    assert shown.trouble == "empty, says the translator" and shown.looked["own"] is None and shown.can_ask
    assert not explorer(name)("en").can_ask
    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    assert "the penguin" in explorer(name)("ja", look=doubtful, text="the penguin").title


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_change_of_language_changes_texts_and_glosses(name):
    shown = explorer(name)("ja")
    assert shown.looked["source"][0]["gloss"] == "(冠詞)" and shown.strings["go"] == "訳す"
    shown.lang = "en"
    assert shown.looked["source"][0]["gloss"] == "(article)" and shown.strings["go"] == "Translate"
    spoken = []

    def look(text):
        spoken.append(current())
        return looked.made_up(text)

    shown = explorer(name)("ja", look=look)
    shown.set_state({"sentence": "one two", "asked": 1})
    shown.lang = "en"
    assert spoken == ["ja", "ja", "en"] and shown.looked["text"] == "one two" and shown.found.text == "one two"


# --- Asking, in the page ---


@pytest.fixture(params=list(EXPLORERS))
def show(request, show_module):
    module, room = EXPLORERS[request.param]

    def open_page(lang="en", can_ask=True, **changed):
        page = show_module(("looking", module), {**room.traits(lang, looking.stored(lang), can_ask), **changed})
        page.form = getattr(room, "cropped", lambda found: found)
        page.shows = room.SHOWS
        return page

    return open_page


def answer(page, text, **more):
    """What Python would send."""
    found = page.form(looking.sentence(looked.made_up(text, **more), text, "en"))
    sent = {"looked": looking.wire(found, page.shows), "trouble": "", "doubts": found.doubts, "step": 1, "row": 0, "column": 0}
    page.evaluate(
        "(sent) => { for (const name in sent) model.set(name, sent[name]); model.set('answered', model.get('asked')); }", sent
    )


def test_enter_sends_the_sentence_and_the_page_works_until_the_answer_comes(show):
    page = show()
    field = page.get_by_role("textbox", name="English sentence")
    assert field.input_value() == looking.EXAMPLE and page.locator(".tl-told").text_content() == ""
    field.fill("  one two three ")
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})  # it ends the choice of characters, not the sentence
    assert page.evaluate("() => model.get('asked')") == 0
    field.press("Enter")
    assert page.evaluate("() => [model.get('sentence'), model.get('asked')]") == ["one two three", 1]
    assert page.evaluate("() => window.saved") >= 1
    assert page.locator(".tl-told").text_content() == "Working…"
    assert page.locator(".tl-root").get_attribute("aria-busy") == "true"
    field.press("Enter")
    assert page.evaluate("() => model.get('asked')") == 1, "what is being computed is not asked for twice"
    answer(page, "one two three")
    assert page.locator(".tl-told").text_content() == "" and page.locator(".tl-root").get_attribute("aria-busy") == "false"
    assert "three" in page.locator(".tl-stage").text_content() and "chased" not in page.locator(".tl-stage").text_content()
    assert page.locator(".tl-which").text_content() == "Your own translator, trained in Chapter 9."
    assert page.evaluate("() => document.activeElement.className") == "tl-sentence", "the learner can type on"


def test_trouble_and_doubts_stand_beside_the_field_in_the_learners_language(show):
    page = show("ja", trouble="文が空です。")
    assert page.locator(".tl-told.tl-warns").text_content() == "文が空です。 下は、前の文のままです。"
    page.evaluate("() => { model.set('trouble', ''); model.set('doubts', 'モデルの知らない語があります: penguin'); }")
    assert page.locator(".tl-told.tl-warns").text_content() == "モデルの知らない語があります: penguin"
    page.evaluate("() => model.set('doubts', '')")
    assert page.locator(".tl-told.tl-warns").count() == 0 and page.locator(".tl-which").text_content().startswith("教材に付属の")


def test_a_kernel_that_keeps_silent_is_spoken_of_and_can_be_asked_again(show):
    page = show()
    page.clock.install()
    page.get_by_role("button", name="Translate").click()
    assert page.evaluate("() => model.get('asked')") == 1
    page.clock.run_for(10_500)
    assert page.locator(".tl-told").text_content().startswith("No answer from the kernel yet")
    page.locator(".tl-example").first.click()
    assert page.evaluate("() => [model.get('sentence'), model.get('asked')]") == [looking.EXAMPLES[0], 2]
    assert page.locator(".tl-told").text_content() == "Working…"
    page.evaluate("() => { clean(); model.set('answered', 2); }")
    assert page.locator(".tl-told").text_content() == "Working…", "closed, it follows no more"


def test_without_a_translator_there_is_no_field(show):
    page = show(can_ask=False)
    assert page.get_by_role("textbox").count() == 0 and page.locator(".tl-example").count() == 0
    assert page.locator(".tl-which").text_content().startswith("This sentence was computed beforehand")


def test_markup_in_a_sentence_is_text(show):
    page = show()
    answer(page, "<img src=x onerror=alert(1)> <b>x</b>")
    assert page.locator(".tl-stage img, .tl-stage b").count() == 0 and "<b>x</b>" in page.locator(".tl-stage").text_content()


def test_tokens_and_glosses_carry_their_language(show):
    page = show("ja")
    langs = page.evaluate(
        """() => [...document.querySelectorAll('.tl-stage .tl-gloss')]
          .map((gloss) => [gloss.parentElement.firstChild.textContent.split(' ').at(-1), gloss.textContent, gloss.lang])"""
    )
    found = {(token, gloss): lang for token, gloss, lang in langs}
    assert found["dog", "犬"] == "ja" and found["犬", "dog"] == "en" and found["the", "(冠詞)"] == "ja"
