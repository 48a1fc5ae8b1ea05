"""BaselineResolver: the last blessed model, on every runner (Kubeflow's backend has no Resolver)."""
