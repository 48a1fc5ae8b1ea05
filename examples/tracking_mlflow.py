"""Logs every run of the pipeline to MLflow.

Run `pip install mlflow`, copy this file next to your configuration, and add to the configuration:

    run: {on_finish: "tracking_mlflow:log"}

MLFLOW_TRACKING_URI names the server, for example http://127.0.0.1:5000 or sqlite:///mlflow.db.
"""

import re
from typing import Any

import mlflow


def log(run: dict[str, Any]) -> str:
    """Logs a run that has ended; returns its ID."""
    mlflow.set_experiment(run["name"])
    with mlflow.start_run() as started:
        mlflow.set_tags({"state": run["state"], "reasons": "; ".join(run["reasons"]), "root": run["root"]})
        for section in ("transform", "loader", "trainer", "evaluator"):
            mlflow.log_params({f"{section}.{name}": value for name, value in run["config"][section].items()})
        mlflow.log_metric("seconds", run["seconds"])
        if run["state"] == "failed":
            mlflow.end_run(status="FAILED")
            return started.info.run_id
        mlflow.set_tag("dataset", run["dataset"]["digest"])
        for epoch in run["epochs"]:
            values = {f"val_{name}": value for name, value in epoch["metrics"].items()}
            mlflow.log_metrics(named({"loss": epoch["loss"], **values}), step=epoch["epoch"])
        mlflow.log_metrics(named({f"test_{name}": value for name, value in run["metrics"].items()}))
        mlflow.log_artifact(run["paths"]["report"])
        if "pushed_model" in run["paths"]:
            mlflow.set_tag("pushed_model", run["paths"]["pushed_model"])
        return started.info.run_id


def named(values: dict[str, float]) -> dict[str, float]:
    """Replaces characters that MLflow does not allow in the names of metrics; names of classes may have them."""
    return {re.sub(r"[^\w\-. :/]", "_", name): value for name, value in values.items()}
