"""Train the demo tokenizer: byte-level BPE, GPT-2 split, 1024 entries, eight of them special.

Usage: python training/train_tokenizer.py OUTPUT_DIRECTORY
"""

from __future__ import annotations

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from orchestrator.demo import corpus

VOCABULARY_SIZE = 1024
END_OF_TEXT = "<|endoftext|>"
PADDING = "<|pad|>"
#: The corpus has too few different words to fill the vocabulary without these.
RESERVED = tuple(f"<|reserved-{number}|>" for number in range(1, 7))
CORPUS_SEED = 1
CORPUS_CHARACTERS = 2_000_000


def main() -> None:
    """Write tokenizer.json and tokenizer_config.json into the directory named on the command line."""
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[END_OF_TEXT, PADDING, *RESERVED],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus.documents(CORPUS_SEED, CORPUS_CHARACTERS), trainer)
    if tokenizer.get_vocab_size() != VOCABULARY_SIZE:
        sys.exit(f"only {tokenizer.get_vocab_size()} entries: the corpus needs more reserved tokens")
    tokenizer.save(str(output / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TEXT,
        "bos_token": END_OF_TEXT,
        "pad_token": PADDING,
        "model_max_length": 1024,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
    }
    (output / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{tokenizer.get_vocab_size()} entries\n")


if __name__ == "__main__":
    main()
