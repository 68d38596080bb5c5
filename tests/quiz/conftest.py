"""One small question of each kind. The right answer stands first in the YAML form, so that only shuffling hides it."""

import pytest

from transformer_lite.content import schema

COMMON = {"exams": ["e-shikaku"], "difficulty": 1, "anchor": "scaling"}


def both(ja, en=None):
    return {"ja": ja, "en": en or ja}


def option(key, ja, en, **more):
    return {"key": key, "text": both(ja, en), "why": both(f"理由{key}", f"reason-{key}"), **more}


def make(model, **fields):
    return model.model_validate(COMMON | fields)


@pytest.fixture
def single():
    return make(
        schema.Single,
        id="t.single",
        kind="single",
        stem=both("割る数はどれですか。", "What is the divisor?"),
        options=[
            option("a", "√d_k", "√d_k", correct=True),
            option("b", "d_k", "d_k", trap="AT3"),
            option("c", "n_k", "n_k", trap="AT4"),
            option("d", "割らない", "nothing", trap="AT1"),
        ],
    )


@pytest.fixture
def multiple():
    return make(
        schema.Multiple,
        id="t.multiple",
        kind="multiple",
        stem=both("正しいものはどれですか。", "Which are true?"),
        options=[
            option("a", "行の和は 1", "rows sum to 1", correct=True),
            option("b", "列の和は 1", "columns sum to 1", trap="AT3"),
            option("c", "重みは負でない", "no weight is negative", correct=True),
        ],
    )


@pytest.fixture
def numeric():
    return make(
        schema.Numeric,
        id="t.numeric",
        kind="numeric",
        stem=both("1/√64 はいくつですか。", "What is 1/√64?"),
        answer=0.125,
        unit=both("点", "points"),
        why=both("√64 は 8 です。", "√64 is 8."),
        near=[{"value": 0.015625, "why": both("d_k で割っています。", "That divides by d_k."), "trap": "AT2"}],
    )


@pytest.fixture
def ordering():
    return make(
        schema.Ordering,
        id="t.ordering",
        kind="ordering",
        stem=both("計算の順に並べてください。", "Put them in order."),
        trap="AT12",
        steps=[option("a", "内積", "dot products"), option("b", "割る", "divide"), option("c", "softmax", "softmax")],
    )


@pytest.fixture
def matching():
    return make(
        schema.Matching,
        id="t.matching",
        kind="matching",
        stem=both("役割を選んでください。", "Which role?"),
        rows=[
            {
                "key": "q",
                "text": both("クエリ", "query"),
                "choice": "asks",
                "why": both("理由q", "reason-q"),
                "traps": {"holds": "MC08"},
            },
            {"key": "v", "text": both("バリュー", "value"), "choice": "holds", "why": both("理由v", "reason-v")},
        ],
        choices=[{"key": "asks", "text": both("探す側", "asks")}, {"key": "holds", "text": both("中身", "holds")}],
    )


@pytest.fixture
def recall():
    return make(
        schema.Recall,
        id="t.recall",
        kind="recall",
        stem=both("なぜ割りますか。", "Why divide?"),
        answer=both("分散を 1 に戻すためです。", "To bring the variance back to 1."),
        points=[both("分散", "variance"), both("飽和", "saturation")],
    )


@pytest.fixture
def questions(single, multiple, numeric, ordering, matching, recall):
    return [single, multiple, numeric, ordering, matching, recall]


@pytest.fixture
def many(single):
    """24 questions: the first 12 for the G exam alone, two for both, the rest for the E exam alone."""

    def numbered(number):
        exams = ["g-kentei"] if number <= 12 else ["g-kentei", "e-shikaku"] if number <= 14 else ["e-shikaku"]
        stem = schema.Both(**both(f"第 {number} 問", f"No. {number}."))
        return single.model_copy(update={"id": f"t.q{number}", "stem": stem, "exams": exams})

    return [numbered(number) for number in range(1, 25)]


@pytest.fixture
def prediction():
    return schema.Prediction.model_validate(
        {
            "id": "t.guess",
            "stem": both("何から計算しますか。", "Computed from what?"),
            "options": [option("a", "距離", "distance"), option("b", "内積", "dot product", correct=True)],
            "after": both("答えは 2 節にあります。", "Section 2 has the answer."),
        }
    )
