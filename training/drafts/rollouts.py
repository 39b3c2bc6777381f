"""Step 1: what the drafts learn from. ``python training/drafts/rollouts.py --data .corpus --out rollouts.safetensors``

Prompts are beginnings of the training text, each from the start of a paragraph or of a clause in it; the shipped model
continues them, greedily but for a share of rows with temperature. A draft must guess what the model writes, and not what
the text says, so that only the continuations are trained on.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from target import load_target
from torch import Tensor

from warfence.serve.model import ASSETS, Tokenizer

SHORT, LONG = (4, 40), (41, 128)  # tokens of three prompts in four, and of the fourth
TEMPERATURE = 0.7


def paragraphs(data: Path, part: str) -> list[str]:
    """The paragraphs of ``part`` (train, validation, heldout) that prepare.py wrote."""
    return (data / f"{part}.txt").read_text(encoding="utf-8").splitlines()


def beginnings(documents: list[str]) -> list[list[int]]:
    """The token ids of every paragraph from its start and from the start of each of its clauses."""
    tokenizer = Tokenizer.load(ASSETS / "tokenizer.json")
    texts = []
    for document in documents:
        clauses = re.split(r"(?<=[.:;?!]) ", document)
        texts += [" ".join(clauses[index:]) for index in range(len(clauses))]
    ids = [tokenizer.encode(text[: 8 * LONG[1]]) for text in texts]
    return [row for row in ids if len(row) >= SHORT[0]]


def prompts(pool: list[list[int]], count: int, positions: int, seed: int) -> tuple[Tensor, Tensor]:
    """``count`` prompts drawn from ``pool``: ids [count, positions], zero after the prompt, and lengths [count]."""
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(len(pool), (count,), generator=generator).tolist()
    short = torch.randint(SHORT[0], SHORT[1] + 1, (count,), generator=generator)
    long = torch.randint(LONG[0], LONG[1] + 1, (count,), generator=generator)
    wanted = torch.where(torch.rand(count, generator=generator) < 0.75, short, long).tolist()
    return padded([pool[pick][:length] for pick, length in zip(picks, wanted, strict=True)], positions)


def padded(rows: list[list[int]], positions: int) -> tuple[Tensor, Tensor]:
    """Rows of unequal length as ids [rows, positions], zero after each, and their lengths."""
    ids = torch.zeros(len(rows), positions, dtype=torch.long)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = torch.tensor(row)
    return ids, torch.tensor([len(row) for row in rows])


def continue_all(ids: Tensor, lengths: Tensor, arguments: argparse.Namespace) -> Tensor:
    """Roll the rows out, a batch at a time, until the time is over; a share of each batch by temperature."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    target, begin, parts = load_target(device), time.monotonic(), []
    for rows, starts in zip(ids.split(arguments.batch), lengths.split(arguments.batch), strict=True):
        heat = torch.zeros(len(rows), 1, device=device)
        heat[: int(arguments.sampled * len(rows))] = TEMPERATURE
        parts.append(target.rollout(rows.to(device), starts.to(device), heat).cpu())
        print(f"{sum(map(len, parts))} of {len(ids)} rows, {time.monotonic() - begin:.1f} s", flush=True)
        if time.monotonic() - begin > arguments.seconds:
            break
    return torch.cat(parts)


def main() -> None:
    """Write ``ids`` int16 [rows, positions] and ``lengths`` int16 [rows] (the tokens of each prompt)."""
    parser = argparse.ArgumentParser(description="Let the shipped model write the training data of its drafts.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that prepare.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--rows", type=int, default=262144, help="at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="start no further batch after this time")
    parser.add_argument("--positions", type=int, default=192, help="tokens of a row, prompt and continuation")
    parser.add_argument("--sampled", type=float, default=0.125, help="the share of rows with temperature")
    parser.add_argument("--batch", type=int, default=8192)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    pool = beginnings(paragraphs(arguments.data, "train"))
    print(f"{len(pool)} beginnings", flush=True)
    ids, lengths = prompts(pool, arguments.rows, arguments.positions, arguments.seed)
    ids = continue_all(ids, lengths, arguments)
    lengths = lengths[: len(ids)]
    tokens = int((ids.shape[1] - lengths).sum())
    settings = {key: getattr(arguments, key) for key in ("seed", "positions", "sampled")}
    record = {**settings, "beginnings": len(pool), "rows": len(ids), "tokens": tokens}
    written = {"ids": ids.to(torch.int16), "lengths": lengths.to(torch.int16)}
    save_file(written, arguments.out, metadata={"record": json.dumps(record)})
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
