"""The questions, traps and terms: keys are recomputed, both languages say the same, and nothing gives an answer away."""

import ast
import contextlib
import inspect
import io
import math
import re
import unicodedata
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

from transformer_lite import content, equations
from transformer_lite.content import exams
from transformer_lite.course import building

CHAPTER = "scaled-dot-product-attention"
PATTERNS = {  # what the questions of each chapter must cover: the forms in which exams ask about it
    "why-the-transformer": {"P01", "P02", "P03", "P05"},
    CHAPTER: {"P08", "P09", "P10", "P11", "P12", "P13", "P14", "P15", "P16", "P17", "P18", "P20", "P21"},
    "self-and-cross-attention": {"P04", "P06", "P07", "P19", "P22", "P23"},
    "masks": {"P24", "P25", "P26", "P27", "P28", "P29", "P30", "P31", "P73"},
    "multi-head-attention": {"P32", "P33", "P34", "P35", "P36", "P37"},
    "embedding-and-positional-encoding": {"P38", "P39", "P40", "P41", "P42", "P43", "P44"},
    "ffn-residual-layer-norm": {"P45", "P46", "P47", "P48", "P49", "P50"},
    "assembling-encoder-and-decoder": {"P51", "P52", "P53", "P74", "P35", "P46"},
    "training": {"P54", "P55", "P62", "P63", "P64", "P75"},
    "inference": {"P55", "P56", "P69"},
    "cost-and-scale": {"P57", "P58", "P59", "P60", "P21"},
    "bert-gpt-vit-and-the-exam-map": {"P61", "P65", "P66", "P67", "P68", "P69", "P70", "P71", "P72"},
}
CHAPTERS = list(PATTERNS)
KINDS = {"single", "multiple", "numeric", "ordering", "matching", "recall"}
FAMILIES = {  # the whole catalogue of wrong implementations: how many there are of each
    "SM": 9, "AT": 20, "CM": 7, "CR": 3, "MH": 13, "CA": 7, "PM": 7, "PE": 11, "EM": 9, "LN": 13, "FF": 9, "AN": 10, "BL": 9,
    "SR": 7, "LS": 6, "CE": 7, "LR": 8, "PC": 8, "KV": 5, "CO": 5,
}  # fmt: skip
CODES = [f"{family}{i}" for family, count in FAMILIES.items() for i in range(1, count + 1)]
TRAPS = CODES + [f"MC{i:02}" for i in range(1, 91)]
QUIZ_ONLY = {"CA4", "CA5", "KV2", "CO4", "CO5"}  # mistakes that no function of the exercise's parameters can make
VARIANTS = {"PE2", "LS4", "FF3", "AN3", "BL6"}  # other people's ways, no mistakes
EXPLAINED_CODES = [
    "SM1", "SM2", *(f"AT{i}" for i in range(1, 13)), "AT15", "AT18", "CM1", "CM2", "CM3",
    "MH1", "MH2", "MH3", "MH5", "MH7", "MH12", "CA1", "CA2", "CA3", "PM1", "PM3", "PM6", "PE1", "PE2", "PE3", "PE6",
    "EM1", "EM5", "EM7", "LN1", "LN2", "LN4", "LN6", "LN9", "FF1", "FF2", "FF4", "AN1", "AN2", "AN3", "BL1", "BL2", "BL3",
    "SR1", "LS2", "LS4", "CE1", "LR1", "PC1", "PC2", "KV1", "CO1", "CO2",
]  # fmt: skip
EXPLAINED_IDEAS = [
    f"MC{i:02}"
    for i in (1, 2, 3, 6, 7, 8, 9, 10, 14, 15, 16, 19, 20, 22, 26, 30, 32, 34, 37, 43, 44, 49, 52, 56, 65, 69, 78)
]
IDEAS = {  # which misconception each wrong implementation embodies
    "SM2": ["MC01"], "SM3": ["MC01"], "AT7": ["MC01"], "AT8": ["MC01"],
    "AT1": ["MC03"], "AT2": ["MC02"], "AT3": ["MC04"], "AT4": ["MC05"], "AT5": ["MC05"], "AT6": ["MC06"], "AT9": ["MC08"],
    "AT10": ["MC09", "MC10"], "AT11": ["MC15"], "AT12": ["MC16"], "AT13": ["MC17"], "AT14": ["MC17"], "AT15": ["MC28"],
    "AT17": ["MC07", "MC13"], "AT18": ["MC14"], "AT19": ["MC13"], "SM6": ["MC14"], "CM1": ["MC19"], "CM2": ["MC20"],
    "CM3": ["MC21"], "CM4": ["MC23"], "CM6": ["MC28"],
    "MH1": ["MC34"], "MH2": ["MC34"], "MH3": ["MC39"], "MH4": ["MC11"], "MH5": ["MC36", "MC40"], "MH6": ["MC40"],
    "MH7": ["MC05"], "MH8": ["MC42"], "MH9": ["MC12"], "MH12": ["MC41"],
    "CA1": ["MC30"], "CA3": ["MC25"], "CA4": ["MC31", "MC32"], "CA5": ["MC31"], "CA6": ["MC33"], "CA7": ["MC33"],
    "PM1": ["MC24"], "PM2": ["MC27"], "PM3": ["MC28"], "PM5": ["MC18"], "PM6": ["MC26"],
    "PE1": ["MC47"], "PE3": ["MC48"], "PE4": ["MC48"], "PE5": ["MC47"], "PE6": ["MC47"], "PE7": ["MC47"], "PE9": ["MC44"],
    "PE10": ["MC48"], "PE11": ["MC48"],
    "EM1": ["MC51"], "EM2": ["MC51"], "EM3": ["MC51"], "EM4": ["MC51"], "EM5": ["MC43"], "EM6": ["MC45"], "EM7": ["MC49"],
    "EM9": ["MC45"],
    "LN1": ["MC56"], "LN2": ["MC57"], "LN3": ["MC57"], "LN4": ["MC56"],
    "FF1": ["MC54"], "FF2": ["MC54"], "FF4": ["MC52"], "FF5": ["MC53"], "FF8": ["MC54"],
    "AN1": ["MC60"], "AN3": ["MC59"], "AN5": ["MC60"], "AN6": ["MC60"], "AN7": ["MC60"], "AN9": ["MC59"], "AN10": ["MC60"],
    "BL1": ["MC23"], "BL2": ["MC63"], "BL3": ["MC62"], "BL4": ["MC84"], "BL5": ["MC62"], "BL6": ["MC59"], "BL8": ["MC63"],
    "BL9": ["MC60"], "SR1": ["MC67"], "LS1": ["MC73"], **{f"LS{i}": ["MC74"] for i in range(2, 6)},
    **{f"LR{i}": ["MC75"] for i in range(1, 9)},
    "PC1": ["MC39"], "PC2": ["MC37"], "PC3": ["MC62"], "PC4": ["MC84"], "PC5": ["MC87"], "PC6": ["MC87"],
    **{f"KV{i}": ["MC89"] for i in (1, 2, 4, 5)}, "KV3": ["MC19", "MC89"],
    "CO1": ["MC69"], "CO2": ["MC70"], "CO3": ["MC70"], "CO4": ["MC37"],
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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_chapter_has_enough_questions_in_all_kinds_and_patterns(chapter):
    bank = questions(chapter)
    assert len(bank) >= (28 if chapter == CHAPTER else 22)
    assert {question.kind for question in bank} >= {"single", "multiple", "numeric", "matching", "recall"}
    assert 2 <= len(of_kind("recall", chapter)) <= 3
    covered = {pattern for question in bank for pattern in question.patterns}
    assert covered >= PATTERNS[chapter], f"patterns without a question: {sorted(PATTERNS[chapter] - covered)}"


def test_every_kind_occurs():
    assert {question.kind for question in questions()} == KINDS


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("exam", ["g-kentei", "e-shikaku"])
def test_both_exams_are_served(exam, chapter):
    bank = [question for question in questions(chapter) if question.kind != "recall"]
    assert sum(exam in question.exams for question in bank) >= 10
    assert sum(question.exams == ["g-kentei"] for question in bank) >= 2
    assert sum(question.exams == ["e-shikaku"] for question in bank) >= 4


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_opens_with_a_guess(chapter):
    assert f"{chapter}.hook" in library().predictions


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_guesses_are_used_in_the_chapter(chapter):
    path = next(content.source_dir().glob(f"*_{chapter.replace('-', '_')}.md"))
    text = path.read_text("utf-8")
    for name, prediction in library().predictions.items():
        if prediction.chapter == chapter:
            assert f'lab.predict("{name}")' in text, name


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
    names = {name: getattr(equations, name) for name in equations.__all__} | {"np": np, "math": math}
    plain = (sum, range, float, int, abs, round, len, min, max, bool, list, tuple, dict, zip)
    builtins = {each.__name__: each for each in plain} | {"__import__": __import__}  # NumPy imports on first use
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


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("lang", ["ja", "en"])
def test_length_says_nothing_about_the_right_option(lang, chapter):
    bank, longest, shortest = of_kind("single", chapter), [], []
    assert len(bank) >= 10
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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_place_of_the_right_option_varies(chapter):
    bank = of_kind("single", chapter)
    places = Counter(next(i for i, option in enumerate(question.options) if option.correct) for question in bank)
    assert set(places) >= {0, 1, 2, 3}
    assert max(places.values()) <= 0.4 * sum(places.values())
    assert all(question.shuffle for question in bank)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_singles_have_four_options_and_multiples_five(chapter):
    assert {len(question.options) for question in of_kind("single", chapter)} == {4}
    assert {len(question.options) for question in of_kind("multiple", chapter)} == {5}


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


def test_every_trap_of_the_catalogue_exists():
    assert list(library().traps) == TRAPS


def test_every_code_but_those_for_quizzes_alone_has_a_snippet():
    assert [key for key in CODES if not library().traps[key].snippet] == sorted(QUIZ_ONLY, key=CODES.index)


def test_variants_are_called_no_error():
    for key in VARIANTS:
        line = library().traps[key].line
        assert "間違いではありません" in line.ja and "no error" in line.en, key


def test_traps_of_questions_and_predictions_exist_and_most_wrong_options_have_one():
    known = set(library().traps)
    for item in [*questions(), *library().predictions.values()]:
        assert content.traps_of(item) <= known, item.id
    for chapter in CHAPTERS:
        wrong = [option for question in questions(chapter) for option in getattr(question, "options", []) if not option.correct]
        assert sum(option.trap is not None for option in wrong) >= 0.5 * len(wrong), chapter


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
    assert trap.snippet or trap.family == "idea"


def test_traps_of_the_chapter_say_where_they_are_taught():
    for key, trap in library().traps.items():
        if trap.chapter in CHAPTERS:
            assert trap.anchor, key


def exercise_of(trap):
    return ast.parse(trap.snippet).body[0].name


def reference_of(trap):
    return equations.scaled_dot_product_attention if exercise_of(trap) == "attention" else getattr(equations, exercise_of(trap))


def snippets():
    found = [trap for trap in library().traps.values() if trap.snippet]
    assert found, "no snippet was found, so nothing would be tested"
    return found


def wrong_function(trap):
    namespace = {"np": np}
    exec(trap.snippet, namespace)
    return namespace[exercise_of(trap)]


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_a_snippet_is_one_function_of_the_exercises_signature(trap):
    tree = ast.parse(trap.snippet)
    assert len(tree.body) == 1
    right = inspect.signature(reference_of(trap)).parameters.values()
    expected = [(each.name, each.default) for each in right if each.name != "mask" or exercise_of(trap) != "attention"]
    mine = inspect.signature(wrong_function(trap)).parameters.values()
    assert [(each.name, each.default) for each in mine] == expected
    assert "#" not in trap.snippet, "no comments: they would be in one language"


def branch(x):
    return np.sin(3 * x) + 0.2 * x[..., ::-1]


@cache
def probes():
    """Arguments on which every trap of a family differs from the right answer and from the other traps."""
    rng = np.random.default_rng(7)
    q, k, v = rng.normal(size=(4, 9)), rng.normal(size=(6, 9)), rng.normal(size=(6, 3))
    mask = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1]], dtype=bool)
    x, y, gain, bias = (rng.normal(size=size) for size in ((5, 12), (4, 12), 12, 12))
    both = rng.normal(size=(2, 5, 12))
    matrices = equations.Projections(*(rng.normal(size=(12, 12)) / 3 for _ in range(4)))
    network = [rng.normal(size=size) / 2 for size in ((12, 20), 20, (20, 12), 12)]
    layer = equations.DecoderParameters.random(12, 20, rng)
    labels, real = np.array([[5, 6, 7, 2], [3, 4, 2, 0]]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]], dtype=bool)
    return {
        "softmax": [(rng.normal(size=(3, 5)),), (np.array([[1000.0, 0.0], [0.0, 1.0]]),)],
        "attention": [(q, k, v)],
        "scaled_dot_product_attention": [(q, k, v, mask)],
        "causal_mask": [(4,), (2, 6)],
        "multi_head_attention": [(x, matrices, 3, np.tri(5, dtype=bool)), (both, matrices, 3, None, both[:, :4])],
        "self_attention": [(x, matrices, np.array([[True, True, True, False, False]]))],
        "cross_attention": [(y, x, matrices)],
        "padding_mask": [(np.array([[3, 4, 5, 0, 0], [5, 6, 0, 0, 0]]), 0)],
        "positional_encoding": [(7, 10)],
        "embed": [(np.array([[1, 2, 2], [0, 1, 4]]), rng.normal(size=(6, 8)), rng.normal(size=(9, 8)))],
        "layer_norm": [(both, gain, bias), (np.ones((2, 5, 12)), gain, bias)],
        "feed_forward": [(x, *network)],
        "add_and_norm": [(x, branch, gain, bias)],
        "decoder_layer": [(y, x, layer, 3, np.tri(4, dtype=bool))],
        "shift_right": [(labels, 1)],
        "label_smoothing": [(np.array([2, 0, 4]), 5, 0.1)],
        "masked_cross_entropy": [(rng.normal(size=(2, 4, 9)), labels, real)],
        "noam_learning_rate": [(step, 512) for step in (1, 4000, 16_000, 50_000)],
        "parameter_count": [(512, 2048, 6, 37_000)],
        "cached_decoding": [(x, matrices)],
        "attention_cost": [(10, 6)],
    }


