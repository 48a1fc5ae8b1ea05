"""Masks as runs, and what they are made of: codes, polygons, regions, COCO's segmentations, mask files."""
