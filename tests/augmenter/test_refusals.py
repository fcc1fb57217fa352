"""What an Augmenter refuses: a call, and the error that names the argument, the value and what is accepted."""

from __future__ import annotations

import numpy as np
import PIL.Image
import torch

import variegate as vg
from tests.augmenter.test_augmenter import POLICY
from tests.images import noise, photo
from tests.refusals import check_refused, every_refusal
from variegate import transforms as T

CROP = T.Compose([T.RandomResizedCrop(40), T.Normalize(0.5, 0.5)])
NAMES = {
    **{"PIL": PIL, "T": T, "np": np, "photo": photo, "torch": torch, "vg": vg},
    **{"POLICY": POLICY, "ONE": [photo(4, 5)], "THREE": [noise(8, 9, 3)], "FIVE": [noise(8, 9, 5)]},
    **{"noise": noise, "LARGE": CROP, "OTHER": CROP, "SMALL": CROP, "VIEWS": T.MultiView([CROP, CROP], counts=[2, 3])},
}
REFUSED = {
    "vg.Augmenter(POLICY)([photo(4, 5).astype(np.float16)])": (
        "TypeError: images[0]: got dtype float16; accepted: uint8, uint16 or float32 [H, W, C] with C = 1 to 32, or"
    ),
    "vg.Augmenter(POLICY)([photo(4, 5), np.zeros((3, 4, 5), np.uint8)])": (
        "images[1]: got shape (3, 4, 5); accepted: ...; the channels of an array come last: transpose"
    ),
    "vg.Augmenter(POLICY)(np.zeros((2, 3, 4, 5), np.uint8))": (
        "images: got shape (2, 3, 4, 5); accepted: ...; the channels of an array come last: transpose(0, 2, 3, 1)"
    ),
    "vg.Augmenter(POLICY)([torch.zeros(33, 40, 50, dtype=torch.uint8)])": "images[0]: got shape (33, 40",
    "vg.Augmenter(POLICY)([photo(4, 5), torch.zeros(3, 4, 5, requires_grad=True)])": (
        "TypeError: images[1]: got a tensor that requires a gradient; accepted: tensor.detach()"
    ),
    "vg.Augmenter(POLICY)([torch.zeros(3, 4, 5, dtype=torch.bfloat16)])": (
        "TypeError: images[0]: got dtype bfloat16; accepted"
    ),
    "vg.Augmenter(POLICY)([torch.zeros(4, 5, 3, dtype=torch.uint8).to_sparse()])": (
        "TypeError: images[0]: got a tensor of layout torch.sparse_coo; accepted: a dense one"
    ),
    "vg.Augmenter(POLICY)(np.array([photo(4, 5), photo(5, 5)], object))": (
        "TypeError: images: got dtype object; accepted: uint8, uint16 or float32 [N, H, W, C], or a list of images"
    ),
    'vg.Augmenter(POLICY)([photo(4, 5), PIL.Image.new("L", (40000, 1))])': (
        "images[1]: 40,000 x 1 pixels, more than 32,767 on a side"
    ),
    'vg.Augmenter(POLICY)(PIL.Image.new("L", (4, 5)))': (
        "TypeError: images: got Image; accepted: ...; one image goes into a list"
    ),
    "vg.Augmenter(POLICY)([np.zeros((4, 5, 33), np.uint8)])": "images[0]: got shape (4, 5, 33)",
    "vg.Augmenter(POLICY)([np.zeros((0, 5, 3), np.uint8)])": "got shape (0, 5, 3); ... no side empty",
    "vg.Augmenter(POLICY)(photo(4, 5))": "images: got shape (4, 5, 3); accepted: one array [N, H, W, C]",
    'vg.Augmenter(POLICY)("cat.jpg")': (
        "TypeError: images: got str; accepted: a list of images or one array [N, H, W, C]"
    ),
    'vg.Augmenter(POLICY)(torch.zeros(1, 4, 5, 3, dtype=torch.uint8, device="meta"))': "on meta; ...CPU tensors",
    "vg.Augmenter(POLICY)(ONE, ids=[])": "ids: got shape (0,); accepted: one integer per image, 1 here",
    "vg.Augmenter(POLICY)(ONE, ids=[-1])": "ids: got [-1]; accepted: integers from 0 to 2**64 - 1",
    "vg.Augmenter(POLICY)(ONE, ids=[2 ** 64])": (
        "ids: got [18446744073709551616]; accepted: integers from 0 to 2**64 - 1"
    ),
    "vg.Augmenter(POLICY)(ONE, epoch=-1)": "epoch: got -1; accepted: an integer from 0",
    "vg.Augmenter(POLICY)(ONE, epoch=2 ** 64)": "epoch: got 18446744073709551616; accepted: an integer from 0",
    "vg.Augmenter(POLICY)(ONE, copy=2 ** 32)": "copy: got 4294967296; accepted: an integer from 0",
    "vg.Augmenter(POLICY)(ONE, ids=[[1, 2], 3])": "ids: got [[1, 2], 3]; accepted: one integer per image, 1 here",
    "vg.Augmenter(POLICY)(ONE, ids=[True])": "ids: got [True]; accepted: integers",
    "vg.Augmenter(POLICY)(ONE, ids=torch.ones(1, requires_grad=True))": (
        "ids: got tensor([1.], requires_grad=True); accepted: integers"
    ),
    'vg.Augmenter(POLICY)(ONE, conditions={"label": 3})': (
        "conditions['label']: got shape (); accepted: one value per image"
    ),
    'vg.Augmenter(POLICY)(ONE, conditions={"label": [[1], [2, 3]]})': (
        "conditions['label']: got [[1], [2, 3]]; accepted: one"
    ),
    "vg.Augmenter(POLICY)(ONE, copy=[1, 2])": "copy: got shape (2,); accepted: one integer, or one per image, 1 here",
    "vg.Augmenter(POLICY)(ONE, copy=True)": "copy: got True; accepted: an integer from 0 to 2**32 - 1, or one",
    'vg.Augmenter(POLICY)(ONE, conditions={"label": [1, 2]})': "conditions['label']: got shape (2,); ... 1 here",
    'vg.Augmenter(POLICY, device="gpu")': "device: got 'gpu'; accepted: 'cpu', 'cuda' or",
    'vg.Augmenter(POLICY, dtype="float64")': "dtype: got 'float64'; accepted: one of 'float32', 'float16', 'bfloat16'",
    'vg.Augmenter(POLICY, layout="CHW")': "layout: got 'CHW'; accepted: one of 'NCHW', 'NHWC'",
    'vg.Augmenter(POLICY, geometry="fast")': "geometry: got 'fast'; accepted: one of 'composed', 'exact'",
    "vg.Augmenter(POLICY, seed=-1)": "seed: got -1; accepted: an integer from 0 to 2**64 - 1",
    "vg.Augmenter(POLICY, num_threads=0)": "num_threads: got 0; accepted: a positive integer, or None for all cores",
    "vg.Augmenter(POLICY).program([(20, 30), (20, 0)])": (
        "sizes[1]: got (20, 0); accepted: (height, width) or (height, width, channels)"
    ),
    "vg.Augmenter(POLICY).program([(20,)])": "sizes[0]: got (20,)",
    "vg.Augmenter(POLICY).program([(20, 30, 33)])": "sizes[0]: got (20, 30, 33); ... channels 1 to 32",
    "vg.Augmenter(POLICY)(ONE, conditions=[1])": (
        "TypeError: conditions: got ...; accepted: a dict from name to one value per image, such as"
    ),
    'vg.Augmenter(POLICY)(ONE, conditions="label")': (
        "TypeError: conditions: got ...; accepted: a dict from name to one value per image, such as"
    ),
    "vg.Augmenter(POLICY)(ONE, conditions=3)": (
        "TypeError: conditions: got ...; accepted: a dict from name to one value per image, such as"
    ),
    "vg.Augmenter(POLICY)(ONE, conditions={3: [1]})": (
        "TypeError: conditions: got ...; accepted: a dict from name to one value per image, such as"
    ),
    'vg.Augmenter({"type": "Invert"})': (
        "TypeError: transform: got ...; accepted: a variegate transform, such as T.Compose"
    ),
    "vg.Augmenter(T.RandomHorizontalFlip)": (
        "TypeError: transform: got ...; accepted: a variegate transform, such as T.Compose"
    ),
    "vg.Augmenter(None)": "TypeError: transform: got ...; accepted: a variegate transform, such as T.Compose",
    "T.MultiView([])": "transforms=[]; accepted: a list of at least one",
    "T.MultiView([LARGE, 3])": "transforms[1]=3; accepted: a transform such as ... or a list",
    "T.MultiView([LARGE, SMALL], counts=[2])": "counts=[2]; accepted: None, or a positive integer for",
    "T.MultiView([LARGE], counts=[257])": "at most 256 in all",
    "T.MultiView([[LARGE, OTHER]], counts=[3])": "transforms[0]=...as many transforms as the group has",
    "T.Compose([VIEWS, T.Invert()])": "Compose: transforms=MultiView inside Compose; accepted: transforms",
    "T.MultiView([VIEWS])": "MultiView: transforms=MultiView inside MultiView",
    'T.Cond("uniform", [(0, 1, VIEWS)])': "Cond: cases=MultiView inside Cond",
    "T.MultiView([LARGE, T.RandomApply([T.MixUp()])])": "transforms=MixUp inside MultiView; accepted",
    "vg.Augmenter(T.ColorJitter(contrast=0.2))(FIVE)": (
        "Contrast...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.Color(0.5))(FIVE)": (
        "Color...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.Grayscale())(FIVE)": (
        "Grayscale...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.ChannelPermutation())(FIVE)": (
        "ChannelPermutation...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.CLAHE())(FIVE)": (
        "CLAHE...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.JPEG(50))(FIVE)": (
        "JPEG...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    'vg.Augmenter(T.RandomErasing(1.0, value="color"))(FIVE)': (
        "RandomErasing...: got an image of 5 channels; accepted: images of one channel, or of red"
    ),
    "vg.Augmenter(T.Pad(1, fill=(1, 2, 3)))(FIVE)": (
        "Pad: fill=(1, 2, 3); accepted: one number, or 5, for an image of 5 channels"
    ),
    "vg.Augmenter(T.Pad(1, fill=(1, 2, 3, 4)))(THREE)": (
        "Pad: fill=(1, 2, 3, 4); accepted: one number or three, for an image of 3"
    ),
    "vg.Augmenter(T.Normalize((0.1, 0.2, 0.3), 0.5))(FIVE)": "Normalize: mean=...; accepted: one number, or 5",
    "vg.Augmenter(T.Normalize((0.1, 0.2, 0.3, 0.4), 0.5))(THREE)": (
        "Normalize: mean=...accepted: one number or three of each"
    ),
    "vg.Augmenter(T.Identity())([noise(8, 8, 3), noise(8, 8, 5)])": (
        "images of 3, 5 channels; accepted in one batch: 1 and 3 together, or one"
    ),
}


@every_refusal(REFUSED)
def test_refused(call: str, message: str) -> None:
    check_refused(call, message, NAMES)