def probe(trap):
    return probes()[exercise_of(trap)]


def flat(function, arguments):
    with np.errstate(all="ignore"):
        result = function(*arguments)
    arrays = result if isinstance(result, tuple) else (result,)
    parts = [part for array in arrays for part in (np.shape(array), np.ravel(np.asarray(array, dtype=float)))]
    return np.concatenate(parts)  # shapes as well: a mask and its transpose differ


def agree(left, right):
    return left.shape == right.shape and np.allclose(left, right, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_a_snippet_is_wrong_and_like_no_other(trap):
    function, reference = wrong_function(trap), reference_of(trap)
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


def test_the_numbers_in_the_lines_are_so():
    """What the lines say in numbers, from multi-head attention on."""

    def run(key, *arguments):
        with np.errstate(all="ignore"):
            return wrong_function(library().traps[key])(*arguments)

    x, matrices, heads, mask = probes()["multi_head_attention"][0]
    y, memory, _ = probes()["cross_attention"][0]
    right = equations.multi_head_attention(x, matrices, heads, mask)
    swapped = matrices._replace(**{name: np.roll(getattr(matrices, name), 4, axis=1) for name in ("w_q", "w_k", "w_v")})
    for key in ("MH1", "MH2"):  # the order of the heads makes no difference
        assert np.allclose(run(key, x, swapped, heads, mask)[0], run(key, x, matrices, heads, mask)[0])
    assert not np.allclose(equations.multi_head_attention(x, swapped, heads, mask).output, right.output)
    for key, name in {"MH3": "w_o", "MH4": "w_q", "MH9": "w_k"}.items():  # changing this matrix moves nothing
        other = matrices._replace(**{name: getattr(matrices, name)[::-1]})
        assert np.allclose(run(key, x, other, heads, mask)[0], run(key, x, matrices, heads, mask)[0])
    assert np.allclose(run("MH6", x, matrices, heads, mask)[1], right.weights)
    assert np.allclose(run("MH13", x, matrices, heads, mask)[1], right.weights)
    assert np.allclose(run("MH10", x, matrices, heads)[1].sum(axis=0), 1)
    assert run("MH12", x, matrices, heads, mask)[1].shape == (1, 5, 5)
    assert math.sqrt(512) == pytest.approx(22.6, abs=0.05)

    assert run("CA1", y, memory, matrices)[0].shape == memory.shape
    assert np.allclose(run("CA2", y, 2 * memory, matrices)[0], run("CA2", y, memory, matrices)[0])
    assert np.array_equal(run("CA3", y, memory, matrices)[1] > 0, np.tri(4, 5, dtype=bool))
    assert np.allclose(run("CA7", 2 * y, memory, matrices)[0], run("CA7", y, memory, matrices)[0])

    assert np.allclose(run("PE1", 2, 4)[0], [1, 0, 1, 0])
    slowest = np.arcsin(run("PE3", 2, 512)[1, -2])  # the angle of the last pair at position 1
    assert 95 < 1 / slowest < 100
    assert run("PE7", 2, 4)[1, 0] == pytest.approx(0.017, abs=5e-4) and math.sin(1) == pytest.approx(0.841, abs=5e-4)
    assert np.all(run("PE11", 2, 4)[0] == 0)
    assert np.linalg.norm(equations.positional_encoding(3, 512), axis=-1) == pytest.approx(16)  # √(d/2)

    rng = np.random.default_rng(5)
    token = 1e-4 * rng.normal(size=(4, 512))
    token = (token - token.mean(axis=-1, keepdims=True)) / token.std(axis=-1, keepdims=True) * 1e-4
    one, zero = np.ones(512), np.zeros(512)
    assert run("LN7", token, one, zero).std() == pytest.approx(0.909, abs=5e-4)
    assert equations.layer_norm(token, one, zero).std() == pytest.approx(0.032, abs=5e-4)
    assert np.all(run("LN1", token[np.newaxis], one, zero) == 0)
    assert np.isnan(run("LN5", np.ones((1, 512)), one, zero)).all()
    big = 1e4 * token
    assert np.allclose(run("LN6", big, one, zero), np.sqrt(511 / 512) * equations.layer_norm(big, one, zero), atol=1e-4)
    assert np.allclose((run("LN12", big, one, zero) ** 2).sum(axis=-1), 1)

    network = probes()["feed_forward"][0][1:]
    assert np.allclose(run("FF1", x, *network) + run("FF1", -x, *network), 2 * run("FF1", 0 * x, *network))
    assert np.all(run("FF2", x, *network) >= 0)
    assert np.allclose(run("FF8", -abs(x), *network), run("FF8", 0 * x, *network))

    assert [round(float(each), 2) for each in run("LS2", np.array(0), 5, 0.1)[:2]] == [0.28, 0.18]
    assert run("LS3", np.array(0), 5, 0.1).sum() == pytest.approx(1 + 5 * 0.1)
    assert run("LS4", np.array(0), 5, 0.1)[0] == pytest.approx(0.9)
    logits, targets, real = probes()["masked_cross_entropy"][0]
    loss = equations.masked_cross_entropy(logits, targets, real)
    assert run("CE6", logits, targets, real) / loss == pytest.approx(1.44, abs=0.005)
    assert run("CE7", logits + 4, targets, real) == pytest.approx(run("CE7", logits, targets, real) - 4)

    rate = equations.noam_learning_rate
    assert max(range(1, 50), key=lambda step: run("LR1", step, 512)) == 1
    assert run("LR3", 16_000, 512) == pytest.approx(2 * rate(16_000, 512)) == pytest.approx(rate(4000, 512))
    assert run("LR4", 16_000, 512) / run("LR4", 4000, 512) == pytest.approx(1 / 4)
    assert run("LR5", 100, 512) / rate(100, 512) == pytest.approx(512)
    assert run("LR6", 1, 512) == pytest.approx(rate(4000, 512))
    assert max(range(1, 5000), key=lambda step: run("LR6", step, 512)) == 16
    assert run("LR7", 100_000, 512) == 0 < rate(100_000, 512)
    assert run("LR8", 100, 512) / rate(100, 512) == pytest.approx(22.6, abs=0.05)

    base = (512, 2048, 6, 37_000)
    off = {key: run(key, *base) - equations.parameter_count(*base) for key in ("PC1", "PC2", "PC4", "PC5", "PC7")}
    assert off == {"PC1": -4_718_592, "PC2": 7 * 18 * 4 * 512**2, "PC4": -12 * 512 * 2048, "PC5": 37_888_000,
                   "PC7": -30 * 2 * 512}  # fmt: skip
    assert 37_000 * 512 == 18_944_000
    network, attention = 2 * 512 * 2048, 4 * 512**2
    assert 3 * network == 2 * (network + attention)

    causal = equations.cached_decoding(x, matrices).output
    assert np.array_equal(run("KV1", x, matrices)[1], np.eye(5))
    assert np.allclose(run("KV5", x, matrices)[0][:2], causal[:2]) and not np.allclose(run("KV5", x, matrices)[0][2], causal[2])
    assert [run(key, 20, 6)[0] / run(key, 10, 6)[0] for key in ("CO1", "CO3")] == [2, 8]
    assert run("CO2", 10, 12)[0] == 4 * run("CO2", 10, 6)[0]
    assert (224 // 16) ** 2 + 1 == 197 and 224**2 == 50_176


def test_a_decoder_layer_without_its_parts_shows_it_in_its_influence():
    y, memory, parameters, heads, mask = probes()["decoder_layer"][0]

    def moved(key):
        function = wrong_function(library().traps[key])
        return equations.influence_matrix(lambda rows: function(rows, memory, parameters, heads, mask), y)

    assert moved("BL1").all()
    assert np.array_equal(moved("BL5"), np.eye(4, dtype=bool))
    without = wrong_function(library().traps["BL3"])
    assert np.array_equal(without(y, memory, parameters, heads, mask), without(y, 2 * memory, parameters, heads, mask))


@pytest.mark.parametrize("trap", snippets(), ids=lambda trap: trap.key)
def test_the_checker_recognises_a_snippet_as_exactly_its_trap(trap):
    from transformer_lite import practice

    if exercise_of(trap) not in practice.exercises():
        pytest.skip(f"there is no exercise {exercise_of(trap)}")
    result = practice.judge(exercise_of(trap), wrong_function(trap))
    assert result.status == ("variant" if trap.key in VARIANTS else "wrong"), result.text("en")
    assert tuple(result.traps) == (trap.key,), result.text("en")


# --------------------------------------------------------------------------------------------------- anchors, glossary, syllabus


def anchors_by_chapter():
    """The sections that a chapter has in both languages: {chapter: {anchor, ...}}."""
    folder = content.source_dir()
    if folder is None:
        pytest.skip("a wheel has no sources")
    found = {}
    for path in folder.glob("*.md"):
        source = building.read(path)  # it refuses an anchor that only one language has
        found[source.chapter.id] = set(source.anchors)
    assert all(found.get(chapter) for chapter in CHAPTERS), "a chapter has no anchor"
    return found


def test_anchors_are_sections_of_the_chapter():
    anchors = anchors_by_chapter()
    used = [(question.id, question.chapter, question.anchor) for question in questions()]
    used += [(trap.key, trap.chapter, trap.anchor) for trap in library().traps.values() if trap.anchor]
    for name, chapter, anchor in used:
        assert anchor in anchors[chapter], f"{name}: there is no section {anchor!r} in {chapter}"


def test_every_row_of_the_inventory_is_taught_in_a_section_that_both_languages_have():
    anchors, rows = anchors_by_chapter(), library().inventory
    expected = [f"S0-{i:02}" for i in range(1, 87)] + [f"S2-{i:02}" for i in range(1, 107)]
    assert set(rows) <= set(expected), sorted(set(rows) - set(expected))
    assert len({row.what.en for row in rows.values()}) == len(rows), "two rows say the same"
    for name, row in rows.items():
        assert row.taught, name
        for place in row.taught:
            assert place.chapter in anchors, f"{name}: there is no chapter {place.chapter}"
            assert place.anchor in anchors[place.chapter], f"{name}: no section {place.anchor!r} in {place.chapter}"
    missing = sorted(set(expected) - set(rows))
    assert not missing, f"rows that no chapter teaches: {missing}"


def test_terms_are_in_both_languages_and_differ():
    terms = list(library().terms.values())
    assert len(terms) >= 20
    for lang in ("ja", "en"):
        names = [getattr(term, lang).casefold() for term in terms]
        assert len(set(names)) == len(names)
    for term in terms:
        assert JAPANESE.search(term.ja) and not JAPANESE.search(term.en), term.id
        assert not {term.ja, term.en} & set(term.variants), f"{term.id}: a variant repeats the term"


def test_every_misconception_is_asked_and_taught():
    """Each of the 90 is a wrong option of a question, and its section exists."""
    anchors = anchors_by_chapter()
    used = {key for question in questions() for key in content.traps_of(question)}
    twins = {idea for trap in library().traps.values() if trap.key in used for idea in trap.ideas}
    ideas = [f"MC{i:02}" for i in range(1, 91)]
    assert set(ideas) <= set(library().traps)
    assert not [idea for idea in ideas if idea not in used | twins]
    for trap in library().traps.values():
        assert trap.anchor in anchors[trap.chapter], f"{trap.key}: {trap.anchor!r} is no section of {trap.chapter}"


def test_every_pattern_is_asked():
    asked = {pattern for question in questions() for pattern in question.patterns}
    assert asked == {f"P{i:02}" for i in range(1, 76)}


def test_the_exams_are_mapped_whole():
    """Both syllabuses, marked unofficial: every point has living sections and questions, and every question is reached."""
    anchors, syllabus = anchors_by_chapter(), exams.syllabus()
    assert "非公式" in syllabus.unofficial.ja and "nofficial" in syllabus.unofficial.en
    assert [exam.id for exam in syllabus.exams] == ["g-kentei", "e-shikaku"]
    items = [item for exam in syllabus.exams for item in exam.items]
    assert len({item.id for item in items}) == len(items) >= 15
    for exam in syllabus.exams:
        asked = [each for each in questions() if exam.id in each.exams and each.kind != "recall" and each.chapter in CHAPTERS]
        reached = set()
        for point in (point for item in exam.items for point in item.points):
            for chapter, anchor in point.places():
                assert anchor in anchors[chapter], f"{point.name.en}: no section {anchor!r} in {chapter}"
            here = {each.id for each in asked if (each.chapter, each.anchor) in point.places()}
            assert len(here) >= 2, f"{exam.id}: {point.name.en} has {len(here)} questions"
            reached |= here
        assert not {each.id for each in asked} - reached


def test_the_pages_to_print_are_short_and_unofficial():
    pages = exams.handouts()
    assert "非公式" in pages.unofficial.ja and "nofficial" in pages.unofficial.en
    assert [page.exam for page in pages.handouts] == ["g-kentei", "e-shikaku"]
    for page in pages.handouts:
        lines = [line for block in page.blocks for line in block.lines]
        assert 20 <= len(lines) <= 45 and max(len(line.ja) for line in lines) <= 90 and max(len(line.en) for line in lines) <= 130

