"""Writes the couplets of this example: made up from a fixed seed, of words that face each other in real ones."""

from __future__ import annotations

import random
import sys
from pathlib import Path

COUPLETS = 1100
PAIRS = {
    "things": "天地 山水 日月 风雨 花草 江海 云霞 松竹 龙虎 琴书",
    "colours": "红绿 青白 金玉 翠丹",
    "acts": "来去 开合 生落 迎送 歌舞 照映",
    "times": "春秋 朝暮 古今 年岁",
    "numbers": "千万 一双 三五 百九",
}
SHAPES = (
    ("times", "things", "acts", "colours", "things"),
    ("numbers", "things", "acts", "times", "things"),
    ("colours", "things", "times", "acts", "numbers", "times", "things"),
    ("numbers", "things", "colours", "things", "acts", "times", "things"),
)


def main(folder: Path) -> None:
    chosen = random.Random(4)
    pairs = {kind: words.split() for kind, words in PAIRS.items()}
    couplets = [_couplet(chosen, pairs) for _ in range(COUPLETS)]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "train.txt.up.clean", [" ".join(up) for up, _ in couplets])
    _write(folder / "train.txt.down.clean", [" ".join(down) for _, down in couplets])
    _write(folder / "merge.txt.vocab.clean", sorted({word for couplet in couplets for word in "".join(couplet)}))
    (folder / "__init__.py").write_text("from . import merge_vocab\n")
    (folder / "merge_vocab.py").write_text('"""Where tensor2tensor would find the problem; nothing reads it here."""\n')


def _couplet(chosen: random.Random, pairs: dict[str, list[str]]) -> tuple[str, str]:
    """Either word of a pair may stand in the first line; the other faces it."""
    words = [chosen.choice(pairs[kind]) for kind in chosen.choice(SHAPES)]
    turned = [word[::-1] if chosen.random() < 0.3 else word for word in words]
    return "".join(word[0] for word in turned), "".join(word[1] for word in turned)


def _write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "data"))
