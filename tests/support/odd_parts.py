"""Parts of odd layouts: masks of values and colors, and their truth; see `odd_sets`."""

import numpy as np
from layouts import CLASSES, COUNT, indices, mask
from PIL import Image

COLORS = np.array([[0, 0, 0], [128, 64, 128], [0, 0, 142]], np.uint8)
SPLITS = ["train"] * 6 + ["val"] * 2


def picture(file, values):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(file)


def numbered(form, values=(1, 2)):
    """The truth of `layouts.indices`, with the values of the classes for names."""
    return {
        form.format(i): {str(value): (indices(i) == n).astype(np.uint8) for n, value in enumerate(values, 1)}
        for i in range(COUNT)
    }


def with_values(number, values=(1, 2)):
    return np.array([0, *values], np.uint8)[indices(number)]


def one_class(form, name="mask"):
    return {form.format(i): {name: mask(i, 0)} for i in range(COUNT)}


def classes(form, of=lambda i: CLASSES[i % 2]):
    return {form.format(i): {of(i): None} for i in range(COUNT)}
