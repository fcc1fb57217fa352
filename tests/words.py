"""Rules of prose: refused turns, and sentences that are too long.

Used for help texts (``tests/cli/test_help.py``), pages (``tests/test_docs.py``), and every docstring and comment of the
package, private ones too (``tests/test_words.py``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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
# Turns that docstrings and comments of the code may not have either: name the thing instead of "those that" and "what".
BANNED_IN_CODE = (
    *("of which", "once more", "and so on", "the like", "for good", "in (?:the )?place of", "takes? the place"),
    *("stands? in", "as (?:it|they) (?:is|are|was|were)", "those (?:that|which|of|in|with|where|who|for|from|it|they)"),
    "(?:one|some|none|any|both|most|parts?|rest|many|few|others) of (?:them|it|those|that|these)",
    "lies? (?:in|on|at|beside|near|below|above|within|next)",
    "comes? (?:to|of|out|back)",
    "what (?:it|they|is|are|was|were|has|have|had|an?|the|this|that|its|one|came|comes?|follows?|goes|remains|belongs|"
    "makes|made|takes|else|others?|users?|we|you|can|may|stands|lies|to|each|callers|does|do|did|all|of|cannot|could|"
    r"happens?|happened|both|any|must|these|needs?|reads|there|would|will|should|by|for|such|\w+ing)",
)
_BANNED_IN_CODE = re.compile(rf"(?<![\w-])(?:{'|'.join(BANNED_IN_CODE)})(?![\w-])", re.I)
# A training is a thing in ``learn``, and "centre" a value that users type.
_ALLOWED_IN_CODE = ("a training", "centre")
# No docstring begins with these: the first line is an imperative or a noun phrase.
DOCSTRING_OPENINGS = re.compile(
    r"(?:what|which|where|who|whose|how|it|so|whether|they|those|of|that|there|and|but|as|by|to|with|if|when|has|is|are|"
    r"not|nothing|or|because|since|while|else|also|more)\b",
    re.I,
)
_COMMENT = re.compile(r"( *)#:? ?(?!!|type:|noqa|pragma)(.*)|.*?\S  # (?!type:|noqa|pragma)(.*)")
# A comment of C++, without directives, endings of namespaces and headings.
_CPP_COMMENT = re.compile(r"( *)//(?! --|--| clang-format| NOLINT) ?(.*)|.*?\S  // (?!namespace|NOLINT)(.*)")
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


def prose_of(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, text, is a docstring) of every docstring and block of comments; code in backticks is ``CODE``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, _without_code(text.partition("\nExamples:")[0]), True
    yield from _comments_of(source, _COMMENT)


def _comments_of(source: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, text, False) of every block of comments."""
    block: list[str] = []
    indent = None
    for number, line in enumerate([*source.splitlines(), ""], 1):
        match = comment.fullmatch(line)
        is_next_line = match is not None and match[3] is None and match[1] == indent
        if block and not is_next_line:
            yield number - len(block), _without_code(" ".join(block)), False
            block = []
        if match is not None:
            block.append(match[3] or match[2] or "")
            indent = None if match[3] is not None else match[1]


def _without_code(text: str) -> str:
    text = re.sub(r"^ *(?:>>>|\.\.\.|\||``\w+``  ).*$", "", text, flags=re.M)
    text = re.sub(r"``[^`]*``|`[^`]+`", "CODE", text)
    return re.sub(r"\[[^\]]*\]", "SHAPE", text)


def problems_of(path: Path) -> Iterator[str]:
    """Yield ``file:line: problem`` for the docstrings and comments of a Python or C++ file."""
    source = path.read_text()
    prose = prose_of(source) if path.suffix == ".py" else _comments_of(source, _CPP_COMMENT)
    for line, text, is_docstring in prose:
        flat = " ".join(text.split())
        turns = [
            *(turn for turn in odd_turns(flat) if turn.lower() not in _ALLOWED_IN_CODE),
            *(match[0] for match in _BANNED_IN_CODE.finditer(flat)),
        ]
        yield from (f"{path}:{line}: {turn!r} in {flat[:60]!r}" for turn in turns)
        for paragraph in re.split(r"\n\s*(?:\n|- )", text):
            yield from (f"{path}:{line}: {len(long.split())} words: {long!r}" for long in long_sentences(paragraph))
        if is_docstring and (opening := DOCSTRING_OPENINGS.match(flat)):
            yield f"{path}:{line}: begins with {opening[0]!r}: {flat[:60]!r}"
