"""TPU slices: what fits, what does not, and the messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import ConfigError
from shardwright.pipelines import tpu
from shardwright.pipelines.tpu import TpuSlice

SLICES = [(name, topology) for name, machine in tpu.MACHINES.items() for topology in machine.topologies]
WRITTEN = {f"{TpuSlice(*names).generation}-{names[1]}" for names in SLICES}


@pytest.mark.parametrize("machine", tpu.MACHINES)
def test_a_slice_is_made_of_whole_machines(machine):
    assert tpu.MACHINES[machine].topologies
    for topology in tpu.MACHINES[machine].topologies:
        found = TpuSlice(machine, topology)
        assert found.hosts >= 1
        assert found.hosts * found.chips_per_host == found.chips
        assert found.node_selector[tpu.TOPOLOGY_SELECTOR] == topology
        assert TpuSlice.parse(f"{found.generation}-{topology}", hosts=found.hosts).machine == machine


@pytest.mark.parametrize(
    ("text", "hosts", "machine", "chips"),
    [
        ("v5e-2x2", 1, "ct5lp-hightpu-4t", 4),
        ("v5e-2x4", 1, "ct5lp-hightpu-8t", 8),
        ("v5e-2x4", 2, "ct5lp-hightpu-4t", 8),
        ("v6e-4x4", 4, "ct6e-standard-4t", 16),
        ("v5p-2x2x2", 2, "ct5p-hightpu-4t", 8),
        ("v5p-4x4x12", 48, "ct5p-hightpu-4t", 192),
        ("tpu7x-1x1x1", 1, "tpu7x-standard-1t", 1),
        ("tpu7x-2x2x1", 1, "tpu7x-standard-4t", 4),
        ("tpu7x-16x24x24", 2304, "tpu7x-standard-4t", 9216),
    ],
)
def test_slices_as_people_write_them(text, hosts, machine, chips):
    found = TpuSlice.parse(text, hosts=hosts)
    assert (found.machine, found.hosts, found.chips) == (machine, hosts, chips)


@pytest.mark.parametrize(("text", "most"), [("v5p", 8960), ("tpu7x", 9216)])
def test_no_slice_is_larger_than_a_pod(text, most):
    """The pod sizes of cloud.google.com/tpu/docs/v5p and tpu7x."""
    chips = [TpuSlice.parse(f"{text}-{topology}").chips for topology in tpu._topologies_of(text)]
    assert max(chips) == most
    assert all(count in (1, 4, 8, 16, 32) or count % 64 == 0 for count in chips)


def test_a_chip_of_the_seventh_generation_is_two_devices():
    assert TpuSlice.parse("tpu7x-2x2x1").devices == 8
    assert TpuSlice.parse("v5p-2x2x1").devices == 4


def test_every_generation_and_machine_has_a_source_and_a_label():
    assert {machine.generation for machine in tpu.MACHINES.values()} == set(tpu._GENERATIONS)
    labels = [generation.label for generation in tpu._GENERATIONS.values()]
    assert len(set(labels)) == len(labels)
    named = {source.partition(":")[0] for machine in tpu.MACHINES for source in tpu.MACHINES[machine].sources}
    assert named == set(tpu.SOURCES)


@pytest.mark.parametrize("machine", tpu.MACHINES)
def test_a_row_has_sources_of_its_processors_its_topologies_and_of_vertex_ai(machine):
    found = {source.partition(":")[0] for source in tpu.MACHINES[machine].sources}
    assert "GKE" in found
    assert found & {"XPK", "TPU"}
    assert ("Vertex" in found) == tpu.MACHINES[machine].on_vertex


@pytest.mark.parametrize(
    ("machine", "topology", "processors", "gigabytes"),
    [
        ("ct5lp-hightpu-8t", "2x4", 224, 384),
        ("ct6e-standard-8t", "2x4", 180, 1440),
        ("ct5p-hightpu-4t", "2x2x1", 208, 448),
    ],
)
def test_processors_and_memory_of_a_host(machine, topology, processors, gigabytes):
    found = TpuSlice(machine, topology)
    assert (found.processors_per_host, found.memory_per_host) == (processors, gigabytes << 30)


@pytest.mark.parametrize("machine", ["ct5p-hightpu-4t", "tpu7x-standard-4t"])
def test_vertex_ai_does_not_train_on_every_generation(machine):
    with pytest.raises(ConfigError, match="trains on v5e and v6e only"):
        TpuSlice(machine, "2x2x1", "vertex.trainer").check_on_vertex()


def test_without_hosts_the_fewest_are_taken():
    assert TpuSlice.parse("v5e-2x4").hosts == 1


@pytest.mark.parametrize(
    ("machine", "topology", "message"),
    [
        ("ct5lp-hightpu-4", "2x2", "Did you mean 'ct5lp-hightpu-4t'"),
        ("g2", "2x2", "Use one of: ct5lp-hightpu-1t"),
        ("ct5lp-hightpu-8t", "4x4", "Use 2x4, or machine ct5lp-hightpu-4t for 4x4"),
        ("ct5lp-hightpu-4t", "2x2x2", "Use 2x2, 2x4"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(machine, topology, message):
    with pytest.raises(ConfigError, match=message):
        TpuSlice(machine, topology)


@pytest.mark.parametrize(
    ("text", "hosts", "message"),
    [("v9-2x2", None, "v5e- with 1x1, 2x2"), ("tpu7x-3x3x3", None, "up to 16x24x24"), ("v5e-2x2", 2, "1 hosts, not 2")],
)
def test_a_slice_nobody_rents_out_is_refused(text, hosts, message):
    with pytest.raises(ConfigError, match=message):
        TpuSlice.parse(text, hosts=hosts)


@given(st.text(max_size=20).filter(lambda text: text not in WRITTEN))
def test_any_other_text_is_refused(text):
    with pytest.raises(ConfigError, match="is not a TPU slice"):
        TpuSlice.parse(text)
