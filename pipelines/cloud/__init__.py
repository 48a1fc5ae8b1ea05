"""From a configuration to documents of Kubeflow and Vertex AI, and their submission."""
