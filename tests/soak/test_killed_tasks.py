"""Every task of a compiled pipeline is killed many times, spread over all its changes of files, on both targets."""

import pytest
from compiled_runs import compiled, emulated, write_input
from killed_tasks import AttemptsKilled, contents

pytestmark = pytest.mark.soak

# Attempts of a task that are killed in one run: so many retries has the configuration.
KILLS = 6


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_tasks_killed_at_any_point_end_in_the_bytes_of_a_run_without_kills(target, tmp_path, monkeypatch):
    home = write_input(tmp_path, retries=KILLS)
    document = compiled(home, target, monkeypatch)

    def run(name, faults):
        pipeline, parameters = emulated(home, document, home / name)
        pipeline.start = faults.run
        faults.check(pipeline.run(**parameters))
        return contents(pipeline)

    calm = AttemptsKilled(0, kills=0)
    expected = run("calm", calm)
    assert len(expected) > 50
    for seed in (1, 2):
        faults = AttemptsKilled(seed, KILLS, calm.changes)
        assert run(f"killed-{seed}", faults) == expected
        for task, points in faults.points.items():
            print(f"{target}, seed {seed}: {task}, {calm.changes[task]} changes: {points}")
