"""The questions, traps and terms: keys are recomputed, both languages say the same, and nothing gives an answer away."""

import ast
import contextlib
import io
import math
import re
import unicodedata
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

from transformer_lite import content, equations

CHAPTER = "scaled-dot-product-attention"
PATTERNS = {"P08", "P09", "P10", "P11", "P12", "P13", "P14", "P15", "P16", "P17", "P18", "P20", "P21"}
KINDS = {"single", "multiple", "numeric", "ordering", "matching", "recall"}
TRAPS = (
    [f"SM{i}" for i in range(1, 10)]
    + [f"AT{i}" for i in range(1, 21)]
    + [f"CM{i}" for i in range(1, 8)]
    + [f"CR{i}" for i in range(1, 4)]
    + [f"MC{i:02}" for i in range(1, 29)]
)
EXPLAINED_CODES = ["SM1", "SM2", *(f"AT{i}" for i in range(1, 13)), "AT15", "AT18", "CM1", "CM2", "CM3"]
EXPLAINED_IDEAS = [f"MC{i:02}" for i in (1, 2, 3, 6, 7, 8, 9, 10, 14)]
IDEAS = {  # which misconception each wrong implementation embodies
    "SM2": ["MC01"], "SM3": ["MC01"], "AT7": ["MC01"], "AT8": ["MC01"],
    "AT1": ["MC03"], "AT2": ["MC02"], "AT3": ["MC04"], "AT4": ["MC05"], "AT5": ["MC05"], "AT6": ["MC06"], "AT9": ["MC08"],
    "AT10": ["MC09", "MC10"], "AT11": ["MC15"], "AT12": ["MC16"], "AT13": ["MC17"], "AT14": ["MC17"], "AT15": ["MC28"],
    "AT17": ["MC07", "MC13"], "AT18": ["MC14"], "AT19": ["MC13"], "SM6": ["MC14"], "CM1": ["MC19"], "CM2": ["MC20"],
    "CM3": ["MC21"], "CM4": ["MC23"], "CM6": ["MC28"],
}  # fmt: skip


@cache
def library():
    return content.load(content.quizzes_dir())


def questions(chapter=None):
    found = [question for question in library().questions.values() if chapter in (None, question.chapter)]
    assert found, "no question was found, so nothing would be tested"
    return found


def of_kind(kind, chapter=None):
    found = [question for question in questions(chapter) if question.kind == kind]
    assert found, f"no {kind} question was found"
    return found


def walk(item, path=""):
    """Every text in both languages of a question, trap or term, with its place."""
    if hasattr(item, "ja") and hasattr(item, "en") and callable(item):
        yield path, item
    elif isinstance(item, list | tuple):
        for i, part in enumerate(item):
            yield from walk(part, f"{path}[{getattr(part, 'key', i)}]")
    elif hasattr(type(item), "model_fields"):
        for name in type(item).model_fields:
            yield from walk(getattr(item, name), f"{path}.{name}")


def texts():
    items = [
        *library().questions.items(),
        *library().predictions.items(),
        *library().traps.items(),
        *((f"term {key}", term) for key, term in library().terms.items()),
    ]
    found = [(f"{name}{path}", both) for name, item in items for path, both in walk(item)]
    assert len(found) > 500, "hardly any text was found"
    return found


# ------------------------------------------------------------------------------------------------------------------ coverage


def test_the_chapter_has_enough_questions_in_all_kinds_and_patterns():
    bank = questions(CHAPTER)
    assert len(bank) >= 28
    assert {question.kind for question in bank} == KINDS
    assert len(of_kind("recall", CHAPTER)) == 3
    covered = {pattern for question in bank for pattern in question.patterns}
    assert covered >= PATTERNS, f"patterns without a question: {sorted(PATTERNS - covered)}"


@pytest.mark.parametrize("exam", ["g-kentei", "e-shikaku"])
def test_both_exams_are_served(exam):
    assert sum(exam in question.exams for question in questions(CHAPTER)) >= 12
    assert sum(question.exams == ["g-kentei"] for question in questions(CHAPTER)) >= 2
    assert sum(question.exams == ["e-shikaku"] for question in questions(CHAPTER)) >= 10


