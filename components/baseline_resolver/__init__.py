"""BaselineResolver: the last blessed model, the same way on every runner (Kubeflow's backend has no Resolver)."""
