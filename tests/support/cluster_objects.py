"""Objects that the tests on a Kubernetes API server create: places of kinds, manifests of the pages, configurations."""

import re
from pathlib import Path

import yaml

from shardwright.config import parse_config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "deploy" / "kubeflow.md", ROOT / "docs" / "tutorials" / "gke-tpu.md"]
NAMESPACE = "kubeflow"
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "InferenceService": "/apis/serving.kserve.io/v1beta1/namespaces/{}/inferenceservices",
}
VOLUMES = [{"claim": "models", "path": "/models"}, {"claim": "data", "path": "/data"}]
KUBEFLOW = {"image": "registry.example/shardwright:1.0", "push_directory": "/models/clouds", "volumes": VOLUMES}


def create(server, manifest, namespace=NAMESPACE, **options):
    return server.send(PLACES[manifest["kind"]].format(namespace), manifest, **options)


def of_the_pages():
    """The claims, accounts and rights that the pages show."""
    blocks = [block for page in PAGES for block in re.findall(r"```yml\n(.*?)```", page.read_text(), re.DOTALL)]
    return [one for block in blocks for one in yaml.safe_load_all(block)]


def config(**changes):
    plain = {"name": "clouds", "input": {"images": "gs://bucket/x"}, "trainer": {"hosts": changes.pop("hosts", 1)}}
    return parse_config({**plain, "kubeflow": {**KUBEFLOW, **changes}}, base="/")
