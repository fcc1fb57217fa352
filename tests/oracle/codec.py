"""JPEGs, written and read again.

Pillow writes JPEGs and simplejpeg reads them. Both run libjpeg-turbo, by its accurate integer DCT and, reading, fancy
upsampling: the pixels are those of Pillow and of torchvision's ``encode_jpeg`` and ``decode_jpeg``, to the bit.
simplejpeg's own encoder takes a faster DCT for qualities below 96, up to 17 levels beside them on a photo.
"""

from __future__ import annotations

import io

import PIL.Image
import simplejpeg

from tests.oracle.instruction import Image, Instruction


def jpeg(img_HWC: Image, ins: Instruction) -> Image:
    """Write the image as a JPEG of ``quality`` 1 to 100, color in 4:2:0 and gray as gray, and read it again.

    The pixels are those of Pillow's ``save(quality=)`` and ``open``, to the bit, and of every libjpeg-turbo with its
    accurate integer DCT and fancy upsampling. The ``cpu`` executor computes them without a file. A JPEG takes the whole
    image, so it begins a pass. GPUs refuse it.
    """
    is_gray = img_HWC.shape[2] == 1
    file = io.BytesIO()
    PIL.Image.fromarray(img_HWC[:, :, 0] if is_gray else img_HWC).save(file, "JPEG", quality=int(ins.args[0]))
    decoded: Image = simplejpeg.decode_jpeg(file.getbuffer(), "GRAY" if is_gray else "RGB")
    return decoded
