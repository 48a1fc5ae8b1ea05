"""Masks as runs, and their sources: run-length codes, polygons, COCO's segmentations, mask files; regions of masks."""
