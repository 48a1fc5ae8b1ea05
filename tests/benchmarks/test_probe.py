"""The benchmark of probing: it compares with correct results and reports all its figures."""

import numpy as np
import pytest

from benchmarks import photographs as benchmarks_photographs
from benchmarks import probe
from shardwright.duplicates.clusters import near_clusters
from shardwright.duplicates.hashes import distance


@pytest.mark.parametrize("limit", [0, 3, 8, 20])
def test_each_with_each_finds_what_the_bands_find(limit):
    hashes = probe.made_up_hashes(700, seed=limit)
    found = probe.each_with_each(hashes, limit)
    assert np.array_equal(found, near_clusters(hashes, limit))
    near = [(i, j) for i in range(0, 700, 37) for j in range(700) if distance(int(hashes[i]), int(hashes[j])) <= limit]
    assert all(found[i] == found[j] for i, j in near)


def test_made_up_hashes_have_copies():
    hashes = probe.made_up_hashes(1000)
    assert 150 < (near_clusters(hashes, 8) != np.arange(1000)).sum() <= 200


def test_all_figures_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "cluster_figures", list)
    photographs = benchmarks_photographs.photographs
    monkeypatch.setattr(probe, "photographs", lambda folder, images: photographs(folder, images, height=96, width=144))
    figures = probe.probe_figures(tmp_path, 4)
    assert [figure.target for figure in figures] == [15]
    assert all(figure.value is None or figure.value >= 0 for figure in figures)


def test_clusters_are_measured_in_their_own_process():
    taken, memory, equal = probe.cluster_figures(3000, 2000)
    assert (taken.target, memory.target, equal.value) == (600, 1, 1.0)
    assert 0 < memory.value < 1
