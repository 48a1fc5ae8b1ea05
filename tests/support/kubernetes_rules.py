"""Rules of Kubernetes and its controllers for manifests: strict schemas, and JobSets."""

import re

import kubernetes_validate

VERSION = "1.33"
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# From api/jobset/v1alpha2/jobset_types.go.
_JOBSET_SPEC = {"replicatedJobs", "network", "successPolicy", "failurePolicy", "suspend", "ttlSecondsAfterFinished"}
_NETWORK = {"enableDNSHostnames", "subdomain", "publishNotReadyAddresses"}


def strictly(manifest):
    """`kubernetes-validate --strict`."""
    kubernetes_validate.validate(manifest, VERSION, strict=True)


def check_jobset(manifest):
    """Rules of the JobSet API and its webhook, and what a TPU slice of several hosts needs beyond that."""
    assert manifest["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert manifest["kind"] == "JobSet"
    spec = manifest["spec"]
    assert set(spec) <= _JOBSET_SPEC
    assert set(spec["network"]) <= _NETWORK
    assert spec["network"]["enableDNSHostnames"] is True
    name = manifest["metadata"]["name"]
    for job in spec["replicatedJobs"]:
        assert set(job) == {"name", "replicas", "template"}
        inner = job["template"]["spec"]
        strictly({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": inner})
        assert inner["completionMode"] == "Indexed"
        assert inner["completions"] == inner["parallelism"]
        # The name of every pod, and the suffix that Kubernetes appends.
        last = f"{name}-{job['name']}-{job['replicas'] - 1}-{inner['completions'] - 1}"
        assert _DNS_LABEL.fullmatch(f"{last}-abcde")
        pod = inner["template"]["spec"]
        strictly({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod})
        assert pod["restartPolicy"] == "Never"
        for container in pod["containers"]:
            resources = container["resources"]
            assert resources["requests"]["google.com/tpu"] == resources["limits"]["google.com/tpu"]
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}
