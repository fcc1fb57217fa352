"""Operations on whole images outside of passes: a JPEG written and read again, and looks of other images.

Pillow writes JPEGs and simplejpeg reads them. Both run libjpeg-turbo, by its accurate integer DCT and, reading, fancy
upsampling: the pixels are those of Pillow and of torchvision's ``encode_jpeg`` and ``decode_jpeg``, to the bit.
simplejpeg's own encoder takes a faster DCT for qualities below 96, up to 17 levels beside them on a photo.
"""

from __future__ import annotations

import io

import numpy as np
import PIL.Image
import simplejpeg

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.program import matching
from variegate.program.matching import CYCLES, Floats

# Rounding errors of a transform, some 1e-12, do not decide about levels halfway between two.
_HALF = 0.5 + 1e-6
# Levels below which a frequency counts as missing, whose phase is a rounding error.
_NOTHING = 1e-6


def jpeg(img_HWC: Image, ins: Instruction) -> Image:
    """uint8[H, W, C] with C = 1 or 3 -> what a JPEG of the quality (1 to 100) keeps of it, a new array of its shape.

    Colour is stored at half resolution (4:2:0), gray as gray.
    """
    is_gray = img_HWC.shape[2] == 1
    file = io.BytesIO()
    PIL.Image.fromarray(img_HWC[:, :, 0] if is_gray else img_HWC).save(file, "JPEG", quality=int(ins.args[0]))
    decoded: Image = simplejpeg.decode_jpeg(file.getbuffer(), "GRAY" if is_gray else "RGB")
    return decoded


def _rounded(levels: Floats) -> Image:
    return to_uint8(levels + _HALF)


def fda(img_HWC: Image, ins: Instruction) -> Image:
    """The lowest frequencies with the reference's amplitudes and their own phases.

    The difference is added, so that only these are transformed along the second axis and back.
    """
    height, width, channels = img_HWC.shape
    beta, first = float(ins.args[0]), int(ins.args[1])
    cycles = min(int(beta * min(height, width)), CYCLES)
    if cycles == 0:
        return img_HWC
    spectra = ins.side_tables().grids[first : first + channels * matching.SPECTRUM].view(np.float16)
    spectra = spectra.reshape(channels, -1, CYCLES)[:, CYCLES - cycles : CYCLES + cycles - 1, :cycles]
    out = np.empty_like(img_HWC)
    for c, wanted in enumerate(spectra):
        levels = img_HWC[..., c].astype(np.float64)
        low = matching.low_frequencies(levels, cycles, cycles)
        amplitude = np.sqrt(low.real**2 + low.imag**2)
        is_changed = (wanted >= 0) & (amplitude > _NOTHING)
        factor = np.divide(wanted, amplitude, out=np.ones_like(amplitude), where=is_changed)
        lines = np.zeros((height, cycles), np.complex128)
        lines[np.arange(1 - cycles, cycles)] = low * (factor - 1.0)
        columns = np.fft.ifft(lines, axis=0, norm="forward")
        out[..., c] = _rounded(levels + np.fft.irfft(columns, width, norm="forward"))
    return out


def principal_axes(img_HWC: Image, ins: Instruction) -> Image:
    """Colors turned from the image's mean and principal axes to the reference's, blended with the image.

    An axis has no direction of its own; the reference's takes that of the image's.
    """
    share, first, channels = float(ins.args[0]), int(ins.args[1]), img_HWC.shape[2]
    parts = ins.side_tables().grids[first : first + channels * matching.REFERENCE].reshape(channels, -1)
    planes = np.ascontiguousarray(img_HWC.reshape(-1, channels).T, np.float64)
    turn = np.ones((1, 1))
    if channels == 3:
        axes, wanted = matching.axes_of(planes), parts[:, matching.AXIS :] / matching.WHOLE
        turn = (wanted * np.where((axes * wanted).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]).T @ axes
    offset = share * (parts[:, matching.MEAN] / matching.LEVEL - turn @ planes.mean(axis=1))
    matrix = np.eye(channels) + share * (turn - np.eye(channels))
    out = np.empty_like(img_HWC)
    for c in range(channels):
        out[..., c] = _rounded(np.einsum("k,kn->n", matrix[c], planes) + offset[c]).reshape(img_HWC.shape[:2])
    return out