def test_the_predictions_of_the_chapters_exist():
    assert set(library().predictions) >= {f"{CHAPTER}.hook", f"{CHAPTER}.scale-guess", f"{CHAPTER}.axis-guess"}


def test_ids_name_their_chapter_and_topic():
    for question in questions():
        assert re.fullmatch(re.escape(question.chapter) + r"\.[a-z0-9-]+\.[0-9]{3}", question.id), question.id


def test_no_two_questions_are_nearly_the_same():
    def grams(text):
        text = re.sub(r"\W", "", text.casefold())
        return {text[i : i + 4] for i in range(len(text) - 3)}

    def whole(question):
        parts = [question.stem, *(option.text for option in getattr(question, "options", []))]
        return grams(" ".join(part.en for part in parts) + (question.code or ""))

    seen = [(question.id, whole(question)) for question in questions()]
    problems = []
    for i, (name, mine) in enumerate(seen):
        for other, theirs in seen[:i]:
            alike = len(mine & theirs) / len(mine | theirs)
            if alike >= 0.4:
                problems.append(f"{name} and {other} are {alike:.0%} alike")
    assert not problems, "\n".join(problems)


# --------------------------------------------------------------------------------------------------------- keys, recomputed


def value_of(expression):
    names = {
        "np": np,
        "math": math,
        "softmax": equations.softmax,
        "attention_scores": equations.attention_scores,
        "scaled_dot_product_attention": equations.scaled_dot_product_attention,
        "causal_mask": equations.causal_mask,
    }
    builtins = {"sum": sum, "range": range, "float": float, "abs": abs, "round": round}
    return eval(expression, {"__builtins__": builtins, **names})


def same(left, right):
    if isinstance(left, tuple) or isinstance(right, tuple):
        return tuple(left) == tuple(right)
    return bool(np.allclose(left, right))


@pytest.mark.parametrize("question", of_kind("numeric"), ids=lambda question: question.id)
def test_the_key_of_a_numeric_question_is_what_the_equations_give(question):
    assert question.check, "a numeric key needs `check`"
    assert abs(value_of(question.check) - question.answer) <= question.tolerance
    assert question.near, "name at least one wrong number that people get"
    for near in question.near:
        assert near.check, f"the near value {near.value} needs `check`"
        assert value_of(near.check) == pytest.approx(near.value, abs=max(question.tolerance / 2, 1e-9)), near.value


def test_near_values_differ_from_one_another():
    for question in of_kind("numeric"):
        values = [near.value for near in question.near]
        for i, one in enumerate(values):
            assert all(abs(one - other) > 2 * question.tolerance for other in values[:i]), question.id


def checked_choices():
    found = [question for question in questions() if question.kind in ("single", "multiple") and question.check]
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("question", checked_choices(), ids=lambda question: question.id)
def test_the_key_of_a_choice_among_values_is_what_the_equations_give(question):
    truth = value_of(question.check)
    for option in question.options:
        assert option.value, f"option {option.key} needs `value`, as the question has `check`"
        assert same(ast.literal_eval(option.value), truth) == option.correct, option.key


def test_a_value_without_a_check_is_never_trusted():
    for question in questions():
        if any(getattr(option, "value", None) for option in getattr(question, "options", [])):
            assert question.check, f"{question.id} has values and no `check`"


def test_options_that_are_numbers_or_shapes_are_checked():
    literal = re.compile(r"^[-−]?[0-9.]+$|^\([0-9, ]+\)$")
    for question in of_kind("single"):
        if all(literal.match(option.text.en) for option in question.options):
            assert question.check, f"{question.id} asks for a number or shape, so it needs `check`"
            assert all(same(ast.literal_eval(option.value), ast.literal_eval(option.text.en)) for option in question.options)


def test_shapes_to_match_are_recomputed():
    found = [question for question in of_kind("matching") if question.check]
    assert found
    for question in found:
        truth, texts_of = value_of(question.check), {choice.key: choice.text.en for choice in question.choices}
        assert set(truth) == {row.key for row in question.rows}
        for row in question.rows:
            assert ast.literal_eval(texts_of[row.choice]) == truth[row.key], row.key


def printing():
    found = [question for question in questions() if question.code and "print(" in question.code]
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("question", printing(), ids=lambda question: question.id)
def test_code_that_prints_prints_its_key(question):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), np.printoptions(legacy=False):
        exec(question.code, {})
    printed = shown.getvalue().strip()
    for option in question.options:
        assert (option.text.en == printed) == option.correct, f"option {option.key}; the code prints {printed}"


