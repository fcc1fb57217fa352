"""How words are written: turns that nothing a user reads may have, and sentences that are too long.

Used for help texts (``tests/cli/test_help.py``) and for pages (``tests/test_docs.py``).
"""

from __future__ import annotations

import re

# At most so many words in a sentence, and in the help of an option.
MOST_IN_SENTENCE, MOST_IN_HELP = 25, 40
BANNED = (
    # The house dialect.
    *("so many", "so much", "so often", "how many", "how often", "goes? on", "went on", "pass(?:es|ed|ing)? over"),
    *("anew", "by (?:it|them)sel(?:f|ves)", "(?:is|are|was|were) left out", "leaves? out", "leaving out", "beside"),
    *("told", "tells", "(?:is|are) noted", "what is wrong", "(?:is|are) to be had", "there (?:is|are) none", "but for"),
    *(r"a training(?! \w)", "trainings", "wavers?", "is the wall", "as ever", "what there is", "an image a piece"),
    *("stays? as (?:it is|they are)", "timm's string", "in whatever", "the same command (?!again)", "whatever ends"),
    *("given again", "given once more", "cut off since", "of any kind", r"how fast a \w+ is"),
    # British spellings.
    *(r"colour\w*", r"grey\w*", "behaviours?", r"neighbour\w*", "cent(?:re|red|res)", r"favour\w*", "licence"),
    r"(?:optimis|normalis|initialis|organis|recognis|summaris|parallelis|quantis|randomis|serialis|utilis)\w+",
    *("labelled", "learnt", "analys(?:e|ed|es)", "catalogue", "modell(?:ed|ing)"),
)
_BANNED = re.compile(rf"(?<![\w-])(?:{'|'.join(BANNED)})(?![\w-])|, too(?=[.;:]|$)", re.I)
# No help begins with these.
OPENINGS = re.compile(r"(?:how|what|which|whether|where|who|so|it|they|of|with what)\b", re.I)
_BLOCK = re.compile(r"^ *```.*?^ *```\n", re.M | re.S)
_END = re.compile(r"(?<=[.!?:;])\s+(?=\S)")


def odd_turns(text: str) -> list[str]:
    """Turns of BANNED in ``text``, which has no code."""
    return [found[0] for found in _BANNED.finditer(text)]


def sentences(text: str) -> list[str]:
    """``text`` cut after a period, a colon or a semicolon."""
    return [one for one in _END.split(" ".join(text.split())) if one]


def long_sentences(text: str, most: int = MOST_IN_SENTENCE) -> list[str]:
    return [one for one in sentences(text) if len(one.split()) > most]


def paragraphs(page: str) -> list[str]:
    """The prose of a Markdown page: paragraphs, items, headings and cells, without code; links are their text."""
    prose = _BLOCK.sub("\n", page)
    prose = re.sub(r"``?[^`\n]+``?", "CODE", prose)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    lines = [re.sub(r"^(\s*(?:[-*]|\d+\.)\s+|#+\s+)", "\n", line) for line in prose.splitlines()]
    prose = "\n".join("\n" + line.replace("|", "\n\n") if line.startswith("|") else line for line in lines)
    return [" ".join(one.split()) for one in re.split(r"\n\s*\n", prose) if one.strip()]
