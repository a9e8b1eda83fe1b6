"""Word lists of the demo corpus: plain nouns and adjectives, no people, places or brands."""

from __future__ import annotations

NOUNS_EN: tuple[str, ...] = (
    "lamp", "stone", "river", "bridge", "clock", "window", "garden", "basket",
    "ladder", "kettle", "mirror", "candle", "wagon", "feather", "button", "drum",
)  # fmt: skip
ADJECTIVES_EN: tuple[str, ...] = (
    "red", "blue", "green", "small", "large", "old", "new", "quiet",
    "warm", "cold", "bright", "heavy",
)  # fmt: skip
PLACES_EN: tuple[str, ...] = (
    "near the door", "under the table", "behind the wall", "beside the road",
    "on the shelf", "in the yard", "by the water", "above the stairs",
)  # fmt: skip
VERBS_EN: tuple[str, ...] = ("holds", "covers", "follows", "lifts", "hides", "needs")
TIMES_EN: tuple[str, ...] = ("In the morning", "At noon", "In the evening", "At night")

NOUNS_KO: tuple[str, ...] = (
    "등불", "돌", "강", "다리", "시계", "창문", "정원", "바구니",
    "사다리", "거울", "수레", "북",
)  # fmt: skip
ADJECTIVES_KO: tuple[str, ...] = ("작은", "큰", "낡은", "새", "조용한", "따뜻한", "밝은", "무거운")
PLACES_KO: tuple[str, ...] = ("문 옆에", "탁자 밑에", "담 뒤에", "길가에", "선반 위에", "마당에")
TIMES_KO: tuple[str, ...] = ("아침에", "낮에", "저녁에", "밤에")

#: Identifiers of the code category.
FUNCTION_NAMES: tuple[str, ...] = ("add", "scale", "total", "clip", "shift", "blend")
ARGUMENT_NAMES: tuple[str, ...] = ("x", "y", "left", "right", "value", "step")


def ends_in_consonant(word: str) -> bool:
    """Whether the last Hangul syllable of `word` has a final consonant, which picks the particle."""
    return (ord(word[-1]) - 0xAC00) % 28 != 0


def subject(word: str) -> str:
    """`word` with the Korean subject particle that fits its last syllable."""
    return word + ("이" if ends_in_consonant(word) else "가")


def topic(word: str) -> str:
    """`word` with the Korean topic particle that fits its last syllable."""
    return word + ("은" if ends_in_consonant(word) else "는")


def object_(word: str) -> str:
    """`word` with the Korean object particle that fits its last syllable."""
    return word + ("을" if ends_in_consonant(word) else "를")
