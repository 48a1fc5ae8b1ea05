"""Logs every run of the pipeline to Weights & Biases.

Run `pip install wandb` and `wandb login`, copy this file next to your configuration, and add to the configuration:

    run: {on_finish: "tracking_wandb:log"}

WANDB_MODE=offline keeps the runs in the folder `wandb`, for `wandb sync`.
"""

from typing import Any

import wandb


def log(run: dict[str, Any]) -> None:
    """Logs a run that has ended."""
    settings = {name: run["config"][name] for name in ("transform", "loader", "trainer", "evaluator")}
    with wandb.init(project=run["name"], config=settings, tags=[run["state"]]) as logged:
        logged.summary.update({"state": run["state"], "reasons": run["reasons"], "seconds": run["seconds"]})
        if run["state"] == "failed":
            logged.finish(exit_code=1)
            return
        for epoch in run["epochs"]:
            values = {f"val/{name}": value for name, value in epoch["metrics"].items()}
            logged.log({"loss": epoch["loss"], **values}, step=epoch["epoch"])
        logged.summary.update({f"test/{name}": value for name, value in run["metrics"].items()})
        logged.summary["dataset"] = run["dataset"]["digest"]
        report = wandb.Artifact("report", type="report")
        report.add_file(run["paths"]["report"])
        logged.log_artifact(report)
