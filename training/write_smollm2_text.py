"""Let SmolLM2 write the text its draft is distilled from, with its likeliest tokens at each place.

Usage: python training/write_smollm2_text.py TARGET.gguf OUTPUT_FOLDER BATCHES [SEED]

A batch is one .npz file: `tokens` (prompt and answer of each sequence, one after another), `lengths` and `prompts`
(tokens of each sequence, and of its prompt), and for every token but the last of a sequence what the target ranked
first to follow it, `ids` and `probabilities` (at temperature 1). Half of the answers are greedy, the others are drawn
at temperature 0.8. A batch that is there already is not written again.
"""

from __future__ import annotations

import itertools
import pathlib
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch
from smollm2 import TURN_END, Cache, Llama, read_target
from smollm2_prompts import prompts

#: Answers written at once: the matrix products of one step then serve all of them.
BATCH = 64
LONGEST_PROMPT = 200
LONGEST_ANSWER = 72
#: Ranked tokens kept at each place.
RANKED = 16
#: Batches sorted by length together.
GROUP = 8
#: Finished sequences leave the batch when this share of it is done.
COMPACT_AT = 0.15


def choose(logits: torch.Tensor, drawn: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    """The next token of each sequence: the likeliest, or one drawn at temperature 0.8 where `drawn`."""
    greedy = logits.argmax(-1)
    sampled = torch.multinomial((logits / 0.8).softmax(-1), 1, generator=source)[:, 0]
    return torch.where(drawn, sampled, greedy)


def ranked(logits: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Ids and probabilities of the first `RANKED` tokens at each place."""
    best = logits.topk(RANKED, dim=-1)
    share = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return best.indices.numpy().astype(np.uint16), share.numpy().astype(np.float16)


@torch.no_grad()
def write(model: Llama, asked: list[list[int]], seed: int) -> dict[str, np.ndarray]:
    """Answers to `asked`, a list of prompts as ids, with what was ranked first at each place."""
    count = len(asked)
    lengths = torch.tensor([len(ids) for ids in asked])
    width = int(lengths.max())
    cache = Cache.empty(model.shape, count, width + LONGEST_ANSWER)
    padded = torch.tensor([ids + [0] * (width - len(ids)) for ids in asked])
    positions = torch.arange(width).expand(count, width)
    hidden = model.hidden(padded, positions, cache)
    texts = [list(ids) for ids in asked]
    places: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in asked]
    for row in range(count):
        # Of the prompt too: what the target expects there is as much a lesson.
        ids, shares = ranked(model.logits(hidden[row, : lengths[row]]))
        places[row] = list(zip(ids, shares, strict=True))
    logits = model.logits(hidden[torch.arange(count), lengths - 1])
    source = torch.Generator().manual_seed(seed)
    alive, at = torch.arange(count), lengths.clone()
    for step in range(LONGEST_ANSWER):
        token = choose(logits, alive % 2 == 1, source)
        for row, one in zip(alive.tolist(), token.tolist(), strict=True):
            if texts[row][-1] != TURN_END or len(texts[row]) == len(asked[row]):
                texts[row].append(one)
        if step == LONGEST_ANSWER - 1:
            break
        going = torch.tensor([texts[row][-1] != TURN_END for row in alive.tolist()])
        if not going.any():
            break
        if going.float().mean() < 1 - COMPACT_AT:
            alive, at, token = alive[going], at[going], token[going]
            cache.keep(going)
        logits = model.logits(model.hidden(token[:, None], at[:, None], cache)[:, 0])
        at = at + 1
        ids, shares = ranked(logits)
        for row, one, share in zip(alive.tolist(), ids, shares, strict=True):
            if len(places[row]) < len(texts[row]):
                places[row].append((one, share))
    # A sequence that ended has no place after its end; one that was cut short lacks the ranks after its last token.
    kept = [places[row][: len(texts[row]) - 1] for row in range(count)]
    return {
        "tokens": np.concatenate([np.array(text, dtype=np.uint16) for text in texts]),
        "lengths": np.array([len(text) for text in texts], dtype=np.int32),
        "prompts": lengths.numpy().astype(np.int32),
        "ids": np.concatenate([np.stack([one for one, _ in rows]) for rows in kept]),
        "probabilities": np.concatenate([np.stack([share for _, share in rows]) for rows in kept]),
    }


def batched(asked: Iterator[list[int]]) -> Iterator[list[list[int]]]:
    """Batches of prompts of like length, so that little of a first pass is padding, in a mixed order."""
    while True:
        drawn = sorted(itertools.islice(asked, GROUP * BATCH), key=len)
        parts = [drawn[start : start + BATCH] for start in range(0, len(drawn), BATCH)]
        # Short, long, shorter, …: a run that is cut off has seen every length.
        yield from (part for pair in itertools.zip_longest(parts[::2], parts[:0:-2]) for part in pair if part)


def main() -> None:
    """Write the batches that are missing."""
    from tokenizer_of_gguf import read_tokenizer  # noqa: PLC0415

    path, folder, batches = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    model, tokenizer = read_target(path), read_tokenizer(path)
    encoded = (tokenizer.encode(text).ids for _, text in prompts(seed))
    fitting = (ids for ids in encoded if len(ids) <= LONGEST_PROMPT)
    for number, asked in enumerate(itertools.islice(batched(fitting), batches)):
        file = folder / f"{seed}-{number:04d}.npz"
        if file.exists():
            continue
        started = time.process_time()
        found = write(model, asked, seed * 100_000 + number)
        part = file.with_suffix(".part.npz")
        np.savez_compressed(part, **found)
        part.rename(file)
        total, prompt = int(found["lengths"].sum()), int(found["prompts"].sum())
        print(f"{file.name}: {total - prompt} tokens after {prompt}, {time.process_time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
