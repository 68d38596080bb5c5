"""The wrong versions of the equations: each trap is a setting of the knobs of one ablatable reference per family.

A trap may be written in several ways, so it has several settings; two mistakes at once are two settings put together.
"""

from transformer_lite.traps.catalogue import family
from transformer_lite.traps.knobs import Family, Trap

__all__ = ["Family", "Trap", "family"]
