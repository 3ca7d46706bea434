"""What the results come to, in sentences whose every number is read from the tables.

:func:`overview` is the text of ``docs/results/README.md``. A sentence that claims more than numbers
("is first", "on every set") goes through :func:`state` with the condition that makes it true, so
that a table that says otherwise stops the text instead of contradicting it.
"""

from experiments.findings._base import StaleClaimError, state
from experiments.findings._overview import family_page, overview

__all__ = ["StaleClaimError", "family_page", "overview", "state"]
