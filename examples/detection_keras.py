"""Trains a small object detector on a dataset with boxes, by plain Keras. Copy it, and change it.

    python detection_keras.py DATASET

The dataset needs boxes (`input.labels.boxes: true`), images of one size whose sides are multiples of 8
(`images.resize`), and the splits `train` and `eval`. Every cell of 8 x 8 pixels predicts for each class whether the
center of an object is in it, and the box of that object (Objects as Points, Zhou et al., 2019). The program prints the
share of the boxes of `eval` that it finds.
"""

import sys
from typing import Any

import keras
import numpy as np
from keras import layers, ops

import shardwright as sw

CELL = 8


class Batches(keras.utils.PyDataset):
    """Images and targets of a split, read by `shardwright.source`."""

    def __init__(self, dataset: str, split: str, classes: int, batch: int = 8) -> None:
        super().__init__()
        self.source, self.classes, self.batch = sw.source(dataset, split), classes, batch

    def __len__(self) -> int:
        """Returns the number of batches."""
        return -(-len(self.source) // self.batch)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        """Returns a batch."""
        first = number * self.batch
        items = [self.source[i] for i in range(first, min(first + self.batch, len(self.source)))]
        images = np.stack([item["image"] for item in items]).astype("float32") / 255
        size = images.shape[1:3]
        return images, np.stack([to_grid(item["boxes"], item["box_labels"], size, self.classes) for item in items])


def to_grid(boxes: Any, labels: Any, size: tuple[int, int], classes: int) -> Any:
    """Returns the targets of an image, [rows, columns, classes + 4].

    In the cell with the center of an object, the number of its class is 1, followed by the center's place in the cell
    and the logarithms of width and height in cells.
    """
    rows, columns = size[0] // CELL, size[1] // CELL
    grid = np.zeros((rows, columns, classes + 4), np.float32)
    for (xmin, ymin, xmax, ymax), label in zip(boxes, labels, strict=True):
        x, y = (xmin + xmax) / 2 * columns, (ymin + ymax) / 2 * rows
        column, row = min(int(x), columns - 1), min(int(y), rows - 1)
        grid[row, column, label] = 1
        sides = np.log(((xmax - xmin) * columns, (ymax - ymin) * rows))
        grid[row, column, classes:] = (x - column, y - row, *sides)
    return grid


def to_boxes(grid: Any, limit: float = 0.5) -> list[tuple[float, int, Any]]:
    """Returns score, class and box (xmin, ymin, xmax, ymax, as fractions) of the objects in a grid."""
    rows, columns, depth = grid.shape
    found = []
    for row, column, label in np.argwhere(grid[..., : depth - 4] >= limit):
        score, (x, y, width, height) = grid[row, column, label], grid[row, column, depth - 4 :]
        center = np.array([(column + x) / columns, (row + y) / rows])
        half = np.exp([width, height]) / (columns, rows) / 2
        found.append((float(score), int(label), np.concatenate([center - half, center + half])))
    return sorted(found, key=lambda one: -one[0])


def build(size: tuple[int, int], classes: int, filters: int = 16) -> keras.Model:
    """Returns a small network, from [height, width, 3] to a grid."""
    inputs = x = keras.Input((*size, 3))
    for scale in (1, 2, 4):
        x = layers.Conv2D(filters * scale, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.GroupNormalization(8)(x))
    x = layers.Conv2D(filters * 4, 3, padding="same", activation="relu")(x)
    # Few cells have an object: the training begins with that belief.
    scores = layers.Conv2D(classes, 1, activation="sigmoid", bias_initializer=keras.initializers.Constant(-3))(x)
    return keras.Model(inputs, layers.Concatenate()([scores, layers.Conv2D(4, 1)(x)]))


def loss(targets: Any, grids: Any) -> Any:
    """Focal loss of the classes of all cells, and the distance of the boxes of cells with an object."""
    truth, scores = targets[..., :-4], ops.clip(grids[..., :-4], 1e-6, 1 - 1e-6)
    hits = truth * ops.square(1 - scores) * ops.log(scores) * 4
    misses = (1 - truth) * ops.square(scores) * ops.log(1 - scores)
    there = ops.max(truth, axis=-1, keepdims=True)
    distances = there * ops.abs(targets[..., -4:] - grids[..., -4:])
    return (ops.sum(distances) - ops.sum(hits + misses)) / ops.maximum(ops.sum(there), 1)


def overlap(one: Any, other: Any) -> float:
    """Returns the intersection of two boxes over their union."""
    shared = np.prod(np.clip(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0, None))
    areas = sum(np.prod(box[2:] - box[:2]) for box in (one, other))
    return float(shared / (areas - shared))


def share_found(model: keras.Model, batches: Batches, iou: float = 0.5) -> float:
    """Returns the share of boxes for which the model finds one of the same class with that overlap."""
    hits = []
    for images, targets in (batches[i] for i in range(len(batches))):
        for grid, truth in zip(model.predict_on_batch(images), targets, strict=True):
            found = to_boxes(grid, 0.3)
            for _, label, box in to_boxes(truth):
                hits.append(any(label == other and overlap(box, given) >= iou for _, other, given in found))
    return float(np.mean(hits)) if hits else 0.0


def train(dataset: str, epochs: int = 30) -> tuple[keras.Model, float]:
    """Trains, and returns the model and the share of the boxes of `eval` that it finds."""
    classes = len(sw.ImageDataset.open(dataset).manifest.classes)
    batches = Batches(dataset, "train", classes)
    model = build(batches[0][0].shape[1:3], classes)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
    model.fit(batches, epochs=epochs, verbose=0)
    return model, share_found(model, Batches(dataset, "eval", classes))


if __name__ == "__main__":
    print(f"boxes found: {train(sys.argv[1])[1]:.0%}")
