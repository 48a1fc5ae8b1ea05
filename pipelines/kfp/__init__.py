"""Steps for Kubeflow's and Vertex AI's pipelines that are not TFX's: `ingest`, `verify`, `transform`, `report`."""
