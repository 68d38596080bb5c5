"""The map of the course: every box in both languages, every chapter that it names is one, and only attention mixes positions."""

import warnings

import pytest

from transformer_lite import language
from transformer_lite.explore.whole_model import CENTRES, PARTS, whole_model


@pytest.mark.parametrize(("lang", "word"), [("ja", "交差注意"), ("en", "cross-attention")])
def test_the_map_is_drawn_with_a_table_of_its_boxes(lang, word):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = whole_model(lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + len(PARTS) and any(word in row[1] for row in picture.table)
    assert picture.text and picture.title


def test_every_box_has_words_and_chapters_that_exist():
    for part in PARTS:
        text = language.catalogue()[f"explore.whole_model.{part.name}"]
        assert text("ja") and text("en")
        assert set(part.chapters) <= set(range(2, 13)) and part.stack in CENTRES


def test_the_sub_layers_stand_in_the_papers_order_and_only_attention_mixes():
    def layer(stack):
        inside = [part for part in PARTS if part.stack == stack and part.name.endswith(("attention", "feed_forward", "add_norm"))]
        assert [part.height for part in inside] == sorted(part.height for part in inside)
        return [part.name for part in inside]

    assert layer("encoder") == ["self_attention", "add_norm", "feed_forward", "add_norm"]
    assert layer("decoder") == [
        "masked_self_attention", "add_norm", "cross_attention", "add_norm", "feed_forward", "add_norm",
    ]  # fmt: skip
    assert {part.name for part in PARTS if part.mixes} == {"self_attention", "masked_self_attention", "cross_attention"}
