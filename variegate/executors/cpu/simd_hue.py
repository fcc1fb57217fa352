"""Hue, 32 pixels at a time: Pillow's RGB -> HSV -> RGB to the bit, with neither doubles nor branches.

Pillow goes through float and double (reference/hsv.py). That these few roundings give the same bytes for all colours
and all of HSV was checked one by one; tests/executors/test_hue.py does so again.
"""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu.lanes import Lanes, load_lanes, same_lanes
from variegate.executors.cpu.simd import I32, I64, planes_from, vector_block

HUE_LANES = 32
# Levels fade by v * (_FADES - s * weight) / _FADES, weight 0 to 85: exact in float32 before the division.
_SIXTH, _FADES = 85, 255 * 85
# Added to a level, it rounds it to an integer, in the lower bits of the float32.
_ROUNDING = 2.0**23


@vector_block(I64, I64, I32)
def hue_block(builder: Any, planes: Any, stride: Any, shift: Any) -> Any:
    """32 pixels of three planes with their hue byte moved by ``shift``, in place."""
    addresses = planes_from(builder, planes, stride)
    h, s, high = _hue_and_saturation(*(load_lanes(builder, address, "i8", HUE_LANES) for address in addresses))
    place = (h + same_lanes(builder, shift, HUE_LANES).narrow("i16")) & 255
    place = place + place
    # How far the hue is from a channel's own, in 85ths of a sextant; it is full up to 85, and least from 170 on.
    red = 170 - (place - 255).magnitude()
    green = (place - 2 * _SIXTH).magnitude() - _SIXTH
    blue = (place - 4 * _SIXTH).magnitude() - _SIXTH
    value = high.wide("i32").floats() * (1.0 / _FADES)
    for address, weight in zip(addresses, (red, green, blue), strict=True):
        fade = _FADES - s * weight.clipped(0, _SIXTH)
        level = value * fade.signed("i32").floats() + _ROUNDING
        level.bits("i32").narrow("i8").store(address)


def _hue_and_saturation(r: Lanes, g: Lanes, b: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """int8 lanes -> hue and saturation, int16, and value, int8."""
    high, low = r.most(g).most(b), r.least(g).least(b)
    is_red, is_green = r.equals(high), g.equals(high)
    red_is_low, blue_is_low = r.equals(low).mask("i8"), b.equals(low).mask("i8")
    # Of six sextants, the hue is at ``base`` plus or minus the share that the middle level has of the span.
    base = is_green.choose((~blue_is_low & 2) + 1, (~red_is_low & 2) + 3)
    base = is_red.choose((blue_is_low & 2) - 1, base)
    falls = is_red.choose(blue_is_low, is_green.choose(~blue_is_low, ~red_is_low)).signed("i16")
    red, green, blue, most, least = (levels.wide("i16") for levels in (r, g, b, high, low))
    from_middle = most + most + least - red - green - blue
    span = high - low
    part = ((from_middle ^ falls) - falls).signed("i32").floats() / span.most(1).wide("i32").floats()
    turn = (base.signed("i32").floats() + part) / 6.0
    turn = turn.below(0.0).choose(turn + 1.0, turn)
    s = span.wide("i32").floats() * 255.0 / high.most(1).wide("i32").floats()
    return (turn * 255.0).truncated().narrow("i16"), s.truncated().narrow("i16"), high
