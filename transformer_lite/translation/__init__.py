"""Translation end to end, English to Japanese: a grammar of our own or real text, vocabularies, training, decoding, scores.

Importing a module of this room loads torch; importing the room alone does not.
"""

from transformer_lite.language import message

__all__ = ["Refused"]


class Refused(ValueError):
    """What the user gave cannot be used. The text, in the user's language, says what was given and how to mend it.

    Args:
        key: of the message, without the room's name.
        values: what fills it in.
    """

    def __init__(self, key: str, **values: object):
        super().__init__(message(f"translation.{key}", **values))