def test_code_without_a_print_is_valid_python():
    found = [question for question in questions() if question.code and "print(" not in question.code]
    assert found
    for question in found:
        ast.parse(question.code.replace("____", "blank"))


def test_the_blank_for_the_divisor_fits_only_the_right_option():
    question = library().questions[f"{CHAPTER}.divisor.002"]
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(5, 64)), rng.normal(size=(7, 64)), rng.normal(size=(7, 32))
    right = equations.scaled_dot_product_attention(q, k, v).output
    for option in question.options:
        names = {"np": np, "softmax": equations.softmax, "q": q, "k": k, "v": v}
        exec(question.code.replace("____", option.text.en), names)
        assert np.allclose(names["output"], right) == option.correct, option.key


def test_the_formula_question_has_one_right_formula():
    question = library().questions[f"{CHAPTER}.formula.001"]
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    formulas = {
        "softmax(QKᵀ) V / √d_k": equations.softmax(q @ k.T) @ v / np.sqrt(3),
        "(QKᵀ / √d_k) softmax(V)": (q @ k.T / np.sqrt(3)) @ equations.softmax(v),
        "softmax(QKᵀ / √d_k) V": equations.softmax(q @ k.T / np.sqrt(3)) @ v,
    }
    for option in question.options:
        if option.text.en in formulas:
            agrees = np.allclose(formulas[option.text.en], equations.scaled_dot_product_attention(q, k, v).output)
            assert agrees == option.correct, option.text.en
    assert sum(option.text.en in formulas for option in question.options) == 3


# ------------------------------------------------------------------------------------------------- nothing gives the answer away


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_length_says_nothing_about_the_right_option(lang):
    bank, longest, shortest = of_kind("single", CHAPTER), [], []
    assert len(bank) >= 12
    for question in bank:
        right = [len(option.text(lang)) for option in question.options if option.correct]
        wrong = [len(option.text(lang)) for option in question.options if not option.correct]
        if right[0] > max(wrong):
            longest.append(question.id)
        if right[0] < min(wrong):
            shortest.append(question.id)
    assert len(longest) <= 0.35 * len(bank), longest
    assert len(shortest) <= 0.35 * len(bank), shortest
    # Never the longest, or never the shortest, would say something too.
    assert len(longest) >= 0.1 * len(bank)
    assert len(shortest) >= 0.1 * len(bank)


def test_the_place_of_the_right_option_varies():
    places = Counter(next(i for i, option in enumerate(q.options) if option.correct) for q in of_kind("single", CHAPTER))
    assert set(places) >= {0, 1, 2, 3}
    assert max(places.values()) <= 0.4 * sum(places.values())
    assert all(question.shuffle for question in of_kind("single", CHAPTER))


def test_singles_have_four_options_and_multiples_five():
    assert {len(question.options) for question in of_kind("single", CHAPTER)} == {4}
    assert {len(question.options) for question in of_kind("multiple", CHAPTER)} == {5}


def test_no_option_says_all_or_none_of_the_above():
    for name, both in texts():
        if ".options[" in name:
            assert not re.search(r"of the above|上記|すべて正しい|該当なし", both.ja + both.en, re.I), name


# ------------------------------------------------------------------------------------------------------------- two languages

JAPANESE = re.compile(r"[぀-ヿ㐀-䶿一-鿿]")
WORDS = {  # what an English text may say in place of a small number
    "0": "zero|zeroed|zeroing|nothing|none",
    "1": "an?|one|once|single|first|each|alone",
    "2": "two|twice|both|second|double|doubles|doubling|squares?|squared",
    "3": "three|third|triple|triples|tripling",
    "4": "four",
    "5": "five",
    "7": "seven",
}


def numbers(text):
    text = unicodedata.normalize("NFKC", text.replace("⁻", "-")).replace(",000", "000")
    text = re.sub(r"[a-z]+\.[a-z_]*|[A-Za-z]+_?[0-9]+", " ", text)  # names such as s34, v1
    return Counter(re.findall(r"[0-9]+(?:\.[0-9]+)?", text))


