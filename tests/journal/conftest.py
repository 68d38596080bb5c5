import pytest

from transformer_lite.journal import Journal


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """These tests are about what is written; they write to folders of their own."""
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")


@pytest.fixture
def journal(tmp_path) -> Journal:
    return Journal(tmp_path / "学習" / "journal.db")
