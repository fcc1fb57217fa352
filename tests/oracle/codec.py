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
    """uint8[H, W, C] with C = 1 or 3 -> what a JPEG of the quality (1 to 100) keeps of it, a new array of its shape.

    Colour is stored at half resolution (4:2:0), gray as gray.
    """
    is_gray = img_HWC.shape[2] == 1
    file = io.BytesIO()
    PIL.Image.fromarray(img_HWC[:, :, 0] if is_gray else img_HWC).save(file, "JPEG", quality=int(ins.args[0]))
    decoded: Image = simplejpeg.decode_jpeg(file.getbuffer(), "GRAY" if is_gray else "RGB")
    return decoded