def test_english_has_no_japanese_and_japanese_is_japanese():
    for name, both in texts():
        assert not JAPANESE.search(both.en), f"{name}: Japanese in the English text"
        if not JAPANESE.search(both.ja):
            assert both.ja == both.en, f"{name}: the Japanese text is not Japanese"
            assert not re.search(r"\b(the|and|is|of|to)\b", both.ja), f"{name}: English left in the Japanese text"


def test_both_languages_have_the_same_numbers():
    problems = []
    for name, both in texts():
        japanese, english = set(numbers(both.ja)), set(numbers(both.en))
        problems += [f"{name}: only in English: {number}" for number in english - japanese]
        for number in japanese - english:
            said = WORDS.get(number)
            if not said or not re.search(rf"\b({said})\b", both.en, re.I):
                problems.append(f"{name}: only in Japanese: {number}")
    assert not problems, "\n".join(problems)


def test_japanese_is_polite_and_half_width():
    problems = []
    for name, both in texts():
        if re.search(r"[０-９Ａ-Ｚａ-ｚ]", both.ja):
            problems.append(f"{name}: full-width digits or letters")
        if re.search(r"することができ|という事実|あなた", both.ja):
            problems.append(f"{name}: translationese")
        if re.search(r"(である|だ|(?<![まで])した|ない|する|なる)。", both.ja):
            problems.append(f"{name}: plain style among です・ます")
    assert not problems, "\n".join(problems)


def test_every_option_has_a_reason_of_its_own():
    reasons = defaultdict(list)
    for name, both in texts():
        if name.endswith(".why"):
            reasons[both.en].append(name)
            assert len(both.en) >= 15 and len(both.ja) >= 8, f"{name}: too short to correct a thought"
            assert not re.match(r"(wrong|incorrect|right|correct)[.!]?$", both.en, re.I), name
    assert len(reasons) > 100
    assert not [names for names in reasons.values() if len(names) > 1]


def test_stems_have_no_tex():
    for question in questions():
        assert "$" not in question.stem.ja + question.stem.en or question.plain


# -------------------------------------------------------------------------------------------------------------------- traps


def test_every_trap_of_the_course_so_far_exists():
    assert list(library().traps) == TRAPS


def test_traps_of_questions_and_predictions_exist_and_most_wrong_options_have_one():
    known = set(library().traps)
    for item in [*questions(), *library().predictions.values()]:
        assert content.traps_of(item) <= known, item.id
    wrong = [option for question in questions(CHAPTER) for option in getattr(question, "options", []) if not option.correct]
    assert sum(option.trap is not None for option in wrong) >= 0.5 * len(wrong)


def test_ideas_are_linked_to_the_code_that_embodies_them():
    for key, trap in library().traps.items():
        if trap.family != "idea":
            assert trap.ideas == IDEAS.get(key, []), key
        else:
            assert not trap.ideas and not trap.snippet, key


@pytest.mark.parametrize("key", EXPLAINED_CODES + EXPLAINED_IDEAS)
def test_what_exams_ask_is_explained_in_full(key):
    trap = library().traps[key]
    assert trap.exams and trap.asked and trap.tempts
    assert len(trap.hints) == 3


def test_traps_of_the_chapter_say_where_they_are_taught():
    for key, trap in library().traps.items():
        if trap.chapter == CHAPTER:
            assert trap.anchor, key


SIGNATURES = {
    "softmax": ("softmax", ["x", "axis"]),
    "attention": ("attention", ["queries", "keys", "values"]),
    "masks": ("scaled_dot_product_attention", ["queries", "keys", "values", "mask"]),
    "causal-mask": ("causal_mask", ["n_queries", "n_keys"]),
}


def exercise_of(trap):
    return "masks" if trap.family == "attention" and trap.chapter == "masks" else trap.family


def snippets():
    found = [trap for trap in library().traps.values() if trap.snippet]
    assert len(found) == 39, "every code has a snippet"
    return found


def wrong_function(trap):
    name, _ = SIGNATURES[exercise_of(trap)]
    namespace = {"np": np}
    exec(trap.snippet, namespace)
    return namespace[name]


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_a_snippet_is_one_function_of_the_exercises_signature(trap):
    tree = ast.parse(trap.snippet)
    assert len(tree.body) == 1
    name, parameters = SIGNATURES[exercise_of(trap)]
    assert tree.body[0].name == name
    assert [argument.arg for argument in tree.body[0].args.args] == parameters
    assert "#" not in trap.snippet, "no comments: they would be in one language"


