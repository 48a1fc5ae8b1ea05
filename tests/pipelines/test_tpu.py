"""TPU slices: what fits, what does not, and the messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import ConfigError
from shardwright.pipelines import tpu
from shardwright.pipelines.tpu import TpuSlice

SLICES = [(name, topology) for name, machine in tpu._MACHINES.items() for topology in machine.topologies]
WRITTEN = {f"{TpuSlice(*names).generation}-{names[1]}" for names in SLICES}


@pytest.mark.parametrize(("machine", "topology"), SLICES)
def test_a_slice_is_made_of_whole_machines(machine, topology):
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
    ],
)
def test_slices_as_people_write_them(text, hosts, machine, chips):
    found = TpuSlice.parse(text, hosts=hosts)
    assert (found.machine, found.hosts, found.chips) == (machine, hosts, chips)


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


@pytest.mark.parametrize(("text", "hosts", "message"), [("v9-2x2", None, "v5e-1x1"), ("v5e-2x2", 2, "1 hosts, not 2")])
def test_a_slice_nobody_rents_out_is_refused(text, hosts, message):
    with pytest.raises(ConfigError, match=message):
        TpuSlice.parse(text, hosts=hosts)


@given(st.text(max_size=20).filter(lambda text: text not in WRITTEN))
def test_any_other_text_is_refused(text):
    with pytest.raises(ConfigError, match="is not a TPU slice"):
        TpuSlice.parse(text)
