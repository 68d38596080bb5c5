"""Save and load a model: a folder with ``config.json`` and ``weights.safetensors``. Nothing that could run code is ever read."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer_lite.model import baselines, families
from transformer_lite.model.config import TransformerConfig
from transformer_lite.model.transformer import Transformer

CONFIG, WEIGHTS = "config.json", "weights.safetensors"
FORMAT = 1


class BadModelFile(ValueError):
    """A folder does not hold a model that can be loaded; the message says what is wrong and what to do."""


def save(model: nn.Module, folder: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Write a model of this package to ``folder``, made if it is not there; files of the same names are replaced.

    Args:
        model: any of `kinds`.
        folder: where to.
        metadata: kept within the weights' file, for `metadata`: what the weights belong to.

    Raises:
        TypeError: a model of another class, which `load` could not build again.
    """
    from safetensors.torch import save_model

    kind = type(model).__name__
    if type(model) is not kinds().get(kind, (None,))[0]:
        raise TypeError(
            f"model must be one of {', '.join(kinds())}; got {kind}. Of a compiled model save the one that was compiled, "
            "of any other the parts that are of these classes."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "model": kind, "config": model.config.to_dict()}
    for name, write in (
        (WEIGHTS, lambda path: save_model(model, str(path), metadata=metadata)),
        (CONFIG, lambda path: path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")),
    ):
        unfinished = folder / f".{name}.unfinished"
        write(unfinished)
        unfinished.replace(folder / name)  # never half a file under the true name


def load(folder: str | Path, device: torch.device | str = "cpu") -> nn.Module:
    """Read a model that `save` has written: the same numbers in the same dtype, in evaluation mode.

    Raises:
        FileNotFoundError: the folder, or one of its two files, is not there.
        BadModelFile: a file is damaged or is not one of this package's.
    """
    folder = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no {name}; a saved model is a folder with {CONFIG} and {WEIGHTS}.")
    model = _build(folder / CONFIG)
    _fill(model, folder / WEIGHTS)
    return model.to(device).eval()


def metadata(folder: str | Path) -> dict[str, str]:
    """What `save` was told to keep with the weights.

    Raises:
        BadModelFile: the weights' file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(folder) / WEIGHTS
    try:
        with safe_open(str(path), framework="pt") as file:
            return file.metadata() or {}
    except SafetensorError as error:
        raise BadModelFile(f"{path} cannot be read ({error}); the file is damaged or cut off: save the model again.") from None


def kinds() -> dict[str, tuple[type[nn.Module], type]]:
    """The models that can be saved, by name, each with the class of its configuration."""
    return {
        "Transformer": (Transformer, TransformerConfig),
        "EncoderOnly": (families.EncoderOnly, families.EncoderOnlyConfig),
        "DecoderOnly": (families.DecoderOnly, families.DecoderOnlyConfig),
        "VisionTransformer": (families.VisionTransformer, families.VisionTransformerConfig),
        "RecurrentTranslator": (baselines.RecurrentTranslator, baselines.RecurrentConfig),
        "ConvolutionalTranslator": (baselines.ConvolutionalTranslator, baselines.ConvolutionalConfig),
    }


def _build(path: Path) -> nn.Module:
    try:
        about: Any = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadModelFile(f"{path} is not JSON ({error}); the file is damaged: save the model again.") from None
    if not isinstance(about, dict) or not isinstance(about.get("config"), dict) or str(about.get("model")) not in kinds():
        raise BadModelFile(f"{path} does not describe a model of this package ({', '.join(kinds())}).")
    if about.get("format") != FORMAT:
        raise BadModelFile(f"{path} has format {about.get('format')!r}, this version reads {FORMAT}; update transformer_lite.")
    kind, configuration = kinds()[about["model"]]
    known = {field.name for field in fields(configuration)}
    unknown = sorted(set(about["config"]) - known)
    if unknown:
        raise BadModelFile(f"{path} has settings that this version does not know: {', '.join(unknown)}; update transformer_lite.")
    try:
        return kind(configuration(**about["config"]))
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: sizes that no memory holds
        raise BadModelFile(f"{path} describes no model that can be built: {_briefly(error)}") from None


def _fill(model: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_model

    try:
        with safe_open(str(path), framework="pt") as file:
            for name in list(file.keys())[:1]:
                model.to(file.get_tensor(name).dtype)
        load_model(model, str(path))
    except SafetensorError as error:
        raise BadModelFile(f"{path} cannot be read ({error}); the file is damaged or cut off: save the model again.") from None
    except (RuntimeError, TypeError) as error:  # other names or shapes; numbers that are no weights
        raise BadModelFile(f"{path} does not fit its {CONFIG}: {_briefly(error)}") from None


def _briefly(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
