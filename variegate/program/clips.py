"""Clips: one program for all frames of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate.program.program import Blend, Grouping, Program


def over_frames(program: Program, frames: Sequence[int]) -> Program:
    """A program sampled for one image of each clip, said of all of its frames. ``frames``: how many each clip has.

    The images that it reads are all frames of the first clip, then those of the second, and so on. Random numbers,
    those of noise included, are the same in all frames of a clip.
    """
    number = np.asarray(frames, np.int64)
    first = np.cumsum(number) - number
    of_row = number[program.source]
    again = np.repeat(np.arange(program.num_rows), of_row)
    frame = np.arange(len(again)) - np.repeat(np.cumsum(of_row) - of_row, of_row)
    names = ("opcode", "args", "flags", "fill", "out_size", "label", "length", "in_shape", "ids", "key")
    repeated = {name: getattr(program, name)[again] for name in names}
    blend = program.blend
    if blend is not None:
        # The first rows are those that give their place to the outputs.
        of_output = of_row[: program.num_outputs]
        begins = np.cumsum(of_output) - of_output
        blend = Blend((begins[blend.target][again] + frame).astype(np.int32), blend.weight[again])
    grouping = program.grouping or Grouping(is_split=False)
    return program.replace(
        **repeated,
        source=(first[program.source][again] + frame).astype(np.int32),
        blend=blend,
        grouping=grouping._replace(frames=tuple(number.tolist())),
    )
