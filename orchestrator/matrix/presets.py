"""How much each preset measures, and the defaults of the run settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PresetName = Literal["demo", "quick", "standard", "publish"]

DEFAULT_PRESET: PresetName = "standard"
DEFAULT_SEED = 7
DEFAULT_SILENCE_S = 120.0
DEFAULT_TOTAL_S = 1800.0
DEFAULT_STARTUP_S = 300.0


@dataclass(frozen=True, slots=True)
class Preset:
    """Sessions × trials, the most warm-up requests per session, and what is measured besides.

    ``twin``: each baseline a second time (A/A). ``confirm_winner``: the best of several faster cells anew.
    ``phases``: an instrumented repeat that times the parts of a round. ``cross_scoring``: the baseline scores both
    arms' texts, which costs about as many single-token requests as the texts have tokens.
    """

    sessions: int
    trials: int
    warmup: int
    twin: bool
    phases: bool = False
    confirm_winner: bool = False
    cross_scoring: bool = False


# Sessions × trials and the bound on warm-up are the method's: three requests in a row that agree, eight at most; the
# demo models are warm after one. Without a twin there is no noise floor, so the presets whose verdicts count have one.
PRESETS: dict[PresetName, Preset] = {
    "demo": Preset(sessions=4, trials=3, warmup=1, twin=False),
    "quick": Preset(sessions=2, trials=3, warmup=8, twin=False),
    "standard": Preset(sessions=4, trials=5, warmup=8, twin=True),
    "publish": Preset(sessions=8, trials=3, warmup=8, twin=True, phases=True, confirm_winner=True, cross_scoring=True),
}