def probe(trap):
    """Arguments on which every trap of a family differs from the right answer and from the other traps."""
    rng = np.random.default_rng(7)
    q, k, v = rng.normal(size=(4, 9)), rng.normal(size=(6, 9)), rng.normal(size=(6, 3))
    mask = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1]], dtype=bool)
    return {
        "softmax": [(rng.normal(size=(3, 5)),), (np.array([[1000.0, 0.0], [0.0, 1.0]]),)],
        "attention": [(q, k, v)],
        "masks": [(q, k, v, mask)],
        "causal-mask": [(4,), (2, 6)],
    }[exercise_of(trap)]


REFERENCES = {
    "softmax": equations.softmax,
    "attention": equations.scaled_dot_product_attention,
    "masks": equations.scaled_dot_product_attention,
    "causal-mask": equations.causal_mask,
}


def flat(function, arguments):
    with np.errstate(all="ignore"):
        result = function(*arguments)
    arrays = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(np.asarray(array, dtype=float)) for array in arrays])


def agree(left, right):
    return left.shape == right.shape and np.allclose(left, right, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_a_snippet_is_wrong_and_like_no_other(trap):
    function, reference = wrong_function(trap), REFERENCES[exercise_of(trap)]
    mine = [flat(function, arguments) for arguments in probe(trap)]
    right = [flat(reference, arguments) for arguments in probe(trap)]
    assert not all(map(agree, mine, right)), "it is right"
    for other in snippets():
        if other.key != trap.key and exercise_of(other) == exercise_of(trap):
            theirs = [flat(wrong_function(other), arguments) for arguments in probe(trap)]
            assert not all(map(agree, mine, theirs)), f"the same as {other.key}"


def test_snippets_break_the_laws_that_their_lines_name():
    rng = np.random.default_rng(3)
    q, k, v = rng.normal(size=(4, 9)), rng.normal(size=(6, 9)), rng.normal(size=(6, 3))
    mask = np.tri(4, 6, k=1, dtype=bool)

    def run(key, *arguments):
        with np.errstate(all="ignore"):
            return wrong_function(library().traps[key])(*arguments)

    def weights(key, *arguments):
        return run(key, *arguments)[1]

    assert np.isnan(run("SM1", np.array([1000.0, 0.0]))).any()
    assert np.allclose(run("SM2", q).sum(axis=0), 1)
    assert np.allclose(run("SM3", q).sum(), 1)
    assert np.allclose(run("SM4", 3 * abs(q)), run("SM4", abs(q)))
    assert np.allclose(run("SM5", np.zeros(3)), 0.5)
    assert set(np.unique(run("SM6", q))) == {0.0, 1.0}
    assert np.allclose(run("SM7", q), equations.softmax(-q))
    assert np.allclose(run("SM8", np.array([1.0, 0.0])), [2 / 3, 1 / 3])
    assert np.allclose(run("SM9", q)[np.arange(4), q.argmax(axis=-1)], 0)
    assert np.allclose(weights("AT1", q, k, v), equations.scaled_dot_product_attention(3 * q, k, v).weights)
    assert np.allclose(weights("AT2", q, k, v), equations.scaled_dot_product_attention(q / 3, k, v).weights)
    assert np.allclose(weights("AT6", q, k, v).sum(axis=-1), 1 / 3)
    assert np.allclose(weights("AT7", q, k, v).sum(axis=0), 1)
    assert np.allclose(weights("AT8", q, k, v).sum(), 1)
    assert np.allclose(run("AT9", 2 * q, k, v)[0], 2 * run("AT9", q, k, v)[0])
    assert run("AT10", q, k, v)[0].shape == (4, 9)
    masked = weights("AT11", q, k, v, mask)
    assert np.all(masked[~mask] == 0) and np.all(masked.sum(axis=-1) < 1)
    leaking = weights("AT12", q, k, v, mask)
    assert np.allclose(leaking.sum(axis=-1), 1) and np.all(leaking[~mask] > 0)
    assert np.allclose(weights("AT14", q, k, v, mask), weights("AT14", q, k, v), atol=1e-7)
    assert np.all(weights("AT15", q, k, v, mask)[mask] == 0)
    assert np.allclose(weights("AT16", 0 * q, k, v), 0.5)
    assert np.allclose(weights("AT17", 7 * q, k, v), weights("AT17", q, k, v))
    assert set(np.unique(weights("AT18", q, k, v))) == {0.0, 1.0}
    assert np.allclose(weights("AT19", q + 1, k + 1, v), weights("AT19", q, k, v))
    assert np.array_equal(weights("AT20", q, k, v, mask), weights("AT20", q, k, v))
    counts = {key: int(run(key, 4).sum()) for key in ("CM1", "CM3", "CM4", "CM5", "CM7")}
    assert counts == {"CM1": 6, "CM3": 13, "CM4": 16, "CM5": 4, "CM7": 7}
    assert np.array_equal(run("CM2", 4), equations.causal_mask(4).T)
    assert np.array_equal(run("CM6", 4), ~equations.causal_mask(4))
    assert [int(run(key, 2, 6).sum()) for key in ("CR1", "CR2", "CR3")] == [3, 12, 3]


EXERCISE = {
    "softmax": "softmax",
    "attention": "attention",
    "masks": "scaled_dot_product_attention",
    "causal-mask": "causal_mask",
}


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_the_checker_recognises_a_snippet_as_exactly_its_trap(trap):
    from transformer_lite import practice

    result = practice.judge(EXERCISE[exercise_of(trap)], wrong_function(trap))
    assert result.status == "wrong", result.text("en")
    assert tuple(result.traps) == (trap.key,), result.text("en")


# --------------------------------------------------------------------------------------------------- anchors, glossary, syllabus


def test_anchors_are_sections_of_the_chapter():
    folder = content.source_dir()
    if folder is None:
        pytest.skip("a wheel has no sources")
    anchors = {}
    for path in folder.glob("*.md"):
        text = path.read_text("utf-8")
        chapter = re.search(r"^transformer_lite:\n(?:.*\n)*?\s+id: (\S+)", text, re.M)[1]
        anchors[chapter] = set(re.findall(r'<a id="([^"]+)">|\{#([a-z-]+)\}', text))
        anchors[chapter] = {one or other for one, other in anchors[chapter]}
    assert anchors.get(CHAPTER), "the chapter has no anchor"
    used = [(question.id, question.chapter, question.anchor) for question in questions()]
    used += [(trap.key, trap.chapter, trap.anchor) for trap in library().traps.values() if trap.anchor]
    for name, chapter, anchor in used:
        assert anchor in anchors[chapter], f"{name}: there is no section {anchor!r} in {chapter}"


def test_terms_are_in_both_languages_and_differ():
    terms = list(library().terms.values())
    assert len(terms) >= 20
    for lang in ("ja", "en"):
        names = [getattr(term, lang).casefold() for term in terms]
        assert len(set(names)) == len(names)
    for term in terms:
        assert JAPANESE.search(term.ja) and not JAPANESE.search(term.en), term.id
        assert not {term.ja, term.en} & set(term.variants), f"{term.id}: a variant repeats the term"


def test_the_syllabus_is_marked_unofficial_and_names_real_chapters():
    from ruamel.yaml import YAML

    path = content.quizzes_dir() / "syllabus.yaml"
    data = YAML(typ="safe").load(path.read_text("utf-8"))
    assert "非公式" in data["unofficial"]["ja"] and "nofficial" in data["unofficial"]["en"]
    items = [item for exam in data["exams"] for item in exam["items"]]
    assert {exam["id"] for exam in data["exams"]} == {"g-kentei", "e-shikaku"} and len(items) >= 15
    assert len({item["id"] for item in items}) == len(items)
    known = {trap.chapter for trap in library().traps.values()} | {
        "why-the-transformer", "multi-head-attention", "embedding-and-positional-encoding", "ffn-residual-layer-norm",
        "assembling-encoder-and-decoder", "training", "inference", "cost-and-scale", "bert-gpt-vit-and-the-exam-map",
    }  # fmt: skip
    for item in items:
        assert item["chapters"] and set(item["chapters"]) <= known, item["id"]
        assert item["name"]["ja"] and item["name"]["en"]
