"""The Evaluator: TFX's own, with Dice, IoU and F1 per class over the whole split; the baseline is optional."""
